//! What a session was given, so that nothing is given twice.
//!
//! In: why a session starts, and which words of which turns are given. Out: whether words are new to it. Holds hashes of
//! turns' ids and lengths of words, and none of the words. A compaction forgets what was given, since the session no
//! longer has it; what a resume was given is not kept by the programs, so the next one forgets that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartCause {
    /// It is new, or was cleared.
    Startup,
    /// It goes on, or is a fork of one that does.
    Resume,
    /// It was compacted.
    Compaction,
}

impl StartCause {
    /// The cause that a program names.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "startup" | "new" | "clear" => Some(Self::Startup),
            "resume" | "fork" => Some(Self::Resume),
            "compact" => Some(Self::Compaction),
            _ => None,
        }
    }
}

/// What a session was given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GivenTurns {
    /// Whether the session got what stands at its start.
    pub begun: bool,
    /// When it was compacted last, in milliseconds since 1970: what was said before is no longer in it word for word.
    pub compacted_ms: Option<i64>,
    /// Hash of a turn, or of a passage of one -> how many bytes of its words were given.
    kept: BTreeMap<String, usize>,
    /// The same, of what the session has only until it is resumed.
    passing: BTreeMap<String, usize>,
    /// Whether what is given now is passing.
    is_passing: bool,
}

/// How much of a turn's words must have been given for all of them to count, in percent.
const MOST_OF_IT: usize = 60;

impl GivenTurns {
    /// A session starts, or goes on.
    pub fn begin(&mut self, cause: StartCause, now_ms: i64) {
        match cause {
            StartCause::Startup => *self = Self::default(),
            StartCause::Compaction => self.compact(now_ms),
            StartCause::Resume => {
                self.passing.clear();
                self.is_passing = true;
            }
        }
    }

    /// The session no longer has what it was given, but all that was said in it.
    pub fn forget(&mut self) {
        *self = Self { compacted_ms: self.compacted_ms, ..Self::default() };
    }

    /// The session no longer has what it was given, nor what was said in it.
    pub fn compact(&mut self, now_ms: i64) {
        *self = Self { compacted_ms: Some(now_ms), ..Self::default() };
    }

    /// Whether words of a turn are new to the session. `from` is where a passage begins in a long turn.
    #[must_use]
    pub fn is_new(&self, turn: &str, from: Option<u64>, words: &str) -> bool {
        let was_given = |key: String| {
            let bytes = self.kept.get(&key).copied().max(self.passing.get(&key).copied()).unwrap_or_default();
            bytes > 0 && bytes * 100 >= words.len() * MOST_OF_IT
        };
        !(was_given(key(turn, None)) || from.is_some() && was_given(key(turn, from)))
    }

    /// Notes that words of a turn were given.
    pub fn note(&mut self, turn: &str, from: Option<u64>, words: &str) {
        let given = if self.is_passing { &mut self.passing } else { &mut self.kept };
        let bytes = given.entry(key(turn, from)).or_default();
        *bytes += words.len();
    }

    /// What is given from now on stays in the session.
    pub fn started(&mut self) {
        self.is_passing = false;
        self.begun = true;
    }
}

/// The hash of a turn or of a passage of one.
fn key(turn: &str, from: Option<u64>) -> String {
    let whole = from.map_or_else(|| turn.to_owned(), |from| format!("{turn}\u{0}{from}"));
    blake3::hash(whole.as_bytes()).to_hex().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_new_once() {
        let mut given = GivenTurns::default();
        assert!(given.is_new("t1", None, "I prefer tabs."));
        given.note("t1", None, "I prefer tabs.");
        assert!(!given.is_new("t1", None, "I prefer tabs, always."), "most of them");
        assert!(given.is_new("t1", None, "I prefer tabs. And here is a long story about how that came to be."));
        assert!(given.is_new("t2", Some(40), "Later words."));
        given.note("t2", Some(40), "Later words.");
        assert!(!given.is_new("t2", Some(40), "Later words.") && given.is_new("t2", Some(90), "Other words."));
        let kept: GivenTurns = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
        assert_eq!(kept, given);
    }

    #[test]
    fn a_session_forgets_what_it_no_longer_has() {
        let mut given = GivenTurns::default();
        given.begin(StartCause::Startup, 1);
        given.note("start", None, "a");
        given.started();
        given.begin(StartCause::Resume, 2);
        given.note("resumed", None, "b");
        given.started();
        given.note("prompt", None, "c");
        let news = |given: &GivenTurns| ["start", "resumed", "prompt"].map(|turn| given.is_new(turn, None, "x"));
        assert_eq!(news(&given), [false; 3]);
        given.begin(StartCause::Resume, 3);
        assert_eq!(news(&given), [false, true, false], "what a resume was given is not kept");
        given.begin(StartCause::Compaction, 4);
        assert_eq!((news(&given), given.compacted_ms), ([true; 3], Some(4)));
    }
}

//! Benchmark files to questions, one file per format.
//!
//! In: a file in its published form, and the turns that the memory was given. Out:
//! questions with the turns that hold their evidence, and a mark for everything that was
//! damaged. A file that is no whole JSON value is an error that names the place; anything
//! smaller is repaired where that is documented, otherwise counted.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    problems::{Kind as Damage, Problems},
    recording_source::Heard,
};
use crate::model::{Bank, EventTime};

mod evermembench;
mod locomo;
mod longmemeval;

/// Which published form a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `locomo10.json`: conversations with their questions.
    Locomo,
    /// LongMemEval: one haystack of sessions a question.
    LongMemEval,
    /// EverMemBench-Dynamic: `dialogue.json` with `qa_NNN.json` beside it.
    EverMemBench,
}

impl Format {
    /// The format of a name, as on the command line.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Locomo, Self::LongMemEval, Self::EverMemBench].into_iter().find(|f| f.name() == name)
    }

    /// Its name: that of its source, and of the first segment of its banks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locomo => "locomo",
            Self::LongMemEval => "longmemeval",
            Self::EverMemBench => "evermembench",
        }
    }
}

/// Why a benchmark file has no questions.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file could not be read.
    #[error("{path}: cannot be read; check the path and its rights")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file as a whole is not of its format, such as one that was half downloaded.
    #[error("{path}:{line}:{column}: {problem}; fetch the whole file again, in the form that {format} publishes")]
    Format {
        /// The file.
        path: PathBuf,
        /// Line of the first mistake, from 1.
        line: usize,
        /// Column of the first mistake, from 1.
        column: usize,
        /// What was found.
        problem: String,
        /// The format's name.
        format: &'static str,
    },
    /// There is nothing to ask.
    #[error("{path}: holds no question that can be asked: {why}; check the file and --conversations")]
    Empty {
        /// The file.
        path: PathBuf,
        /// The kinds of damage with their counts.
        why: String,
    },
}

/// Whether the dialogue supports an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does: the question counts in the overall figures.
    Supported,
    /// It does not, and a good memory should say so.
    Unsupported,
    /// The category is not known.
    Unknown,
}

/// A question to ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// Identity in the file: `conv-26#12`, counted from 0.
    pub(crate) id: String,
    /// The conversation.
    pub(crate) conversation: String,
    /// Its bank.
    pub(crate) bank: Bank,
    /// The category, by its name.
    pub(crate) category: String,
    /// Whether it counts.
    pub(crate) standing: Standing,
    /// The question as put.
    pub(crate) text: String,
    /// When it was put.
    pub(crate) asked_at: Option<EventTime>,
    /// The reference answer.
    pub(crate) reference: Option<String>,
    /// What the file says of the turns that hold the evidence.
    pub(crate) evidence: Vec<String>,
}

impl Asked {
    /// Whether it counts in the overall figures.
    pub(crate) fn counts(&self) -> bool {
        self.standing == Standing::Supported
    }
}

/// The questions of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Dataset {
    /// In the order of the file.
    pub(crate) questions: Vec<Asked>,
    /// What was damaged.
    pub(crate) problems: Problems,
    /// Whether its questions name their evidence; without it they are asked but not scored.
    pub(crate) scorable: bool,
}

/// Reads the questions of a file, all of them or those of some conversations.
///
/// # Errors
/// [`DatasetError`] when the file cannot be read or is not of its format as a whole.
pub(crate) fn read(format: Format, path: &Path, only: &[String], zone_seconds: i32) -> Result<Dataset, DatasetError> {
    let mut dataset = match format {
        Format::Locomo => locomo::read(&list(format, path)?, only),
        Format::LongMemEval => {
            let mut dataset = Dataset { scorable: true, ..Dataset::default() };
            each(format, path, |index, item| longmemeval::read(&mut dataset, index, &item, only, zone_seconds))?;
            dataset
        }
        Format::EverMemBench => evermembench::read(path)?,
    };
    dataset.mark_duplicates();
    Ok(dataset)
}

impl Dataset {
    /// Keeps the evidence that names turns which the memory was given, and the questions
    /// that have some left.
    pub(crate) fn resolve(&mut self, heard: &Heard) {
        for letter in &heard.rejects {
            self.problems.note(Damage::Rejected, format!("{}: {}", letter.origin, letter.reason));
        }
        let problems = &mut self.problems;
        let scorable = self.scorable;
        self.questions.retain_mut(|q| {
            let Some(turns) = heard.turns.get(&q.bank) else {
                problems.note(Damage::NoConversation, &q.id);
                return false;
            };
            let mut found: Vec<String> = Vec::new();
            for piece in &q.evidence {
                let (turns_named, repaired) = named(piece, |id| turns.contains_key(id));
                if turns_named.is_empty() {
                    problems.note(Damage::LostEvidence, format!("{}: {piece:?}", q.id));
                } else if repaired {
                    problems.note(Damage::RepairedEvidence, format!("{}: {piece:?}", q.id));
                }
                for turn in turns_named {
                    if !found.contains(&turn) {
                        found.push(turn);
                    }
                }
            }
            q.evidence = found;
            // A question about nothing has no evidence by right.
            let kept = !q.evidence.is_empty() || !scorable || q.standing == Standing::Unsupported;
            if !kept {
                problems.note(Damage::NoEvidence, &q.id);
            }
            kept
        });
    }

    /// At most so many questions a conversation, in the order of the file.
    pub(crate) fn limit(&mut self, most: usize) {
        let mut asked = std::collections::HashMap::new();
        self.questions.retain(|q| {
            let n: &mut usize = asked.entry(q.conversation.clone()).or_default();
            *n += 1;
            *n <= most
        });
    }

    fn mark_duplicates(&mut self) {
        let mut seen = HashSet::new();
        for q in &self.questions {
            let text = q.text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            if !seen.insert((q.bank.clone(), q.category.clone(), text)) {
                self.problems.note(Damage::Duplicate, &q.id);
            }
        }
    }
}

/// The turns that an evidence string names, and whether it had to be repaired for that.
///
/// A string that is a turn's id is taken as it is. Otherwise every `D1:2`, `D:1:2` or
/// `D01:02` in it is one, leading zeros left out; ids that name no turn are dropped.
fn named(piece: &str, is_turn: impl Fn(&str) -> bool) -> (Vec<String>, bool) {
    if is_turn(piece) {
        return (vec![piece.to_owned()], false);
    }
    let mut found = Vec::new();
    let mut rest = piece;
    while let Some(at) = rest.find('D') {
        rest = rest.get(at + 1..).unwrap_or_default();
        let tail = rest.strip_prefix(':').unwrap_or(rest);
        let Some((session, tail)) = number(tail) else { continue };
        let Some((turn, tail)) = tail.strip_prefix(':').and_then(number) else { continue };
        let id = format!("D{session}:{turn}");
        if is_turn(&id) {
            found.push(id);
        }
        rest = tail;
    }
    (found, true)
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    digits.parse().ok().map(|n| (n, rest))
}

/// A file that is one JSON list.
fn list(format: Format, path: &Path) -> Result<Vec<Value>, DatasetError> {
    match json(format, path)? {
        Value::Array(items) => Ok(items),
        _ => Err(DatasetError::Format {
            path: path.to_owned(),
            line: 1,
            column: 1,
            problem: "not a list".to_owned(),
            format: format.name(),
        }),
    }
}

/// Hands out the items of a file that is one JSON list, one at a time, with their places:
/// the larger files do not fit into memory as values.
fn each(format: Format, path: &Path, mut take: impl FnMut(usize, Value)) -> Result<(), DatasetError> {
    struct Items<F>(F);
    impl<'de, F: FnMut(usize, Value)> serde::de::Visitor<'de> for Items<F> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of questions")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            let mut index = 0;
            while let Some(item) = items.next_element()? {
                (self.0)(index, item);
                index += 1;
            }
            Ok(())
        }
    }
    let bytes = read_bytes(path)?;
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let read = serde::Deserializer::deserialize_seq(&mut reader, Items(&mut take)).and_then(|()| reader.end());
    read.map_err(|e| not_of(format, path, &e))
}

fn json(format: Format, path: &Path) -> Result<Value, DatasetError> {
    serde_json::from_slice(&read_bytes(path)?).map_err(|e| not_of(format, path, &e))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, DatasetError> {
    std::fs::read(path).map_err(|source| DatasetError::Read { path: path.to_owned(), source })
}

fn not_of(format: Format, path: &Path, error: &serde_json::Error) -> DatasetError {
    DatasetError::Format {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
        format: format.name(),
    }
}

/// A string, or a number or truth value written as one; absent when empty.
fn words(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}

/// The bank of a conversation of a format.
fn bank(format: Format, name: &str) -> Option<Bank> {
    Bank::parse(&format!("{}/{name}", format.name())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(piece: &str, turns: &[&str], expected: &[&str], repaired: bool) {
        assert_eq!(
            named(piece, |id| turns.contains(&id)),
            (expected.iter().map(|e| (*e).to_owned()).collect(), repaired),
            "{piece}"
        );
    }

    #[test]
    fn damaged_evidence_strings() {
        let turns = ["D8:6", "D9:17", "D11:26", "D30:5", "S1:2"];
        check("D8:6", &turns, &["D8:6"], false);
        check("S1:2", &turns, &["S1:2"], false);
        check("D8:6; D9:17", &turns, &["D8:6", "D9:17"], true);
        check("D9:17 D8:6,D8:99", &turns, &["D9:17", "D8:6"], true);
        check("D:11:26", &turns, &["D11:26"], true);
        check("D30:05", &turns, &["D30:5"], true);
        for lost in ["D", "", "D8", "D8:", "DD", "D8:7", "none", "D99999999999999999999:1", "Dé:1"] {
            check(lost, &turns, &[], true);
        }
    }
}

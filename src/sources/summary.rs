//! Counts what a source holds, without storing any of it.
//!
//! In: a source. Out: its turns, speakers and times by bank, what was changed or left out, and why records were
//! rejected. A turn that occurs in several versions counts once. Memory grows by eight bytes per turn; no text is kept.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Display,
    hash::{BuildHasherDefault, Hasher},
};

use serde::Serialize;

use super::{
    error::SourceError,
    trimmed_text::TrimmedText,
    turn_source::{SourceProgress, TurnSource},
};
use types::model::{Bank, EventTime, Turn, TurnEvent};

/// How many reasons for rejected records are counted separately.
const REASONS: usize = 20;

/// What a source holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SourceSummary {
    /// The source's format and path.
    pub source: String,
    /// Turns, each counted once.
    pub turns: u64,
    /// Turns that were edited.
    pub edits: u64,
    /// Deletions.
    pub deletions: u64,
    /// Attachments of turns.
    pub attachments: u64,
    /// By bank.
    pub banks: BTreeMap<String, BankSummary>,
    /// How many items were not turns, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Parts of turns that could not be read, by field or kind.
    pub unread: BTreeMap<String, u64>,
    /// What was cut off from messages as quotation, signature or notice.
    pub trimmed: TrimmedText,
    /// Passages that were replaced, by their replacement.
    pub redacted: BTreeMap<&'static str, u64>,
    /// Texts that were cut because they are too long.
    pub cut: u64,
    /// Records that were rejected.
    pub rejected: u64,
    /// The first reasons for rejections, each with the place of its first record and the number of records.
    pub reasons: Vec<RejectionSummary>,
    /// What else the user should know.
    pub notices: Vec<String>,
}

/// A reason for rejected records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectionSummary {
    /// What is wrong, and what to do.
    pub reason: String,
    /// Where the first of them is.
    pub first: String,
    /// How many there are.
    pub records: u64,
}

/// What a source holds for one bank.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BankSummary {
    /// Turns, each counted once.
    pub turns: u64,
    /// Turns that were edited.
    pub edits: u64,
    /// Deletions.
    pub deletions: u64,
    /// Sessions that the turns name.
    pub sessions: u64,
    /// Threads that the turns name.
    pub threads: u64,
    /// People, with their turns.
    pub speakers: BTreeMap<String, u64>,
    /// Programs that speak, with their turns.
    pub bots: BTreeMap<String, u64>,
    /// Turns of coding agents' transcripts, by program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, u64>,
    /// Those of them that belong to branches that the person gave up: they are kept from recall.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub given_up: BTreeMap<String, u64>,
    /// A directory in which they were said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The time of the first turn.
    pub first: Option<EventTime>,
    /// The time of the last turn.
    pub last: Option<EventTime>,
}

impl SourceSummary {
    /// Reads a source to its end and counts what it holds.
    ///
    /// # Errors
    /// [`SourceError`] when the source cannot be read further.
    pub fn of(source: &mut dyn TurnSource, mut progress: impl FnMut(SourceProgress)) -> Result<Self, SourceError> {
        const BATCH: usize = 1024;
        let mut summary = Self { source: source.describe(), ..Self::default() };
        let mut seen = SeenIds::default();
        while let Some(batch) = source.next(BATCH)? {
            for event in &batch.events {
                summary.event(event, &mut seen);
            }
            for letter in batch.rejects {
                summary.reject(letter.reason, letter.origin);
            }
            progress(source.progress());
        }
        let counts = source.counts();
        summary.skipped = counts.skipped_by_kind();
        for (bank, bot) in counts.bots {
            if let Some(bank) = summary.banks.get_mut(bank.as_str())
                && let Some(turns) = bank.speakers.remove(&bot)
            {
                bank.bots.insert(bot, turns);
            }
        }
        (summary.unread, summary.redacted, summary.cut) = (counts.unread, counts.redacted, counts.cut);
        summary.trimmed = counts.trimmed;
        summary.notices = source.notice().into_iter().chain(counts.warnings).collect();
        Ok(summary)
    }

    fn event(&mut self, event: &TurnEvent, seen: &mut SeenIds) {
        match event {
            TurnEvent::Turn(turn) => {
                let bank = self.banks.entry(turn.bank.to_string()).or_default();
                let new = [seen.is_new("turn", &turn.bank, &turn.turn), seen.is_edit(turn)];
                let (turns, edits) = (u64::from(new[0]), u64::from(new[1]));
                self.turns += turns;
                self.edits += edits;
                if new[0] {
                    self.attachments += turn.attachments.len() as u64;
                }
                bank.turn(turn, turns, edits, seen);
            }
            TurnEvent::Deletion(deletion) => {
                self.deletions += 1;
                self.banks.entry(deletion.bank.to_string()).or_default().deletions += 1;
            }
            _ => {}
        }
    }

    fn reject(&mut self, reason: String, first: String) {
        self.rejected += 1;
        if let Some(known) = self.reasons.iter_mut().find(|known| known.reason == reason) {
            known.records += 1;
        } else if self.reasons.len() < REASONS {
            self.reasons.push(RejectionSummary { reason, first, records: 1 });
        }
    }

    /// The summary as a person reads it. Its first line begins with `N turns`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{} turns in {} {} from {}; nothing is stored",
            self.turns,
            self.banks.len(),
            if self.banks.len() == 1 { "bank" } else { "banks" },
            self.source
        )];
        let mut line = |name: &str, value: String| lines.push(format!("{name:<14}{value}"));
        let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
        for (program, turns) in self.banks.values().flat_map(|bank| &bank.programs) {
            *programs.entry(program).or_default() += turns;
        }
        if !programs.is_empty() {
            line("programs", counted(&programs));
        }
        line("edits", self.edits.to_string());
        line("deletions", self.deletions.to_string());
        line("attachments", self.attachments.to_string());
        line("skipped", counted(&self.skipped));
        if !self.unread.is_empty() {
            line("unread", counted(&self.unread));
        }
        if !self.trimmed.is_empty() {
            line("trimmed", self.trimmed.counts());
        }
        line("redacted", counted(&self.redacted));
        line("cut", self.cut.to_string());
        line("rejected", self.rejected.to_string());
        for RejectionSummary { reason, first, records } in &self.reasons {
            lines.push(format!("  {records} × {reason} (first at {first})"));
        }
        lines.extend(self.trimmed.examples().map(|(kind, example)| format!("  trimmed {kind}: {example}")));
        for notice in &self.notices {
            lines.push(format!("note: {notice}"));
        }
        for (bank, summary) in &self.banks {
            lines.push(format!("\nbank {bank}: {} turns", summary.turns));
            lines.extend(summary.lines());
        }
        lines.join("\n") + "\n"
    }
}

impl BankSummary {
    fn turn(&mut self, turn: &Turn, turns: u64, edits: u64, seen: &mut SeenIds) {
        self.turns += turns;
        self.edits += edits;
        let names = |name: &Option<String>, kind, seen: &mut SeenIds| {
            u64::from(name.as_ref().is_some_and(|name| seen.is_new(kind, &turn.bank, name)))
        };
        self.sessions += names(&turn.session, "session", seen);
        self.threads += names(&turn.thread, "thread", seen);
        match self.speakers.get_mut(&turn.speaker) {
            Some(said) => *said += turns,
            None => {
                self.speakers.insert(turn.speaker.clone(), turns);
            }
        }
        let text = |name: &str| turn.metadata.as_ref()?.fields().get(name)?.as_str().map(str::to_owned);
        if let Some(program) = text("agent") {
            // A copy that was kept in a fork may come behind the one that was given up.
            if turn.recall && turns == 0 && seen.forget("given up", &turn.bank, &turn.turn) {
                let given_up = self.given_up.entry(program.clone()).or_default();
                *given_up = given_up.saturating_sub(1);
                self.given_up.retain(|_, count| *count > 0);
            }
            if !turn.recall && seen.is_new("given up", &turn.bank, &turn.turn) {
                *self.given_up.entry(program.clone()).or_default() += 1;
            }
            *self.programs.entry(program).or_default() += turns;
            if self.directory.is_none() {
                self.directory = text("directory");
            }
        }
        self.first = Some(self.first.map_or(turn.time, |first| first.min(turn.time)));
        self.last = Some(self.last.map_or(turn.time, |last| last.max(turn.time)));
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(first), Some(last)) = (self.first, self.last) {
            lines.push(format!("  from {first} to {last}"));
        }
        lines.push(format!(
            "  {} sessions, {} threads, {} edits, {} deletions",
            self.sessions, self.threads, self.edits, self.deletions
        ));
        if !self.programs.is_empty() {
            let directory = self.directory.as_ref().map(|directory| format!(" in {directory}")).unwrap_or_default();
            lines.push(format!("  {} programs{directory}: {}", self.programs.len(), most(&self.programs)));
        }
        if !self.given_up.is_empty() {
            lines.push(format!("  of branches that were given up, kept from recall: {}", counted(&self.given_up)));
        }
        for (what, speakers) in [("speakers", &self.speakers), ("bots", &self.bots)] {
            if !speakers.is_empty() {
                lines.push(format!("  {} {what}: {}", speakers.len(), most(speakers)));
            }
        }
        lines
    }
}

/// The total with the number of each kind, or `0`.
fn counted<N: Display>(counts: &BTreeMap<N, u64>) -> String {
    let total: u64 = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if parts.is_empty() { total.to_string() } else { format!("{total}: {}", parts.join(", ")) }
}

/// The speakers, those with the most turns first; at most twenty.
fn most(speakers: &BTreeMap<String, u64>) -> String {
    const SHOWN: usize = 20;
    let mut ordered: Vec<(&String, &u64)> = speakers.iter().collect();
    ordered.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut parts: Vec<String> = ordered.iter().take(SHOWN).map(|(name, turns)| format!("{name} ({turns})")).collect();
    if let Some(more) = speakers.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        parts.push(format!("and {more} more"));
    }
    parts.join(", ")
}

/// The ids so far, as hashes.
#[derive(Default)]
struct SeenIds(HashSet<u64, BuildHasherDefault<IdentityHasher>>);

impl SeenIds {
    fn is_new(&mut self, kind: &str, bank: &Bank, id: &str) -> bool {
        self.0.insert(Self::hash(kind, bank, id))
    }

    /// Whether an id was seen; it is new again then.
    fn forget(&mut self, kind: &str, bank: &Bank, id: &str) -> bool {
        self.0.remove(&Self::hash(kind, bank, id))
    }

    fn hash(kind: &str, bank: &Bank, id: &str) -> u64 {
        let mut hash = blake3::Hasher::new();
        for part in [kind, bank.as_str(), id] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let mut low = [0; 8];
        low.copy_from_slice(&hash.finalize().as_bytes()[..8]);
        u64::from_le_bytes(low)
    }

    fn is_edit(&mut self, turn: &Turn) -> bool {
        turn.version > 0 && self.is_new("edit", &turn.bank, &turn.turn)
    }
}

/// A hasher for values that already are hashes.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

//! The interface of a source of turns.
//!
//! In: a limit. Out: batches of turn events in the file's order, with dead letters for rejected
//! records. A reject is data for the dead-letter topic: a bad record never ends a source.

use std::collections::{BTreeMap, BTreeSet};

use super::{error::SourceError, trimmed_text::TrimmedText};
use types::model::{Bank, DeadLetter, IdSalt, TurnEvent};

/// What one call of [`TurnSource::next`] read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceBatch {
    /// Events for the turns topic, in order.
    pub events: Vec<TurnEvent>,
    /// Rejected records, with their position and what to do.
    pub rejects: Vec<DeadLetter>,
}

/// How much of a source has been read, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceProgress {
    /// The amount that has been read.
    pub done: u64,
    /// The total amount, if it is known.
    pub total: Option<u64>,
    /// The unit of both: `bytes` or `turns`.
    pub unit: &'static str,
}

/// What a source left out or changed, for a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceCounts {
    /// How many items were not turns, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Of the items skipped as `unsupported`, those with a known kind, by kind.
    pub unsupported: BTreeMap<String, u64>,
    /// Parts that were left out of records, by name: fields that held another kind of value than they should.
    pub unread: BTreeMap<String, u64>,
    /// Passages that were replaced before anything was stored, by their replacement.
    pub redacted: BTreeMap<&'static str, u64>,
    /// What was cut off from messages as quotation, signature or notice.
    pub trimmed: TrimmedText,
    /// Texts that were cut because they are too long.
    pub cut: u64,
    /// Speakers that are programs, by bank.
    pub bots: BTreeSet<(Bank, String)>,
    /// What the user should know after the last record, such as a name in `only` that never occurred.
    pub warnings: Vec<String>,
}

impl SourceCounts {
    /// Counts a record of a kind that is not supported.
    pub fn unsupported(&mut self, kind: &str) {
        const MAX_KINDS: usize = 64;
        if self.unsupported.len() < MAX_KINDS || self.unsupported.contains_key(kind) {
            *self.unsupported.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// How many items were not turns, by reason; unsupported ones also by kind.
    #[must_use]
    pub fn skipped_by_kind(&self) -> BTreeMap<String, u64> {
        const UNSUPPORTED: &str = "unsupported";
        let mut skipped: BTreeMap<String, u64> =
            self.skipped.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let named: u64 = self.unsupported.values().sum();
        if let Some(all) = skipped.get_mut(UNSUPPORTED) {
            *all = all.saturating_sub(named);
        }
        skipped.retain(|_, count| *count > 0);
        skipped.extend(self.unsupported.iter().map(|(kind, count)| (format!("{UNSUPPORTED}: {kind}"), *count)));
        skipped
    }
}

/// A source of turns.
///
/// Resume contract: a source always starts from its beginning and stores no position. Reading it again
/// is idempotent, because its turn ids are stable and an identical turn changes nothing (decision 4). So
/// a process that was killed simply reads the whole source again.
pub trait TurnSource: Send {
    /// The next events and rejects: at least one, and up to `limit` together (0 counts as 1). `None` at the end, and on
    /// every later call.
    ///
    /// # Errors
    /// [`SourceError`] when the file or stream cannot be read further.
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError>;
    /// From the next event on, hides phone numbers and mail addresses in ids with the salt of a memory. Without a salt,
    /// they are hidden too, in a form that matches no memory.
    fn hide_ids(&mut self, _salt: IdSalt) {}
    /// The source's format and path, for messages.
    fn describe(&self) -> String;
    /// What was left out or changed so far.
    fn counts(&self) -> SourceCounts {
        SourceCounts::default()
    }
    /// How much of it has been read.
    fn progress(&self) -> SourceProgress;
    /// A notice for the user before the first record, such as the zone that is assumed for a format
    /// without zones (decision 7).
    fn notice(&self) -> Option<String> {
        None
    }
}

//! What ingestion reports at its end: [`IngestReport`] or [`ModelExtractionReport`].
//!
//! Counts only; no behaviour.

use std::ops::AddAssign;

use super::CommittedTransaction;

/// What an ingestion wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IngestReport {
    /// Events that were appended to the turns log.
    pub events: u64,
    /// Input records that became dead letters.
    pub rejects: u64,
    /// Turns that were not kept because they had been deleted before.
    pub not_kept: u64,
    /// Records that changed nothing because a newer version or a deletion stands, those of `not_kept` included.
    pub stale: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Windows that got a language model's units.
    pub by_model: u64,
    /// Windows for which the model's units could not be used.
    pub refused: u64,
}

impl From<&CommittedTransaction> for IngestReport {
    /// Counts no events: those of a transaction were appended before.
    fn from(committed: &CommittedTransaction) -> Self {
        let CommittedTransaction { rejects, not_kept, stale, windows, units, by_model, refused, .. } = *committed;
        Self { events: 0, rejects, not_kept, stale, windows, units, by_model, refused }
    }
}

impl AddAssign for IngestReport {
    fn add_assign(&mut self, more: Self) {
        self.events += more.events;
        self.rejects += more.rejects;
        self.not_kept += more.not_kept;
        self.stale += more.stale;
        self.windows += more.windows;
        self.units += more.units;
        self.by_model += more.by_model;
        self.refused += more.refused;
    }
}

/// What a language model has read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelExtractionReport {
    /// Windows that got the model's units.
    pub read: u64,
    /// Windows for which the model's units could not be used; a dead letter says why.
    pub refused: u64,
    /// Windows that still wait; the next run reads them.
    pub left: u64,
    /// Why they wait.
    pub problem: Option<String>,
}

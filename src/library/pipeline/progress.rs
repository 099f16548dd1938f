//! What long work reports: [`Progress`] while it runs, [`Ingested`] or [`Finished`] at its end.
//!
//! Counts only; no behaviour.

use std::ops::AddAssign;

use super::Committed;

/// What an ingestion wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Events that were appended to the turns log.
    pub events: u64,
    /// Input records that became dead letters.
    pub rejects: u64,
    /// Turns that were not kept because they had been deleted before.
    pub not_kept: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Windows that got a language model's units.
    pub by_model: u64,
    /// Windows for which the model's units could not be used.
    pub refused: u64,
}

impl From<&Committed> for Ingested {
    /// Of the events none: those of a transaction were appended before.
    fn from(committed: &Committed) -> Self {
        let Committed { rejects, not_kept, windows, units, by_model, refused, .. } = *committed;
        Self { events: 0, rejects, not_kept, windows, units, by_model, refused }
    }
}

impl AddAssign for Ingested {
    fn add_assign(&mut self, more: Self) {
        self.events += more.events;
        self.rejects += more.rejects;
        self.not_kept += more.not_kept;
        self.windows += more.windows;
        self.units += more.units;
        self.by_model += more.by_model;
        self.refused += more.refused;
    }
}

/// What a language model has read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Windows that got the model's units.
    pub read: u64,
    /// Windows for which the model's units could not be used; a dead letter says why.
    pub refused: u64,
    /// Windows that still wait; the next run reads them.
    pub left: u64,
    /// Why they wait.
    pub problem: Option<String>,
}

/// How far a long piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as `loading`.
    pub doing: &'static str,
    /// Units of work done.
    pub done: u64,
    /// All units of work, where that is known.
    pub total: Option<u64>,
    /// Name of the unit of work, such as `records`.
    pub unit: &'static str,
}

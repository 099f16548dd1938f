//! What a long piece of work reports: [`Progress`] on its way, [`Ingested`] or [`Finished`] at its end.
//!
//! Counts only; nothing here does anything.

/// What a source brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Events that went to the turns log.
    pub events: u64,
    /// Records that went to the dead letters instead.
    pub rejects: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Windows whose units are a language model's now.
    pub by_model: u64,
    /// Windows whose units from a model could not be used.
    pub refused: u64,
}

/// What a language model did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Windows whose units are the model's now.
    pub read: u64,
    /// Windows whose units from the model could not be used; the dead letters say why.
    pub refused: u64,
    /// Windows that still wait; the next run goes on with them.
    pub left: u64,
    /// Why they wait.
    pub problem: Option<String>,
}

/// How far a long piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as `loading`.
    pub doing: &'static str,
    /// What is behind us.
    pub done: u64,
    /// All there is, where that is known.
    pub total: Option<u64>,
    /// What is counted.
    pub unit: &'static str,
}

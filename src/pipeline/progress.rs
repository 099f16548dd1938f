//! How far a long piece of work is. Counts only; no behaviour.

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

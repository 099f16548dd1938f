//! How an open memory is: counts, and what goes wrong. No behaviour.

use super::Ingested;

/// How a memory is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryStatus {
    /// Turns that are durable and not extracted yet.
    pub behind: u64,
    /// What the background has written since the memory was opened. Its `events` are 0.
    pub written: Ingested,
    /// Closed windows that wait for the language model.
    pub waiting_for_model: u64,
    /// What goes wrong in the background; it is tried again until it succeeds.
    pub problem: Option<String>,
}

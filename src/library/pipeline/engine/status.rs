//! How an open memory is, and what happens behind it. No behaviour.

use std::time::Duration;

use super::{ExtractionEvent, Ingested, PipelineError};

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

/// What happens behind an open memory.
#[derive(Debug)]
pub enum MemoryEvent<'e> {
    /// Turns are extracted, or cannot be.
    Extraction(ExtractionEvent),
    /// The interval of snapshots has passed.
    Snapshot {
        /// Whether one was written, since something had changed; or why it could not be.
        is_written: &'e Result<bool, PipelineError>,
        /// How long that took.
        took: Duration,
    },
}

//! The state of an open memory, and the events of its background threads. Only data.

use std::time::Duration;

use erasure::RetentionStatus;
use ingest::{ExtractionEvent, IngestReport};
use pipeline::PipelineError;

/// The state of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryStatus {
    /// Turns that are durable and not extracted yet.
    pub behind: u64,
    /// What the background threads have written since the memory was opened. Its `events` are 0.
    pub written: IngestReport,
    /// Closed windows that wait for the language model.
    pub waiting_for_model: u64,
    /// What retention did since the memory was opened; `None` without a rule.
    pub retention: Option<RetentionStatus>,
    /// What fails in the background. It is tried again until it succeeds.
    pub problem: Option<String>,
}

/// An event of an open memory's background threads.
#[derive(Debug)]
pub enum MemoryEvent<'e> {
    /// Turns were extracted, or could not be.
    Extraction(ExtractionEvent),
    /// A snapshot was due.
    Snapshot {
        /// Whether it was written; false if nothing had changed since the last one. Or why it could not be written.
        is_written: &'e Result<bool, PipelineError>,
        /// How long the attempt took.
        took: Duration,
    },
}

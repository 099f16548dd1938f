//! Extracts the memory log from the turns log, partition by partition.
//!
//! In: turn events, and the responses of a language model if one is configured. Out: memory records, in transactions
//! that state how much of the turns log they cover. Answers no question.
//!
//! - `extraction_stage`: one partition, step by step; `applied_events`: what its events do.
//! - `pending_turns`: turns that are read but not covered, by bank; `transaction_work`: what one transaction writes.
//! - `turn_record`: reads a record of the turns topic; `write_groups`: gathers the conditional records of a request.
//! - `live_turns`: the turns of the partition's live records, with which a stage begins.
//! - `sleeping_windows`: windows that leave memory with their bank; `dropped_windows`: which of them.
//! - `extraction_driver`: the driver of all stages of this process, on either log.
//! - `model_worker_pool`: threads that ask a language model, so that a slow endpoint delays no stage.
//! - `partial_windows`: the units that a window keeps when many windows forget turns.
//! - `cached_embedder` and `embedding_layout`: what is embedded for a unit, and the resulting units.
//! - `storable_values`: splits a record that is too large for the log into several values.
//! - `follow_source`: a live source as a running task.
//! - `group_extraction`: the partitions that a group gives to this process.
//! - `extraction_status`, `ingested`: what a running extraction, and one that has ended, reports.
//! - `sharing_limits`: how much is done at once; `log_events`: what this crate writes to the log.

mod applied_events;
mod cached_embedder;
mod dropped_windows;
mod embedding_layout;
mod extraction_driver;
mod extraction_stage;
mod extraction_status;
mod follow_source;
mod group_extraction;
mod ingested;
mod live_turns;
mod log_events;
mod model_worker_pool;
mod partial_windows;
mod pending_turns;
mod sharing_limits;
#[cfg(test)]
mod sharing_tests;
mod sleeping_windows;
mod storable_values;
mod transaction_work;
mod turn_record;
mod write_groups;

use models::UnreadLanguageReporter;
use pipeline::PipelineError;

pub use cached_embedder::{CachedEmbedder, DeclinedText, EmbeddedDrafts, WindowDrafts};
pub use embedding_layout::unit_texts;
pub use extraction_driver::{CommittedTransaction, ExtractionEvent, ExtractionOrderReceiver, ExtractionOrderSender};
pub use extraction_driver::{ExtractionDriver, ExtractionRun, ExtractionSchedule};
pub use extraction_stage::ExtractionStage;
pub use extraction_status::ExtractionStatus;
pub use follow_source::{LiveSourceEvent, LiveSourceOptions, follow_source};
pub use group_extraction::extract_in_group;
pub use ingested::{IngestReport, ModelExtractionReport};
pub use live_turns::LiveTurns;
pub use model_worker_pool::ExtractorSet;
pub use sleeping_windows::{BankMoves, read_bank};
pub use storable_values::{MAX_VALUE_BYTES, values};

//! Extracts the memory log from the turns log, partition by partition.
//!
//! In: turn events, and the responses of a language model if one is configured. Out: memory records, in transactions
//! that state how much of the turns log they cover. Answers no question.
//!
//! - `stage`: one partition, step by step.
//! - `pending`: what was read and is not covered, by bank; `work`: what one transaction writes.
//! - `turn_record`: reads a record of the turns topic.
//! - `live_turns`: the turns of the partition's live records, with which a stage begins.
//! - `extraction`: the driver of all stages of this process, on either log.
//! - `background`: threads that ask a language model, so that a slow endpoint delays no stage.
//! - `in_part`: the units of a window that stay while many windows forget turns.
//! - `vectors` and `parts`: what is embedded for a unit, and the resulting units.
//! - `split`: splits a record that is too large for the log into several values.

mod background;
mod extraction;
mod in_part;
mod live_turns;
mod parts;
mod pending;
#[cfg(test)]
mod sharing_tests;
mod split;
mod stage;
mod turn_record;
mod vectors;
mod work;

use super::{PipelineError, unread_languages::UnreadLanguages};

pub(super) use background::Extractors;
pub use extraction::{ArrivingOrders, Committed, ExtractionEvent, ExtractionOrders};
pub(super) use extraction::{Extraction, Run, Schedule};
pub(super) use live_turns::LiveTurns;
pub use parts::unit_texts;
pub(super) use split::{MAX_VALUE_BYTES, values};
pub(super) use stage::Stage;
pub(super) use vectors::{DeclinedText, EmbeddedDrafts, Vectors, WindowDrafts};

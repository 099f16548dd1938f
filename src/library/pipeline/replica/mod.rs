//! What follows the memory log and answers questions.
//!
//! In: the memory log, snapshots of it, questions. Out: evidence, counts, new snapshots. Extracts
//! nothing and writes nothing to a log.
//!
//! - `answerer`: the memory, and every question to it.
//! - `shards`: the shard of each partition that is held; `shard`: one of them; `held`: its banks.
//! - `changes`: which banks changed, for those who watch some.
//! - `reader`: one partition of the memory log to its shard.
//! - `recording`: which shards' snapshots are written here; `recorder`: the thread that writes them.
//! - `record_value`: the value of a memory record, and why it cannot be read.
//! - `past`: memories of the past, and the snapshots they need.
//! - `live`: the live records of a partition, without a dataflow.
//! - `recall_memory`: the dataflow as recall sees it.

mod answerer;
mod changes;
mod held;
mod live;
mod past;
mod reader;
mod recall_memory;
mod record_value;
mod recorder;
mod recording;
mod shard;
mod shards;
#[cfg(test)]
mod tests;

use super::{Cancellation, PipelineError};

pub(super) use answerer::edge_settings;
pub use answerer::snapshots;
pub use answerer::{Answerer, AnswererOptions, OnRestoredTurns, ShardPlace, ShardStatus};
pub use changes::{Changes, News, WatchedBank};
pub(super) use live::{LiveRecords, model_of, record_of};
pub(super) use record_value::{Unread, check_schema, read_value};
pub use recording::WrittenSnapshots;

//! The memory that follows the memory log and answers questions.
//!
//! In: the memory log, snapshots of it, questions. Out: evidence, counts, new snapshots. Extracts
//! nothing and writes nothing to a log.
//!
//! - `surface`: the memory, and every call to it but those in `views`, which show units, banks and points of the past.
//! - `shards`: the shards of all partitions that are held; `shard`: one of them; `held`: its banks.
//! - `reached`: how far the turns are reflected; `changes`: reports which banks changed, to those who watch them;
//!   `kept_records`: what the records of such a bank say.
//! - `reader`: reads one partition of the memory log into its shard.
//! - `asking`: asks a question of a shard; `recall_memory`: the shard as recall sees it.
//! - `recording`: which shards' snapshots are written here; `recorder`: the thread that writes them;
//!   `snapshot_place`: where they are.
//! - `record_value`: the value of a memory record, and why it cannot be read.
//! - `past`: memories of the past; `snapshot_points`: which snapshots they need.
//! - `live`: the live records of a partition, without a dataflow.

mod asking;
mod changes;
mod held;
mod kept_records;
mod live;
mod past;
mod reached;
mod reader;
mod recall_memory;
mod record_value;
mod recorder;
mod recording;
mod shard;
mod shards;
mod snapshot_place;
mod snapshot_points;
mod surface;
#[cfg(test)]
mod tests;
mod views;

use super::{AnswerStage, Cancellation, LanguageCounts, PipelineError, StageTimes, stage_times::timed, unread_notice};

pub use changes::{Changes, News, WatchedBank};
pub use kept_records::{LastVersion, ReadTurn, ReadVersions, RecordChange, WrittenWindow};
pub(super) use live::{LiveRecords, key_of, model_of, record_of};
#[cfg(feature = "kafka")]
pub(super) use record_value::read_record;
pub(super) use record_value::{Unread, check_schema, read_value, turns_of};
pub use recording::WrittenSnapshots;
pub use snapshot_place::snapshots;
pub(super) use snapshot_place::{delete_old_snapshots, edge_settings};
pub use surface::{OnRestoredTurns, Replica, ReplicaOptions, ShardPlace, ShardStatus};

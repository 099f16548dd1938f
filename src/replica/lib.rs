//! The memory that follows the memory log and answers questions.
//!
//! In: the memory log, snapshots of it, questions. Out: evidence, counts, new snapshots. Extracts
//! nothing and writes nothing to a log.
//!
//! - `replica`: the memory and its calls; `replica_reads`: calls that show units, banks and points of the past.
//! - `shard_set`: the shards of all partitions that are held; `shard`: one of them; `shard_records`: its banks.
//! - `sleeping_banks`: banks that leave memory and come back; `awake_shard`: moves them; `bank_sleep`: which of them are awake, and who uses them;
//!   `asleep_start`: a start at which they stay asleep;
//!   `replica_counts`: counts and digests of banks.
//! - `watermarks`: how far the turns are reflected; `bank_change_tracker`: reports the changes of watched banks;
//!   `record_change_buffer`: changes in such a bank's records.
//! - `shard_reader`: reads one partition of the memory log into its shard.
//! - `recollector`: asks a question of a shard; `cancellable_memory`: the shard as recall sees it.
//! - `replica_snapshots`: which shards' snapshots are written here; `snapshot_recorder`: the thread that writes them;
//!   `snapshot_location`: where they are.
//! - `query_queue`: where questions wait and are answered; `answer_stage_times`: how long an answer's stages take.
//! - `past_memory_cache`: memories of the past; `snapshot_points`: which snapshots they need.
//! - `explanation`: adds steps from the log; `forgotten_since`: counts turns that were forgotten since a point.
//! - `snapshot_interval`: writes snapshots while a service runs; `log_events`: what this crate writes to the log.

mod answer_stage_times;
mod asleep_start;
mod awake_shard;
mod bank_change_tracker;
mod bank_sleep;
mod cancellable_memory;
mod explanation;
mod forgotten_since;
mod log_events;
mod past_memory_cache;
mod query_queue;
mod recollector;
mod record_change_buffer;
mod replica;
mod replica_counts;
mod replica_reads;
mod replica_snapshots;
mod shard;
mod shard_reader;
mod shard_records;
mod shard_set;
mod sleeping_banks;
mod snapshot_interval;
mod snapshot_location;
mod snapshot_points;
mod snapshot_recorder;
mod watermarks;

use answer_stage_times::timed;
use models::{LanguageCounts, unread_notice};
use pipeline::{Cancellation, CancellationReason, PipelineError};

pub use answer_stage_times::{AnswerStage, AnswerStageTimes};
pub use bank_change_tracker::{BankChangeBatch, BankChangeTracker, BankWatchGuard};
pub use bank_sleep::{SleepStatus, charged_to};
pub use explanation::complete_explanation;
pub use forgotten_since::compare_points;
pub use query_queue::{
    FairReadLimiter, QueryQueue, QueryQueueLoad, QueryRequest, QueueKey, ReadPermit, parse_after, parse_as_of, refusal,
};
pub use record_change_buffer::{LatestTurnVersion, RecordChange, TurnRevision, TurnVersionChanges, WrittenWindow};
pub use replica::{Replica, ReplicaOptions, RestoredTurnsHandler, ShardLocation, ShardStatus};
pub use replica_snapshots::WrittenSnapshots;
pub use snapshot_interval::write_snapshots;
pub use snapshot_location::snapshots;
pub use snapshot_location::{delete_old_snapshots, edge_settings};

//! Durable logs of turn events and memory records, on Kafka or in a directory.
//!
//! In: turn events and transactions. Out: records by topic, partition and offset. An acknowledged
//! write is never lost. A transaction is written as a whole or not at all. The offsets of a
//! partition only grow. A record replaces the earlier record of its key; a null deletes it.
//!
//! - `interface`: the traits [`Log`], [`GenerationalLog`], [`SharedLog`] and [`ErasableLog`]; `suite` tests it on both logs;
//!   `source_log`: what live sources need of it
//! - `embedded`: the log in a local directory; `kafka`: the log on a Kafka cluster
//! - `partition_assignment`: which partitions belong to this process
//! - `deletion_registry`: which turns are deleted, as far as this process has read; `write_outcome_registry`: what became
//!   of writes for which callers wait
//! - `record`: what is read and written; `read_progress`: how far the turns are covered; `topic`: the topics; `error`:
//!   what fails
//! - `id_salt`: the salt with which phone numbers and mail addresses in ids are hashed
//! - `open`: the log that the settings name; `topic_reader`: reads one topic; `murmur2`: the partition of a bank
//! - `topic_view`: a read-only view of one topic; `without_kafka` refuses a log on Kafka in a build without it

mod deletion_registry;
mod embedded;
mod error;
mod id_salt;
mod interface;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "without_kafka.rs"]
mod kafka;
mod murmur2;
mod open;
mod partition_assignment;
mod read_progress;
mod record;
mod source_log;
#[cfg(test)]
mod suite;
mod topic;
mod topic_reader;
mod topic_view;
mod write_outcome_registry;

pub use deletion_registry::DeletionRegistry;
pub use embedded::EmbeddedLog;
pub use embedded::next_journal_item;
pub use error::LogError;
pub use interface::{ErasableLog, GenerationalLog, Log, LogEntry, SharedLog, TopicRetention};
#[cfg(feature = "kafka")]
pub use kafka::KafkaLog;
pub use open::{
    ClusterState, cluster_state, id_salt, made_id_salt, open, open_generations, topic_retention, turns_partitions,
};
pub use partition_assignment::{AssignmentChange, PartitionAssignment, WholeLogAssignment};
pub use read_progress::ReadProgress;
pub use record::{
    DecidedGroup, KeyedValue, LiveKey, LogRecord, RawRecord, ReadBatch, Transaction, TransactionEnd, WritePosition,
};
pub use record::{MAX_RECORD_BYTES, MAX_VALUE_BYTES};
pub use source_log::{SourceLog, SourceState, SourceTransaction, SourceWriter};
pub use topic::{REMOVALS_KEPT_MS, Topic, memory_name, partition_of};
pub use topic_reader::TopicReader;
pub use topic_view::TopicView;
pub use write_outcome_registry::{VerdictReceiver, WriteOutcomeRegistry, WriteWatch};

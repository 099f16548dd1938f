//! Durable logs of turn events and memory records, on Kafka or in a directory.
//!
//! In: turn events and transactions. Out: records by topic, partition and offset. An acknowledged
//! write is never lost. A transaction is written as a whole or not at all. The offsets of a
//! partition only grow. A record replaces the earlier record of its key; a null deletes it.
//!
//! - `interface`: the traits [`Log`], [`Generations`] and [`ErasableLog`]; `suite` tests it on both logs; `source_log`:
//!   what live sources need of it
//! - `embedded`: the log in a local directory; `kafka`: the log on a Kafka cluster
//! - `membership`: which partitions belong to this process
//! - `deletions`: which turns are deleted, as far as this process has read
//! - `record`: what is read and written; `progress`: how far the turns are covered; `topic`: where; `error`: what can fail
//! - `id_salt`: with what phone numbers and mail addresses in ids are hashed
//! - `view`: a read-only look into one topic; `without_kafka` refuses a log on Kafka in a build without it

mod deletions;
mod embedded;
mod error;
mod id_salt;
mod interface;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "without_kafka.rs"]
mod kafka;
mod membership;
mod murmur2;
mod open;
mod progress;
mod record;
mod source_log;
#[cfg(test)]
mod suite;
mod topic;
mod topic_reader;
mod view;

pub use deletions::Deletions;
pub use embedded::EmbeddedLog;
pub(crate) use embedded::next_journal_item;
pub use error::LogError;
pub use interface::{ErasableLog, Generations, Leaving, Log, LogEntry};
#[cfg(feature = "kafka")]
pub use kafka::KafkaLog;
pub use membership::{Assignment, Membership, WholeLog};
pub use open::{
    ClusterState, id_salt, made_id_salt, open, open_generations, reach_cluster, topics_leaving, turns_partitions,
};
pub use progress::ReadProgress;
pub use record::{KeyedValue, LiveKey, RawRecord, ReadBatch, Record, Transaction, TransactionEnd, Written};
pub use record::{MAX_RECORD_BYTES, MAX_VALUE_BYTES};
pub use source_log::{SourceLog, SourceState, SourceTransaction, SourceWriter};
pub use topic::{REMOVALS_KEPT_MS, Topic, memory_name, partition_of};
pub use topic_reader::TopicReader;
pub use view::TopicView;

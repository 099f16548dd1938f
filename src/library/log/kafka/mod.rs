//! The log as topics of a Kafka cluster.
//!
//! In: turn events and transactions. Out: records by offset. Guarantees:
//! - A transaction is written as a whole or not at all. Its last record is the read position, so
//!   the memory and the input that it covers never disagree.
//! - Only one instance commits to a partition: its newest owner fences the earlier ones.
//! - Only committed records are read. The read positions in the memory topic count; offsets
//!   committed to the broker are for tools that show lag, and are never read.
//! - Turns are acknowledged once all in-sync replicas have them.
//!
//! - `log`: [`KafkaLog`], the implementation of [`super::Log`]
//! - `client`: client configurations and errors
//! - `entry`: opens a log or a view; `topic`: one topic, for a view of it
//! - `topics`: creates and checks the topics
//! - `partition_reader`: reads one partition; `owner`: commits to one; `unmarked`: ends what a cluster left open
//! - `position`: the records of read positions and of switches between generations
//! - `reach`: asks the cluster for its brokers and topics
//! - `repair`: records that cannot be read, and what an operator writes instead
//! - `instances`: which instance answers HTTP requests about the banks of each partition
//! - `counting`: counts the records behind a position; `tending`: what is done beside reading and writing
//! - `growing`: reads a partition and what is added to it; with it, `live_index`: where the live records of the memory
//!   lie, and `entries`: the operations that forget turns
//! - `leaving`: when words of deleted turns leave the topics
//! - `values`: the values of records that are to be written
//! - `sources`: the turns and positions of live sources
//! - `members`: the partitions that the consumer group assigns to this instance

pub mod client;
mod counting;
mod entries;
mod entry;
mod growing;
pub mod instances;
mod leaving;
mod live_index;
mod log;
pub mod members;
pub mod owner;
pub mod partition_reader;
mod position;
mod reach;
mod repair;
mod sources;
mod tending;
mod topic;
mod topics;
mod unmarked;
mod values;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;

pub(super) use entry::{open, read_topic, topics_leaving, turns_partitions};
pub use log::KafkaLog;
pub(super) use reach::reach;
pub use repair::{CheckEntry, CheckValue, Checks, Finding, UnreadableRecord, replace, unreadable_records};
pub use sources::partition_of_source;
pub use topics::{memory_topic, partitions_of};

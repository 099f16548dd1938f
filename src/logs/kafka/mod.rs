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
//! - `kafka_log`: [`KafkaLog`], the implementation of [`super::Log`]
//! - `client`: client configurations and errors
//! - `open`: opens a log or a view; `cluster_topic`: one topic, for a view of it
//! - `topic_setup`: creates and checks the topics
//! - `partition_reader`: reads one partition; `transactional_producer`: commits to one; `unmarked_transactions`: ends
//!   transactions that a cluster left open
//! - `control_records`: the records of read positions and of switches between generations
//! - `reach`: asks the cluster for its brokers and topics
//! - `repair`: records that cannot be read, and what an operator writes instead
//! - `instances_topic`: which instance answers HTTP requests about the banks of each partition
//! - `unread_counter`: counts the records behind a position; `log_maintenance`: what is done beside reading and writing
//! - `growing_partition`: reads a partition and what is added to it; with it, `live_key_index`: where the live records
//!   of the memory lie, and `operation_entries`: the operations that forget turns
//! - `indexed_records`: finds the records of one bank with that index; `record_lookup`: reads records by their offsets
//! - `topic_retention`: when words of deleted turns leave the topics
//! - `record_values`: the values of records that are to be written
//! - `source_writer`: the turns and positions of live sources; `group_writer`: turns that are written together
//! - `group_member`: the partitions that the consumer group assigns to this instance

pub mod client;
mod cluster_topic;
mod control_records;
pub mod group_member;
mod group_writer;
mod growing_partition;
mod indexed_records;
pub mod instances_topic;
mod kafka_log;
mod live_key_index;
mod log_events;
mod log_maintenance;
mod open;
mod operation_entries;
pub mod partition_reader;
mod reach;
mod record_lookup;
mod record_values;
mod repair;
mod source_writer;
mod topic_retention;
mod topic_setup;
pub mod transactional_producer;
mod unmarked_transactions;
mod unread_counter;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;

pub use kafka_log::KafkaLog;
pub(super) use open::{open, read_topic, topic_retention, turns_partitions};
pub(super) use reach::cluster_state;
pub use repair::{
    EntryCheck, RecordProblem, RepairChecks, UnreadableKafkaRecord, ValueCheck, replace, unreadable_records,
};
pub use source_writer::partition_of_source;
pub use topic_setup::{memory_topic, partitions_of};

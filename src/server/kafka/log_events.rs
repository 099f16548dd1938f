//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use logs::LogError;
use rdkafka::error::KafkaError;
use tracing::{debug, info, warn};

/// A topic cannot be read because the cluster is away.
pub(crate) fn cluster_unavailable(what: &str, problem: &LogError) {
    warn!(what, %problem, "the cluster is unavailable; reading is tried again");
}

/// A topic can be read again.
pub(crate) fn cluster_recovered(what: &str) {
    info!(what, "the cluster answers again");
}

/// A shard waits before a record that this build must not skip.
pub(crate) fn shard_waits(partition: u32, problem: &str) {
    warn!(partition, problem, "the shard's banks keep answering from the state before that record");
}

/// A shard panicked, or its snapshot cannot be read, and is loaded again.
pub(crate) fn shard_reloaded(partition: u32, problem: &str) {
    warn!(partition, problem, "the shard is being loaded again");
}

/// The number of quarantined banks changed, and is not 0.
pub(crate) fn banks_quarantined(banks: usize) {
    warn!(banks, "banks are quarantined: a record of theirs cannot be read; their refusals say which");
}

/// The memory reflects its log, on Kafka.
pub(crate) fn memory_ready(seconds: f64) {
    info!(seconds, "ready: the memory reflects its log");
}

/// Operations that another start left over are written.
pub(crate) fn operations_resumed(operations: usize) {
    info!(operations, "deletions that another start left over are written");
}

/// A receipt could not be sent, and is sent again.
pub(crate) fn receipt_resent(problem: &impl std::fmt::Display) {
    debug!(%problem, "a receipt is sent again");
}

/// The end of a partition is not known.
pub(crate) fn end_asked_again(partition: u32, problem: &LogError) {
    debug!(partition, %problem, "the end of a partition is asked for again");
}

/// A topic has settings that cost something.
pub(crate) fn topic_noticed(notice: &str) {
    warn!("{notice}");
}

/// It is not known which questions are answered already.
pub(crate) fn answers_unknown(problem: &KafkaError) {
    warn!(%problem, "cannot find out which questions are answered; some may be answered again");
}

/// A topic is written as Parquet while it grows.
pub(crate) fn replay_started(topic: &str, directory: std::path::Display<'_>) {
    info!(topic, %directory, "a topic is written as Parquet");
}

/// The group gave a shard to another instance.
pub(crate) fn shard_left(partition: u32) {
    info!(partition, "another instance holds the shard");
}

/// A shard is held here from now on.
pub(crate) fn shard_taken(partition: u32) {
    info!(partition, "the shard is held here");
}

/// A shard cannot be loaded.
pub(crate) fn shard_not_loaded(partition: u32, problem: &str) {
    warn!(partition, problem, "the shard cannot be loaded; it is tried again");
}

/// The group gave a live source to another instance.
pub(crate) fn source_left(source: &str) {
    info!(source, "another instance follows the source");
}

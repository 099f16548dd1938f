//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{debug, error, info, warn};
use types::logged_bank::LoggedBank;

/// A snapshot cannot be used at the start.
pub(crate) fn snapshot_not_restored(partition: u32, problem: &str) {
    warn!(partition, "{problem}");
}

/// A read of the memory log was loaded into its shard.
pub(crate) fn records_loaded(records: usize, changes: usize, next: u64) {
    debug!(records, changes, next, "loaded");
}

/// A shard is built again, because a record came of a bank that it had not woken.
pub(crate) fn record_of_sleeping_bank(bank: LoggedBank<'_>, offset: u64) {
    error!(%bank, offset, "a record of a bank that sleeps was written; its shard is built again");
}

/// Banks that were to leave memory did not.
pub(crate) fn banks_stay_awake(partition: u32, problem: &str) {
    warn!(partition, problem, "some banks stay in memory");
}

/// Banks left memory.
pub(crate) fn banks_fell_asleep(partition: u32, banks: usize) {
    debug!(partition, banks, "these banks sleep now");
}

/// This process writes the snapshots of more shards.
pub(crate) fn snapshots_taken_over(shards: usize) {
    info!(shards, "snapshots: this process writes those of more shards from now on");
}

/// No snapshot is written; said once per problem.
pub(crate) fn snapshot_failed(problem: &str) {
    warn!(problem, "no snapshot is written");
}

/// Snapshots are written again.
pub(crate) fn snapshots_recovered() {
    info!("snapshots are written again");
}

/// Another process writes the snapshots of some shards.
pub(crate) fn snapshots_written_elsewhere(shards: usize) {
    info!(shards, "snapshots: another process writes those of these shards; this one keeps answering");
}

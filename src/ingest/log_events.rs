//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use super::CommittedTransaction;
use tracing::{debug, error, info, warn};
use types::logged_bank::LoggedBank;

/// Most turns are in a language that the embedding model does not read.
pub(crate) fn languages_unread(notice: &str) {
    warn!("{notice}");
}

/// The cache of vectors was opened, and something is wrong with it.
pub(crate) fn vector_cache_warned(problem: &str) {
    warn!("{problem}");
}

/// The group gave a partition to another instance.
pub(crate) fn partition_left(partition: u32) {
    info!(partition, "another instance extracts the partition");
}

/// This process extracts a partition from now on.
pub(crate) fn partition_taken(partition: u32, position: u64, seconds: f64) {
    info!(partition, position, seconds, "the partition is extracted here");
}

/// A partition whose extraction failed is extracted again.
pub(crate) fn extraction_recovered(partition: u32) {
    info!(partition, "extraction continues");
}

/// Extraction of a partition failed; said once per problem.
pub(crate) fn extraction_failed(partition: u32, seconds: f64, problem: &str) {
    warn!(partition, seconds, problem, "extraction failed; it is tried again after a pause");
}

/// The embedding model does not answer.
pub(crate) fn embedding_unavailable(problem: &str) {
    warn!(problem, "the model of the vectors does not answer; it is asked again");
}

/// The embedding model does not take a text of a window.
pub(crate) fn text_declined(bank: LoggedBank<'_>, window: u32) {
    warn!(%bank, window, "a dead letter: the model of the vectors does not take a text of the window");
}

/// A unit of a window is larger than a record may be.
pub(crate) fn unit_too_large(bank: LoggedBank<'_>, window: u32, bytes: usize) {
    warn!(%bank, window, bytes, "a dead letter: a unit of the window is larger than a record may be");
}

/// A record cannot be read, and its turns have left the turns topic.
pub(crate) fn record_lost(partition: u32, bank: LoggedBank<'_>, window: u32) {
    error!(partition, %bank, window, "a record of the bank cannot be read, and its turns are no longer in the turns topic; \
                     `ripplemem import` an earlier export of the bank before more turns of it arrive");
}

/// The language model that extracts does not answer.
pub(crate) fn language_model_unavailable(problem: &str, seconds: u64) {
    warn!(problem, seconds, "the rules' units stand in until the language model's arrive");
}

/// A transaction of extraction is committed, in the span of its partition.
pub(crate) fn transaction_committed(committed: &CommittedTransaction) {
    let CommittedTransaction { position, events, rejects, windows, units, took, .. } = committed;
    debug!(position, events, rejects, windows, units, seconds = took.as_secs_f64(), "committed");
}

//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{info, warn};

/// A pass has erased the words of deleted turns.
pub(crate) fn turns_erased(turns: u64, bytes: u64, seconds: f64) {
    info!(turns, bytes, seconds, "deleted turns are erased");
}

/// A pass of erasing failed; said once per problem.
pub(crate) fn erasure_failed(problem: &str) {
    warn!(problem, "deleted turns are not erased; they will be tried again");
}

/// An entry of an operation on Kafka cannot be read.
pub(crate) fn operation_passed_over(what: &str, problem: &str) {
    warn!(what, problem, "it is passed over; `ripplemem repair` shows what to do");
}

/// A scan of retention failed.
pub(crate) fn retention_failed(problem: &str) {
    warn!(problem, "retention stopped; it will be tried again");
}

/// A scan of retention deleted turns.
pub(crate) fn retention_deleted(turns: u64) {
    info!(turns, "retention has deleted turns");
}

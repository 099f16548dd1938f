//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{debug, warn};

/// A transaction is committed, in the span of its partition.
pub(crate) fn transaction_committed() {
    debug!("committed");
}

/// A transaction that the cluster left open is ended by its owner.
pub(crate) fn open_transaction_ended(topic: &str, partition: u32, offset: u64, how: &str) {
    warn!(topic, partition, offset, how, "the cluster left a transaction open; it is ended here");
}

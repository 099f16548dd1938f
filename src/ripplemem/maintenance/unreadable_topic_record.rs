//! The records of a memory topic that a command on a whole log could not read.
//!
//! In: a live record and why no build can use it. Out: where it is, in words. The command continues, and counts and
//! names each such record; none is skipped silently.

use std::fmt;

use logs::LogRecord;
use snapshots::UnreadableMemoryRecord;
use types::model::MemoryKey;

/// A live record that a command could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableTopicRecord {
    /// The memory topic, without the prefix.
    pub topic: String,
    /// Its partition.
    pub partition: u32,
    /// The record.
    pub record: UnreadableMemoryRecord,
}

impl UnreadableTopicRecord {
    pub(super) fn new(topic: &str, partition: u32, key: &MemoryKey, record: &LogRecord, problem: String) -> Self {
        let record = UnreadableMemoryRecord { key: key.clone(), offset: record.offset, problem, found: None };
        Self { topic: topic.to_owned(), partition, record }
    }
}

impl fmt::Display for UnreadableTopicRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, record: UnreadableMemoryRecord { key, offset, problem, .. } } = self;
        let (bank, session, start) = (&key.bank, &key.window.session.0, key.window.start);
        write!(f, "{topic}, partition {partition}, offset {offset} (bank {bank}, session {session:?}, window {start}")?;
        if let Some(turn) = &key.turn {
            write!(f, ", turn {turn:?}")?;
        }
        write!(f, "): {problem}")
    }
}

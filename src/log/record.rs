//! What a log reads and writes: records, batches of them, and transactions.

use crate::model::{DeadLetter, TurnEvent};

/// Largest record of a topic, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 8 << 20;
/// Largest value of a record: with its key and headers it stays within the largest record.
pub(crate) const MAX_VALUE_BYTES: usize = MAX_RECORD_BYTES - (64 << 10);

/// One record as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key; empty in a topic without keys.
    pub key: Vec<u8>,
    /// Its value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// A record with its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// The record.
    pub record: Record,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// The records of one read, and the input that they cover.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadBatch {
    /// Records in offset order.
    pub records: Vec<Record>,
    /// Memory topics only: read positions (turns partition, first offset that is not covered) as
    /// of the end of this batch, where known.
    pub covers: Vec<(u32, u64)>,
    /// The offset at which the next read starts.
    pub next: u64,
}

/// What the extraction stage commits at once: records, and the input that they cover.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// The partition of the turns topic that was read, and of the memory topic to write.
    /// A turns partition beyond the memory topic's partitions has turns to forward, but no records.
    pub partition: u32,
    /// The first offset of that turns partition that is not covered.
    pub next_offset: u64,
    /// Memory records in order.
    pub memory: Vec<KeyedValue>,
    /// Rejected input.
    pub dead_letters: Vec<DeadLetter>,
    /// Events read from the wrong partition, to be appended to their banks' partitions.
    pub forwards: Vec<TurnEvent>,
}

/// The key of a memory record, and its value; `None` deletes the key.
pub type KeyedValue = (Vec<u8>, Option<Vec<u8>>);

/// The key of a live memory record, and the record's offset.
pub type LiveKey = (Vec<u8>, u64);

/// The end of a partition's last complete transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionEnd {
    /// The first offset after it.
    pub end: u64,
    /// Its read position: the first offset of the turns partition that is not covered, where known.
    pub position: Option<u64>,
}

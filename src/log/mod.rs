//! Durable logs: turns in, memory records out, one interface.
//!
//! In: turn events, transactions. Out: records by (topic, partition, offset). What was
//! acknowledged is never lost; a transaction is there as a whole or not at all. Offsets
//! of a partition only grow. Writing a key again replaces its record; a null removes it.

use crate::model::{DeadLetter, TurnEvent};

mod embedded;
pub use embedded::EmbeddedLog;

/// A topic. Each has the same number of partitions, but dead letters have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Turn events, kept; value: [`TurnEvent`] as JSON.
    Turns,
    /// Memory records by key, replaced; key: [`crate::model::MemoryKey`], value: [`crate::model::MemoryRecord`] as JSON.
    Memory,
    /// Rejected input, kept; value: [`DeadLetter`] as JSON.
    DeadLetters,
}

/// One record as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key; empty where the topic has none.
    pub key: Vec<u8>,
    /// Its value; absent when the record removes its key.
    pub value: Option<Vec<u8>>,
}

/// What the extraction stage writes at once: records, and the input that they cover.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// The partition of the turns topic that was read, and of the memory topic to write.
    pub partition: u32,
    /// The first offset of that turns partition that is not covered.
    pub next_offset: u64,
    /// Memory records in order: key, and value or removal.
    pub memory: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Input that was rejected.
    pub dead_letters: Vec<DeadLetter>,
}

/// A durable log.
pub trait Log: Send + Sync {
    /// Partitions of the turns topic and of the memory topic.
    fn partitions(&self) -> u32;
    /// Appends events to their banks' partitions ([`partition_of`]), all or none.
    /// When it returns they are acknowledged: durable as the fsync policy says.
    fn append_turns(&self, events: &[TurnEvent]) -> Result<(), LogError>;
    /// Appends rejects of a source.
    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError>;
    /// Writes a transaction, all or nothing.
    fn commit(&self, transaction: &Transaction) -> Result<(), LogError>;
    /// At most `limit` live records from `from` on, in offset order.
    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<Vec<Record>, LogError>;
    /// The offset that the next record of the partition will get.
    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError>;
    /// The first offset of the turns partition that no transaction covers yet.
    fn read_position(&self, partition: u32) -> Result<u64, LogError>;
}

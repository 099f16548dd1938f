//! Durable logs: turns in, memory records out, one interface.
//!
//! In: turn events, transactions. Out: records by (topic, partition, offset). What was
//! acknowledged is never lost; a transaction is there as a whole or not at all. Offsets
//! of a partition only grow. Writing a key again replaces its record; a null removes it.

use std::{error::Error, path::PathBuf};

use crate::{
    config::{LogKind, LogSettings},
    model::{Bank, DeadLetter, ModelRef, TurnEvent},
};

mod embedded;
pub mod kafka;
mod murmur2;
#[cfg(test)]
mod suite;
mod view;

pub use embedded::EmbeddedLog;
pub use kafka::{KafkaLog, lane::Raw};
pub use view::View;

/// A topic. Dead letters have one partition. On Kafka the turns topic may have more than the
/// memory topic: what lies in those is forwarded ([`Transaction::forwards`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Turn events, kept; key: the bank's name, value: [`TurnEvent`] as JSON.
    Turns,
    /// Memory records by key, replaced; key: [`crate::model::MemoryKey`], value: [`crate::model::MemoryRecord`] as JSON.
    Memory,
    /// The memory topic's next generation, while another model's vectors are made for it.
    NextMemory,
    /// Rejected input, kept; value: [`DeadLetter`] as JSON.
    DeadLetters,
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Turns => "turns",
            Self::Memory => "memory",
            Self::NextMemory => "the next memory",
            Self::DeadLetters => "dead_letters",
        })
    }
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

/// Records of one read, and what they cover.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Records in offset order.
    pub records: Vec<Record>,
    /// Of the memory topic: the first offsets of turns partitions that are not covered by
    /// what was read up to here, by partition; where that is known.
    pub covers: Vec<(u32, u64)>,
    /// Where the next read goes on.
    pub next: u64,
}

/// What the extraction stage writes at once: records, and the input that they cover.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// The partition of the turns topic that was read, and of the memory topic to write.
    /// A turns partition beyond the memory topic's has turns to forward and no records.
    pub partition: u32,
    /// The first offset of that turns partition that is not covered.
    pub next_offset: u64,
    /// Memory records in order: key, and value or removal.
    pub memory: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Input that was rejected.
    pub dead_letters: Vec<DeadLetter>,
    /// Events that were read from another partition than their bank's, on their way to it.
    pub forwards: Vec<TurnEvent>,
}

/// How long a removal stays readable on Kafka, where the topic is made here, in milliseconds.
pub const REMOVALS_KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// The key of a live memory record, and the record's offset.
pub type LiveKey = (Vec<u8>, u64);

/// A key of a memory record, and the value or the removal.
pub type Rewritten = (Vec<u8>, Option<Vec<u8>>);

/// How far whole transactions reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// The first offset behind them.
    pub end: u64,
    /// The first offset of the turns partition that they do not cover, where known.
    pub position: Option<u64>,
}

/// The name of a generation of the memory topic.
#[must_use]
pub fn memory_name(generation: u32) -> String {
    if generation <= 1 { "memory".to_owned() } else { format!("memory-{generation}") }
}

/// A durable log.
pub trait Log: Send + Sync {
    /// Partitions of the memory topic: what [`partition_of`] divides by.
    fn partitions(&self) -> u32;
    /// Appends events to their banks' partitions ([`partition_of`]). When it returns they are
    /// acknowledged: durable as the fsync policy says, or as the cluster's copies are. After
    /// an error some may be there; appending them again changes nothing that is remembered.
    fn append_turns(&self, events: &[TurnEvent]) -> Result<(), LogError>;
    /// Appends rejects of a source.
    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError>;
    /// Becomes the only one that commits to a partition: whoever did before is refused from
    /// now on, and what it had not committed is gone.
    fn own(&self, partition: u32) -> Result<(), LogError>;
    /// Writes a transaction to an owned partition, all or nothing. After an error it may be
    /// there or not: own the partition again, and read what it holds.
    fn commit(&self, transaction: &Transaction) -> Result<(), LogError>;
    /// At most `limit` live records from `from` on. Fewer only at the end: of what was there
    /// when the log was opened, and of all that was written through this value since; what
    /// others write comes as soon as it is seen.
    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<Batch, LogError>;
    /// The offset that the next record of the partition will get.
    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError>;
    /// The last transaction of a partition of either memory that can be read as a whole.
    fn whole(&self, topic: Topic, partition: u32) -> Result<Whole, LogError>;
    /// Offsets of the turns partition from `position` on; 0 when none of them holds a turn.
    fn behind(&self, partition: u32, position: u64) -> Result<u64, LogError>;
    /// The first offset of the turns partition that no transaction covers yet.
    fn read_position(&self, partition: u32) -> Result<u64, LogError>;
    /// The keys of all live records of a memory partition with their offsets, where removals
    /// cannot be read for long; none where they can be for a week.
    fn live_keys(&self, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError>;
    /// Shows every record that a turns partition's transactions wrote, in order and with
    /// those that were superseded since where they are still there; gives its read position.
    fn replay(&self, partition: u32, each: &mut dyn FnMut(&Record)) -> Result<u64, LogError>;
    /// Which generation of the memory topic this reads and writes, from 1.
    fn generation(&self) -> u32;
    /// Makes the next generation where it is not there, and becomes the only one that fills it.
    fn begin_next(&self) -> Result<(), LogError>;
    /// Writes records to the next generation, all or nothing, with the read position that
    /// the partition will go on from.
    fn fill_next(&self, partition: u32, records: &[Rewritten], next_offset: u64) -> Result<(), LogError>;
    /// Ends whoever fills the next generation: what was copied may lack what was written here.
    fn interrupt_next(&self) -> Result<(), LogError>;
    /// Makes the next generation the one that everybody who opens the log reads and writes,
    /// at once. This value is of no use afterwards.
    fn switch(&self, model: &ModelRef) -> Result<(), LogError>;
    /// Removes the generations before this one; gives their names.
    fn drop_old(&self) -> Result<Vec<String>, LogError>;
}

/// Opens the log that the settings name.
///
/// # Errors
/// [`LogError`]: see [`EmbeddedLog::open`] and [`KafkaLog::open`].
pub fn open(settings: &LogSettings) -> Result<Box<dyn Log>, LogError> {
    Ok(match settings.kind {
        LogKind::Embedded => Box::new(EmbeddedLog::open(settings)?),
        LogKind::Kafka => Box::new(KafkaLog::open(settings)?),
    })
}

/// The partition of a bank: murmur2 of its name, made positive, modulo the partitions,
/// as Kafka's Java client chooses it for a record whose key is the bank's name.
#[must_use]
pub fn partition_of(bank: &Bank, partitions: u32) -> u32 {
    (murmur2::murmur2(bank.as_str().as_bytes()) & 0x7fff_ffff) % partitions.max(1)
}

/// Why a log could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process writes to it.
    #[error("{directory}: the log is in use by {holder}; stop that process, or name another log.directory")]
    InUse {
        /// Where the log is.
        directory: PathBuf,
        /// Who holds it: `process 4711`, or `another process`.
        holder: String,
    },
    /// It was made with another number of partitions, which is fixed when it is made.
    #[error(
        "{directory}: the log was made with {stored} partition(s), log.partitions says {asked}; \
         set log.partitions = {stored}, or ingest into a new directory"
    )]
    Partitions {
        /// Where the log is.
        directory: PathBuf,
        /// The number that it was made with.
        stored: u32,
        /// The number in the settings.
        asked: u32,
    },
    /// A later build wrote it.
    #[error("{directory}: the log has format {found}, this build reads up to {known}; use the build that wrote it")]
    Version {
        /// Where the log is.
        directory: PathBuf,
        /// The format that was found.
        found: u32,
        /// The latest format that this build knows.
        known: u32,
    },
    /// Stored bytes are missing or are not what was written.
    #[error("{directory}: the log is damaged: {problem}; {remedy}")]
    Damaged {
        /// Where the log is.
        directory: PathBuf,
        /// What is missing, or which file cannot be read.
        problem: String,
        /// What to do about it.
        remedy: String,
        /// What the store said.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The disk, or the file system's rights, refused.
    #[error("{directory}: {doing} failed; {remedy}")]
    Disk {
        /// Where the log is.
        directory: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What to do about it.
        remedy: &'static str,
        /// What the system said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A write failed before, so that the order of later ones could not be kept.
    #[error("{directory}: an earlier write failed, nothing more is written; make room on the disk and start again")]
    Stopped {
        /// Where the log is.
        directory: PathBuf,
    },
    /// There is no such partition.
    #[error("{topic}/{partition}: no such partition; the topic has {partitions}")]
    NoPartition {
        /// The topic.
        topic: Topic,
        /// The partition that was asked for.
        partition: u32,
        /// How many there are.
        partitions: u32,
    },
    /// A transaction covers input that was covered already, or that is not there.
    #[error(
        "turns/{partition}: a transaction up to offset {next_offset} is refused, input is covered up to {position} \
         and ends at {end}; read on from {position}"
    )]
    Position {
        /// The partition.
        partition: u32,
        /// What the transaction said.
        next_offset: u64,
        /// The first offset that is not covered yet.
        position: u64,
        /// The end of the partition.
        end: u64,
    },
    /// The cluster did not answer, or not as it should have.
    #[error("{brokers}: {doing} failed: {problem}; {remedy}")]
    Cluster {
        /// The addresses that were given.
        brokers: String,
        /// What was tried.
        doing: String,
        /// What the client said.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
        /// Whether the same may succeed later.
        passing: bool,
    },
    /// A topic is not as this pipeline needs it.
    #[error("{brokers}: {}", differences.join("; "))]
    Topics {
        /// The addresses that were given.
        brokers: String,
        /// What differs, topic by topic, and what to do.
        differences: Vec<String>,
    },
    /// Another instance commits to the partition now.
    #[error("partition {partition}: another instance of this pipeline owns it now; this one has stopped writing to it")]
    Fenced {
        /// The partition.
        partition: u32,
    },
    /// The memory has moved to another model.
    #[error(
        "{topic}: the memory has moved to {to}, whose vectors are {model}; name that model in [embed] and start again"
    )]
    Moved {
        /// The topic that was read.
        topic: String,
        /// The topic that it moved to.
        to: String,
        /// Whose they are: `of model NAME (HASH)`.
        model: String,
    },
    /// The next generation of the memory was not begun.
    #[error("{topic}: it is not there; begin it first, by `ripplemem reembed`")]
    NotBegun {
        /// The topic.
        topic: Topic,
    },
    /// Turns that were never extracted are no longer there.
    #[error(
        "turns/{partition}: extraction stands at offset {position}, the topic now begins at {earliest}: {} turn(s) \
         have expired unread; restore them, or set log.kafka.expired = \"earliest\" to go on without them",
        earliest - position
    )]
    Expired {
        /// The partition.
        partition: u32,
        /// The first offset that was not extracted.
        position: u64,
        /// The first offset that is left.
        earliest: u64,
    },
    /// A record has no key, or is larger than the store can hold.
    #[error("{topic}/{partition}: record {index} of the write is refused: {problem}")]
    Record {
        /// The topic.
        topic: Topic,
        /// The partition.
        partition: u32,
        /// Place in the write, from 0.
        index: usize,
        /// What is wrong and what to do.
        problem: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_lies_where_kafkas_java_client_puts_its_name() {
        // 479470107 is positive as it is; -790332482 loses its sign bit: 1357151166.
        for (bank, partitions, expected) in [
            ("abc", 1, 0),
            ("abc", 12, 479_470_107 % 12),
            ("foobar", 12, 1_357_151_166 % 12),
            ("foobar", 1_024, 1_357_151_166 % 1_024),
        ] {
            assert_eq!(partition_of(&Bank::parse(bank).unwrap(), partitions), expected, "{bank} of {partitions}");
        }
    }
}

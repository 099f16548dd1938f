//! Why a log could not be opened, read or written.
//!
//! Each message names the directory or the brokers, what was attempted, and what to do.

use std::{error::Error, path::PathBuf};

use super::Topic;

/// Why a log could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process has the log open.
    #[error(
        "{directory}: the log is in use by {holder}, and only one process at a time can have a directory open; stop \
         that process, run this command, and start the process again: nothing is lost in between. Or name another \
         log.directory"
    )]
    InUse {
        /// Where the log is.
        directory: PathBuf,
        /// The process that has it open: `process 4711`, or `another process`.
        holder: String,
    },
    /// The log was created with another partition count, which cannot change.
    #[error(
        "{directory}: the log was created with {stored} partition(s), but log.partitions says {configured}; \
         set log.partitions = {stored}, or ingest into a new directory"
    )]
    Partitions {
        /// Where the log is.
        directory: PathBuf,
        /// The partition count of the log.
        stored: u32,
        /// The partition count in the settings.
        configured: u32,
    },
    /// Another build wrote the log.
    #[error(
        "{directory}: the log has format {found}, but this build reads {known}; use the build that wrote it, or name \
         another log.directory and ingest again"
    )]
    Version {
        /// Where the log is.
        directory: PathBuf,
        /// The log's format.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// Stored bytes are missing, or differ from what was written.
    #[error("{directory}: the log is damaged: {problem}; {remedy}")]
    Damaged {
        /// Where the log is.
        directory: PathBuf,
        /// What is missing, or which file is unreadable.
        problem: String,
        /// What to do.
        remedy: String,
        /// The store's error.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// A file operation failed, for example because the disk is full or rights are missing.
    #[error("{directory}: {doing} failed; {remedy}")]
    Disk {
        /// Where the log is.
        directory: PathBuf,
        /// The operation.
        doing: &'static str,
        /// What to do.
        remedy: &'static str,
        /// The operating system's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Old files are still there, because a read that began earlier still holds them.
    #[error("{directory}: old {what} of the store are still held by a read; erase again in a moment")]
    NotErased {
        /// Where the log is.
        directory: PathBuf,
        /// Which files.
        what: String,
    },
    /// An earlier write failed; later writes are refused, so that none is out of order.
    #[error(
        "{directory}: an earlier write failed, so this log accepts no more writes; make room on the disk and start again"
    )]
    Stopped {
        /// Where the log is.
        directory: PathBuf,
    },
    /// The topic has no such partition.
    #[error("{topic}/{partition}: no such partition; the topic has {partitions}")]
    NoPartition {
        /// The topic.
        topic: Topic,
        /// The requested partition.
        partition: u32,
        /// The topic's partition count.
        partitions: u32,
    },
    /// A transaction covers input that is already covered, or input beyond the end of the partition.
    #[error(
        "turns/{partition}: a transaction up to offset {next_offset} is refused: input is covered up to {position} \
         and ends at {end}; continue reading at {position}"
    )]
    Position {
        /// The partition.
        partition: u32,
        /// The transaction's `next_offset`.
        next_offset: u64,
        /// The first offset that is not covered.
        position: u64,
        /// The end of the partition.
        end: u64,
    },
    /// The log is on Kafka, but this build is without Kafka.
    #[error(
        "log.kind: this build has no Kafka; `cargo build` and the packages have it (docs/install.md), or write \"embedded\""
    )]
    NoKafka,
    /// The process that has the log open does not show its records.
    #[error("{directory}: {problem}")]
    Reached {
        /// Where the log is.
        directory: PathBuf,
        /// What the process answers, or why it does not answer.
        problem: String,
    },
    /// A request to the cluster failed.
    #[error("{brokers}: {doing} failed: {problem}; {remedy}")]
    Cluster {
        /// The configured broker addresses.
        brokers: String,
        /// The operation.
        doing: String,
        /// The client's error.
        problem: String,
        /// What to do.
        remedy: &'static str,
        /// Whether a retry may succeed.
        retriable: bool,
    },
    /// One of the pipeline's own records that say how far it has read cannot be read, and no later record of its key
    /// replaces it.
    #[error(
        "{topic}/{partition}: the record at offset {offset}, {what}, cannot be read: {problem}; its value is not guessed: \
         `ripplemem repair` shows the record and writes a value of your choice"
    )]
    Unreadable {
        /// The topic.
        topic: String,
        /// Its partition.
        partition: u32,
        /// The offset of the record.
        offset: u64,
        /// What the record describes: `the read position of turns/3`.
        what: String,
        /// Why it cannot be read.
        problem: String,
    },
    /// A topic's configuration does not fit this pipeline.
    #[error("{brokers}: {}", differences.join("; "))]
    Topics {
        /// The configured broker addresses.
        brokers: String,
        /// The differences, each with what to do about it.
        differences: Vec<String>,
    },
    /// Another instance took over the partition.
    #[error(
        "partition {partition}: another instance of this pipeline owns it now; this instance no longer writes to it"
    )]
    Fenced {
        /// The partition.
        partition: u32,
    },
    /// The memory was switched to a generation of another model.
    #[error(
        "{topic}: the memory has moved to {to}, with vectors from {model}; name that model in [embed] and start again"
    )]
    Moved {
        /// The topic of the old generation.
        topic: String,
        /// The topic of the new generation.
        to: String,
        /// The model of the new generation's vectors: `of model NAME (HASH)`.
        model: String,
    },
    /// The next generation of the memory does not exist.
    #[error("{topic}: it does not exist; run `ripplemem reembed` first")]
    NotBegun {
        /// The topic.
        topic: Topic,
    },
    /// Turns expired before they were extracted.
    #[error(
        "turns/{partition}: extraction is at offset {position}, but the topic now begins at {earliest}: {} turn(s) \
         have expired unread; restore them, or set log.kafka.expired = \"earliest\" to continue without them",
        earliest - position
    )]
    Expired {
        /// The partition.
        partition: u32,
        /// The first offset that is not extracted.
        position: u64,
        /// The first offset that is still stored.
        earliest: u64,
    },
    /// A record without a key, or larger than the store allows.
    #[error("{topic}/{partition}: record {index} of the write is refused: {problem}")]
    Record {
        /// The topic.
        topic: Topic,
        /// The partition.
        partition: u32,
        /// Index of the record in the write, from 0.
        index: usize,
        /// What is wrong, and what to do.
        problem: String,
    },
}

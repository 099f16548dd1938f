//! Why a pipeline stopped.
//!
//! In: the errors of the crates below, and those that only the pipeline can find. Out: one error that says where it
//! happened, what is wrong and what to do.

use super::CancellationReason;
use logs::LogError;
use memory::{extract::TurnOrderError, index::ShardError, recall::RecallError};
use models::{embed, llm::LlmError, rerank::RerankError};
use snapshots::SnapshotError;
use sources::SourceError;
use types::model::{Bank, FieldError, ModelRef};

/// Why a pipeline stopped.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A given turn is not valid; nothing was written.
    #[error("turn {index} of this batch: {problem}; nothing was written")]
    Turn {
        /// Its index among them, from 0.
        index: usize,
        /// The field, what is wrong with it and what to do.
        problem: FieldError,
    },
    /// A selector names nothing, too much, or what no turn can satisfy.
    #[error("{problem}")]
    Select {
        /// The field, what is wrong with it and what to do.
        problem: FieldError,
    },
    /// A hold covers the bank: nothing may be deleted there.
    #[error(
        "bank {bank}: held by [[hold]] bank = {by:?}{reason}; nothing was deleted, and nothing can be until the \
         operator removes that table from the pipeline file, and starts the service again"
    )]
    Held {
        /// The bank.
        bank: Bank,
        /// The banks that the hold covers, as the pipeline file names them.
        by: String,
        /// The turn, where the hold covers only some, and why; empty where the file gives no reason.
        reason: String,
    },
    /// What forgetting records about its operations cannot be read or written.
    #[error("{what}: {problem}")]
    Forget {
        /// The ledger, the key file, or an operation in the log.
        what: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// This process does not extract from a log on Kafka.
    #[error("log.kind is \"kafka\": a service does the work there; start `ripplemem run FILE`")]
    NotEmbedded,
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A live source is set wrongly, or lacks a secret.
    #[error(transparent)]
    Live(#[from] sources::live::LiveError),
    /// The extractor failed.
    #[error(transparent)]
    Extract(#[from] TurnOrderError),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] embed::EmbedError),
    /// The language model cannot be asked.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// The reranker cannot be loaded.
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}; raise the system's limit on threads, or stop other processes")]
    Thread(std::io::Error),
    /// The dataflow failed.
    #[error(transparent)]
    Memory(#[from] ShardError),
    /// The question could not be answered.
    #[error(transparent)]
    Recall(#[from] RecallError),
    /// Snapshots could not be read or written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A record that this build must not skip: a newer schema, or a key that it cannot read. The
    /// partition waits before it, and its banks keep answering from the state before that record.
    #[error("memory partition {partition} waits before offset {offset}: {problem}")]
    Waits {
        /// The partition.
        partition: u32,
        /// The offset of the record.
        offset: u64,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A record of the bank cannot be read, so the bank answers nothing.
    #[error(
        "bank {bank}: quarantined, because a record of it cannot be read (memory partition {partition}, offset {offset}: \
         {problem}); a readable record of the same key ends that, such as from `ripplemem import` of an earlier export, \
         or its removal, on Kafka by `ripplemem repair`"
    )]
    Quarantined {
        /// The bank.
        bank: Bank,
        /// Its partition of the memory topic.
        partition: u32,
        /// The offset of the record.
        offset: u64,
        /// Why it cannot be read.
        problem: String,
    },
    /// A record of our own memory topic cannot be used.
    #[error("memory partition {partition}, offset {offset}: {problem}")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What is wrong and what to do.
        problem: String,
    },
    /// An earlier step failed before its records were written.
    #[error(
        "turns partition {partition}: an earlier read failed before its records were written; open the pipeline again, \
         the log holds every turn"
    )]
    Halted {
        /// The partition.
        partition: u32,
    },
    /// Extraction of a partition panicked.
    #[error("turns partition {partition}: extraction panicked; this is a defect, please report it")]
    ExtractionPanicked {
        /// The partition.
        partition: u32,
    },
    /// The log holds vectors of another model.
    #[error(
        "the memory was made with model {found}, but the pipeline names {expected}: vectors of two models are never \
         compared; name {found} in [embed], or make new vectors with `ripplemem reembed --pipeline FILE`"
    )]
    Model {
        /// The model of the log.
        found: String,
        /// The model of the pipeline.
        expected: String,
    },
    /// The bank's partition is assigned to another instance.
    #[error("bank {bank}: its partition, {partition}, is assigned to another instance; ask that one")]
    OtherInstance {
        /// The bank.
        bank: Bank,
        /// Its partition of the turns topic.
        partition: u32,
    },
    /// The bank's shard panicked and is loaded again; the others answer.
    #[error("bank {bank}: its shard, {partition}, stopped and is being loaded again; ask again in a moment")]
    Loading {
        /// The bank.
        bank: Bank,
        /// Its partition of the memory.
        partition: u32,
    },
    /// Too many questions wait already.
    #[error("too many questions {whose} are waiting; ask again in a moment, or ask fewer at once")]
    Busy {
        /// `of this bank` or `of all banks`.
        whose: &'static str,
    },
    /// The deadline of a question passed.
    #[error("the deadline passed before {before}; ask again, or allow more time (on Kafka: ripplemem_deadline)")]
    Deadline {
        /// What it passed before.
        before: String,
    },
    /// The caller cancelled, or the service stops.
    #[error("the question was cancelled; ask again")]
    Cancelled,
    /// Answering one question panicked.
    #[error("answering this question panicked; this is a defect, please report it with the question")]
    Panicked,
    /// The bank has no live record, and turns that may be its first wait for the endpoint of the embedding model.
    #[error("bank {bank}: it holds nothing yet, and turns of its partition wait to be embedded: {problem}")]
    EndpointAway {
        /// The bank that was asked.
        bank: Bank,
        /// Why the endpoint gives no vectors.
        problem: String,
    },
    /// The bank has no live record.
    #[error("bank {bank}: unknown; {known}")]
    UnknownBank {
        /// The bank that was asked.
        bank: Bank,
        /// The known banks, or why none is known.
        known: String,
    },
}

impl PipelineError {
    /// Whether the log refuses writes until an operator repairs it: a full disk, a damaged store, missing rights. An
    /// unavailable cluster does not count: it recovers by itself.
    #[must_use]
    pub fn refuses_writes(&self) -> bool {
        let Self::Log(error) = self else { return false };
        matches!(
            error,
            LogError::Disk { .. }
                | LogError::Stopped { .. }
                | LogError::Damaged { .. }
                | LogError::Cluster { retriable: false, .. }
        )
    }

    /// The error of vectors of one model, if the pipeline names another one.
    #[must_use]
    pub fn other_model(found: &ModelRef, expected: &ModelRef) -> Self {
        let named = |model: &ModelRef| format!("{} ({})", model.name, model.hash);
        Self::Model { found: named(found), expected: named(expected) }
    }
}

impl From<CancellationReason> for PipelineError {
    fn from(ended: CancellationReason) -> Self {
        match ended {
            CancellationReason::Deadline => Self::Deadline { before: "it was answered".to_owned() },
            CancellationReason::Cancelled => Self::Cancelled,
        }
    }
}

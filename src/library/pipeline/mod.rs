//! Wires the rooms; reads like the diagram.
//!
//! ```text
//! source ─► turns log ─► window ─► extract ─► embed ─► memory log ─► memory dataflow ◄─► recall
//! ```
//! In: a pipeline's settings, a source, questions. Out: evidence. The turns log acknowledges a
//! turn; a process that was killed makes everything after that again from the logs. Answers come
//! from the dataflow, which is fed from the memory log and from nothing else.
//!
//! - `ingest`: turns log to memory log.
//! - `live`: a chat platform to the turns log, while people talk.
//! - `replica`: what follows the memory log and answers questions.
//! - `front`: where the questions of every transport wait; `cancellation`: until when.
//! - `stage_times`: how long the stages of an answer take.
//! - `unread_languages`: notices about text in a language that the embedding model does not read.
//! - `logged`: errors as log lines say them.
//! - `explaining`: explanations, with what the log knows of a turn.
//! - `extract`: the extraction of the partitions that a group gives to this process.
//! - `extraction_status`: how the partitions are that this process extracts.
//! - `forgetting`: turns forgotten as one operation, down to the last stored byte.
//! - `maintenance`: work on a whole log: export, import, reembed, replay, estimate, snapshots.
//! - `snapshot_interval`: snapshots while a service runs.
//! - `service`: all of it in one process, call by call, for single commands, the evaluation and the tests.
//! - `engine`: all of it in one process that stays: the surface of this library, and what every server uses.

mod cancellation;
mod engine;
mod error;
mod explaining;
mod extract;
mod extraction_status;
mod forgetting;
mod front;
mod ingest;
mod live;
mod logged;
mod maintenance;
mod progress;
mod replica;
mod service;
mod snapshot_interval;
mod stage_times;
mod unread_languages;

pub use cancellation::{Cancellation, Ended};
pub use engine::{
    ForgetOperations, HeldTurn, Memory, MemoryEvent, MemoryOptions, MemoryStatus, PageOf, TurnPage, TurnSpan,
    TurnVersion, empty_letters, forget_turns, held_turns, letters_with, plain_ids, selected_turns, wait_until_listed,
};
pub use error::PipelineError;
pub use extract::extract;
pub use extraction_status::ExtractionStatus;
pub use forgetting::{
    Deleted, Erased, ForgetOperation, ForgetStage, Found, HeldLetter, HeldLetters, LetterSelector, Outlived, Receipt,
    Retention, RetentionLook, RetentionNews, RetentionRule, RetentionStatus, Search, Verdict, Verified,
    VerifiedOperation, VerifiedOperations, check_forgetting, held_letters, stored_receipts, verify, verify_operations,
};
pub use front::{Asked, FairPlaces, Front, FrontLoad, Lane, ReadPlace, parse_after, parse_as_of, refusal};
pub use ingest::unit_texts;
pub use ingest::{ArrivingOrders, Committed, ExtractionEvent, ExtractionOrders};
pub use live::{LiveEvent, LiveRun, follow_source};
pub use logged::logged;
pub use maintenance::{
    BankReader, Estimate, ExportReport, ImportReport, ReembedReport, Replay, ReplayError, ReplayRequest, TransferError,
    UnreadableAt, check_model, check_reranker, diff, estimate, export, export_beside, import, reembed, take_snapshot,
};
#[cfg(feature = "kafka")]
pub use maintenance::{replace_record, unreadable_records};
pub use progress::{Finished, Ingested, Progress};
pub use replica::snapshots;
pub use replica::{
    Changes, LastVersion, News, OnRestoredTurns, ReadTurn, ReadVersions, RecordChange, Replica, ReplicaOptions,
    ShardPlace, ShardStatus, WatchedBank, WrittenSnapshots, WrittenWindow,
};
pub use service::Service;
pub use snapshot_interval::write_snapshots;
pub use stage_times::{AnswerStage, StageTimes};
pub use unread_languages::{LanguageCounts, notice as unread_notice};

//! The nouns of the whole system, and the limits of what may enter it.
//!
//! In: nothing but plain values. Out: types that every room shares, each with one
//! JSON form (the schemas in `schemas/topics` are generated from here). This module
//! imports no room, reads no clock and opens no file. The files: `bank` and `time`, then
//! `turn`, `unit` and `answer` in the data's order, `usage`, what a language model took, and
//! `export`, a bank on its way to another log.

mod answer;
mod bank;
mod channel;
mod export;
mod time;
mod turn;
mod unit;
mod usage;

pub use answer::{
    EdgeRecord, Evidence, EvidenceUnit, Excerpt, FamiliarityTerms, Plan, Position, Provenance, Question, QuestionCues,
    Refusal, RefusalCode, Round, Score, Seen, Step, Target, Trace,
};
pub use bank::{Bank, BankKey};
pub use channel::Channel;
pub use export::{EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportLine, ExportRecord, ExportSeal};
pub use time::{EventTime, Interval};
pub use turn::{
    Attachment, DeadLetter, Deletion, Idle, InputPosition, SessionEnd, SessionId, Turn, TurnEvent, Window, WindowId,
    WindowTurn,
};
pub use unit::{
    Cues, Marks, MemoryKey, MemoryRecord, ModelRef, Part, SpannedText, Unit, UnitId, Vector, WindowState,
    canonical_name,
};
pub use usage::Usage;

/// The version that every record of every topic carries in `schema`.
pub const SCHEMA_VERSION: u32 = 1;
/// Longest text of a turn, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 65_536;
/// Longest turn id, speaker, session or thread name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 256;
/// First year in which a turn may have been said.
pub const FIRST_YEAR: i16 = 1900;
/// Last year in which a turn may have been said.
pub const LAST_YEAR: i16 = 2199;

/// What is wrong with a value, with the field's name and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct Invalid {
    /// The field of the record, as it is spelled in the JSON form.
    pub field: &'static str,
    /// What was found.
    pub problem: String,
    /// What to write instead.
    pub remedy: &'static str,
}

impl Invalid {
    pub(super) fn new(field: &'static str, problem: impl Into<String>, remedy: &'static str) -> Self {
        Self { field, problem: problem.into(), remedy }
    }
}

//! The types of the whole system, and the limits of what may enter it.
//!
//! In: plain values. Out: types that all crates share, each with one JSON form (the schemas in `schemas/topics` are
//! generated from here). Never imports another of our crates, reads a clock or opens a file.
//!
//! `bank` and `time` come first, then `turn`, `vector`, `unit`, `channel`, `flat`, `answer` and `explanation` in the
//! data's order; `hidden_id` keeps phone numbers and mail addresses out of ids; `normal_form` is the form in which words
//! are compared; `usage` is what a language model used; `export` is the file in which a bank moves to another log.

mod answer;
mod bank;
mod channel;
mod error;
mod explanation;
mod export;
mod flat;
mod hidden_id;
mod language;
mod limits;
mod normal_form;
mod selector;
mod time;
mod turn;
mod unique_json;
mod unit;
mod unspaced;
mod usage;
mod vector;

pub use answer::{
    ContextTokens, EdgeRecord, Evidence, EvidenceUnit, Excerpt, FamiliarityTerms, NearMiss, Notice, NoticeCode,
    PartLogit, Plan, Position, Provenance, Question, QuestionCues, Refusal, RefusalCode, Reranked, Round, SaidBefore,
    Scale, Score, ScoredParts, Seen, Step, Target, Trace, Walk, WalkState, WalkUnit,
};
pub use bank::{Bank, BankKey};
pub use channel::Channel;
pub use error::Invalid;
pub use explanation::{
    ExplainStep, ExplainedSubject, Explanation, OtherPart, StepName, StepNumbers, StepState, Subject, SubjectId,
};
pub use export::{EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportLine, ExportRecord, ExportSeal};
pub use flat::{Flat, FlatRanking, FlatUnit};
pub use hidden_id::{IdSalt, holds_contact, is_hidden};
pub use language::Language;
pub use limits::{
    FIRST_YEAR, LAST_YEAR, MAX_ATTACHMENTS, MAX_BANK_CHARACTERS, MAX_NAME_BYTES, MAX_NEAR_MISSES, MAX_QUESTION_BYTES,
    MAX_TEXT_BYTES, MAX_TURN_BYTES, MAX_URL_BYTES, OLDEST_SCHEMA_VERSION, SCHEMA_VERSION,
};
pub use normal_form::{NormalReader, normal_form};
pub use selector::{MOST_SELECTED_IDS, MOST_SELECTED_NAMES, Selection, Selector};
pub use time::{EventTime, Interval};
pub use turn::{
    Attachment, DeadLetter, Deletion, Idle, InputPosition, SessionEnd, SessionId, SpeakerKind, Turn, TurnEvent, Window,
    WindowId, WindowTurn, stated_bank,
};
pub use unique_json::UniqueJson;
pub use unit::{
    Cues, IN_PART, Marks, MemoryKey, MemoryRecord, ModelRef, Part, SpannedText, TextRange, Unit, UnitId, WindowState,
    canonical_name,
};
pub use unspaced::stands_alone;
pub use usage::Usage;
pub use vector::Vector;

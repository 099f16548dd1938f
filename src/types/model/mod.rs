//! The types of the whole system, and the limits of what may enter it.
//!
//! In: plain values. Out: types that all crates share, each with one JSON form (the schemas in `schemas/topics` are
//! generated from here). Never imports another of our crates, reads a clock or opens a file.
//!
//! `bank` and `time` come first, then `metadata`, `turn`, `turn_event`, `window`, `vector`, `unit`, `channel`, `flat_comparison`, `asked_period`,
//! `evidence` and `explanation` in the data's order; `statement` is what persons say that lasts,
//! and `profile` what a client gets of it; `hidden_id` keeps phone numbers and mail addresses out of ids;
//! `write_condition` is what a write may depend on;
//! `normal_form` is the form in which words are compared; `model_usage` is what a language model used; `export` is the
//! file in which a bank moves to another log.

mod asked_form;
mod asked_period;
mod bank;
mod channel;
mod condition;
mod dead_letter;
mod evidence;
mod explanation;
mod export;
mod field_error;
mod flat_comparison;
mod hidden_id;
mod language;
mod limits;
mod metadata;
mod model_usage;
mod normal_form;
mod packed_metadata;
mod profile;
mod selector;
mod statement;
mod time;
mod turn;
mod turn_event;
mod unique_json;
mod unit;
mod unspaced;
mod vector;
mod window;
mod write_condition;

pub use asked_form::{AskedForm, AskedFormName};
pub use asked_period::{AskedPeriod, PeriodClock, PeriodReading, PeriodSubject, PeriodUse};
pub use bank::{Bank, BankKey};
pub use channel::Channel;
pub use condition::{MAX_COMPARED_VALUES, MAX_COMPARISONS, MetadataCondition, ValueTest};
pub use dead_letter::{DeadLetter, InputPosition, stated_bank};
pub use evidence::{
    ConsideredUnit, ContextTokens, EdgeRecord, EdgeStep, Evidence, EvidenceNotice, EvidenceUnit, Excerpt,
    FamiliarityScale, FamiliarityTerms, LogPosition, NearMiss, NoticeCode, PartLogit, Plan, PrecedingTurn, Provenance,
    Question, QuestionCues, QuestionRefusal, RecallRound, RefusalCode, RerankResult, Score, ScoringScope,
    StandingInstruction, SupersedingStatement, Target, Trace, WalkTrace, WalkUnit, WalkUnitState,
};
pub use explanation::{
    ExplainedSubject, Explanation, ExplanationQuery, ExplanationStep, ExplanationStepName, ExplanationStepNumbers,
    ExplanationStepState, SiblingPart, SubjectId,
};
pub use export::{EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportLine, ExportRecord, ExportSeal};
pub use field_error::FieldError;
pub use flat_comparison::{FlatComparison, FlatRanking, FlatUnit};
pub use hidden_id::{IdSalt, holds_contact, is_hidden};
pub use language::Language;
pub use limits::{
    FIRST_YEAR, LAST_YEAR, MAX_ATTACHMENTS, MAX_BANK_CHARACTERS, MAX_METADATA_BYTES, MAX_METADATA_DEPTH,
    MAX_NAME_BYTES, MAX_NEAR_MISSES, MAX_QUESTION_BYTES, MAX_TEXT_BYTES, MAX_TURN_BYTES, MAX_URL_BYTES,
    OLDEST_SCHEMA_VERSION, SCHEMA_VERSION,
};
pub use metadata::Metadata;
pub use model_usage::ModelUsage;
pub use normal_form::{NormalFormReader, normal_form};
pub use packed_metadata::{MAX_COMPARED_BYTES, PackedMetadata, PackedValue};
pub use profile::{LaterStatement, LatestSession, Profile, SessionBeginning, StatedLine};
pub use selector::{CompiledSelector, MAX_SELECTED_IDS, MAX_SELECTED_NAMES, SelectableTurn, Selector};
pub use statement::{RecordStatements, Statement, StatementKind};
pub use time::{EventTime, Interval};
pub use turn::{Attachment, SpeakerKind, Turn};
pub use turn_event::{
    ConditionalWrite, IdleMark, PERMANENT_VERSION, SessionEnd, SessionTitle, TurnChange, TurnDeletion, TurnEvent,
};
pub use unique_json::UniqueJson;
pub use unit::{
    Cues, IN_PART, MemoryKey, MemoryRecord, ModelRef, SpannedText, TextFeatures, TextRange, Unit, UnitId, UnitPart,
    WindowState, canonical_name,
};
pub use unspaced::is_word_by_itself;
pub use vector::Vector;
pub use window::{SessionId, StoredTimes, Window, WindowId, WindowTurn};
pub use write_condition::{
    DecidedVersion, FIRST_INEXACT_VERSION, MAX_GROUP, RefusedWrite, WriteCondition, WriteVerdict,
};

//! The events that are sent to the followers of a bank, each with its JSON form.
//!
//! Plain values; the only function converts a record's change into an event. `schemas/openapi.v1.json` is generated
//! from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::question_event_forms::StreamNotice;
use crate::api::ApiProblem;
use replica::{RecordChange, TurnRevision, WrittenWindow};
use types::model::{Bank, EventTime, LogPosition, Metadata, UnitId};

/// What a follower of a bank is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum BankEvent {
    /// A version of a turn was read.
    Turn(ArrivedTurn),
    /// A closed window was written.
    Window(ClosedWindow),
    /// The bank has another unit.
    UnitAdded(AddedUnit),
    /// The bank has a unit no more.
    UnitRemoved(RemovedUnit),
    /// Edges were added or removed.
    Edges(EdgeChangeCounts),
    /// A record of the bank became a dead letter.
    Rejected(RejectedRecord),
    /// Some events are left out.
    Skipped(SkippedEvents),
    /// Everything that led to these counts was sent; its id is for followers that come back.
    Progress(String, BankProgress),
    /// What happened since the last progress is not known.
    Reset(StreamNotice),
    /// The stream ends, for this reason.
    Problem(ApiProblem),
    /// Nothing happened in the time of this call.
    Quiet,
}

/// `turn`: a version of a turn was read for the first time: it was said, edited or deleted. One that is reported after
/// a later version was read has no words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivedTurn {
    /// Its id.
    pub turn: String,
    /// Who said it; empty if a later version was read.
    pub speaker: String,
    /// When it was said.
    pub time: EventTime,
    /// The session that it lies in.
    pub session: String,
    /// What was said, at most 1,000 characters; empty if it is deleted, or a later version was read.
    pub text: String,
    /// Whether the text is cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether this version deletes the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// What a program keeps beside the words, as it is when the event is sent; where the request asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// `window`: a closed window was written, for the first time or again because its turns or units changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedWindow {
    /// The session that it lies in.
    pub session: String,
    /// Ordinal, in the session, of its first turn.
    pub start: u32,
    /// The ids of its turns that are not deleted. A window that is too large for one record comes in parts.
    pub turns: Vec<String>,
}

/// `unit_added`: the bank has another unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddedUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says, cut to 80 characters; empty if a turn of it was edited or deleted since.
    pub label: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The session that its turns lie in.
    pub session: String,
    /// The turns that it was made from.
    pub turns: Vec<String>,
}

/// `unit_removed`: the bank has a unit no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovedUnit {
    /// The unit.
    pub id: UnitId,
    /// The unit's text, cut to 80 characters. Absent if the event that added the unit is no longer kept, or if one of
    /// its turns was edited or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// `rejected`: a record of the bank became a dead letter: a turn that could not be read, or a window of which the
/// language model's reply, or a text, could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectedRecord {
    /// The offset of its dead letter, in the topic of dead letters.
    pub offset: u64,
    /// The id of the turn, where the record states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// What was wrong, and what to do; empty if the turn was deleted since.
    pub reason: String,
}

/// `edges`: how many edges came and went since the last progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChangedEdges")]
pub struct EdgeChangeCounts {
    /// Edges that there were not.
    pub added: u64,
    /// Edges that there are no more.
    pub removed: u64,
}

/// `skipped`: events are left out here, because too much happened at once or they were read too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Skipped")]
pub struct SkippedEvents {
    /// How many.
    pub events: u64,
}

/// `progress` of a bank: everything up to these offsets was sent, and this is what the bank holds as of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankProgress {
    /// The bank.
    pub bank: Bank,
    /// The number of units.
    pub units: u64,
    /// The number of semantic edges.
    pub semantic_edges: u64,
    /// The number of structural edges.
    pub structural_edges: u64,
    /// The offsets that this reflects.
    pub reflects: Vec<LogPosition>,
}

impl From<RecordChange> for BankEvent {
    fn from(change: RecordChange) -> Self {
        match change {
            RecordChange::Turn(TurnRevision { turn, speaker, time, session, text, is_cut, is_deleted }) => {
                let (cut, deleted) = (is_cut, is_deleted);
                Self::Turn(ArrivedTurn { turn, speaker, time, session, text, cut, deleted, metadata: None })
            }
            RecordChange::Window(WrittenWindow { session, start, turns }) => {
                Self::Window(ClosedWindow { session, start, turns })
            }
        }
    }
}

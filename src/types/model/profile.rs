//! A profile: what persons of a bank said that lasts, as clients get it.
//!
//! In: lines of the memory. Out: the same with one JSON form. Each line names its turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, EventTime, Interval, LogPosition, StatementKind};

/// What persons of a bank said that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The bank.
    pub bank: Bank,
    /// The person, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The lines: instructions, preferences, facts, plans; of each kind the one that was said last comes first.
    pub lines: Vec<StatedLine>,
    /// If a beginning was asked for: the sessions in which something was said last, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<LatestSession>,
    /// The same as text for a model: quotes with their days, a heading for each kind.
    pub text: String,
    /// The tokens (o200k) of the text.
    pub tokens: u32,
    /// How many lines were left out, because there was no room for them.
    pub left_out: u32,
    /// A hash of the lines and sessions: another one means that the profile changed.
    pub version: String,
    /// The offsets that this reflects.
    pub reflects: Vec<LogPosition>,
}

/// A session in which something was said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatestSession {
    /// Its name, as its turns have it.
    pub session: String,
    /// Its title, if one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How it begins, where it has no title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<SessionBeginning>,
    /// How many turns it has.
    pub turns: u64,
    /// When its first turn was said.
    pub first: EventTime,
    /// When its last turn was said.
    pub last: EventTime,
}

/// The first words of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionBeginning {
    /// The turn.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// Its words on one line, at most 80 characters.
    pub text: String,
}

/// A line of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileLine")]
pub struct StatedLine {
    /// What it states.
    pub kind: StatementKind,
    /// Who said it.
    pub speaker: String,
    /// What of the speaker it is about; absent where it is the speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What it says of the subject: `always`, `prefers`, `lives in`.
    pub relation: String,
    /// The rest of what it says.
    pub object: String,
    /// The words of the last turn that says it.
    pub text: String,
    /// Whether it says that something is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// When it was last said.
    pub said_at: EventTime,
    /// When it was first said.
    pub since: EventTime,
    /// The turns that say it, in the order of time.
    pub turns: Vec<String>,
    /// When a plan is due, if its words name a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Interval>,
    /// Of a plan: whether its time has not passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<bool>,
    /// What superseded it; absent if it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<LaterStatement>,
}

/// What superseded a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaterStatement {
    /// The turn that says it.
    pub turn: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words that say it.
    pub text: String,
}

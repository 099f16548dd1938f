//! What goes into a subscription and what comes out, each with one JSON form.
//!
//! Values without behaviour. `schemas/openapi.v1.json` is made of these types.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::{
    model::{Bank, Cues, EventTime, Excerpt, LogPosition, PrecedingTurn, Question, Selector, UnitId},
    null_fields::null_as_default,
};

/// A question to follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Subscribe")]
pub struct SubscribeRequest {
    /// The bank that is asked.
    pub bank: Bank,
    /// The question, at most 8,192 bytes.
    pub text: String,
    /// When it is asked, in RFC 3339; relative times such as "yesterday" need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The last turns of the running conversation, oldest first; at most 8,192 bytes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PrecedingTurn>>")]
    pub said_before: Vec<PrecedingTurn>,
    /// Most tokens (o200k) of the context; `recall.stop.most_tokens` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub most_tokens: Option<u32>,
    /// The turns that may be quoted: what it does not take is no candidate, and nothing is reached over it.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// Whether each excerpt has the metadata of its turn, as they were when the excerpt became evidence.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub metadata: bool,
    /// The id of the last progress that was received: what changed since is sent, where it is still known.
    /// The header `Last-Event-ID` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<String>,
    /// Instead of a stream, one answer in JSON: once something changed since `last_event_id`, or after this
    /// many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
}

impl SubscribeRequest {
    /// A question to follow from now on.
    #[must_use]
    pub fn of(question: Question) -> Self {
        let Question { bank, text, asked_at, asker, said_before, most_tokens, select, metadata, .. } = question;
        let (last_event_id, wait_ms) = (None, None);
        Self { bank, text, asked_at, asker, said_before, most_tokens, select, metadata, last_event_id, wait_ms }
    }
}

/// A unit of the evidence, without the scores of one asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscribedUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// Its participants, locations and time.
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// The parts that the context quotes, in ordinal order.
    pub excerpts: Vec<Excerpt>,
}

/// `snapshot`: a piece of the whole evidence. All pieces up to the next progress are the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Snapshot")]
pub struct EvidenceSnapshot {
    /// The rank of the piece's first unit, from 0.
    pub from: usize,
    /// The units, best first.
    pub units: Vec<Arc<SubscribedUnit>>,
}

/// `delta`: what changed in the evidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Delta")]
pub struct EvidenceDelta {
    /// Units that are evidence no more, with their ranks before; without words, as these may be forgotten by now.
    pub removed: Vec<UnitRank>,
    /// Units that are evidence now, with their ranks.
    pub added: Vec<RankedUnit>,
    /// Units of which other parts are quoted now, or that were no evidence for a while, as they are now, with their
    /// ranks.
    pub updated: Vec<RankedUnit>,
    /// Units that stand elsewhere among those that stay.
    pub moved: Vec<UnitMove>,
    /// The ids of the whole evidence now, best first.
    pub order: Vec<UnitId>,
}

/// A unit and its rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ranked")]
pub struct RankedUnit {
    /// The rank, from 0.
    pub rank: usize,
    /// The unit.
    pub unit: Arc<SubscribedUnit>,
}

/// The rank of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitRank {
    /// The rank, from 0.
    pub rank: usize,
    /// The unit.
    pub id: UnitId,
}

/// A unit that stands elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Moved")]
pub struct UnitMove {
    /// The unit.
    pub id: UnitId,
    /// Its rank before, from 0.
    pub from: usize,
    /// Its rank now.
    pub to: usize,
}

/// `progress`: the evidence as received is complete, and is what asking afresh gives as of these offsets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Progress")]
pub struct EvidenceProgress {
    /// The bank that is searched.
    pub bank: Bank,
    /// How many units the evidence has.
    pub units: usize,
    /// False when nothing supports the question.
    pub supported: bool,
    /// How sure recollection is that the memory supports an answer, 0 to 1.
    pub sufficiency: f64,
    /// The offsets that the evidence reflects.
    pub reflects: Vec<LogPosition>,
}

/// `reset`: what was received is void; of a question, a snapshot follows. `lagged`: the stream ends; subscribe again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Told")]
pub struct StreamNotice {
    /// Why.
    pub reason: String,
}

/// One answer instead of a stream: what changed since the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Polled")]
pub struct PollResponse {
    /// The `last_event_id` of the next request.
    pub id: String,
    /// The whole evidence, best first, where nothing or too little is known of what was received before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Vec<Arc<SubscribedUnit>>>,
    /// What changed; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<EvidenceDelta>,
    /// What it leads to.
    pub progress: EvidenceProgress,
}

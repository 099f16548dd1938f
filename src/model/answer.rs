//! What is asked and answered: scores, questions, plans, evidence and how it was reached.
//!
//! In: what recollection found. Out: values with one JSON form; scores in fixed point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, Channel, Cues, EventTime, SCHEMA_VERSION, UnitId, Usage};

/// A score in fixed point, so that no processor or summation order changes a comparison.
///
/// [`Score::ONE`] is 1.0: the square of the largest 16-bit component, so that the
/// integer product of two quantised unit vectors is their cosine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Score(pub i32);

impl Score {
    /// 1.0.
    pub const ONE: Self = Self(32_767 * 32_767);
    /// 0.0.
    pub const ZERO: Self = Self(0);

    /// The nearest fixed-point value; saturates outside ±2.
    #[must_use]
    pub fn from_f64(value: f64) -> Self {
        Self((value * f64::from(Self::ONE.0)).round() as i32)
    }

    /// The value as a float, for display and for the evidence formula.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}

/// One step along an edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Where it starts.
    pub from: UnitId,
    /// Where it ends.
    pub to: UnitId,
    /// Which kind of edge.
    pub channel: Channel,
    /// The edge's weight: its association score.
    pub weight: f64,
}

/// A question to one bank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The tenant that is asked.
    pub bank: Bank,
    /// The question as put.
    pub text: String,
    /// When it is asked; "yesterday" means nothing without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
}

/// Why a question got no evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The record or one of its headers is not as it should be.
    Invalid,
    /// The bank holds nothing.
    UnknownBank,
    /// The reply topic is not allowed.
    ReplyTopic,
    /// The deadline came first.
    Deadline,
    /// Something on our side; asking again may help.
    Failed,
}

impl RefusalCode {
    /// As in its JSON form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::UnknownBank => "unknown_bank",
            Self::ReplyTopic => "reply_topic",
            Self::Deadline => "deadline",
            Self::Failed => "failed",
        }
    }
}

/// What comes back instead of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Version of this schema: 1.
    pub schema: u32,
    /// For programs.
    pub code: RefusalCode,
    /// For people: where, why and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(code: RefusalCode, message: String) -> Self {
        Self { schema: SCHEMA_VERSION, code, message }
    }
}

/// An edge of the graph as the edges topic has it; its key is bank, channel, `a` and `b`, each
/// behind its length in 2 bytes, big-endian.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeRecord {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The tenant.
    pub bank: Bank,
    /// Which kind of edge.
    pub channel: Channel,
    /// The unit with the lesser id.
    pub a: UnitId,
    /// The other unit.
    pub b: UnitId,
    /// How strongly they are associated.
    pub weight: f64,
}

impl EdgeRecord {
    /// The key of the record.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let (a, b) = (self.a.0.to_be_bytes(), self.b.0.to_be_bytes());
        let mut key = Vec::with_capacity(64);
        for field in [self.bank.as_str().as_bytes(), self.channel.name().as_bytes(), &a, &b] {
            // The longest is a bank of 128 bytes.
            key.extend_from_slice(&(field.len() as u16).to_be_bytes());
            key.extend_from_slice(field);
        }
        key
    }
}

/// What a question is looked up by (paper, section 3.4 and the cue contract).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionCues {
    /// The wording, with nothing deleted; what is embedded.
    pub semantic_query: String,
    /// Two to six words or short phrases for the lexical channel.
    pub keywords: Vec<String>,
    /// Persons, places and time that the question names.
    #[serde(flatten)]
    pub cues: Cues,
    /// Who read them, where it was not the rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What makes a part familiar to a question: each term times its weight.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FamiliarityTerms {
    /// Cosine of the question and the best of its sentences.
    pub meaning: f64,
    /// Cosine of the question and the part with the turn before it, and the next part's.
    pub pair: f64,
    /// BM25 of the question's words in the part and the turns around it, over the bank's
    /// best; and those that stand in the part itself.
    pub words: f64,
    /// The same for synonyms of the question's words.
    pub synonyms: f64,
    /// Whether the one who speaks is the one who is named, more so after a question.
    pub speaker: f64,
    /// Whether it was said in a month that the question names.
    pub month: f64,
    /// Expressions of time, a title, its length, its place in the session; a part that asks
    /// counts less.
    pub marks: f64,
    /// What the turns around it lend it.
    pub around: f64,
    /// What the best of its session lend it.
    pub session: f64,
}

impl FamiliarityTerms {
    /// The sum of what is the part's own.
    #[must_use]
    pub fn own(&self) -> f64 {
        self.meaning + self.pair + self.words + self.synonyms + self.speaker + self.month + self.marks
    }
}

/// How a unit of an answer was reached (invariant 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reached_by", rename_all = "snake_case")]
pub enum Provenance {
    /// Recalled by the question itself.
    FirstHop {
        /// Through which index.
        channel: Channel,
        /// Place in that index's answer, from 1.
        rank: u32,
        /// That index's score.
        score: f64,
    },
    /// Recalled by the question itself: the most familiar part of the unit.
    Familiar {
        /// Place of that part among all parts of the bank, from 1.
        rank: u32,
        /// The part's score.
        score: f64,
        /// What the score is made of.
        terms: FamiliarityTerms,
    },
    /// Found from an anchor, along edges of one channel.
    Expansion {
        /// Along which edges.
        channel: Channel,
        /// Place among that channel's support, from 1.
        rank: u32,
        /// Familiarity, times the path's weight.
        score: f64,
        /// Familiarity with the question, by which it was chosen: how far the unit's best part
        /// lies on the way from the zero of the scale (0) to the bank's best (1).
        familiarity: f64,
        /// Match with the target, as the channel compares.
        target_match: f64,
        /// Number of edges walked.
        hops: u32,
        /// The edges, from the anchor on.
        path: Vec<Step>,
        /// Product of their weights.
        path_weight: f64,
    },
}

/// A part of a unit that the context quotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// The turn that it was taken from.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: String,
}

/// One unit of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceUnit {
    /// Which unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// What it is cued by.
    #[serde(flatten)]
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// What the context quotes of it, in ordinal order; never empty (decision 10).
    pub excerpts: Vec<Excerpt>,
    /// The evidence order ρ (paper, section 3.5).
    pub rho: f64,
    /// Whether the expansion started from it.
    pub anchor: bool,
    /// Every way in which it was reached; never empty.
    pub provenance: Vec<Provenance>,
}

/// How far into a log something reaches: every record before `next_offset` is included.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: u32,
    /// The first offset that is not included.
    pub next_offset: u64,
}

/// The target of a round: what is missing (paper, section 3.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// A short label.
    pub goal: String,
    /// A factual sentence, neither the answer nor the question reworded.
    pub sentence: String,
    /// Who, where and when.
    #[serde(flatten)]
    pub cues: Cues,
}

/// What the planner decided after looking at the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Whether a round of expansion follows.
    pub proceed: bool,
    /// How well the evidence covers the question, 0 to 1.
    pub sufficiency: f64,
    /// Why it goes on, or why it stops.
    pub reason: String,
    /// Where to expand from: units of the evidence, at most three.
    pub anchors: Vec<UnitId>,
    /// What to look for; absent when it stops.
    pub target: Option<Target>,
    /// Who planned, where it was not the rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One unit as a round of expansion saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Which unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// How it was reached.
    pub provenance: Provenance,
    /// Whether it entered the evidence.
    pub kept: bool,
}

/// One round of planning and expansion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// The plan.
    pub plan: Plan,
    /// How many units the walk reached that were not in the evidence yet.
    pub reached: usize,
    /// The best of them by channel, and which were kept.
    pub support: Vec<Seen>,
    /// The offsets that the walk reflects.
    pub reflects: Vec<Position>,
}

/// Everything that an answer is a function of, and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// What the question was looked up by.
    pub cues: QuestionCues,
    /// Hash of the question's vector and of its model.
    pub vector_hash: String,
    /// What a language model took for cues and plans, also when they were paid for before;
    /// absent where none is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<Usage>,
    /// The first hop, in the order of channel and rank.
    pub first_hop: Vec<Seen>,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
}

/// The answer of the memory: evidence, not yet words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The question.
    pub question: Question,
    /// At most the budget of units, best first.
    pub units: Vec<EvidenceUnit>,
    /// The units as an answerer reads them: by time, with dates and names.
    pub context: String,
    /// How well the evidence covers the question, 0 to 1.
    pub sufficiency: f64,
    /// False when nothing supports the question: the agent should know that it does not know.
    pub supported: bool,
    /// Why recollection ended.
    pub stop_reason: String,
    /// The offsets that the first hop reflects.
    pub reflects: Vec<Position>,
    /// How it came about.
    pub trace: Trace,
}

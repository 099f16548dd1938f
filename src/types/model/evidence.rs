//! Questions and answers: scores, plans, evidence and how it was reached.
//!
//! In: results of recollection. Out: values with one JSON form; scores in fixed point. A field of an
//! answer is a field of [`Evidence`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AskedForm, AskedPeriod, Bank, Channel, Cues, EventTime, FlatComparison, Metadata, ModelUsage, SCHEMA_VERSION,
    Selector, TextRange, UnitId,
};
use crate::null_fields::null_as_default;

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
#[schemars(rename = "Step")]
pub struct EdgeStep {
    /// The unit at which the step starts.
    pub from: UnitId,
    /// The unit at which the step ends.
    pub to: UnitId,
    /// The kind of edge.
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
    /// The question, as the caller wrote it.
    pub text: String,
    /// When it is asked; relative times such as "yesterday" need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The last turns of the running conversation, oldest first; at most 8,192 bytes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub said_before: Vec<PrecedingTurn>,
    /// Most tokens (o200k) of the context; `recall.stop.most_tokens` without it. What would be quoted without a limit
    /// is quoted as far as it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub most_tokens: Option<u32>,
    /// How many of the best parts that are not quoted the trace shows; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 200))]
    pub near: Option<u32>,
    /// Whether the trace of each round shows the units that the walk reached, and the edges to them.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub walk: bool,
    /// Whether rankings without the graph stand beside the answer.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub compare: bool,
    /// The profile whose recall settings apply, in place of those of the pipeline file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The turns that may be quoted. What it does not take is no candidate, and nothing is reached over it.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// Whether each excerpt of the answer has the metadata of its turn.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub metadata: bool,
}

/// A turn of the conversation in which a question is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SaidBefore")]
pub struct PrecedingTurn {
    /// Who said it.
    pub speaker: String,
    /// The words.
    pub text: String,
}

impl Question {
    /// A question without any of the optional fields.
    #[must_use]
    pub fn new(bank: Bank, text: impl Into<String>) -> Self {
        Self {
            bank,
            text: text.into(),
            asked_at: None,
            asker: None,
            said_before: Vec::new(),
            most_tokens: None,
            near: None,
            walk: false,
            compare: false,
            profile: None,
            select: None,
            metadata: false,
        }
    }

    /// The selector of the turns that may be quoted, unless that takes all.
    #[must_use]
    pub fn narrowing(&self) -> Option<&Selector> {
        self.select.as_ref().filter(|select| !select.takes_all())
    }
}

/// Why a question got no evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The record or one of its headers is wrong.
    Invalid,
    /// The bank holds nothing.
    UnknownBank,
    /// A record of the bank cannot be read; the bank answers nothing until that is mended.
    Quarantined,
    /// A hold covers the bank: nothing may be deleted there.
    Held,
    /// The reply topic is not allowed.
    ReplyTopic,
    /// The deadline passed before the answer was ready.
    Deadline,
    /// Too many questions wait already; a retry in a moment may succeed.
    Busy,
    /// The endpoint of the model does not answer; a retry succeeds once it does.
    EndpointAway,
    /// The service failed; a retry may succeed.
    Failed,
}

impl RefusalCode {
    /// The name in its JSON form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::UnknownBank => "unknown_bank",
            Self::Quarantined => "quarantined",
            Self::Held => "held",
            Self::ReplyTopic => "reply_topic",
            Self::Deadline => "deadline",
            Self::Busy => "busy",
            Self::EndpointAway => "endpoint_away",
            Self::Failed => "failed",
        }
    }
}

/// The reply to a question that gets no evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Refusal")]
pub struct QuestionRefusal {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The reason, for programs.
    pub code: RefusalCode,
    /// The reason, for people: where, why and what to do.
    pub message: String,
}

impl QuestionRefusal {
    /// A refusal.
    #[must_use]
    pub fn new(code: RefusalCode, message: String) -> Self {
        Self { schema: SCHEMA_VERSION, code, message }
    }
}

/// A record of the edges topic. Its key is bank, channel, `a` and `b`, each after its length in 2
/// bytes, big-endian.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeRecord {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The tenant.
    pub bank: Bank,
    /// The kind of edge.
    pub channel: Channel,
    /// The unit with the lesser id.
    pub a: UnitId,
    /// The other unit.
    pub b: UnitId,
    /// How strongly the units are associated.
    pub weight: f64,
}

impl EdgeRecord {
    /// The key of the record.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let (a, b) = (self.a.0.to_be_bytes(), self.b.0.to_be_bytes());
        let mut key = Vec::with_capacity(64);
        for field in [self.bank.as_str().as_bytes(), self.channel.name().as_bytes(), &a, &b] {
            // The longest field is a bank of 128 bytes.
            key.extend_from_slice(&(field.len() as u16).to_be_bytes());
            key.extend_from_slice(field);
        }
        key
    }
}

/// The cues of a question (paper, section 3.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionCues {
    /// The text that is embedded: the whole wording.
    pub semantic_query: String,
    /// Two to six words or short phrases for the lexical channel.
    pub keywords: Vec<String>,
    /// Persons, places and time that the question names.
    #[serde(flatten)]
    pub cues: Cues,
    /// What read the cues, if it was not the rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The terms of a familiarity score, each times its weight.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FamiliarityTerms {
    /// Cosine of the question and the part's best sentence.
    pub meaning: f64,
    /// Cosine of the question and the part with the turn before it, and of the next part with this one.
    pub pair: f64,
    /// BM25 of the question's words in the part and the turns around it, divided by the bank's best.
    pub words: f64,
    /// Whether a person named in the question speaks.
    pub speaker: f64,
    /// Whether it was said, or happens, at the time that the question names.
    pub month: f64,
    /// Expressions of time and names, minus a deduction for a part that asks.
    pub marks: f64,
    /// A share of the scores of the turns around it.
    pub around: f64,
    /// A share of the scores of its session's best parts.
    pub session: f64,
    /// What a reranker adds; absent where it adds nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rerank: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl FamiliarityTerms {
    /// The sum of the terms without the shares of other parts and what a reranker adds.
    #[must_use]
    pub fn own_sum(&self) -> f64 {
        self.meaning + self.pair + self.words + self.speaker + self.month + self.marks
    }
}

/// How a unit of an answer was reached (invariant 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reached_by", rename_all = "snake_case")]
pub enum Provenance {
    /// Found by the first hop, in one index.
    FirstHop {
        /// Through which index.
        channel: Channel,
        /// Rank in that index, from 1.
        rank: u32,
        /// That index's score.
        score: f64,
    },
    /// Found by the first hop, by the most familiar part of the unit.
    Familiar {
        /// Rank of that part among all parts of the bank, from 1.
        rank: u32,
        /// The part's score.
        score: f64,
        /// The score on the scale of the question; absent unless the question asks for `near` or `walk`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<f64>,
        /// The terms of the score.
        terms: FamiliarityTerms,
    },
    /// Found by the expansion: from an anchor, along edges of one channel.
    Expansion {
        /// Along which edges.
        channel: Channel,
        /// Rank in that channel's support, from 1.
        rank: u32,
        /// Familiarity times the weight of the path.
        score: f64,
        /// Familiarity with the question, by which it was chosen: the unit's best part on the scale
        /// from its zero (0) to the bank's best part (1).
        familiarity: f64,
        /// Match with the target, as the channel compares.
        target_match: f64,
        /// Number of edges walked.
        hops: u32,
        /// The edges, from the anchor on.
        path: Vec<EdgeStep>,
        /// Product of their weights.
        path_weight: f64,
    },
}

/// A part of a unit that the context quotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// The id of the turn.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The text, captions included. A passage that continues a table or code begins with the lines that say so.
    pub text: String,
    /// Where a passage of a long turn lies in its text, in bytes; absent for a whole turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<TextRange>,
    /// The metadata of its turn, if the question asks for it and the turn has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// One unit of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// Its participants, locations and time.
    #[serde(flatten)]
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// The parts that the context quotes, in ordinal order; never empty (decision 10).
    pub excerpts: Vec<Excerpt>,
    /// The evidence order ρ (paper, section 3.5).
    pub rho: f64,
    /// Whether the expansion started from it.
    pub anchor: bool,
    /// Every way in which it was reached; never empty.
    pub provenance: Vec<Provenance>,
}

/// A position in a log: every record before `next_offset` is included.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Position")]
pub struct LogPosition {
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

/// The decision of the planner about the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Whether a round of expansion follows.
    pub proceed: bool,
    /// How well the evidence covers the question, 0 to 1.
    pub sufficiency: f64,
    /// Why it continues or stops.
    pub reason: String,
    /// The units of the evidence to expand from, at most three.
    pub anchors: Vec<UnitId>,
    /// What to look for; absent if it stops.
    pub target: Option<Target>,
    /// What planned, if it was not the rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One unit that a first hop or a round of expansion considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
pub struct ConsideredUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// How it was reached.
    pub provenance: Provenance,
    /// Whether it was added to the evidence.
    pub kept: bool,
}

/// One round of planning and expansion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Round")]
pub struct RecallRound {
    /// The plan.
    pub plan: Plan,
    /// How many units the walk reached that were not in the evidence yet.
    pub reached: usize,
    /// The best of them by channel, and which were kept.
    pub support: Vec<ConsideredUnit>,
    /// The offsets that the walk reflects.
    pub reflects: Vec<LogPosition>,
    /// What the walk reached; absent unless the question asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkTrace>,
}

/// Which parts of a bank the first hop scored in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ScoredParts")]
pub enum ScoringScope {
    /// Every part of the bank.
    EveryPart,
    /// In a large bank, those whose first estimate was among the best.
    Candidates,
}

/// The scale on which a question compares the parts of a bank: a share is 0 at `zero` and 1 at `best`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scale")]
pub struct FamiliarityScale {
    /// The score of the bank's background.
    pub zero: f64,
    /// The score of the bank's best part.
    pub best: f64,
    /// The share that a further part would have to reach, after the last part that the first hop quotes; absent where
    /// the first hop is by channels, or where persons and assistants share the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<f64>,
    /// The share that a unit must reach for a round to add it; absent where no round adds any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// The parts of the bank.
    pub parts_total: u64,
    /// Which of them were scored.
    pub scored: ScoringScope,
}

/// A part that was scored and is not quoted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearMiss {
    /// Its unit.
    pub id: UnitId,
    /// What the unit says.
    pub restatement: String,
    /// Its index among the unit's parts.
    pub part: u32,
    /// The turn that it was taken from.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words.
    pub text: String,
    /// Its rank among all parts that were scored, from 1.
    pub rank: u32,
    /// Its score.
    pub score: f64,
    /// The score on the scale of the question.
    pub share: f64,
    /// The terms of the score.
    pub terms: FamiliarityTerms,
}

/// What became of a unit that a walk met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WalkState")]
pub enum WalkUnitState {
    /// The walk began at it.
    Anchor,
    /// It enters the evidence.
    Kept,
    /// It was among the best of its channel, and its familiarity is below the floor.
    Considered,
    /// It was in the evidence already.
    Known,
    /// It was not among the best of its channel.
    Reached,
}

/// A unit that a walk met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WalkUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says, cut to 80 characters.
    pub label: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The share of its best part; absent where none of its parts is among those that the first hop compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What became of it.
    pub state: WalkUnitState,
}

/// The units that a walk met, at most 500, and the edges of the best paths to them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Walk")]
pub struct WalkTrace {
    /// The units: anchors first, then by what became of them, the most familiar first.
    pub units: Vec<WalkUnit>,
    /// The edges between them.
    pub edges: Vec<EdgeStep>,
    /// How many further units were met.
    pub truncated: u64,
}

/// What a reranker said of the most familiar parts, each read together with the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reranked")]
pub struct RerankResult {
    /// The name of its model.
    pub model: String,
    /// Hash of the model's files.
    pub model_hash: String,
    /// How much the logits count (`recall.rerank.weight`).
    pub weight: f64,
    /// The logit of each part that was read, the most familiar part first. Empty where the answer was made without
    /// the reranker.
    pub logits: Vec<PartLogit>,
    /// Why the answer was made without the reranker; absent where it was made with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How well a part answers the question, as a reranker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartLogit {
    /// The unit that holds the part.
    pub id: UnitId,
    /// Its index among the unit's parts.
    pub part: u32,
    /// The model's logit.
    pub logit: f64,
}

/// How an answer was found: everything that it is a function of, and each step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// The cues of the question.
    pub cues: QuestionCues,
    /// Whom "I" and "my" mean, where the question says them: its asker, or the bank's only person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The time that the question names; absent if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<AskedPeriod>,
    /// Whose words the question asks for; absent where no assistant speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<AskedForm>,
    /// Hash of the question's vector and of its model.
    pub vector_hash: String,
    /// Language-model use of cues and plans, cached responses included; absent without a language
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<ModelUsage>,
    /// The scale of the scores; absent where the bank has no parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<FamiliarityScale>,
    /// What the reranker said; absent where the pipeline names none, and for a question that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankResult>,
    /// The units of the first hop, by channel and rank.
    pub first_hop: Vec<ConsideredUnit>,
    /// The best parts that are not quoted, best first, as many as the question asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<NearMiss>,
    /// The rounds, in order.
    pub rounds: Vec<RecallRound>,
}

/// What a context costs, in o200k tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextTokens {
    /// Its tokens.
    pub spent: u32,
    /// The most that it may have.
    pub most: u32,
    /// What the most familiar part that is not quoted would add; absent where all of the bank is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// The memory's answer to a question: evidence for an answerer, not a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The question.
    pub question: Question,
    /// The units, best first; at most `recall.budget`.
    pub units: Vec<EvidenceUnit>,
    /// The units as text for an answerer: by time, with dates and names.
    pub context: String,
    /// The ids of the turns of each quote of the context, in its order: one turn, or those of a unit that is quoted
    /// whole.
    #[serde(default)]
    pub context_turns: Vec<Vec<String>>,
    /// What the context costs.
    #[serde(default)]
    pub tokens: ContextTokens,
    /// What the asker asked of the assistant, quoted at the end of the context in the order of time; those of the bank's
    /// only person where no asker is named. Absent where there is nothing, and with `recall.profile = false`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<StandingInstruction>,
    /// Later words of the asker, or of the bank's only person, that stand in place of words that the context quotes; it
    /// quotes them, too. Absent where there is nothing, and with `recall.profile = false`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseding: Vec<SupersedingStatement>,
    /// How sure recollection is that the memory supports an answer, 0 to 1.
    pub sufficiency: f64,
    /// False when nothing was found that supports the question. A hint: what is quoted may still answer it.
    pub supported: bool,
    /// Why recollection stopped.
    pub stop_reason: String,
    /// The offsets that the first hop reflects.
    pub reflects: Vec<LogPosition>,
    /// How the answer was found.
    pub trace: Trace,
    /// Of an answer about the past, on a log in a directory: how many turns the bank held then and were forgotten
    /// since, so that the answer does not show them. Absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<u64>,
    /// Rankings without the graph; absent unless the question asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flat: Option<FlatComparison>,
    /// That the bank or the asker is not known here: one that is new, or a name that is misspelled. Absent where both
    /// are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<EvidenceNotice>,
}

/// What a person asked of the assistant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StandingInstruction {
    /// The turn that says it.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words that say it.
    pub text: String,
}

/// Words that stand in place of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SupersedingStatement {
    /// A quoted turn whose words are over.
    pub supersedes: String,
    /// The turn that says what holds.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words that say it.
    pub text: String,
}

/// What a question names that the memory does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Notice")]
pub struct EvidenceNotice {
    /// What is not known, for programs.
    pub code: NoticeCode,
    /// The same for people.
    pub message: String,
}

/// What a memory does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCode {
    /// The bank holds nothing.
    EmptyBank,
    /// The asker does not speak in the bank. A question in the first person has no evidence then.
    UnknownAsker,
}

//! What an evaluation found: the stable form that `--json` prints and a report reads.
//!
//! In: nothing; these are the nouns. Out: values with one JSON form
//! (`schemas/eval.v1.json`). Shares are fractions from 0 to 1, times are in the unit that
//! their name ends with, and a figure that nothing was measured for is null, never 0.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::generated_answer::Spoken;
use crate::model::{Bank, Evidence, UnitId};

/// Version of the JSON form.
pub const EVAL_SCHEMA_VERSION: u32 = 1;

/// One evaluation: the figures that are printed, and every question behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The figures.
    pub result: EvalResult,
    /// Every question that was asked, in the order of the file.
    pub questions: Vec<QuestionResult>,
}

/// The figures of one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalResult {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The format of the file: `locomo`, `longmemeval` or `evermembench`.
    pub dataset: String,
    /// The name of the file, without its directory.
    pub file: String,
    /// The profile of the pipeline.
    pub profile: String,
    /// Over the questions whose answer the dialogue supports (LoCoMo: categories 1 to 4).
    #[serde(flatten)]
    pub overall: Figures,
    /// How well the sufficiency figure tells questions that the dialogue supports from those
    /// that it does not: the chance that one of the former has the higher figure. Null
    /// without questions of both kinds.
    pub sufficiency_auc: Option<f64>,
    /// The same figures by the dataset's categories, unsupported ones included.
    pub by_category: BTreeMap<String, Figures>,
    /// The same figures by conversation, over the supported questions.
    pub by_conversation: BTreeMap<String, Figures>,
    /// The same figures by whether a second round ran, over the supported questions.
    pub by_second_round: BySecondRound,
    /// What making the memory took.
    pub build: Build,
    /// How long a question took.
    pub latency_ms: Latency,
    /// What plans took of a language model, as the paper counts its controller.
    pub reading: ModelUse,
    /// The settings of the pipeline, all of them.
    pub config: serde_json::Value,
    /// What was damaged or left out in the file, by kind; empty for a sound file.
    pub problems: BTreeMap<String, Problem>,
    /// Other retrievers over the same memory, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Row>,
    /// The same system with one part taken away, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablations: Vec<Row>,
    /// Other ways to make vectors of a turn, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<VectorRow>,
    /// The same questions to one bank of several sizes, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeRow>,
}

/// All conversations merged into one bank of some size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRow {
    /// Units that were asked for; the bank holds fewer where the turns ended before.
    pub asked_units: u64,
    /// Units in the bank.
    pub units_held: u64,
    /// Turns in it.
    pub turns: u64,
    /// Over the supported questions of the conversations that the least size has room for.
    #[serde(flatten)]
    pub overall: Figures,
    /// The same figures by category.
    pub by_category: BTreeMap<String, Figures>,
    /// The same where a round finds nothing along the edges.
    pub without_graph: Figures,
    /// Likewise, by category.
    pub without_graph_by_category: BTreeMap<String, Figures>,
    /// How long a question took.
    pub latency_ms: Latency,
}

/// One way to make vectors of a turn, by the whole path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VectorRow {
    /// The model.
    pub model: String,
    /// What is embedded.
    pub way: String,
    /// Vectors that the memory keeps for a turn, on average; those of whole units count.
    pub vectors_per_turn: f64,
    /// Over the questions whose answer the dialogue supports.
    #[serde(flatten)]
    pub overall: Figures,
    /// Seconds from the file to the last edge, the model's loading included.
    pub ingest_seconds: f64,
    /// The same over the seconds of one vector a turn at full precision, taken just before.
    pub ingest_over_raw: f64,
}

/// Figures over a set of questions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Questions that were asked.
    pub questions: u64,
    /// Those whose evidence turns are known, over which the shares below are averaged.
    pub scored: u64,
    /// Mean share of a question's evidence turns that were delivered.
    pub evidence_recall: Option<f64>,
    /// Share of the questions all of whose evidence turns were delivered.
    pub full_evidence: Option<f64>,
    /// Mean o200k tokens of the context, exactly as an answerer gets it.
    pub context_tokens: Option<f64>,
    /// Mean units in the context.
    pub units: Option<f64>,
    /// Evidence recall of the first hop alone.
    pub first_hop_recall: Option<f64>,
    /// Full evidence of the first hop alone.
    pub first_hop_full_evidence: Option<f64>,
    /// Context tokens of the first hop alone.
    pub first_hop_tokens: Option<f64>,
    /// Share of the questions for which a second round ran.
    pub second_round_rate: Option<f64>,
    /// Mean sufficiency figure.
    pub sufficiency: Option<f64>,
    /// Token F1 of the answers; null without a language model.
    pub f1: Option<f64>,
    /// BLEU-1 of the answers; null without a language model.
    pub bleu1: Option<f64>,
    /// Share of the answers that the judge accepted; null without a language model.
    pub judge_accuracy: Option<f64>,
}

/// Figures by whether a round of expansion ran after the first hop.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BySecondRound {
    /// It ran.
    pub ran: Figures,
    /// Recollection stopped at the first hop.
    pub stopped: Figures,
}

/// What making the memory took, over all conversations.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Conversations, each in a bank of its own.
    pub conversations: u64,
    /// Turns that were taken.
    pub turns: u64,
    /// Turns that were rejected; the dead letters say why.
    pub rejected: u64,
    /// Units that the memory held at the end.
    pub units: u64,
    /// From the first turn read to the last record in the memory.
    pub seconds: f64,
    /// Turns per second over that time.
    pub turns_per_second: f64,
    /// Calls of a language model.
    pub llm_calls: u64,
    /// Tokens of those calls, prompts and completions.
    pub llm_tokens: u64,
}

/// How long a question took, in milliseconds, embedding included.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Half of the questions took at most this.
    pub p50: f64,
    /// 99 of 100 took at most this.
    pub p99: f64,
}

/// Calls of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelUse {
    /// How many calls.
    pub llm_calls: u64,
    /// Tokens of those calls, prompts and completions.
    pub llm_tokens: u64,
}

/// A kind of damage and where it was met.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// How often.
    pub count: u64,
    /// What was done about it.
    pub treatment: String,
    /// The first five, with their place in the file.
    pub examples: Vec<String>,
}

/// One row of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// What it is called on the command line.
    pub name: String,
    /// What it does, in a sentence, with its source.
    pub about: String,
    /// What is retrieved: `units` or `turns`.
    pub over: String,
    /// How much it may deliver.
    pub budget: Budget,
    /// Over the supported questions.
    #[serde(flatten)]
    pub overall: Figures,
    /// The same figures by category.
    pub by_category: BTreeMap<String, Figures>,
}

/// How much a row may deliver for one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "most", rename_all = "snake_case")]
pub enum Budget {
    /// So many units or turns.
    Units(usize),
    /// As many as fit into so many tokens.
    Tokens(usize),
    /// As many units as recollection returned for the same question.
    Matched,
    /// All there is.
    Everything,
}

/// One question that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionResult {
    /// Identity in the file: `conv-26#12`, counted from 0.
    pub id: String,
    /// The conversation.
    pub conversation: String,
    /// The bank that was asked.
    pub bank: Bank,
    /// The dataset's category, by its name.
    pub category: String,
    /// Whether the dialogue supports an answer; absent when the category is not known.
    pub supported: Option<bool>,
    /// The reference answer.
    pub reference: Option<String>,
    /// Each evidence turn and what became of it; empty when the file names none.
    pub pieces: Vec<Piece>,
    /// o200k tokens of the context.
    pub context_tokens: usize,
    /// Whether a round of expansion ran.
    pub second_round: bool,
    /// o200k tokens of the first hop's context.
    pub first_hop_tokens: usize,
    /// Milliseconds until the evidence was there.
    pub latency_ms: f64,
    /// The answer in words with its marks, where a language model was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken: Option<Spoken>,
    /// What a language model took for this question: cues, plans, the answer and its verdict.
    #[serde(default)]
    pub llm: ModelUse,
    /// The evidence with its whole trace.
    pub answer: Evidence,
}

impl QuestionResult {
    /// The share of evidence turns that were delivered; absent when none are known.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        share(&self.pieces, |p| p.delivered)
    }

    /// The same of the first hop alone.
    #[must_use]
    pub fn first_hop_recall(&self) -> Option<f64> {
        share(&self.pieces, |p| p.delivered_by_first_hop)
    }
}

/// One evidence turn of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The turn, as the source names it.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// What was said, captions included.
    pub text: String,
    /// Whether the context delivers it.
    pub delivered: bool,
    /// Whether the first hop alone delivers it.
    pub delivered_by_first_hop: bool,
    /// The units of the memory that name it as a source, delivered or not.
    pub held_by: Vec<UnitId>,
}

fn share(pieces: &[Piece], met: impl Fn(&Piece) -> bool) -> Option<f64> {
    (!pieces.is_empty()).then(|| pieces.iter().filter(|p| met(p)).count() as f64 / pieces.len() as f64)
}

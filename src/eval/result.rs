//! The figures of an evaluation: the stable form that `--json` prints and a report reads.
//!
//! These types have no logic of the evaluation. They have one JSON form
//! (`schemas/eval.v1.json`). Shares are fractions from 0 to 1, times are in the unit that
//! their name ends with, and a figure that was not measured is null, never 0.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence_loss::EvidenceLoss;
use types::model::{Bank, Evidence, RerankResult, Trace, UnitId};

/// Version of the JSON form.
pub const EVAL_SCHEMA_VERSION: u32 = 1;

/// One evaluation: the printed figures, and every question behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalRun {
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
    /// The format of the file: `locomo`, `realtalk`, `longmemeval` or `evermembench`.
    pub dataset: String,
    /// The name of the file, without its directory.
    pub file: String,
    /// The profile of the pipeline.
    pub profile: String,
    /// Figures over the questions whose answer the dialogue supports (LoCoMo: categories 1 to 4).
    #[serde(flatten)]
    pub overall: EvalFigures,
    /// How well sufficiency separates questions that the dialogue supports from those that it
    /// does not, as an AUC: the probability that a supported question has the higher figure.
    /// Null without questions of both kinds.
    pub sufficiency_auc: Option<f64>,
    /// The same figures by the dataset's categories, unsupported ones included.
    pub by_category: BTreeMap<String, EvalFigures>,
    /// The same figures by conversation, over the supported questions.
    pub by_conversation: BTreeMap<String, EvalFigures>,
    /// The same figures by whether a second round ran, over the supported questions.
    pub by_second_round: SecondRoundFigures,
    /// The cost of building the memory.
    pub build: BuildCost,
    /// Latency of the questions.
    pub latency_ms: Latency,
    /// Language-model use of the plans, as the paper counts its controller.
    pub reading: ModelUse,
    /// How the reranker took part in the answers; absent where the pipeline names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<RerankerUse>,
    /// Answers of the language model from different contexts, over the same questions, with `--answers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReadingRow>,
    /// All settings of the pipeline.
    pub config: serde_json::Value,
    /// What was damaged or left out in the file, by kind; empty for an undamaged file.
    pub problems: BTreeMap<String, DamageCount>,
    /// Baselines: other retrievers over the same memory, with `--baselines`.
    #[serde(rename = "rivals", default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<ComparisonRow>,
    /// The same system without one of its parts, with `--ablate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablations: Vec<ComparisonRow>,
    /// Other ways to make vectors of a turn, with `--vectors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<VectorRow>,
    /// The same questions to one bank of several sizes, with `--sizes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeRow>,
}

/// How a reranker took part in answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerankerUse {
    /// The name of its model.
    pub model: String,
    /// Hash of the model's files.
    pub model_hash: String,
    /// Answers that it ordered.
    pub answers: u64,
    /// Answers that were made without it.
    pub without: u64,
    /// Why the first of them was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RerankerUse {
    /// The reranker's use in answers with these traces; `None` if none of them had a reranker.
    pub(crate) fn of<'t>(traces: impl Iterator<Item = &'t Trace>) -> Option<Self> {
        let all: Vec<&RerankResult> = traces.filter_map(|trace| trace.rerank.as_ref()).collect();
        let RerankResult { model, model_hash, .. } = all.first()?;
        let problem = all.iter().find_map(|reranked| reranked.problem.clone());
        let without = all.iter().filter(|reranked| reranked.problem.is_some()).count() as u64;
        let answers = all.len() as u64 - without;
        Some(Self { model: model.clone(), model_hash: model_hash.clone(), answers, without, problem })
    }
}

/// Answers from one kind of context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadingRow {
    /// Whose contexts: a profile, or `flat-mixture`, which has as many tokens as recollection for the same question.
    pub name: String,
    /// Supported questions that were answered from every row's context; the figures are over them.
    pub questions: u64,
    /// Mean o200k tokens of the contexts.
    pub context_tokens: Option<f64>,
    /// Token F1.
    pub f1: Option<MeanInterval>,
    /// BLEU-1.
    pub bleu1: Option<MeanInterval>,
    /// Share of the answers that another model accepted; null without one.
    pub judge_accuracy: Option<f64>,
}

/// A mean with the middle 95 % of its bootstrap resamples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Interval")]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// All conversations merged into one bank of some size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRow {
    /// The requested size in units; the bank holds fewer when there are not enough turns.
    pub asked_units: u64,
    /// Units in the bank.
    pub units_held: u64,
    /// Turns in the bank.
    pub turns: u64,
    /// Figures over the supported questions of the conversations that fit into the smallest size.
    #[serde(flatten)]
    pub overall: EvalFigures,
    /// The same figures by category.
    pub by_category: BTreeMap<String, EvalFigures>,
    /// The same figures when a round follows no edges.
    pub without_graph: EvalFigures,
    /// Those figures by category.
    pub without_graph_by_category: BTreeMap<String, EvalFigures>,
    /// Latency of the questions.
    pub latency_ms: Latency,
    /// The same figures when edges lead to no candidate of the first hop.
    pub without_links: EvalFigures,
    /// The same figures when every part of the bank gets the full score.
    pub every_part: EvalFigures,
    /// Latency of the questions then.
    pub every_part_latency_ms: Latency,
}

/// One way to make vectors of a turn, measured through the whole path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VectorRow {
    /// The model.
    pub model: String,
    /// What is embedded.
    pub way: String,
    /// Mean vectors that the memory keeps for a turn, vectors of whole units included.
    pub vectors_per_turn: f64,
    /// Figures over the questions whose answer the dialogue supports.
    #[serde(flatten)]
    pub overall: EvalFigures,
    /// Seconds from the file to the last edge, loading of the model included.
    pub ingest_seconds: f64,
    /// Those seconds divided by the seconds of one vector a turn at full precision, measured just before.
    pub ingest_over_raw: f64,
}

/// Figures over a set of questions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Figures")]
pub struct EvalFigures {
    /// Questions that were asked.
    pub questions: u64,
    /// Questions whose evidence turns are known; the shares below are means over them.
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
    /// Mean sufficiency.
    pub sufficiency: Option<f64>,
    /// Token F1 of the answers; null without a language model.
    pub f1: Option<f64>,
    /// BLEU-1 of the answers; null without a language model.
    pub bleu1: Option<f64>,
    /// Share of the answers that the judge accepted; null without a second language model that judges.
    pub judge_accuracy: Option<f64>,
}

/// Figures by whether a round of expansion ran after the first hop.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BySecondRound")]
pub struct SecondRoundFigures {
    /// The round ran.
    pub ran: EvalFigures,
    /// Recollection stopped at the first hop.
    pub stopped: EvalFigures,
}

/// The cost of building the memory, over all conversations.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Build")]
pub struct BuildCost {
    /// Conversations, each in its own bank.
    pub conversations: u64,
    /// Turns that were ingested.
    pub turns: u64,
    /// Turns that were rejected; the dead letters say why.
    pub rejected: u64,
    /// Units in the memory at the end.
    pub units: u64,
    /// Seconds from the first turn read to the last record in the memory.
    pub seconds: f64,
    /// Turns per second over that time.
    pub turns_per_second: f64,
    /// Calls of a language model.
    pub llm_calls: u64,
    /// Tokens of those calls, prompts and completions.
    pub llm_tokens: u64,
}

/// Latency of the questions in milliseconds, embedding included.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// Use of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelUse {
    /// Calls.
    pub llm_calls: u64,
    /// Tokens of those calls, prompts and completions.
    pub llm_tokens: u64,
}

/// A kind of damage and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct DamageCount {
    /// How often it was found.
    pub count: u64,
    /// What the evaluation does about it.
    pub treatment: String,
    /// The first five, with their places in the file.
    pub examples: Vec<String>,
}

/// One row of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Row")]
pub struct ComparisonRow {
    /// Name of the baseline or ablation.
    pub name: String,
    /// What it does, in a sentence, with its source.
    pub about: String,
    /// What it retrieves: `units` or `turns`.
    pub over: String,
    /// How much it may deliver.
    pub budget: RowBudget,
    /// Figures over the supported questions.
    #[serde(flatten)]
    pub overall: EvalFigures,
    /// The same figures by category.
    pub by_category: BTreeMap<String, EvalFigures>,
}

/// How much a row may deliver for one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "most", rename_all = "snake_case")]
#[schemars(rename = "Budget")]
pub enum RowBudget {
    /// At most this number of units or turns.
    Units(usize),
    /// As many as fit into this number of tokens.
    Tokens(usize),
    /// As many units as recollection returned for the same question.
    Matched,
    /// The whole dialogue.
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
    /// The evidence turns, each delivered or not; empty when the file names none.
    pub pieces: Vec<EvidenceTurn>,
    /// o200k tokens of the context.
    pub context_tokens: usize,
    /// Whether a round of expansion ran.
    pub second_round: bool,
    /// o200k tokens of the first hop's context.
    pub first_hop_tokens: usize,
    /// Milliseconds from the question to its evidence.
    pub latency_ms: f64,
    /// The language model's answer in words, with its scores, when answers are requested.
    #[serde(rename = "spoken", default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedAnswer>,
    /// Language-model use for this question: cues, plans, the answer and its verdict.
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

    /// The same share for the first hop alone.
    #[must_use]
    pub fn first_hop_recall(&self) -> Option<f64> {
        share(&self.pieces, |p| p.delivered_by_first_hop)
    }
}

/// One evidence turn of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceTurn {
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
    /// Where it was lost; absent if the context delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<EvidenceLoss>,
}

/// A language model's answer in words, and its scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratedAnswer {
    /// The model's answer.
    pub answer: String,
    /// Token F1 against the reference; absent without one.
    pub f1: Option<f64>,
    /// BLEU-1 against the reference; absent without one.
    pub bleu1: Option<f64>,
    /// Whether the judge accepted it; absent without a judge or a reference.
    pub correct: Option<bool>,
}

fn share(pieces: &[EvidenceTurn], met: impl Fn(&EvidenceTurn) -> bool) -> Option<f64> {
    (!pieces.is_empty()).then(|| pieces.iter().filter(|p| met(p)).count() as f64 / pieces.len() as f64)
}

//! A report as the console reads it: one file with the figures, and one for each question.
//!
//! Only types, each with one JSON form (`schemas/report.v1.json`, `schemas/report-question.v1.json`). Shares are
//! fractions from 0 to 1; what was not measured is null. `report.json` has one line per question and no answer, so that
//! it stays small; an answer with its trace is in the question's own file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence_loss::{EvidenceLoss, LossStage};
use types::model::{Evidence, UnitId};

/// Version of both JSON forms.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// The figures of an evaluation, and a line for each of its questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct EvalReport {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The benchmark: `locomo`, `realtalk`, `longmemeval`, `evermembench`, `beam` or `realmem`.
    pub dataset: String,
    /// The name of its file or directory.
    pub file: String,
    /// The profile of the pipeline.
    pub profile: String,
    /// When a turn of evidence counts as found.
    pub found_means: FoundCriterion,
    /// Recall against tokens: recollection, its first hop alone, and what it is compared with.
    pub retrievers: Vec<Retriever>,
    /// Figures over the questions that have an answer.
    pub overall: CategoryFigures,
    /// The same figures by category, questions without an answer included.
    pub categories: Vec<CategoryFigures>,
    /// Every question that was asked, in the order of the file.
    pub questions: Vec<QuestionLine>,
}

/// When a turn of evidence counts as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FoundMeans")]
pub enum FoundCriterion {
    /// Every sentence of it with a content word is quoted.
    Whole,
    /// At least 6 of its tokens are quoted, or all of a shorter turn.
    Touched,
}

/// Recall and tokens of one way to retrieve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retriever {
    /// Its name.
    pub name: String,
    /// What kind of way it is.
    pub kind: RetrieverKind,
    /// Mean o200k tokens of a context.
    pub tokens: f64,
    /// Mean share of a question's evidence turns that are found.
    pub recall: ReportMean,
}

/// What kind of way to retrieve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetrieverKind {
    /// The whole recollection.
    Recollection,
    /// Recollection without its walk along edges.
    FirstHop,
    /// Another retriever over the same memory.
    Baseline,
    /// Recollection without one of its parts.
    Ablation,
}

/// A mean over questions, with the middle 95 % of its bootstrap resamples where the single questions are known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mean")]
pub struct ReportMean {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// Figures over the questions of a category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryFigures {
    /// The category, by its name in the benchmark.
    pub name: String,
    /// Questions that were asked.
    pub questions: u64,
    /// Questions with evidence turns; the shares are over them.
    pub scored: u64,
    /// By the whole recollection.
    pub recollection: StageFigures,
    /// By the first hop alone, before the graph.
    pub first_hop: StageFigures,
}

/// Figures of recollection up to one of its stages.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StageFigures {
    /// Mean share of a question's evidence turns that are found.
    pub recall: Option<ReportMean>,
    /// Share of the questions all of whose evidence turns are found.
    pub full: Option<ReportMean>,
    /// Mean share of a question's facts that are covered; of `beam` and `realmem` alone.
    pub facts: Option<ReportMean>,
    /// Mean o200k tokens of a context.
    pub tokens: Option<f64>,
}

/// What the table of questions says of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionLine {
    /// Identity in the benchmark's file: `conv-26#12`, counted from 0.
    pub id: String,
    /// The name of its file below `questions`.
    pub file: String,
    /// The conversation.
    pub conversation: String,
    /// The benchmark's category, by its name.
    pub category: String,
    /// Whether the conversation holds an answer; null where the category is not known.
    pub supported: Option<bool>,
    /// The first 200 characters of the question.
    pub text: String,
    /// Evidence turns.
    pub evidence: u64,
    /// How many of them are found.
    pub found: u64,
    /// How many of them the first hop alone finds.
    pub found_by_first_hop: Option<u64>,
    /// Share of its facts that are covered; of `beam` and `realmem` alone.
    pub facts: Option<f64>,
    /// o200k tokens of the context.
    pub tokens: u64,
    /// Those of the first hop alone.
    pub first_hop_tokens: Option<u64>,
    /// The steps that lost its evidence turns, each once.
    pub lost_at: Vec<LossStage>,
}

/// One question: its evidence, found or lost, and the answer with its trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionReport {
    /// Version of this schema: 1.
    pub schema: u32,
    /// Identity in the benchmark's file.
    pub id: String,
    /// The conversation.
    pub conversation: String,
    /// The benchmark's category, by its name.
    pub category: String,
    /// Whether the conversation holds an answer; null where the category is not known.
    pub supported: Option<bool>,
    /// The reference answer.
    pub reference: Option<String>,
    /// The turns that hold the evidence; empty where the file names none.
    pub evidence: Vec<ExpectedTurn>,
    /// Share of its facts that are covered; of `beam` and `realmem` alone.
    pub facts: Option<f64>,
    /// o200k tokens of the context.
    pub tokens: u64,
    /// Those of the first hop alone.
    pub first_hop_tokens: Option<u64>,
    /// The answer with its trace, as `POST /v1/ask` gives it.
    pub answer: Evidence,
}

/// A turn that holds evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedTurn {
    /// Its id, as the source names it.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// Its first 2,000 characters, captions included.
    pub text: String,
    /// The units that hold it.
    pub units: Vec<UnitId>,
    /// Whether the context quotes it, as `found_means` of the report says.
    pub found: bool,
    /// Whether the first hop alone finds it.
    pub found_by_first_hop: Option<bool>,
    /// Where it was lost; null where it was found.
    pub lost: Option<EvidenceLoss>,
}

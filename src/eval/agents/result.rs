//! The figures of an evaluation on agents' conversations, and the contexts that they measure.
//!
//! Only types. Shares are fractions; null means not measured.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{report::QuestionReport, result::DamageCount};

/// What one evaluation found.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentsRun {
    /// The figures.
    pub result: AgentsResult,
    /// Every context with its score: the memory's first, then each rival's.
    pub contexts: Vec<AgentContext>,
    /// Every question that was asked, with its answer.
    pub questions: Vec<QuestionReport>,
}

/// The figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentsResult {
    /// The version of the program.
    pub version: String,
    /// The benchmark's name.
    pub dataset: String,
    /// Where its files are.
    pub path: String,
    /// The profile of the pipeline.
    pub profile: String,
    /// Conversations.
    pub chats: u64,
    /// Turns that the memory was given.
    pub turns: u64,
    /// How many of them were cut.
    pub cut_turns: u64,
    /// Seconds until the memory held all turns.
    pub seconds: f64,
    /// Questions that are scored by their evidence.
    pub questions: u64,
    /// Questions that the conversation does not answer.
    pub unanswerable: u64,
    /// The probability that a question with an answer has the higher sufficiency than one without.
    pub sufficiency_auc: Option<f64>,
    /// The mean tokens for which each rival's cap was chosen.
    pub rival_tokens: Option<f64>,
    /// The memory first, then the rivals.
    pub rows: Vec<AgentRow>,
    /// What was damaged, and how it was treated.
    pub problems: BTreeMap<String, DamageCount>,
    /// The settings.
    pub settings: serde_json::Value,
}

/// The figures of one retriever.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentRow {
    /// Its name.
    pub name: String,
    /// What it quotes.
    pub over: String,
    /// The maximum number of tokens for a question, for a rival.
    pub cap: Option<f64>,
    /// Figures over all questions.
    #[serde(flatten)]
    pub overall: AgentFigures,
    /// The same figures by the kind of question.
    pub by_kind: BTreeMap<String, AgentFigures>,
    /// The same figures by conversation.
    pub by_chat: BTreeMap<String, AgentFigures>,
}

/// Means over questions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct AgentFigures {
    /// Questions.
    pub questions: u64,
    /// Share of the evidence turns of which at least 6 tokens are quoted, or all of a shorter one.
    pub touched: Option<f64>,
    /// Questions with a fact that their evidence turns show.
    pub with_facts: u64,
    /// Share of those facts that the quotes from the evidence turns cover.
    pub facts: Option<f64>,
    /// Mean o200k tokens of a context.
    pub mean_tokens: Option<f64>,
    /// o200k tokens of the longest context.
    pub most_tokens: u64,
}

/// What one retriever quotes for one question, with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentContext {
    /// `memory`, or the rival and what it quotes.
    pub retriever: String,
    /// The conversation.
    pub chat: String,
    /// The question's position in its file, from 0.
    pub question: usize,
    /// Its kind.
    pub kind: String,
    /// o200k tokens.
    pub tokens: u64,
    /// The memory's sufficiency.
    pub sufficiency: Option<f64>,
    /// As in [`AgentFigures::touched`].
    pub touched: Option<f64>,
    /// As in [`AgentFigures::facts`].
    pub facts: Option<f64>,
    /// What is quoted.
    pub quoted: Vec<AgentQuote>,
}

/// A passage of a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct AgentQuote {
    /// The number of the turn in its conversation, from 0.
    pub turn: usize,
    /// The quoted text.
    pub text: String,
}

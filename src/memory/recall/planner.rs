//! The planner: it makes a question's cues, and before each round it decides whether to go on (section 3.4).
//!
//! In: the question, its cues, the evidence so far, the round. Out: cues, a plan whose
//! anchors are units of the evidence, and the probability that the memory supports an answer.

use super::{EvidenceCandidate, question_cues::question_cues};
use crate::{index::FamiliarityResult, language::question::ParsedQuestion};
use types::{
    config::RecallSettings,
    model::{ModelUsage, Plan, QuestionCues},
};

/// Why recollection stopped, as the trace says it.
pub const COVERED: &str = "the evidence covers the question";
pub(super) const NO_START: &str = "no evidence to start from";
pub(super) const ROUNDS_SPENT: &str = "round budget reached";
pub(super) const NO_SUPPORT: &str = "no new support";

/// Makes cues and plans.
pub trait Planner {
    /// The cues by which the question is looked up.
    fn cues(&self, question: &ParsedQuestion<'_>) -> QuestionCues {
        question_cues(question)
    }

    /// The plan of a round, counted from 1.
    fn plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan;

    /// The probability that the memory supports an answer, 0 to 1. Recollection abstains if it is too low. Called once
    /// per question, with the parts as the first hop scored them.
    fn agreement(&self, question: &ParsedQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarityResult) -> f64;

    /// The language model's usage for the question so far; `None` if the planner asks no language model.
    fn usage(&self) -> Option<ModelUsage> {
        None
    }
}

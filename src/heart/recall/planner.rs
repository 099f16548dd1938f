//! The planner: it makes a question's cues and decides after each look at the evidence (section 3.4).
//!
//! In: the question, its cues, the evidence so far, the round. Out: cues, a plan whose
//! anchors are units of the evidence, and how sure it is that the memory supports an answer.

use super::{Candidate, cues::cues};
use crate::{language::question::ReadQuestion, memory::FamiliarParts};
use nouns::{
    config::RecallSettings,
    model::{Plan, QuestionCues, Usage},
};

/// Why recollection stopped, in the words of the trace.
pub const COVERED: &str = "the evidence covers the question";
pub(super) const NO_START: &str = "no evidence to start from";
pub(super) const ROUNDS_SPENT: &str = "round budget reached";
pub(super) const NO_SUPPORT: &str = "no new support";

/// Makes cues and plans.
pub trait Planner {
    /// What the question is looked up by.
    fn cues(&self, question: &ReadQuestion<'_>) -> QuestionCues {
        cues(question)
    }

    /// The plan of a round, counted from 1.
    fn plan(
        &self,
        question: &ReadQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[Candidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan;

    /// How sure it is that the memory supports an answer, 0 to 1: the figure by which recollection
    /// abstains. Called once a question, with the parts as the first hop scored them.
    fn agreement(&self, question: &ReadQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarParts) -> f64;

    /// The language model's usage for the question so far; `None` where none is asked.
    fn usage(&self) -> Option<Usage> {
        None
    }
}

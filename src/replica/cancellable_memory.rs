//! The memory and the reranker of a question that may be cancelled.
//!
//! In: recall's probes and passages. Out: the answers of the dataflow, and the logits of the reranker. Once a
//! question's caller has left, its probes never reach the dataflow. The time that probes, the reranker and a plan take
//! is added to the question's times.

use std::{sync::Arc, time::Instant};

use memory::{
    index::{
        DataflowAnswer, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, MatchProbe, MatchingParts,
        Neighbour, NeighbourhoodProbe, ProfileLine, ProfileProbe, TurnProbe, UnitBody,
    },
    language::question::ParsedQuestion,
    recall::{self, BoxError, EvidenceCandidate, Planner, Reranker},
};
use models::rerank::RerankerPool;
use types::{
    config::RecallSettings,
    model::{ModelRef, ModelUsage, Plan, QuestionCues},
};

use super::{AnswerStage, AnswerStageTimes, Cancellation, timed};

/// A memory that answers only as long as someone waits for the answer.
pub(super) struct CancellableMemory<'a> {
    pub(super) memory: &'a dyn recall::RecallMemory,
    pub(super) cancellation: &'a Cancellation,
    pub(super) times: Option<&'a AnswerStageTimes>,
}

impl recall::RecallMemory for CancellableMemory<'_> {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::FirstHop, || self.memory.first_hop(probe))
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::FirstHop, || self.memory.familiar(probe))
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::Walk, || self.memory.neighbourhood(probe))
    }

    fn matching(&self, probe: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::FirstHop, || self.memory.matching(probe))
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError> {
        self.cancellation.check()?;
        self.memory.units_of_turn(probe)
    }

    fn profile(&self, probe: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError> {
        self.cancellation.check()?;
        self.memory.profile(probe)
    }
}

/// A reranker that reads only as long as there is time left for the rest of the answer.
pub(super) struct DeadlineReranker<'a> {
    pub(super) reranker: &'a RerankerPool,
    pub(super) cancellation: &'a Cancellation,
    pub(super) until: Option<Instant>,
    pub(super) times: Option<&'a AnswerStageTimes>,
}

impl Reranker for DeadlineReranker<'_> {
    fn model(&self) -> &ModelRef {
        self.reranker.model()
    }

    fn logits(&self, question: &str, passages: &[String]) -> Result<Vec<f32>, BoxError> {
        self.cancellation.check()?;
        let logits = timed(self.times, AnswerStage::Rerank, || self.reranker.logits(question, passages, self.until))?;
        Ok(logits)
    }
}

/// A planner whose work is timed.
pub(super) struct TimedPlanner<'a> {
    pub(super) planner: &'a dyn Planner,
    pub(super) times: Option<&'a AnswerStageTimes>,
}

impl Planner for TimedPlanner<'_> {
    fn cues(&self, question: &ParsedQuestion<'_>) -> QuestionCues {
        timed(self.times, AnswerStage::Cues, || self.planner.cues(question))
    }

    fn plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan {
        timed(self.times, AnswerStage::Plan, || self.planner.plan(question, cues, evidence, round, settings))
    }

    fn agreement(&self, question: &ParsedQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarityResult) -> f64 {
        self.planner.agreement(question, cues, familiar)
    }

    fn usage(&self) -> Option<ModelUsage> {
        self.planner.usage()
    }
}

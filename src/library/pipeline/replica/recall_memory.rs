//! The memory and the reranker of a question that may be cancelled.
//!
//! In: recall's probes and passages. Out: the answers of the dataflow, and the logits of the reranker. If a question's
//! caller has gone, its probes never reach the dataflow. What a probe, the reranker and a plan take is added to the
//! times of the question.

use std::{sync::Arc, time::Instant};

use heart::{
    language::question::ReadQuestion,
    memory::{
        Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe, TurnProbe,
        UnitBody,
    },
    recall::{self, Candidate, Failure, Planner, Rerank},
};
use models::rerank::RerankerPool;
use nouns::{
    config::RecallSettings,
    model::{ModelRef, Plan, QuestionCues, Usage},
};

use super::{AnswerStage, Cancellation, StageTimes, timed};

/// A memory that answers only as long as someone waits for the answer.
pub(super) struct AskedMemory<'a> {
    pub(super) memory: &'a dyn recall::Memory,
    pub(super) cancellation: &'a Cancellation,
    pub(super) times: Option<&'a StageTimes>,
}

impl recall::Memory for AskedMemory<'_> {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::FirstHop, || self.memory.first_hop(probe))
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::FirstHop, || self.memory.familiar(probe))
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        self.cancellation.check()?;
        timed(self.times, AnswerStage::Walk, || self.memory.neighbourhood(probe))
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<Answered<Vec<Arc<UnitBody>>>, Failure> {
        self.cancellation.check()?;
        self.memory.units_of_turn(probe)
    }
}

/// A reranker that reads only as long as there is time left for the rest of the answer.
pub(super) struct AskedReranker<'a> {
    pub(super) reranker: &'a RerankerPool,
    pub(super) cancellation: &'a Cancellation,
    pub(super) until: Option<Instant>,
    pub(super) times: Option<&'a StageTimes>,
}

impl Rerank for AskedReranker<'_> {
    fn model(&self) -> &ModelRef {
        self.reranker.model()
    }

    fn logits(&self, question: &str, passages: &[String]) -> Result<Vec<f32>, Failure> {
        self.cancellation.check()?;
        let logits = timed(self.times, AnswerStage::Rerank, || self.reranker.logits(question, passages, self.until))?;
        Ok(logits)
    }
}

/// A planner whose work is timed.
pub(super) struct TimedPlanner<'a> {
    pub(super) planner: &'a dyn Planner,
    pub(super) times: Option<&'a StageTimes>,
}

impl Planner for TimedPlanner<'_> {
    fn cues(&self, question: &ReadQuestion<'_>) -> QuestionCues {
        timed(self.times, AnswerStage::Cues, || self.planner.cues(question))
    }

    fn plan(
        &self,
        question: &ReadQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[Candidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan {
        timed(self.times, AnswerStage::Plan, || self.planner.plan(question, cues, evidence, round, settings))
    }

    fn agreement(&self, question: &ReadQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarParts) -> f64 {
        self.planner.agreement(question, cues, familiar)
    }

    fn usage(&self) -> Option<Usage> {
        self.planner.usage()
    }
}

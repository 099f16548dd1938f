//! The memory of a question that may be cancelled.
//!
//! In: recall's probes. Out: the answers of the dataflow. If a question's caller has gone, its probes never reach the
//! dataflow. What a probe and a plan take is added to the times of the question.

use std::sync::Arc;

use heart::{
    language::question::ReadQuestion,
    memory::{
        Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe, TurnProbe,
        UnitBody,
    },
    recall::{self, Candidate, Failure, Planner},
};
use nouns::{
    config::RecallSettings,
    model::{Plan, QuestionCues, Usage},
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

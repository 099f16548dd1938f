//! The memory of a question that may be cancelled.
//!
//! In: recall's probes. Out: the answers of the dataflow. If a question's caller has gone, its probes never reach the
//! dataflow.

use std::sync::Arc;

use heart::{
    memory::{
        Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe, TurnProbe,
        UnitBody,
    },
    recall::{self, Failure},
};

use super::Cancellation;

/// A memory that answers only as long as someone waits for the answer.
pub(super) struct AskedMemory<'a> {
    pub(super) memory: &'a dyn recall::Memory,
    pub(super) cancellation: &'a Cancellation,
}

impl recall::Memory for AskedMemory<'_> {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        self.cancellation.check()?;
        self.memory.first_hop(probe)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure> {
        self.cancellation.check()?;
        self.memory.familiar(probe)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        self.cancellation.check()?;
        self.memory.neighbourhood(probe)
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<Answered<Vec<Arc<UnitBody>>>, Failure> {
        self.cancellation.check()?;
        self.memory.units_of_turn(probe)
    }
}

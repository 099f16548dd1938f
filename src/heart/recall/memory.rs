//! The memory that recollection probes.
//!
//! In: a probe for one bank. Out: the answer, with the log offsets that it reflects. The memory
//! dataflow implements this trait; tests implement it with scripted answers.

use std::sync::Arc;

use super::Failure;
use crate::memory::{
    Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, MemoryHandle, Neighbour, NeighbourhoodProbe,
    TurnProbe, UnitBody,
};

/// A memory that answers the probes of recollection.
pub trait Memory {
    /// The best units of each channel for a question.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure>;

    /// The parts of a bank that are most familiar to a question.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure>;

    /// The units that can be reached from the anchors over the graph's edges.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure>;

    /// The units that a turn was made into.
    ///
    /// # Errors
    /// The reason why the memory did not answer.
    fn units_of_turn(&self, probe: TurnProbe) -> Result<Answered<Vec<Arc<UnitBody>>>, Failure>;
}

impl Memory for MemoryHandle {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        Ok(Self::first_hop(self, probe)?)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure> {
        Ok(Self::familiar(self, probe)?)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        Ok(Self::neighbourhood(self, probe)?)
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<Answered<Vec<Arc<UnitBody>>>, Failure> {
        Ok(Self::units_of_turn(self, probe)?)
    }
}

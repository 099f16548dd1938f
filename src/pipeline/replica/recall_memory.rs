//! The memory handle as the memory that recall asks.
//!
//! In: recall's probes. Out: the answers of the dataflow, its errors as recall's failures. A probe
//! of a question that nobody waits for any more never reaches the dataflow.

use crate::{
    memory::{
        Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, MemoryHandle, Neighbour, NeighbourhoodProbe,
    },
    recall::{self, Failure},
};

use super::Cancellation;

impl recall::Memory for MemoryHandle {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        Ok(Self::first_hop(self, probe)?)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure> {
        Ok(Self::familiar(self, probe)?)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        Ok(Self::neighbourhood(self, probe)?)
    }
}

/// A memory for as long as somebody waits for the answer.
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
}

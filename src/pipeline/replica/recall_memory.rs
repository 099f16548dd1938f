//! The memory handle as the memory that recall asks.
//!
//! In: recall's probes. Out: the answers of the dataflow, its errors as recall's failures.

use crate::{
    memory::{
        Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, MemoryHandle, Neighbour, NeighbourhoodProbe,
    },
    recall::{self, Failure},
};

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

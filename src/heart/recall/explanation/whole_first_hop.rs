//! A memory that shows more of a first hop than a question looks at.
//!
//! In: the probes of a recollection. Out: the same answers. What the first hop scored beyond the most parts that a
//! question looks at is kept for the explanation, as of the same epoch.

use std::{cell::RefCell, sync::Arc};

use crate::{
    memory::{
        Answered, FamiliarPart, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe,
        TurnProbe, UnitBody,
    },
    recall::{Failure, Memory},
};

/// A memory, and the scored parts that no question looks at.
pub(super) struct WholeFirstHop<'m> {
    memory: &'m dyn Memory,
    rest: RefCell<Vec<FamiliarPart>>,
}

impl<'m> WholeFirstHop<'m> {
    pub(super) fn new(memory: &'m dyn Memory) -> Self {
        Self { memory, rest: RefCell::default() }
    }

    /// The scored parts behind those of the recollection, best first.
    pub(super) fn into_rest(self) -> Vec<FamiliarPart> {
        self.rest.into_inner()
    }
}

impl Memory for WholeFirstHop<'_> {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        self.memory.first_hop(probe)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure> {
        let limit = probe.limit;
        let mut answered = self.memory.familiar(FamiliarityProbe { limit: usize::MAX, ..probe })?;
        let best = &mut answered.value.best;
        self.rest.replace(best.split_off(limit.min(best.len())));
        Ok(answered)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        self.memory.neighbourhood(probe)
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<Answered<Vec<Arc<UnitBody>>>, Failure> {
        self.memory.units_of_turn(probe)
    }
}

//! A memory that records more of a first hop than a recollection reads.
//!
//! In: the probes of a recollection. Out: the same answers. The parts that were scored beyond the limit of the
//! familiarity probe are kept for the explanation, as of the same epoch.

use std::{cell::RefCell, sync::Arc};

use crate::{
    index::{
        DataflowAnswer, FamiliarPart, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, MatchProbe,
        MatchingParts, Neighbour, NeighbourhoodProbe, ProfileLine, ProfileProbe, TurnProbe, UnitBody,
    },
    recall::{BoxError, RecallMemory},
};

/// A memory, and the scored parts beyond the limit of the probe.
pub(super) struct FirstHopRecorder<'m> {
    memory: &'m dyn RecallMemory,
    rest: RefCell<Vec<FamiliarPart>>,
}

impl<'m> FirstHopRecorder<'m> {
    pub(super) fn new(memory: &'m dyn RecallMemory) -> Self {
        Self { memory, rest: RefCell::default() }
    }

    /// The scored parts that follow those of the recollection, best first.
    pub(super) fn into_rest(self) -> Vec<FamiliarPart> {
        self.rest.into_inner()
    }
}

impl RecallMemory for FirstHopRecorder<'_> {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError> {
        self.memory.first_hop(probe)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError> {
        let limit = probe.limit;
        let mut answered = self.memory.familiar(FamiliarityProbe { limit: usize::MAX, ..probe })?;
        let best = &mut answered.value.best;
        self.rest.replace(best.split_off(limit.min(best.len())));
        Ok(answered)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError> {
        self.memory.neighbourhood(probe)
    }

    fn matching(&self, probe: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError> {
        self.memory.matching(probe)
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError> {
        self.memory.units_of_turn(probe)
    }

    fn profile(&self, probe: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError> {
        self.memory.profile(probe)
    }
}

//! The memory that recollection probes.
//!
//! In: a probe for one bank. Out: the answer, with the log offsets that it reflects. The memory
//! dataflow implements this trait; tests implement it with scripted answers.

use std::sync::Arc;

use super::BoxError;
use crate::index::{
    DataflowAnswer, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, MatchProbe, MatchingParts,
    Neighbour, NeighbourhoodProbe, ProfileLine, ProfileProbe, ShardHandle, TurnProbe, UnitBody,
};

/// A memory that answers the probes of recollection.
pub trait RecallMemory {
    /// The best units of each channel for a question.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError>;

    /// The parts of a bank that are most familiar to a question.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn familiar(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError>;

    /// The units that can be reached from the anchors over the graph's edges.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError>;

    /// The parts of a bank that a selector takes.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn matching(&self, probe: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError>;

    /// The units that a turn was made into.
    ///
    /// # Errors
    /// The reason why the memory did not answer.
    fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError>;

    /// What holds of persons, and what was superseded.
    ///
    /// # Errors
    /// The reason why the memory did not answer.
    fn profile(&self, probe: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError>;
}

impl RecallMemory for ShardHandle {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, BoxError> {
        Ok(Self::first_hop(self, probe)?)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, BoxError> {
        Ok(Self::familiar_parts(self, probe)?)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, BoxError> {
        Ok(Self::neighbourhood(self, probe)?)
    }

    fn matching(&self, probe: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, BoxError> {
        Ok(Self::matching_parts(self, probe)?)
    }

    fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, BoxError> {
        Ok(Self::units_of_turn(self, probe)?)
    }

    fn profile(&self, probe: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, BoxError> {
        Ok(Self::profile(self, probe)?)
    }
}

//! The memory that recollection probes.
//!
//! In: a probe for one bank. Out: the answer with the offsets that it reflects. The memory
//! dataflow implements this trait; tests implement it with scripted answers.

use super::Failure;
use crate::memory::{Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe};

/// A memory that can be asked.
pub trait Memory {
    /// What comes to mind first.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure>;

    /// The most familiar parts of a bank.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure>;

    /// What those memories lead to.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure>;
}

//! How familiar a bank's parts are to a question. Anchors and support are chosen by it.
//!
//! In: the answer to a familiarity probe. Out: for each unit, the parts that the probe returned,
//! each with its share: 0 at the zero of the scale, 1 at the bank's best part.

use crate::index::FamiliarityResult;
use types::model::UnitId;

/// The share of a unit none of whose parts the probe returned. No unit has a lower share.
const UNKNOWN: f64 = -1.0;

/// The shares of the parts, by unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartShares {
    /// The unit of each entry of `parts`, sorted.
    units: Vec<UnitId>,
    /// Each part's index in its unit, with its share. The parts of a unit stand together, the best first.
    parts: Vec<(usize, f64)>,
}

impl PartShares {
    /// Reads the answer to a probe.
    #[must_use]
    pub fn of(familiar: &FamiliarityResult) -> Self {
        Self::of_parts(familiar.best.iter().map(|part| (part.unit.id, (part.part, familiar.share(part.score)))))
    }

    /// One part per unit, for tests.
    #[cfg(test)]
    pub(super) fn from_shares(shares: &[(UnitId, f64)]) -> Self {
        Self::of_parts(shares.iter().map(|(id, share)| (*id, (0, *share))))
    }

    /// From each part's unit, its index there and the figure by which it is ranked; the best part first.
    pub(super) fn of_parts(parts: impl Iterator<Item = (UnitId, (usize, f64))>) -> Self {
        let mut parts: Vec<_> = parts.collect();
        // The sort is stable: the parts of a unit stay best first.
        parts.sort_by_key(|(id, _)| *id);
        let (units, parts) = parts.into_iter().unzip();
        Self { units, parts }
    }

    /// The share of the unit's best part.
    #[must_use]
    pub fn of_unit(&self, id: UnitId) -> f64 {
        self.parts(id).iter().map(|(_, share)| *share).fold(UNKNOWN, f64::max)
    }

    /// The unit's parts, best first.
    #[must_use]
    pub fn parts(&self, id: UnitId) -> &[(usize, f64)] {
        let first = self.units.partition_point(|unit| *unit < id);
        let count = self.units[first..].partition_point(|unit| *unit == id);
        &self.parts[first..first + count]
    }
}

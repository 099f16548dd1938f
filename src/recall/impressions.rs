//! How familiar a bank's parts are to a question. Anchors and support are chosen by it.
//!
//! In: the answer of a familiarity probe. Out: for each unit, the parts that the probe returned,
//! each with its share: 0 at the zero of the scale, 1 at the bank's best part.

use std::collections::BTreeMap;

use crate::{memory::FamiliarParts, model::UnitId};

/// The share of a unit of which the probe returned no part: below every other.
const UNKNOWN: f64 = -1.0;

/// Shares by unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Impressions {
    parts: BTreeMap<UnitId, Vec<(usize, f64)>>,
}

impl Impressions {
    /// Reads the answer of a probe.
    #[must_use]
    pub fn of(familiar: &FamiliarParts) -> Self {
        let mut parts: BTreeMap<UnitId, Vec<(usize, f64)>> = BTreeMap::new();
        for part in &familiar.best {
            parts.entry(part.unit.id).or_default().push((part.part, familiar.share(part.score)));
        }
        Self { parts }
    }

    /// One part a unit, for tests.
    #[cfg(test)]
    pub(super) fn from_shares(shares: &[(UnitId, f64)]) -> Self {
        let mut parts: BTreeMap<UnitId, Vec<(usize, f64)>> = BTreeMap::new();
        shares.iter().for_each(|(id, share)| parts.entry(*id).or_default().push((0, *share)));
        Self { parts }
    }

    /// The share of the unit's best part.
    #[must_use]
    pub fn of_unit(&self, id: UnitId) -> f64 {
        self.parts(id).iter().map(|(_, share)| *share).fold(UNKNOWN, f64::max)
    }

    /// The unit's parts, best first.
    #[must_use]
    pub fn parts(&self, id: UnitId) -> &[(usize, f64)] {
        self.parts.get(&id).map_or(&[], Vec::as_slice)
    }
}

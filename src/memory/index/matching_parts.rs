//! Which parts of a bank's units a question may be answered from.
//!
//! In: units, each with the parts that a selector takes. Out: whether a part, or any part of a unit, is among them.

use std::{cmp::Ordering, collections::BTreeSet};

use serde::{Deserialize, Serialize};

use crate::index::id_hasher::UnitIdMap;
use types::model::UnitId;

/// The parts of a bank that a selector takes. Units without such a part are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchingParts {
    /// A bit for each of the first [`u64::BITS`] parts of a unit, the lowest first.
    units: UnitIdMap<u64>,
    /// The parts after these, which only long turns have.
    later: BTreeSet<(UnitId, u32)>,
}

impl MatchingParts {
    /// Adds a part of a unit.
    pub(super) fn add(&mut self, unit: UnitId, part: u32) {
        let bits = self.units.entry(unit).or_default();
        match 1u64.checked_shl(part) {
            Some(bit) => *bits |= bit,
            None => drop(self.later.insert((unit, part))),
        }
    }

    /// Whether a part of a unit is taken.
    #[must_use]
    pub fn takes(&self, unit: UnitId, part: u32) -> bool {
        self.units.get(&unit).is_some_and(|bits| match 1u64.checked_shl(part) {
            Some(bit) => bits & bit != 0,
            None => self.later.contains(&(unit, part)),
        })
    }

    /// Whether any part of a unit is taken.
    #[must_use]
    pub fn takes_any(&self, unit: UnitId) -> bool {
        self.units.contains_key(&unit)
    }

    /// Which of a unit's `of` parts are taken, in order; `None` if all are, or none.
    #[must_use]
    pub fn some_of(&self, unit: UnitId, of: usize) -> Option<Vec<u32>> {
        let taken: Vec<u32> = (0..of as u32).filter(|part| self.takes(unit, *part)).collect();
        (!taken.is_empty() && taken.len() < of).then_some(taken)
    }

    fn sorted(&self) -> Vec<(&UnitId, &u64)> {
        let mut sorted: Vec<_> = self.units.iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

impl PartialOrd for MatchingParts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MatchingParts {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_units = || self.sorted().cmp(&other.sorted());
        self.units.len().cmp(&other.units.len()).then_with(by_units).then_with(|| self.later.cmp(&other.later))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_taken_by_its_parts() {
        let mut matching = MatchingParts::default();
        for (unit, part) in [(1, 0), (1, 2), (2, 0), (2, 1), (4, 3), (4, 64), (4, 70)] {
            matching.add(UnitId(unit), part);
        }
        assert_eq!([0, 1, 2].map(|part| matching.takes(UnitId(1), part)), [true, false, true]);
        assert_eq!([3, 63, 64, 65, 70].map(|part| matching.takes(UnitId(4), part)), [true, false, true, false, true]);
        assert_eq!([1, 2, 3, 4].map(|unit| matching.takes_any(UnitId(unit))), [true, true, false, true]);
        assert!(matching.takes(UnitId(2), 1) && !matching.takes(UnitId(3), 0));
        let some = |unit, of| matching.some_of(UnitId(unit), of);
        assert_eq!((some(1, 3), some(2, 2), some(3, 2)), (Some(vec![0, 2]), None, None));
        assert_eq!(some(4, 71), Some(vec![3, 64, 70]));
    }
}

//! Which parts of a bank's units a question may be answered from.
//!
//! In: units, each with the parts that a selector takes. Out: whether a part, or any part of a unit, is among them.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::index::id_hasher::UnitIdMap;
use types::model::UnitId;

/// The parts of a bank that a selector takes. Units without such a part are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchingParts {
    /// The indexes of the parts in order; `None` where all parts of the unit are taken.
    units: UnitIdMap<Option<Box<[u32]>>>,
}

impl MatchingParts {
    /// Adds some of a unit's `of` parts, in order.
    pub(super) fn add(&mut self, unit: UnitId, parts: Vec<u32>, of: usize) {
        if !parts.is_empty() {
            self.units.insert(unit, (parts.len() < of).then(|| parts.into_boxed_slice()));
        }
    }

    /// Whether a part of a unit is taken.
    #[must_use]
    pub fn takes(&self, unit: UnitId, part: u32) -> bool {
        match self.units.get(&unit) {
            None => false,
            Some(None) => true,
            Some(Some(parts)) => parts.binary_search(&part).is_ok(),
        }
    }

    /// Whether any part of a unit is taken.
    #[must_use]
    pub fn takes_any(&self, unit: UnitId) -> bool {
        self.units.contains_key(&unit)
    }

    /// The parts of a unit that are taken; `None` if all are, or none.
    #[must_use]
    pub fn some_of(&self, unit: UnitId) -> Option<&[u32]> {
        self.units.get(&unit)?.as_deref()
    }

    fn sorted(&self) -> Vec<(&UnitId, &Option<Box<[u32]>>)> {
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
        self.units.len().cmp(&other.units.len()).then_with(|| self.sorted().cmp(&other.sorted()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_taken_by_its_parts() {
        let mut matching = MatchingParts::default();
        matching.add(UnitId(1), vec![0, 2], 3);
        matching.add(UnitId(2), vec![0, 1], 2);
        matching.add(UnitId(3), Vec::new(), 2);
        assert_eq!([0, 1, 2].map(|part| matching.takes(UnitId(1), part)), [true, false, true]);
        assert_eq!([1, 2, 3, 4].map(|unit| matching.takes_any(UnitId(unit))), [true, true, false, false]);
        assert!(matching.takes(UnitId(2), 1) && !matching.takes(UnitId(3), 0));
        assert_eq!((matching.some_of(UnitId(1)), matching.some_of(UnitId(2))), (Some(&[0, 2][..]), None));
    }
}

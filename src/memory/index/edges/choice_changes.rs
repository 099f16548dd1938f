//! What changed of the choices of units.
//!
//! In: choices of units as they were, and as they are. Out: those that were added and removed.

use crate::index::{id_hasher::UnitIdMap, units::association_score::EdgeChoice};
use types::model::UnitId;

/// A choice that was added or removed: the unit that chose, its ordinal, what it chose, ±1.
pub(in crate::index) type UnitChoiceChange = (UnitId, u32, EdgeChoice, isize);

/// The choices, with the unit's ordinal, of every unit whose choices may have changed.
pub(super) type PreviousChoices = UnitIdMap<(u32, Vec<EdgeChoice>)>;

/// Appends what changed; `now` returns the ordinal and the choices of a unit that is still there.
pub(super) fn report_changes<'c>(
    before: PreviousChoices,
    now: impl Fn(UnitId) -> Option<(u32, &'c [EdgeChoice])>,
    changes: &mut Vec<UnitChoiceChange>,
) {
    for (id, (ordinal, old)) in before {
        let (ordinal_now, new) = now(id).unwrap_or((ordinal, &[]));
        changes.extend(old.iter().filter(|c| !new.contains(c)).map(|c| (id, ordinal, *c, -1)));
        changes.extend(new.iter().filter(|c| !old.contains(c)).map(|c| (id, ordinal_now, *c, 1)));
    }
}

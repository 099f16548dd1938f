//! Structural choices of one bank: for each unit the best units by shared cues, exactly.
//!
//! In: net deletions and insertions of one epoch. Out: the exact changes of the choices. For each cue value, units are
//! ordered by (start of T, or else when it was said; ordinal; id); one more order is for time alone. Candidates are the
//! nearest units before and after in each order (decision 12). A change affects only the units near it, at any bank
//! size. A deleted unit leaves at once, with its choices; the units near it choose again in [`CueIndex::repair`], which
//! follows the last change of a load and goes step by step.

use std::sync::Arc;

use super::choice_changes::{PreviousChoices, UnitChoiceChange, report_changes};
use crate::index::id_hasher::UnitIdMap;
use crate::index::{
    memory_footprint::{map_bytes, vec_bytes},
    units::{
        association_score::{CueSet, EdgeChoice, GraphChoice, NameKey, StructuralScorer, TimelinePosition},
        live_unit::LiveUnit,
    },
    work_budget::{LISTED_NEIGHBOURS, RECHOSEN_UNIT, WorkBudget},
};
use types::{
    chunked_map::ChunkedMap,
    model::UnitId,
    shrinkable_collection::{ShrinkableCollection, insert_sparingly, push_sparingly},
};

/// The structural index of one bank.
#[derive(Debug)]
pub(in crate::index) struct CueIndex {
    neighbours: usize,
    choices: usize,
    /// The units of each cue value, in order. One map holds all values, because most banks have few units for a value.
    cued: UnitsByCue,
    units: UnitIdMap<(Arc<LiveUnit>, Vec<EdgeChoice>)>,
    /// Units that left and may still be chosen.
    gone: Vec<Arc<LiveUnit>>,
    /// Units that are to choose again.
    stale: UnitIdMap<()>,
}

/// A participant, a location, or time: a hash of the name, with the kind in the last two bits.
type CueValue = u64;

/// The bits that hold the kind of a cue value.
const KIND_BITS: u64 = 3;
const PARTICIPANT: u64 = 0;
const LOCATION: u64 = 1;
const TIME: CueValue = 2;

/// Start in milliseconds, ordinal, id.
type CueOrder = (i64, u32, UnitId);

/// Units by cue value, then by their order.
type UnitsByCue = ChunkedMap<(CueValue, CueOrder), ()>;

impl CueIndex {
    /// An empty index, with the number of candidates before and after a unit, and the number of choices per unit.
    #[must_use]
    pub(in crate::index) fn new(neighbours: usize, choices: usize) -> Self {
        Self {
            neighbours,
            choices,
            cued: UnitsByCue::default(),
            units: UnitIdMap::default(),
            gone: Vec::new(),
            stale: UnitIdMap::default(),
        }
    }

    /// Applies the net change of one epoch and appends the changes of the choices. [`Self::repair`] follows the last
    /// epoch of a load.
    pub(in crate::index) fn apply(
        &mut self,
        structural: &StructuralScorer,
        deleted: &[UnitId],
        inserted: &[Arc<LiveUnit>],
        changes: &mut Vec<UnitChoiceChange>,
    ) {
        let mut before = PreviousChoices::default();
        for id in deleted {
            self.delete(*id, &mut before);
        }
        self.units.give_room_back();
        let mut stale = UnitIdMap::default();
        for unit in inserted {
            self.insert(structural, unit, &mut before, &mut stale);
        }
        if self.gone.is_empty() {
            stale.keys().for_each(|id| self.choose_again(structural, *id, &mut before));
        } else {
            self.stale.extend(stale);
        }
        report_changes(before, |id| self.now(id), changes);
    }

    /// Does one step of what deletions left to do, within the allowance where that allows a step; appends the changes
    /// of the choices. Returns whether there is more to do.
    pub(in crate::index) fn repair(
        &mut self,
        structural: &StructuralScorer,
        allowance: &mut WorkBudget,
        changes: &mut Vec<UnitChoiceChange>,
    ) -> bool {
        if self.units.is_empty() {
            (self.gone, self.stale) = (Vec::new(), UnitIdMap::default());
            return false;
        }
        let most = |work: u64| (allowance.left() / work).max(1) as usize;
        if !self.gone.is_empty() {
            let some = self.gone.split_off(self.gone.len().saturating_sub(most(LISTED_NEIGHBOURS)));
            allowance.spend(LISTED_NEIGHBOURS * some.len() as u64);
            for unit in some {
                // Its neighbours may have chosen it, or have a new farthest candidate now.
                let near: Vec<UnitId> = self.candidates(&unit).collect();
                self.stale.extend(near.into_iter().map(|id| (id, ())));
            }
        } else {
            let some: Vec<UnitId> = self.stale.keys().copied().take(most(RECHOSEN_UNIT)).collect();
            allowance.spend(RECHOSEN_UNIT * some.len() as u64);
            let mut before = PreviousChoices::default();
            for id in some {
                self.stale.remove(&id);
                self.choose_again(structural, id, &mut before);
            }
            self.stale.give_room_back();
            report_changes(before, |id| self.now(id), changes);
        }
        self.wants_repair()
    }

    /// Whether deletions left something to do.
    pub(in crate::index) fn wants_repair(&self) -> bool {
        !self.gone.is_empty() || !self.stale.is_empty()
    }

    fn choose_again(&mut self, structural: &StructuralScorer, id: UnitId, before: &mut PreviousChoices) {
        let Some((unit, old)) = self.units.get(&id) else { return };
        let new = self.choose(structural, unit);
        if new != *old {
            let position = unit.position;
            if let Some((_, choices)) = self.units.get_mut(&id) {
                let old = std::mem::replace(choices, new);
                before.entry(id).or_insert((position.ordinal, old));
            }
        }
    }

    fn now(&self, id: UnitId) -> Option<(u32, &[EdgeChoice])> {
        self.units.get(&id).map(|(unit, choices)| (unit.position.ordinal, choices.as_slice()))
    }

    /// Adds units whose choices are known and follow with [`Self::restore_choices`].
    pub(in crate::index) fn insert_unchosen(&mut self, units: &[Arc<LiveUnit>]) {
        for unit in units {
            self.units.insert(unit.id, (Arc::clone(unit), Vec::new()));
            for value in values(&unit.cues) {
                self.cued.insert((value, order(unit)), ());
            }
        }
    }

    /// Gives a unit of [`Self::insert_unchosen`] all of its choices, and appends them to `changes`.
    pub(in crate::index) fn restore_choices(&mut self, known: &[GraphChoice], changes: &mut Vec<UnitChoiceChange>) {
        let Some((unit, _)) = known.first().and_then(|choice| self.units.get(&choice.from)) else { return };
        let (id, position) = (unit.id, unit.position);
        let to = |choice: &GraphChoice| {
            let (to, _) = self.units.get(&choice.to)?;
            Some(EdgeChoice::new(choice.weight, &position, &to.position, to.id))
        };
        let mut best: Vec<EdgeChoice> = known.iter().filter_map(to).collect();
        best.sort_unstable();
        changes.extend(best.iter().map(|choice| (id, position.ordinal, *choice, 1)));
        if let Some((_, choices)) = self.units.get_mut(&id) {
            *choices = best;
        }
    }

    /// Bytes in memory, without the units themselves.
    pub(in crate::index) fn bytes(&self) -> usize {
        let units = map_bytes::<UnitId, (Arc<LiveUnit>, Vec<EdgeChoice>)>(self.units.capacity());
        self.cued.bytes() + units + self.units.values().map(|(_, chosen)| vec_bytes(chosen)).sum::<usize>()
    }

    /// What a unit chose, best first.
    pub(in crate::index) fn chosen_by(&self, id: UnitId) -> &[EdgeChoice] {
        self.units.get(&id).map_or(&[], |(_, choices)| choices)
    }

    fn delete(&mut self, id: UnitId, before: &mut PreviousChoices) {
        let Some((unit, old)) = self.units.remove(&id) else { return };
        let order = order(&unit);
        for value in values(&unit.cues) {
            self.cued.remove((value, order));
        }
        before.insert(id, (unit.position.ordinal, old));
        push_sparingly(&mut self.gone, unit);
    }

    fn insert(
        &mut self,
        structural: &StructuralScorer,
        unit: &Arc<LiveUnit>,
        before: &mut PreviousChoices,
        stale: &mut UnitIdMap<()>,
    ) {
        if self.units.contains_key(&unit.id) {
            return;
        }
        let order = order(unit);
        before.entry(unit.id).or_insert((unit.position.ordinal, Vec::new()));
        stale.insert(unit.id, ());
        self.units.insert(unit.id, (unit.clone(), Vec::new()));
        for value in values(&unit.cues) {
            self.cued.insert((value, order), ());
            let (earlier, later) = around(&self.cued, (value, order), self.neighbours);
            let (earlier, later): (Vec<_>, Vec<_>) = (earlier.collect(), later.collect());
            if !self.gone.is_empty() {
                // The new unit may put others out of reach of the place of one that left, so they choose again.
                stale.extend(earlier.into_iter().chain(later).map(|id| (id, ())));
                continue;
            }
            for (near, far) in [(&earlier, &later), (&later, &earlier)] {
                for (distance, other) in near.iter().enumerate() {
                    if stale.contains_key(other) || self.stale.contains_key(other) {
                        continue;
                    }
                    let Some((other, choices)) = self.units.get_mut(other) else { continue };
                    // The new unit pushed the farthest candidate out of the other's reach.
                    let pushed = far.get(self.neighbours - 1 - distance);
                    if pushed.is_some_and(|pushed| choices.iter().any(|c| c.id == *pushed)) {
                        stale.insert(other.id, ());
                        continue;
                    }
                    let Some(score) = structural.score(&other.cues, &unit.cues) else { continue };
                    let choice = EdgeChoice::new(score, &other.position, &unit.position, unit.id);
                    if score >= structural.threshold() && admits(choices, &choice, self.choices) {
                        before.entry(other.id).or_insert_with(|| (other.position.ordinal, choices.clone()));
                        insert_choice(choices, choice, self.choices);
                    }
                }
            }
        }
    }

    /// The units that are near a unit in the order of any of its cue values; some are listed more than once.
    fn candidates(&self, unit: &LiveUnit) -> impl Iterator<Item = UnitId> {
        let order = order(unit);
        values(&unit.cues).flat_map(move |value| {
            let (earlier, later) = around(&self.cued, (value, order), self.neighbours);
            earlier.chain(later)
        })
    }

    fn choose(&self, structural: &StructuralScorer, unit: &LiveUnit) -> Vec<EdgeChoice> {
        let mut best: Vec<EdgeChoice> = Vec::with_capacity(self.choices + 1);
        for (other, _) in self.candidates(unit).filter_map(|id| self.units.get(&id)) {
            let Some(score) = structural.score(&unit.cues, &other.cues) else { continue };
            if score < structural.threshold() {
                continue;
            }
            let choice = EdgeChoice::new(score, &unit.position, &other.position, other.id);
            if admits(&best, &choice, self.choices) {
                insert_choice(&mut best, choice, self.choices);
            }
        }
        best.shrink_to_fit();
        best
    }
}

/// The units of a cue value that come before and after a place in the order, nearest first.
fn around(
    cued: &UnitsByCue,
    place: (CueValue, CueOrder),
    most: usize,
) -> (impl Iterator<Item = UnitId>, impl Iterator<Item = UnitId>) {
    let same = move |((value, _), ()): &&((CueValue, CueOrder), ())| *value == place.0;
    let id = |((_, (_, _, id)), ()): &((CueValue, CueOrder), ())| *id;
    (
        cued.before(place).take_while(same).take(most).map(id),
        cued.after(Some(place)).take_while(same).take(most).map(id),
    )
}

/// Whether a choice belongs to the best `limit` and is not among them yet.
fn admits(best: &[EdgeChoice], choice: &EdgeChoice, limit: usize) -> bool {
    limit > 0 && (best.len() < limit || *choice < best[limit - 1]) && !best.contains(choice)
}

/// Puts a choice among the best; if the list is full, the last one is dropped.
fn insert_choice(best: &mut Vec<EdgeChoice>, choice: EdgeChoice, limit: usize) {
    if best.len() == limit {
        best.pop();
    }
    let at = best.partition_point(|c| *c < choice);
    insert_sparingly(best, at, choice);
}

fn values(cues: &CueSet) -> impl Iterator<Item = CueValue> {
    let value = |kind: u64| move |name: &NameKey| name & !KIND_BITS | kind;
    let participants = cues.participants.iter().map(value(PARTICIPANT));
    participants.chain(cues.locations.iter().map(value(LOCATION))).chain([TIME])
}

fn order(unit: &LiveUnit) -> CueOrder {
    let TimelinePosition { start_ms, ordinal, .. } = unit.position;
    (start_ms, ordinal, unit.id)
}

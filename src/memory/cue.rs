//! Structural choices of one bank: for each unit the best units by shared cues, exactly.
//!
//! In: net deletions and insertions of one epoch. Out: the exact changes of the choices.
//! Candidates come from ordered indexes by (start of T, else when it was said; ordinal; id), one for
//! each cue value and one for time alone: the nearest before and after in each (decision 12). A change
//! affects only the units near it, at any bank size.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};

use super::{
    footprint::{map_bytes, tree_bytes, vec_bytes},
    live::{ById, LiveUnit},
    score::{Choice, CueSet, GraphChoice, NameKey, Structural, TimelinePosition},
    semantic::ChoiceChange,
};
use crate::model::UnitId;

/// The structural index of one bank.
#[derive(Debug)]
pub(super) struct CueIndex {
    neighbours: usize,
    choices: usize,
    indexes: HashMap<CueValue, BTreeMap<Order, Arc<LiveUnit>>>,
    units: ById<(Arc<LiveUnit>, Vec<Choice>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CueValue {
    Participant(NameKey),
    Location(NameKey),
    Time,
}

/// Start in milliseconds, ordinal, id.
type Order = (i64, u32, UnitId);

impl CueIndex {
    /// An empty index: candidates before and after a unit, and choices a unit.
    #[must_use]
    pub(super) fn new(neighbours: usize, choices: usize) -> Self {
        Self { neighbours, choices, indexes: HashMap::new(), units: ById::default() }
    }

    /// Applies the net change of one epoch and appends the changes of the choices.
    pub(super) fn apply(
        &mut self,
        structural: &Structural,
        deleted: &[UnitId],
        inserted: &[Arc<LiveUnit>],
        changes: &mut Vec<ChoiceChange>,
    ) {
        let mut before = ById::default();
        let mut stale = BTreeSet::new();
        for id in deleted {
            self.delete(*id, &mut before, &mut stale);
        }
        for unit in inserted {
            self.insert(structural, unit, &mut before, &mut stale);
        }
        for id in stale {
            let Some((unit, old)) = self.units.get(&id) else { continue };
            let new = self.choose(structural, unit);
            if new != *old {
                let position = unit.position;
                if let Some((_, choices)) = self.units.get_mut(&id) {
                    let old = std::mem::replace(choices, new);
                    before.entry(id).or_insert((position.ordinal, old));
                }
            }
        }
        for (id, (ordinal, old)) in before {
            let now = self.units.get(&id);
            let new = now.map_or(&[][..], |(_, choices)| choices);
            let ordinal_now = now.map_or(ordinal, |(unit, _)| unit.position.ordinal);
            changes.extend(old.iter().filter(|c| !new.contains(c)).map(|c| (id, ordinal, *c, -1)));
            changes.extend(new.iter().filter(|c| !old.contains(c)).map(|c| (id, ordinal_now, *c, 1)));
        }
    }

    /// Adds units whose choices are known and follow with [`Self::choose_known`].
    pub(super) fn place(&mut self, units: &[Arc<LiveUnit>]) {
        for unit in units {
            self.units.insert(unit.id, (Arc::clone(unit), Vec::new()));
            for value in values(&unit.cues) {
                self.indexes.entry(value).or_default().insert(order(unit), Arc::clone(unit));
            }
        }
    }

    /// Gives a unit that was placed all of its choices, and appends them.
    pub(super) fn choose_known(&mut self, known: &[GraphChoice], changes: &mut Vec<ChoiceChange>) {
        let Some((unit, _)) = known.first().and_then(|choice| self.units.get(&choice.from)) else { return };
        let (id, position) = (unit.id, unit.position);
        let to = |choice: &GraphChoice| {
            let (to, _) = self.units.get(&choice.to)?;
            Some(Choice::new(choice.weight, &position, &to.position, to.id))
        };
        let mut best: Vec<Choice> = known.iter().filter_map(to).collect();
        best.sort_unstable();
        changes.extend(best.iter().map(|choice| (id, position.ordinal, *choice, 1)));
        if let Some((_, choices)) = self.units.get_mut(&id) {
            *choices = best;
        }
    }

    /// Bytes in memory, without the units themselves.
    pub(super) fn bytes(&self) -> usize {
        let indexes = map_bytes::<CueValue, BTreeMap<Order, Arc<LiveUnit>>>(self.indexes.capacity());
        let orders = self.indexes.values().map(|of| tree_bytes::<Order, Arc<LiveUnit>>(of.len())).sum::<usize>();
        let units = map_bytes::<UnitId, (Arc<LiveUnit>, Vec<Choice>)>(self.units.capacity());
        indexes + orders + units + self.units.values().map(|(_, chosen)| vec_bytes(chosen)).sum::<usize>()
    }

    /// What a unit chose, best first.
    pub(super) fn chosen_by(&self, id: UnitId) -> &[Choice] {
        self.units.get(&id).map_or(&[], |(_, choices)| choices)
    }

    fn delete(&mut self, id: UnitId, before: &mut ById<(u32, Vec<Choice>)>, stale: &mut BTreeSet<UnitId>) {
        let Some((unit, old)) = self.units.remove(&id) else { return };
        let order = order(&unit);
        for value in values(&unit.cues) {
            if let Some(index) = self.indexes.get_mut(&value) {
                index.remove(&order);
                if index.is_empty() {
                    self.indexes.remove(&value);
                }
            }
        }
        before.insert(id, (unit.position.ordinal, old));
        // Its neighbours may have chosen it, or have a new farthest candidate now.
        self.candidates(&unit, |other| {
            stale.insert(other.id);
        });
    }

    fn insert(
        &mut self,
        structural: &Structural,
        unit: &Arc<LiveUnit>,
        before: &mut ById<(u32, Vec<Choice>)>,
        stale: &mut BTreeSet<UnitId>,
    ) {
        if self.units.contains_key(&unit.id) {
            return;
        }
        let order = order(unit);
        before.entry(unit.id).or_insert((unit.position.ordinal, Vec::new()));
        stale.insert(unit.id);
        self.units.insert(unit.id, (unit.clone(), Vec::new()));
        for value in values(&unit.cues) {
            let index = self.indexes.entry(value).or_default();
            index.insert(order, unit.clone());
            let earlier: Vec<&Arc<LiveUnit>> =
                index.range(..order).rev().take(self.neighbours).map(|(_, u)| u).collect();
            let later: Vec<&Arc<LiveUnit>> =
                index.range((Excluded(order), Unbounded)).take(self.neighbours).map(|(_, u)| u).collect();
            for (near, far) in [(&earlier, &later), (&later, &earlier)] {
                for (distance, other) in near.iter().enumerate() {
                    if stale.contains(&other.id) {
                        continue;
                    }
                    let Some((_, choices)) = self.units.get_mut(&other.id) else { continue };
                    // The newcomer pushed the farthest candidate out of the other's reach.
                    let pushed = far.get(self.neighbours - 1 - distance);
                    if pushed.is_some_and(|pushed| choices.iter().any(|c| c.id == pushed.id)) {
                        stale.insert(other.id);
                        continue;
                    }
                    let Some(score) = structural.score(&other.cues, &unit.cues) else { continue };
                    let choice = Choice::new(score, &other.position, &unit.position, unit.id);
                    if score >= structural.threshold() && admits(choices, &choice, self.choices) {
                        before.entry(other.id).or_insert_with(|| (other.position.ordinal, choices.clone()));
                        admit(choices, choice, self.choices);
                    }
                }
            }
        }
    }

    fn candidates(&self, unit: &LiveUnit, mut each: impl FnMut(&Arc<LiveUnit>)) {
        let order = order(unit);
        for index in values(&unit.cues).filter_map(|value| self.indexes.get(&value)) {
            index.range(..order).rev().take(self.neighbours).for_each(|(_, u)| each(u));
            index.range((Excluded(order), Unbounded)).take(self.neighbours).for_each(|(_, u)| each(u));
        }
    }

    fn choose(&self, structural: &Structural, unit: &LiveUnit) -> Vec<Choice> {
        let mut best: Vec<Choice> = Vec::with_capacity(self.choices + 1);
        self.candidates(unit, |other| {
            let Some(score) = structural.score(&unit.cues, &other.cues) else { return };
            if score < structural.threshold() {
                return;
            }
            let choice = Choice::new(score, &unit.position, &other.position, other.id);
            if admits(&best, &choice, self.choices) {
                admit(&mut best, choice, self.choices);
            }
        });
        best
    }
}

/// Whether a choice belongs to the best `limit` and is not among them yet.
fn admits(best: &[Choice], choice: &Choice, limit: usize) -> bool {
    limit > 0 && (best.len() < limit || *choice < best[limit - 1]) && !best.contains(choice)
}

fn admit(best: &mut Vec<Choice>, choice: Choice, limit: usize) {
    let at = best.partition_point(|c| *c < choice);
    best.insert(at, choice);
    best.truncate(limit);
}

fn values(cues: &CueSet) -> impl Iterator<Item = CueValue> {
    let participants = cues.participants.iter().map(|p| CueValue::Participant(*p));
    participants.chain(cues.locations.iter().map(|l| CueValue::Location(*l))).chain([CueValue::Time])
}

fn order(unit: &LiveUnit) -> Order {
    let TimelinePosition { start_ms, ordinal, .. } = unit.position;
    (start_ms, ordinal, unit.id)
}

//! Semantic choices of one bank: for each unit the best units by cosine, exactly.
//!
//! In: net deletions and insertions of one epoch. Out: the exact changes of the choices. The state is a function of the
//! live set (decision 11): each unit keeps a pool of its best candidates at or above the threshold, with a floor below
//! which candidates were dropped. A deleted unit leaves at once, with its choices; the pools of others lose it in
//! [`SemanticIndex::repair`], which follows the last change of a load and goes step by step: so nothing is repaired for
//! units that leave later in the same load, and nothing at all if no unit stays. A repair takes the next best from the
//! pool. A pool is computed again only if it has a floor and too few candidates left for a full choice.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeSet, slice::from_ref, sync::Arc};

use super::choice_changes::{PreviousChoices, UnitChoiceChange, report_changes};
use crate::index::id_hasher::UnitIdMap;
use crate::index::{
    memory_footprint::{map_bytes, vec_bytes},
    units::{
        association_score::{EdgeChoice, GraphChoice},
        live_unit::LiveUnit,
    },
    vectors::{
        kernel::{self, AHEAD},
        near_rows::NearRows,
        unit_vector_rows::VectorRows,
    },
    work_budget::{COMPARED_UNIT, READ_POOL, WorkBudget},
};
use types::{
    model::{Score, UnitId},
    shrinkable_collection::{ShrinkableCollection, insert_sparingly, push_sparingly},
};

/// The number of vectors in a tile; a full tile is never moved.
const TILE_ROWS: usize = 256;
/// How many new units are scored together against the units that are already there.
const BLOCK: usize = 64;
/// From this many units on, an index keeps codes of their vectors. With fewer, reading all vectors is faster than
/// preparing a new unit's table.
const CODED_FROM: usize = 256;
/// With at least this many deletions, all choices are read. With fewer, a scan per deleted unit finds the units near
/// it.
const CHOICES_READ_FROM: usize = 8;
/// Pools that one step of a repair reads at least.
const LEAST_POOLS: u64 = 64;
/// Words of bits for the ids of what is deleted.
const ID_WORDS: usize = 64;

/// The semantic index of one bank.
#[derive(Debug)]
pub(in crate::index) struct SemanticIndex {
    pool: usize,
    choices: usize,
    threshold: i32,
    coded_from: usize,
    /// The vector of each slot, in a large bank.
    near: Option<NearRows>,
    slots: Vec<PooledUnit>,
    slot_of: UnitIdMap<usize>,
    /// Units that left and may still be in pools.
    gone: Vec<Arc<LiveUnit>>,
    /// The first slot whose pool may hold them.
    uncleared: usize,
    /// Units whose pools are to be computed again.
    short: Vec<UnitId>,
}

#[derive(Debug)]
struct PooledUnit {
    unit: Arc<LiveUnit>,
    pool: ChoicePool,
}

/// Best first. Every candidate that is preferred to the floor is in the list.
#[derive(Debug, Default)]
struct ChoicePool {
    best: Vec<EdgeChoice>,
    /// Boxed, because most units have none.
    floor: Option<Box<EdgeChoice>>,
}

impl ChoicePool {
    fn admits(&self, choice: &EdgeChoice) -> bool {
        self.floor.as_deref().is_none_or(|floor| choice < floor)
    }

    /// The least product that the pool may admit.
    fn least(&self, threshold: i32) -> i32 {
        self.floor.as_deref().map_or(threshold, |floor| floor.weight().0)
    }

    fn insert(&mut self, choice: EdgeChoice, limit: usize) {
        if self.admits(&choice) {
            let at = self.best.partition_point(|c| *c < choice);
            insert_sparingly(&mut self.best, at, choice);
            if self.best.len() > limit
                && let Some(worst) = self.best.pop()
            {
                match &mut self.floor {
                    Some(floor) => **floor = worst,
                    None => self.floor = Some(Box::new(worst)),
                }
            }
        }
    }
}

impl SemanticIndex {
    /// An empty index, with the size of the pool and the number of choices per unit, and the least score of a choice.
    #[must_use]
    pub(in crate::index) fn new(pool: usize, choices: usize, threshold: Score) -> Self {
        Self {
            pool,
            choices,
            threshold: threshold.0,
            coded_from: CODED_FROM,
            near: None,
            slots: Vec::new(),
            slot_of: UnitIdMap::default(),
            gone: Vec::new(),
            uncleared: 0,
            short: Vec::new(),
        }
    }

    /// Applies the net change of one epoch and appends the changes of the choices. [`Self::repair`] follows the last
    /// epoch of a load.
    pub(in crate::index) fn apply(
        &mut self,
        deleted: &[UnitId],
        inserted: &[Arc<LiveUnit>],
        changes: &mut Vec<UnitChoiceChange>,
    ) {
        let mut before = PreviousChoices::default();
        self.delete(deleted, &mut before);
        self.clear_returning(inserted, &mut before);
        for block in inserted.chunks(BLOCK) {
            self.insert(block, &mut before);
        }
        report_changes(before, |id| self.now(id), changes);
    }

    /// Adds units whose choices are known and follow with [`Self::restore_choices`].
    pub(in crate::index) fn insert_unchosen(&mut self, units: &[Arc<LiveUnit>]) {
        for unit in units {
            if self.slot_of.insert(unit.id, self.slots.len()).is_none() {
                self.push(unit, ChoicePool::default());
            }
        }
    }

    /// Gives a unit of [`Self::insert_unchosen`] all of its choices, and appends them to `changes`.
    pub(in crate::index) fn restore_choices(&mut self, known: &[GraphChoice], changes: &mut Vec<UnitChoiceChange>) {
        let Some(slot) = known.first().and_then(|choice| self.slot_of.get(&choice.from).copied()) else { return };
        let unit = &self.slots[slot].unit;
        let (id, position) = (unit.id, unit.position);
        let to = |choice: &GraphChoice| {
            let to = &self.slots[*self.slot_of.get(&choice.to)?].unit;
            Some(EdgeChoice::new(choice.weight, &position, &to.position, to.id))
        };
        let mut best: Vec<EdgeChoice> = known.iter().filter_map(to).collect();
        best.sort_unstable();
        changes.extend(best.iter().map(|choice| (id, position.ordinal, *choice, 1)));
        // If the list of choices is full, candidates worse than its last one are not known.
        let floor = best.last().copied().filter(|_| best.len() >= self.choices).map(Box::new);
        self.slots[slot].pool = ChoicePool { best, floor };
    }

    /// Tiles of the index: a scan reads one after the other.
    pub(in crate::index) fn tiles(&self) -> usize {
        self.slots.len().div_ceil(TILE_ROWS)
    }

    /// Appends each unit of a tile with the best cosine of `query` and one of its vectors; returns how
    /// many vectors were multiplied.
    pub(in crate::index) fn align(&self, query: &[i16], tile: usize, aligned: &mut Vec<(Arc<LiveUnit>, Score)>) -> u64 {
        let slots = self.slots.chunks(TILE_ROWS).nth(tile).unwrap_or_default();
        let mut vectors = 0;
        for (at, PooledUnit { unit, .. }) in slots.iter().enumerate() {
            if let Some(slot) = slots.get(at + 2 * AHEAD) {
                kernel::fetch_ahead(from_ref(&*slot.unit));
            }
            if let Some(slot) = slots.get(at + AHEAD) {
                slot.unit.vectors().iter().for_each(VectorRows::fetch_ahead);
                // A caller that asks for the cosines compares the cues next.
                kernel::fetch_ahead(&slot.unit.cues.participants);
            }
            vectors += unit.vectors().iter().map(VectorRows::len).sum::<usize>() as u64;
            aligned.push((Arc::clone(unit), unit.best_cosine(query).unwrap_or(Score(i32::MIN))));
        }
        vectors
    }

    /// At most `most` units, starting at `from`.
    pub(in crate::index) fn units(&self, from: usize, most: usize) -> impl ExactSizeIterator<Item = &Arc<LiveUnit>> {
        let end = self.slots.len().min(from.saturating_add(most));
        self.slots[from.min(end)..end].iter().map(|slot| &slot.unit)
    }

    /// How many units there are.
    pub(in crate::index) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes in memory, without the units themselves.
    pub(in crate::index) fn bytes(&self) -> usize {
        let pools = self.slots.iter().map(|slot| vec_bytes(&slot.pool.best)).sum::<usize>();
        let near = self.near.as_ref().map_or(0, NearRows::bytes);
        vec_bytes(&self.slots) + pools + near + map_bytes::<UnitId, usize>(self.slot_of.capacity())
    }

    /// The place of a unit among those that [`Self::align`] appends, tile after tile.
    pub(in crate::index) fn slot_of_unit(&self, id: UnitId) -> Option<usize> {
        self.slot_of.get(&id).copied()
    }

    /// A unit.
    pub(in crate::index) fn unit(&self, id: UnitId) -> Option<&Arc<LiveUnit>> {
        self.slot_of.get(&id).map(|slot| &self.slots[*slot].unit)
    }

    /// What a unit chose, best first.
    pub(in crate::index) fn chosen_by(&self, id: UnitId) -> &[EdgeChoice] {
        self.slot_of.get(&id).map_or(&[], |slot| self.chosen(*slot))
    }

    /// Whether there is no unit.
    pub(in crate::index) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Does one step of what deletions left to do, within the allowance where that allows a step; appends the changes
    /// of the choices. Returns whether there is more to do.
    pub(in crate::index) fn repair(&mut self, allowance: &mut WorkBudget, changes: &mut Vec<UnitChoiceChange>) -> bool {
        let mut before = PreviousChoices::default();
        let compared = (self.slots.len() as u64 * COMPARED_UNIT).max(1);
        if self.slots.is_empty() {
            self.gone = Vec::new();
            self.short = Vec::new();
        } else if !self.gone.is_empty() {
            if self.gone.len() >= CHOICES_READ_FROM {
                // As many as the removed units at least, which each step reads once.
                let least = LEAST_POOLS.max(self.gone.len() as u64);
                let most = (allowance.left() / READ_POOL).max(least) as usize;
                let end = self.slots.len().min(self.uncleared + most);
                allowance.spend((end - self.uncleared) as u64 * READ_POOL);
                let gone = std::mem::take(&mut self.gone);
                self.clear_pools(self.uncleared..end, &GoneIds::of(&gone), &mut before);
                self.uncleared = end;
                if end < self.slots.len() {
                    self.gone = gone;
                }
            } else if let Some(unit) = self.gone.pop() {
                allowance.spend(compared);
                let gone = [unit];
                let near = self.slots_near(&gone);
                self.clear_pools(near.into_iter(), &GoneIds::of(&gone), &mut before);
            }
            if self.gone.is_empty() {
                (self.gone, self.uncleared) = (Vec::new(), 0);
            }
        } else {
            let most = (allowance.left() / compared).clamp(1, BLOCK as u64) as usize;
            let some = self.short.split_off(self.short.len().saturating_sub(most));
            allowance.spend(compared * some.len() as u64);
            self.refill(&some, &mut before);
        }
        report_changes(before, |id| self.now(id), changes);
        self.wants_repair()
    }

    /// Whether deletions left something to do.
    pub(in crate::index) fn wants_repair(&self) -> bool {
        !self.gone.is_empty() || !self.short.is_empty()
    }

    fn delete(&mut self, deleted: &[UnitId], before: &mut PreviousChoices) {
        for id in deleted {
            let Some(slot) = self.slot_of.remove(id) else { continue };
            self.remember_choices(slot, before);
            if let Some(near) = &mut self.near {
                near.swap_remove(slot);
            }
            push_sparingly(&mut self.gone, self.slots.swap_remove(slot).unit);
            if self.slots.len() < self.coded_from / 2 {
                self.near = None;
            }
            if let Some(moved) = self.slots.get(slot) {
                self.slot_of.insert(moved.unit.id, slot);
            }
        }
        self.slot_of.give_room_back();
        self.slots.give_room_back();
    }

    /// Clears the pools of those units that left and now return: what the pools hold of them may be out of date.
    fn clear_returning(&mut self, inserted: &[Arc<LiveUnit>], before: &mut PreviousChoices) {
        if self.gone.is_empty() || inserted.is_empty() {
            return;
        }
        let new: UnitIdMap<()> = inserted.iter().map(|unit| (unit.id, ())).collect();
        let returning: Vec<_> = self.gone.extract_if(.., |unit| new.contains_key(&unit.id)).collect();
        let ids = GoneIds::of(&returning);
        if returning.len() >= CHOICES_READ_FROM {
            self.clear_pools(0..self.slots.len(), &ids, before);
        } else if !returning.is_empty() {
            let near = self.slots_near(&returning);
            self.clear_pools(near.into_iter(), &ids, before);
        }
    }

    /// The slots of the units near some units.
    fn slots_near(&self, gone: &[Arc<LiveUnit>]) -> BTreeSet<usize> {
        let queries: Vec<_> = gone.iter().map(|unit| unit.vector()).collect();
        let mut near = BTreeSet::new();
        self.scan(&queries, |_, slot, _| near.extend([slot]));
        near
    }

    /// Takes units that are gone out of the pools of some slots.
    fn clear_pools(&mut self, slots: impl Iterator<Item = usize>, ids: &GoneIds, before: &mut PreviousChoices) {
        for slot in slots {
            if !self.slots[slot].pool.best.iter().any(|choice| ids.contains(choice.id)) {
                continue;
            }
            self.remember_choices(slot, before);
            let PooledUnit { unit, pool } = &mut self.slots[slot];
            pool.best.retain(|choice| !ids.contains(choice.id));
            if pool.best.len() < self.choices && pool.floor.is_some() {
                self.short.push(unit.id);
            }
        }
    }

    /// Computes the pools of those of some units that are still here and lack candidates.
    fn refill(&mut self, short: &[UnitId], before: &mut PreviousChoices) {
        let mut short: Vec<usize> = short.iter().filter_map(|id| self.slot_of.get(id).copied()).collect();
        short.retain(|slot| {
            let pool = &self.slots[*slot].pool;
            pool.best.len() < self.choices && pool.floor.is_some()
        });
        let units: Vec<&LiveUnit> = short.iter().map(|slot| &*self.slots[*slot].unit).collect();
        let queries: Vec<_> = units.iter().map(|unit| unit.vector()).collect();
        let mut pools: Vec<ChoicePool> = units.iter().map(|_| ChoicePool::default()).collect();
        self.scan(&queries, |q, slot, other| {
            let least = pools[q].least(self.threshold);
            let Some(score) = other.product_of_at_least(least, &queries[q]) else { return };
            if slot != short[q] {
                pools[q].insert(choice(units[q], other.unit, score), self.pool);
            }
        });
        for (slot, pool) in short.iter().zip(pools) {
            self.remember_choices(*slot, before);
            self.slots[*slot].pool = pool;
        }
    }

    fn insert(&mut self, block: &[Arc<LiveUnit>], before: &mut PreviousChoices) {
        // A unit with an id that the index already has is the same unit: the id is a hash of its content.
        let mut ids = BTreeSet::new();
        let fresh: Vec<&Arc<LiveUnit>> =
            block.iter().filter(|u| !self.slot_of.contains_key(&u.id) && ids.insert(u.id)).collect();
        let queries: Vec<_> = fresh.iter().map(|unit| unit.vector()).collect();
        let residents = self.slots.len();
        let mut pools: Vec<ChoicePool> = fresh.iter().map(|_| ChoicePool::default()).collect();
        // Choices of the units that were there before the new one.
        let mut chosen: Vec<(usize, EdgeChoice)> = Vec::new();
        self.scan(&queries, |q, slot, resident| {
            let of_resident = &self.slots[slot].pool;
            // Only what one of the two pools would take is computed exactly.
            let least = pools[q].least(self.threshold).min(of_resident.least(self.threshold));
            if let Some(score) = resident.product_of_at_least(least, &queries[q]) {
                pools[q].insert(choice(fresh[q], resident.unit, score), self.pool);
                let back = choice(resident.unit, fresh[q], score);
                if of_resident.admits(&back) {
                    chosen.push((slot, back));
                }
            }
        });
        for (i, unit) in fresh.iter().enumerate() {
            for (j, earlier) in fresh[..i].iter().enumerate() {
                let score = kernel::dot(&queries[i], &queries[j]);
                if score >= self.threshold {
                    pools[i].insert(choice(unit, earlier, score), self.pool);
                    chosen.push((residents + j, choice(earlier, unit, score)));
                }
            }
        }
        for (unit, pool) in fresh.iter().zip(pools) {
            self.slot_of.insert(unit.id, self.slots.len());
            self.push(unit, pool);
            before.entry(unit.id).or_default();
        }
        for (slot, choice) in chosen {
            let last = self.slots[slot].pool.best.get(self.choices.saturating_sub(1));
            if last.is_none_or(|last| choice < *last) {
                self.remember_choices(slot, before);
            }
            self.slots[slot].pool.insert(choice, self.pool);
        }
    }

    /// Adds a unit's slot, and its code if there are enough units.
    fn push(&mut self, unit: &Arc<LiveUnit>, pool: ChoicePool) {
        push_sparingly(&mut self.slots, PooledUnit { unit: Arc::clone(unit), pool });
        if let Some(near) = &mut self.near {
            near.push(&unit.vector());
        } else if self.slots.len() >= self.coded_from {
            let near = self.near.insert(NearRows::new(self.threshold));
            self.slots.iter().for_each(|slot| near.push(&slot.unit.vector()));
        }
    }

    /// Calls `near(query, slot, unit)` for every pair whose product may be at least the threshold.
    fn scan<'u>(&'u self, queries: &[Cow<'_, [i16]>], mut near: impl FnMut(usize, usize, &mut ComparedUnit<'u>)) {
        let compared = |slot: usize| ComparedUnit { unit: &self.slots[slot].unit, vector: None };
        let Some(rows) = &self.near else {
            for slot in 0..self.slots.len() {
                let mut unit = compared(slot);
                (0..queries.len()).for_each(|query| near(query, slot, &mut unit));
            }
            return;
        };
        rows.scan(queries, |pairs| {
            // Units are scattered over the memory, and fetching many at once takes no longer than fetching one.
            pairs.rows().for_each(|slot| kernel::fetch_ahead(from_ref(&*self.slots[slot].unit)));
            pairs.rows().for_each(|slot| self.slots[slot].unit.fetch_vector());
            for slot in pairs.rows() {
                let mut unit = compared(slot);
                pairs.queries_of(slot).for_each(|query| near(query, slot, &mut unit));
            }
        });
    }

    fn chosen(&self, slot: usize) -> &[EdgeChoice] {
        let best = &self.slots[slot].pool.best;
        &best[..best.len().min(self.choices)]
    }

    fn remember_choices(&self, slot: usize, before: &mut PreviousChoices) {
        let unit = &self.slots[slot].unit;
        before.entry(unit.id).or_insert_with(|| (unit.position.ordinal, self.chosen(slot).to_vec()));
    }

    fn now(&self, id: UnitId) -> Option<(u32, &[EdgeChoice])> {
        self.slot_of.get(&id).map(|slot| (self.slots[*slot].unit.position.ordinal, self.chosen(*slot)))
    }
}

/// The ids of units that are gone.
struct GoneIds {
    /// A bit for some bits of an id: most ids need no lookup in the map.
    bits: [u64; ID_WORDS],
    ids: UnitIdMap<()>,
}

impl GoneIds {
    fn of(units: &[Arc<LiveUnit>]) -> Self {
        let ids: UnitIdMap<()> = units.iter().map(|unit| (unit.id, ())).collect();
        let mut bits = [0; ID_WORDS];
        ids.keys().map(|id| Self::bit(*id)).for_each(|(word, bit)| bits[word] |= bit);
        Self { bits, ids }
    }

    fn bit(id: UnitId) -> (usize, u64) {
        ((id.0 >> 6) as usize % ID_WORDS, 1u64 << (id.0 % 64))
    }

    fn contains(&self, id: UnitId) -> bool {
        let (word, bit) = Self::bit(id);
        self.bits[word] & bit != 0 && self.ids.contains_key(&id)
    }
}

/// A unit that some queries are compared with. Its vector in 16 bits is made once for all of them.
struct ComparedUnit<'u> {
    unit: &'u LiveUnit,
    vector: Option<Cow<'u, [i16]>>,
}

impl ComparedUnit<'_> {
    /// The exact product with a query, if it is at least `least`.
    fn product_of_at_least(&mut self, least: i32, query: &[i16]) -> Option<i32> {
        if self.vector.is_none() && !self.unit.may_reach_product(query, least) {
            return None;
        }
        let vector = self.vector.get_or_insert_with(|| self.unit.vector());
        Some(kernel::dot(query, vector)).filter(|product| *product >= least)
    }
}

fn choice(from: &LiveUnit, to: &LiveUnit, score: i32) -> EdgeChoice {
    EdgeChoice::new(Score(score), &from.position, &to.position, to.id)
}

impl EdgeChoice {
    /// The cosine or structural score.
    #[must_use]
    pub fn weight(&self) -> Score {
        let Reverse(score) = self.score;
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::units::turn_facts::TurnFactTable;
    use differential_dataflow::consolidation::consolidate;
    use types::model::{Cues, EventTime, Unit};

    fn unit(id: u64) -> Arc<LiveUnit> {
        let mut dice = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut draw = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 40) as f32 / 16_777_216.0 - 0.5
        };
        // A few directions, so that many units are near each other.
        let near = (id % 5) as usize;
        let vector: Vec<f32> = (0..64).map(|at| draw() * 0.2 + if at % 5 == near { 1.0 } else { 0.0 }).collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        let unit = Unit {
            id: UnitId(id),
            restatement: String::new(),
            vector: vector.iter().map(|x| x / length).collect(),
            cues: Cues::default(),
            said_at: EventTime::parse("2024-01-01T00:00:00Z").expect("a time"),
            sources: Vec::new(),
            ordinal: id as u32,
            parts: Vec::new(),
        };
        Arc::new(LiveUnit::new(&unit, "s", 64, &TurnFactTable::default()).expect("vectors of one width"))
    }

    #[test]
    fn codes_come_and_go_without_another_choice() {
        let index = |coded_from| SemanticIndex { coded_from, ..SemanticIndex::new(8, 4, Score::from_f64(0.9)) };
        let (mut without, mut with) = (index(usize::MAX), index(40));
        let units: Vec<Arc<LiveUnit>> = (0..90).map(unit).collect();
        let (mut was_coded, mut chosen) = (0, 0);
        // From empty to 90 units, down to 10, and up to 90 again.
        let steps = (0..9).map(|n| (n, true)).chain((1..9).rev().map(|n| (n, false))).chain((1..9).map(|n| (n, true)));
        for (ten, inserts) in steps {
            let of = &units[ten * 10..ten * 10 + 10];
            let ids: Vec<UnitId> = of.iter().map(|unit| unit.id).collect();
            let (deleted, inserted) = if inserts { (&[][..], of) } else { (&ids[..], &[][..]) };
            // Many deletions at once are found by the choices, and a few by the vectors.
            let [one, other] = [(&mut without, ten.max(1)), (&mut with, 10)].map(|(index, at_once)| {
                let mut changes = Vec::new();
                for some in deleted.chunks(at_once) {
                    index.apply(some, &[], &mut changes);
                    while index.repair(&mut WorkBudget::new(1), &mut changes) {}
                }
                index.apply(&[], inserted, &mut changes);
                let mut net = changes.into_iter().map(|(id, _, choice, change)| ((id, choice), change)).collect();
                consolidate(&mut net);
                net
            });
            assert_eq!(one, other);
            assert!(without.near.is_none());
            assert!(with.near.as_ref().is_none_or(|near| near.len() == with.len()));
            was_coded += usize::from(with.near.is_some());
            chosen += one.len();
        }
        assert!(chosen > 500, "{chosen}");
        assert_eq!(was_coded, 6 + 7 + 6);
    }
}

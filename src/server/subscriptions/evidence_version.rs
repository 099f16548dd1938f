//! The evidence of a question at one time, and the delta between two.
//!
//! In: evidence. Out: versions, which share equal units. As few units as possible count as moved. A delta has words of
//! the later evidence alone, so an earlier version needs none. Pure.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::question_event_forms::{EvidenceDelta, EvidenceProgress, RankedUnit, SubscribedUnit, UnitMove, UnitRank};
use types::model::{Bank, Cues, Evidence, EvidenceUnit, LogPosition, UnitId};

/// What a unit takes besides its texts, in bytes.
const UNIT_BYTES: usize = 256;

/// The evidence of a question at one time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvidenceVersion {
    /// The number of the version among those of its question; the same evidence at later offsets is the same version.
    pub(super) number: u64,
    pub(super) units: Vec<Arc<SubscribedUnit>>,
    pub(super) supported: bool,
    pub(super) sufficiency: f64,
    pub(super) reflects: Vec<LogPosition>,
}

impl EvidenceVersion {
    /// A version without evidence, for a bank that holds nothing.
    pub(super) fn empty(reflects: Vec<LogPosition>) -> Self {
        Self { number: 0, units: Vec::new(), supported: false, sufficiency: 0.0, reflects }
    }

    /// The version of some evidence.
    pub(super) fn of(evidence: Evidence) -> Self {
        let Evidence { units, supported, sufficiency, reflects, .. } = evidence;
        Self { number: 0, units: units.into_iter().map(unit).map(Arc::new).collect(), supported, sufficiency, reflects }
    }

    /// This version as the successor of `before`, with which it shares equal units. It has the same number if only the
    /// offsets changed, otherwise the number after `last`.
    pub(super) fn after(mut self, before: Option<&Self>, last: u64) -> Self {
        let Some(before) = before else { return Self { number: last + 1, ..self } };
        let known: HashMap<UnitId, &Arc<SubscribedUnit>> = before.units.iter().map(|unit| (unit.id, unit)).collect();
        for unit in &mut self.units {
            if let Some(same) = known.get(&unit.id).filter(|known| **known == unit) {
                *unit = Arc::clone(same);
            }
        }
        let same = self.units == before.units
            && self.supported == before.supported
            && self.sufficiency.total_cmp(&before.sufficiency).is_eq();
        Self { number: if same { before.number } else { last + 1 }, ..self }
    }

    /// The offset of the memory partition before which everything is reflected.
    pub(super) fn memory_offset(&self) -> u64 {
        memory_offset(&self.reflects)
    }

    pub(super) fn progress(&self, bank: &Bank) -> EvidenceProgress {
        EvidenceProgress {
            bank: bank.clone(),
            units: self.units.len(),
            supported: self.supported,
            sufficiency: self.sufficiency,
            reflects: self.reflects.clone(),
        }
    }

    /// The bytes of its units that another version does not share.
    pub(super) fn bytes_beside(&self, other: &Self) -> usize {
        let shared: HashMap<UnitId, &Arc<SubscribedUnit>> = other.units.iter().map(|unit| (unit.id, unit)).collect();
        let own = self.units.iter().filter(|unit| shared.get(&unit.id).is_none_or(|other| !Arc::ptr_eq(other, unit)));
        own.map(|unit| bytes(unit)).sum()
    }

    /// This version, with the words of only those units that a later one shares. Its delta to any later version gives
    /// the same result.
    pub(super) fn with_words_of(&self, later: &Self) -> Self {
        let shared: HashMap<UnitId, &Arc<SubscribedUnit>> = later.units.iter().map(|unit| (unit.id, unit)).collect();
        let of = |unit: &Arc<SubscribedUnit>| {
            let is_shared = shared.get(&unit.id).is_some_and(|later| Arc::ptr_eq(later, unit));
            if is_shared { Arc::clone(unit) } else { Arc::new(without_words(unit)) }
        };
        Self { units: self.units.iter().map(of).collect(), reflects: self.reflects.clone(), ..*self }
    }

    /// The delta from this version to a later one; `None` if the evidence is the same.
    pub(super) fn delta(&self, later: &Self) -> Option<EvidenceDelta> {
        if self.units == later.units {
            return None;
        }
        let now: HashMap<UnitId, usize> = later.units.iter().enumerate().map(|(rank, unit)| (unit.id, rank)).collect();
        let mut delta =
            EvidenceDelta { order: later.units.iter().map(|unit| unit.id).collect(), ..EvidenceDelta::default() };
        // Units that stay, in their earlier order, each with its earlier and its current rank.
        let mut stay = Vec::new();
        for (from, old) in self.units.iter().enumerate() {
            match now.get(&old.id).and_then(|to| Some((*to, later.units.get(*to)?))) {
                None => delta.removed.push(UnitRank { rank: from, id: old.id }),
                Some((to, new)) => {
                    stay.push((from, to, old.id));
                    if old != new {
                        delta.updated.push(RankedUnit { rank: to, unit: Arc::clone(new) });
                    }
                }
            }
        }
        let before: HashSet<UnitId> = self.units.iter().map(|unit| unit.id).collect();
        for (rank, unit) in later.units.iter().enumerate() {
            if !before.contains(&unit.id) {
                delta.added.push(RankedUnit { rank, unit: Arc::clone(unit) });
            }
        }
        let rest = longest_increasing_subsequence(&stay.iter().map(|(_, to, _)| *to).collect::<Vec<_>>());
        let moved = stay.iter().zip(rest).filter(|(_, stays)| !stays);
        delta.moved = moved.map(|((from, to, id), _)| UnitMove { id: *id, from: *from, to: *to }).collect();
        Some(delta)
    }
}

/// The offset of the memory partition before which everything is reflected.
pub(super) fn memory_offset(reflects: &[LogPosition]) -> u64 {
    reflects.iter().find(|at| at.topic == "memory").map_or(0, |at| at.next_offset)
}

/// The approximate size of a unit in bytes.
pub(super) fn bytes(unit: &SubscribedUnit) -> usize {
    let excerpts = unit.excerpts.iter().map(|excerpt| excerpt.text.len() + excerpt.speaker.len() + UNIT_BYTES / 2);
    UNIT_BYTES + unit.restatement.len() + excerpts.sum::<usize>()
}

fn unit(unit: EvidenceUnit) -> SubscribedUnit {
    let EvidenceUnit { id, restatement, cues, said_at, sources, excerpts, .. } = unit;
    SubscribedUnit { id, restatement, cues, said_at, sources, excerpts }
}

/// A unit of which nothing is left but that it was there.
fn without_words(unit: &SubscribedUnit) -> SubscribedUnit {
    let (restatement, cues, sources, excerpts) = (String::new(), Cues::default(), Vec::new(), Vec::new());
    SubscribedUnit { id: unit.id, restatement, cues, said_at: unit.said_at, sources, excerpts }
}

/// Which of the numbers belong to one longest rising subsequence.
fn longest_increasing_subsequence(numbers: &[usize]) -> Vec<bool> {
    // The length of the longest one that ends at each number, and the index of the number before it there.
    let mut best: Vec<(usize, Option<usize>)> = Vec::with_capacity(numbers.len());
    for (at, number) in numbers.iter().enumerate() {
        let before = (0..at).filter(|b| numbers.get(*b) < Some(number)).max_by_key(|b| best.get(*b).map(|(n, _)| *n));
        let length = before.and_then(|b| best.get(b)).map_or(1, |(length, _)| length + 1);
        best.push((length, before));
    }
    let mut belongs = vec![false; numbers.len()];
    let mut at = (0..best.len()).max_by_key(|at| best.get(*at).map(|(length, _)| *length));
    while let Some(last) = at {
        if let Some(place) = belongs.get_mut(last) {
            *place = true;
        }
        at = best.get(last).and_then(|(_, before)| *before);
    }
    belongs
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Cues, EventTime, Excerpt};

    fn unit(id: u64, text: &str) -> Arc<SubscribedUnit> {
        let said_at = EventTime::parse("2024-05-01T10:00:00Z").unwrap();
        let excerpt = Excerpt {
            turn: id.to_string(),
            speaker: "Ann".to_owned(),
            said_at,
            text: text.to_owned(),
            range: None,
            metadata: None,
        };
        Arc::new(SubscribedUnit {
            id: UnitId(id),
            restatement: id.to_string(),
            cues: Cues::default(),
            said_at,
            sources: vec![id.to_string()],
            excerpts: vec![excerpt],
        })
    }

    fn version(units: &[(u64, &str)]) -> EvidenceVersion {
        let units = units.iter().map(|(id, text)| unit(*id, text)).collect();
        EvidenceVersion { units, ..EvidenceVersion::empty(Vec::new()) }
    }

    /// What a client does with a delta.
    fn apply(units: &[Arc<SubscribedUnit>], delta: &EvidenceDelta) -> Vec<Arc<SubscribedUnit>> {
        let mut known: HashMap<UnitId, Arc<SubscribedUnit>> = units.iter().map(|u| (u.id, Arc::clone(u))).collect();
        delta.removed.iter().for_each(|removed| drop(known.remove(&removed.id)));
        let new = delta.added.iter().chain(&delta.updated);
        new.for_each(|RankedUnit { unit, .. }| drop(known.insert(unit.id, Arc::clone(unit))));
        assert_eq!(known.len(), delta.order.len(), "nothing is left over");
        delta.order.iter().map(|id| Arc::clone(&known[id])).collect()
    }

    #[test]
    fn a_delta_says_what_came_went_changed_and_moved() {
        let before = version(&[(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]);
        let later = version(&[(6, "f"), (1, "a"), (5, "e"), (3, "other"), (4, "d")]);
        let delta = before.delta(&later).unwrap();
        assert_eq!(delta.removed, [UnitRank { rank: 1, id: UnitId(2) }]);
        assert_eq!(delta.added.iter().map(|r| (r.rank, r.unit.id.0)).collect::<Vec<_>>(), [(0, 6)]);
        assert_eq!(
            delta.moved,
            [UnitMove { id: UnitId(5), from: 4, to: 2 }],
            "the fewest, and none by what came or went"
        );
        let [RankedUnit { rank, unit }] = &delta.updated[..] else { panic!("{delta:?}") };
        assert_eq!((*rank, unit.excerpts[0].text.as_str()), (3, "other"));
        assert_eq!(before.delta(&before), None);
    }

    #[test]
    fn any_delta_makes_the_later_version_of_the_earlier() {
        let mut dice = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let mut some = || {
                let mut ids: Vec<u64> = (0..12).filter(|_| dice.bool()).collect();
                dice.shuffle(&mut ids);
                let texts = ["one", "two"];
                let units: Vec<(u64, &str)> = ids.iter().map(|id| (*id, texts[dice.usize(0..2)])).collect();
                version(&units)
            };
            let (before, later) = (some(), some());
            match before.delta(&later) {
                Some(delta) => assert_eq!(apply(&before.units, &delta), later.units),
                None => assert_eq!(before.units, later.units),
            }
            let (between, later) = (some().after(Some(&before), 1), some());
            match before.with_words_of(&between).delta(&later) {
                Some(delta) => assert_eq!(apply(&before.units, &delta), later.units),
                None => assert_eq!(before.units, later.units),
            }
        }
    }

    #[test]
    fn an_earlier_version_keeps_the_words_that_a_later_one_shares() {
        let before = version(&[(1, "a"), (2, "b"), (3, "c")]).after(None, 0);
        let later = version(&[(3, "other"), (1, "a")]).after(Some(&before), 1);
        let kept = before.with_words_of(&later);
        assert_eq!(kept.units.iter().map(|unit| unit.id.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(Arc::ptr_eq(&kept.units[0], &before.units[0]));
        let mut others = kept.units[1..].iter();
        assert!(others.all(|unit| unit.restatement.is_empty() && unit.sources.is_empty() && unit.excerpts.is_empty()));
        assert_eq!(kept.delta(&later), before.delta(&later));
    }

    #[test]
    fn equal_evidence_is_the_same_version_and_shares_its_units() {
        let first = version(&[(1, "a"), (2, "b")]).after(None, 0);
        let same = version(&[(1, "a"), (2, "b")]).after(Some(&first), 1);
        assert_eq!((first.number, same.number, same.bytes_beside(&first)), (1, 1, 0));
        let other = version(&[(2, "b"), (3, "c")]).after(Some(&same), 1);
        assert_eq!(other.number, 2);
        assert!(Arc::ptr_eq(&other.units[0], &first.units[1]));
        assert_eq!(other.bytes_beside(&first), bytes(&other.units[1]));
        let surer = EvidenceVersion { sufficiency: 0.5, ..other.clone() }.after(Some(&other), 2);
        assert_eq!(surer.number, 3);
    }
}

//! The best parts of a session by first estimates.
//!
//! In: scores of the session's parts, in any order. Out: the best parts, whose mean is the score of the session. They
//! are a function of the set of parts.

use super::{
    best_slots::NO_SCORE,
    indexed_part::{NONE, PartSlot},
};

/// How many of a session's best parts make up its score, which is their mean.
pub(in crate::index) const SESSION_BEST: usize = 3;

/// The best parts of a session, best first.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct SessionBestSlots([(f32, PartSlot); SESSION_BEST]);

impl SessionBestSlots {
    /// No part.
    pub(in crate::index) const EMPTY: Self = Self([(NO_SCORE, NONE); SESSION_BEST]);

    /// Inserts a part at its place, if it is good enough. Parts with equal scores are in the order of their keys,
    /// because slot numbers depend on the history.
    pub(in crate::index) fn insert<K: Ord>(&mut self, score: f32, slot: PartSlot, key: impl Fn(PartSlot) -> K) {
        if score < self.least() || score == NO_SCORE {
            return;
        }
        let Self(best) = self;
        let before =
            |(other, of): &(f32, PartSlot)| *other > score || (*other == score && *of != NONE && key(*of) < key(slot));
        let place = best.partition_point(before);
        if place < SESSION_BEST {
            best[place..].rotate_right(1);
            best[place] = (score, slot);
        }
    }

    /// The score that another part must reach to be among the best.
    pub(in crate::index) fn least(&self) -> f32 {
        self.0[SESSION_BEST - 1].0
    }

    /// The parts with their scores.
    pub(in crate::index) fn parts(&self) -> impl Iterator<Item = (f32, PartSlot)> {
        self.0.into_iter().filter(|(_, slot)| *slot != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_parts_of_a_session_those_first_in_the_bank_are_its_best() {
        // The greater the slot, the earlier the part in the order of the bank.
        let key = |slot: PartSlot| 10 - slot;
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
            let mut best = SessionBestSlots::EMPTY;
            order.into_iter().for_each(|slot| best.insert(0.5, slot, key));
            assert_eq!(best.0.map(|(_, slot)| slot), [4, 3, 2], "{order:?}");
        }
    }
}

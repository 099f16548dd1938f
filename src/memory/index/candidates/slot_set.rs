//! A set of slots that also numbers them.
//!
//! In: slots. Out: whether the set has a slot, and how many it has before that one. It holds a bit for each slot of the
//! bank, so that a set of a million slots fits into the processor's caches.

use super::indexed_part::PartSlot;
use crate::index::memory_footprint::vec_bytes;

/// The number of slots in a word of bits.
const SLOTS_OF_A_WORD: usize = u64::BITS as usize;

/// Slots of one bank.
#[derive(Debug, Default)]
pub(in crate::index) struct SlotSet {
    bits: Vec<u64>,
    /// The number of slots before each word of bits, once they are numbered.
    before: Vec<u32>,
}

impl SlotSet {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        vec_bytes(&self.bits) + vec_bytes(&self.before)
    }

    /// Clears the set and makes space for `slots` slots.
    pub(in crate::index) fn clear(&mut self, slots: usize) {
        self.bits.clear();
        self.bits.resize(slots.div_ceil(SLOTS_OF_A_WORD), 0);
        self.before.clear();
    }

    /// Adds a slot; returns whether the bank has it and the set did not.
    pub(in crate::index) fn insert(&mut self, slot: PartSlot) -> bool {
        let (at, bit) = place(slot);
        let Some(word) = self.bits.get_mut(at) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether it has a slot.
    pub(in crate::index) fn contains(&self, slot: PartSlot) -> bool {
        let (at, bit) = place(slot);
        self.bits.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Numbers the slots in their order, once all are there; returns how many there are.
    pub(in crate::index) fn number_slots(&mut self) -> usize {
        let mut total = 0;
        self.before.extend(self.bits.iter().map(|word| {
            let before = total;
            total += word.count_ones();
            before
        }));
        total as usize
    }

    /// The number of a slot; `None` if the set does not have it.
    pub(in crate::index) fn number_of(&self, slot: PartSlot) -> Option<usize> {
        let (at, bit) = place(slot);
        let word = self.bits.get(at).filter(|word| **word & bit != 0)?;
        Some((self.before.get(at)? + (word & (bit - 1)).count_ones()) as usize)
    }
}

/// The word of a slot, and its bit.
fn place(slot: PartSlot) -> (usize, u64) {
    let slot = slot as usize;
    (slot / SLOTS_OF_A_WORD, 1 << (slot % SLOTS_OF_A_WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_numbered_in_their_order_and_what_is_no_slot_is_not_in_it() {
        let mut set = SlotSet::default();
        for slots in [200, 130] {
            set.clear(slots);
            let added = [129, 0, 63, 64, 129, 1_000, PartSlot::MAX].map(|slot| set.insert(slot));
            assert_eq!(added, [true, true, true, true, false, false, false]);
            assert_eq!(set.number_slots(), 4);
            let numbers = [0, 1, 63, 64, 128, 129, 1_000].map(|slot| set.number_of(slot));
            assert_eq!(numbers, [Some(0), None, Some(1), Some(2), None, Some(3), None]);
            assert!(set.contains(63) && !set.contains(62) && !set.contains(PartSlot::MAX));
        }
    }
}

//! Small numbers for the keys that are in use.
//!
//! In: keys that enter and leave, each any number of times. Out: for each key, a number below the greatest count of
//! keys that were ever in use at once. A key that has left as often as it entered is forgotten.

use std::{collections::HashMap, hash::BuildHasherDefault};

use crate::index::id_hasher::IdHasher;
use crate::index::memory_footprint::{map_bytes, vec_bytes};

/// Numbers by key.
#[derive(Debug, Default)]
pub(in crate::index) struct DenseIds {
    of_key: HashMap<u64, (u32, u32), BuildHasherDefault<IdHasher>>,
    free: Vec<u32>,
}

impl DenseIds {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        map_bytes::<u64, (u32, u32)>(self.of_key.capacity()) + vec_bytes(&self.free)
    }

    /// Counts one more use of a key; returns its number and whether the key is new.
    pub(in crate::index) fn acquire(&mut self, key: u64) -> (u32, bool) {
        let next = self.free.last().copied().unwrap_or(self.of_key.len() as u32);
        let (id, uses) = self.of_key.entry(key).or_insert((next, 0));
        *uses += 1;
        let fresh = *uses == 1;
        if fresh {
            self.free.pop();
        }
        (*id, fresh)
    }

    /// Counts one use of a key less; returns its number and whether the key is gone.
    pub(in crate::index) fn release(&mut self, key: u64) -> Option<(u32, bool)> {
        let (id, uses) = self.of_key.get_mut(&key)?;
        let id = *id;
        *uses -= 1;
        let gone = *uses == 0;
        if gone {
            self.of_key.remove(&key);
            self.free.push(id);
        }
        Some((id, gone))
    }

    /// The number of a key.
    pub(in crate::index) fn get(&self, key: u64) -> Option<u32> {
        self.of_key.get(&key).map(|(id, _)| *id)
    }

    /// One more than the greatest number.
    pub(in crate::index) fn id_bound(&self) -> usize {
        self.of_key.len() + self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_left_is_forgotten_and_its_number_used_again() {
        let mut ids = DenseIds::default();
        assert_eq!((ids.acquire(7), ids.acquire(8), ids.acquire(7)), ((0, true), (1, true), (0, false)));
        assert_eq!((ids.release(7), ids.release(7), ids.release(7)), (Some((0, false)), Some((0, true)), None));
        assert_eq!((ids.get(7), ids.get(8), ids.id_bound()), (None, Some(1), 2));
        assert_eq!((ids.acquire(9), ids.acquire(10), ids.id_bound()), ((0, true), (2, true), 3));
    }
}

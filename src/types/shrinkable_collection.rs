//! Collections that take little more memory than they need.
//!
//! In: a collection that grows, or one after removals. Out: the same one. A collection of the standard library doubles
//! its capacity when it is full, and keeps the capacity of its largest size: after a window closes, it would keep the
//! memory of the window's turns for ever.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher, Hash},
};

/// A collection may have this many times the capacity that it needs.
const SPARSE: usize = 4;

/// A collection that may have more capacity than it needs.
pub trait ShrinkableCollection {
    /// Frees memory if the capacity is more than four times what the contents need.
    fn give_room_back(&mut self);
}

impl<K: Eq + Hash, V, S: BuildHasher> ShrinkableCollection for HashMap<K, V, S> {
    fn give_room_back(&mut self) {
        if self.len() < self.capacity() / SPARSE {
            self.shrink_to(2 * self.len());
        }
    }
}

impl<T: Eq + Hash, S: BuildHasher> ShrinkableCollection for HashSet<T, S> {
    fn give_room_back(&mut self) {
        if self.len() < self.capacity() / SPARSE {
            self.shrink_to(2 * self.len());
        }
    }
}

impl<T> ShrinkableCollection for Vec<T> {
    fn give_room_back(&mut self) {
        if self.len() < self.capacity() / SPARSE {
            self.shrink_to(2 * self.len());
        }
    }
}

impl<T> ShrinkableCollection for VecDeque<T> {
    fn give_room_back(&mut self) {
        if self.len() < self.capacity() / SPARSE {
            self.shrink_to(2 * self.len());
        }
    }
}

/// Puts a value at the end of a vector, which grows by an eighth; the standard library would double it.
pub fn push_sparingly<T>(to: &mut Vec<T>, value: T) {
    insert_sparingly(to, to.len(), value);
}

/// Inserts a value into a vector, which grows by an eighth; the standard library would double it.
pub fn insert_sparingly<T>(to: &mut Vec<T>, at: usize, value: T) {
    if to.len() == to.capacity() {
        to.reserve_exact((to.len() / 8).max(1));
    }
    to.insert(at, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_grows_by_an_eighth() {
        let mut numbers: Vec<u32> = Vec::new();
        for n in 0..10_000 {
            if n % 2 == 0 {
                push_sparingly(&mut numbers, n);
            } else {
                let before = numbers.len() - 1;
                insert_sparingly(&mut numbers, before, n);
            }
            let spare = numbers.capacity() - numbers.len();
            assert!(spare <= numbers.len() / 8, "{spare} of {}", numbers.len());
        }
        // Every second insertion goes before the last element.
        assert!(numbers.into_iter().eq((0..10_000).map(|n| n ^ 1)));
    }

    #[test]
    fn what_is_mostly_empty_gives_room_back_and_what_is_not_keeps_it() {
        let mut numbers: Vec<u32> = Vec::with_capacity(100);
        numbers.extend(0..40);
        numbers.give_room_back();
        assert_eq!(numbers.capacity(), 100);
        numbers.truncate(10);
        numbers.give_room_back();
        assert_eq!(numbers.capacity(), 20);
        let mut map: HashMap<u32, u32> = (0..1_000).map(|n| (n, n)).collect();
        let mut set: HashSet<u32> = (0..1_000).collect();
        map.retain(|n, _| *n < 10);
        set.retain(|n| *n < 10);
        map.give_room_back();
        set.give_room_back();
        assert!(map.capacity() < 40 && set.capacity() < 40);
        assert!((0..10).all(|n| map.get(&n) == Some(&n) && set.contains(&n)));
    }
}

//! An ordered map whose entries are stored side by side, with hardly any unused space between them.
//!
//! In: entries to insert and keys to remove. Out: the entries in order, starting at any key. `BTreeMap` leaves a third
//! of each node empty, and nearly all of a small map. We hold one entry for each turn, part and cue of all banks, so
//! that matters.

/// The maximum number of bytes in a chunk, and so the most that one insertion moves.
const CHUNK_BYTES: usize = 8 << 10;

/// A map in the order of its keys.
#[derive(Debug, Clone)]
pub struct ChunkedMap<K, V> {
    /// The chunks in order; none of them is empty.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for ChunkedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Copy, V> ChunkedMap<K, V> {
    /// At least two, so that a split leaves one entry on either side.
    const MAX_IN_CHUNK: usize =
        if size_of::<(K, V)>() > CHUNK_BYTES / 2 { 2 } else { CHUNK_BYTES / size_of::<(K, V)>() };

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value at a key.
    pub fn get(&self, key: K) -> Option<&V> {
        let (chunk, at) = self.find(key).ok()?;
        Some(&self.chunks[chunk][at].1)
    }

    /// The value at a key, mutable.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let (chunk, at) = self.find(key).ok()?;
        Some(&mut self.chunks[chunk][at].1)
    }

    /// The last entry.
    pub fn last(&self) -> Option<&(K, V)> {
        self.chunks.last()?.last()
    }

    /// Puts a value at a key; returns the previous value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(key) {
            Ok((chunk, at)) => Some(std::mem::replace(&mut self.chunks[chunk][at].1, value)),
            Err(place) => {
                self.enter(place, (key, value));
                None
            }
        }
    }

    /// The value at a key; puts one there if there is none.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let (chunk, at) = match self.find(key) {
            Ok(place) => place,
            Err(place) => self.enter(place, (key, value())),
        };
        &mut self.chunks[chunk][at].1
    }

    /// Removes a key; returns its value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let (chunk, at) = self.find(key).ok()?;
        let entries = &mut self.chunks[chunk];
        let (_, removed) = entries.remove(at);
        self.len -= 1;
        if entries.is_empty() {
            self.chunks.remove(chunk);
        } else if entries.len() < entries.capacity() / 2 {
            entries.shrink_to_fit();
        }
        Some(removed)
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.chunks.iter().flatten()
    }

    /// The entries at a key and after it, in order.
    pub fn from(&self, key: K) -> impl Iterator<Item = &(K, V)> {
        let (Ok(place) | Err(place)) = self.find(key);
        self.rest(place)
    }

    /// The entries after a key, in order; all entries for `None`.
    pub fn after(&self, key: Option<K>) -> impl Iterator<Item = &(K, V)> {
        self.rest(match key.map(|key| self.find(key)) {
            None => (0, 0),
            Some(Ok((chunk, at))) => (chunk, at + 1),
            Some(Err(place)) => place,
        })
    }

    /// The entries before a key, the last first.
    pub fn before(&self, key: K) -> impl Iterator<Item = &(K, V)> {
        let (Ok((chunk, at)) | Err((chunk, at))) = self.find(key);
        let begun = self.chunks.get(chunk).and_then(|entries| entries.get(..at)).unwrap_or_default();
        begun.iter().rev().chain(self.chunks.iter().take(chunk).rev().flat_map(|entries| entries.iter().rev()))
    }

    /// Bytes that the entries take in memory, without what they point to.
    pub fn bytes(&self) -> usize {
        let entries = self.chunks.iter().map(Vec::capacity).sum::<usize>() * size_of::<(K, V)>();
        entries + self.chunks.capacity() * size_of::<Vec<(K, V)>>()
    }

    /// The entries at a place and after it.
    fn rest(&self, (chunk, at): (usize, usize)) -> impl Iterator<Item = &(K, V)> {
        let rest = self.chunks.get(chunk).and_then(|entries| entries.get(at..)).unwrap_or_default();
        rest.iter().chain(self.chunks.iter().skip(chunk + 1).flatten())
    }

    /// Puts an entry at the place that [`Self::find`] returned as an error; returns its final place.
    fn enter(&mut self, (mut chunk, mut at): (usize, usize), entry: (K, V)) -> (usize, usize) {
        self.len += 1;
        let Some(entries) = self.chunks.get_mut(chunk) else {
            // Most maps need only one chunk.
            self.chunks.reserve_exact(1);
            self.chunks.push(vec![entry]);
            return (chunk, at);
        };
        if entries.len() >= Self::MAX_IN_CHUNK {
            // Entries that arrive in order leave each chunk full; any other entry splits a chunk in half.
            let cut = if at == entries.len() { at } else { entries.len() / 2 };
            let second = entries.split_off(cut);
            entries.shrink_to_fit();
            self.chunks.insert(chunk + 1, second);
            if at >= cut {
                (chunk, at) = (chunk + 1, at - cut);
            }
        }
        let entries = &mut self.chunks[chunk];
        if entries.len() == entries.capacity() {
            // Grows by a quarter, because the standard library would double the space. A full chunk has no spare space.
            let more = (entries.len() / 4).max(3).min(Self::MAX_IN_CHUNK - entries.len());
            entries.reserve_exact(more);
        }
        entries.insert(at, entry);
        (chunk, at)
    }

    /// The chunk of a key and its place in it; as an error, the chunk and place at which it would be inserted. That
    /// chunk is missing only if there is no chunk at all.
    fn find(&self, key: K) -> Result<(usize, usize), (usize, usize)> {
        let later = self.chunks.partition_point(|entries| entries.first().is_some_and(|(first, _)| *first <= key));
        let chunk = later.saturating_sub(1);
        let entries = self.chunks.get(chunk).map_or(&[][..], Vec::as_slice);
        let found = entries.binary_search_by(|(other, _)| other.cmp(&key));
        found.map(|at| (chunk, at)).map_err(|at| (chunk, at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// So large that a few dozen fill a chunk.
    type Large = (bool, [u64; 15]);

    fn key((key, _): &(u16, Large)) -> u16 {
        *key
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_the_map_of_the_standard_library(
            steps in proptest::collection::vec((0u16..900, any::<bool>(), 0..4u8), 1..2_000),
            ascending in any::<bool>(),
        ) {
            let (mut chunked, mut tree) = (ChunkedMap::default(), BTreeMap::new());
            for (n, (at, value, kind)) in (0u16..).zip(steps) {
                let at = if ascending && kind != 0 { n } else { at };
                if kind == 0 {
                    prop_assert_eq!(chunked.remove(at), tree.remove(&at));
                } else {
                    prop_assert_eq!(chunked.insert(at, (value, [7; 15])), tree.insert(at, (value, [7; 15])));
                }
                prop_assert_eq!(chunked.len(), tree.len());
                prop_assert_eq!(chunked.get(at), tree.get(&at));
                prop_assert_eq!(chunked.get_mut(at), tree.get_mut(&at));
                prop_assert!(chunked.after(Some(at)).map(key).take(3).eq(tree.range(at + 1..).map(|(k, _)| *k).take(3)));
                prop_assert!(chunked.from(at).map(key).take(3).eq(tree.range(at..).map(|(k, _)| *k).take(3)));
                prop_assert!(chunked.before(at).map(key).take(3).eq(tree.range(..at).rev().map(|(k, _)| *k).take(3)));
            }
            prop_assert_eq!(chunked.last().map(key), tree.last_key_value().map(|(k, _)| *k));
            prop_assert!(chunked.iter().eq(chunked.after(None)));
            prop_assert!(chunked.iter().copied().eq(tree.into_iter()));
        }
    }

    #[test]
    fn entries_of_any_size_lie_in_order() {
        fn in_order<V: Copy>(value: V) {
            let mut map = ChunkedMap::default();
            for n in (0u64..40).map(|n| n * 13 % 41) {
                map.insert(n, value);
            }
            assert!(map.iter().map(|(n, _)| *n).is_sorted() && map.chunks.iter().all(|chunk| !chunk.is_empty()));
            assert_eq!(map.len(), map.iter().count());
        }
        in_order([0u8; 3_000]);
        in_order([0u8; 20_000]);
        in_order(0u8);
    }

    #[test]
    fn what_comes_takes_hardly_more_than_its_entries() {
        for factor in [1u64, 7_919] {
            let mut map = ChunkedMap::default();
            (0..10_000u64).for_each(|n| {
                map.insert(n * factor % 10_007, n);
            });
            assert_eq!(map.len(), 10_000);
            let entries = map.len() * size_of::<(u64, u64)>();
            assert!(map.bytes() < entries * 9 / 8, "{} of {entries} bytes", map.bytes());
            assert_eq!((0..10_007).filter_map(|n| map.remove(n)).count(), 10_000);
            assert_eq!((map.len(), map.chunks.len()), (0, 0));
        }
    }
}

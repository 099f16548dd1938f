//! The parts that hold a stem, and in how many windows it occurs.
//!
//! In: parts that are linked to their session or taken out of it, with the parts around them. Out: for each stem, its
//! parts with counts, and the number of windows that hold it. A window is a part together with the parts around it that
//! count with it (`word_window`). Everything is a function of the set of parts.

#[cfg(test)]
use std::collections::BTreeMap;
use std::{collections::HashMap, hash::BuildHasherDefault};

use super::{indexed_part::PartSlot, slot_set::SlotSet};
use crate::index::id_hasher::IdHasher;
use crate::index::{
    lexical::term_analyzer::{TermBagSlice, TermKey},
    memory_footprint::{map_bytes, vec_bytes},
};
use types::shrinkable_collection::push_sparingly;

/// What is known of a stem.
#[derive(Debug, Default)]
pub(in crate::index) struct StemEntry {
    /// The parts that hold it, each with its count there, in no order.
    pub parts: Vec<(PartSlot, u16)>,
    /// How many windows hold it.
    pub windows: u32,
}

/// The parts of a stem in order, with its count in each, and its windows.
#[cfg(test)]
type StemListing<K> = (Vec<(K, u16)>, u32);

/// Postings by stem.
#[derive(Debug, Default)]
pub(in crate::index) struct StemPostings {
    stems: HashMap<TermKey, StemEntry, BuildHasherDefault<IdHasher>>,
    /// Removed parts that are still in the lists of their stems, until [`Self::complete_removals`]. A frequent stem
    /// lists a large share of a bank, so its list is read once for many removals.
    unlisted: Vec<(TermKey, PartSlot)>,
}

/// Whether a part is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum PartChange {
    /// It is added.
    Insert,
    /// It is removed.
    Delete,
}

/// How the window of another part changes when a part is added: which parts stay in it, and which ones the new part
/// pushes out. When the part is removed, the reverse happens.
pub(in crate::index) struct WordWindowChange<'b> {
    /// The words of those that stay.
    pub stay: Vec<TermBagSlice<'b>>,
    /// The words of those that are pushed out.
    pub pushed_out: Vec<TermBagSlice<'b>>,
}

impl StemPostings {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let postings = self.stems.values().map(|stem| vec_bytes(&stem.parts)).sum::<usize>();
        map_bytes::<TermKey, StemEntry>(self.stems.capacity()) + postings + vec_bytes(&self.unlisted)
    }

    /// What is known of a stem; `None` if no window holds it.
    pub(in crate::index) fn get(&self, term: TermKey) -> Option<&StemEntry> {
        self.stems.get(&term)
    }

    /// Takes removed parts off the lists of their stems. Must be called before a list is read or a slot is used again.
    pub(in crate::index) fn complete_removals(&mut self) {
        let mut unlisted = std::mem::take(&mut self.unlisted);
        let Some(last) = unlisted.iter().map(|(_, slot)| *slot).max() else { return };
        let mut gone = SlotSet::default();
        gone.clear(last as usize + 1);
        for (_, slot) in &unlisted {
            gone.insert(*slot);
        }
        unlisted.sort_unstable();
        for of_stem in unlisted.chunk_by(|a, b| a.0 == b.0) {
            let Some((term, slot)) = of_stem.first().copied() else { continue };
            let Some(stem) = self.stems.get_mut(&term) else { continue };
            if of_stem.len() > 1 {
                stem.parts.retain(|(slot, _)| !gone.contains(*slot));
            } else if let Some(at) = stem.parts.iter().rposition(|(other, _)| *other == slot) {
                // Searched from the end, because what was added last is deleted most often.
                stem.parts.swap_remove(at);
            }
            self.forget_if_empty(term);
        }
    }

    fn forget_if_empty(&mut self, term: TermKey) {
        if self.stems.get(&term).is_some_and(|stem| stem.windows == 0 && stem.parts.is_empty()) {
            self.stems.remove(&term);
        }
    }

    /// Adds or removes a part with these words; `window` has the words of its own window.
    pub(in crate::index) fn apply_change(
        &mut self,
        change: PartChange,
        slot: PartSlot,
        bag: TermBagSlice<'_>,
        window: &[TermBagSlice<'_>],
        others: &[WordWindowChange<'_>],
    ) {
        for (term, count) in bag.terms() {
            match change {
                PartChange::Insert => push_sparingly(&mut self.stems.entry(term).or_default().parts, (slot, count)),
                PartChange::Delete => self.unlisted.push((term, slot)),
            }
        }
        for (at, of_window) in window.iter().enumerate() {
            for (term, _) in of_window.terms() {
                if !bags_hold(&window[..at], term) {
                    self.count(term, change == PartChange::Insert);
                }
            }
        }
        for WordWindowChange { stay, pushed_out } in others {
            for (term, _) in bag.terms() {
                if !bags_hold(stay, term) && !bags_hold(pushed_out, term) {
                    self.count(term, change == PartChange::Insert);
                }
            }
            for (at, out) in pushed_out.iter().enumerate() {
                for (term, _) in out.terms() {
                    if !bags_hold(stay, term) && !bags_hold(&pushed_out[..at], term) && bag.count(term) == 0 {
                        self.count(term, change == PartChange::Delete);
                    }
                }
            }
        }
    }

    /// Counts one window more or less that holds a stem.
    fn count(&mut self, term: TermKey, more: bool) {
        let stem = self.stems.entry(term).or_default();
        stem.windows = if more { stem.windows + 1 } else { stem.windows.saturating_sub(1) };
        if stem.windows == 0 {
            self.forget_if_empty(term);
        }
    }

    /// Each stem with its parts in order and its windows.
    #[cfg(test)]
    pub(in crate::index) fn listed<K: Ord>(&self, key: impl Fn(PartSlot) -> K) -> BTreeMap<TermKey, StemListing<K>> {
        let listed = |(term, stem): (&TermKey, &StemEntry)| {
            let mut parts: Vec<(K, u16)> = stem.parts.iter().map(|(slot, count)| (key(*slot), *count)).collect();
            parts.sort();
            (*term, (parts, stem.windows))
        };
        self.stems.iter().map(listed).collect()
    }
}

fn bags_hold(bags: &[TermBagSlice<'_>], term: TermKey) -> bool {
    bags.iter().any(|bag| bag.count(term) > 0)
}

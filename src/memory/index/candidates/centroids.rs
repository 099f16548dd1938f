//! The centroids of the parts of a large bank: one direction for several vectors.
//!
//! In: parts by slot, with their vectors. Out: the codes of their centroids. A centroid is the normalised sum of
//! the vectors of up to three sentences of a part and of the vector of its pair, which is the part with the turn before
//! it. A long part has several centroids. All is a function of the set of parts, except the numbers of slots and rows.

use std::{borrow::Cow, collections::HashMap, hash::BuildHasherDefault};

use super::indexed_part::{NONE, PartSlot};
use crate::index::id_hasher::IdHasher;
use crate::index::{
    memory_footprint::{map_bytes, vec_bytes},
    probes::FixedVector,
    units::live_unit::PartVectors,
    vectors::{
        kernel::{quantise, signs},
        vector_codes::{CodeScale, VectorCodes},
    },
};
use types::shrinkable_collection::push_sparingly;

/// The maximum number of sentences in a centroid.
const SENTENCES: usize = 3;

/// The codes of all centroids.
#[derive(Debug, Default)]
pub(in crate::index) struct PartCentroids {
    /// The first centroid of each slot; a slot is a row.
    first: VectorCodes,
    /// The other centroids of long parts.
    more: VectorCodes,
    /// The slot of each row of `more`; [`NONE`] if no part has the row.
    slots: Vec<PartSlot>,
    /// The rows of each slot in `more`.
    rows: HashMap<PartSlot, Vec<u32>, BuildHasherDefault<IdHasher>>,
    free_rows: Vec<u32>,
    scale: CodeScale,
}

impl PartCentroids {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let rows =
            map_bytes::<PartSlot, Vec<u32>>(self.rows.capacity()) + self.rows.values().map(vec_bytes).sum::<usize>();
        self.first.bytes() + self.more.bytes() + vec_bytes(&self.slots) + vec_bytes(&self.free_rows) + rows
    }

    /// Adds the centroids of a part.
    pub(in crate::index) fn insert(&mut self, slot: PartSlot, vectors: &PartVectors<'_>) {
        for (at, gist) in of_part(vectors).into_iter().enumerate() {
            self.scale.add(&gist);
            let code: Vec<u8> = signs(&gist).collect();
            if at == 0 {
                self.first.set(slot as usize, &code);
                continue;
            }
            let row = self.free_rows.pop().unwrap_or(self.slots.len() as u32);
            if row as usize == self.slots.len() {
                push_sparingly(&mut self.slots, NONE);
            }
            self.slots[row as usize] = slot;
            self.more.set(row as usize, &code);
            self.rows.entry(slot).or_default().push(row);
        }
    }

    /// Removes the centroids of a part.
    pub(in crate::index) fn delete(&mut self, slot: PartSlot, vectors: &PartVectors<'_>) {
        of_part(vectors).iter().for_each(|gist| self.scale.remove(gist));
        self.first.clear(slot as usize);
        for row in self.rows.remove(&slot).unwrap_or_default() {
            self.more.clear(row as usize);
            self.slots[row as usize] = NONE;
            self.free_rows.push(row);
        }
    }

    /// The first centroid of each slot.
    pub(in crate::index) fn first(&self) -> &VectorCodes {
        &self.first
    }

    /// The other centroids of long parts, and the slot of each row.
    pub(in crate::index) fn more(&self) -> (&VectorCodes, &[PartSlot]) {
        (&self.more, &self.slots)
    }

    /// How long the centroids are.
    pub(in crate::index) fn scale(&self) -> CodeScale {
        self.scale
    }

    /// The codes of a slot.
    #[cfg(test)]
    pub(in crate::index) fn listed(&self, slot: PartSlot) -> Vec<Vec<u8>> {
        let more = self.rows.get(&slot).into_iter().flatten().map(|row| self.more.code(*row as usize));
        std::iter::once(self.first.code(slot as usize)).chain(more).collect()
    }
}

/// The centroids of a part: one for every three sentences, the normalised sum of their vectors and of the vector of
/// [`PartVectors::pair`].
fn of_part(vectors: &PartVectors<'_>) -> Vec<FixedVector> {
    let pair: Vec<_> = vectors.pair.in_16_bits().collect();
    let sentences: Vec<_> = vectors.sentences.in_16_bits().collect();
    let sum = |vectors: &[Cow<'_, [i16]>]| {
        let mut sum = vec![0.0f32; vectors.first().map_or(0, |vector| vector.len())];
        for vector in vectors.iter().chain(&pair) {
            sum.iter_mut().zip(vector.iter()).for_each(|(sum, x)| *sum += f32::from(*x));
        }
        quantise(&sum)
    };
    sentences.chunks(SENTENCES).map(sum).collect()
}

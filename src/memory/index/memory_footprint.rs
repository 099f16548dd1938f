//! How many bytes the units of banks take in memory, by part.
//!
//! In: lengths and capacities of what the indexes hold. Out: the bytes that they asked the allocator for. What the
//! allocator adds is not counted, and the bytes of maps are estimates. Pure.

use std::mem::size_of;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of entries for every eight buckets of a hash map; the other bucket stays free.
const OF_EIGHT: usize = 7;
/// Bytes of a hash map for each bucket, besides the entry.
const BUCKET_BYTES: usize = 1;
/// Bytes of an `Arc` or `Rc` besides its value.
pub(super) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Bytes in memory, by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Footprint")]
pub struct MemoryFootprint {
    /// The number of units.
    pub units: u64,
    /// What units say: restatements, parts, cues and names.
    pub text_bytes: u64,
    /// The vectors of units and of their parts.
    pub vector_bytes: u64,
    /// The words and names of parts, and the order of the parts.
    pub part_bytes: u64,
    /// The index that finds candidates in a large bank.
    pub candidate_bytes: u64,
    /// The semantic index: codes of the vectors, and what each unit may choose.
    pub semantic_bytes: u64,
    /// The index by people, places and times, and what each unit chose in it.
    pub structural_bytes: u64,
    /// The edges as walks read them, an estimate.
    pub edge_bytes: u64,
}

impl MemoryFootprint {
    /// Adds the footprint of another bank.
    pub fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.text_bytes += other.text_bytes;
        self.vector_bytes += other.vector_bytes;
        self.part_bytes += other.part_bytes;
        self.candidate_bytes += other.candidate_bytes;
        self.semantic_bytes += other.semantic_bytes;
        self.structural_bytes += other.structural_bytes;
        self.edge_bytes += other.edge_bytes;
    }

    /// The sum of all parts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts().into_iter().map(|(_, bytes)| bytes).sum()
    }

    /// Each part with a short name.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("texts", self.text_bytes),
            ("vectors", self.vector_bytes),
            ("words of parts", self.part_bytes),
            ("candidates", self.candidate_bytes),
            ("semantic", self.semantic_bytes),
            ("structural", self.structural_bytes),
            ("edges", self.edge_bytes),
        ]
    }
}

/// Bytes of a vector's buffer.
pub(super) fn vec_bytes<T>(of: &Vec<T>) -> usize {
    of.capacity() * size_of::<T>()
}

/// Bytes of a hash map with space for `capacity` entries.
pub(super) fn map_bytes<K, V>(capacity: usize) -> usize {
    capacity.div_ceil(OF_EIGHT) * (OF_EIGHT + 1) * (size_of::<(K, V)>() + BUCKET_BYTES)
}

/// Bytes of an ordered map with `entries`, whose nodes are three quarters full.
pub(super) fn tree_bytes<K, V>(entries: usize) -> usize {
    (entries * size_of::<(K, V)>()).div_ceil(3) * 4
}

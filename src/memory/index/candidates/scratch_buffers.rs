//! Buffers for what a question notes about every part of a large bank.
//!
//! In: the buffers that the last question left. Out: the same buffers for the next question. Memory that was just used
//! is in the processor's caches, and the system does not have to clear it again. Its old content has no meaning: every
//! user fills it first.

use super::slot_set::SlotSet;
use crate::index::memory_footprint::vec_bytes;

/// Each has one entry, or one bit, for every slot of the bank.
#[derive(Debug, Default)]
pub(in crate::index) struct ScratchBuffers {
    /// For words around each part.
    pub words: Vec<u32>,
    /// For scores.
    pub scores: Vec<f32>,
    /// For the candidates.
    pub candidates: SlotSet,
    /// For the parts whose words are looked for.
    pub listed: SlotSet,
}

impl ScratchBuffers {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let Self { words, scores, candidates, listed } = self;
        vec_bytes(words) + vec_bytes(scores) + candidates.bytes() + listed.bytes()
    }
}

/// A vector of `entries` entries with the same value, in the same memory.
pub(in crate::index) fn refill_buffer<T: Clone>(room: &mut Vec<T>, entries: usize, value: T) -> Vec<T> {
    let mut room = std::mem::take(room);
    room.clear();
    room.resize(entries, value);
    room
}

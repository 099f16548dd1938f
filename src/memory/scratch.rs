//! Room for what a question notes of every part of a large bank.
//!
//! In: the room that the last question gave back. Out: the same for the next. Memory that was just used is in
//! the processor's caches, and the system need not clear it anew. What lies in it says nothing: whoever takes
//! it fills it.

use super::footprint::vec_bytes;

/// As many entries each as the bank has slots.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// For words around each part.
    pub words: Vec<u32>,
    /// For scores.
    pub scores: Vec<f32>,
    /// For a mark of each part.
    pub marks: Vec<bool>,
    /// For places in a list.
    pub places: Vec<u32>,
}

impl Scratch {
    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let Self { words, scores, marks, places } = self;
        vec_bytes(words) + vec_bytes(scores) + vec_bytes(marks) + vec_bytes(places)
    }
}

/// So many entries of one value, in the same room.
pub(super) fn filled<T: Clone>(room: &mut Vec<T>, entries: usize, value: T) -> Vec<T> {
    let mut room = std::mem::take(room);
    room.clear();
    room.resize(entries, value);
    room
}

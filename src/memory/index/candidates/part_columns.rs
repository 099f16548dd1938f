//! What a question reads about every part of a large bank, column by column.
//!
//! In: features of parts by slot, and which parts follow one another in a session. Out: the columns. A pass reads only
//! the columns that it needs, so that more parts fit into the processor's caches.

use super::indexed_part::{NONE, PartSlot};
use crate::index::{memory_footprint::vec_bytes, vectors::kernel};
use types::shrinkable_collection::push_sparingly;

/// The slot holds a part.
pub(in crate::index) const LIVE: u8 = 1;
/// The part ends with a question.
pub(in crate::index) const ASKS: u8 = 2;
/// The part is a passage of a long turn.
pub(in crate::index) const PASSAGE: u8 = 4;
/// How far the number of its expressions of time is shifted; the number fits into two bits.
const TIMES: u8 = 4;
/// The same for its names.
const NAMES: u8 = 6;
/// The greatest number that fits into two bits.
const MAX: u8 = 3;

/// The flags of a part with its counts of times and names, in a byte, so that a table of all bytes can hold their
/// weights.
pub(in crate::index) fn marks(flags: u8, times: u8, names: u8) -> u8 {
    flags | times.min(MAX) << TIMES | names.min(MAX) << NAMES
}

/// The expressions of time that a byte of [`marks`] counts.
pub(in crate::index) fn times(marks: u8) -> u8 {
    marks >> TIMES & MAX
}

/// The names that a byte of [`marks`] counts.
pub(in crate::index) fn names(marks: u8) -> u8 {
    marks >> NAMES
}

/// The parts around a part in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct SessionNeighbours {
    /// The part before it.
    pub before: PartSlot,
    /// The part after it.
    pub after: PartSlot,
    /// The part two places before it.
    pub second_before: PartSlot,
    /// The part two places after it.
    pub second_after: PartSlot,
}

impl SessionNeighbours {
    /// No part.
    pub(in crate::index) const NOTHING: Self =
        Self { before: NONE, after: NONE, second_before: NONE, second_after: NONE };

    /// All four.
    #[cfg(test)]
    pub(in crate::index) fn all(self) -> [PartSlot; 4] {
        [self.before, self.second_before, self.after, self.second_after]
    }
}

/// The features of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::index) struct PartFeatures {
    /// Words in its window.
    pub window: u32,
    /// Number of its speaker.
    pub speaker: u32,
    /// Number of its session.
    pub session: u32,
    /// Months since year 0.
    pub month: i32,
    /// Days since 1970-01-01.
    pub day: i32,
    /// The number of its words, at most 255.
    pub length: u8,
    /// Its flags and counts, packed by [`marks`].
    pub marks: u8,
}

/// The columns; a slot is an index into each.
#[derive(Debug, Default)]
pub(in crate::index) struct PartColumns {
    near: Vec<SessionNeighbours>,
    window: Vec<u32>,
    speaker: Vec<u32>,
    session: Vec<u32>,
    month: Vec<i32>,
    day: Vec<i32>,
    length: Vec<u8>,
    marks: Vec<u8>,
}

impl PartColumns {
    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        let Self { near, window, speaker, session, month, day, length, marks } = self;
        let of_parts = vec_bytes(near) + vec_bytes(length) + vec_bytes(marks);
        let numbers = [window, speaker, session].into_iter().map(vec_bytes).sum::<usize>();
        of_parts + numbers + vec_bytes(month) + vec_bytes(day)
    }

    /// Adds an empty slot.
    pub(in crate::index) fn push(&mut self) {
        push_sparingly(&mut self.near, SessionNeighbours::NOTHING);
        push_sparingly(&mut self.window, 0);
        push_sparingly(&mut self.speaker, 0);
        push_sparingly(&mut self.session, 0);
        push_sparingly(&mut self.month, 0);
        push_sparingly(&mut self.day, 0);
        push_sparingly(&mut self.length, 0);
        push_sparingly(&mut self.marks, 0);
    }

    /// Sets the features of a slot.
    pub(in crate::index) fn set(&mut self, slot: PartSlot, features: PartFeatures) {
        let at = slot as usize;
        self.window[at] = features.window;
        self.speaker[at] = features.speaker;
        self.session[at] = features.session;
        self.month[at] = features.month;
        self.day[at] = features.day;
        self.length[at] = features.length;
        self.marks[at] = features.marks;
    }

    /// The features of a slot.
    #[cfg(test)]
    pub(in crate::index) fn get(&self, slot: PartSlot) -> PartFeatures {
        let at = slot as usize;
        PartFeatures {
            window: self.window[at],
            speaker: self.speaker[at],
            session: self.session[at],
            month: self.month[at],
            day: self.day[at],
            length: self.length[at],
            marks: self.marks[at],
        }
    }

    /// Links these parts as neighbours: all parts within two places of a change, with [`NONE`] beyond the ends of the
    /// session.
    pub(in crate::index) fn link(&mut self, run: &[PartSlot]) {
        for (distance, second) in [(1, false), (2, true)] {
            for (at, after) in run.iter().zip(run.iter().skip(distance)) {
                if let Some(near) = self.near.get_mut(*at as usize) {
                    *if second { &mut near.second_after } else { &mut near.after } = *after;
                }
                if let Some(near) = self.near.get_mut(*after as usize) {
                    *if second { &mut near.second_before } else { &mut near.before } = *at;
                }
            }
        }
    }

    /// Removes the neighbours of a slot.
    pub(in crate::index) fn unlink(&mut self, slot: PartSlot) {
        self.near[slot as usize] = SessionNeighbours::NOTHING;
    }

    /// The parts around a slot; [`SessionNeighbours::NOTHING`] if the slot does not exist.
    pub(in crate::index) fn near_slot(&self, slot: PartSlot) -> SessionNeighbours {
        self.near.get(slot as usize).copied().unwrap_or(SessionNeighbours::NOTHING)
    }

    /// Has the processor fetch what a walk along the session reads for a slot ([`kernel::fetch_ahead`]).
    pub(in crate::index) fn fetch_ahead(&self, slot: PartSlot) {
        let at = slot as usize;
        kernel::fetch_ahead(self.near.get(at..=at).unwrap_or_default());
        kernel::fetch_ahead(self.length.get(at..=at).unwrap_or_default());
    }

    /// Words in each window.
    pub(in crate::index) fn window(&self) -> &[u32] {
        &self.window
    }

    /// The same, mutable.
    pub(in crate::index) fn window_mut(&mut self) -> &mut [u32] {
        &mut self.window
    }

    /// Numbers of the speakers.
    pub(in crate::index) fn speaker(&self) -> &[u32] {
        &self.speaker
    }

    /// Numbers of the sessions.
    pub(in crate::index) fn session(&self) -> &[u32] {
        &self.session
    }

    /// Months since year 0.
    pub(in crate::index) fn month(&self) -> &[i32] {
        &self.month
    }

    /// Days since 1970-01-01.
    pub(in crate::index) fn day(&self) -> &[i32] {
        &self.day
    }

    /// Numbers of words, at most 255 each.
    pub(in crate::index) fn length(&self) -> &[u8] {
        &self.length
    }

    /// Flags and counts ([`marks`]).
    pub(in crate::index) fn marks(&self) -> &[u8] {
        &self.marks
    }
}

//! The words of a question in some parts of a large bank.
//!
//! In: slots, then the postings of one word after the other. Out: for each of the slots its words with their
//! counts. Reading postings costs less than the words of the parts, which lie all over the memory.

use super::{
    asked::AskedWord,
    indexed_part::{NONE, Slot},
    scratch::filled,
};

/// The words of the parts that are listed.
#[derive(Debug, Default)]
pub(super) struct FoundWords {
    /// The place of each slot in the list, or [`NONE`].
    places: Vec<u32>,
    listed: u32,
    /// The words that were found: the place of the part, and the word.
    found: Vec<(u32, AskedWord)>,
    /// The words by place, one part after the other.
    words: Vec<AskedWord>,
    /// Where the words of each place end.
    ends: Vec<usize>,
}

impl FoundWords {
    /// No part of a bank with so many slots, whose places lie in this room.
    pub(super) fn new(slots: usize, room: &mut Vec<u32>) -> Self {
        Self { places: filled(room, slots, NONE), ..Self::default() }
    }

    /// The room of the places.
    pub(super) fn into_room(self) -> Vec<u32> {
        self.places
    }

    /// Lists a part, if it is not yet listed.
    pub(super) fn list(&mut self, slot: Slot) {
        if let Some(place) = self.places.get_mut(slot as usize).filter(|place| **place == NONE) {
            *place = self.listed;
            self.listed += 1;
        }
    }

    /// Finds a word in the listed parts.
    pub(super) fn find(&mut self, word: usize, postings: &[(Slot, u16)]) {
        let listed = |(slot, count): &(Slot, u16)| {
            let place = self.places.get(*slot as usize).copied().filter(|place| *place != NONE)?;
            Some((place, (word, u32::from(*count))))
        };
        self.found.extend(postings.iter().filter_map(listed));
    }

    /// Puts the words of each part together, once all are found.
    pub(super) fn group(&mut self) {
        let found = std::mem::take(&mut self.found);
        self.ends = vec![0; self.listed as usize];
        found.iter().for_each(|(place, _)| self.ends[*place as usize] += 1);
        let mut first = 0;
        for end in &mut self.ends {
            // Where its next word goes, so that it is the end once all are placed.
            first += std::mem::replace(end, first);
        }
        self.words = vec![(0, 0); found.len()];
        for (place, word) in found {
            let next = &mut self.ends[place as usize];
            self.words[*next] = word;
            *next += 1;
        }
    }

    /// The words of a part that is listed.
    pub(super) fn of(&self, slot: Slot) -> &[AskedWord] {
        let place = self.places.get(slot as usize).copied().unwrap_or(NONE) as usize;
        let Some(end) = self.ends.get(place).copied() else { return &[] };
        let first = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[first..end]
    }
}

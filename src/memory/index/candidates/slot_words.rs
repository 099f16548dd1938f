//! The words of a question in some parts of a large bank.
//!
//! In: slots, then the postings of one word after the other. Out: for each of the slots, its words with their counts.
//! Reading postings costs less than reading the words of the parts, which are scattered over the memory.

use super::{indexed_part::PartSlot, query_terms::QueryWordHit, slot_set::SlotSet};

/// The words of the parts that are listed.
#[derive(Debug, Default)]
pub(in crate::index) struct SlotWords {
    listed: SlotSet,
    /// The words that were found: the number of the part, and the word.
    found: Vec<(u32, QueryWordHit)>,
    /// The words by number, one part after the other.
    words: Vec<QueryWordHit>,
    /// Where the words of each number end.
    ends: Vec<usize>,
}

impl SlotWords {
    /// Before the first word of these parts.
    pub(in crate::index) fn new(mut listed: SlotSet) -> Self {
        let parts = listed.number_slots();
        Self { listed, ends: vec![0; parts], ..Self::default() }
    }

    /// The buffer of the set of parts, for the next question.
    pub(in crate::index) fn into_buffer(self) -> SlotSet {
        self.listed
    }

    /// Finds a word in the listed parts.
    pub(in crate::index) fn add_postings(&mut self, word: usize, postings: &[(PartSlot, u16)]) {
        let listed = |(slot, count): &(PartSlot, u16)| {
            let number = self.listed.number_of(*slot)?;
            Some((number as u32, (word, u32::from(*count))))
        };
        self.found.extend(postings.iter().filter_map(listed));
    }

    /// Puts the words of each part together, once all are found.
    pub(in crate::index) fn group(&mut self) {
        let found = std::mem::take(&mut self.found);
        found.iter().for_each(|(number, _)| self.ends[*number as usize] += 1);
        let mut first = 0;
        for end in &mut self.ends {
            // Until all words are placed, this is where the part's next word goes; then it is the end.
            first += std::mem::replace(end, first);
        }
        self.words = vec![(0, 0); found.len()];
        for (number, word) in found {
            let next = &mut self.ends[number as usize];
            self.words[*next] = word;
            *next += 1;
        }
    }

    /// The words of a part that is listed.
    pub(in crate::index) fn of(&self, slot: PartSlot) -> &[QueryWordHit] {
        let Some(number) = self.listed.number_of(slot) else { return &[] };
        let first = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[first..self.ends[number]]
    }
}

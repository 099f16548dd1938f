//! Gathers the conditional records of a request, until its group has all of them.
//!
//! In: conditional records of a bank, in the order of the log. Out: whole groups, each with its last record; and dead
//! letters for groups that lack records: of those nothing is written.

use std::collections::BTreeMap;

use types::model::{ConditionalWrite, DeadLetter, InputPosition};

/// The groups that lack records, by request.
#[derive(Debug, Default)]
pub(super) struct WriteGroups {
    open: BTreeMap<String, Vec<(u64, ConditionalWrite)>>,
    /// Records that belong to no group that can be whole.
    broken: Vec<(u64, ConditionalWrite)>,
}

impl WriteGroups {
    /// Whether a group lacks records.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Adds a record; returns its group once that is whole.
    pub(super) fn add(&mut self, offset: u64, write: ConditionalWrite) -> Option<Vec<(u64, ConditionalWrite)>> {
        let mut group = self.open.remove(&write.request).unwrap_or_default();
        let (index, count, request) = (write.index, write.count, write.request.clone());
        let follows = group.len() == index as usize && group.last().is_none_or(|(_, last)| last.count == count);
        group.push((offset, write));
        if !follows {
            self.broken.append(&mut group);
            return None;
        }
        if index + 1 == count {
            return Some(group);
        }
        self.open.insert(request, group);
        None
    }

    /// Dead letters for the records of groups that are not whole.
    pub(super) fn into_dead_letters(self, partition: u32) -> impl Iterator<Item = DeadLetter> {
        let broken = self.broken.into_iter().chain(self.open.into_values().flatten());
        broken.map(move |(offset, write)| {
            let position = InputPosition { partition, offset };
            let reason = format!(
                "record {} of a group of {} that lacks others, so nothing of it is written; send all of it again",
                write.index, write.count
            );
            let json = serde_json::to_vec(&write.change).unwrap_or_default();
            DeadLetter::of_turn(position, reason, &json).in_bank(Some(write.bank))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, TurnChange, TurnDeletion};

    fn write(request: &str, index: u32, count: u32) -> ConditionalWrite {
        let bank = Bank::parse("b").unwrap();
        let change = TurnChange::Deletion(TurnDeletion::permanent(bank.clone(), index.to_string()));
        let (request, expected_version, chooses_version) = (request.to_owned(), None, true);
        ConditionalWrite { bank, request, index, count, expected_version, chooses_version, change }
    }

    #[test]
    fn a_group_is_whole_with_its_last_record_and_one_that_lacks_any_is_none() {
        let mut groups = WriteGroups::default();
        let mut whole = Vec::new();
        for (offset, (request, index, count)) in [
            ("one", 0, 1),
            ("a", 0, 3),
            ("b", 0, 2),
            ("a", 1, 3),
            ("b", 1, 2),
            ("a", 2, 3),
            ("without its first", 1, 2),
            ("without its second", 0, 3),
            ("without its second", 2, 3),
            ("without its last", 0, 2),
        ]
        .into_iter()
        .enumerate()
        {
            if let Some(group) = groups.add(offset as u64, write(request, index, count)) {
                whole.push((request, group.iter().map(|(offset, _)| *offset).collect::<Vec<_>>()));
            }
        }
        assert_eq!(whole, [("one", vec![0]), ("b", vec![2, 4]), ("a", vec![1, 3, 5])]);
        let letters: Vec<_> = groups.into_dead_letters(7).filter_map(|letter| letter.position).collect();
        let offsets: Vec<u64> = letters.iter().map(|position| position.offset).collect();
        assert_eq!((offsets, letters[0].partition), (vec![6, 7, 8, 9], 7));
    }
}

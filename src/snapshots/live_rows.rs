//! The live memory records, with the ids of their turns and units, because the row of a removal must repeat those ids.

use std::collections::{HashMap, HashSet};

use super::RestoredRecord;
use memory::index::{RecordHash, RecordKey};
use types::{
    model::{MemoryRecord, UnitId},
    shrinkable_collection::ShrinkableCollection,
};

/// Bytes of a number in the [names](LiveRow) of a row.
const NUMBER: usize = size_of::<u32>();

/// A live record, without its content.
#[derive(Debug, Clone)]
pub(super) struct LiveRow {
    /// The offset of the read that added it.
    pub since: u64,
    /// How many units it has, their ids, then each of its turns: the length of its id, and the id. All of it is one
    /// allocation, because there are as many rows as open turns and closed windows.
    names: Box<[u8]>,
}

impl LiveRow {
    pub(super) fn of_record(since: u64, record: &MemoryRecord) -> Self {
        let turns = record.turns.iter().map(|window_turn| window_turn.turn.turn.as_str());
        Self::packed(since, record.units.iter().map(|unit| unit.id), turns)
    }

    pub(super) fn of_restored(record: &RestoredRecord) -> Self {
        let RestoredRecord { since, turns, extraction, names, .. } = record;
        let turns = turns.iter().map(String::as_str);
        match names {
            Some(names) => Self::packed(*since, names.units.iter().copied(), turns),
            None => Self::packed(*since, extraction.units.iter().map(|unit| unit.id), turns),
        }
    }

    fn packed<'t>(
        since: u64,
        units: impl ExactSizeIterator<Item = UnitId>,
        turns: impl Iterator<Item = &'t str>,
    ) -> Self {
        // A record, which holds all of them, is much smaller than four gigabytes.
        let mut names = (units.len() as u32).to_le_bytes().to_vec();
        units.for_each(|id| names.extend(id.0.to_le_bytes()));
        for turn in turns {
            names.extend((turn.len() as u32).to_le_bytes());
            names.extend(turn.as_bytes());
        }
        Self { since, names: names.into_boxed_slice() }
    }

    /// The ids of its units.
    pub(super) fn units(&self) -> impl Iterator<Item = UnitId> {
        let (units, _) = self.divided();
        units.as_chunks().0.iter().map(|id| UnitId(u64::from_le_bytes(*id)))
    }

    /// The ids of its turns.
    pub(super) fn turns(&self) -> impl Iterator<Item = &str> {
        let (_, mut rest) = self.divided();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<NUMBER>()?;
            let (turn, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            std::str::from_utf8(turn).ok()
        })
    }

    /// The bytes of its units, and those of its turns.
    fn divided(&self) -> (&[u8], &[u8]) {
        let (count, names) = self.names.split_first_chunk::<NUMBER>().unwrap_or((&[0; NUMBER], &[]));
        names.split_at_checked(u32::from_le_bytes(*count) as usize * size_of::<UnitId>()).unwrap_or_default()
    }
}

/// All live records.
#[derive(Debug, Default)]
pub(super) struct LiveRows(HashMap<RecordHash, LiveRow>);

impl LiveRows {
    pub(super) fn insert(&mut self, id: &RecordKey, row: LiveRow) {
        self.0.insert(id.into(), row);
    }

    pub(super) fn remove(&mut self, id: &RecordKey) -> Option<LiveRow> {
        let removed = self.0.remove(&id.into());
        self.0.give_room_back();
        removed
    }

    /// Whether this version of a record, added at `since`, is the live one.
    pub(super) fn is_live(&self, id: &RecordKey, since: u64) -> bool {
        self.0.get(&id.into()).is_some_and(|row| row.since == since)
    }

    pub(super) fn unit_ids(&self) -> HashSet<UnitId> {
        self.0.values().flat_map(LiveRow::units).collect()
    }

    pub(super) fn record_count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn unit_count(&self) -> u64 {
        self.0.values().map(|row| row.units().count() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_units_and_its_turns() {
        let turns = ["", "1", "Grüße", &"x".repeat(300)];
        for (units, turns) in [(&[1, u64::MAX][..], &turns[..]), (&[], &turns), (&[7], &[]), (&[], &[])] {
            let row = LiveRow::packed(9, units.iter().map(|id| UnitId(*id)), turns.iter().copied());
            assert_eq!(row.units().map(|id| id.0).collect::<Vec<_>>(), units);
            assert_eq!(row.turns().collect::<Vec<_>>(), turns);
            assert_eq!(row.since, 9);
        }
    }
}

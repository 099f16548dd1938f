//! The live memory records, by the names of what they hold: what a removal row must repeat.

use std::collections::{HashMap, HashSet};

use crate::{
    memory::{Extraction, RecordKey},
    model::{MemoryRecord, UnitId},
    sparse::Sparse,
};

/// A live record, without its content.
#[derive(Debug, Clone)]
pub(super) struct LiveRow {
    /// The offset of the read that added it.
    pub since: u64,
    /// The ids of its turns.
    pub turns: Box<[Box<str>]>,
    /// The ids of its units.
    pub units: Box<[UnitId]>,
}

impl LiveRow {
    pub(super) fn of_record(since: u64, record: &MemoryRecord) -> Self {
        let turns = record.turns.iter().map(|window_turn| window_turn.turn.turn.as_str().into()).collect();
        Self { since, turns, units: record.units.iter().map(|unit| unit.id).collect() }
    }

    pub(super) fn of_restored(since: u64, turns: &[String], extraction: &Extraction) -> Self {
        let turns = turns.iter().map(|turn| turn.as_str().into()).collect();
        Self { since, turns, units: extraction.units.iter().map(|unit| unit.id).collect() }
    }
}

/// All live records.
#[derive(Debug, Default)]
pub(super) struct LiveRows(HashMap<RecordKey, LiveRow>);

impl LiveRows {
    pub(super) fn insert(&mut self, id: RecordKey, row: LiveRow) {
        self.0.insert(id, row);
    }

    pub(super) fn remove(&mut self, id: &RecordKey) -> Option<LiveRow> {
        let removed = self.0.remove(id);
        self.0.give_room_back();
        removed
    }

    /// Whether this version of a record, added at `since`, is the live one.
    pub(super) fn is_live(&self, id: &RecordKey, since: u64) -> bool {
        self.0.get(id).is_some_and(|row| row.since == since)
    }

    pub(super) fn unit_ids(&self) -> HashSet<UnitId> {
        self.0.values().flat_map(|row| row.units.iter().copied()).collect()
    }

    pub(super) fn record_count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn unit_count(&self) -> u64 {
        self.0.values().map(|row| row.units.len() as u64).sum()
    }
}

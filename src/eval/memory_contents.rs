//! The contents of a memory topic, read back after a build.
//!
//! In: a log. Out: for each bank, which units name which turn as a source, and, for the baselines, the units and turns
//! with their vectors. Never includes records that a later record replaced or deleted.

use std::collections::{BTreeMap, HashMap};

use super::error::EvalError;
use logs::{Log, Topic};
use types::model::{Bank, MemoryRecord, UnitId};

/// The number of records read at once.
const READ_RECORDS: usize = 64;

/// The live records of a memory topic.
pub(crate) struct MemoryContents {
    citing: HashMap<(Bank, String), Vec<UnitId>>,
    units: u64,
    /// By bank, in the order of their keys; empty unless read with `keep_records`.
    pub(crate) records: BTreeMap<Bank, Vec<MemoryRecord>>,
}

impl MemoryContents {
    /// Reads a log's memory topic to its end.
    pub(crate) fn read(log: &dyn Log, keep_records: bool) -> Result<Self, EvalError> {
        let mut live: BTreeMap<Vec<u8>, LiveRecord> = BTreeMap::new();
        for partition in 0..log.partitions() {
            let mut from = 0;
            loop {
                let records = log.read(Topic::Memory, partition, from, READ_RECORDS)?.records;
                let Some(last) = records.last() else { break };
                from = last.offset + 1;
                for record in records {
                    let Some(value) = record.value else {
                        live.remove(&record.key);
                        continue;
                    };
                    let read: MemoryRecord = serde_json::from_slice(&value).map_err(|e| EvalError::Record {
                        partition,
                        offset: record.offset,
                        problem: e.to_string(),
                    })?;
                    live.insert(record.key, LiveRecord::of(read, keep_records));
                }
            }
        }
        let mut contents = Self { citing: HashMap::new(), units: 0, records: BTreeMap::new() };
        for LiveRecord { bank, units, record } in live.into_values() {
            contents.units += units.len() as u64;
            for (id, sources) in units {
                for turn in sources {
                    contents.citing.entry((bank.clone(), turn)).or_default().push(id);
                }
            }
            if let Some(record) = record {
                contents.records.entry(bank).or_default().push(record);
            }
        }
        Ok(contents)
    }

    /// The units that name a turn as a source.
    pub(crate) fn units_citing(&self, bank: &Bank, turn: &str) -> Vec<UnitId> {
        self.citing.get(&(bank.clone(), turn.to_owned())).cloned().unwrap_or_default()
    }

    /// The number of units.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }
}

/// One live record: its units' ids and sources, and the record itself when it is kept.
struct LiveRecord {
    bank: Bank,
    units: Vec<(UnitId, Vec<String>)>,
    record: Option<MemoryRecord>,
}

impl LiveRecord {
    fn of(record: MemoryRecord, keep_record: bool) -> Self {
        Self {
            bank: record.bank.clone(),
            units: record.units.iter().map(|u| (u.id, u.sources.clone())).collect(),
            record: keep_record.then_some(record),
        }
    }
}

//! What the memory log holds, read back after a build.
//!
//! In: a log. Out: for each bank, which units name which turn as a source, and, for the
//! rivals, the units and the turns themselves with their vectors. What a later record
//! replaced or removed is not there.

use std::collections::{BTreeMap, HashMap};

use super::bench::EvalError;
use crate::{
    log::{Log, Topic},
    model::{Bank, MemoryRecord, UnitId},
};

/// Records read at once.
const READ_RECORDS: usize = 64;

/// The live records of a memory log.
pub(crate) struct Remembered {
    holders: HashMap<(Bank, String), Vec<UnitId>>,
    units: u64,
    /// By bank, in the order of their keys; empty when only the holders were asked for.
    pub(crate) records: BTreeMap<Bank, Vec<MemoryRecord>>,
}

impl Remembered {
    /// Reads a log to its end; `whole` keeps the records.
    pub(crate) fn read(log: &dyn Log, whole: bool) -> Result<Self, EvalError> {
        let mut live: BTreeMap<Vec<u8>, Kept> = BTreeMap::new();
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
                    live.insert(record.key, Kept::of(read, whole));
                }
            }
        }
        let mut remembered = Self { holders: HashMap::new(), units: 0, records: BTreeMap::new() };
        for kept in live.into_values() {
            remembered.units += kept.units.len() as u64;
            for (id, sources) in kept.units {
                for turn in sources {
                    remembered.holders.entry((kept.bank.clone(), turn)).or_default().push(id);
                }
            }
            if let Some(record) = kept.record {
                remembered.records.entry(kept.bank).or_default().push(record);
            }
        }
        Ok(remembered)
    }

    /// The units that name a turn as a source.
    pub(crate) fn holders(&self, bank: &Bank, turn: &str) -> Vec<UnitId> {
        self.holders.get(&(bank.clone(), turn.to_owned())).cloned().unwrap_or_default()
    }

    /// How many units there are.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }
}

/// What is kept of one record.
struct Kept {
    bank: Bank,
    units: Vec<(UnitId, Vec<String>)>,
    record: Option<MemoryRecord>,
}

impl Kept {
    fn of(record: MemoryRecord, whole: bool) -> Self {
        Self {
            bank: record.bank.clone(),
            units: record.units.iter().map(|u| (u.id, u.sources.clone())).collect(),
            record: whole.then_some(record),
        }
    }
}

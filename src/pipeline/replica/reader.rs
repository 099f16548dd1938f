//! The memory log to the memory dataflow.
//!
//! In: the records of each partition, from the end of the last read. Out: loads of the dataflow,
//! each with the offsets that it reflects. An unreadable record, a newer schema or another model's
//! vectors stop the reader with an error that names the offset: no record is skipped.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    log::{Log, Record, Topic},
    memory::{Extraction, Load, MemoryHandle, RecordKey},
    model::{Bank, BankKey, MemoryKey, MemoryRecord, ModelRef, Position, SCHEMA_VERSION},
    snapshot::{LogRead, Manifest, Restored, RestoredRecord},
};

use super::PipelineError;

/// Records read at once.
const READ_RECORDS: usize = 64;
/// Limits of one load, in bytes and in records. They are large because most open turns of a long
/// log are added and removed within one load, which costs the indexes nothing.
const LOAD_BYTES: usize = 8 << 20;
const LOAD_RECORDS: usize = 1_024;
/// Units of a snapshot loaded at once; a bank is never divided.
const RESTORED_UNITS: usize = 20_000;

/// The position in each partition, and the live records that were loaded.
pub(super) struct Reader {
    next: Vec<u64>,
    banks: BTreeMap<Bank, HashSet<RecordKey>>,
    names: HashMap<BankKey, Bank>,
    model: Option<ModelRef>,
    dimensions: Option<usize>,
}

impl Reader {
    /// A reader before its first read.
    pub(super) fn new(partitions: u32) -> Self {
        Self {
            next: vec![0; partitions as usize],
            banks: BTreeMap::new(),
            names: HashMap::new(),
            model: None,
            dimensions: None,
        }
    }

    /// Reads the next records of a partition; `each` gets every record, with the offset after it.
    /// Gives what was read, with its records only if `keep`; None when there was nothing.
    pub(super) fn read(
        &mut self,
        log: &dyn Log,
        memory: &MemoryHandle,
        partition: u32,
        keep: bool,
        mut each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<Option<LogRead>, PipelineError> {
        let from = self.next.get(partition as usize).copied().unwrap_or_default();
        let mut batch = log.read(Topic::Memory, partition, from, READ_RECORDS)?;
        if batch.next == from {
            return Ok(None);
        }
        let bytes = |records: &[Record]| records.iter().filter_map(|r| Some(r.value.as_ref()?.len())).sum::<usize>();
        let mut held = bytes(&batch.records);
        while batch.records.len() < LOAD_RECORDS && held < LOAD_BYTES {
            let more = log.read(Topic::Memory, partition, batch.next, READ_RECORDS)?;
            if more.next == batch.next {
                break;
            }
            held += bytes(&more.records);
            batch.next = more.next;
            batch.covers.retain(|(turns, _)| more.covers.iter().all(|(newer, _)| newer != turns));
            batch.covers.extend(more.covers);
            batch.records.extend(more.records);
        }
        let mut changes = Vec::with_capacity(batch.records.len());
        let mut records = Vec::new();
        for record in &batch.records {
            let (change, key, read) = self.take(partition, record, &mut each)?;
            changes.push(change);
            if keep {
                records.push((key, read));
            }
        }
        let mut reflects = vec![position("memory", partition, batch.next)];
        reflects.extend(batch.covers.iter().map(|(turns, next)| position("turns", *turns, *next)));
        memory.load(Load { changes, reflects, ..Load::default() })?;
        if let Some(at) = self.next.get_mut(partition as usize) {
            *at = batch.next;
        }
        let (offset, append_ms) = batch.records.last().map(|r| (r.offset, r.append_ms)).unwrap_or_default();
        Ok(Some(LogRead { partition, next_offset: batch.next, offset, append_ms, covers: batch.covers, records }))
    }

    /// Loads a snapshot into an empty memory, with the turns positions that it covers.
    pub(super) fn restore(
        &mut self,
        restored: &Restored,
        covers: &BTreeMap<u32, u64>,
        memory: &MemoryHandle,
    ) -> Result<(), PipelineError> {
        let Manifest { reached, model, dimensions, .. } = &restored.manifest;
        self.model.clone_from(model);
        self.dimensions = (*dimensions > 0).then_some(*dimensions);
        let mut by_bank: BTreeMap<&Bank, Vec<&RestoredRecord>> = BTreeMap::new();
        for record in &restored.records {
            by_bank.entry(&record.key.bank).or_default().push(record);
        }
        let (mut load, mut units) = (Load::default(), 0);
        for (bank, records) in by_bank {
            self.names.insert(bank.key(), bank.clone());
            let held = self.banks.entry(bank.clone()).or_default();
            for record in records {
                let id = RecordKey::from(&record.key);
                held.insert(id);
                units += record.extraction.units.len();
                load.changes.push((id, Some(Arc::clone(&record.extraction))));
            }
            if restored.same_settings {
                let choices = restored.choices.get(bank).cloned().unwrap_or_default();
                load.known.push((bank.key(), Arc::new(choices)));
            }
            if units > RESTORED_UNITS {
                memory.load(std::mem::take(&mut load))?;
                units = 0;
            }
        }
        for at in reached {
            load.reflects.push(position("memory", at.partition, at.next_offset));
            if let Some(next) = self.next.get_mut(at.partition as usize) {
                *next = at.next_offset;
            }
        }
        load.reflects.extend(covers.iter().map(|(turns, next)| position("turns", *turns, *next)));
        Ok(memory.load(load)?)
    }

    /// Whether a record of this key is live.
    pub(super) fn holds(&self, key: &MemoryKey) -> bool {
        self.banks.get(&key.bank).is_some_and(|held| held.contains(&RecordKey::from(key)))
    }

    /// Removes records that the log no longer holds.
    pub(super) fn remove(&mut self, keys: &[MemoryKey], memory: &MemoryHandle) -> Result<(), PipelineError> {
        for key in keys {
            self.remove_key(key);
        }
        let changes = keys.iter().map(|key| (RecordKey::from(key), None)).collect();
        Ok(memory.load(Load { changes, ..Load::default() })?)
    }

    fn remove_key(&mut self, key: &MemoryKey) {
        if let Some(held) = self.banks.get_mut(&key.bank) {
            held.remove(&RecordKey::from(key));
            if held.is_empty() {
                self.banks.remove(&key.bank);
            }
        }
    }

    /// Partitions of the memory topic.
    pub(super) fn partitions(&self) -> u32 {
        self.next.len() as u32
    }

    /// Whether the bank has a live record.
    pub(super) fn has_bank(&self, bank: &Bank) -> bool {
        self.banks.contains_key(bank)
    }

    /// The name of a bank that has or had a live record.
    pub(super) fn bank(&self, key: BankKey) -> Option<Bank> {
        self.names.get(&key).cloned()
    }

    /// The known banks, for an error message.
    pub(super) fn banks(&self) -> String {
        match self.banks.len() {
            0 => "the memory is empty: ingest something first".to_owned(),
            n => {
                let some: Vec<&str> = self.banks.keys().take(8).map(Bank::as_str).collect();
                let more = if n > some.len() { format!(" and {} more", n - some.len()) } else { String::new() };
                format!("known: {}{more}", some.join(", "))
            }
        }
    }

    /// The model of the log's vectors.
    pub(super) fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// Fails when the log's vectors are of another model.
    pub(super) fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        match (&self.model, expected) {
            (Some(found), Some(expected)) if found != expected => Err(PipelineError::other_model(found, expected)),
            _ => Ok(()),
        }
    }

    fn take(
        &mut self,
        partition: u32,
        record: &Record,
        each: &mut impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<(Change, MemoryKey, Option<MemoryRecord>), PipelineError> {
        let failed = |problem: String| PipelineError::Record { partition, offset: record.offset, problem };
        let key = MemoryKey::from_bytes(&record.key).map_err(|e| failed(e.to_string()))?;
        let id = RecordKey::from(&key);
        let Some(value) = &record.value else {
            self.remove_key(&key);
            each(&key, None, record.offset + 1);
            return Ok(((id, None), key, None));
        };
        let version: Version = serde_json::from_slice(value)
            .map_err(|e| failed(format!("not a memory record: {e}; restore the log from a copy")))?;
        if version.schema != SCHEMA_VERSION {
            let problem = format!("schema {} is not {SCHEMA_VERSION}; use the build that wrote it", version.schema);
            return Err(failed(problem));
        }
        let parsed: MemoryRecord = serde_json::from_slice(value)
            .map_err(|e| failed(format!("not a memory record: {e}; restore the log from a copy")))?;
        if let Some(unit) = parsed.units.first() {
            let model = self.model.get_or_insert_with(|| parsed.model.clone());
            if *model != parsed.model {
                let (found, here) = (&model.hash, &parsed.model.hash);
                return Err(failed(format!(
                    "vectors of model {here} after those of {found}; restore the log from a copy"
                )));
            }
            self.dimensions.get_or_insert(unit.vector.0.len());
        }
        let extraction = Extraction::new(&parsed, self.dimensions.unwrap_or_default()).map_err(failed)?;
        each(&key, Some(&parsed), record.offset + 1);
        self.names.entry(key.bank.key()).or_insert_with(|| key.bank.clone());
        self.banks.entry(key.bank.clone()).or_default().insert(id);
        Ok(((id, Some(Arc::new(extraction))), key, Some(parsed)))
    }
}

/// A record as the dataflow takes it.
type Change = (RecordKey, Option<Arc<Extraction>>);

fn position(topic: &str, partition: u32, next_offset: u64) -> Position {
    Position { topic: topic.to_owned(), partition, next_offset }
}

/// The field that every schema of the record has.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

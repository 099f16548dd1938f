//! The memory log to the memory dataflow.
//!
//! In: the records of each partition, from the end of the last read. Out: loads of the dataflow,
//! each with the offsets that it reflects. No record is skipped. A record that no build can use, or
//! with another model's vectors, quarantines its bank: what the record's key held before is removed,
//! and questions to the bank are refused until the next readable record of the key, or its removal.
//! At a newer schema or an unreadable key the partition waits, and is answered as of before.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    log::{Log, Record, Topic},
    memory::{Extraction, Load, MemoryHandle, RecordKey},
    model::{Bank, BankKey, MemoryKey, MemoryRecord, ModelRef, Position},
    snapshot::{LogRead, Manifest, Restored, RestoredRecord, UnreadableRecord},
};

use super::{
    PipelineError,
    record_value::{Unread, read_value},
};

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
    /// The unreadable records of each quarantined bank.
    quarantined: BTreeMap<Bank, BTreeMap<RecordKey, UnreadableRecord>>,
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
            quarantined: BTreeMap::new(),
        }
    }

    /// Reads the next records of a partition; `each` gets every record, with the offset after it.
    /// An unreadable record is given as far as it can be read. Gives what was read, with its records
    /// only if `keep`; None when there was nothing.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] at a record that this build must not skip; everything before it was
    /// read by earlier calls.
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
        let (mut records, mut unreadable) = (Vec::new(), BTreeMap::new());
        let mut waits = None;
        for (index, record) in batch.records.iter().enumerate() {
            let (key, taken) = match self.take(record) {
                Ok(taken) => taken,
                Err(problem) if index == 0 => {
                    return Err(PipelineError::Waits { partition, offset: record.offset, problem });
                }
                Err(_) => {
                    waits = Some((index, record.offset));
                    break;
                }
            };
            let id = RecordKey::from(&key);
            each(&key, taken.read.as_ref(), record.offset + 1);
            changes.push((id, taken.extraction));
            match taken.unreadable {
                Some(found) => drop(unreadable.insert(id, found)),
                None => drop(unreadable.remove(&id)),
            }
            if keep {
                let whole = !unreadable.contains_key(&id);
                records.push((key, taken.read.filter(|_| whole)));
            }
        }
        if let Some((index, offset)) = waits {
            // What is before it is loaded now; the next call begins with it, and waits.
            batch.records.truncate(index);
            batch.covers.clear();
            batch.next = offset;
        }
        let mut reflects = vec![position("memory", partition, batch.next)];
        reflects.extend(batch.covers.iter().map(|(turns, next)| position("turns", *turns, *next)));
        memory.load(Load { changes, reflects, ..Load::default() })?;
        if let Some(at) = self.next.get_mut(partition as usize) {
            *at = batch.next;
        }
        let (offset, append_ms) = batch.records.last().map(|r| (r.offset, r.append_ms)).unwrap_or_default();
        let unreadable = unreadable.into_values().collect();
        let (next_offset, covers) = (batch.next, batch.covers);
        Ok(Some(LogRead { partition, next_offset, offset, append_ms, covers, records, unreadable }))
    }

    /// Loads a snapshot into an empty memory, with the turns positions that it covers.
    pub(super) fn restore(
        &mut self,
        restored: &Restored,
        covers: &BTreeMap<u32, u64>,
        memory: &MemoryHandle,
    ) -> Result<(), PipelineError> {
        let Manifest { reached, model, dimensions, unreadable, .. } = &restored.manifest;
        for record in unreadable {
            self.quarantine(record.clone());
        }
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

    /// Whether a record of this key is live, readable or not.
    pub(super) fn holds(&self, key: &MemoryKey) -> bool {
        let id = RecordKey::from(key);
        self.banks.get(&key.bank).is_some_and(|held| held.contains(&id))
            || self.quarantined.get(&key.bank).is_some_and(|records| records.contains_key(&id))
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
        let id = RecordKey::from(key);
        if let Some(held) = self.banks.get_mut(&key.bank) {
            held.remove(&id);
            if held.is_empty() {
                self.banks.remove(&key.bank);
            }
        }
        if let Some(records) = self.quarantined.get_mut(&key.bank) {
            records.remove(&id);
            if records.is_empty() {
                self.quarantined.remove(&key.bank);
            }
        }
    }

    fn quarantine(&mut self, record: UnreadableRecord) {
        let of_bank = self.quarantined.entry(record.key.bank.clone()).or_default();
        of_bank.insert(RecordKey::from(&record.key), record);
    }

    /// How many banks are quarantined.
    pub(super) fn quarantined_banks(&self) -> usize {
        self.quarantined.len()
    }

    /// An unreadable record of a bank, where it has one.
    pub(super) fn unreadable(&self, bank: &Bank) -> Option<&UnreadableRecord> {
        self.quarantined.get(bank)?.values().next()
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

    /// Takes a record in log order; an error for one that this build must not skip.
    fn take(&mut self, record: &Record) -> Result<(MemoryKey, Taken), String> {
        let key = MemoryKey::from_bytes(&record.key).map_err(|e| format!("{e}; run the build that wrote it"))?;
        let Some(value) = &record.value else {
            self.remove_key(&key);
            return Ok((key, Taken::default()));
        };
        let (read, made) = match read_value(value) {
            Ok(read) => {
                let made = self.extraction(&key, &read);
                (Some(read), made)
            }
            Err(Unread::Newer(schema)) => return Err(Unread::Newer(schema).to_string()),
            Err(Unread::Unreadable(problem)) => (None, Err(problem)),
        };
        self.remove_key(&key);
        self.names.entry(key.bank.key()).or_insert_with(|| key.bank.clone());
        match made {
            Ok(extraction) => {
                self.banks.entry(key.bank.clone()).or_default().insert(RecordKey::from(&key));
                Ok((key, Taken { read, extraction: Some(Arc::new(extraction)), unreadable: None }))
            }
            Err(problem) => {
                let unreadable = UnreadableRecord { key: key.clone(), offset: record.offset, problem };
                self.quarantine(unreadable.clone());
                Ok((key, Taken { read, extraction: None, unreadable: Some(unreadable) }))
            }
        }
    }

    /// A record as the dataflow takes it; an error for vectors that cannot be compared with the others.
    fn extraction(&mut self, key: &MemoryKey, record: &MemoryRecord) -> Result<Extraction, String> {
        if record.bank != key.bank {
            return Err(format!("a record of bank {} under the key of bank {}", record.bank, key.bank));
        }
        let Some(unit) = record.units.first() else { return Extraction::new(record, 0) };
        let dimensions = self.dimensions.unwrap_or(unit.vector.0.len());
        if let Some(model) = self.model.as_ref().filter(|model| **model != record.model) {
            let (found, here) = (&model.hash, &record.model.hash);
            return Err(format!("vectors of model {here} after those of {found}"));
        }
        let extraction = Extraction::new(record, dimensions)?;
        self.dimensions = Some(dimensions);
        self.model.get_or_insert_with(|| record.model.clone());
        Ok(extraction)
    }
}

/// What a record gave.
#[derive(Default)]
struct Taken {
    /// The record, as far as it could be read.
    read: Option<MemoryRecord>,
    /// What the dataflow gets of it.
    extraction: Option<Arc<Extraction>>,
    /// Why the dataflow gets nothing, though it has a value.
    unreadable: Option<UnreadableRecord>,
}

fn position(topic: &str, partition: u32, next_offset: u64) -> Position {
    Position { topic: topic.to_owned(), partition, next_offset }
}

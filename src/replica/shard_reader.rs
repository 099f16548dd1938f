//! Reads one partition of the memory log into its shard (decision 31).
//!
//! In: the records of the partition, from the end of the last read. Out: loads of the dataflow,
//! each with the offsets that it reflects. No record is skipped. A record that no build can use, or that has another
//! model's vectors, quarantines its bank: what the record's key held before is removed, and questions to the bank are
//! refused until the next readable record of the key, or its removal. At a record of a newer schema, or with a key or
//! read position that cannot be read, the partition waits, and its questions are answered from the state before that
//! record. It does not wait if a later record of that key follows: for each key, only the last record counts.
//! The first read with vectors decides which model's vectors are right: those of the model that embeds the questions
//! here, if it is known and a record has it, otherwise those of the model that most of its records have.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, RwLock},
};

use logs::{Log, LogRecord, ReadBatch, ReadProgress, Topic};
use memchr::memmem;
use memory::index::{RecordKey, RecordLoad, RecordUnits, ShardHandle};
use snapshots::{Manifest, MemoryLogRead, RestoredRecord, RestoredSnapshot, UnreadableMemoryRecord};
use tracing::debug_span;
use types::record_value::{RecordValueError, check_bank, check_schema, read_record, read_value};
use types::{
    model::{Bank, IN_PART, LogPosition, MemoryKey, MemoryRecord, ModelRef, WindowTurn},
    sync,
};

use super::{
    PipelineError,
    asleep_start::{AsleepOffsets, NotedRecord, NotedRecords},
    bank_sleep::BankSleep,
    shard_records::{LiveRecordState, ShardRecords},
};

/// Limits of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardLoadLimits {
    /// Records read at once.
    read: usize,
    /// Records of one load.
    records: usize,
    /// Bytes of one load.
    bytes: usize,
    /// Turns that the records of one load hold, as far as their keys show them.
    turns: usize,
}

impl ShardLoadLimits {
    /// While a log is loaded. They are large so that most open turns of a long log are added and removed within one
    /// load, which costs the indexes nothing.
    pub(super) const OF_LOG: Self = Self { read: 64, records: 1_024, bytes: 2 << 20, turns: usize::MAX };
    /// While questions are answered: those to other banks of the shard wait for a load.
    pub(super) const BESIDE_QUESTIONS: Self = Self { read: 8, records: 1_024, bytes: 1 << 20, turns: 256 };
}

/// How many turns a closed window counts for.
const WINDOW_TURNS: usize = 32;
/// How many turns a closed window counts for that only lost units.
const LESSENED_WINDOW_TURNS: usize = 4;
/// What the value of a record without units has in it. In a text the quotes are escaped.
const WITHOUT_UNITS: &[u8] = br#""units":[]"#;
/// How many units of a snapshot are loaded at once; a bank is never divided.
const RESTORED_UNITS: usize = 20_000;

/// A snapshot of the partition.
pub(super) struct RestoredPartition<'s> {
    /// The snapshot.
    pub(super) restored: &'s RestoredSnapshot,
    /// How far it covers the turns.
    pub(super) covers: BTreeMap<u32, ReadProgress>,
    /// Where the records of the banks that stay asleep are.
    pub(super) offsets: &'s AsleepOffsets,
}

/// Where a shard's records are loaded.
#[derive(Clone, Copy)]
pub(super) struct LoadTarget<'s> {
    pub(super) memory: &'s ShardHandle,
    pub(super) held: &'s RwLock<ShardRecords>,
    /// `None` if no bank sleeps.
    pub(super) sleep: Option<&'s BankSleep>,
    /// Wakes a bank of which there is a record at an offset.
    pub(super) wake: &'s dyn Fn(&Bank, u64) -> Result<(), PipelineError>,
}

/// Reads one partition.
pub(super) struct ShardReader {
    partition: u32,
    next: u64,
    /// The read positions that were loaded last.
    covers: Vec<(u32, ReadProgress)>,
    /// The model that embeds the questions, if known.
    asks: Option<ModelRef>,
    /// `None` before the first vector.
    vectors: Option<VectorSpace>,
    /// What [`Self::read_asleep`] has read.
    noted: NotedRecords,
}

/// Vectors with the same values here can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VectorSpace {
    model: ModelRef,
    dimensions: usize,
}

impl ShardReader {
    /// A reader before its first read. `asks` is the model that embeds the questions, if known.
    pub(super) fn new(partition: u32, asks: Option<ModelRef>) -> Self {
        Self { partition, next: 0, covers: Vec::new(), asks, vectors: None, noted: NotedRecords::default() }
    }

    /// The form of the vectors, once it is known.
    pub(super) fn vectors(&self) -> Option<&VectorSpace> {
        self.vectors.as_ref()
    }

    fn model(&self) -> Option<&ModelRef> {
        self.vectors.as_ref().map(|vectors| &vectors.model)
    }

    /// How far the loaded records cover the turns.
    pub(super) fn covers(&self) -> &[(u32, ReadProgress)] {
        &self.covers
    }

    /// The first offset that was not read.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Reads the next records; `each` gets every record, with the offset after it. An unreadable record is passed on as
    /// far as it can be read. Returns the read, with its records only if `keep`; `None` if there was nothing to read.
    /// `held` is locked only once everything is read and parsed.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] at a record that this build must not skip; everything before it was
    /// read by earlier calls.
    pub(super) fn read(
        &mut self,
        log: &dyn Log,
        to: &LoadTarget<'_>,
        limits: ShardLoadLimits,
        keep: bool,
        mut each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<Option<MemoryLogRead>, PipelineError> {
        let (partition, LoadTarget { memory, held, sleep, wake }) = (self.partition, *to);
        let Some(mut batch) = self.batch(log, limits)? else { return Ok(None) };
        let _span = debug_span!("shard", partition).entered();
        if let Some(sleep) = sleep {
            let keys = batch.records.iter().filter_map(|of| Some((MemoryKey::from_bytes(&of.key).ok()?, of.offset)));
            for (key, offset) in keys {
                if sleep.is_resting(key.bank.key()) {
                    wake(&key.bank, offset)?;
                }
            }
        }
        if self.vectors.is_none() {
            self.vectors = form_of(&batch.records, self.asks.as_ref());
        }
        let mut changes = Vec::with_capacity(batch.records.len());
        let (mut records, mut unreadable, mut now) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (mut waits, mut is_first) = (None, true);
        for (index, record) in batch.records.iter().enumerate() {
            let (key, taken) = match take_record(log, record, self.vectors.as_ref()) {
                Ok(Some(taken)) => taken,
                Ok(None) => continue,
                // A record does not count if a later record of its key follows.
                Err(_) if log.is_replaced(partition, record)? => continue,
                Err(problem) if is_first => {
                    return Err(PipelineError::Waits { partition, offset: record.offset, problem });
                }
                Err(_) => {
                    waits = Some((index, record.offset));
                    break;
                }
            };
            is_first = false;
            note_deletions(log, &key.bank, taken.read.as_ref())?;
            let id = RecordKey::from(&key);
            each(&key, taken.read.as_ref(), record.offset + 1);
            let live = taken.live(record.append_ms);
            let bytes = sleep.and(taken.extraction.as_ref()).map(|extraction| extraction.held_bytes());
            changes.push((id, taken.extraction));
            match &taken.unreadable {
                Some(found) => drop(unreadable.insert(id, found.clone())),
                None => drop(unreadable.remove(&id)),
            }
            if keep {
                let whole = !unreadable.contains_key(&id);
                records.push((key.clone(), taken.read.filter(|_| whole)));
            }
            now.push((key, live, bytes, taken.unreadable));
        }
        if let Some((index, offset)) = waits {
            // The records before it are loaded now; the next call begins with it, and waits.
            batch.records.truncate(index);
            batch.covers.clear();
            batch.next = offset;
        }
        let mut reflects = vec![position("memory", partition, batch.next)];
        reflects.extend(batch.covers.iter().map(|(turns, to)| position("turns", *turns, to.low())));
        log_events::records_loaded(batch.records.len(), changes.len(), batch.next);
        memory.load(RecordLoad { changes, reflects, ..RecordLoad::default() })?;
        {
            let mut held = sync::write(held);
            held.set_model(self.model());
            for (key, live, bytes, unreadable) in now {
                if let Some(sleep) = sleep {
                    sleep.note_record(key.bank.key(), bytes, held.holds(&key));
                }
                match (unreadable, live) {
                    (Some(record), _) => held.quarantine(record),
                    (None, Some(live)) => held.insert(&key, live),
                    (None, None) => held.remove(&key),
                }
            }
        }
        self.next = batch.next;
        if !batch.covers.is_empty() {
            self.covers.clone_from(&batch.covers);
        }
        let (offset, append_ms) = batch.records.last().map(|r| (r.offset, r.append_ms)).unwrap_or_default();
        let unreadable = unreadable.into_values().collect();
        let covers = batch.covers.iter().map(|(turns, to)| (*turns, to.low())).collect();
        let next_offset = batch.next;
        Ok(Some(MemoryLogRead { partition, next_offset, offset, append_ms, covers, records, unreadable }))
    }

    /// Reads records whose banks stay asleep: they are noted, and not loaded, until [`Self::leave_asleep`]. False at the
    /// end.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] as for [`Self::read`], also before a record that a later one replaces. Nothing of the
    /// batch was noted then.
    pub(super) fn read_asleep(&mut self, log: &dyn Log, memory: &ShardHandle) -> Result<bool, PipelineError> {
        let partition = self.partition;
        let Some(batch) = self.batch(log, ShardLoadLimits::OF_LOG)? else { return Ok(false) };
        if self.vectors.is_none() {
            self.vectors = form_of(&batch.records, self.asks.as_ref());
        }
        let mut now = Vec::with_capacity(batch.records.len());
        for record in &batch.records {
            let waits = |problem: String| PipelineError::Waits { partition, offset: record.offset, problem };
            let key = match MemoryKey::from_bytes(&record.key) {
                Ok(key) => key,
                Err(_) if record.value.is_none() => continue,
                Err(e) => return Err(waits(log.control_problem(record).unwrap_or_else(|| e.to_string()))),
            };
            let Some(value) = &record.value else {
                now.push((key, None));
                continue;
            };
            if let Err(newer @ RecordValueError::Newer(_)) = check_schema(value) {
                return Err(waits(newer.to_string()));
            }
            let fields = serde_json::from_slice::<SleepingRecordFields>(value).ok();
            let model = self.model();
            let fits = |of: &SleepingRecordFields| {
                of.bank == key.bank && (of.units.is_empty() || model.is_none_or(|model| *model == of.model))
            };
            let (offset, append_ms) = (record.offset, record.append_ms);
            let Some(fields) = fields.filter(fits) else {
                now.push((key, Some(NotedRecord { offset, append_ms, state: None })));
                continue;
            };
            for hole in fields.turns.iter().filter(|turn| turn.deleted) {
                log.deletions().note(&key.bank, &log.deleted_form(&hole.turn.turn)?, hole.turn.version);
            }
            let filled = !fields.units.is_empty() || fields.turns.iter().any(|turn| !turn.deleted);
            let in_part = fields.extractor.ends_with(IN_PART);
            let state = Some(LiveRecordState { filled, in_part, append_ms });
            now.push((key, Some(NotedRecord { offset, append_ms, state })));
        }
        let mut reflects = vec![position("memory", partition, batch.next)];
        reflects.extend(batch.covers.iter().map(|(turns, to)| position("turns", *turns, to.low())));
        memory.load(RecordLoad { reflects, ..RecordLoad::default() })?;
        now.into_iter().for_each(|(key, record)| self.noted.note(&key, record));
        self.next = batch.next;
        if !batch.covers.is_empty() {
            self.covers.clone_from(&batch.covers);
        }
        Ok(true)
    }

    /// Leaves the banks of the noted records asleep. Returns those for which something is left to do: those with a
    /// record that cannot be read here, and those with a window that is to be extracted again.
    pub(super) fn leave_asleep(&mut self, log: &dyn Log, to: &LoadTarget<'_>) -> BTreeSet<Bank> {
        let (mut unfinished, mut held) = (BTreeSet::new(), sync::write(to.held));
        held.set_model(self.model());
        for (bank, records) in std::mem::take(&mut self.noted).into_banks() {
            to.sleep.iter().for_each(|sleep| sleep.note_asleep(bank.key()));
            for NotedRecord { append_ms, state, .. } in &records {
                let unread = LiveRecordState { filled: true, in_part: false, append_ms: *append_ms };
                held.note_asleep(&bank, state.unwrap_or(unread));
            }
            if log.shared().is_some() {
                held.place_asleep(&bank, records.iter().map(|record| record.offset));
            }
            if records.iter().any(|record| record.state.is_none_or(|state| state.in_part)) {
                unfinished.insert(bank);
            }
        }
        unfinished
    }

    /// The records of the next load; `None` if only the input that the log covers has grown.
    fn batch(&self, log: &dyn Log, limits: ShardLoadLimits) -> Result<Option<ReadBatch>, PipelineError> {
        let mut batch = log.read(Topic::Memory, self.partition, self.next, limits.read)?;
        if batch.next == self.next {
            let is_known = |(partition, to): &(u32, ReadProgress)| {
                let known = self.covers.iter().find(|(turns, _)| turns == partition);
                known.map_or(to.through == 0, |(_, known)| !to.covers_more(known))
            };
            let covers_more = !batch.covers.iter().all(is_known);
            return Ok(covers_more.then_some(batch));
        }
        let bytes = |records: &[LogRecord]| records.iter().filter_map(|r| Some(r.value.as_ref()?.len())).sum::<usize>();
        let (mut held, mut turns) = (bytes(&batch.records), turns_of(&batch.records));
        while batch.records.len() < limits.records && held < limits.bytes && turns < limits.turns {
            let more = log.read(Topic::Memory, self.partition, batch.next, limits.read)?;
            if more.next == batch.next {
                break;
            }
            held += bytes(&more.records);
            turns += turns_of(&more.records);
            batch.next = more.next;
            batch.covers.retain(|(turns, _)| more.covers.iter().all(|(newer, _)| newer != turns));
            batch.covers.extend(more.covers);
            batch.records.extend(more.records);
        }
        Ok(Some(batch))
    }

    /// Loads a snapshot of the partition into an empty memory.
    pub(super) fn restore(
        &mut self,
        snapshot: &RestoredPartition<'_>,
        to: &LoadTarget<'_>,
    ) -> Result<(), PipelineError> {
        let LoadTarget { memory, held, sleep, .. } = *to;
        let RestoredPartition { restored, covers, offsets } = snapshot;
        let Manifest { reached, model, dimensions, unreadable, .. } = &restored.manifest;
        let model = model.clone().filter(|_| *dimensions > 0);
        self.vectors = model.map(|model| VectorSpace { model, dimensions: *dimensions });
        let mut by_bank: BTreeMap<&Bank, Vec<&RestoredRecord>> = BTreeMap::new();
        for record in restored.records.iter().filter(|record| record.names.is_none()) {
            by_bank.entry(&record.key.bank).or_default().push(record);
        }
        let (mut load, mut units) = (RecordLoad::default(), 0);
        for (bank, records) in by_bank {
            for record in records {
                units += record.extraction.units.len();
                load.changes.push((RecordKey::from(&record.key), Some(Arc::clone(&record.extraction))));
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
        if let Some(at) = reached.iter().find(|at| at.partition == self.partition) {
            load.reflects.push(position("memory", at.partition, at.next_offset));
            self.next = at.next_offset;
        }
        self.covers = covers.iter().map(|(turns, to)| (*turns, to.clone())).collect();
        load.reflects.extend(covers.iter().map(|(turns, to)| position("turns", *turns, to.low())));
        memory.load(load)?;
        let mut held = sync::write(held);
        held.set_model(self.model());
        for record in &restored.records {
            let RestoredRecord { filled, append_ms, .. } = *record;
            let state = LiveRecordState { filled, in_part: record.extractor.ends_with(IN_PART), append_ms };
            let bank = &record.key.bank;
            match sleep {
                Some(sleep) if record.names.is_some() => {
                    sleep.note_asleep(bank.key());
                    held.note_asleep(bank, state);
                }
                Some(sleep) => {
                    sleep.note_record(bank.key(), Some(record.extraction.held_bytes()), false);
                    held.insert(&record.key, state);
                }
                None => held.insert(&record.key, state),
            }
        }
        offsets.iter().for_each(|(bank, offsets)| held.place_asleep(bank, offsets.iter().copied()));
        unreadable.iter().for_each(|record| held.quarantine(record.clone()));
        Ok(())
    }
}

/// Takes a record in log order. Returns `None` for a removal that means nothing to this build, and an error for a record
/// that this build must not skip. `vectors` is the form of the memory's vectors, once it is known.
pub(super) fn take_record(
    log: &dyn Log,
    record: &LogRecord,
    vectors: Option<&VectorSpace>,
) -> Result<Option<(MemoryKey, RecordEffect)>, String> {
    let key = match MemoryKey::from_bytes(&record.key) {
        Ok(key) => key,
        Err(_) if record.value.is_none() => return Ok(None),
        Err(e) => {
            let remedy = "run the build that wrote it, or see `ripplemem repair`, which shows it and can replace it";
            let problem = log.control_problem(record).unwrap_or_else(|| e.to_string());
            return Err(format!("{problem}; {remedy}"));
        }
    };
    let Some(value) = &record.value else { return Ok(Some((key, RecordEffect::default()))) };
    let (read, made) = match read_value(value) {
        Ok(read) => {
            let made = units_of(&key, &read, vectors);
            (Some(read), made)
        }
        Err(RecordValueError::Newer(schema)) => return Err(RecordValueError::Newer(schema).to_string()),
        Err(RecordValueError::Unreadable(problem)) => (None, Err(problem)),
    };
    let taken = match made {
        Ok(extraction) => RecordEffect { read, extraction: Some(Arc::new(extraction)), unreadable: None },
        Err(problem) => {
            let unreadable = UnreadableMemoryRecord { key: key.clone(), offset: record.offset, problem, found: None };
            RecordEffect { read, extraction: None, unreadable: Some(unreadable) }
        }
    };
    Ok(Some((key, taken)))
}

/// The units of a record for the dataflow; an error for vectors that cannot be compared with the others.
fn units_of(key: &MemoryKey, record: &MemoryRecord, vectors: Option<&VectorSpace>) -> Result<RecordUnits, String> {
    check_bank(key, record)?;
    let Some(unit) = record.units.first() else { return RecordUnits::new(record, 0) };
    // No vectors are known yet if none of the read's records with vectors can be used.
    let Some(VectorSpace { model, dimensions }) = vectors else {
        return RecordUnits::new(record, unit.vector.len());
    };
    if *model != record.model {
        return Err(format!("vectors of model {}, but the others are of {}", record.model.hash, model.hash));
    }
    RecordUnits::new(record, *dimensions)
}

/// Notes the deleted turns of a record, for a process that holds the bank but does not extract it.
fn note_deletions(log: &dyn Log, bank: &Bank, record: Option<&MemoryRecord>) -> Result<(), PipelineError> {
    for hole in record.into_iter().flat_map(|record| &record.turns).filter(|turn| turn.deleted) {
        log.deletions().note(bank, &log.deleted_form(&hole.turn.turn)?, hole.turn.version);
    }
    Ok(())
}

/// The form of a memory's vectors, found from the records that were read first: that of the model `asks` if a record
/// has it, otherwise the most frequent form, and among equally frequent ones the first. Unusable records do not count.
fn form_of(records: &[LogRecord], asks: Option<&ModelRef>) -> Option<VectorSpace> {
    let mut counts: Vec<(VectorSpace, usize)> = Vec::new();
    for form in records.iter().filter_map(form_of_record) {
        match counts.iter_mut().find(|(known, _)| *known == form) {
            Some((_, count)) => *count += 1,
            None => counts.push((form, 1)),
        }
    }
    // Of several equal ones, `max_by_key` returns the last, hence the reversal.
    let best = counts.into_iter().rev().max_by_key(|(form, count)| (Some(&form.model) == asks, *count));
    best.map(|(form, _)| form)
}

fn form_of_record(record: &LogRecord) -> Option<VectorSpace> {
    let read = read_record(&MemoryKey::from_bytes(&record.key).ok()?, record.value.as_deref()?).ok()?;
    let dimensions = read.units.first()?.vector.len();
    RecordUnits::new(&read, dimensions).ok()?;
    Some(VectorSpace { model: read.model, dimensions })
}

/// How many turns records hold, as far as their keys show them. What only takes units away counts for less: it is
/// applied sooner, and the more of it a load has, the less often the units that stay are repaired.
fn turns_of(records: &[LogRecord]) -> usize {
    let lost_units = [IN_PART.as_bytes(), b"\","].concat();
    let turns = |record: &LogRecord| match (MemoryKey::from_bytes(&record.key), &record.value) {
        (Ok(MemoryKey { turn: None, .. }), Some(value)) if memmem::find(value, WITHOUT_UNITS).is_some() => 1,
        (Ok(MemoryKey { turn: None, .. }), Some(value)) if memmem::find(value, &lost_units).is_some() => {
            LESSENED_WINDOW_TURNS
        }
        (Ok(MemoryKey { turn: None, .. }), Some(_)) => WINDOW_TURNS,
        _ => 1,
    };
    records.iter().map(turns).sum()
}

/// The fields of a record whose bank stays asleep; the units are skipped.
#[derive(serde::Deserialize)]
struct SleepingRecordFields {
    bank: Bank,
    turns: Vec<WindowTurn>,
    extractor: String,
    model: ModelRef,
    units: Vec<serde::de::IgnoredAny>,
}

/// The effect of a record.
#[derive(Default)]
pub(super) struct RecordEffect {
    /// The record, as far as it could be read.
    pub(super) read: Option<MemoryRecord>,
    /// What the dataflow gets from it.
    pub(super) extraction: Option<Arc<RecordUnits>>,
    /// Why the dataflow gets nothing, although the record has a value.
    pub(super) unreadable: Option<UnreadableMemoryRecord>,
}

impl RecordEffect {
    /// What is held of the record, if it is live and can be read.
    pub(super) fn live(&self, append_ms: i64) -> Option<LiveRecordState> {
        self.extraction.is_some().then(|| LiveRecordState {
            filled: self.read.as_ref().is_some_and(MemoryRecord::is_filled),
            in_part: self.read.as_ref().is_some_and(MemoryRecord::is_in_part),
            append_ms,
        })
    }
}

fn position(topic: &str, partition: u32, next_offset: u64) -> LogPosition {
    LogPosition { topic: topic.to_owned(), partition, next_offset }
}

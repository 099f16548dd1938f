//! A start at which banks stay asleep: from a snapshot, or from one read of the log.
//!
//! In: a log, and its newest snapshot or its records. Out: of the banks that are awake from the start, what the snapshot
//! holds: those of which the log has more, those with a record that cannot be read, and those with a window that is to
//! be extracted again. Of the others, the names of their turns and units; where other processes write to the log, also
//! the offsets of their records. A read keeps no names, and finds the banks that are awake from the start at its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use logs::{LiveKey, Log, LogError};
use memory::index::{RecordHash, RecordKey};
use snapshots::{LogSnapshots, RestoredSnapshot};
use types::{
    config::{LLM, Pipeline},
    model::{Bank, BankKey, IN_PART, MemoryKey},
};

use super::{PipelineError, log_events, shard_records::LiveRecordState};

/// Where the records of banks that stay asleep are, on a log to which other processes write.
pub(super) type AsleepOffsets = BTreeMap<Bank, Vec<u64>>;

/// A snapshot with the names alone of the banks that stay asleep.
pub(super) struct AsleepSnapshot {
    pub(super) restored: RestoredSnapshot,
    pub(super) offsets: AsleepOffsets,
}

/// The newest snapshot of a partition; `None` if all banks must be loaded: without a snapshot, if the settings of the
/// edges have changed, and if a language model extracts here, which may not have read all windows yet.
pub(super) fn newest_asleep(
    pipeline: &Pipeline,
    log: &dyn Log,
    snapshots: &LogSnapshots,
    partition: u32,
    window_turns: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<AsleepSnapshot>, PipelineError> {
    if pipeline.extract.extractor == LLM && log.shared().is_none() {
        return Ok(None);
    }
    let warn = &mut |problem: &str| log_events::snapshot_not_restored(partition, problem);
    let named = snapshots.newest_names(partition, warn, progress)?;
    let Some(mut restored) = named.filter(|restored| restored.same_settings) else { return Ok(None) };
    let Some(keys) = live_keys(log, partition)? else { return Ok(None) };
    let next = restored.manifest.reached.iter().find(|at| at.partition == partition).map_or(0, |at| at.next_offset);
    let mut awake: BTreeSet<Bank> = restored.manifest.unreadable.iter().map(|of| of.key.bank.clone()).collect();
    let mut live = BTreeMap::new();
    for (key, offset) in keys {
        // A key that cannot be read makes its partition wait; the start says so.
        let Ok(key) = MemoryKey::from_bytes(&key) else { return Ok(None) };
        if offset >= next {
            awake.insert(key.bank.clone());
        }
        live.insert(key, offset);
    }
    let is_left = |extractor: &str| extractor.ends_with(IN_PART);
    let changed = restored.records.iter().filter(|of| is_left(&of.extractor) || !live.contains_key(&of.key));
    awake.extend(changed.map(|of| of.key.bank.clone()));
    if !awake.is_empty() {
        let whole = snapshots.banks_of(partition, &restored.manifest, &awake, window_turns)?;
        restored.records.retain(|record| !awake.contains(&record.key.bank));
        restored.records.extend(whole.records);
        restored.choices = whole.choices;
    }
    for record in &restored.records {
        for (turn, version) in record.names.iter().flat_map(|names| &names.deleted) {
            log.deletions().note(&record.key.bank, &log.deleted_form(turn)?, *version);
        }
    }
    let mut offsets = AsleepOffsets::new();
    if log.shared().is_some() {
        for of in restored.records.iter().filter(|of| of.names.is_some()) {
            offsets.entry(of.key.bank.clone()).or_default().extend(live.get(&of.key));
        }
    }
    Ok(Some(AsleepSnapshot { restored, offsets }))
}

/// The keys of the live records of a partition, with their offsets.
fn live_keys(log: &dyn Log, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
    let Some(shared) = log.shared() else { return log.live_keys(partition) };
    let mut keys = Vec::new();
    shared.places(partition, &[Vec::new()], &mut |_, key, offset| keys.push((key.to_vec(), offset)))?;
    Ok(Some(keys))
}

/// The live records that a read of the log has noted, of banks that stay asleep.
#[derive(Default)]
pub(super) struct NotedRecords {
    banks: HashMap<BankKey, Bank>,
    records: HashMap<RecordHash, (BankKey, NotedRecord)>,
}

/// A live record that was read and not loaded.
pub(super) struct NotedRecord {
    pub(super) offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub(super) append_ms: i64,
    /// What is held of it; `None` if it cannot be read.
    pub(super) state: Option<LiveRecordState>,
}

impl NotedRecords {
    /// Notes the last record of a key; `None` if it was removed.
    pub(super) fn note(&mut self, key: &MemoryKey, record: Option<NotedRecord>) {
        let hash = RecordHash::from(&RecordKey::from(key));
        let Some(record) = record else {
            self.records.remove(&hash);
            return;
        };
        self.banks.entry(key.bank.key()).or_insert_with(|| key.bank.clone());
        self.records.insert(hash, (key.bank.key(), record));
    }

    /// The records of each bank, in the order of the log.
    pub(super) fn into_banks(self) -> BTreeMap<Bank, Vec<NotedRecord>> {
        let Self { mut banks, records } = self;
        let mut by_key: HashMap<BankKey, Vec<NotedRecord>> = HashMap::with_capacity(banks.len());
        records.into_values().for_each(|(bank, record)| by_key.entry(bank).or_default().push(record));
        let named = by_key.into_iter().filter_map(|(key, mut records)| {
            records.sort_unstable_by_key(|record| record.offset);
            Some((banks.remove(&key)?, records))
        });
        named.collect()
    }
}

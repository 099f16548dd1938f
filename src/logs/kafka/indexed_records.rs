//! Finds the records of one bank in a memory partition, for a log on Kafka.
//!
//! In: a partition and the keys or the offsets of records. Out: the records. Each partition has an index that is made
//! when it is first asked for, and brought up to date by each later call; records at known offsets are read beside it.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use super::{KafkaLog, live_key_index::LiveKeyIndex, record_lookup::RecordLookup};
use crate::{LogError, LogRecord, ReadBatch, SharedLog, Topic};
use types::sync;

/// Records that are read before they are passed on.
const READ_AT_ONCE: usize = 256;

impl KafkaLog {
    /// Runs `work` with the index of a memory partition, after bringing it up to date.
    pub(super) fn with_index<T>(
        &self,
        partition: u32,
        work: impl FnOnce(&mut LiveKeyIndex) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let shared = self.index(partition)?;
        let mut index = sync::lock(&shared);
        let written_end = sync::lock(&self.readers).written_end(Topic::Memory, partition);
        let updated = index.update(self.cluster(), written_end, &|raw| {
            let mut batch = ReadBatch::default();
            drop(self.split(partition, raw, &mut batch)?);
            Ok(batch)
        });
        if let Err(error) = updated {
            // The index may lack records; the next call reads the partition again.
            sync::lock(&self.live).remove(&partition);
            return Err(error);
        }
        work(&mut index)
    }

    /// The index of a memory partition, as it was last updated.
    fn index(&self, partition: u32) -> Result<Arc<Mutex<LiveKeyIndex>>, LogError> {
        self.check_partition(Topic::Memory, partition)?;
        opened(&self.live, partition, || LiveKeyIndex::open(self.cluster(), &self.memory, partition))
    }

    /// The reader of single records of a memory partition.
    fn lookup(&self, partition: u32) -> Result<Arc<Mutex<RecordLookup>>, LogError> {
        self.check_partition(Topic::Memory, partition)?;
        opened(&self.lookups, partition, || RecordLookup::open(self.cluster(), &self.memory, partition))
    }

    /// As [`crate::Log::live_records`].
    pub(super) fn indexed_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let offsets: Vec<u64> = self.with_index(partition, |index| {
            let taken = index.of_prefix(prefix).filter(|(key, offset)| wanted(key, *offset));
            Ok(taken.map(|(_, offset)| offset).collect())
        })?;
        let lookup = self.lookup(partition)?;
        for some in offsets.chunks(READ_AT_ONCE) {
            let mut records = sync::lock(&lookup).records(self.cluster(), some)?;
            for offset in some {
                let record = records.remove(offset).ok_or_else(|| {
                    let doing = format!("reading offset {offset} of {}/{partition}", self.memory);
                    self.cluster().error(doing, "compaction removed it just now; repeat the request".to_owned(), None)
                })?;
                if each(&record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// What is open for a partition; opened first if it is not. No other partition waits for that.
fn opened<T>(
    known: &Mutex<HashMap<u32, Arc<Mutex<T>>>>,
    partition: u32,
    open: impl FnOnce() -> Result<T, LogError>,
) -> Result<Arc<Mutex<T>>, LogError> {
    if let Some(known) = sync::lock(known).get(&partition) {
        return Ok(Arc::clone(known));
    }
    let new = Arc::new(Mutex::new(open()?));
    Ok(Arc::clone(sync::lock(known).entry(partition).or_insert(new)))
}

impl SharedLog for KafkaLog {
    fn places(
        &self,
        partition: u32,
        prefixes: &[Vec<u8>],
        each: &mut dyn FnMut(usize, &[u8], u64),
    ) -> Result<(), LogError> {
        // Opened first: a bank that wakes meanwhile waits neither for that nor for the index.
        self.lookup(partition)?;
        self.with_index(partition, |index| {
            for (at, prefix) in prefixes.iter().enumerate() {
                index.of_prefix(prefix).for_each(|(key, offset)| each(at, key, offset));
            }
            Ok(())
        })
    }

    fn has_places(&self, partition: u32) -> bool {
        let index = sync::lock(&self.live).get(&partition).cloned();
        index.is_some_and(|index| index.try_lock().is_ok_and(|index| index.is_filled()))
    }

    fn records_at(&self, partition: u32, offsets: &[u64]) -> Result<Vec<LogRecord>, LogError> {
        let lookup = self.lookup(partition)?;
        let mut found = sync::lock(&lookup).records(self.cluster(), offsets)?;
        Ok(offsets.iter().filter_map(|offset| found.remove(offset)).collect())
    }
}

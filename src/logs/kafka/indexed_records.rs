//! Finds the records of one bank in a memory partition, for a log on Kafka.
//!
//! In: a partition and the keys or the offsets of records. Out: the records. Each partition has an index that is made
//! when it is first asked for, and brought up to date by each later call.

use std::sync::{Arc, Mutex};

use super::{KafkaLog, live_key_index::LiveKeyIndex};
use crate::{LogError, LogRecord, ReadBatch, SharedLog, Topic};
use types::sync;

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
        if let Some(known) = sync::lock(&self.live).get(&partition) {
            return Ok(Arc::clone(known));
        }
        let index = LiveKeyIndex::open(self.cluster(), &self.memory, partition)?;
        Ok(Arc::clone(sync::lock(&self.live).entry(partition).or_insert_with(|| Arc::new(Mutex::new(index)))))
    }
}

impl SharedLog for KafkaLog {
    fn places(
        &self,
        partition: u32,
        prefixes: &[Vec<u8>],
        each: &mut dyn FnMut(usize, &[u8], u64),
    ) -> Result<(), LogError> {
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
        let index = self.index(partition)?;
        let mut found = sync::lock(&index).records(self.cluster(), offsets)?;
        Ok(offsets.iter().filter_map(|offset| found.remove(offset)).collect())
    }
}

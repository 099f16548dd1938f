//! The live records of a partition of the memory topic.
//!
//! In: a log. Out: the latest value of each key, up to the end of the last transaction, in log order.
//! Keeps keys and offsets in memory, never values.

use std::collections::{BTreeMap, HashMap};

use logs::{Log, LogRecord, Topic, TransactionEnd};
use types::model::{Bank, FieldError, MemoryKey, MemoryRecord, ModelRef};

use super::PipelineError;
use types::record_value::{RecordValueError, check_schema, read_record};

/// Records read at once.
const READ_RECORDS: usize = 64;

/// Which records of a partition are live.
pub struct LiveRecords {
    topic: Topic,
    partition: u32,
    /// The end of what was scanned.
    pub end: TransactionEnd,
    keys: HashMap<Vec<u8>, u64>,
}

impl LiveRecords {
    /// Scans a partition of either generation, up to the end of its last transaction. `wanted`
    /// decides for each record with a value whether its key counts.
    pub fn of(
        log: &dyn Log,
        topic: Topic,
        partition: u32,
        mut wanted: impl FnMut(&MemoryKey, &LogRecord) -> Result<bool, PipelineError>,
    ) -> Result<Self, PipelineError> {
        let mut live = Self { topic, partition, end: log.last_transaction(topic, partition)?, keys: HashMap::new() };
        let mut keys = HashMap::new();
        // By key: for each key only the last record counts, even if it cannot be read.
        let mut unread = BTreeMap::new();
        live.scan(log, &mut |record| {
            let key = match key_of(partition, record) {
                Ok(key) => key,
                Err(error) => {
                    match record.value {
                        Some(_) => drop(unread.insert(record.key.clone(), error)),
                        None => drop(unread.remove(&record.key)),
                    }
                    return Ok(());
                }
            };
            if record.value.is_some() && wanted(&key, record)? {
                keys.insert(record.key.clone(), record.offset);
            } else {
                keys.remove(&record.key);
            }
            Ok(())
        })?;
        if let Some((_, error)) = unread.pop_first() {
            return Err(error);
        }
        live.keys = keys;
        Ok(live)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Passes every live record to `show`, in log order.
    pub fn each(
        &self,
        log: &dyn Log,
        show: &mut dyn FnMut(&MemoryKey, &LogRecord) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let mut shown = 0;
        self.scan(log, &mut |record| {
            if self.keys.get(&record.key) != Some(&record.offset) {
                return Ok(());
            }
            shown += 1;
            show(&key_of(self.partition, record)?, record)
        })?;
        if shown == self.count() {
            return Ok(());
        }
        let problem =
            format!("{} of {} records were rewritten during the scan; try again", self.count() - shown, self.count());
        Err(PipelineError::Record { partition: self.partition, offset: self.end.end, problem })
    }

    /// Numbers of parts above one, by the key of the record's first part.
    pub fn parts(&self) -> Result<HashMap<Vec<u8>, u32>, PipelineError> {
        let mut parts = self.grouped(|key| MemoryKey { part: 0, ..key })?;
        parts.retain(|_, count| *count > 1);
        Ok(parts)
    }

    /// The numbers of records, by what `group` makes of their keys.
    pub fn grouped(&self, group: impl Fn(MemoryKey) -> MemoryKey) -> Result<HashMap<Vec<u8>, u32>, PipelineError> {
        let mut counts = HashMap::new();
        for (bytes, offset) in &self.keys {
            let failed = |e: FieldError| PipelineError::Record {
                partition: self.partition,
                offset: *offset,
                problem: e.to_string(),
            };
            let key = MemoryKey::from_bytes(bytes).map_err(failed)?;
            *counts.entry(group(key).to_bytes()).or_default() += 1;
        }
        Ok(counts)
    }

    fn scan(
        &self,
        log: &dyn Log,
        each: &mut dyn FnMut(&LogRecord) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let mut at = 0;
        while at < self.end.end {
            let batch = log.read(self.topic, self.partition, at, READ_RECORDS)?;
            if batch.next == at {
                break;
            }
            at = batch.next;
            for record in batch.records.iter().filter(|record| record.offset < self.end.end) {
                each(record)?;
            }
        }
        Ok(())
    }
}

/// A record's key.
pub fn key_of(partition: u32, record: &LogRecord) -> Result<MemoryKey, PipelineError> {
    let failed = |e: FieldError| PipelineError::Record { partition, offset: record.offset, problem: e.to_string() };
    MemoryKey::from_bytes(&record.key).map_err(failed)
}

/// A live record's value; the inner error says why no build can use it.
///
/// # Errors
/// [`PipelineError::Waits`] for a record of a newer schema.
pub fn record_of(
    partition: u32,
    key: &MemoryKey,
    record: &LogRecord,
) -> Result<Result<MemoryRecord, String>, PipelineError> {
    match read_record(key, record.value.as_deref().unwrap_or_default()) {
        Ok(value) => Ok(Ok(value)),
        Err(RecordValueError::Unreadable(problem)) => Ok(Err(problem)),
        Err(newer @ RecordValueError::Newer(_)) => {
            Err(PipelineError::Waits { partition, offset: record.offset, problem: newer.to_string() })
        }
    }
}

/// The model of a log's vectors: `ours` if a record has it, otherwise that of the first record; `None` if the log holds
/// no vector. Unreadable records are skipped.
pub fn model_of(log: &dyn Log, ours: Option<&ModelRef>) -> Result<Option<ModelRef>, PipelineError> {
    #[derive(serde::Deserialize)]
    struct RecordModelFields {
        bank: Bank,
        model: ModelRef,
        units: Vec<serde::de::IgnoredAny>,
    }
    let has_vectors = |record: &LogRecord| {
        let (key, value) = (MemoryKey::from_bytes(&record.key).ok()?, record.value.as_deref()?);
        check_schema(value).ok()?;
        let read = serde_json::from_slice::<RecordModelFields>(value).ok()?;
        (read.bank == key.bank && !read.units.is_empty()).then_some(read.model)
    };
    let mut first = None;
    for partition in 0..log.partitions() {
        let mut at = 0;
        loop {
            let batch = log.read(Topic::Memory, partition, at, READ_RECORDS)?;
            if batch.next == at {
                break;
            }
            at = batch.next;
            for model in batch.records.iter().filter_map(has_vectors) {
                if ours.is_none_or(|ours| *ours == model) {
                    return Ok(Some(model));
                }
                first.get_or_insert(model);
            }
        }
    }
    Ok(first)
}

//! One topic of an embedded log, as a view shows it.
//!
//! In: the directory's settings, or an open log, and a topic's name. Out: its records, by partition. Appends nothing.

use std::sync::Arc;

use super::EmbeddedLog;
use crate::{Log, LogError, RawRecord, Topic, topic_reader::TopicReader};
use types::config::LogSettings;

/// Records that are read at once when searching for a time.
const READ_AT_ONCE: usize = 1_024;

/// A topic of a log in a directory.
pub(crate) struct EmbeddedTopic {
    log: Arc<dyn Log>,
    topic: Topic,
    name: String,
}

impl EmbeddedTopic {
    /// Opens the log for this view alone.
    pub(crate) fn open(settings: &LogSettings, topic: &str) -> Result<Self, LogError> {
        let log = Arc::new(EmbeddedLog::open(settings)?);
        Ok(Self::of(log, topic, format!("{topic} in {}", settings.directory.display())))
    }

    /// A topic of an open log. The view is called `name`.
    pub(crate) fn of(log: Arc<dyn Log>, topic: &str, name: String) -> Self {
        let topic = match topic {
            "turns" => Topic::Turns,
            "memory" => Topic::Memory,
            _ => Topic::DeadLetters,
        };
        Self { log, topic, name }
    }
}

impl TopicReader for EmbeddedTopic {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> u32 {
        if self.topic == Topic::DeadLetters { 1 } else { self.log.partitions() }
    }

    fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        Ok((0, self.log.end(self.topic, partition)?))
    }

    fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        let records = self.log.read(self.topic, partition, from, limit)?.records;
        Ok(records.into_iter().map(|record| RawRecord { record, headers: Vec::new() }).collect())
    }

    fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        let mut from = 0;
        loop {
            let records = self.log.read(self.topic, partition, from, READ_AT_ONCE)?.records;
            let Some(last) = records.last() else { return Ok(from) };
            if let Some(found) = records.iter().find(|record| record.append_ms >= append_ms) {
                return Ok(found.offset);
            }
            from = last.offset + 1;
        }
    }
}

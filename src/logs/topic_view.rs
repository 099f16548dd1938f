//! A read-only view of one topic, for tools and replays.
//!
//! In: settings and a topic's name, or a reader of a log that another process has open. Out: its records with their
//! headers, by partition. It owns no partition and commits nothing. Opened on an embedded log, it excludes every other
//! process.

use std::sync::Arc;

use super::{Log, LogError, RawRecord, embedded::EmbeddedTopic, kafka, topic_reader::TopicReader};
use types::config::{LogKind, LogSettings};

/// A read-only view of a topic.
pub struct TopicView(Box<dyn TopicReader>);

impl TopicView {
    /// Opens `turns`, `memory` or `dead-letters`; on Kafka also any other topic of the prefix.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(settings: &LogSettings, topic: &str) -> Result<Self, LogError> {
        Ok(Self(match settings.kind {
            LogKind::Embedded => Box::new(EmbeddedTopic::open(settings, topic)?),
            LogKind::Kafka => kafka::read_topic(settings, topic)?,
        }))
    }

    /// A view of `turns`, `memory` or `dead-letters` of a log in a directory that this process has open.
    #[must_use]
    pub fn of(log: Arc<dyn Log>, topic: &str) -> Self {
        Self(Box::new(EmbeddedTopic::of(log, topic, topic.to_owned())))
    }

    /// A view through another reader.
    #[must_use]
    pub fn over(reader: Box<dyn TopicReader>) -> Self {
        Self(reader)
    }

    /// The topic's full name: its name on the cluster, or its name together with the log's directory.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The topic's partition count when the view was opened.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    /// The first stored offset, and the offset that the next record will get.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        self.0.span(partition)
    }

    /// Reads up to `limit` records from `from` on; an empty list means the end.
    ///
    /// # Errors
    /// [`LogError`]; [`LogError::Expired`] when the record at `from` is no longer stored.
    pub fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        self.0.read(partition, from, limit)
    }

    /// The first offset that was appended at `append_ms` (milliseconds since 1970) or later; the end
    /// when there is none.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        self.0.offset_at(partition, append_ms)
    }
}

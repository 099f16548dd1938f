//! A read-only view of one topic, for tools and replays.
//!
//! In: settings and a topic's name. Out: records with their headers, by partition. It owns no
//! partition and commits nothing. On the embedded log it excludes every other process.

#[cfg(feature = "kafka")]
use super::kafka::{self, client::Cluster, partition_reader::PartitionReader};
use super::{EmbeddedLog, Log, LogError, RawRecord, Topic};
use nouns::config::{LogKind, LogSettings};

/// Records that a search for a time reads at once.
const READ_AT_ONCE: usize = 1_024;

/// A read-only view of a topic.
pub struct TopicView(Backend);

enum Backend {
    Embedded {
        log: EmbeddedLog,
        topic: Topic,
        name: String,
    },
    #[cfg(feature = "kafka")]
    Kafka {
        cluster: Cluster,
        readers: Vec<PartitionReader>,
        name: String,
    },
}

impl TopicView {
    /// Opens `turns`, `memory` or `dead-letters`; on Kafka also any other topic of the prefix.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(settings: &LogSettings, topic: &str) -> Result<Self, LogError> {
        Ok(Self(match settings.kind {
            LogKind::Embedded => {
                let log = EmbeddedLog::open(settings)?;
                let name = format!("{topic} in {}", settings.directory.display());
                let topic = match topic {
                    "turns" => Topic::Turns,
                    "memory" => Topic::Memory,
                    _ => Topic::DeadLetters,
                };
                Backend::Embedded { log, topic, name }
            }
            #[cfg(not(feature = "kafka"))]
            LogKind::Kafka => return Err(LogError::NoKafka),
            #[cfg(feature = "kafka")]
            LogKind::Kafka => {
                let cluster = Cluster::new(&settings.kafka)?;
                let name = if topic == "memory" { kafka::memory_topic(&cluster)? } else { cluster.topic(topic) };
                let partitions = kafka::partitions_of(&cluster, &name)?;
                let readers = (0..partitions)
                    .map(|p| PartitionReader::open(&cluster, &name, p, false))
                    .collect::<Result<_, _>>()?;
                Backend::Kafka { cluster, readers, name }
            }
        }))
    }

    /// The topic's full name: on the cluster, or with the log's directory.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Backend::Embedded { name, .. } => name,
            #[cfg(feature = "kafka")]
            Backend::Kafka { name, .. } => name,
        }
    }

    /// The topic's partition count when the view was opened.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        match &self.0 {
            Backend::Embedded { topic: Topic::DeadLetters, .. } => 1,
            Backend::Embedded { log, .. } => log.partitions(),
            #[cfg(feature = "kafka")]
            Backend::Kafka { readers, .. } => readers.len() as u32,
        }
    }

    /// The first stored offset, and the offset that the next record will get.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        match &mut self.0 {
            Backend::Embedded { log, topic, .. } => Ok((0, log.end(*topic, partition)?)),
            #[cfg(feature = "kafka")]
            Backend::Kafka { cluster, readers, .. } => {
                readers.get_mut(partition as usize).map_or(Ok((0, 0)), |reader| reader.span(cluster))
            }
        }
    }

    /// Reads up to `limit` records from `from` on; an empty list means the end.
    ///
    /// # Errors
    /// [`LogError`]; [`LogError::Expired`] when the record at `from` is no longer stored.
    pub fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        match &mut self.0 {
            Backend::Embedded { log, topic, .. } => {
                let records = log.read(*topic, partition, from, limit)?.records;
                Ok(records.into_iter().map(|record| RawRecord { record, headers: Vec::new() }).collect())
            }
            #[cfg(feature = "kafka")]
            Backend::Kafka { cluster, readers, .. } => match readers.get_mut(partition as usize) {
                Some(reader) => reader.read(cluster, from, limit),
                None => Ok(Vec::new()),
            },
        }
    }

    /// The first offset that was appended at `append_ms` (milliseconds since 1970) or later; the end
    /// when there is none.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        #[cfg(feature = "kafka")]
        if let Backend::Kafka { cluster, readers, .. } = &mut self.0 {
            return readers.get_mut(partition as usize).map_or(Ok(0), |reader| reader.offset_at(cluster, append_ms));
        }
        let mut from = 0;
        loop {
            let records = self.read(partition, from, READ_AT_ONCE)?;
            let Some(last) = records.last() else { return Ok(from) };
            if let Some(found) = records.iter().find(|raw| raw.record.append_ms >= append_ms) {
                return Ok(found.record.offset);
            }
            from = last.record.offset + 1;
        }
    }
}

//! A look into one topic of a log: read as it stands, owned and written by others.
//!
//! In: settings and a topic's name. Out: records with their headers, by partition. An
//! embedded log is ours alone while we look.

use super::{
    EmbeddedLog, Log, LogError, Topic,
    kafka::{
        self,
        client::Cluster,
        lane::{Lane, Raw},
    },
};
use crate::config::{LogKind, LogSettings};

/// Records read at once in search of a time.
const READ_AT_ONCE: usize = 1_024;

/// A topic that is looked into.
pub struct View(Origin);

enum Origin {
    Embedded { log: EmbeddedLog, topic: Topic, named: String },
    Kafka { cluster: Cluster, lanes: Vec<Lane>, named: String },
}

impl View {
    /// Opens `turns`, `memory` or `dead-letters`; on Kafka also any other topic of the prefix.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(settings: &LogSettings, topic: &str) -> Result<Self, LogError> {
        Ok(Self(match settings.kind {
            LogKind::Embedded => {
                let log = EmbeddedLog::open(settings)?;
                let named = format!("{topic} in {}", settings.directory.display());
                let topic = match topic {
                    "turns" => Topic::Turns,
                    "memory" => Topic::Memory,
                    _ => Topic::DeadLetters,
                };
                Origin::Embedded { log, topic, named }
            }
            LogKind::Kafka => {
                let cluster = Cluster::new(&settings.kafka)?;
                let named = if topic == "memory" { kafka::memory_topic(&cluster)? } else { cluster.topic(topic) };
                let partitions = kafka::partitions_of(&cluster, &named)?;
                let lanes =
                    (0..partitions).map(|p| Lane::open(&cluster, &named, p, false)).collect::<Result<_, _>>()?;
                Origin::Kafka { cluster, lanes, named }
            }
        }))
    }

    /// The topic's name where it is kept: on the cluster, or with the log's directory.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Origin::Embedded { named, .. } | Origin::Kafka { named, .. } => named,
        }
    }

    /// How many partitions there were when it was opened.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        match &self.0 {
            Origin::Embedded { topic: Topic::DeadLetters, .. } => 1,
            Origin::Embedded { log, .. } => log.partitions(),
            Origin::Kafka { lanes, .. } => lanes.len() as u32,
        }
    }

    /// The first offset that is left, and the one that the next record will get.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        match &mut self.0 {
            Origin::Embedded { log, topic, .. } => Ok((0, log.end(*topic, partition)?)),
            Origin::Kafka { cluster, lanes, .. } => {
                lanes.get_mut(partition as usize).map_or(Ok((0, 0)), |lane| lane.span(cluster))
            }
        }
    }

    /// At most `limit` records from `from` on; none at the end.
    ///
    /// # Errors
    /// [`LogError`]; [`LogError::Expired`] when what stood at `from` is no longer there.
    pub fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<Raw>, LogError> {
        match &mut self.0 {
            Origin::Embedded { log, topic, .. } => {
                let records = log.read(*topic, partition, from, limit)?.records;
                Ok(records.into_iter().map(|record| Raw { record, headers: Vec::new() }).collect())
            }
            Origin::Kafka { cluster, lanes, .. } => match lanes.get_mut(partition as usize) {
                Some(lane) => lane.read(cluster, from, limit),
                None => Ok(Vec::new()),
            },
        }
    }

    /// The offset of the first record that was appended at a time or later, in milliseconds
    /// since 1970; the end where there is none.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        if let Origin::Kafka { cluster, lanes, .. } = &mut self.0 {
            return lanes.get_mut(partition as usize).map_or(Ok(0), |lane| lane.offset_at(cluster, append_ms));
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

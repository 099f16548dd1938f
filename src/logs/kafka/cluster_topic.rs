//! One topic of the cluster, for a view of it.
//!
//! In: the cluster's settings and a topic's name. Out: its records, by partition. Writes nothing.

use super::{client::KafkaCluster, partition_reader::PartitionReader};
use crate::{LogError, RawRecord, topic_reader::TopicReader};
use types::config::LogSettings;

/// A topic with a reader for each partition.
pub(super) struct ClusterTopic {
    cluster: KafkaCluster,
    readers: Vec<PartitionReader>,
    name: String,
}

impl ClusterTopic {
    /// Connects to the cluster.
    pub(super) fn open(settings: &LogSettings, topic: &str) -> Result<Self, LogError> {
        let cluster = KafkaCluster::new(&settings.kafka)?;
        let name = if topic == "memory" { super::memory_topic(&cluster)? } else { cluster.topic(topic) };
        let partitions = super::partitions_of(&cluster, &name)?;
        let readers = (0..partitions)
            .map(|partition| PartitionReader::open(&cluster, &name, partition, false))
            .collect::<Result<_, _>>()?;
        Ok(Self { cluster, readers, name })
    }
}

impl TopicReader for ClusterTopic {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> u32 {
        self.readers.len() as u32
    }

    fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError> {
        self.readers.get_mut(partition as usize).map_or(Ok((0, 0)), |reader| reader.span(&self.cluster))
    }

    fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        match self.readers.get_mut(partition as usize) {
            Some(reader) => reader.read(&self.cluster, from, limit),
            None => Ok(Vec::new()),
        }
    }

    fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError> {
        let reader = self.readers.get_mut(partition as usize);
        reader.map_or(Ok(0), |reader| reader.offset_at(&self.cluster, append_ms))
    }
}

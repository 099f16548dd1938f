//! Opens a log on Kafka; `without_kafka` has the same functions for a build without Kafka.

use super::{KafkaLog, client::Cluster, leaving::leaving, topic::ClusterTopic, topics::current_generation};
use crate::log::{Generations, Leaving, LogError, topic_reader::TopicReader};
use nouns::config::LogSettings;

/// Connects to the cluster.
pub(in crate::log) fn open(settings: &LogSettings) -> Result<Box<dyn Generations>, LogError> {
    Ok(Box::new(KafkaLog::open(settings)?))
}

/// The number of partitions of the turns.
pub(in crate::log) fn turns_partitions(settings: &LogSettings) -> Result<u32, LogError> {
    let cluster = Cluster::new(&settings.kafka)?;
    super::partitions_of(&cluster, &cluster.topic("turns"))
}

/// Opens a topic for a view of it.
pub(in crate::log) fn read_topic(settings: &LogSettings, topic: &str) -> Result<Box<dyn TopicReader>, LogError> {
    Ok(Box::new(ClusterTopic::open(settings, topic)?))
}

/// When words of deleted turns leave the topics.
pub(in crate::log) fn topics_leaving(settings: &LogSettings) -> Result<Leaving, LogError> {
    let cluster = Cluster::new(&settings.kafka)?;
    leaving(&cluster, current_generation(&cluster)?)
}

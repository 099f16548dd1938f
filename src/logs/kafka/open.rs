//! Opens a log on Kafka; `without_kafka` has the same functions for a build without Kafka.

use super::{
    KafkaLog, client::KafkaCluster, cluster_topic::ClusterTopic, topic_retention::read_topic_retention,
    topic_setup::current_generation,
};
use crate::{GenerationalLog, LogError, TopicRetention, topic_reader::TopicReader};
use types::config::LogSettings;

/// Connects to the cluster.
pub(crate) fn open(settings: &LogSettings) -> Result<Box<dyn GenerationalLog>, LogError> {
    Ok(Box::new(KafkaLog::open(settings)?))
}

/// The number of partitions of the turns.
pub(crate) fn turns_partitions(settings: &LogSettings) -> Result<u32, LogError> {
    let cluster = KafkaCluster::new(&settings.kafka)?;
    super::partitions_of(&cluster, &cluster.topic("turns"))
}

/// Opens a topic for a view of it.
pub(crate) fn read_topic(settings: &LogSettings, topic: &str) -> Result<Box<dyn TopicReader>, LogError> {
    Ok(Box::new(ClusterTopic::open(settings, topic)?))
}

/// When words of deleted turns leave the topics.
pub(crate) fn topic_retention(settings: &LogSettings) -> Result<TopicRetention, LogError> {
    let cluster = KafkaCluster::new(&settings.kafka)?;
    read_topic_retention(&cluster, current_generation(&cluster)?)
}

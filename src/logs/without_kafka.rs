//! Stands in for the log on Kafka in a build without Kafka: every call returns an error that says so.

use super::{ClusterState, GenerationalLog, LogError, TopicRetention, topic_reader::TopicReader};
use types::config::LogSettings;

/// [`LogError::NoKafka`], always.
pub(super) fn open(_: &LogSettings) -> Result<Box<dyn GenerationalLog>, LogError> {
    Err(LogError::NoKafka)
}

/// [`LogError::NoKafka`], always.
pub(super) fn turns_partitions(_: &LogSettings) -> Result<u32, LogError> {
    Err(LogError::NoKafka)
}

/// [`LogError::NoKafka`], always.
pub(super) fn read_topic(_: &LogSettings, _: &str) -> Result<Box<dyn TopicReader>, LogError> {
    Err(LogError::NoKafka)
}

/// [`LogError::NoKafka`], always.
pub(super) fn cluster_state(_: &LogSettings) -> Result<ClusterState, LogError> {
    Err(LogError::NoKafka)
}

/// [`LogError::NoKafka`], always.
pub(super) fn topic_retention(_: &LogSettings) -> Result<TopicRetention, LogError> {
    Err(LogError::NoKafka)
}

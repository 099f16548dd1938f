//! Stands in for the log on Kafka in a build without Kafka: every call returns an error that says so.

use super::{ClusterState, Generations, Leaving, LogError, topic_reader::TopicReader};
use nouns::config::LogSettings;

/// [`LogError::NoKafka`], always.
pub(super) fn open(_: &LogSettings) -> Result<Box<dyn Generations>, LogError> {
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
pub(super) fn reach(_: &LogSettings) -> Result<ClusterState, LogError> {
    Err(LogError::NoKafka)
}

/// [`LogError::NoKafka`], always.
pub(super) fn topics_leaving(_: &LogSettings) -> Result<Leaving, LogError> {
    Err(LogError::NoKafka)
}

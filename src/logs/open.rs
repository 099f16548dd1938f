//! Opens the log that the settings name.
//!
//! In: `[log]` of the pipeline file. Out: an open log, of either kind.

use super::{
    EmbeddedLog, GenerationalLog, Log, LogError, TopicRetention,
    embedded::{embedded_salt, made_embedded_salt},
    kafka,
};
use types::{
    config::{LogKind, LogSettings},
    model::IdSalt,
};

/// Opens the log that the settings name.
///
/// # Errors
/// [`LogError`]; [`LogError::NoKafka`] for a log on Kafka in a build without it.
pub fn open(settings: &LogSettings) -> Result<Box<dyn Log>, LogError> {
    Ok(open_generations(settings)?)
}

/// As [`open`], for a change of the embedding model.
///
/// # Errors
/// As [`open`].
pub fn open_generations(settings: &LogSettings) -> Result<Box<dyn GenerationalLog>, LogError> {
    Ok(match settings.kind {
        LogKind::Embedded => Box::new(EmbeddedLog::open(settings)?),
        LogKind::Kafka => kafka::open(settings)?,
    })
}

/// The salt of the log that the settings name, which need not be open here; makes one if there is none.
///
/// # Errors
/// As [`open`].
pub fn id_salt(settings: &LogSettings) -> Result<IdSalt, LogError> {
    match settings.kind {
        LogKind::Embedded => embedded_salt(&settings.directory),
        LogKind::Kafka => open(settings)?.id_salt(),
    }
}

/// The salt as of [`id_salt`], if one exists.
///
/// # Errors
/// As [`open`].
pub fn made_id_salt(settings: &LogSettings) -> Result<Option<IdSalt>, LogError> {
    match settings.kind {
        LogKind::Embedded => made_embedded_salt(&settings.directory),
        LogKind::Kafka => open(settings)?.made_id_salt(),
    }
}

/// The partition count of an open log's turns topic. On Kafka it may be larger than the memory topic's.
///
/// # Errors
/// [`LogError`].
pub fn turns_partitions(settings: &LogSettings, log: &dyn Log) -> Result<u32, LogError> {
    match settings.kind {
        LogKind::Embedded => Ok(log.partitions()),
        LogKind::Kafka => kafka::turns_partitions(settings),
    }
}

/// What a Kafka cluster reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterState {
    /// The number of brokers that it names.
    pub brokers: usize,
    /// How many of the pipeline's topics exist.
    pub topics: usize,
}

/// Asks the cluster of a log on Kafka for its brokers and topics, and creates nothing there.
///
/// # Errors
/// [`LogError::Cluster`] if it does not answer or refuses access; [`LogError::NoKafka`] in a build without it.
pub fn cluster_state(settings: &LogSettings) -> Result<ClusterState, LogError> {
    kafka::cluster_state(settings)
}

/// When words of deleted turns leave the topics that a log on Kafka has now. Creates nothing there.
///
/// # Errors
/// As [`cluster_state`].
pub fn topic_retention(settings: &LogSettings) -> Result<TopicRetention, LogError> {
    kafka::topic_retention(settings)
}

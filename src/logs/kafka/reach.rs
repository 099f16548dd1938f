//! Asks a cluster for its brokers and topics.
//!
//! In: the settings of a cluster. Out: its brokers, and how many of the pipeline's topics exist. Creates nothing.

use rdkafka::producer::{BaseProducer, Producer};

use super::client::{KafkaClientState, KafkaCluster};
use crate::{ClusterState, LogError};
use types::config::LogSettings;

/// The brokers and topics of the cluster.
///
/// # Errors
/// [`LogError::Cluster`] if it does not answer or refuses access.
pub(crate) fn cluster_state(settings: &LogSettings) -> Result<ClusterState, LogError> {
    let cluster = KafkaCluster::new(&settings.kafka)?;
    let watch = KafkaClientState::default();
    let failed = |e: &_| cluster.failed(&watch, "asking for the brokers", e);
    let client: BaseProducer<KafkaClientState> =
        cluster.client().create_with_context(watch.clone()).map_err(|e| failed(&e))?;
    let metadata = client.client().fetch_metadata(None, cluster.timeout()).map_err(|e| failed(&e))?;
    let prefix = cluster.topic("");
    let topics = metadata.topics().iter().filter(|topic| topic.name().starts_with(&prefix)).count();
    Ok(ClusterState { brokers: metadata.brokers().len(), topics })
}

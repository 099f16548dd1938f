//! Asks a cluster for its brokers and topics.
//!
//! In: the settings of a cluster. Out: its brokers, and how many of the pipeline's topics exist. Creates nothing.

use rdkafka::producer::{BaseProducer, Producer};

use super::client::{Cluster, Watch};
use crate::log::{ClusterState, LogError};
use nouns::config::LogSettings;

/// The brokers and topics of the cluster.
///
/// # Errors
/// [`LogError::Cluster`] if it does not answer or refuses access.
pub(in crate::log) fn reach(settings: &LogSettings) -> Result<ClusterState, LogError> {
    let cluster = Cluster::new(&settings.kafka)?;
    let watch = Watch::default();
    let failed = |e: &_| cluster.failed(&watch, "asking for the brokers", e);
    let client: BaseProducer<Watch> = cluster.client().create_with_context(watch.clone()).map_err(|e| failed(&e))?;
    let metadata = client.client().fetch_metadata(None, cluster.timeout()).map_err(|e| failed(&e))?;
    let prefix = cluster.topic("");
    let topics = metadata.topics().iter().filter(|topic| topic.name().starts_with(&prefix)).count();
    Ok(ClusterState { brokers: metadata.brokers().len(), topics })
}

//! The Kafka cluster of a pipeline.
//!
//! In: a pipeline whose log is on Kafka. Out: a finding; the cluster is asked for its brokers and topics, and nothing
//! is created there.

use nouns::config::Pipeline;
use ripplemem::log::{self, ClusterState};

use super::finding::Finding;

/// Whether the cluster answers.
pub(super) fn broker(pipeline: &Pipeline) -> Finding {
    const OF: &str = "broker";
    let prefix = &pipeline.log.kafka.prefix;
    match log::reach_cluster(&pipeline.log) {
        Ok(ClusterState { brokers, topics: 0 }) => Finding::ok(
            OF,
            format!("{brokers} answer; no topic of {prefix:?} exists yet; the first start creates them"),
        ),
        Ok(ClusterState { brokers, topics }) => {
            Finding::ok(OF, format!("{brokers} answer, with {topics} topics of {prefix:?}"))
        }
        Err(error) => Finding::mend(OF, error.to_string()),
    }
}

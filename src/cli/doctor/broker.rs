//! The Kafka cluster of a pipeline.
//!
//! In: a pipeline whose log is on Kafka. Out: a finding; the cluster is asked for its brokers and topics, and nothing
//! is created there.

use logs::ClusterState;
use types::config::Pipeline;

use super::finding::DoctorFinding;

/// Whether the cluster answers.
pub(super) fn broker(pipeline: &Pipeline) -> DoctorFinding {
    const OF: &str = "broker";
    let prefix = &pipeline.log.kafka.prefix;
    match logs::cluster_state(&pipeline.log) {
        Ok(ClusterState { brokers, topics: 0 }) => DoctorFinding::ok(
            OF,
            format!("{brokers} answer; no topic of {prefix:?} exists yet; the first start creates them"),
        ),
        Ok(ClusterState { brokers, topics }) => {
            DoctorFinding::ok(OF, format!("{brokers} answer, with {topics} topics of {prefix:?}"))
        }
        Err(error) => DoctorFinding::mend(OF, error.to_string()),
    }
}

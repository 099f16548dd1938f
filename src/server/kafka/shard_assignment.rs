//! Holds the shards for the partitions of the questions topic that the consumer group has assigned to this instance
//! (decision 40).
//!
//! In: the assigned and revoked partitions, which the reader of questions records in the replica. Out: a shard for each
//! assigned partition; `follow_memory` loads it. Building a shard may take long. It is done here because here it does
//! not keep a consumer from polling. A shard that is revoked stays for two session timeouts and continues to follow its
//! log, so that it does not have to be loaded if the group assigns it here again.

use super::log_events;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{cluster_retry::ClusterRetry, error::ServeError, service_state::ServiceState};
use logs::{KafkaLog, Log, LogError, kafka::partitions_of};
use pipeline::{PipelineError, redacted_error};
use replica::Replica;
use types::backoff::Backoff;

/// The longest wait for a decision of the group.
const PATIENCE: Duration = Duration::from_millis(250);

/// Builds and drops shards until `stopping`.
pub(super) fn maintain_shards(
    log: &KafkaLog,
    replica: &Replica,
    state: &ServiceState,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let patience = 2 * Duration::from_secs(log.cluster().settings.session_seconds);
    let mut retry = ClusterRetry::new(state, "the partitions of questions");
    let mut revoked: BTreeMap<u32, Instant> = BTreeMap::new();
    // Partitions that could not be taken, and when that is tried again.
    let mut failed: BTreeMap<u32, (Instant, Backoff)> = BTreeMap::new();
    while !stopping.load(Ordering::Relaxed) {
        let seen = log.news().count();
        let surplus = replica.revoked();
        revoked.retain(|partition, _| surplus.contains(partition));
        for partition in surplus {
            if revoked.entry(partition).or_insert_with(Instant::now).elapsed() > patience {
                replica.leave(partition);
                log_events::shard_left(partition);
            }
        }
        for partition in replica.awaited() {
            if failed.get(&partition).is_some_and(|(again, _)| Instant::now() < *again) {
                continue;
            }
            match replica.take(log, partition) {
                Ok(()) => {
                    retry.reset();
                    failed.remove(&partition);
                    log_events::shard_taken(partition);
                }
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                // Its snapshot cannot be read: that concerns only this shard.
                Err(error @ (PipelineError::Snapshot(_) | PipelineError::Memory(_))) => {
                    if !failed.contains_key(&partition) {
                        log_events::shard_not_loaded(partition, &redacted_error(&error));
                    }
                    let (again, backoff) = failed.entry(partition).or_insert((Instant::now(), Backoff::SERVICE));
                    *again = Instant::now() + backoff.jittered();
                }
                Err(error) => return Err(error.into()),
            }
        }
        log.news().wait(seen, PATIENCE);
    }
    Ok(())
}

/// Fails if the questions topic has more partitions than the memory topic. That it has fewer is noticed when the log is
/// opened.
pub(super) fn check_partitions(log: &KafkaLog) -> Result<(), ServeError> {
    let topic = log.cluster().topic("questions");
    let found = partitions_of(log.cluster(), &topic)?;
    if found == log.partitions() {
        Ok(())
    } else {
        Err(ServeError::Questions { topic, found, needed: log.partitions() })
    }
}

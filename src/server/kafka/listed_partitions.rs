//! Finds where the records of the partitions that are held here lie, so that their banks can sleep (decision 63).
//!
//! In: the partitions, as the group assigns them. Out: nothing; the log knows the places. The first time it reads the
//! whole partition, which takes long where it is large, and is done here because here nothing waits for it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{cluster_retry::ClusterRetry, error::ServeError, service_state::ServiceState};
use logs::{KafkaLog, Log, LogError, SharedLog};
use replica::Replica;

/// The longest wait for a decision of the group.
const PATIENCE: Duration = Duration::from_secs(1);

/// Lists each partition once it is loaded, until `stopping`.
pub(super) fn list_held_partitions(
    log: &KafkaLog,
    replica: &Replica,
    state: &ServiceState,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let mut retry = ClusterRetry::new(state, "the places of records");
    while !stopping.load(Ordering::Relaxed) {
        let seen = log.news().count();
        let loaded = replica.shards().into_iter().filter(|shard| !shard.loading).map(|shard| shard.partition);
        for partition in loaded.filter(|partition| !log.has_places(*partition)).collect::<Vec<_>>() {
            match log.places(partition, &[], &mut |_, _, _| {}) {
                Ok(()) => retry.reset(),
                Err(error @ LogError::Cluster { retriable: true, .. }) => retry.wait(&error),
                Err(error) => return Err(error.into()),
            }
        }
        log.news().wait(seen, PATIENCE);
    }
    Ok(())
}

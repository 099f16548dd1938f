//! The shards of the partitions of questions that the group has assigned to this instance.
//!
//! In: what the group assigns and revokes, as the reader of questions notes it in the memory. Out:
//! a shard for each assigned partition; `follow` loads it. Making a shard may take long, so it is
//! done here, where no consumer waits to be polled. A shard that is revoked stays for two session
//! timeouts, and goes on following its log: a group that changes its mind costs no load.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{cluster_retry::ClusterRetry, error::ServeError, state::State};
use nouns::backoff::Backoff;
use ripplemem::{
    log::{KafkaLog, Log, LogError, kafka::partitions_of},
    pipeline::{PipelineError, Replica},
};

/// Time between two looks at what is assigned.
const LOOK: Duration = Duration::from_millis(5);

/// Takes and leaves shards until `stopping`.
pub(super) fn hold(
    log: &KafkaLog,
    replica: &Replica,
    state: &State,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let patience = 2 * Duration::from_secs(log.cluster().settings.session_seconds);
    let mut retry = ClusterRetry::new(state, say);
    let mut revoked: BTreeMap<u32, Instant> = BTreeMap::new();
    // Partitions that could not be taken: when that is tried again.
    let mut failed: BTreeMap<u32, (Instant, Backoff)> = BTreeMap::new();
    while !stopping.load(Ordering::Relaxed) {
        let surplus = replica.revoked();
        revoked.retain(|partition, _| surplus.contains(partition));
        for partition in surplus {
            if revoked.entry(partition).or_insert_with(Instant::now).elapsed() > patience {
                replica.leave(partition);
                say(&format!("shard {partition}: another instance has it"));
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
                    say(&format!("shard {partition}: assigned to this instance"));
                }
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                // Its snapshot cannot be read: that is this shard's problem alone.
                Err(error @ (PipelineError::Snapshot(_) | PipelineError::Memory(_))) => {
                    if !failed.contains_key(&partition) {
                        say(&format!("shard {partition}: {error}; trying again"));
                    }
                    let (again, backoff) = failed.entry(partition).or_insert((Instant::now(), Backoff::SERVICE));
                    *again = Instant::now() + backoff.pause();
                }
                Err(error) => return Err(error.into()),
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Fails where the questions topic has more partitions than the memory; fewer are found when the log
/// is opened.
pub(super) fn check(log: &KafkaLog) -> Result<(), ServeError> {
    let topic = log.cluster().topic("questions");
    let found = partitions_of(log.cluster(), &topic)?;
    if found == log.partitions() {
        Ok(())
    } else {
        Err(ServeError::Questions { topic, found, needed: log.partitions() })
    }
}

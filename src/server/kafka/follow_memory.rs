//! The role `serve`: the memory follows every partition of the memory topic that it holds.
//!
//! In: records of the memory topic. Out: the memory, and readiness once it reflects what each partition held when the
//! instance took it. A partition does not delay the others if it waits before a record of a newer build, if its shard
//! is still busy with earlier loads, or if its shard has panicked.

use super::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{cluster_retry::ClusterRetry, error::ServeError, service_state::ServiceState};
use logs::{KafkaLog, Log, LogError};
use pipeline::{PipelineError, redacted_error};
use replica::Replica;
use types::{backoff::Backoff, config::ShardAssignmentMode};

/// The longest wait for news of the log.
const PATIENCE: Duration = Duration::from_millis(250);
/// The pauses between two attempts to read a record before which a partition waits.
const WAIT: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
/// The pauses between two checks of a shard that has panicked; the memory decides when it is rebuilt.
const FALLEN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// The time between two looks for banks that may sleep.
const SLEEP_INTERVAL: Duration = Duration::from_millis(500);

/// A partition that is not read for a moment.
struct ReadPause {
    until: Instant,
    backoff: Backoff,
    /// The problems that were reported since it last made progress.
    said: BTreeSet<String>,
}

/// Follows every partition of the memory topic that is held.
pub(super) fn follow_memory(
    log: &KafkaLog,
    replica: &Replica,
    hold: ShardAssignmentMode,
    state: &ServiceState,
    stopping: &AtomicBool,
    started: Instant,
) -> Result<(), ServeError> {
    let mut retry = ClusterRetry::new(state, "the memory topic");
    let mut waiting: BTreeMap<u32, ReadPause> = BTreeMap::new();
    let mut quarantined = 0;
    let mut slept = Instant::now();
    while !stopping.load(Ordering::Relaxed) {
        let seen = log.news().count();
        let (mut any, mut busy) = (false, false);
        // Some banks fall asleep at once, so that others do after the next records.
        let is_due = slept.elapsed() > SLEEP_INTERVAL;
        let more_sleep = is_due && !replica.sleep_unused(&|_| false).is_empty();
        if is_due && !more_sleep {
            slept = Instant::now();
        }
        for partition in 0..log.partitions() {
            if waiting.get(&partition).is_some_and(|pause| Instant::now() < pause.until) {
                continue;
            }
            if !replica.has_room(partition) {
                busy = true;
                continue;
            }
            let mut records = 0;
            match replica.follow(log, partition, |_, _, _| records += 1) {
                Ok(some) => {
                    any |= some;
                    if waiting.contains_key(&partition) && !is_waiting(replica, partition) {
                        waiting.remove(&partition);
                    }
                }
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                // A shard that has panicked may need a snapshot that cannot be read: that concerns only this shard.
                Err(error @ (PipelineError::Waits { .. } | PipelineError::Memory(_) | PipelineError::Snapshot(_))) => {
                    let waits = matches!(error, PipelineError::Waits { .. });
                    let pause = waiting.entry(partition).or_insert_with(|| ReadPause {
                        until: Instant::now(),
                        backoff: if waits { WAIT } else { FALLEN },
                        said: BTreeSet::new(),
                    });
                    pause.until = Instant::now() + pause.backoff.jittered();
                    let problem = redacted_error(&error);
                    if pause.said.insert(problem.clone()) {
                        if waits {
                            log_events::shard_waits(partition, &problem);
                        } else {
                            log_events::shard_reloaded(partition, &problem);
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
            state.metrics.records.inc_by(records);
        }
        if any {
            let now = replica.quarantined_banks();
            if now > quarantined {
                log_events::banks_quarantined(now);
            }
            quarantined = now;
            retry.reset();
            continue;
        }
        if busy {
            // The shard raises the same signal when it has room.
            log.news().wait(seen, PATIENCE);
            continue;
        }
        if !retry.is_failing() && !state.loaded.load(Ordering::Relaxed) && replica.is_loaded(hold) {
            replica.wait_until_visible()?;
            let took = started.elapsed().as_secs_f64();
            state.metrics.recovery_seconds.set(took);
            state.loaded.store(true, Ordering::Relaxed);
            log_events::memory_ready(took);
        }
        if !more_sleep {
            log.news().wait(seen, PATIENCE);
        }
    }
    Ok(())
}

/// Whether a partition waits before a record: a read that has found nothing has not passed it.
fn is_waiting(replica: &Replica, partition: u32) -> bool {
    replica.shards().iter().any(|shard| shard.partition == partition && shard.waits_before.is_some())
}

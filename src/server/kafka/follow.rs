//! The role `serve`: the memory follows every partition of the memory topic that it holds.
//!
//! In: records of the memory topic. Out: the memory they make, and readiness once it reflects what
//! the topic held when the instance began to hold it. A partition that waits before a record of a newer
//! build, whose shard is still busy with earlier loads, or whose shard has panicked, holds up no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{cluster_retry::ClusterRetry, error::ServeError, state::State};
use crate::telemetry::OfPartition;
use nouns::config::Hold;
use ripplemem::{
    log::{KafkaLog, Log, LogError, Topic},
    pipeline::{PipelineError, Replica, ShardStatus},
};

/// Time between two reads when there is nothing new.
const IDLE: Duration = Duration::from_millis(5);
/// Time between two looks at a record before which a partition waits.
const WAIT: Duration = Duration::from_secs(5);

/// Time between two looks at a shard that has panicked; how soon it is made again is the memory's matter.
const FALLEN: Duration = Duration::from_millis(100);

/// Follows every partition of the memory topic that is held.
pub(super) fn follow(
    log: &KafkaLog,
    replica: &Replica,
    hold: Hold,
    state: &State,
    stopping: &AtomicBool,
    started: Instant,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let mut retry = ClusterRetry::new(state, say);
    // Until when each partition waits, and what was said of it since it last moved on.
    let mut waiting: BTreeMap<u32, (Instant, BTreeSet<String>)> = BTreeMap::new();
    let mut quarantined = 0;
    while !stopping.load(Ordering::Relaxed) {
        let (mut any, mut busy) = (false, false);
        for partition in 0..log.partitions() {
            if waiting.get(&partition).is_some_and(|(until, _)| Instant::now() < *until) {
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
                    waiting.remove(&partition);
                }
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                // A shard that has panicked may need a snapshot that cannot be read: that is its problem alone.
                Err(error @ (PipelineError::Waits { .. } | PipelineError::Memory(_) | PipelineError::Snapshot(_))) => {
                    let (pause, problem) = match &error {
                        PipelineError::Waits { .. } => (WAIT, format!("{error}; its banks are answered as of before")),
                        _ => (FALLEN, format!("shard {partition}: {error}")),
                    };
                    let (until, said) = waiting.entry(partition).or_insert((Instant::now(), BTreeSet::new()));
                    *until = Instant::now() + pause;
                    if said.insert(problem.clone()) {
                        say(&problem);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            state.metrics.records.inc_by(records);
        }
        if any {
            let now = replica.quarantined_banks();
            if now > quarantined {
                say(&format!("{now} bank(s) are quarantined: a record of theirs cannot be read; see the refusals"));
            }
            quarantined = now;
            retry.reset();
            continue;
        }
        if busy {
            std::thread::sleep(IDLE);
            continue;
        }
        if !retry.is_failing() && !state.loaded.load(Ordering::Relaxed) && replica.is_loaded(hold) {
            replica.wait_until_visible()?;
            let took = started.elapsed().as_secs_f64();
            state.metrics.recovery_seconds.set(took);
            state.loaded.store(true, Ordering::Relaxed);
            say(&format!("ready: the memory reflects its log ({took:.2} s)"));
        }
        std::thread::sleep(IDLE);
    }
    Ok(())
}

/// Measures every shard; while the cluster is unavailable the last figures of what is behind stay.
pub(super) fn measure(log: &KafkaLog, replica: &Replica, state: &State) {
    let metrics = &state.metrics;
    let shards: BTreeMap<u32, ShardStatus> =
        replica.shards().into_iter().map(|shard| (shard.partition, shard)).collect();
    let awaited = replica.awaited();
    for partition in 0..log.partitions() {
        let of = OfPartition { partition };
        let shard = shards.get(&partition);
        let is = |what: fn(&ShardStatus) -> bool| i64::from(shard.is_some_and(what));
        metrics.shards_held.get_or_create(&of).set(i64::from(shard.is_some()));
        let loading = is(|shard| shard.loading) | i64::from(awaited.contains(&partition));
        metrics.shards_loading.get_or_create(&of).set(loading);
        metrics.shards_waiting.get_or_create(&of).set(is(|shard| shard.waiting));
        let quarantined = shard.map_or(0, |shard| shard.quarantined_banks);
        metrics.quarantined_banks.get_or_create(&of).set(quarantined as i64);
        let Some(shard) = shard else {
            metrics.shards_behind.remove(&of);
            continue;
        };
        let rebuilds = metrics.shard_rebuilds.get_or_create(&of);
        rebuilds.inc_by(shard.rebuilds.saturating_sub(rebuilds.get()));
        if let Ok(end) = log.end(Topic::Memory, partition) {
            let behind = end.saturating_sub(shard.next_offset).min(i64::MAX.unsigned_abs());
            metrics.shards_behind.get_or_create(&of).set(behind as i64);
        }
    }
}

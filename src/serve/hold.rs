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

use super::{backoff::Backoff, error::ServeError, state::State};
use crate::{
    log::{KafkaLog, Log, LogError, kafka::partitions_of},
    pipeline::{Answerer, PipelineError},
};

/// Time between two looks at what is assigned.
const LOOK: Duration = Duration::from_millis(5);

/// Takes and leaves shards until `stopping`.
pub(super) fn hold(
    log: &KafkaLog,
    answerer: &Answerer,
    state: &State,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let patience = 2 * Duration::from_secs(log.cluster().settings.session_seconds);
    let mut backoff = Backoff::new(state, say);
    let mut revoked: BTreeMap<u32, Instant> = BTreeMap::new();
    while !stopping.load(Ordering::Relaxed) {
        let surplus = answerer.revoked();
        revoked.retain(|partition, _| surplus.contains(partition));
        for partition in surplus {
            if revoked.entry(partition).or_insert_with(Instant::now).elapsed() > patience {
                answerer.leave(partition);
                say(&format!("shard {partition}: another instance has it"));
            }
        }
        for partition in answerer.awaited() {
            match answerer.take(log, partition) {
                Ok(()) => {
                    backoff.reset();
                    say(&format!("shard {partition}: assigned to this instance"));
                }
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => backoff.wait(&error),
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

//! The role `serve`: the memory follows every partition of the memory topic.
//!
//! In: records of the memory topic. Out: the memory they make, and readiness once it reflects what
//! the topic held at the start. A partition that waits before a record of a newer build holds up no
//! other: its banks are answered as of before.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{backoff::Backoff, error::ServeError, state::State};
use crate::{
    log::{KafkaLog, Log, LogError},
    pipeline::{Answerer, PipelineError},
};

/// Time between two reads when there is nothing new.
const IDLE: Duration = Duration::from_millis(5);
/// Time between two looks at a record before which a partition waits.
const WAIT: Duration = Duration::from_secs(5);

/// Follows every partition of the memory topic.
pub(super) fn follow(
    log: &KafkaLog,
    answerer: &Answerer,
    state: &State,
    stopping: &AtomicBool,
    started: Instant,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let mut backoff = Backoff::new(state, say);
    let mut waiting: BTreeMap<u32, (Instant, String)> = BTreeMap::new();
    let mut quarantined = 0;
    while !stopping.load(Ordering::Relaxed) {
        let mut any = false;
        for partition in 0..log.partitions() {
            if waiting.get(&partition).is_some_and(|(until, _)| Instant::now() < *until) {
                continue;
            }
            let mut records = 0;
            match answerer.follow(log, partition, |_, _, _| records += 1) {
                Ok(some) => any |= some,
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => backoff.wait(&error),
                Err(error @ PipelineError::Waits { .. }) => {
                    let problem = error.to_string();
                    if waiting.get(&partition).is_none_or(|(_, said)| *said != problem) {
                        say(&format!("{problem}; its banks are answered as of before"));
                    }
                    waiting.insert(partition, (Instant::now() + WAIT, problem));
                }
                Err(error) => return Err(error.into()),
            }
            state.metrics.records.inc_by(records);
        }
        if any {
            let now = answerer.quarantined_banks();
            if now > quarantined {
                say(&format!("{now} bank(s) are quarantined: a record of theirs cannot be read; see the refusals"));
            }
            quarantined = now;
            state.metrics.quarantined_banks.set(now as i64);
            backoff.reset();
            continue;
        }
        if !backoff.is_failing() && !state.loaded.load(Ordering::Relaxed) {
            answerer.wait_until_visible()?;
            let took = started.elapsed().as_secs_f64();
            state.metrics.recovery_seconds.set(took);
            state.loaded.store(true, Ordering::Relaxed);
            say(&format!("ready: the memory reflects its log ({took:.2} s)"));
        }
        std::thread::sleep(IDLE);
    }
    Ok(())
}

//! The role `serve`: the memory follows every partition of the memory topic.
//!
//! In: records of the memory topic. Out: the memory they make, and readiness once it reflects what
//! the topic held at the start.

use std::{
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
    while !stopping.load(Ordering::Relaxed) {
        let mut any = false;
        for partition in 0..log.partitions() {
            let mut records = 0;
            match answerer.follow(log, partition, |_, _, _| records += 1) {
                Ok(some) => any |= some,
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => backoff.wait(&error),
                Err(error) => return Err(error.into()),
            }
            state.metrics.records.inc_by(records);
        }
        if any {
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

//! Snapshots of a running service: once the memory is loaded, then by the interval, and on request.
//!
//! In: requests of the HTTP endpoint. Out: snapshots, metrics, and a message when writing starts to
//! fail or succeeds again.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;

use super::state::{SnapshotReply, State};
use crate::{config::Pipeline, pipeline::Answerer};

/// Writes snapshots until `stopping`. A store that cannot be reached stops nothing else: the next
/// interval tries again.
pub(super) fn write(
    pipeline: &Pipeline,
    answerer: &Answerer,
    state: &State,
    requests: &Receiver<SnapshotReply>,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) {
    let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
    let mut last_problem = None;
    let mut last: Option<Instant> = None;
    while !stopping.load(Ordering::Relaxed) {
        let reply = requests.recv_timeout(Duration::from_millis(100)).ok();
        let due = state.loaded.load(Ordering::Relaxed) && last.is_none_or(|last| last.elapsed() >= every);
        if !due && reply.is_none() {
            continue;
        }
        let started = Instant::now();
        let result = match answerer.snapshot() {
            Ok(None) => Ok("nothing has changed since the last snapshot".to_owned()),
            Ok(Some(manifest)) => {
                state.metrics.snapshots.inc();
                state.metrics.snapshot_seconds.observe(started.elapsed().as_secs_f64());
                if last_problem.take().is_some() {
                    say(&format!("snapshot {}: written again", manifest.number));
                }
                Ok(format!("{}: {}", pipeline.snapshot.directory, manifest.summary()))
            }
            Err(error) => {
                state.metrics.snapshot_failures.inc();
                let problem = error.to_string();
                if last_problem.as_ref() != Some(&problem) {
                    say(&format!("no snapshot: {problem}"));
                }
                last_problem = Some(problem.clone());
                Err(problem)
            }
        };
        if let Some(reply) = reply {
            drop(reply.send(result));
        }
        last = Some(started);
    }
}

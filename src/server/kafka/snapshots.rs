//! Snapshots of a running service: once the memory is loaded, then by the interval, and on request.
//!
//! In: requests of the HTTP endpoint. Out: snapshots of the shards that no other process writes,
//! metrics, and a message when writing starts to fail or succeeds again, or another process writes.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;

use super::state::{SnapshotReply, State};
use nouns::config::Pipeline;
use ripplemem::{log::Log, pipeline::Replica};

/// Writes snapshots until `stopping`. A store that cannot be reached stops nothing else: the next
/// interval tries again.
pub(super) fn write(
    pipeline: &Pipeline,
    log: &dyn Log,
    replica: &Replica,
    state: &State,
    requests: &Receiver<SnapshotReply>,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) {
    let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
    let (mut last_problem, mut elsewhere) = (None, 0);
    let mut last: Option<Instant> = None;
    while !stopping.load(Ordering::Relaxed) {
        let reply = requests.recv_timeout(Duration::from_millis(100)).ok();
        let due = state.loaded.load(Ordering::Relaxed) && last.is_none_or(|last| last.elapsed() >= every);
        if !due && reply.is_none() {
            continue;
        }
        let started = Instant::now();
        // Another process may have written snapshots of shards, and have ended.
        let taken_over = replica.take_over(log).map(|taken| {
            if taken > 0 {
                say(&format!("snapshots: this process writes those of {taken} more shard(s) from now on"));
            }
        });
        let written = match &reply {
            Some(_) => replica.snapshot_on_request(),
            None => replica.snapshot(),
        };
        let result = match taken_over.and(written) {
            Ok(None) => Ok(nothing(replica.written_elsewhere())),
            Ok(Some(written)) => {
                state.metrics.snapshots.inc();
                state.metrics.snapshot_seconds.observe(started.elapsed().as_secs_f64());
                if last_problem.take().is_some() {
                    say("snapshots are written again");
                }
                Ok(format!("{}: {}", pipeline.snapshot.directory, written.summary()))
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
        let now = replica.written_elsewhere();
        if now != elsewhere && now > 0 {
            say(&format!("snapshots: another process writes those of {now} shard(s); this one keeps answering"));
        }
        elsewhere = now;
        if let Some(reply) = reply {
            drop(reply.send(result));
        }
        last = Some(started);
    }
}

fn nothing(elsewhere: usize) -> String {
    let unchanged = "nothing has changed since the last snapshot";
    match elsewhere {
        0 => unchanged.to_owned(),
        shards => format!("{unchanged}; another process writes those of {shards} shard(s)"),
    }
}

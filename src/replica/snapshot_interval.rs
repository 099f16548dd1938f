//! Writes snapshots at an interval, while a service runs.
//!
//! In: a replica. Out: snapshots of the shards that no other process writes, the first as soon as the memory is loaded,
//! and log lines when writing begins to fail, succeeds again, or passes to another process. An unreachable place stops
//! nothing else: the next interval tries again.

use crate::log_events;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{PipelineError, Replica};
use logs::Log;
use pipeline::redacted_error;

/// The longest time until a stop is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Writes snapshots until `stopping`, whose thread may be unparked. `tell` receives whether a snapshot was written
/// because something had changed, and how long that took.
pub fn write_snapshots(
    replica: &Replica,
    log: &dyn Log,
    every: Duration,
    is_loaded: &dyn Fn() -> bool,
    stopping: &AtomicBool,
    tell: &mut dyn FnMut(&Result<bool, PipelineError>, Duration),
) {
    let (mut said, mut elsewhere) = (None, 0);
    let mut last: Option<Instant> = None;
    while !stopping.load(Ordering::Relaxed) {
        let left = last.map_or(Duration::ZERO, |last| (last + every).saturating_duration_since(Instant::now()));
        if !left.is_zero() || !is_loaded() {
            std::thread::park_timeout(left.clamp(Duration::from_millis(20), CHECK_INTERVAL));
            continue;
        }
        let started = *last.insert(Instant::now());
        // Another process may have written snapshots of shards, and ended since.
        let taken_over = replica.take_over(log).map(|shards| {
            if shards > 0 {
                log_events::snapshots_taken_over(shards);
            }
        });
        let is_written = taken_over.and_then(|()| replica.snapshot()).map(|written| written.is_some());
        let problem = is_written.as_ref().err().map(redacted_error);
        match &problem {
            Some(problem) if said.as_ref() != Some(problem) => log_events::snapshot_failed(problem),
            None if said.is_some() => log_events::snapshots_recovered(),
            _ => {}
        }
        said = problem;
        let now = replica.written_elsewhere();
        if now != elsewhere && now > 0 {
            log_events::snapshots_written_elsewhere(now);
        }
        elsewhere = now;
        tell(&is_written, started.elapsed());
    }
}

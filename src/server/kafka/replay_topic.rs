//! Writes a topic as Parquet while it grows.
//!
//! In: a topic, until stopped. Out: files, each finished when it is large enough or old enough. After
//! a crash, records of unfinished files are read again.

use super::log_events;
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{cluster_retry::ClusterRetry, error::ServeError, service_state::ServiceState};
use logs::LogError;
use ripplemem::{ReplayError, ReplayRequest, TopicReplay};
use snapshots::ArchiveTable;
use types::config::Pipeline;

/// Time between two reads when there is nothing new.
const IDLE: Duration = Duration::from_millis(50);

/// Writes a topic until `stopping`.
pub(super) fn replay(
    pipeline: &Pipeline,
    table: ArchiveTable,
    state: &ServiceState,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let settings = &pipeline.replay;
    let to: &Path = &settings.directory;
    let request = ReplayRequest { table, to, partition: None, from: None, by_bank: settings.by_bank };
    let every = Duration::from_secs(settings.finish_seconds);
    let mut retry = ClusterRetry::new(state, table.name());
    log_events::replay_started(table.name(), to.join(table.name()).display());
    while !stopping.load(Ordering::Relaxed) {
        // Opened again for each round of files, because partitions may have been added.
        let mut replay = match TopicReplay::open(&pipeline.log, &request) {
            Err(ReplayError::Log(error @ LogError::Cluster { retriable: true, .. })) => {
                retry.wait(&error);
                continue;
            }
            opened => opened?,
        };
        let (started, files) = (Instant::now(), replay.index().files.len());
        while !stopping.load(Ordering::Relaxed) && started.elapsed() < every {
            match replay.step(true) {
                Ok(0) => std::thread::sleep(IDLE),
                Ok(rows) => {
                    state.metrics.replayed_rows.inc_by(rows);
                    retry.reset();
                }
                Err(ReplayError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                Err(error) => return Err(error.into()),
            }
        }
        replay.finish()?;
        state.metrics.replayed_files.inc_by((replay.index().files.len() - files) as u64);
    }
    Ok(())
}

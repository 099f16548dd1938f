//! Snapshots on request, without a running service.
//!
//! In: a log, and its snapshots if there are any. Out: a new snapshot, or what changed in a bank between two points of
//! its past. Extracts nothing.

use logs::{self, Log, Topic};
use snapshots::{AsOf, BankDiff, SnapshotError};
use types::{
    config::{LogKind, Pipeline, ShardAssignmentMode},
    model::Bank,
};

use super::{PipelineError, Progress, Replica, ReplicaOptions, WrittenSnapshots, compare_points};

/// Reads a log to its end and writes a snapshot of each shard; returns the newest one if nothing has changed since.
/// Extracts nothing.
///
/// # Errors
/// [`PipelineError`].
pub fn take_snapshot(
    pipeline: &Pipeline,
    progress: &mut dyn FnMut(Progress),
) -> Result<WrittenSnapshots, PipelineError> {
    let (replica, _log) = up_to_date(pipeline, true, progress)?;
    match replica.snapshot_on_request()? {
        Some(written) => Ok(written),
        None => match replica.snapshots()? {
            Some(manifests) if !manifests.is_empty() => Ok(WrittenSnapshots { manifests }),
            _ => Err(SnapshotError::None.into()),
        },
    }
}

/// What was added to a bank and removed from it between two points of its past; see [`Replica::diff`]. On a log in a
/// directory, also how many turns were forgotten since.
///
/// # Errors
/// [`PipelineError`].
pub fn diff(pipeline: &Pipeline, bank: &Bank, from: AsOf, to: AsOf) -> Result<BankDiff, PipelineError> {
    // On Kafka a running service may be writing snapshots: this compares up to its newest one.
    let is_embedded = pipeline.log.kind == LogKind::Embedded;
    let (replica, log) = up_to_date(pipeline, is_embedded, &mut |_| {})?;
    compare_points(&replica, &*log, bank, [from, to])
}

/// A memory that reflects its log to the end; with `record` it writes snapshots.
fn up_to_date(
    pipeline: &Pipeline,
    record: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Replica, Box<dyn Log>), PipelineError> {
    let log = logs::open(&pipeline.log)?;
    let mut total = 0;
    for partition in 0..log.partitions() {
        total += log.end(Topic::Memory, partition)?;
    }
    let restoring = &mut |done, total| {
        progress(Progress { doing: "restoring", done, total: Some(total), unit: "bytes" });
    };
    let options = ReplicaOptions {
        hold: ShardAssignmentMode::All,
        edges: None,
        record,
        asks: None,
        waking_log: None,
        turns: None,
        progress: restoring,
    };
    let replica = Replica::open(pipeline, &*log, options)?;
    for partition in 0..log.partitions() {
        while replica.follow(&*log, partition, |_, _, at| {
            progress(Progress { doing: "loading", done: at, total: Some(total), unit: "records" });
        })? {}
    }
    Ok((replica, log))
}

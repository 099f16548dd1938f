//! Decides which snapshots this process writes for the shards that it holds.
//!
//! In: requests, and shards with the snapshots that they were restored from. Out: snapshots, and for a question about
//! the past, the snapshots that hold its point. A shard whose snapshots another process writes still answers questions
//! here; it is recorded again once that process stops writing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;

use super::{
    PipelineError,
    past_memory_cache::PurgeVersion,
    shard::{ReplicaShard, RestoredShard},
    shard_set::ShardSet,
    snapshot_location::snapshots,
    snapshot_points::{SnapshotPoints, deletes},
    snapshot_recorder::{ShardSnapshot, ShardStartState, SnapshotRecorder},
};
use logs::Log;
use memory::index::ChoiceChanges;
use snapshots::{AsOf, ClaimRule, LiveCounts, LogSnapshots, Manifest, MemoryLogRead, SnapshotError};
use types::{
    config::{EditPolicy, ForgetSettings, LogKind, Pipeline, ShardAssignmentMode},
    model::Bank,
};

/// Once the place has failed and this time has passed, no more snapshots of the same round are tried.
const PLACE_TIMEOUT: Duration = Duration::from_secs(5);
/// Another process may claim snapshots that were not renewed for this many intervals, and for at least [`OLD_SECONDS`].
const OLD_INTERVALS: u64 = 3;
const OLD_SECONDS: u64 = 60;

/// The newest snapshots of the shards that this process writes.
#[derive(Debug, Clone)]
pub struct WrittenSnapshots {
    /// Their manifests, by partition.
    pub manifests: Vec<Manifest>,
}

impl WrittenSnapshots {
    /// Their counts, as a line of text.
    #[must_use]
    pub fn summary(&self) -> String {
        let (mut live, mut bytes) = (LiveCounts::default(), 0);
        for manifest in &self.manifests {
            live += manifest.live;
            bytes += manifest.bytes();
        }
        let (LiveCounts { records, units, choices }, megabytes) = (live, bytes as f64 / 1e6);
        let shards = self.manifests.len();
        format!("{shards} shard(s): {records} records, {units} units, {choices} choices; {megabytes:.1} MB in all")
    }
}

/// The snapshots of a memory, and which of them this process writes.
pub(super) struct ReplicaSnapshots {
    log: LogKind,
    hold: ShardAssignmentMode,
    interval_seconds: u64,
    history_days: u64,
    /// The settings that name the banks in which edits erase the earlier text.
    forget: ForgetSettings,
    /// Where snapshots are kept.
    snapshots: Option<Arc<LogSnapshots>>,
    recorder: Option<SnapshotRecorder>,
    /// A name that no other process that writes snapshots has.
    run: String,
    /// How many shards' snapshots were left to another process when snapshots were last written.
    written_elsewhere: AtomicUsize,
    points: SnapshotPoints,
}

impl ReplicaSnapshots {
    /// Reads and writes no snapshots.
    pub(super) fn none(pipeline: &Pipeline) -> Self {
        Self {
            log: pipeline.log.kind,
            hold: pipeline.serve.hold,
            interval_seconds: pipeline.snapshot.interval_seconds,
            history_days: pipeline.snapshot.history_days,
            forget: pipeline.forget.clone(),
            snapshots: None,
            recorder: None,
            run: format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id()),
            written_elsewhere: AtomicUsize::default(),
            points: SnapshotPoints::default(),
        }
    }

    /// Opens the place that the pipeline names, if it names one; with `records`, snapshots are written there.
    pub(super) fn open(pipeline: &Pipeline, log: &dyn Log, records: bool) -> Result<Self, PipelineError> {
        let mut recording = Self::none(pipeline);
        if !pipeline.snapshot.directory.is_empty() {
            recording.snapshots = Some(Arc::new(snapshots(pipeline, log.partitions(), log.generation())?));
        }
        if records {
            recording.recorder = Some(SnapshotRecorder::start().map_err(PipelineError::Thread)?);
        }
        Ok(recording)
    }

    /// The snapshots, if the pipeline names a place.
    pub(super) fn snapshots(&self) -> Option<&Arc<LogSnapshots>> {
        self.snapshots.as_ref()
    }

    /// Whether snapshots are written here.
    pub(super) fn writes(&self) -> bool {
        self.recorder.is_some()
    }

    /// Records what a shard has read.
    pub(super) fn take(&self, shard: &ReplicaShard, read: MemoryLogRead, choices: &Receiver<ChoiceChanges>) {
        if let Some(recorder) = &self.recorder {
            let (next_offset, deletes) = (read.next_offset, deletes(&read));
            recorder.take(shard.id, read, choices);
            self.points.note_read(shard.partition, next_offset, deletes);
        }
    }

    /// Ends the recording of a shard that is to be rebuilt, after a last snapshot, from which the rebuilt shard
    /// continues. If that snapshot cannot be written, the log has what is missing.
    pub(super) fn hand_over(&self, shard: &ReplicaShard) {
        if let Some(recorder) = &self.recorder {
            drop(recorder.snapshot(shard.id, now_ms(), self.claim_rule()));
            recorder.end(shard.id);
        }
    }

    /// Ends the recording of a shard.
    pub(super) fn end(&self, shard: &ReplicaShard) {
        if let Some(recorder) = &self.recorder {
            recorder.end(shard.id);
        }
    }

    /// Records a shard from now on, continuing the snapshot that it was restored from.
    pub(super) fn begin(
        &self,
        shard: &ReplicaShard,
        found: &ShardStartState,
        brought: Option<&RestoredShard>,
    ) -> Result<(), PipelineError> {
        let (Some(recorder), Some(snapshots)) = (&self.recorder, &self.snapshots) else { return Ok(()) };
        let ShardStartState { partition, seen, restored } = found;
        // A shard that is rebuilt writes files with other names.
        let run = format!("{}.{}", self.run, shard.id.0);
        let mut writer =
            snapshots.writer(*partition, *seen, restored.as_ref(), run, self.history_days, self.claim_rule())?;
        if self.forget.edits == EditPolicy::Erase {
            writer.erase_edits(self.forget.clone());
        }
        if let (Some(restored), Some(brought)) = (restored, brought) {
            if !restored.same_settings {
                writer.replace_choices(restored, brought.choices.clone());
            }
            if let Some((update, choices)) = &brought.removed {
                writer.add(update, choices)?;
            }
        }
        recorder.begin(shard.id, writer);
        Ok(())
    }

    /// An embedded log belongs to one process, and a group assigns a partition to one process. In all other cases,
    /// several processes may hold the shard.
    fn claim_rule(&self) -> ClaimRule {
        match (self.log, self.hold) {
            (LogKind::Embedded, _) | (LogKind::Kafka, ShardAssignmentMode::Assigned) => ClaimRule::AtOnce,
            (LogKind::Kafka, ShardAssignmentMode::All) => self.claim_of_another(),
        }
    }

    /// When to claim snapshots that another process has claimed.
    fn claim_of_another(&self) -> ClaimRule {
        let seconds = (OLD_INTERVALS * self.interval_seconds).max(OLD_SECONDS);
        ClaimRule::WhenOld(i64::try_from(1_000 * seconds).unwrap_or(i64::MAX))
    }

    /// The newest snapshot of each of a memory's shards; `None` if the pipeline names no place.
    pub(super) fn newest(&self, partitions: u32) -> Result<Option<Vec<Manifest>>, PipelineError> {
        let Some(snapshots) = &self.snapshots else { return Ok(None) };
        let of_shard = |partition| snapshots.manifest(partition).transpose();
        let found = (0..partitions).filter_map(of_shard).collect::<Result<_, _>>()?;
        Ok(Some(found))
    }

    /// Writes a snapshot of each shard that has changed since its last one and whose snapshots no other process writes;
    /// `None` when there is no such shard. `on_request` also claims snapshots from a process that has written none
    /// since.
    pub(super) fn write(&self, shards: &ShardSet, on_request: bool) -> Result<Option<WrittenSnapshots>, PipelineError> {
        let rule = if on_request { ClaimRule::AtOnce } else { self.claim_rule() };
        let Some(recorder) = &self.recorder else { return Ok(None) };
        let (mut manifests, mut written, mut elsewhere, mut failure) = (Vec::new(), false, 0, None);
        let started = Instant::now();
        for shard in shards.all() {
            // If the place hangs, every shard would have to wait for it.
            if failure.is_some() && started.elapsed() > PLACE_TIMEOUT {
                break;
            }
            match recorder.snapshot(shard.id, now_ms(), rule) {
                Ok(Some(taken)) => {
                    self.points.has_snapshot(shard.partition, &taken.manifest);
                    written |= taken.written;
                    manifests.push(taken.manifest);
                }
                Ok(None) | Err(SnapshotError::Elsewhere { .. }) => elsewhere += 1,
                Err(SnapshotError::Taken { .. }) if rule != ClaimRule::AtOnce => elsewhere += 1,
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        self.written_elsewhere.store(elsewhere, Ordering::Relaxed);
        failure.map_or(Ok(()), Err)?;
        Ok(written.then_some(WrittenSnapshots { manifests }))
    }

    /// How many shards are held here whose snapshots another process writes, as of the last snapshot.
    pub(super) fn written_elsewhere(&self) -> usize {
        self.written_elsewhere.load(Ordering::Relaxed)
    }

    /// The partitions of shards that are no longer recorded, because another process wrote their snapshots or the place
    /// was unavailable for too long, and whose snapshots no other process writes now.
    pub(super) fn to_take_over(&self, shards: &ShardSet) -> Result<Vec<u32>, PipelineError> {
        let (Some(recorder), Some(snapshots)) = (&self.recorder, &self.snapshots) else { return Ok(Vec::new()) };
        let revoked = shards.revoked();
        // The snapshots of a revoked shard belong to another process, even while the shard is kept here.
        let ours = |shard: &&Arc<ReplicaShard>| !recorder.records(shard.id) && !revoked.contains(&shard.partition);
        let mut partitions = Vec::new();
        for shard in shards.all().iter().filter(ours) {
            if snapshots.may_claim(shard.partition, &self.run, self.claim_of_another(), now_ms())? {
                partitions.push(shard.partition);
            }
        }
        Ok(partitions)
    }

    /// The snapshots, updated so that they hold these points and no deleted turn; the bank's partition; and the epoch
    /// and number of its last purge.
    pub(super) fn history(
        &self,
        shards: &ShardSet,
        bank: &Bank,
        points: &[AsOf],
    ) -> Result<(Arc<LogSnapshots>, u32, PurgeVersion), PipelineError> {
        let snapshots = Arc::clone(self.snapshots.as_ref().ok_or(SnapshotError::None)?);
        let partition = shards.partition_of(bank);
        if let Some(recorder) = &self.recorder {
            let shard = shards.of(bank)?;
            for at in points {
                let brought_up = self.points.ensure_point(partition, *at, || {
                    match recorder.snapshot(shard.id, now_ms(), self.claim_rule())? {
                        Some(ShardSnapshot { manifest, .. }) => self.points.has_snapshot(partition, &manifest),
                        None => return Err(snapshots.other_writer_error(partition)),
                    }
                    Ok(())
                });
                match brought_up {
                    Err(error @ (SnapshotError::Elsewhere { .. } | SnapshotError::Taken { .. })) => {
                        if let Some(newest) = snapshots.manifest(partition)? {
                            self.points.has_snapshot(partition, &newest);
                        }
                        if self.points.lacks_point(partition, *at) {
                            return Err(error.into());
                        }
                    }
                    brought_up => brought_up?,
                }
            }
        }
        let newest = snapshots.manifest(partition)?;
        let purged = newest.map_or((0, 0), |manifest| (manifest.epoch, manifest.last_deletion));
        Ok((snapshots, partition, purged))
    }

    /// The snapshots, updated so that they hold the whole past of a bank, and the bank's partition. If another process
    /// writes them, they hold the points that can be asked for here.
    pub(super) fn newest_history(
        &self,
        shards: &ShardSet,
        bank: &Bank,
    ) -> Result<(Arc<LogSnapshots>, u32), PipelineError> {
        let now = AsOf::Offset(u64::MAX);
        let held = match self.history(shards, bank, &[now]) {
            Err(PipelineError::Snapshot(SnapshotError::Elsewhere { .. } | SnapshotError::Taken { .. })) => {
                // Only a deletion that the snapshots lack is a reason to refuse every point.
                self.history(shards, bank, &[AsOf::Offset(0)])
            }
            held => held,
        };
        held.map(|(snapshots, partition, _)| (snapshots, partition))
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

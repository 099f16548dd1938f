//! The snapshots of the shards that this process holds, and which of them it writes.
//!
//! In: shards with what they were restored from, requests. Out: snapshots, and for a question about the
//! past those that hold its point. A shard whose snapshots another process writes is answered for all
//! the same; it is recorded again once that process writes no more.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    PipelineError,
    answerer::Answerer,
    past::Purge,
    recorder::{Found, Taken},
    shard::{RestoredShard, Shard},
};
use crate::{
    log::Log,
    snapshot::{AsOf, ClaimRule, LiveCounts, Manifest, SnapshotError, Snapshots},
};
use nouns::{
    config::{Hold, LogKind},
    model::Bank,
};

/// After this time a place that failed once is tried no further for the same snapshots.
const PLACE_TIMEOUT: Duration = Duration::from_secs(5);
/// A shard's snapshots count as nobody's that were not written or found unchanged for so many intervals,
const OLD_INTERVALS: u64 = 3;
/// and for this time.
const OLD_SECONDS: u64 = 60;

/// The newest snapshots of the shards that this process writes.
#[derive(Debug, Clone)]
pub struct WrittenSnapshots {
    /// By partition.
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

impl Answerer {
    /// Records a shard from now on, on top of the snapshot that it was restored from.
    pub(super) fn record(
        &self,
        shard: &Shard,
        found: &Found,
        brought: Option<&RestoredShard>,
    ) -> Result<(), PipelineError> {
        let (Some(recorder), Some(snapshots)) = (&self.recorder, &self.snapshots) else { return Ok(()) };
        let Found { partition, seen, restored } = found;
        // A shard that is made again writes files of other names.
        let run = format!("{}.{}", self.run, shard.id.0);
        let days = self.pipeline.snapshot.history_days;
        let mut writer = snapshots.writer(*partition, *seen, restored.as_ref(), run, days, self.claim_rule())?;
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

    /// An embedded log has one process, and a group assigns a partition to one; otherwise several may
    /// hold it.
    pub(super) fn claim_rule(&self) -> ClaimRule {
        match (self.pipeline.log.kind, self.pipeline.serve.hold) {
            (LogKind::Embedded, _) | (LogKind::Kafka, Hold::Assigned) => ClaimRule::AtOnce,
            (LogKind::Kafka, Hold::All) => self.claim_of_another(),
        }
    }

    /// When to claim what another process has claimed.
    fn claim_of_another(&self) -> ClaimRule {
        let seconds = (OLD_INTERVALS * self.pipeline.snapshot.interval_seconds).max(OLD_SECONDS);
        ClaimRule::WhenOld(i64::try_from(1_000 * seconds).unwrap_or(i64::MAX))
    }

    /// Writes a snapshot of each shard that changed since its last, and whose snapshots no other process
    /// writes; None when there is none. It gives the newest of every shard that this process writes.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] of the first shard that failed; the others are written, and the memory
    /// keeps answering.
    pub fn snapshot(&self) -> Result<Option<WrittenSnapshots>, PipelineError> {
        self.write_snapshots(self.claim_rule())
    }

    /// As [`Self::snapshot`]; a person asks for it. Where another process has claimed a shard's snapshots
    /// and has written none since this one began, this one claims them.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn snapshot_on_request(&self) -> Result<Option<WrittenSnapshots>, PipelineError> {
        self.write_snapshots(ClaimRule::AtOnce)
    }

    /// The newest snapshot of each shard; None where the pipeline names no place.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] where the place cannot be read.
    pub(in crate::pipeline) fn listed_snapshots(&self) -> Result<Option<Vec<Manifest>>, PipelineError> {
        let Some(snapshots) = &self.snapshots else { return Ok(None) };
        let of_shard = |partition| snapshots.manifest(partition).transpose();
        let found = (0..self.shards.partitions()).filter_map(of_shard).collect::<Result<_, _>>()?;
        Ok(Some(found))
    }

    fn write_snapshots(&self, rule: ClaimRule) -> Result<Option<WrittenSnapshots>, PipelineError> {
        let Some(recorder) = &self.recorder else { return Ok(None) };
        let (mut manifests, mut written, mut elsewhere, mut failure) = (Vec::new(), false, 0, None);
        let started = Instant::now();
        for shard in self.shards.all() {
            // Where the place hangs, each shard would wait for it.
            if failure.is_some() && started.elapsed() > PLACE_TIMEOUT {
                break;
            }
            match recorder.snapshot(shard.id, now_ms(), rule) {
                Ok(Some(taken)) => {
                    self.past.has_snapshot(shard.partition, &taken.manifest);
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
    #[must_use]
    pub fn written_elsewhere(&self) -> usize {
        self.written_elsewhere.load(Ordering::Relaxed)
    }

    /// Takes those shards again that are recorded no more, because another process wrote their snapshots
    /// or the place was away for too long, once nobody else writes them: from then on this process does.
    /// Gives their number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_over(&self, log: &dyn Log) -> Result<usize, PipelineError> {
        let (Some(recorder), Some(snapshots)) = (&self.recorder, &self.snapshots) else { return Ok(0) };
        let (mut taken, revoked) = (0, self.shards.revoked());
        // A revoked shard is another's to write, also while it is kept here.
        let ours = |shard: &&Arc<Shard>| !recorder.records(shard.id) && !revoked.contains(&shard.partition);
        for shard in self.shards.all().iter().filter(ours) {
            if snapshots.may_claim(shard.partition, &self.run, self.claim_of_another(), now_ms())? {
                self.take(log, shard.partition)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// The newest snapshots.
    pub(in crate::pipeline) fn newest_snapshots(&self) -> Result<WrittenSnapshots, PipelineError> {
        let snapshots = self.snapshots.as_ref().ok_or(SnapshotError::None)?;
        let newest = (0..self.shards.partitions()).map(|partition| snapshots.manifest(partition));
        let manifests: Vec<Manifest> = newest.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if manifests.is_empty() { Err(SnapshotError::None.into()) } else { Ok(WrittenSnapshots { manifests }) }
    }

    /// The snapshots, which hold these points and no deleted turn; the bank's partition; and the epoch and
    /// number of its last purge.
    pub(super) fn history(&self, bank: &Bank, points: &[AsOf]) -> Result<(Arc<Snapshots>, u32, Purge), PipelineError> {
        let snapshots = Arc::clone(self.snapshots.as_ref().ok_or(SnapshotError::None)?);
        let partition = self.shards.partition_of(bank);
        if let Some(recorder) = &self.recorder {
            let shard = self.shards.of(bank)?;
            for at in points {
                let brought_up = self.past.bring_up(partition, *at, || {
                    match recorder.snapshot(shard.id, now_ms(), self.claim_rule())? {
                        Some(Taken { manifest, .. }) => self.past.has_snapshot(partition, &manifest),
                        None => return Err(snapshots.elsewhere(partition)),
                    }
                    Ok(())
                });
                match brought_up {
                    Err(error @ (SnapshotError::Elsewhere { .. } | SnapshotError::Taken { .. })) => {
                        if let Some(newest) = snapshots.manifest(partition)? {
                            self.past.has_snapshot(partition, &newest);
                        }
                        if self.past.lacks(partition, *at) {
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
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

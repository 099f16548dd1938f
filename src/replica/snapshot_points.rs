//! When a question about the past needs a new snapshot.
//!
//! In: the reads of the memory log, the snapshots written, points of the past. Out: whether a shard's newest
//! snapshot answers for a point. A snapshot is written for a question only if the newest one lacks the point or a
//! deletion, and at most twice a second.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use snapshots::{AsOf, Manifest, MemoryLogRead};
use types::sync;

/// The minimum time between two snapshots that questions cause.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(500);

/// How far a partition was read, and what its newest snapshot holds.
#[derive(Debug, Clone, Copy, Default)]
struct PartitionPoint {
    /// The first offset that the snapshot lacks, and when its last record was appended; `None` if no snapshot is known.
    reached: Option<(u64, i64)>,
    /// The first offset that was not read.
    read: u64,
    /// The end of the last read that deletes a turn.
    deleted: u64,
}

/// What the newest snapshots of a memory hold.
#[derive(Default)]
pub(super) struct SnapshotPoints {
    recorded: Mutex<BTreeMap<u32, PartitionPoint>>,
    /// When a question last caused a snapshot; locked while one is written.
    asked_for: Mutex<Option<Instant>>,
}

impl SnapshotPoints {
    /// Notes a read that the recorder has. Call it after the recorder took the read.
    pub(super) fn note_read(&self, partition: u32, next_offset: u64, deletes: bool) {
        let mut recorded = sync::lock(&self.recorded);
        let of = recorded.entry(partition).or_default();
        of.read = next_offset;
        if deletes {
            of.deleted = next_offset;
        }
    }

    /// Notes the newest snapshot of a partition.
    pub(super) fn has_snapshot(&self, partition: u32, manifest: &Manifest) {
        if let Some(at) = manifest.reached.iter().find(|at| at.partition == partition) {
            let reached = (at.next_offset, at.last.map_or(i64::MIN, |(_, append_ms)| append_ms));
            sync::lock(&self.recorded).entry(partition).or_default().reached = Some(reached);
        }
    }

    /// Whether the newest snapshot does not answer for a point of a partition's past.
    pub(super) fn lacks_point(&self, partition: u32, at: AsOf) -> bool {
        let recorded = sync::lock(&self.recorded).get(&partition).copied().unwrap_or_default();
        // Anything may have been read at the start, after the snapshot was restored.
        let Some((next_offset, last_ms)) = recorded.reached else { return true };
        let holds = match at {
            AsOf::Offset(at) => at < next_offset,
            // Another record may have been appended in the same millisecond.
            AsOf::Time(at) => at < last_ms,
        };
        recorded.read > next_offset && (recorded.deleted > next_offset || !holds)
    }

    /// Writes a snapshot if the newest one does not answer for a point. Questions that ask at the same time share a
    /// snapshot.
    pub(super) fn ensure_point<E>(
        &self,
        partition: u32,
        at: AsOf,
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.lacks_point(partition, at) {
            return Ok(());
        }
        let mut asked_for = sync::lock(&self.asked_for);
        if !self.lacks_point(partition, at) {
            return Ok(());
        }
        if let Some(left) = asked_for.and_then(|last| SNAPSHOT_PAUSE.checked_sub(last.elapsed())) {
            std::thread::sleep(left);
        }
        *asked_for = Some(Instant::now());
        write()
    }
}

/// Whether a read deletes a turn.
pub(super) fn deletes(read: &MemoryLogRead) -> bool {
    let records = read.records.iter().filter_map(|(_, record)| record.as_ref());
    records.flat_map(|record| &record.turns).any(|turn| turn.deleted)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_snapshot_is_written_only_for_a_point_that_the_newest_lacks() {
        let past = SnapshotPoints::default();
        let manifest = serde_json::json!({
            "version": 2, "epoch": 1, "number": 1, "taken_ms": 0, "log": "", "partitions": 1, "covers": [], "model": null,
            "dimensions": 0, "settings": "", "live": {"records": 0, "units": 0, "choices": 0}, "purged": 0,
            "trimmed_ms": 0, "gaps": [], "forgotten": [], "unreadable": [], "segments": [],
            "reached": [{"partition": 0, "next_offset": 10, "last": [9, 5_000], "oldest": null}],
        });
        let mut manifest: Manifest = serde_json::from_value(manifest).expect("a manifest");
        let read = |next_offset, deletes| past.note_read(0, next_offset, deletes);
        let mut written = 0;
        let mut asked = |at: AsOf, next_offset: u64| {
            let before = written;
            manifest.reached[0].next_offset = next_offset;
            let done = past.ensure_point::<Infallible>(0, at, || {
                written += 1;
                past.has_snapshot(0, &manifest);
                Ok(())
            });
            assert_eq!(done, Ok(()));
            written > before
        };
        assert!(asked(AsOf::Offset(3), 10), "a start may have read a deletion");
        assert!(!asked(AsOf::Time(9_000), 10), "nothing was read since");
        read(11, false);
        assert!(!asked(AsOf::Offset(9), 11) && !asked(AsOf::Time(4_999), 11), "the newest holds these");
        assert!(asked(AsOf::Offset(10), 11));
        read(12, false);
        assert!(asked(AsOf::Time(5_000), 12), "a record of this millisecond may be missing");
        read(13, true);
        assert!(asked(AsOf::Offset(3), 13), "the newest holds what was deleted");
        read(14, false);
        let failed = past.ensure_point(0, AsOf::Offset(13), || Err("the place is away"));
        assert_eq!(failed, Err("the place is away"));
        assert!(past.lacks_point(0, AsOf::Offset(13)), "the next question tries again");
        assert!(past.lacks_point(1, AsOf::Offset(0)), "another shard's snapshot says nothing of it");
    }
}

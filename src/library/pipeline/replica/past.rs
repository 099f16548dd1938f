//! Memories of the past, and when a question about it needs a new snapshot.
//!
//! In: the reads of the memory log, the snapshots written, points of the past. Out: whether a shard's
//! newest snapshot answers for a point, and the memory as of it, restored once. A snapshot is
//! written for a question only where the newest lacks the point, or lacks a deletion, and at most
//! twice a second. Restores of different memories run side by side; no lock is held but that memory's.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::snapshot::{AsOf, LogRead, Manifest};
use nouns::{model::Bank, sync};

/// Memories of the past that are kept; the least recently used is evicted.
const PAST_MEMORIES: usize = 4;
/// Least time between two snapshots that questions ask for.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(500);

/// A bank as of an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastPoint {
    pub(super) bank: Bank,
    pub(super) partition: u32,
    pub(super) offset: u64,
    /// The last purge of the shard's snapshots: a memory that was restored before it holds what was deleted.
    pub(super) purged: Purge,
}

/// The epoch of a shard's newest snapshot, and the number of the last that removed deleted turns.
pub(super) type Purge = (u64, u64);

/// A memory that is restored by whoever locks it first.
type Slot<M> = Arc<Mutex<Option<Arc<M>>>>;

/// Memories of the past, and what the newest snapshots hold.
pub(super) struct PastMemories<M> {
    /// Most recently used first.
    cached: Mutex<VecDeque<(PastPoint, Slot<M>)>>,
    recorded: Mutex<BTreeMap<u32, Recorded>>,
    /// The last snapshot that a question asked for; locked while one is written.
    asked_for: Mutex<Option<Instant>>,
}

/// How far a partition was read, and what its newest snapshot holds.
#[derive(Debug, Clone, Copy, Default)]
struct Recorded {
    /// The first offset that the snapshot lacks, and when its last record was appended; None: no
    /// snapshot is known.
    reached: Option<(u64, i64)>,
    /// The first offset that was not read.
    read: u64,
    /// The end of the last read that deletes a turn.
    deleted: u64,
}

impl<M> Default for PastMemories<M> {
    fn default() -> Self {
        Self { cached: Mutex::default(), recorded: Mutex::default(), asked_for: Mutex::default() }
    }
}

impl<M> PastMemories<M> {
    /// Notes a read that the recorder has. Call it after the recorder took the read.
    pub(super) fn has_read(&self, partition: u32, next_offset: u64, deletes: bool) {
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
    pub(super) fn lacks(&self, partition: u32, at: AsOf) -> bool {
        let recorded = sync::lock(&self.recorded).get(&partition).copied().unwrap_or_default();
        // A start may have read anything since the snapshot that it restored.
        let Some((next_offset, last_ms)) = recorded.reached else { return true };
        let holds = match at {
            AsOf::Offset(at) => at < next_offset,
            // Another record may have been appended in the same millisecond.
            AsOf::Time(at) => at < last_ms,
        };
        recorded.read > next_offset && (recorded.deleted > next_offset || !holds)
    }

    /// Has a snapshot written if the newest does not answer for a point. Questions that ask at the same
    /// time share one.
    pub(super) fn bring_up<E>(&self, partition: u32, at: AsOf, write: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if !self.lacks(partition, at) {
            return Ok(());
        }
        let mut asked_for = sync::lock(&self.asked_for);
        if !self.lacks(partition, at) {
            return Ok(());
        }
        if let Some(left) = asked_for.and_then(|last| SNAPSHOT_PAUSE.checked_sub(last.elapsed())) {
            std::thread::sleep(left);
        }
        *asked_for = Some(Instant::now());
        write()
    }

    /// The memory as of a point, restored by the first who asks for it.
    pub(super) fn memory<E>(
        &self,
        point: &PastPoint,
        restore: impl FnOnce() -> Result<Arc<M>, E>,
    ) -> Result<Arc<M>, E> {
        let slot = {
            let mut cached = sync::lock(&self.cached);
            // A memory from before a deletion must answer nothing.
            cached.retain(|(past, _)| past.partition != point.partition || past.purged == point.purged);
            let at = cached.iter().position(|(past, _)| past == point);
            let (past, slot) = at.and_then(|at| cached.remove(at)).unwrap_or_else(|| (point.clone(), Slot::default()));
            cached.push_front((past, Arc::clone(&slot)));
            cached.truncate(PAST_MEMORIES);
            slot
        };
        let mut held = sync::lock(&slot);
        if let Some(memory) = &*held {
            return Ok(Arc::clone(memory));
        }
        Ok(Arc::clone(held.insert(restore()?)))
    }
}

/// Whether a read deletes a turn.
pub(super) fn deletes(read: &LogRead) -> bool {
    let records = read.records.iter().filter_map(|(_, record)| record.as_ref());
    records.flat_map(|record| &record.turns).any(|turn| turn.deleted)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn point(bank: &str, purged: u64) -> PastPoint {
        PastPoint { bank: Bank::parse(bank).expect("a good name"), partition: 0, offset: 7, purged: (1, purged) }
    }

    #[test]
    fn a_restore_holds_up_no_other_memory_and_is_done_once() {
        let past = PastMemories::<u32>::default();
        let (entered, wait) = (crossbeam_channel::bounded::<()>(0), crossbeam_channel::bounded::<()>(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let slow = past.memory::<Infallible>(&point("slow", 0), || {
                    entered.0.send(()).expect("the test waits");
                    wait.1.recv().expect("the test goes on");
                    Ok(Arc::new(1))
                });
                assert_eq!(slow, Ok(Arc::new(1)));
            });
            entered.1.recv().expect("the restore begins");
            assert_eq!(past.memory::<Infallible>(&point("fast", 0), || Ok(Arc::new(2))), Ok(Arc::new(2)));
            wait.0.send(()).expect("the restore waits");
        });
        assert_eq!(past.memory(&point("slow", 0), || Err("restored twice")), Ok(Arc::new(1)));
        assert_eq!(past.memory(&point("slow", 1), || Err("before a deletion")), Err("before a deletion"));
        assert_eq!(past.memory(&point("slow", 1), || Ok::<_, &str>(Arc::new(3))), Ok(Arc::new(3)));
    }

    #[test]
    fn a_snapshot_is_written_only_for_a_point_that_the_newest_lacks() {
        let past = PastMemories::<u32>::default();
        let manifest = serde_json::json!({
            "version": 1, "number": 1, "taken_ms": 0, "log": "", "partitions": 1, "covers": [], "model": null,
            "dimensions": 0, "settings": "", "live": {"records": 0, "units": 0, "choices": 0}, "purged": 0,
            "trimmed_ms": 0, "gaps": [], "forgotten": [], "unreadable": [], "segments": [],
            "reached": [{"partition": 0, "next_offset": 10, "last": [9, 5_000], "oldest": null}],
        });
        let mut manifest: Manifest = serde_json::from_value(manifest).expect("a manifest");
        let read = |next_offset, deletes| past.has_read(0, next_offset, deletes);
        let mut written = 0;
        let mut asked = |at: AsOf, next_offset: u64| {
            let before = written;
            manifest.reached[0].next_offset = next_offset;
            let done = past.bring_up::<Infallible>(0, at, || {
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
        let failed = past.bring_up(0, AsOf::Offset(13), || Err("the place is away"));
        assert_eq!(failed, Err("the place is away"));
        assert!(past.lacks(0, AsOf::Offset(13)), "the next question tries again");
        assert!(past.lacks(1, AsOf::Offset(0)), "another shard's snapshot says nothing of it");
    }
}

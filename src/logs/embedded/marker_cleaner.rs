//! Which deletion markers may be removed while the log is open.
//!
//! In: markers as they are written, and the offsets at which reads begin. Out: the oldest markers that no reader still
//! needs, a few at a time. A reader that has read a record needs the marker of its deletion, so a marker stays while
//! any recent read began at or before it. Reads no clock; callers pass the time.

use std::collections::{BTreeMap, VecDeque};

use types::shrinkable_collection::ShrinkableCollection;

/// A marker stays at least this long, and a read counts as recent for one to two times as long; in milliseconds.
const KEPT_MS: i64 = 10 * 60_000;

/// A deletion marker of the memory topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeletionMarker {
    pub(super) partition: u32,
    pub(super) offset: u64,
    pub(super) append_ms: i64,
}

/// The remaining markers, and the recent reads.
#[derive(Debug)]
pub(super) struct MarkerCleaner {
    kept_ms: i64,
    /// The markers in the order in which they were written.
    markers: VecDeque<MarkerRun>,
    reads: BTreeMap<u32, RecentReads>,
}

/// Markers of one write with consecutive offsets. Runs are common: a window that closes deletes its turns' records.
#[derive(Debug)]
struct MarkerRun {
    partition: u32,
    count: u32,
    /// The offset of the first marker.
    offset: u64,
    append_ms: i64,
}

/// The least offset at which a read of a partition began, in this period and in the period before.
#[derive(Debug, Clone, Copy)]
struct RecentReads {
    period_ms: i64,
    least: u64,
    least_before: u64,
}

impl Default for MarkerCleaner {
    fn default() -> Self {
        Self { kept_ms: KEPT_MS, markers: VecDeque::new(), reads: BTreeMap::new() }
    }
}

impl MarkerCleaner {
    /// Keeps markers for a shorter time, so that a test need not wait.
    #[cfg(test)]
    pub(super) fn keep_for_ms(&mut self, kept_ms: i64) {
        self.kept_ms = kept_ms;
    }

    /// Notes markers that were written.
    pub(super) fn note_written(&mut self, markers: impl IntoIterator<Item = DeletionMarker>) {
        for DeletionMarker { partition, offset, append_ms } in markers {
            match self.markers.back_mut() {
                Some(run) if run.goes_on_with(partition, offset, append_ms) => run.count += 1,
                _ => self.markers.push_back(MarkerRun { partition, count: 1, offset, append_ms }),
            }
        }
    }

    /// Notes that a read of a partition begins at `from`.
    pub(super) fn note_read(&mut self, partition: u32, from: u64, now_ms: i64) {
        let reads =
            self.reads.entry(partition).or_insert(RecentReads { period_ms: now_ms, least: from, least_before: from });
        reads.advance(now_ms, self.kept_ms);
        reads.least = reads.least.min(from);
    }

    /// Takes at most `limit` of the oldest markers, up to the first that is young or still needed.
    pub(super) fn take_removable(&mut self, now_ms: i64, limit: usize) -> Vec<DeletionMarker> {
        let mut taken = Vec::new();
        while let Some(run) = self.markers.front_mut().filter(|_| taken.len() < limit) {
            let young = now_ms.saturating_sub(run.append_ms) < self.kept_ms;
            let needed = self.reads.get_mut(&run.partition).is_some_and(|reads| {
                reads.advance(now_ms, self.kept_ms);
                reads.least.min(reads.least_before) <= run.offset
            });
            if young || needed {
                break;
            }
            taken.push(DeletionMarker { partition: run.partition, offset: run.offset, append_ms: run.append_ms });
            (run.offset, run.count) = (run.offset + 1, run.count - 1);
            if run.count == 0 {
                self.markers.pop_front();
            }
        }
        self.markers.give_room_back();
        taken
    }
}

impl MarkerRun {
    fn goes_on_with(&self, partition: u32, offset: u64, append_ms: i64) -> bool {
        let next = self.offset + u64::from(self.count);
        self.count < u32::MAX && (self.partition, next, self.append_ms) == (partition, offset, append_ms)
    }
}

impl RecentReads {
    fn advance(&mut self, now_ms: i64, period_ms: i64) {
        let passed = now_ms.saturating_sub(self.period_ms);
        if passed >= 2 * period_ms.max(1) {
            (self.least, self.least_before, self.period_ms) = (u64::MAX, u64::MAX, now_ms);
        } else if passed >= period_ms.max(1) {
            (self.least_before, self.least, self.period_ms) = (self.least, u64::MAX, now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(offset: u64, append_ms: i64) -> DeletionMarker {
        DeletionMarker { partition: 0, offset, append_ms }
    }

    #[test]
    fn a_marker_goes_once_it_is_old_and_every_recent_read_began_after_it() {
        let mut cleaning = MarkerCleaner::default();
        cleaning.note_written([marker(10, 0), marker(20, 1), marker(30, 2)]);
        assert_eq!(cleaning.take_removable(KEPT_MS - 1, 9), []);
        // One reader is at the end, another is still at 15.
        cleaning.note_read(0, 31, KEPT_MS);
        cleaning.note_read(0, 15, KEPT_MS);
        assert_eq!(cleaning.take_removable(KEPT_MS + 5, 9), [marker(10, 0)]);
        // The read at 15 still counts in the next period, but not in the period after that.
        cleaning.note_read(0, 31, 2 * KEPT_MS + 1);
        assert_eq!(cleaning.take_removable(2 * KEPT_MS + 2, 9), []);
        cleaning.note_read(0, 31, 3 * KEPT_MS + 2);
        assert_eq!(cleaning.take_removable(3 * KEPT_MS + 3, 1), [marker(20, 1)]);
        assert_eq!(cleaning.take_removable(3 * KEPT_MS + 3, 9), [marker(30, 2)]);
    }

    #[test]
    fn markers_of_one_write_that_follow_one_another_are_held_once_and_taken_one_by_one() {
        let mut cleaning = MarkerCleaner::default();
        let second = |offset| DeletionMarker { partition: 1, ..marker(offset, 0) };
        let written = [marker(10, 0), marker(11, 0), marker(13, 0), second(14), marker(15, 0), marker(16, 5)];
        cleaning.note_written(written);
        assert_eq!(cleaning.markers.len(), 5);
        assert_eq!(cleaning.take_removable(KEPT_MS, 1), written[..1]);
        // A reader at the second marker of the run still needs it.
        cleaning.note_read(0, 11, KEPT_MS);
        assert_eq!(cleaning.take_removable(KEPT_MS, 9), []);
        assert_eq!(cleaning.take_removable(4 * KEPT_MS, 9), written[1..]);
        assert_eq!(cleaning.markers.capacity(), 0);
    }

    #[test]
    fn a_partition_that_nobody_reads_holds_nothing_back() {
        let mut cleaning = MarkerCleaner::default();
        cleaning.note_written([marker(10, 0), DeletionMarker { partition: 1, ..marker(5, 0) }]);
        cleaning.note_read(1, 0, KEPT_MS);
        assert_eq!(cleaning.take_removable(KEPT_MS, 9), [marker(10, 0)]);
        assert_eq!(cleaning.take_removable(4 * KEPT_MS, 9), [DeletionMarker { partition: 1, ..marker(5, 0) }]);
    }
}

//! Counts the records of a partition that lie behind a position.
//!
//! In: positions. Out: how many committed records lie between there and the partition's current end. Offsets of
//! markers, of aborted transactions and of what compaction or retention has removed hold none, and are not counted. If
//! many are left, only the first ones are read, and every later offset counts as a record, so a count is never too
//! small. A count continues where the previous one ended, and moves no other reader.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use super::{client::KafkaCluster, partition_reader::PartitionReader};
use crate::{LogError, Topic};

/// Records that one count reads at most.
const READ_MOST: u64 = 512;
/// Bytes of values after which a count reads no more.
const READ_BYTES: usize = 1 << 20;
/// Records that are read at once.
const READ_AT_ONCE: usize = 32;

/// The records behind a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreadCount {
    /// Their number.
    pub records: u64,
    /// The end of the partition up to which they were counted.
    pub end: u64,
}

/// The counts by topic and partition.
pub(super) type UnreadCounters = Mutex<HashMap<(Topic, u32), Arc<Mutex<UnreadCounter>>>>;

/// Counts the unread records of one partition.
pub(super) struct UnreadCounter {
    reader: PartitionReader,
    /// The position from which it counts.
    position: u64,
    /// The offset of the next record to read.
    next: u64,
    /// The number of records counted between `position` and `next`.
    records: u64,
}

impl UnreadCounter {
    /// Counts nothing yet.
    pub(super) fn open(cluster: &KafkaCluster, topic: &str, partition: u32) -> Result<Self, LogError> {
        let reader = PartitionReader::open(cluster, topic, partition, false)?;
        Ok(Self { reader, position: u64::MAX, next: 0, records: 0 })
    }

    /// Counts from a position on.
    pub(super) fn count(&mut self, cluster: &KafkaCluster, position: u64) -> Result<UnreadCount, LogError> {
        let (first, end) = self.reader.span(cluster)?;
        if position != self.position {
            (self.position, self.next, self.records) = (position, position, 0);
        }
        // Expired records are not counted.
        self.next = self.next.max(first);
        let (mut read, mut bytes) = (0, 0);
        self.reader.reach(end);
        while self.next < end && read < READ_MOST && bytes < READ_BYTES {
            let raw = self.reader.read(cluster, self.next, READ_AT_ONCE)?;
            match raw.last() {
                // A record may have come since the end was read.
                Some(last) => self.next = last.record.offset + 1,
                None => self.next = end,
            }
            read += raw.len() as u64;
            self.records += raw.len() as u64;
            bytes += raw.iter().map(|raw| raw.record.value.as_ref().map_or(0, Vec::len)).sum::<usize>();
        }
        let end = end.max(self.next);
        Ok(UnreadCount { records: self.records + (end - self.next), end })
    }
}

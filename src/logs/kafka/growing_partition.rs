//! Reads a partition from its beginning, and later what was added.
//!
//! In: the partition. Out: its records in order, each once, up to the partition's end at the time of the call. No
//! committed record before that end is missing; a reader that only follows a partition would stop at what the broker
//! has delivered so far.

use super::{client::KafkaCluster, partition_reader::PartitionReader};
use crate::{LogError, RawRecord};

/// Records that are read at once.
const READ_AT_ONCE: usize = 256;

/// A reader of what a partition has, as it grows.
pub(super) struct GrowingPartition {
    reader: PartitionReader,
    is_transactional: bool,
    /// The partition's end, as of the last time that it was read from the broker.
    end: u64,
    next: u64,
    /// Whether records before that end are left to read.
    is_behind: bool,
}

impl GrowingPartition {
    /// Opens a partition. The last offset of a topic that only transactions write is a marker, which is not read.
    pub(super) fn open(
        cluster: &KafkaCluster,
        topic: &str,
        partition: u32,
        is_transactional: bool,
    ) -> Result<Self, LogError> {
        let mut reader = PartitionReader::open(cluster, topic, partition, is_transactional)?;
        let next = reader.span(cluster)?.0;
        Ok(Self { reader, is_transactional, end: 0, next, is_behind: false })
    }

    /// Some of the records that were not read yet; none at the end of the partition. That end is at least
    /// `written_end`, the offset after a record that this process wrote.
    pub(super) fn read_new(&mut self, cluster: &KafkaCluster, written_end: u64) -> Result<Vec<RawRecord>, LogError> {
        if !self.is_behind {
            let end = self.reader.span(cluster)?.1;
            if end == self.end && self.next >= written_end {
                return Ok(Vec::new());
            }
            self.end = end;
            self.reader.reach(self.readable_end());
            self.reader.must_reach(written_end);
            self.is_behind = true;
        }
        let raw = self.reader.read(cluster, self.next, READ_AT_ONCE)?;
        match raw.last() {
            Some(last) => self.next = last.record.offset + 1,
            None => self.is_behind = false,
        }
        Ok(raw)
    }

    /// The offset after the last one that may hold a record.
    pub(super) fn readable_end(&self) -> u64 {
        self.end.saturating_sub(u64::from(self.is_transactional)).max(self.next)
    }
}

//! Reads records of a partition again, by their offsets.
//!
//! In: offsets below the partition's end. Out: the records, as far as the topic still has them. Nothing else is read in
//! between, so that no caller waits for a read of the whole partition.

use std::collections::{BTreeSet, HashMap};

use super::{client::KafkaCluster, partition_reader::PartitionReader};
use crate::{LogError, LogRecord};

/// If the next record is at most this many offsets ahead, reading on is faster than seeking.
const NEAR: u64 = 512;

/// A reader of single records of a partition.
pub(super) struct RecordLookup {
    reader: PartitionReader,
    /// The offset that it reads next.
    at: u64,
}

impl RecordLookup {
    /// A reader of a partition of a memory topic.
    pub(super) fn open(cluster: &KafkaCluster, topic: &str, partition: u32) -> Result<Self, LogError> {
        Ok(Self { reader: PartitionReader::open(cluster, topic, partition, true)?, at: u64::MAX })
    }

    /// The records at these offsets, as far as the topic still has them.
    pub(super) fn records(
        &mut self,
        cluster: &KafkaCluster,
        offsets: &[u64],
    ) -> Result<HashMap<u64, LogRecord>, LogError> {
        self.reader.reach(offsets.iter().max().map_or(0, |last| last + 1));
        let mut found = HashMap::with_capacity(offsets.len());
        for offset in offsets.iter().copied().collect::<BTreeSet<u64>>() {
            if self.at > offset || offset - self.at > NEAR {
                self.at = offset;
            }
            while self.at <= offset {
                let Some(raw) = self.reader.read(cluster, self.at, 1)?.pop() else { break };
                self.at = raw.record.offset + 1;
                if raw.record.offset == offset {
                    found.insert(offset, raw.record);
                }
            }
        }
        Ok(found)
    }
}

//! Where the live records of a memory partition lie, by key.
//!
//! In: the partition, read once, and later what was added. Out: the records whose keys begin with a prefix, in key
//! order, each as last written, and how far they cover the turns. It holds a key and an offset for every live record,
//! and no values: a record is read again when a caller wants it. Compaction keeps the last record of a key at its
//! offset.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::{Bound, ControlFlow},
};

use super::{
    client::KafkaCluster, control_records, growing_partition::GrowingPartition, partition_reader::PartitionReader,
};
use crate::{LogError, LogRecord, RawRecord, ReadBatch, ReadProgress};
use types::model::Bank;

/// Records that are read before they are passed on.
const READ_AT_ONCE: usize = 256;
/// If the next record is at most this many offsets ahead, reading on is faster than seeking.
const NEAR: u64 = 512;

/// The live records of a partition.
pub(super) struct LiveKeyIndex {
    topic: String,
    growing: GrowingPartition,
    /// Reads records again, so that `growing` keeps its position.
    lookup: PartitionReader,
    /// The offset that `lookup` reads next.
    at: u64,
    offsets: BTreeMap<Vec<u8>, u64>,
    /// By turns partition: how far transactions cover it.
    covered: BTreeMap<u32, ReadProgress>,
    /// Whether it was updated before.
    is_filled: bool,
}

impl LiveKeyIndex {
    /// The index of a partition of a memory topic; empty until its first update.
    pub(super) fn open(cluster: &KafkaCluster, topic: &str, partition: u32) -> Result<Self, LogError> {
        Ok(Self {
            topic: format!("{topic}/{partition}"),
            growing: GrowingPartition::open(cluster, topic, partition, true)?,
            lookup: PartitionReader::open(cluster, topic, partition, true)?,
            at: u64::MAX,
            offsets: BTreeMap::new(),
            covered: BTreeMap::new(),
            is_filled: false,
        })
    }

    /// Reads what was added to the partition. `split` separates records from read positions. After an error the index
    /// may lack records: do not use it any more.
    pub(super) fn update(
        &mut self,
        cluster: &KafkaCluster,
        written_end: u64,
        split: &dyn Fn(Vec<RawRecord>) -> Result<ReadBatch, LogError>,
    ) -> Result<(), LogError> {
        loop {
            let raw = self.growing.read_new(cluster, written_end)?;
            if raw.is_empty() {
                self.is_filled = true;
                return Ok(());
            }
            let ReadBatch { records, covers, .. } = split(raw)?;
            self.covered.extend(covers);
            for LogRecord { key, offset, value, .. } in records {
                if control_records::describe_key(&key).is_some() {
                    continue;
                }
                match value {
                    Some(_) => drop(self.offsets.insert(key, offset)),
                    None => drop(self.offsets.remove(&key)),
                }
            }
        }
    }

    /// Whether it was updated before.
    pub(super) fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// The first offset of a bank's turns in a turns partition that no transaction covers.
    pub(super) fn covered(&self, turns: u32, bank: &Bank) -> u64 {
        self.covered.get(&turns).map(|progress| progress.of(bank)).unwrap_or_default()
    }

    /// The keys of live records that begin with a prefix, in order, and their offsets.
    pub(super) fn of_prefix<'i>(&'i self, prefix: &'i [u8]) -> impl Iterator<Item = (&'i [u8], u64)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let of_prefix = self.offsets.range::<[u8], _>(from).take_while(move |(key, _)| key.starts_with(prefix));
        of_prefix.map(|(key, offset)| (key.as_slice(), *offset))
    }

    /// As [`crate::Log::live_records`].
    pub(super) fn each(
        &mut self,
        cluster: &KafkaCluster,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let taken = self.of_prefix(prefix).filter(|(key, offset)| wanted(key, *offset));
        let offsets: Vec<u64> = taken.map(|(_, offset)| offset).collect();
        for some in offsets.chunks(READ_AT_ONCE) {
            let mut records = self.records(cluster, some)?;
            for offset in some {
                let record = records.remove(offset).ok_or_else(|| {
                    let problem = "compaction removed it just now; repeat the request".to_owned();
                    cluster.error(format!("reading offset {offset} of {}", self.topic), problem, None)
                })?;
                if each(&record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The records at these offsets, as far as the topic still has them.
    pub(super) fn records(
        &mut self,
        cluster: &KafkaCluster,
        offsets: &[u64],
    ) -> Result<HashMap<u64, LogRecord>, LogError> {
        self.lookup.reach(self.growing.readable_end());
        let mut found = HashMap::with_capacity(offsets.len());
        for offset in offsets.iter().copied().collect::<BTreeSet<u64>>() {
            if self.at > offset || offset - self.at > NEAR {
                self.at = offset;
            }
            while self.at <= offset {
                let Some(raw) = self.lookup.read(cluster, self.at, 1)?.pop() else { break };
                self.at = raw.record.offset + 1;
                if raw.record.offset == offset {
                    found.insert(offset, raw.record);
                }
            }
        }
        Ok(found)
    }
}

//! Where the live records of a memory partition lie, by key.
//!
//! In: the partition, read once, and later what was added. Out: the offsets of the records whose keys begin with a
//! prefix, in key order, each as last written, and how far they cover the turns. It holds a key and an offset for every
//! live record, and no values: [`super::record_lookup`] reads a record again. Compaction keeps the last record of a key
//! at its offset.

use std::{collections::BTreeMap, ops::Bound};

use super::{client::KafkaCluster, control_records, growing_partition::GrowingPartition};
use crate::{LogError, LogRecord, RawRecord, ReadBatch, ReadProgress};
use types::model::Bank;

/// The live records of a partition.
pub(super) struct LiveKeyIndex {
    growing: GrowingPartition,
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
            growing: GrowingPartition::open(cluster, topic, partition, true)?,
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
}

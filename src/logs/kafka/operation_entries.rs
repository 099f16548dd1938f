//! The entries that a log keeps beside its records: on Kafka, operations that forget turns.
//!
//! In: the compacted topic of operations, whose keys are the entries' names. Out: the last value of each, including
//! those that other instances wrote. There are few, so all of them are held in memory.

use std::{collections::BTreeMap, ops::Bound};

use super::{client::KafkaCluster, growing_partition::GrowingPartition, topic_setup::OPERATIONS};
use crate::LogError;

/// The entries as last read.
#[derive(Default)]
pub(super) struct OperationEntries {
    /// Opened by the first call.
    growing: Option<GrowingPartition>,
    /// The offset after the last record that this process wrote.
    written_end: u64,
    values: BTreeMap<String, Vec<u8>>,
}

impl OperationEntries {
    /// The entries whose names begin with `prefix`, by name.
    pub(super) fn with_prefix(
        &mut self,
        cluster: &KafkaCluster,
        prefix: &str,
    ) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let growing = match &mut self.growing {
            Some(growing) => growing,
            None => self.growing.insert(GrowingPartition::open(cluster, &cluster.topic(OPERATIONS), 0, false)?),
        };
        loop {
            let raw = growing.read_new(cluster, self.written_end)?;
            if raw.is_empty() {
                break;
            }
            for record in raw.into_iter().map(|raw| raw.record) {
                let name = String::from_utf8_lossy(&record.key).into_owned();
                match record.value {
                    Some(value) => drop(self.values.insert(name, value)),
                    None => drop(self.values.remove(&name)),
                }
            }
        }
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.values.range::<str, _>(from).take_while(|(name, _)| name.starts_with(prefix));
        Ok(found.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Notes that this process wrote records before this offset.
    pub(super) fn note_written(&mut self, end: u64) {
        self.written_end = self.written_end.max(end);
    }
}

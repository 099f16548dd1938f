//! Which instance answers HTTP requests about the banks of each partition, as the instances announce it.
//!
//! In: the partitions that the group has assigned to this instance, and its URL. Out: the last announcement for each
//! partition. The topic is compacted and has one partition. A record's key is a partition of the memory, so nothing
//! remains of an instance that has ended once others have announced its partitions.

use serde::{Deserialize, Serialize};

use super::{
    KafkaLog,
    partition_reader::PartitionReader,
    topic_setup::{self, OptionalTopics},
    transactional_producer::OutgoingRecord,
};
use crate::{Log, LogError};

/// Records that are read at once.
const READ_AT_ONCE: usize = 256;

/// The value of a record.
#[derive(Debug, Serialize, Deserialize)]
struct InstanceAnnouncement {
    /// The URL of the instance.
    url: String,
}

impl KafkaLog {
    /// Creates the topic of instances, or checks it.
    ///
    /// # Errors
    /// [`LogError`], as [`Self::open`].
    pub fn ensure_instances(&self) -> Result<(), LogError> {
        let optional = OptionalTopics { instances: true, ..OptionalTopics::default() };
        topic_setup::ensure(self.cluster(), self.partitions(), optional).map(drop)
    }
}

/// The topic of instances, read from its beginning.
pub struct InstancesTopic<'l> {
    log: &'l KafkaLog,
    name: String,
    reader: PartitionReader,
    next: u64,
}

impl<'l> InstancesTopic<'l> {
    /// Opens the topic.
    pub fn open(log: &'l KafkaLog) -> Result<Self, LogError> {
        let name = log.cluster().topic(&log.cluster().settings.instances_topic);
        let mut reader = PartitionReader::open(log.cluster(), &name, 0, false)?;
        let next = reader.span(log.cluster())?.0;
        Ok(Self { log, name, reader, next })
    }

    /// The announcements since the last call: partitions, each with the URL of its holder. Records of any other form
    /// are skipped.
    pub fn read(&mut self) -> Result<Vec<(u32, String)>, LogError> {
        let raw = self.reader.read(self.log.cluster(), self.next, READ_AT_ONCE)?;
        if let Some(last) = raw.last() {
            self.next = last.record.offset + 1;
        }
        let said = raw.into_iter().filter_map(|raw| {
            let partition = std::str::from_utf8(&raw.record.key).ok()?.parse().ok()?;
            let holder: InstanceAnnouncement = serde_json::from_slice(&raw.record.value?).ok()?;
            Some((partition, holder.url))
        });
        Ok(said.collect())
    }

    /// Announces that this instance has these partitions; returns once the cluster has the records.
    pub fn announce(&self, partitions: &[u32], url: &str) -> Result<(), LogError> {
        let value = serde_json::to_vec(&InstanceAnnouncement { url: url.to_owned() }).unwrap_or_default();
        let keys: Vec<String> = partitions.iter().map(u32::to_string).collect();
        let records = keys.iter().map(|key| OutgoingRecord {
            topic: &self.name,
            partition: Some(0),
            key: Some(key.as_bytes()),
            value: Some(&value),
            headers: None,
        });
        self.log.append(records).map(drop)
    }
}

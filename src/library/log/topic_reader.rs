//! The reader of one topic that each log implements.

use super::{LogError, RawRecord};

/// The reader of one topic that each log implements; [`super::TopicView`] says what the calls mean.
pub(super) trait TopicReader: Send {
    fn name(&self) -> &str;
    fn partitions(&self) -> u32;
    fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError>;
    fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError>;
    fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError>;
}

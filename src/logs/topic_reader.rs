//! The interface to read one topic. Each log implements it, and so does a client of a log in another process.

use super::{LogError, RawRecord};

/// The reader of one topic; [`super::TopicView`] says what the calls mean.
pub trait TopicReader: Send {
    /// As [`super::TopicView::name`].
    fn name(&self) -> &str;
    /// As [`super::TopicView::partitions`].
    fn partitions(&self) -> u32;
    /// As [`super::TopicView::span`].
    ///
    /// # Errors
    /// [`LogError`].
    fn span(&mut self, partition: u32) -> Result<(u64, u64), LogError>;
    /// As [`super::TopicView::read`].
    ///
    /// # Errors
    /// [`LogError`].
    fn read(&mut self, partition: u32, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError>;
    /// As [`super::TopicView::offset_at`].
    ///
    /// # Errors
    /// [`LogError`].
    fn offset_at(&mut self, partition: u32, append_ms: i64) -> Result<u64, LogError>;
}

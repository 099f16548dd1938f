//! Which partitions are this process's.
//!
//! In: the decisions of a group, or none where one process has the whole log. Out: what changed.

use super::LogError;

/// A decision about partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// This instance owns these partitions now.
    Assigned(Vec<u32>),
    /// This instance no longer owns these partitions.
    Revoked(Vec<u32>),
}

/// Who decides which partitions are this process's.
pub trait Assignment {
    /// The decisions since the last call; never waits. The log's news are raised when there is one.
    ///
    /// # Errors
    /// [`LogError::Cluster`] that a retry cannot mend, such as missing rights.
    fn changes(&self) -> Result<Vec<Membership>, LogError>;

    /// Shows others how far a partition is, as far as they can see it.
    fn show_position(&self, partition: u32, next_offset: u64);

    /// Whether other processes may have the partitions that this one lacks.
    fn is_shared(&self) -> bool;
}

/// The assignment of a process that has the whole log: nothing ever changes.
#[derive(Debug, Clone, Copy)]
pub struct WholeLog;

impl Assignment for WholeLog {
    fn changes(&self) -> Result<Vec<Membership>, LogError> {
        Ok(Vec::new())
    }

    fn show_position(&self, _: u32, _: u64) {}

    fn is_shared(&self) -> bool {
        false
    }
}

//! Which partitions belong to this process.
//!
//! In: the decisions of a consumer group, or none if one process has the whole log. Out: the changes.

use super::LogError;

/// A decision about partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignmentChange {
    /// This instance owns these partitions now.
    Assigned(Vec<u32>),
    /// This instance no longer owns these partitions.
    Revoked(Vec<u32>),
}

/// Decides which partitions belong to this process.
pub trait PartitionAssignment {
    /// The decisions since the last call; never waits. The log's news signal is raised when there is one.
    ///
    /// # Errors
    /// [`LogError::Cluster`] that a retry cannot fix, such as missing rights.
    fn changes(&self) -> Result<Vec<AssignmentChange>, LogError>;

    /// Shows others how far a partition has been extracted, if the log has a way to show it.
    fn show_position(&self, partition: u32, next_offset: u64);

    /// Whether the partitions that this process does not have may belong to other processes.
    fn is_shared(&self) -> bool;
}

/// The assignment of a process that has the whole log: nothing ever changes.
#[derive(Debug, Clone, Copy)]
pub struct WholeLogAssignment;

impl PartitionAssignment for WholeLogAssignment {
    fn changes(&self) -> Result<Vec<AssignmentChange>, LogError> {
        Ok(Vec::new())
    }

    fn show_position(&self, _: u32, _: u64) {}

    fn is_shared(&self) -> bool {
        false
    }
}

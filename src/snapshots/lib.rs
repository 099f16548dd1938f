//! Topics as Parquet tables, and snapshots of a memory, from which it is restored as of now or as of a past point.
//!
//! In: records of a topic in offset order; memory records and the graph choices that they change.
//! Out: Parquet files that DuckDB, pandas and polars read, with an index or a manifest beside them.
//! This module reads no log: callers hand it the records.
//!
//! - `archive`: the files of a topic's table (`ripplemem replay`); its `topic_row` reads a record, `archive_table` and
//!   `columns` define the tables, `table_description` describes them for `schemas/tables`
//! - `update_tables`: the tables of a snapshot, whose rows carry +1 or -1
//! - `snapshot_writer`: writes snapshots of a shard; `claim`: which process writes them; `segment_files`: their files;
//!   `live_rows`: what is live; `rewrite`: replaces files to delete turns, to trim history, and to merge small files
//! - `manifest`: the files of a snapshot, written last; `store`: the directory or `bucket`
//! - `restore`: reads a snapshot; `restored_snapshot`: what it returns; `history`: which past points can be asked for

mod archive;
mod bucket;
mod claim;
#[cfg(test)]
mod claim_tests;
mod error;
mod history;
mod live_rows;
mod manifest;
mod restore;
mod restored_snapshot;
mod rewrite;
mod segment_files;
mod snapshot_writer;
mod store;
mod table_description;
#[cfg(test)]
mod tests;
mod update_tables;

pub use archive::{Archive, ArchiveColumn, ArchiveIndex, ArchiveTable, ArchivedFile, TopicRow};
pub use claim::ClaimRule;
pub use error::SnapshotError;
pub use history::HistoryPoint;
pub use manifest::{
    DeletedTurn, HistoryGap, LiveCounts, Manifest, ManifestId, PartitionReach, SnapshotSegment, TableFile,
    UnreadableMemoryRecord,
};
pub use restore::LogSnapshots;
pub use restored_snapshot::{AsOf, BankDiff, RestoredNames, RestoredRecord, RestoredSnapshot};
pub use snapshot_writer::{MemoryLogRead, SnapshotWriter};
pub use store::each_object;
pub use update_tables::UpdateTable;

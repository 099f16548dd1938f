//! Topics as Parquet tables, and snapshots of a memory, from which it is restored as of now or as of a past point.
//!
//! In: records of a topic in offset order; memory records and the graph choices that they change.
//! Out: Parquet files that DuckDB, pandas and polars read, with an index or a manifest beside them.
//! This module reads no log: callers hand it the records.
//!
//! - `archive`: the files of a topic's table (`ripplemem replay`); `row` reads a record, `table` and
//!   `columns` define the tables, `statement` describes them for `schemas/tables`
//! - `update`: the update tables of a snapshot, whose rows carry +1 or -1
//! - `writer`: writes snapshots of a shard; `claim`: which process writes them; `segment_files`: their files;
//!   `live_rows`: what is live; `rewrite`: replaces files to delete turns, to trim history, and to merge small files
//! - `manifest`: the files of a snapshot, written last; `store`: the directory or `bucket`
//! - `restore`: reads a snapshot; `restored`: what it returns; `history`: which past points can be asked for

mod archive;
mod bucket;
mod claim;
#[cfg(test)]
mod claim_tests;
mod columns;
mod error;
mod history;
mod live_rows;
mod manifest;
mod restore;
mod restored;
mod rewrite;
mod row;
mod segment_files;
mod statement;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod writer;

pub use archive::{Archive, ArchiveIndex, ArchivedFile};
pub use claim::ClaimRule;
pub use columns::Column;
pub use error::SnapshotError;
pub use history::HistoryPoint;
pub use manifest::{DeletedTurn, Gap, LiveCounts, Manifest, ManifestId, Reached, Segment, TableFile, UnreadableRecord};
pub use restore::Snapshots;
pub use restored::{AsOf, BankDiff, Restored, RestoredRecord};
pub use row::TopicRow;
pub use store::each_object;
pub use table::Table;
pub use update::UpdateTable;
pub use writer::{LogRead, SnapshotWriter};

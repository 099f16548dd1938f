//! The archive of a table: Parquet files by day, and on request by bank, with an index.
//!
//! In: rows of each partition in offset order. Out:
//! `date=YYYY-MM-DD[/BANK]/PARTITION-OFFSET.parquet`, and the index beside the directory. A bank's directory is not
//! named `bank=BANK`, because readers would take `007` for a number. The rows have the bank. A file that is not in the
//! index is unfinished: the next run removes it and writes its rows again. So no row is lost or duplicated, wherever a
//! run was killed.
//!
//! - `writer`: [`Archive`], which writes the files; `hashed_file`: hashes them while they are written
//! - `index`: [`ArchiveIndex`], the complete files

mod archive_table;
mod columns;
mod hashed_file;
mod index;
#[cfg(test)]
mod tests;
mod topic_row;
mod writer;

pub use archive_table::ArchiveTable;
pub use columns::ArchiveColumn;
pub use index::{ArchiveIndex, ArchivedFile};
pub use topic_row::TopicRow;
pub use writer::Archive;

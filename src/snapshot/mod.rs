//! What a log holds, as Parquet tables in a directory.
//!
//! In: records of a topic, in offset order. Out: files that DuckDB, pandas and polars read as
//! they are, and a small file beside them that says what they hold, so that the next run
//! goes on where this one ended. Reads no log: whoever calls brings the records.

use std::path::{Path, PathBuf};

mod archive;
mod row;
mod table;

pub use archive::{Archive, Held};
pub use row::Row;
pub use table::{Column, Table};

/// Why tables could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk, or the file system's rights, refused.
    #[error("{path}: {doing} failed: {source}; {remedy}")]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file could not be written as Parquet.
    #[error("{path}: writing Parquet failed: {problem}; make room on the disk and start again, nothing is lost")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the library said.
        problem: String,
    },
    /// Another process writes into the directory.
    #[error("{directory}: another process writes into it; stop that process, or name another directory")]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// What the directory holds is not what was asked for.
    #[error("{directory}: {problem}; name another directory")]
    Differs {
        /// The directory.
        directory: PathBuf,
        /// What it holds, and what was asked for.
        problem: String,
    },
    /// The file that says what the directory holds is not what was written.
    #[error("{path}: {problem}; restore it from a copy, or name another directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl SnapshotError {
    fn disk(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        let remedy = match source.kind() {
            std::io::ErrorKind::StorageFull => "make room on the disk and start again, nothing is lost",
            std::io::ErrorKind::PermissionDenied => "give this user the right to write there",
            _ => "look at the path and the disk, and start again: nothing is lost",
        };
        Self::Disk { path: path.to_owned(), doing, source, remedy }
    }
}

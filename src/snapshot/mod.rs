//! What a log holds, as Parquet tables, and what a memory holds, as snapshots.
//!
//! In: records of a topic, in offset order; memory records and choices as they come and go.
//! Out: files that DuckDB, pandas and polars read as they are, with a list beside them: of
//! topics an archive (`archive`), of the memory update tables (`update`) that are written as
//! it changes (`writer`) and read back as it was (`restore`). Reads no log: whoever calls
//! brings the records.

use std::path::{Path, PathBuf};

mod archive;
mod manifest;
mod restore;
mod rewrite;
mod row;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod writer;

pub use archive::{Archive, Held};
pub use manifest::{Forgotten, Gap, Live, Manifest, Reached, Segment, TableFile};
pub use restore::{AsOf, Diff, Restored, RestoredRecord, Snapshots};
pub use row::Row;
pub use table::{Column, Table};
pub use update::UpdateTable;
pub use writer::{Update, Writer};

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
    /// The place of snapshots refused, or could not be reached.
    #[error(
        "{place}: {doing} failed: {problem}; look at the place, its room and its rights, nothing is lost: the log holds all"
    )]
    Place {
        /// The place, and the object in it.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What the store said.
        problem: String,
    },
    /// A snapshot, or a part of it, cannot be used.
    #[error("{place}: {problem}")]
    Unfit {
        /// Which object.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The snapshots there are of another log.
    #[error("{place}: it holds snapshots of {found}, not of {ours}; name another snapshot.directory")]
    Other {
        /// The place.
        place: String,
        /// Whose snapshots it holds.
        found: String,
        /// Our log.
        ours: String,
    },
    /// The log does not hold what a snapshot was made from.
    #[error(
        "{place}: {problem}: the snapshot is of another log, or the log was put back from an older copy; name another \
         snapshot.directory, or remove this one"
    )]
    Ahead {
        /// The place.
        place: String,
        /// What does not fit.
        problem: String,
    },
    /// What was removed since may not be in the log any more.
    #[error(
        "{place}: the newest snapshot is {days} days old, and what is removed can be read from the log for a week: what \
         was forgotten since might come back; move the snapshots away, and start again"
    )]
    Old {
        /// The place.
        place: String,
        /// Its age.
        days: u64,
    },
    /// No place was named.
    #[error(
        "the past is known from snapshots only, and none are written; name a snapshot.directory in the pipeline file"
    )]
    None,
    /// Writing snapshots was given up before.
    #[error("no snapshots are written any more: an earlier attempt failed for good; start again")]
    Stopped,
    /// A point of the past that is no longer known.
    #[error("as of {at}: that is not known any more; the oldest that can be asked for is {oldest}")]
    Before {
        /// What was asked for.
        at: String,
        /// What can be.
        oldest: String,
    },
    /// Another build wrote it.
    #[error("{place}: version {found}, this build reads {known}; use the build that wrote it, or name another place")]
    Version {
        /// The manifest.
        place: String,
        /// Its version.
        found: u64,
        /// The version of this build.
        known: u64,
    },
    /// Someone else writes snapshots there.
    #[error(
        "{place}: another process writes snapshots there; stop it and start again, or name another snapshot.directory"
    )]
    Taken {
        /// The place.
        place: String,
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

//! Why tables or snapshots could not be written or read.
//!
//! Each message names the place, what was attempted, and what to do.

use std::path::{Path, PathBuf};

/// Why tables or snapshots could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file operation failed, for example because the disk is full or rights are missing.
    #[error("{path}: {doing} failed: {source}; {remedy}")]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The operating system's error.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A file could not be written as Parquet.
    #[error("{path}: writing Parquet failed: {problem}; make room on the disk and start again: nothing is lost")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The library's error.
        problem: String,
    },
    /// Another process writes into the directory.
    #[error("{directory}: another process writes into it; stop that process, or name another directory")]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory holds something other than what was requested.
    #[error("{directory}: {problem}; name another directory")]
    Differs {
        /// The directory.
        directory: PathBuf,
        /// What it holds, and what was requested.
        problem: String,
    },
    /// A request to the place of the snapshots failed.
    #[error(
        "{place}: {doing} failed: {problem}; check that the place is reachable and has free space, and check its \
         access rights: nothing is lost, because the log holds everything"
    )]
    Place {
        /// The place, and the object.
        place: String,
        /// The operation.
        doing: &'static str,
        /// The store's error.
        problem: String,
    },
    /// A snapshot, or one of its files, is unusable.
    #[error("{place}: {problem}")]
    Unfit {
        /// The object.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The place holds snapshots of another log.
    #[error("{place}: it holds snapshots of {found}, not of {ours}; name another snapshot.directory")]
    Other {
        /// The place.
        place: String,
        /// The log of those snapshots.
        found: String,
        /// The log of this pipeline.
        ours: String,
    },
    /// The log lacks records that the snapshot was made from.
    #[error(
        "{place}: {problem}: the snapshot is of another log, or the log was restored from an older copy; name another \
         snapshot.directory, or delete this one"
    )]
    Ahead {
        /// The place.
        place: String,
        /// What does not match.
        problem: String,
    },
    /// The snapshot is so old that the log may no longer hold the deletions since.
    #[error(
        "{place}: the newest snapshot is {days} days old, but the log keeps deletions for only a week, so turns \
         deleted since might come back; move the snapshots away and start again"
    )]
    Old {
        /// The place.
        place: String,
        /// Its age in days.
        days: u64,
    },
    /// As-of questions need snapshots, and no place for them is configured.
    #[error("as-of questions need snapshots, and none are configured; set snapshot.directory in the pipeline file")]
    None,
    /// Writing snapshots has failed permanently.
    #[error("snapshots have stopped, because an earlier attempt failed permanently; restart")]
    Stopped,
    /// An as-of question about a point for which no history is kept.
    #[error("as of {at}: no history is kept for that point; the oldest that can be asked for is {oldest}")]
    Before {
        /// The requested point.
        at: String,
        /// The oldest point with an answer.
        oldest: String,
    },
    /// Another build wrote the snapshot.
    #[error(
        "{place}: a snapshot of version {found}, but this build reads {known}; use the build that wrote it, or move \
         the snapshots away or name another snapshot.directory: the memory is then loaded from its log"
    )]
    Version {
        /// The manifest.
        place: String,
        /// Its version.
        found: u64,
        /// The version of this build.
        known: u64,
    },
    /// Another process claimed a shard's snapshots.
    #[error("{place}: another process writes these snapshots now; this one stops writing them and keeps answering")]
    Taken {
        /// The place, and the shard's directory.
        place: String,
    },
    /// Another process writes a shard's snapshots.
    #[error("{place}: another process writes these snapshots; ask that one, or ask again after its next snapshot")]
    Elsewhere {
        /// The place, and the shard's directory.
        place: String,
    },
    /// The index of an archive is damaged.
    #[error("{path}: {problem}; restore it from a copy, or name another directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl SnapshotError {
    pub(super) fn disk(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        let remedy = match source.kind() {
            std::io::ErrorKind::StorageFull => "make room on the disk and start again: nothing is lost",
            std::io::ErrorKind::PermissionDenied => "give this user the right to write there",
            _ => "check the path and the disk, and start again: nothing is lost",
        };
        Self::Disk { path: path.to_owned(), doing, source, remedy }
    }
}

//! The index of an archive: its complete files, and where each partition continues.
//!
//! In: a directory. Out: its index, or why it cannot be read. The index of `turns` is `_turns.json` beside it. The lock
//! and the files that are being written are beside it, too, so that a directory that a reader scans holds only Parquet
//! files. The index is written under another name and renamed, so it is never half written. The lock keeps a second
//! writer out.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{ArchiveTable, SnapshotError};
use storage::file_lock::{FileLock, FileLockError};

/// The suffixes of the files beside an archive's directory.
const INDEX: &str = "json";
const LOCK: &str = "lock";
const PARTIAL: &str = "partial";
/// Version of the index.
const VERSION: u32 = 1;

/// The complete files of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveIndex {
    /// Version of this index: 1.
    pub version: u32,
    /// The table.
    pub table: String,
    /// The full name of the topic.
    pub topic: String,
    /// Whether each bank has a directory.
    pub by_bank: bool,
    /// Where the first run began, as the user wrote it.
    pub from: String,
    /// The next offset by partition. Rows after it that are in complete files are not written again.
    pub next: BTreeMap<u32, u64>,
    /// The files, in the order in which they were completed.
    pub files: Vec<ArchivedFile>,
}

/// A complete file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Its path in the directory.
    pub path: String,
    /// The partition of its rows.
    pub partition: u32,
    /// The offset of its first row.
    pub first: u64,
    /// The offset of its last row.
    pub last: u64,
    /// Its number of rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 of its bytes.
    pub blake3: String,
}

impl ArchiveIndex {
    /// The index of an empty archive.
    pub(super) fn new(table: ArchiveTable, topic: &str, by_bank: bool, from: Option<&str>) -> Self {
        Self {
            version: VERSION,
            table: table.name().to_owned(),
            topic: topic.to_owned(),
            by_bank,
            from: from.unwrap_or("earliest").to_owned(),
            next: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    /// The index of a directory; `None` for a new directory.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>, SnapshotError> {
        let path = index_of(directory);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(SnapshotError::disk(&path, "reading the index", e)),
        };
        let damaged = |problem| SnapshotError::Damaged { path: path.clone(), problem };
        let index: Self = serde_json::from_slice(&text).map_err(|e| damaged(format!("not a list of files: {e}")))?;
        if index.version != VERSION {
            return Err(damaged(format!("version {} is not {VERSION}, which this build reads", index.version)));
        }
        Ok(Some(index))
    }

    /// Replaces the index of a directory; the caller syncs the parent directory.
    pub(super) fn write(&self, directory: &Path) -> Result<(), SnapshotError> {
        let path = index_of(directory);
        let partial = path.with_extension(format!("{INDEX}.{PARTIAL}"));
        let json = serde_json::to_vec_pretty(self).unwrap_or_default();
        File::create(&partial)
            .and_then(|mut file| file.write_all(&json).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(|e| SnapshotError::disk(&path, "writing the index", e))
    }
}

/// The index of a directory.
pub(super) fn index_of(directory: &Path) -> PathBuf {
    beside(directory, INDEX)
}

/// Where the files of a directory are until they are complete.
pub(super) fn unfinished_of(directory: &Path) -> PathBuf {
    beside(directory, PARTIAL)
}

/// `tables/turns` to `tables/_turns.ENDING`.
fn beside(directory: &Path, ending: &str) -> PathBuf {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    directory.with_file_name(format!("_{name}.{ending}"))
}

/// Locks a directory for one writer.
pub(super) fn lock(directory: &Path) -> Result<FileLock, SnapshotError> {
    let path = beside(directory, LOCK);
    FileLock::take(&path).map_err(|refused| match refused {
        FileLockError::InUse(_) => SnapshotError::InUse { directory: directory.to_owned() },
        FileLockError::Failed(e) => SnapshotError::disk(&path, "locking the directory", e),
    })
}

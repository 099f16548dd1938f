//! Opens a copy of the database in a temporary folder.
//!
//! In: the path of a database. Out: a connection to a copy of it, including what Messages has written to the log next
//! to it (`-wal`). The folder disappears with this value. Here, SQLite never opens the user's file.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::columns::damaged;
use crate::{SourceError, error::unreadable};

/// How often a database is copied at most if it changes while it is copied.
const ATTEMPTS: usize = 3;

/// An open copy. The connection is closed before its folder is removed.
pub(super) struct ImessageDatabaseCopy {
    pub(super) connection: Connection,
    _folder: TempDir,
}

impl ImessageDatabaseCopy {
    /// Copies a database and opens the copy.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be copied, when it changes during every copy, or when SQLite cannot open it.
    pub(super) fn of(path: &Path) -> Result<Self, SourceError> {
        let failed = |error| unreadable(path, 0, error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let copy = folder.path().join("chat.db");
        let mut is_whole = false;
        for _ in 0..ATTEMPTS {
            is_whole = copy_whole(path, &copy).map_err(failed)?;
            if is_whole {
                break;
            }
        }
        if !is_whole {
            return Err(SourceError::Format {
                path: path.to_owned(),
                line: 1,
                column: 1,
                problem: "the database changes while it is copied".to_owned(),
                remedy: "quit Messages and try again",
            });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&copy, flags).map_err(|e| damaged(path, &e))?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")
            .map_err(|e| damaged(path, &e))?;
        Ok(Self { connection, _folder: folder })
    }
}

/// Copies a database and its log; returns false if one of them changed during that time. SQLite rebuilds the index of
/// the log (`-shm`), so it is not copied.
fn copy_whole(path: &Path, copy: &Path) -> io::Result<bool> {
    let (log, log_copy) = (log_of(path), log_of(copy));
    let before = (state(path)?, state(&log)?);
    fs::copy(path, copy)?;
    if before.1.is_some() {
        fs::copy(&log, &log_copy)?;
    } else if log_copy.exists() {
        fs::remove_file(&log_copy)?;
    }
    Ok(before == (state(path)?, state(&log)?))
}

/// The path of a database's log.
fn log_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-wal");
    name.into()
}

/// The size of a file and when it was written; `None` if it does not exist.
fn state(path: &Path) -> io::Result<Option<(u64, SystemTime)>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some((found.len(), found.modified()?))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

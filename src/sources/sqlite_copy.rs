//! Opens a copy of a database of SQLite in a temporary folder.
//!
//! In: the path of a database. Out: a connection to a copy of it, including what its program has written to the log
//! next to it (`-wal`). The folder disappears with this value. Here, SQLite never opens the user's file.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::error::{SourceError, unreadable};

/// How often a database is copied at most if it changes while it is copied.
const ATTEMPTS: usize = 3;

/// An open copy. The connection is closed before its folder is removed.
pub(super) struct SqliteCopy {
    pub(super) connection: Connection,
    _folder: TempDir,
}

impl SqliteCopy {
    /// Copies a database and opens the copy. `remedy` says what to do if it is damaged.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be copied, when it changes during every copy, or when SQLite cannot open it.
    pub(super) fn of(path: &Path, remedy: &'static str) -> Result<Self, SourceError> {
        let failed = |error| unreadable(path, 0, error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let copy = folder.path().join("copy.db");
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
                remedy: "quit the program that writes it and try again",
            });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&copy, flags).map_err(|e| damaged(path, &e, remedy))?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")
            .map_err(|e| damaged(path, &e, remedy))?;
        Ok(Self { connection, _folder: folder })
    }
}

/// Whether a database has all these tables. It is opened as immutable, so SQLite creates no files next to it and takes
/// no locks.
#[cfg(feature = "opencode")]
pub(super) fn has_tables(path: &Path, tables: &[&str]) -> bool {
    let Some(mut url) = std::path::absolute(path).ok().and_then(|path| url::Url::from_file_path(path).ok()) else {
        return false;
    };
    url.set_query(Some("mode=ro&immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = Connection::open_with_flags(url.as_str(), flags) else { return false };
    let has = |table: &&str| {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        connection.query_row(sql, [table], |_| Ok(())).is_ok()
    };
    tables.iter().all(has)
}

/// The error for a database that SQLite cannot read.
pub(super) fn damaged(path: &Path, error: &rusqlite::Error, remedy: &'static str) -> SourceError {
    SourceError::Format {
        path: path.to_owned(),
        line: 1,
        column: 1,
        problem: format!("SQLite cannot read this database: {error}"),
        remedy,
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

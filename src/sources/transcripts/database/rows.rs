//! Opens a copy of an agent's database, and reads columns leniently.
//!
//! In: a file. Out: a connection to a copy, and columns as texts whatever they hold. A database in an archive is an
//! error that says what to do.

use std::path::PathBuf;

use rusqlite::{Connection, Row, types::ValueRef};

use super::super::transcript_file::TranscriptFile;
use crate::{
    SourceError,
    sqlite_copy::{SqliteCopy, damaged},
};

pub(in super::super) use crate::sqlite_copy::has_tables;

const REMEDY: &str = "copy the database again, together with the file beside it that ends in -wal";

/// Reads a file's database with `read`.
///
/// # Errors
/// [`SourceError`] when it is in an archive, cannot be copied, or is damaged.
pub(super) fn with_copy(
    file: &TranscriptFile<'_>,
    read: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), SourceError> {
    let path = file.path().ok_or_else(|| SourceError::Format {
        path: PathBuf::from(file.origin()),
        line: 1,
        column: 1,
        problem: "a database in an archive is not opened".to_owned(),
        remedy: "unpack the archive and name the folder",
    })?;
    let copy = SqliteCopy::of(&path, REMEDY)?;
    read(&copy.connection).map_err(|error| damaged(&path, &error, REMEDY))
}

/// A column as a text, whatever it holds; empty if it is null.
///
/// # Errors
/// SQLite's, if there is no such column.
pub(super) fn lenient(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}

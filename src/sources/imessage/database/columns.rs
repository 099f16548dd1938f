//! Finds which tables and columns a version of Messages' database has.
//!
//! In: a connection, or a path. Out: which of the columns added by later versions exist, and whether a database is
//! Messages' at all.

use std::{collections::BTreeSet, path::Path};

use rusqlite::{Connection, OpenFlags};
use url::Url;

use crate::SourceError;

/// The columns of `message` without which nothing can be read.
const NEEDED: &[&str] = &["guid", "text", "handle_id", "date", "is_from_me"];

/// What to do about a damaged database.
pub(super) const REMEDY: &str =
    "copy chat.db again, together with chat.db-wal, or repair it with `sqlite3 chat.db .recover`";

/// The columns of the tables that are read, in lower case.
pub(super) struct ImessageColumns {
    message: BTreeSet<String>,
    handle: BTreeSet<String>,
    chat: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl ImessageColumns {
    /// Reads which tables and columns a database has.
    ///
    /// # Errors
    /// SQLite's, when the list of tables cannot be read.
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            message: column(connection, "SELECT name FROM pragma_table_info('message')")?,
            handle: column(connection, "SELECT name FROM pragma_table_info('handle')")?,
            chat: column(connection, "SELECT name FROM pragma_table_info('chat')")?,
            others: column(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")?,
        })
    }

    /// Something that this database lacks and Messages' database has; `None` if nothing is missing.
    pub(super) fn lacking(&self) -> Option<String> {
        if self.message.is_empty() {
            return Some("a table `message`".to_owned());
        }
        if !self.handle.contains("id") {
            return Some("a table `handle` with a column `id`".to_owned());
        }
        let column = NEEDED.iter().find(|name| !self.message.contains(**name))?;
        Some(format!("a column `{column}` of the table `message`"))
    }

    /// Whether a table exists.
    pub(super) fn has(&self, table: &str) -> bool {
        self.others.contains(table)
    }

    /// A column of `message` in SQL; `NULL` if this version lacks it.
    pub(super) fn of_message(&self, name: &str) -> String {
        if self.message.contains(&name.to_lowercase()) { format!("m.{name}") } else { "NULL".to_owned() }
    }

    /// As [`ImessageColumns::of_message`], for `chat`.
    pub(super) fn of_chat(&self, name: &str) -> &'static str {
        match name {
            "chat_identifier" if self.chat.contains(name) => "chat_identifier",
            "display_name" if self.chat.contains(name) => "display_name",
            _ => "NULL",
        }
    }
}

/// Whether a SQLite database is Messages'. It is opened as immutable, so SQLite creates no files next to it and takes
/// no locks.
pub(in crate::imessage) fn is_messages(path: &Path) -> bool {
    let Some(mut url) = std::path::absolute(path).ok().and_then(|path| Url::from_file_path(path).ok()) else {
        return false;
    };
    url.set_query(Some("mode=ro&immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let tables =
        Connection::open_with_flags(url.as_str(), flags).and_then(|connection| ImessageColumns::of(&connection));
    tables.is_ok_and(|tables| tables.lacking().is_none())
}

/// The error for a database that SQLite cannot read.
pub(super) fn damaged(path: &Path, error: &rusqlite::Error) -> SourceError {
    crate::sqlite_copy::damaged(path, error, REMEDY)
}

fn column(connection: &Connection, sql: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    names.map(|name| name.map(|name| name.to_lowercase())).collect()
}

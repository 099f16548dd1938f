//! The programs that keep their sessions in a database: opencode, Goose, Cursor and Zed.
//!
//! In: such a database, or the folder with it. Out: what its reader in `database` finds; a build without the feature
//! `opencode` refuses it in `without_database`.

#[cfg(feature = "opencode")]
use super::database::{has_tables, read_cursor, read_goose, read_opencode, read_zed};
#[cfg(not(feature = "opencode"))]
use super::without_database::{has_tables, read_cursor, read_goose, read_opencode, read_zed};
use super::{file_names::file_name, program::TranscriptProgram, transcript_reader::open};
use crate::{
    chat::FileSample,
    format::{FormatOpener, SourceFormat},
};

/// The tables by which a database is recognised.
const OPENCODE_TABLES: [&str; 4] = ["session", "message", "part", "project"];
const GOOSE_TABLES: [&str; 3] = ["sessions", "messages", "schema_version"];
const CURSOR_TABLES: [&str; 1] = ["cursorDiskKV"];
const ZED_TABLES: [&str; 1] = ["threads"];
const ZED_NAME: &str = "threads.db";

/// opencode.
pub(in crate::transcripts) const OPENCODE_PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "opencode",
    speaker: "opencode",
    has_local_times: false,
    is_database: true,
    is_rewritten: false,
    has_name: |name| file_name(name).starts_with("opencode") && name.ends_with(".db"),
    has_head: is_sqlite,
    read: read_opencode,
};

/// Goose, as its source describes its database; it was not tried.
pub(in crate::transcripts) const GOOSE_PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "goose",
    speaker: "Goose",
    has_local_times: false,
    is_database: true,
    is_rewritten: false,
    has_name: |name| file_name(name) == "sessions.db",
    has_head: is_sqlite,
    read: read_goose,
};

/// Cursor, as others describe its database; it was not tried.
pub(in crate::transcripts) const CURSOR_PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "cursor",
    speaker: "Cursor",
    has_local_times: false,
    is_database: true,
    is_rewritten: false,
    has_name: |name| file_name(name) == "state.vscdb",
    has_head: is_sqlite,
    read: read_cursor,
};

/// Zed, as others describe its database; it was not tried.
pub(in crate::transcripts) const ZED_PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "zed",
    speaker: "Zed",
    has_local_times: false,
    is_database: true,
    is_rewritten: true,
    has_name: |name| file_name(name) == ZED_NAME,
    has_head: is_sqlite,
    read: read_zed,
};

/// The format of opencode.
pub(crate) const OPENCODE: SourceFormat = SourceFormat {
    name: "opencode",
    about: "opencode: a file opencode.db, or the folder opencode in ~/.local/share",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| is_database_in(sample, &OPENCODE_PROGRAM, &OPENCODE_TABLES),
    open: FormatOpener::Chat(|settings| open(&OPENCODE_PROGRAM, settings)),
};

/// The format of Goose.
pub(crate) const GOOSE: SourceFormat = SourceFormat {
    name: "goose",
    about: "Goose: a file sessions.db, or the folder sessions with it (untried)",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| is_database_in(sample, &GOOSE_PROGRAM, &GOOSE_TABLES),
    open: FormatOpener::Chat(|settings| open(&GOOSE_PROGRAM, settings)),
};

/// The format of Cursor.
pub(crate) const CURSOR: SourceFormat = SourceFormat {
    name: "cursor",
    about: "Cursor: a file state.vscdb, or the folder globalStorage with it (untried)",
    standard_input: false,
    only: None,
    looks_like: |sample| is_database_in(sample, &CURSOR_PROGRAM, &CURSOR_TABLES),
    open: FormatOpener::Chat(|settings| open(&CURSOR_PROGRAM, settings)),
};

/// The format of Zed.
pub(crate) const ZED: SourceFormat = SourceFormat {
    name: "zed",
    about: "Zed: a file threads.db, or the folder threads with it (untried)",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| {
        (!sample.is_file() || sample.name() == ZED_NAME) && is_database_in(sample, &ZED_PROGRAM, &ZED_TABLES)
    },
    open: FormatOpener::Chat(|settings| open(&ZED_PROGRAM, settings)),
};

fn is_sqlite(head: &str) -> bool {
    head.starts_with("SQLite format 3")
}

/// Whether a file is a database with these tables, or a folder holds one.
fn is_database_in(sample: &FileSample, program: &TranscriptProgram, tables: &[&str]) -> bool {
    if sample.is_file() {
        return is_sqlite(sample.head()) && has_tables(sample.path(), tables);
    }
    let mut files = sample.entries().filter(|entry| (program.has_name)(entry));
    files.any(|entry| has_tables(&sample.path().join(entry), tables))
}

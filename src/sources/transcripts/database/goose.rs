//! Goose's database, as its source describes it; it was not tried.
//!
//! In: `sessions.db`, with a row for each message. Out: what was typed and answered, by `message_id`. Messages that are
//! not shown to the person (`userVisible` is false) are no talk.

use rusqlite::Connection;
use serde_json::Value;

use super::{
    super::{
        content_blocks::words,
        findings::{Findings, kind},
        transcript_file::{TranscriptFile, unix_time},
    },
    rows::{lenient, with_copy},
};
use crate::{
    SourceError,
    chat::{RecordForm, TEXT, TranscriptMessage, TranscriptRole},
};

const MESSAGES: &str = "SELECT m.message_id, m.session_id, m.role, m.content_json, m.created_timestamp, \
                        m.metadata_json, s.working_dir FROM messages m LEFT JOIN sessions s ON s.id = m.session_id \
                        ORDER BY m.session_id, m.created_timestamp, m.rowid";

/// The fields of a message's content.
const FORM: RecordForm = RecordForm {
    needed: &[("[]/type", TEXT), ("[]/text", TEXT)],
    other: &[],
    known: &[
        "[]/annotations",
        "[]/data",
        "[]/mimeType",
        "[]/thinking",
        "[]/signature",
        "[]/toolCall",
        "[]/toolResult",
        "[]/metadata",
        "[]/msg",
        "[]/notificationType",
    ],
    remedy: "write it as Goose does",
};

/// A row.
struct GooseMessage {
    id: String,
    thread: String,
    role: String,
    content: String,
    seconds: String,
    metadata: String,
    directory: String,
}

/// Reads a database.
///
/// # Errors
/// [`SourceError`] when it is in an archive, cannot be copied, or is damaged.
pub(in super::super) fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    with_copy(file, |database| read_all(file, found, database))
}

fn read_all(file: &TranscriptFile<'_>, found: &mut Findings, database: &Connection) -> rusqlite::Result<()> {
    let mut messages = database.prepare(MESSAGES)?;
    let rows = messages.query_map([], |row| {
        Ok(GooseMessage {
            id: lenient(row, 0)?,
            thread: lenient(row, 1)?,
            role: lenient(row, 2)?,
            content: lenient(row, 3)?,
            seconds: lenient(row, 4)?,
            metadata: lenient(row, 5)?,
            directory: lenient(row, 6)?,
        })
    })?;
    for row in rows {
        let row = row?;
        if let Err(reason) = said(file, found, &row) {
            let origin = format!("{}:{}:0", file.origin(), row.id);
            found.reject_in(&row.directory, origin, &Value::String(row.content), reason);
        }
    }
    Ok(())
}

fn said(file: &TranscriptFile<'_>, found: &mut Findings, row: &GooseMessage) -> Result<(), String> {
    let role = match row.role.as_str() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "" => return Err("role: missing; copy the database again".to_owned()),
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let metadata: Value = serde_json::from_str(&row.metadata).unwrap_or_default();
    if metadata.get("userVisible").and_then(Value::as_bool) == Some(false) {
        found.not_talk(kind::NOTE);
        return Ok(());
    }
    let content: Value =
        serde_json::from_str(&row.content).map_err(|e| format!("content_json: {e}; copy the database again"))?;
    let (content, odd) = FORM.read::<Value>(content)?;
    let before = found.skipped.len();
    let words = words(&content, role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let time = unix_time(Some(&Value::String(row.seconds.clone())), "created_timestamp")?;
    let directory = Some(row.directory.clone()).filter(|directory| !directory.is_empty());
    let message = TranscriptMessage {
        id: Some(row.id.clone()).filter(|id| !id.is_empty()),
        project: directory.clone(),
        directory,
        ..file.message(&row.thread, role, time, words)
    };
    found.said(0, message, &odd)
}

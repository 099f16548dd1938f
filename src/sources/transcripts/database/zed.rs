//! Zed's database of threads, as others describe it; it was not tried.
//!
//! In: `threads.db`, with a row for each thread, whose messages are JSON or JSON packed with zstd. Out: what was typed
//! and answered. Messages have no ids and no times: one is known by its thread, its number and its words, and has the
//! time at which its thread was created, a millisecond later than the message before it. A database of a version that
//! does not keep that time has none that stays, so its threads are dead letters.

use std::io::Read as _;

use rusqlite::{Connection, types::ValueRef};
use serde_json::Value;

use super::{
    super::{
        content_blocks::add,
        findings::{Findings, kind},
        transcript_file::{TranscriptFile, filled, later, text},
    },
    rows::{lenient, with_copy},
};
use crate::{
    SourceError,
    chat::{SkipReason, TranscriptMessage, TranscriptRole},
};
use types::model::EventTime;

const COLUMNS: &str = "SELECT name FROM pragma_table_info('threads')";
/// The largest thread that is unpacked.
const MAX_THREAD_BYTES: u64 = 256 << 20;

struct ZedThread {
    id: String,
    is_packed: bool,
    data: Vec<u8>,
    is_subagent: bool,
    directory: Option<String>,
    created: String,
}

/// Reads a database.
///
/// # Errors
/// [`SourceError`] when it is in an archive, cannot be copied, or is damaged.
pub(in super::super) fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    with_copy(file, |database| read_all(file, found, database))
}

fn read_all(file: &TranscriptFile<'_>, found: &mut Findings, database: &Connection) -> rusqlite::Result<()> {
    let columns: Vec<String> =
        database.prepare(COLUMNS)?.query_map([], |row| lenient(row, 0))?.collect::<rusqlite::Result<_>>()?;
    let column = |name: &'static str| if columns.iter().any(|known| known == name) { name } else { "''" };
    let [parent, folders, created] = ["parent_id", "folder_paths", "created_at"].map(column);
    let sql = format!("SELECT id, data_type, data, {parent}, {folders}, {created} FROM threads ORDER BY id");
    let mut threads = database.prepare(&sql)?;
    let rows = threads.query_map([], |row| {
        let data = match row.get_ref(2)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        Ok(ZedThread {
            id: lenient(row, 0)?,
            is_packed: lenient(row, 1)?.eq_ignore_ascii_case("zstd"),
            data,
            is_subagent: !lenient(row, 3)?.is_empty(),
            directory: lenient(row, 4)?.lines().next().map(str::to_owned).filter(|path| !path.is_empty()),
            created: lenient(row, 5)?,
        })
    })?;
    for row in rows {
        let thread = row?;
        if let Err(reason) = read_thread(file, found, &thread) {
            let origin = format!("{}:{}:0", file.origin(), thread.id);
            let directory = thread.directory.unwrap_or_default();
            found.reject_in(&directory, origin, &Value::String(thread.id), reason);
        }
    }
    Ok(())
}

fn read_thread(file: &TranscriptFile<'_>, found: &mut Findings, thread: &ZedThread) -> Result<(), String> {
    if thread.is_subagent {
        found.not_talk(kind::SUBAGENT);
        return Ok(());
    }
    let created = thread.created.trim().replace(' ', "T");
    let zoned = if created.ends_with('Z') || created.contains('+') { created } else { format!("{created}Z") };
    let created = EventTime::read(&zoned)
        .map_err(|_| "created_at: missing or not a time; this version of Zed keeps none that stays".to_owned())?;
    let mut data = Vec::new();
    let unpacked = if thread.is_packed {
        zstd::stream::read::Decoder::new(thread.data.as_slice())
            .and_then(|packed| packed.take(MAX_THREAD_BYTES).read_to_end(&mut data))
            .map(|_| data.as_slice())
    } else {
        Ok(thread.data.as_slice())
    };
    let whole = unpacked.map_err(|e| format!("data: {e}; copy the database again"))?;
    let whole: Value = serde_json::from_slice(whole).map_err(|e| format!("data: {e}; copy the database again"))?;
    let Some(messages) = whole.get("messages").and_then(Value::as_array) else {
        return Err("data.messages: missing or no list; copy the database again".to_owned());
    };
    let model = whole.get("model").and_then(|model| filled(model, "model"));
    for (at, message) in messages.iter().enumerate() {
        let (role, inner) = match (message.get("User"), message.get("Agent")) {
            (Some(user), _) => (TranscriptRole::Person, user),
            (None, Some(agent)) => (TranscriptRole::Assistant, agent),
            (None, None) => {
                found.not_talk(kind::RECORD);
                continue;
            }
        };
        let before = found.skipped.len();
        let words = words(inner.get("content").unwrap_or(&Value::Null), role, found);
        if words.is_empty() {
            if found.skipped.len() == before {
                found.skipped.push(SkipReason::Empty);
            }
            continue;
        }
        let message = TranscriptMessage {
            place: format!("{}/{at}", thread.id),
            project: thread.directory.clone(),
            directory: thread.directory.clone(),
            model: model.clone().filter(|_| role == TranscriptRole::Assistant),
            ..file.message(&thread.id, role, later(created, at), words)
        };
        found.add(0, message);
    }
    Ok(())
}

/// The words of a content: a text, or a list of parts, each an object with its kind as its only field.
fn words(content: &Value, role: TranscriptRole, found: &mut Findings) -> String {
    let mut words = String::new();
    if let Value::String(text) = content {
        add(&mut words, text, role, found);
    }
    for part in content.as_array().into_iter().flatten() {
        let Some((name, inner)) = part.as_object().and_then(|fields| fields.iter().next()) else { continue };
        match name.as_str() {
            "Text" => {
                let said = inner.as_str().or_else(|| text(inner, "text"));
                add(&mut words, said.unwrap_or_default(), role, found);
            }
            "Thinking" | "RedactedThinking" => found.not_talk(kind::THINKING),
            "ToolUse" => found.call(inner),
            "Image" => found.not_talk(kind::IMAGE),
            "Mention" => found.not_talk(kind::ENVIRONMENT),
            name => found.unsupported(name),
        }
    }
    words
}

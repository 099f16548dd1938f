//! The rows of opencode's database.
//!
//! In: a copy of `opencode.db`: sessions, their messages, and the parts of these. Out: what was typed and answered,
//! session by session in the order in which they were created. A fork copies messages under new ids, so a message is
//! known by its time, role and words. `revert` gives up a message and all after it; a session with a parent is a
//! subagent's. `opencode run` puts a prompt in quotation marks, which are taken off.

use rusqlite::{Connection, Row};
use serde_json::Value;

use super::{
    super::{
        content_blocks::add,
        findings::{Findings, kind},
        transcript_file::{TranscriptFile, filled, text, unix_time},
    },
    rows::{lenient, with_copy},
};
use crate::{
    SourceError,
    chat::{RecordForm, SkipReason, TEXT, TRUTH, TranscriptMessage, TranscriptRole},
};

const SESSIONS: &str = "SELECT id, parent_id, directory, revert FROM session ORDER BY time_created, id";
const MESSAGES: &str = "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id";
const PARTS: &str = "SELECT data FROM part WHERE message_id = ?1 ORDER BY id";

/// The fields of a part with words.
const FORM: RecordForm = RecordForm {
    needed: &[("type", TEXT), ("text", TEXT)],
    other: &[("synthetic", TRUTH), ("ignored", TRUTH)],
    known: &["time", "metadata"],
    remedy: "write it as opencode does",
};

struct OpencodeSession {
    id: String,
    is_subagent: bool,
    directory: String,
    /// The first message that was undone.
    undone_from: Option<String>,
}

/// Reads a database.
///
/// # Errors
/// [`SourceError`] when it is in an archive, cannot be copied, or is damaged.
pub(in super::super) fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    with_copy(file, |database| read_all(file, found, database))
}

fn read_all(file: &TranscriptFile<'_>, found: &mut Findings, database: &Connection) -> rusqlite::Result<()> {
    let sessions: Vec<OpencodeSession> =
        database.prepare(SESSIONS)?.query_map([], session)?.collect::<rusqlite::Result<_>>()?;
    let (mut messages, mut parts) = (database.prepare(MESSAGES)?, database.prepare(PARTS)?);
    for session in sessions {
        let rows = messages.query_map([&session.id], |row| Ok((lenient(row, 0)?, lenient(row, 1)?)))?;
        let mut is_undone = false;
        for row in rows {
            let (id, data) = row?;
            is_undone |= session.undone_from.as_deref() == Some(id.as_str());
            let data_of_parts: Vec<String> =
                parts.query_map([&id], |row| lenient(row, 0))?.collect::<rusqlite::Result<_>>()?;
            if let Err(reason) = said(file, found, &session, (&data, &data_of_parts), !is_undone) {
                let whole = Value::Array(vec![Value::String(data), Value::from(data_of_parts)]);
                found.reject_in(&session.directory, format!("{}:{}:0", file.origin(), id), &whole, reason);
            }
        }
    }
    Ok(())
}

fn session(row: &Row<'_>) -> rusqlite::Result<OpencodeSession> {
    let revert: Value = serde_json::from_str(&lenient(row, 3)?).unwrap_or_default();
    let (id, parent, directory) = (lenient(row, 0)?, lenient(row, 1)?, lenient(row, 2)?);
    Ok(OpencodeSession { id, is_subagent: !parent.is_empty(), directory, undone_from: filled(&revert, "messageID") })
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    session: &OpencodeSession,
    (data, parts): (&str, &[String]),
    is_kept: bool,
) -> Result<(), String> {
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|e| format!("{e}; copy the database again"));
    let data = read(data)?;
    let role = match text(&data, "role").unwrap_or_default() {
        _ if session.is_subagent => {
            found.not_talk(kind::SUBAGENT);
            return Ok(());
        }
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "" => return Err("role: missing; copy the database again".to_owned()),
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    if data.get("summary").and_then(Value::as_bool) == Some(true) || text(&data, "mode") == Some("compaction") {
        found.not_talk(kind::SUMMARY);
        return Ok(());
    }
    let before = found.skipped.len();
    let is_complete = data.get("time").is_some_and(|time| time.get("completed").is_some());
    let mut words = String::new();
    for part in parts {
        let (part, odd) = FORM.read::<Value>(read(part)?)?;
        // The words of an answer that is being given would be another message each time.
        let is_begun = |name: &str| part.get("time").is_some_and(|time| time.get(name).is_some());
        if !is_complete && text(&part, "type") == Some("text") && is_begun("start") && !is_begun("end") {
            found.not_talk(kind::UNFINISHED);
            return Ok(());
        }
        let is_set = |name: &str| part.get(name).and_then(Value::as_bool).unwrap_or(false);
        match text(&part, "type").unwrap_or_default() {
            "text" if is_set("synthetic") || is_set("ignored") => found.not_talk(kind::NOTE),
            "text" => {
                let said = text(&part, "text").unwrap_or_default();
                let said = if role == TranscriptRole::Person { unquoted(said) } else { said.to_owned() };
                add(&mut words, &said, role, found);
                odd.tell_beside(&said, &mut found.unread);
            }
            "reasoning" => found.not_talk(kind::THINKING),
            "tool" => found.call(&part),
            "file" => found.not_talk(kind::IMAGE),
            "compaction" => found.not_talk(kind::SUMMARY),
            "subtask" | "agent" => found.not_talk(kind::SUBAGENT),
            "step-start" | "step-finish" | "patch" | "snapshot" | "retry" => found.not_talk(kind::RECORD),
            name => found.unsupported(name),
        }
    }
    if words.is_empty() {
        if found.skipped.len() == before {
            found.skipped.push(SkipReason::Empty);
        }
        return Ok(());
    }
    let time = unix_time(data.get("time").and_then(|time| time.get("created")), "time.created")?;
    found.begins_in(Some(&session.directory));
    let model = data.get("model").and_then(|model| filled(model, "modelID"));
    let message = TranscriptMessage {
        place: time.unix_ms.to_string(),
        project: Some(session.directory.clone()),
        directory: Some(session.directory.clone()),
        model: filled(&data, "modelID").or(model).filter(|_| role == TranscriptRole::Assistant),
        is_on_kept_branch: is_kept,
        ..file.message(&session.id, role, time, words)
    };
    found.add(0, message);
    Ok(())
}

/// A prompt without the quotation marks that `opencode run` puts round it, and without the backslashes that then stand
/// before every one inside. Where one has no backslash, the marks are the person's.
fn unquoted(prompt: &str) -> String {
    let inner = prompt.trim().strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or_default();
    let is_escaped = |at: usize| inner.get(..at).is_some_and(|before| before.ends_with('\\'));
    if inner.is_empty() || !inner.match_indices('"').all(|(at, _)| is_escaped(at)) {
        return prompt.to_owned();
    }
    inner.replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotation_marks_of_a_run_are_taken_off() {
        for (stored, typed) in [
            (r#""Say six.""#, "Say six."),
            (r#""Say \"six\" twice.""#, r#"Say "six" twice."#),
            (r#""Six" and "seven""#, r#""Six" and "seven""#),
            (r#"Say "six""#, r#"Say "six""#),
            ("\"\"", "\"\""),
            ("\"", "\""),
        ] {
            assert_eq!(unquoted(stored), typed);
        }
    }
}

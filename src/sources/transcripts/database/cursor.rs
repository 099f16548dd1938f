//! Cursor's database, as others describe it; it was not tried.
//!
//! In: `state.vscdb`, of which only the keys `composerData:` and `bubbleId:` are read: others hold tokens. Out: what
//! was typed and answered, by the bubble's id, in the order that the composer states. A bubble without a time has that
//! of its composer, a millisecond later than the one before it. The database does not say which project it is.

use std::collections::HashMap;

use rusqlite::Connection;
use serde_json::Value;

use super::{
    super::{
        content_blocks::add,
        findings::{Findings, kind},
        transcript_file::{TranscriptFile, filled, later, text, time, unix_time},
    },
    rows::{lenient, with_copy},
};
use crate::{
    SourceError,
    chat::{SkipReason, TranscriptMessage, TranscriptRole},
};
use types::model::EventTime;

const COMPOSERS: &str = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key";
const BUBBLES: &str = "SELECT key, value FROM cursorDiskKV WHERE key LIKE ?1 ORDER BY key";

/// Reads a database.
///
/// # Errors
/// [`SourceError`] when it is in an archive, cannot be copied, or is damaged.
pub(in super::super) fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    with_copy(file, |database| read_all(file, found, database))
}

fn read_all(file: &TranscriptFile<'_>, found: &mut Findings, database: &Connection) -> rusqlite::Result<()> {
    let pair = |row: &rusqlite::Row<'_>| Ok((lenient(row, 0)?, lenient(row, 1)?));
    let composers: Vec<(String, String)> =
        database.prepare(COMPOSERS)?.query_map([], pair)?.collect::<rusqlite::Result<_>>()?;
    let mut bubbles = database.prepare(BUBBLES)?;
    for (key, value) in composers {
        let id = key.trim_start_matches("composerData:");
        let composer: Value = serde_json::from_str(&value).unwrap_or_default();
        let headers = composer.get("fullConversationHeadersOnly").and_then(Value::as_array);
        let order: HashMap<&str, usize> = headers
            .into_iter()
            .flatten()
            .enumerate()
            .filter_map(|(at, header)| Some((text(header, "bubbleId")?, at)))
            .collect();
        let began = unix_time(composer.get("createdAt"), "createdAt");
        let rows = bubbles.query_map([format!("bubbleId:{id}:%")], pair)?;
        for row in rows {
            let (key, value) = row?;
            let bubble = key.rsplit(':').next().unwrap_or_default();
            let place = (id, bubble, order.get(bubble).copied().unwrap_or(order.len()));
            if let Err(reason) = said(file, found, place, &began, &value) {
                found.reject_part(&format!("{}:{key}", file.origin()), 0, &Value::String(value), reason);
            }
        }
    }
    Ok(())
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    (thread, id, at): (&str, &str, usize),
    began: &Result<EventTime, String>,
    value: &str,
) -> Result<(), String> {
    let bubble: Value = serde_json::from_str(value).map_err(|e| format!("{e}; copy the database again"))?;
    let role = match bubble.get("type").and_then(Value::as_u64) {
        Some(1) => TranscriptRole::Person,
        Some(2) => TranscriptRole::Assistant,
        _ => {
            found.unsupported("bubble");
            return Ok(());
        }
    };
    let before = found.skipped.len();
    if bubble.get("toolFormerData").is_some_and(|call| !call.is_null()) {
        found.call(bubble.get("toolFormerData").unwrap_or(&Value::Null));
    }
    if bubble.get("thinking").is_some_and(|thinking| !thinking.is_null()) {
        found.not_talk(kind::THINKING);
    }
    let mut words = String::new();
    add(&mut words, text(&bubble, "text").unwrap_or_default(), role, found);
    if words.is_empty() {
        if found.skipped.len() == before {
            found.skipped.push(SkipReason::Empty);
        }
        return Ok(());
    }
    let own = time(&bubble, "createdAt").or_else(|_| unix_time(bubble.get("createdAt"), "createdAt"));
    let time = own.or_else(|_| began.clone().map(|began| later(began, at)))?;
    let model = bubble.get("modelInfo").and_then(|model| filled(model, "modelName"));
    let message = TranscriptMessage { id: Some(id.to_owned()), model, ..file.message(thread, role, time, words) };
    found.add(0, message);
    Ok(())
}

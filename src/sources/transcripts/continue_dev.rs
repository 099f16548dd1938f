//! Continue: one JSON file for each session.
//!
//! In: `~/.continue/sessions/SESSION.json`. Out: what was typed and answered. Messages have no ids and no times: one is
//! known by its session, its number and its words, and has the time at which its session was created, which stands in
//! `sessions.json`, a millisecond later than the message before it.

use serde_json::Value;

use super::{
    content_blocks::words,
    file_names::file_name,
    findings::{Findings, kind},
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, filled, later, text, unix_time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};
use types::model::EventTime;

/// Continue.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "continue",
    speaker: "Continue",
    has_local_times: false,
    is_database: false,
    is_rewritten: true,
    has_name: |name| name.ends_with(".json") && file_name(name) != "sessions.json",
    has_head: |head| {
        head.trim_start().starts_with('{') && names(head, "sessionId") && names(head, "history") && names(head, "title")
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "continue",
    about: "Continue: the folder sessions in ~/.continue",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a session around its history.
const SESSION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &["title", "workspaceDirectory", "usage", "chatModelTitle", "dateCreated"],
    remedy: "write it as Continue does",
};

/// The fields of an element of the history.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("message", OBJECT),
        ("message/role", TEXT),
        ("message/content", TEXT | LIST),
        ("message/content[]/type", TEXT),
        ("message/content[]/text", TEXT),
    ],
    other: &[("message/toolCalls", LIST)],
    known: &[
        "message/toolCalls[]",
        "message/usage",
        "message/toolCallId",
        "message/metadata",
        "message/signature",
        "message/content[]/imageUrl",
        "contextItems",
        "editorState",
        "toolCallState",
        "toolCallStates",
        "modifiers",
        "promptLogs",
        "reasoning",
        "conversationSummary",
        "appliedRules",
        "isGatheringContext",
    ],
    remedy: "write it as Continue does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let Some(whole) = file.whole(found)? else { return Ok(()) };
    found.envelope(&SESSION_FORM, &whole, &["history"]);
    let thread = filled(&whole, "sessionId").unwrap_or_else(|| file.stem().to_owned());
    let directory = filled(&whole, "workspaceDirectory").map(|uri| {
        // Editors write an address instead of a path.
        let parsed = url::Url::parse(&uri).ok().filter(|url| url.scheme() == "file");
        parsed.and_then(|url| url.to_file_path().ok()).map_or(uri, |path| path.to_string_lossy().into_owned())
    });
    found.begins_in(directory.as_deref());
    let Some(created) = created(file, &whole, &thread) else {
        let reason = "dateCreated: the session's time is missing; keep sessions.json beside it".to_owned();
        found.reject_part(&file.origin(), 1, &whole, reason);
        return Ok(());
    };
    let Some(history) = whole.get("history").and_then(Value::as_array) else {
        found.reject_part(&file.origin(), 1, &whole, "history: missing or no list; read it again".to_owned());
        return Ok(());
    };
    for (at, element) in history.iter().enumerate() {
        if let Err(reason) = said(file, found, (&thread, at, created), directory.as_ref(), element.clone()) {
            found.reject_part(&file.origin(), 1, element, reason);
        }
    }
    Ok(())
}

/// When a session was created: as it says itself, or the list of sessions.
fn created(file: &TranscriptFile<'_>, whole: &Value, thread: &str) -> Option<EventTime> {
    let time = |value: &Value| unix_time(value.get("dateCreated"), "dateCreated").ok();
    time(whole).or_else(|| {
        let list: Value = serde_json::from_str(&file.beside("sessions.json")?).ok()?;
        list.as_array()?.iter().find(|session| text(session, "sessionId") == Some(thread)).and_then(time)
    })
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    (thread, at, created): (&str, usize, EventTime),
    directory: Option<&String>,
    element: Value,
) -> Result<(), String> {
    let (element, odd) = FORM.read::<Value>(element)?;
    let message = element.get("message").unwrap_or(&Value::Null);
    let role = match text(message, "role").unwrap_or_default() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "" => return Err("message.role: missing; write it as Continue does".to_owned()),
        name => {
            match name {
                "tool" => found.not_talk(kind::TOOL_OUTPUT),
                "thinking" => found.not_talk(kind::THINKING),
                "system" => found.not_talk(kind::SYSTEM),
                name => found.unsupported(name),
            }
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let calls = message.get("toolCalls").and_then(Value::as_array);
    calls.into_iter().flatten().for_each(|call| found.call(call));
    if filled(&element, "conversationSummary").is_some() {
        found.not_talk(kind::SUMMARY);
    }
    let words = words(message.get("content").unwrap_or(&Value::Null), role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let said = TranscriptMessage {
        place: format!("{thread}/{at}"),
        directory: directory.cloned(),
        model: message.get("usage").and_then(|usage| filled(usage, "model")),
        ..file.message(thread, role, later(created, at), words)
    };
    found.said(1, said, &odd)
}

//! Pi: one file of JSON lines for each session.
//!
//! In: `~/.pi/agent/sessions/--DIRECTORY--/TIME_SESSION.jsonl`. Out: what was typed and answered, known by the
//! entry's id, its time and its words, since a fork copies entries with all three. Entries are a tree by `parentId`;
//! the last one ends the kept branch.

use serde_json::Value;

use super::{
    content_blocks::words,
    findings::{Findings, kind},
    kept_branch::MessageTree,
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// Pi.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "pi",
    speaker: "Pi",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".jsonl"),
    has_head: |head| {
        head.trim_start().starts_with('{')
            && names(head, "type")
            && names(head, "session")
            && names(head, "cwd")
            && names(head, "parentId")
            || (head.contains("\"type\":\"session\"") && names(head, "cwd") && names(head, "version"))
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "pi",
    about: "Pi: the folder sessions in ~/.pi/agent, or a session's file",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of an entry with a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("id", TEXT),
        ("timestamp", TEXT),
        ("message", OBJECT),
        ("message/role", TEXT),
        ("message/content", TEXT | LIST),
        ("message/content[]/type", TEXT),
        ("message/content[]/text", TEXT),
    ],
    other: &[("parentId", TEXT), ("message/model", TEXT)],
    known: &[
        "message/content[]/thinking",
        "message/content[]/thinkingSignature",
        "message/content[]/textSignature",
        "message/content[]/arguments",
        "message/content[]/name",
        "message/content[]/data",
        "message/api",
        "message/provider",
        "message/usage",
        "message/stopReason",
        "message/errorMessage",
        "message/toolName",
        "message/details",
    ],
    remedy: "write it as Pi does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let (mut tree, mut leaf) = (MessageTree::default(), None);
    let (mut thread, mut directory) = (file.stem().to_owned(), None);
    // The entry of each message, for the tree.
    let mut entries: Vec<String> = Vec::new();
    file.each_line(found, |found, record| {
        let TranscriptRecord { line, value } = record;
        if text(&value, "type") == Some("session") {
            thread = filled(&value, "id").unwrap_or_else(|| std::mem::take(&mut thread));
            directory = filled(&value, "cwd");
            found.begins_in(directory.as_deref());
            found.not_talk(kind::RECORD);
            return Ok(());
        }
        if let Some(id) = text(&value, "id") {
            tree.add(id, text(&value, "parentId"));
            leaf = Some(id.to_owned());
        }
        let count = found.messages.len();
        let id = text(&value, "id").unwrap_or_default().to_owned();
        let result = take(file, &thread, directory.as_ref(), found, line, value);
        if found.messages.len() > count {
            entries.push(id);
        }
        result
    })?;
    let given_up = leaf.as_deref().map(|leaf| tree.given_up(leaf)).unwrap_or_default();
    for ((_, message), entry) in found.messages.iter_mut().zip(&entries) {
        message.is_on_kept_branch = !given_up.contains(entry.as_str());
    }
    Ok(())
}

fn take(
    file: &TranscriptFile<'_>,
    thread: &str,
    directory: Option<&String>,
    found: &mut Findings,
    line: u64,
    value: Value,
) -> Result<(), String> {
    let not_talk = match text(&value, "type").unwrap_or_default() {
        "message" => None,
        "compaction" | "branch_summary" => Some(kind::SUMMARY),
        "custom_message" => Some(kind::HOOK),
        "model_change" | "thinking_level_change" | "custom" | "label" | "session_info" => Some(kind::RECORD),
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    if let Some(kind) = not_talk {
        found.not_talk(kind);
        return Ok(());
    }
    let (value, odd) = FORM.read::<Value>(value)?;
    let message = value.get("message").unwrap_or(&Value::Null);
    let role = match text(message, "role").unwrap_or_default() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "toolResult" | "bashExecution" => {
            found.not_talk(kind::TOOL_OUTPUT);
            odd.tell_beside("", &mut found.unread);
            return Ok(());
        }
        "custom" | "hookMessage" => {
            found.not_talk(kind::HOOK);
            return Ok(());
        }
        "compactionSummary" | "branchSummary" => {
            found.not_talk(kind::SUMMARY);
            return Ok(());
        }
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let words = words(message.get("content").unwrap_or(&Value::Null), role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let time = time(&value, "timestamp")?;
    // Eight digits are too few to be the only key of a message among those of all sessions.
    let said = TranscriptMessage {
        place: format!("{}/{}", text(&value, "id").unwrap_or_default(), time.unix_ms),
        directory: directory.cloned(),
        model: filled(message, "model"),
        ..file.message(thread, role, time, words)
    };
    found.said(line, said, &odd)
}

//! Qwen Code: one file of JSON lines for each session.
//!
//! In: `~/.qwen/projects/DIRECTORY/chats/SESSION.jsonl`. Out: what was typed and answered, by the line's `uuid`. Lines
//! are a tree by `parentUuid`; the last line ends the kept branch. Parts that are thoughts are left out.

use serde_json::Value;

use super::{
    content_blocks::{add, words_before_files},
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

/// Qwen Code.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "qwen-code",
    speaker: "Qwen Code",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".jsonl"),
    has_head: |head| {
        head.trim_start().starts_with('{')
            && names(head, "sessionId")
            && names(head, "parentUuid")
            && names(head, "parts")
            && !names(head, "isSidechain")
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "qwen-code",
    about: "Qwen Code: the folder projects in ~/.qwen, or a session's file",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a line of a person or of the assistant.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("uuid", TEXT),
        ("timestamp", TEXT),
        ("message", OBJECT),
        ("message/parts", LIST),
        ("message/parts[]/text", TEXT),
    ],
    other: &[("parentUuid", TEXT), ("sessionId", TEXT), ("cwd", TEXT), ("gitBranch", TEXT), ("model", TEXT)],
    known: &[
        "message/role",
        "message/parts[]/functionCall",
        "message/parts[]/functionResponse",
        "message/parts[]/inlineData",
        "message/parts[]/thoughtSignature",
        "usageMetadata",
        "toolCallResult",
        "contextWindowSize",
    ],
    remedy: "write it as Qwen Code does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let (mut tree, mut leaf) = (MessageTree::default(), None);
    file.each_line(found, |found, record| {
        let TranscriptRecord { line, value } = record;
        if let Some(id) = text(&value, "uuid") {
            tree.add(id, text(&value, "parentUuid"));
            leaf = Some(id.to_owned());
        }
        found.begins_in(text(&value, "cwd"));
        take(file, found, line, value)
    })?;
    let given_up = leaf.as_deref().map(|leaf| tree.given_up(leaf)).unwrap_or_default();
    for (_, message) in &mut found.messages {
        message.is_on_kept_branch = !message.id.as_deref().is_some_and(|id| given_up.contains(id));
    }
    Ok(())
}

fn take(file: &TranscriptFile<'_>, found: &mut Findings, line: u64, value: Value) -> Result<(), String> {
    let role = match text(&value, "type").unwrap_or_default() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "tool_result" => {
            found.not_talk(kind::TOOL_OUTPUT);
            return Ok(());
        }
        "system" => {
            let is_summary = text(&value, "subtype") == Some("chat_compression");
            found.not_talk(if is_summary { kind::SUMMARY } else { kind::RECORD });
            return Ok(());
        }
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let (value, odd) = FORM.read::<Value>(value)?;
    let before = found.skipped.len();
    let words = words(value.get("message").and_then(|message| message.get("parts")), role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let thread = filled(&value, "sessionId").unwrap_or_else(|| file.stem().to_owned());
    let message = TranscriptMessage {
        id: filled(&value, "uuid"),
        directory: filled(&value, "cwd"),
        branch: filled(&value, "gitBranch"),
        model: filled(&value, "model"),
        ..file.message(&thread, role, time(&value, "timestamp")?, words)
    };
    found.said(line, message, &odd)
}

/// The words of the parts of a message, without the files that a person names.
fn words(parts: Option<&Value>, role: TranscriptRole, found: &mut Findings) -> String {
    let (mut words, mut typed) = (String::new(), Vec::new());
    for part in parts.and_then(Value::as_array).into_iter().flatten() {
        if part.get("thought").and_then(Value::as_bool).unwrap_or(false) {
            found.not_talk(kind::THINKING);
        } else if let Some(text) = text(part, "text") {
            match role {
                TranscriptRole::Person => typed.push(text),
                TranscriptRole::Assistant => add(&mut words, text, role, found),
            }
        } else if part.get("functionCall").is_some() {
            found.call(part);
        } else if part.get("functionResponse").is_some() {
            found.not_talk(kind::TOOL_OUTPUT);
        } else if part.get("inlineData").or_else(|| part.get("fileData")).is_some() {
            found.not_talk(kind::IMAGE);
        } else {
            found.unsupported("part of a message");
        }
    }
    if role == TranscriptRole::Person { words_before_files(&typed, found) } else { words }
}

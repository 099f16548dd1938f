//! Cline: a folder for each session or task.
//!
//! In: of Cline's program for the terminal, `~/.cline/data/sessions/SESSION/SESSION.messages.json`; of its extension,
//! and of Roo's, `tasks/TASK/ui_messages.json`, which is read as its source describes it and was not tried. Out: what
//! was typed and answered, by the message's id, or by the task and its time. The prompt stands inside `<user_input>`.

use serde_json::Value;

use super::{
    content_blocks::{add, words},
    file_names::file_name,
    findings::{Findings, kind},
    injected_text::inside,
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, unix_time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, NUMBER, OBJECT, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// The file of a task of the extension.
const TASK: &str = "ui_messages.json";

/// Cline.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "cline",
    speaker: "Cline",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".messages.json") || file_name(name) == TASK,
    has_head: |head| {
        let is_session = head.trim_start().starts_with('{') && names(head, "messages") && names(head, "origin");
        let is_task =
            head.trim_start().starts_with('[') && names(head, "ts") && (names(head, "say") || names(head, "ask"));
        (is_session && names(head, "sessionId")) || is_task
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "cline",
    about: "Cline: the folder sessions in ~/.cline/data, or the extension's folder tasks",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a session around its messages.
const SESSION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &["version", "updated_at", "agent", "sessionId", "origin", "system_prompt"],
    remedy: "write it as Cline does",
};

/// The fields of a message of a session.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT),
        ("role", TEXT),
        ("ts", NUMBER),
        ("content", TEXT | LIST),
        ("content[]/type", TEXT),
        ("content[]/text", TEXT),
    ],
    other: &[("modelInfo", OBJECT), ("modelInfo/id", TEXT)],
    known: &[
        "content[]/thinking",
        "content[]/signature",
        "content[]/name",
        "content[]/input",
        "content[]/content",
        "content[]/source",
        "content[]/details",
        "modelInfo/provider",
        "metrics",
        "metadata",
        "checkpoint",
    ],
    remedy: "write it as Cline does",
};

/// The fields of a message of a task.
const TASK_FORM: RecordForm = RecordForm {
    needed: &[("ts", NUMBER), ("type", TEXT), ("say", TEXT), ("ask", TEXT), ("text", TEXT)],
    other: &[("images", LIST), ("files", LIST)],
    known: &[
        "images[]",
        "files[]",
        "reasoning",
        "modelInfo",
        "conversationHistoryIndex",
        "contextCondense",
        "progressStatus",
    ],
    remedy: "write it as Cline does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    if file_name(file.name) == TASK {
        return read_task(file, found);
    }
    let Some(whole) = file.whole(found)? else { return Ok(()) };
    if whole.is_array() {
        return read_task(file, found);
    }
    found.envelope(&SESSION_FORM, &whole, &["messages"]);
    let thread = filled(&whole, "sessionId").unwrap_or_else(|| file.stem().to_owned());
    let about = file.beside(&format!("{}.json", file.stem().trim_end_matches(".messages")));
    let about: Value = about.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let directory = filled(&about, "cwd").or_else(|| filled(&about, "workspace_root"));
    let git = about.get("metadata").and_then(|metadata| metadata.get("git"));
    let branch = git.and_then(|git| filled(git, "branch"));
    found.begins_in(directory.as_deref());
    let is_lead = text(&whole, "agent").is_none_or(|agent| agent == "lead");
    let Some(messages) = whole.get("messages").and_then(Value::as_array) else {
        found.reject_part(&file.origin(), 1, &whole, "messages: missing or no list; read it again".to_owned());
        return Ok(());
    };
    for message in messages {
        if !is_lead {
            found.not_talk(kind::SUBAGENT);
        } else if let Err(reason) = said(file, found, &thread, (&directory, &branch), message.clone()) {
            found.reject_part(&file.origin(), 1, message, reason);
        }
    }
    Ok(())
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    thread: &str,
    (directory, branch): (&Option<String>, &Option<String>),
    message: Value,
) -> Result<(), String> {
    let (message, odd) = FORM.read::<Value>(message)?;
    let role = match text(&message, "role").unwrap_or_default() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "" => return Err("role: missing; write it as Cline does".to_owned()),
        name => {
            match name {
                "system" => found.not_talk(kind::SYSTEM),
                "tool" => found.not_talk(kind::TOOL_OUTPUT),
                name => found.unsupported(name),
            }
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let words = words(message.get("content").unwrap_or(&Value::Null), role, found);
    let words = if role == TranscriptRole::Person { inside(&words, "user_input").trim().to_owned() } else { words };
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let said = TranscriptMessage {
        id: filled(&message, "id"),
        directory: directory.clone(),
        branch: branch.clone(),
        model: message.get("modelInfo").and_then(|model| filled(model, "id")),
        ..file.message(thread, role, unix_time(message.get("ts"), "ts")?, words)
    };
    found.said(1, said, &odd)
}

/// A task of the extension: what its window showed.
fn read_task(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let thread = file.folder().unwrap_or_else(|| file.stem().to_owned());
    let mut is_first = true;
    file.each_element(found, |found, TranscriptRecord { line, value }| {
        let (value, odd) = TASK_FORM.read::<Value>(value)?;
        let name = text(&value, "say").or_else(|| text(&value, "ask")).unwrap_or_default();
        let is_task = std::mem::take(&mut is_first);
        let role = match name {
            "task" | "user_feedback" => TranscriptRole::Person,
            "text" if is_task => TranscriptRole::Person,
            "text" | "completion_result" | "followup" | "plan_mode_respond" => TranscriptRole::Assistant,
            "reasoning" => {
                found.not_talk(kind::THINKING);
                return Ok(());
            }
            "tool"
            | "command"
            | "browser_action"
            | "browser_action_launch"
            | "use_mcp_server"
            | "mcp_server_request_started" => {
                found.not_talk(kind::TOOL_CALL);
                return Ok(());
            }
            "command_output" | "browser_action_result" | "mcp_server_response" => {
                found.not_talk(kind::TOOL_OUTPUT);
                return Ok(());
            }
            _ => {
                found.not_talk(kind::RECORD);
                return Ok(());
            }
        };
        if value.get("partial").and_then(Value::as_bool).unwrap_or(false) {
            found.not_talk(kind::UNFINISHED);
            return Ok(());
        }
        let before = found.skipped.len();
        let mut words = String::new();
        add(&mut words, &shown(text(&value, "text").unwrap_or_default()), role, found);
        let time = unix_time(value.get("ts"), "ts")?;
        if words.is_empty() && found.skipped.len() > before {
            return Ok(());
        }
        let said = TranscriptMessage {
            id: Some(format!("{thread}-{}", time.unix_ms)),
            ..file.message(&thread, role, time, words)
        };
        found.said(line, said, &odd)
    })
}

/// A question or a plan stands as JSON with the words in a field.
fn shown(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    ["question", "response"].iter().find_map(|name| filled(&value, name)).unwrap_or_else(|| text.to_owned())
}

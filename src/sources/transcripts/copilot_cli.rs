//! Copilot CLI: a folder with events for each session.
//!
//! In: `~/.copilot/session-state/SESSION/events.jsonl`, or the earlier `SESSION.jsonl`. Out: what was typed
//! (`user.message`, its `content`, unless its `source` is a skill or the program) and answered (`assistant.message`), by
//! the event's `messageId`. What hooks and the program add stands in `transformedContent` and in other events, and is
//! left out.

use serde_json::Value;

use super::{
    content_blocks::add,
    findings::{Findings, kind},
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// Copilot CLI.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "copilot-cli",
    speaker: "Copilot CLI",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".jsonl"),
    has_head: |head| {
        let is_event = ["session.start", "user.message", "assistant.message", "session.resume"];
        names(head, "data") && names(head, "type") && is_event.iter().any(|event| names(head, event))
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "copilot-cli",
    about: "Copilot CLI: the folder session-state in ~/.copilot, or a file events.jsonl",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of an event with talk.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("id", TEXT),
        ("timestamp", TEXT),
        ("data", OBJECT),
        ("data/content", TEXT),
        ("data/messageId", TEXT),
    ],
    other: &[("parentId", TEXT), ("data/model", TEXT), ("data/toolRequests", LIST), ("data/attachments", LIST)],
    known: &[
        "data/transformedContent",
        "data/toolRequests[]",
        "data/attachments[]",
        "data/supportedNativeDocumentMimeTypes",
        "data/nativeDocumentPathFallbackPaths",
        "data/delivery",
        "data/agentMode",
        "data/source",
        "data/reasoningText",
        "data/reasoningOpaque",
        "data/encryptedContent",
        "data/phase",
        "data/outputTokens",
        "data/anthropicAdvisorBlocks",
        "data/anthropicAdvisorModel",
        "agentId",
    ],
    remedy: "write it as Copilot CLI does",
};

/// What is known of a session so far.
#[derive(Default)]
struct CopilotSession {
    id: String,
    directory: Option<String>,
    branch: Option<String>,
}

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let folder = file.folder().filter(|_| file.stem() == "events");
    let mut session =
        CopilotSession { id: folder.unwrap_or_else(|| file.stem().to_owned()), ..CopilotSession::default() };
    file.each_line(found, |found, record| take(file, &mut session, found, record))
}

fn take(
    file: &TranscriptFile<'_>,
    session: &mut CopilotSession,
    found: &mut Findings,
    record: TranscriptRecord,
) -> Result<(), String> {
    let TranscriptRecord { line, value } = record;
    let data = value.get("data").unwrap_or(&Value::Null);
    let role = match text(&value, "type").unwrap_or_default() {
        "user.message" | "assistant.message" if is_of_subagent(&value) => {
            found.not_talk(kind::SUBAGENT);
            return Ok(());
        }
        "user.message" if text(data, "source").is_some_and(|source| source != "user") => {
            found.not_talk(kind::NOTE);
            return Ok(());
        }
        "user.message" => TranscriptRole::Person,
        "assistant.message" => TranscriptRole::Assistant,
        name => {
            if matches!(name, "session.start" | "session.resume" | "session.context_changed") {
                session.begin(data);
                found.begins_in(session.directory.as_deref());
            }
            match kind_of(name) {
                Some(kind) => found.not_talk(kind),
                None => found.unsupported(name),
            }
            return Ok(());
        }
    };
    let (value, odd) = FORM.read::<Value>(value)?;
    let data = value.get("data").unwrap_or(&Value::Null);
    let before = found.skipped.len();
    let list = |name: &str| data.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    let calls = data.get("toolRequests").and_then(Value::as_array);
    calls.into_iter().flatten().for_each(|call| found.call(call));
    (0..list("attachments")).for_each(|_| found.not_talk(kind::IMAGE));
    let mut words = String::new();
    add(&mut words, text(data, "content").unwrap_or_default(), role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let message = TranscriptMessage {
        id: filled(data, "messageId").or_else(|| filled(&value, "id")),
        directory: session.directory.clone(),
        branch: session.branch.clone(),
        model: filled(data, "model"),
        ..file.message(&session.id, role, time(&value, "timestamp")?, words)
    };
    found.said(line, message, &odd)
}

/// Whether an event is of a subagent.
fn is_of_subagent(value: &Value) -> bool {
    let data = value.get("data").unwrap_or(&Value::Null);
    let is_filled = |value: &Value, name: &str| value.get(name).is_some_and(|id| !id.is_null());
    is_filled(data, "parentToolCallId") || is_filled(value, "agentId")
}

/// The kind of an event without talk.
fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "system.message" | "system.notification" => kind::SYSTEM,
        "assistant.reasoning" => kind::THINKING,
        "session.compaction_start" | "session.compaction_complete" => kind::SUMMARY,
        "abort" => kind::INTERRUPT,
        "tool.execution_complete" => kind::TOOL_OUTPUT,
        _ => match name.split('.').next()? {
            "hook" => kind::HOOK,
            "tool" => kind::TOOL_CALL,
            "subagent" => kind::SUBAGENT,
            "session" | "assistant" | "skill" | "permission" | "pending_messages" => kind::RECORD,
            _ => return None,
        },
    })
}

impl CopilotSession {
    fn begin(&mut self, data: &Value) {
        let context = data.get("context").unwrap_or(data);
        self.id = filled(data, "sessionId").unwrap_or_else(|| std::mem::take(&mut self.id));
        self.directory = filled(context, "cwd").or(self.directory.take());
        self.branch = filled(context, "branch").or(self.branch.take());
    }
}

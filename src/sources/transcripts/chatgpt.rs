//! ChatGPT's export: lists of conversations, each a tree of messages.
//!
//! In: the export's archive or folder with `conversations.json` or `conversations-*.json`, or such a file. Out: what
//! was typed and answered, by the message's id. The kept branch ends at `current_node`; other branches are edits and
//! retries. A message of the assistant that is meant for a tool, what tools gave back, custom instructions and hidden
//! messages are no talk. A message without a time has that of its conversation.

use serde_json::Value;

use super::{
    content_blocks::add,
    file_names::file_name,
    findings::{Findings, kind},
    kept_branch::MessageTree,
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, later, text, unix_time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};
use types::model::EventTime;

/// ChatGPT.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "chatgpt",
    speaker: "ChatGPT",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| file_name(name).starts_with("conversations") && name.ends_with(".json"),
    has_head: |head| head.trim_start().starts_with('[') && names(head, "mapping") && names(head, "create_time"),
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "chatgpt",
    about: "ChatGPT: the export's archive or folder, or a file conversations.json",
    standard_input: false,
    only: None,
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a conversation around its messages.
const CONVERSATION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &[
        "title",
        "update_time",
        "moderation_results",
        "current_node",
        "plugin_ids",
        "safe_urls",
        "blocked_urls",
        "default_model_slug",
        "conversation_origin",
        "voice",
        "async_status",
        "disabled_tool_ids",
        "memory_scope",
        "context_scopes",
        "owner",
    ],
    remedy: "write it as ChatGPT does",
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT),
        ("author", OBJECT),
        ("author/role", TEXT),
        ("create_time", NUMBER),
        ("content", OBJECT),
        ("content/content_type", TEXT),
        ("content/parts", LIST),
        ("content/parts[]/text", TEXT),
    ],
    other: &[
        ("recipient", TEXT),
        ("weight", NUMBER),
        ("metadata", OBJECT),
        ("metadata/model_slug", TEXT),
        ("metadata/is_visually_hidden_from_conversation", TRUTH),
        ("metadata/is_user_system_message", TRUTH),
    ],
    known: &[
        "author/name",
        "author/metadata",
        "content/text",
        "content/thoughts",
        "content/content",
        "content/result",
        "content/summary",
        "content/user_profile",
        "content/user_instructions",
        "content/model_set_context",
        "content/response_format_name",
        "content/parts[]/asset_pointer",
        "content/parts[]/content_type",
        "content/parts[]/metadata",
        "content/parts[]/audio_asset_pointer",
        "content/parts[]/video_container_asset_pointer",
        "content/parts[]/frames_asset_pointers",
        "channel",
        "end_turn",
        "**/metadata",
    ],
    remedy: "write it as ChatGPT does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    file.each_element(found, |found, record| take(file, found, &record))
}

/// A conversation.
fn take(file: &TranscriptFile<'_>, found: &mut Findings, record: &TranscriptRecord) -> Result<(), String> {
    let conversation = &record.value;
    found.envelope(&CONVERSATION_FORM, conversation, &["mapping"]);
    let thread = filled(conversation, "conversation_id").or_else(|| filled(conversation, "id"));
    let thread = thread.ok_or("conversation_id: missing; export it again")?;
    let mapping = conversation.get("mapping").and_then(Value::as_object);
    let mapping = mapping.ok_or("mapping: missing or no object; export it again")?;
    let mut tree = MessageTree::default();
    mapping.iter().for_each(|(id, node)| tree.add(id, text(node, "parent")));
    let given_up = text(conversation, "current_node").map(|leaf| tree.given_up(leaf)).unwrap_or_default();
    for (id, node) in mapping {
        let Some(message) = node.get("message").filter(|message| !message.is_null()) else { continue };
        let is_kept = !given_up.contains(id.as_str());
        if let Err(reason) = said(file, found, record, (&thread, id, is_kept), message.clone()) {
            found.reject_part(&file.origin(), record.line, message, reason);
        }
    }
    Ok(())
}

/// A message of a conversation.
fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    record: &TranscriptRecord,
    (thread, node, is_kept): (&str, &str, bool),
    message: Value,
) -> Result<(), String> {
    let (message, odd) = FORM.read::<Value>(message)?;
    let metadata = message.get("metadata").unwrap_or(&Value::Null);
    let content = message.get("content").unwrap_or(&Value::Null);
    let is_set = |name: &str| metadata.get(name).and_then(Value::as_bool).unwrap_or(false);
    let role = text(message.get("author").unwrap_or(&Value::Null), "role").unwrap_or_default();
    let content_type = text(content, "content_type").unwrap_or_default();
    let is_for_tool = text(&message, "recipient").is_some_and(|recipient| recipient != "all");
    let is_hidden =
        message.get("weight").and_then(Value::as_f64) == Some(0.0) || is_set("is_visually_hidden_from_conversation");
    let not_talk = match (role, content_type) {
        ("system", _) | (_, "user_editable_context" | "model_editable_context" | "app_pairing_content") => {
            Some(kind::SYSTEM)
        }
        _ if is_set("is_user_system_message") => Some(kind::SYSTEM),
        ("tool", _) | (_, "execution_output" | "tether_browsing_display" | "tether_quote" | "system_error") => {
            Some(kind::TOOL_OUTPUT)
        }
        (_, "thoughts" | "reasoning_recap") => Some(kind::THINKING),
        ("assistant", "code") => Some(kind::TOOL_CALL),
        ("assistant", _) if is_for_tool => Some(kind::TOOL_CALL),
        _ if is_hidden => Some(kind::NOTE),
        _ => None,
    };
    if let Some(kind) = not_talk {
        found.not_talk(kind);
        return Ok(());
    }
    let role = match role {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let words = words(content, role, found);
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let time = unix_time(message.get("create_time"), "create_time");
    let time = time.or_else(|problem| time_above(&record.value, node).ok_or(problem))?;
    let message = TranscriptMessage {
        id: Some(filled(&message, "id").unwrap_or_else(|| node.to_owned())),
        model: filled(metadata, "model_slug"),
        is_on_kept_branch: is_kept,
        ..file.message(thread, role, time, words)
    };
    found.said(record.line, message, &odd)
}

/// The time of a message that has none: that of the nearest message above it, or of its conversation, a millisecond
/// later for each message between them.
fn time_above(conversation: &Value, node: &str) -> Option<EventTime> {
    let mapping = conversation.get("mapping").and_then(Value::as_object)?;
    let (mut at, mut steps) = (node, 0);
    while let Some(parent) = mapping.get(at).and_then(|node| text(node, "parent")).filter(|_| steps < mapping.len()) {
        (at, steps) = (parent, steps + 1);
        let message = mapping.get(at).and_then(|node| node.get("message"));
        if let Ok(time) = unix_time(message.and_then(|message| message.get("create_time")), "create_time") {
            return Some(later(time, steps));
        }
    }
    unix_time(conversation.get("create_time"), "create_time").ok().map(|began| later(began, steps))
}

/// The words of the parts of a content; pictures and recordings are counted, and what was said aloud is words.
fn words(content: &Value, role: TranscriptRole, found: &mut Findings) -> String {
    let mut words = String::new();
    for part in content.get("parts").and_then(Value::as_array).into_iter().flatten() {
        match part {
            Value::String(text) => add(&mut words, text, role, found),
            part => match text(part, "text") {
                Some(text) => add(&mut words, text, role, found),
                None if part.get("asset_pointer").is_some() || text(part, "content_type").is_some() => {
                    found.not_talk(kind::IMAGE);
                }
                None => found.unsupported("part of a message"),
            },
        }
    }
    words
}

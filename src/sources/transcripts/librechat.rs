//! LibreChat's export: one conversation, as a list of messages or as a tree.
//!
//! In: an exported JSON file, or a folder of them. Out: what was typed and answered, by the message's id. Where the
//! export has several branches, the one with the last message is the kept one.

use serde_json::Value;

use super::{
    content_blocks::{add, join, words},
    findings::{Findings, kind},
    kept_branch::MessageTree,
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TRUTH, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// How deep a tree of messages may be; JSON is not read deeper.
const MAX_DEPTH: usize = 128;

/// LibreChat.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "librechat",
    speaker: "Assistant",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".json"),
    has_head: |head| {
        names(head, "conversationId")
            && names(head, "messageId")
            && (names(head, "messages") || names(head, "messagesTree"))
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "librechat",
    about: "LibreChat: an exported JSON of a conversation, or a folder of them",
    standard_input: false,
    only: None,
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a conversation around its messages.
const CONVERSATION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &["title", "endpoint", "exportAt", "options", "conversation"],
    remedy: "write it as LibreChat does",
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("messageId", TEXT),
        ("text", TEXT),
        ("createdAt", TEXT),
        ("isCreatedByUser", TRUTH),
        ("content", LIST),
        ("content[]/type", TEXT),
        ("content[]/text", TEXT | OBJECT),
        ("content[]/text/value", TEXT),
    ],
    other: &[("parentMessageId", TEXT), ("conversationId", TEXT), ("model", TEXT), ("files", LIST)],
    known: &[
        "children",
        "content[]/think",
        "content[]/tool_call",
        "content[]/image_url",
        "content[]/image_file",
        "content[]/text/annotations",
        "files[]",
        "sender",
        "endpoint",
        "attachments",
        "feedback",
        "plugin",
        "plugins",
        "iconURL",
        "finish_reason",
        "metadata",
        "addedConvo",
        "overrideParentMessageId",
        "responseMessageId",
        "user",
        "error",
    ],
    remedy: "write it as LibreChat does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let Some(whole) = file.whole(found)? else { return Ok(()) };
    found.envelope(&CONVERSATION_FORM, &whole, &["messages", "messagesTree"]);
    let thread = filled(&whole, "conversationId").unwrap_or_else(|| file.stem().to_owned());
    let mut messages = Vec::new();
    let list = ["messagesTree", "messages"].iter().find_map(|name| whole.get(name).and_then(Value::as_array));
    match list {
        Some(list) => flatten(list, 0, &mut messages),
        None => {
            found.reject_part(&file.origin(), 1, &whole, "messages: missing or no list; export it again".to_owned());
        }
    }
    let mut tree = MessageTree::default();
    for message in &messages {
        if let Some(id) = text(message, "messageId") {
            tree.add(id, text(message, "parentMessageId"));
        }
    }
    let last = messages.iter().max_by_key(|message| text(message, "createdAt").unwrap_or_default());
    let leaf = last.and_then(|message| text(message, "messageId"));
    let given_up = leaf.map(|leaf| tree.given_up(leaf)).unwrap_or_default();
    for message in &messages {
        let is_kept = !text(message, "messageId").is_some_and(|id| given_up.contains(id));
        if let Err(reason) = said(file, found, &thread, is_kept, (*message).clone()) {
            found.reject_part(&file.origin(), 1, message, reason);
        }
    }
    Ok(())
}

/// The messages of a tree, each before its children.
fn flatten<'a>(list: &'a [Value], depth: usize, messages: &mut Vec<&'a Value>) {
    for message in list {
        messages.push(message);
        if let Some(children) = message.get("children").and_then(Value::as_array).filter(|_| depth < MAX_DEPTH) {
            flatten(children, depth + 1, messages);
        }
    }
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    thread: &str,
    is_kept: bool,
    mut message: Value,
) -> Result<(), String> {
    if let Some(fields) = message.as_object_mut() {
        fields.remove("children");
    }
    let (message, odd) = FORM.read::<Value>(message)?;
    let is_person = message.get("isCreatedByUser").and_then(Value::as_bool);
    let is_person = is_person.ok_or("isCreatedByUser: missing; export it again")?;
    let role = if is_person { TranscriptRole::Person } else { TranscriptRole::Assistant };
    if !is_person && message.get("error").and_then(Value::as_bool) == Some(true) {
        found.not_talk(kind::NOTE);
        return Ok(());
    }
    let before = found.skipped.len();
    let files = message.get("files").and_then(Value::as_array).map_or(0, Vec::len);
    (0..files).for_each(|_| found.not_talk(kind::IMAGE));
    let mut said = String::new();
    for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
        match block.get("text").and_then(|text| text.get("value")).and_then(Value::as_str) {
            Some(text) => add(&mut said, text, role, found),
            None => join(&mut said, &words(&Value::Array(vec![block.clone()]), role, found)),
        }
    }
    if said.is_empty() {
        add(&mut said, text(&message, "text").unwrap_or_default(), role, found);
    }
    if said.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let message = TranscriptMessage {
        id: filled(&message, "messageId"),
        model: filled(&message, "model"),
        is_on_kept_branch: is_kept,
        ..file.message(thread, role, time(&message, "createdAt")?, said)
    };
    found.said(1, message, &odd)
}

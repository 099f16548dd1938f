//! Claude.ai's export: a list of conversations.
//!
//! In: the export's archive or folder with `conversations.json`, or that file. Out: what was typed and answered, by the
//! message's `uuid`, in the order of the list: the export shows no branches. The blocks of `content` count before
//! `text`; attached files are counted.

use serde_json::Value;

use super::{
    content_blocks::{add, words},
    file_names::file_name,
    findings::{Findings, kind},
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// Claude.ai.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "claude-ai",
    speaker: "Claude",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| file_name(name).starts_with("conversations") && name.ends_with(".json"),
    has_head: |head| head.trim_start().starts_with('[') && names(head, "chat_messages") && names(head, "uuid"),
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "claude-ai",
    about: "Claude.ai: the export's archive or folder, or a file conversations.json",
    standard_input: false,
    only: None,
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a conversation around its messages.
const CONVERSATION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &["name", "summary", "account", "settings", "project", "model"],
    remedy: "write it as Claude.ai does",
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("uuid", TEXT),
        ("sender", TEXT),
        ("text", TEXT),
        ("created_at", TEXT),
        ("content", LIST),
        ("content[]/type", TEXT),
        ("content[]/text", TEXT),
    ],
    other: &[("attachments", LIST), ("files", LIST)],
    known: &[
        "attachments[]",
        "files[]",
        "files_v2",
        "sync_sources",
        "parent_message_uuid",
        "input_mode",
        "content[]/thinking",
        "content[]/summaries",
        "content[]/name",
        "content[]/input",
        "content[]/message",
        "content[]/content",
        "content[]/display_content",
        "content[]/citations",
        "content[]/integration_name",
        "content[]/icon_name",
        "content[]/context",
        "content[]/flags",
    ],
    remedy: "write it as Claude.ai does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    file.each_element(found, |found, TranscriptRecord { line, value }| {
        found.envelope(&CONVERSATION_FORM, &value, &["chat_messages"]);
        let thread = filled(&value, "uuid").ok_or("uuid: missing; export it again")?;
        let messages = value.get("chat_messages").and_then(Value::as_array);
        for message in messages.ok_or("chat_messages: missing or no list; export it again")? {
            if let Err(reason) = said(file, found, line, &thread, message.clone()) {
                found.reject_part(&file.origin(), line, message, reason);
            }
        }
        Ok(())
    })
}

fn said(
    file: &TranscriptFile<'_>,
    found: &mut Findings,
    line: u64,
    thread: &str,
    message: Value,
) -> Result<(), String> {
    let (message, odd) = FORM.read::<Value>(message)?;
    let role = match text(&message, "sender").unwrap_or_default() {
        "human" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "" => return Err("sender: missing; export it again".to_owned()),
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let list = |name: &str| message.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    (0..list("attachments") + list("files")).for_each(|_| found.not_talk(kind::IMAGE));
    let mut words = words(message.get("content").unwrap_or(&Value::Null), role, found);
    if words.is_empty() && !has_blocks(&message) {
        add(&mut words, text(&message, "text").unwrap_or_default(), role, found);
    }
    if words.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let said = TranscriptMessage {
        id: filled(&message, "uuid"),
        ..file.message(thread, role, time(&message, "created_at")?, words)
    };
    found.said(line, said, &odd)
}

/// Whether a message has blocks. Exports of 2023 have `text` alone; in later ones it repeats the blocks, with places
/// where tools were called.
fn has_blocks(message: &Value) -> bool {
    message.get("content").and_then(Value::as_array).is_some_and(|blocks| !blocks.is_empty())
}

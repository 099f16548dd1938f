//! Open WebUI's export: a list of chats, each a tree of messages.
//!
//! In: the exported JSON file. Out: what was typed and answered, by the message's id. The kept branch ends at
//! `currentId`. Reasoning and calls of tools stand inside an answer as `<details>`: they are taken out and counted.

use serde_json::Value;

use super::{
    content_blocks::{add, words},
    findings::{Findings, kind},
    kept_branch::MessageTree,
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, unix_time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, NUMBER, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// Open WebUI.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "open-webui",
    speaker: "Assistant",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".json"),
    has_head: |head| {
        head.trim_start().starts_with('[') && names(head, "chat") && names(head, "history") && names(head, "messages")
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "open-webui",
    about: "Open WebUI: the exported JSON of chats",
    standard_input: false,
    only: None,
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of a chat around its history. Its list of messages repeats the kept branch.
const CHAT_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &[
        "title",
        "chat/title",
        "chat/models",
        "chat/params",
        "chat/options",
        "chat/messages",
        "chat/tags",
        "chat/files",
        "chat/system",
        "meta",
    ],
    remedy: "write it as Open WebUI does",
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[("id", TEXT), ("role", TEXT), ("content", TEXT | LIST), ("content[]/text", TEXT), ("timestamp", NUMBER)],
    other: &[("parentId", TEXT), ("model", TEXT), ("files", LIST)],
    known: &[
        "childrenIds",
        "files[]",
        "models",
        "modelName",
        "modelIdx",
        "userContext",
        "done",
        "info",
        "usage",
        "sources",
        "statusHistory",
        "followUps",
        "lastSentence",
        "originalContent",
        "annotation",
        "feedbackId",
        "code_executions",
        "embeds",
        "output",
        "merged",
        "error",
        "content[]/image_url",
    ],
    remedy: "write it as Open WebUI does",
};

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    file.each_element(found, |found, TranscriptRecord { line, value }| {
        let mut around = value.clone();
        if let Some(chat) = around.get_mut("chat").and_then(Value::as_object_mut) {
            chat.remove("history");
        }
        found.envelope(&CHAT_FORM, &around, &[]);
        let history = value.get("chat").and_then(|chat| chat.get("history")).unwrap_or(&Value::Null);
        let messages = history.get("messages").and_then(Value::as_object);
        let messages = messages.ok_or("chat.history.messages: missing or no object; export it again")?;
        let thread = filled(&value, "id").or_else(|| messages.keys().next().cloned()).unwrap_or_default();
        let mut tree = MessageTree::default();
        messages.iter().for_each(|(id, message)| tree.add(id, text(message, "parentId")));
        let given_up = text(history, "currentId").map(|leaf| tree.given_up(leaf)).unwrap_or_default();
        for (id, message) in messages {
            let is_kept = !given_up.contains(id.as_str());
            if let Err(reason) = said(file, found, line, (&thread, id, is_kept), message.clone()) {
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
    (thread, id, is_kept): (&str, &str, bool),
    message: Value,
) -> Result<(), String> {
    let (message, odd) = FORM.read::<Value>(message)?;
    let role = match text(&message, "role").unwrap_or_default() {
        "user" => TranscriptRole::Person,
        "assistant" => TranscriptRole::Assistant,
        "system" => {
            found.not_talk(kind::SYSTEM);
            return Ok(());
        }
        "tool" => {
            found.not_talk(kind::TOOL_OUTPUT);
            return Ok(());
        }
        "" => return Err("role: missing; export it again".to_owned()),
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let before = found.skipped.len();
    let files = message.get("files").and_then(Value::as_array).map_or(0, Vec::len);
    (0..files).for_each(|_| found.not_talk(kind::IMAGE));
    let mut said = String::new();
    match text(&message, "content") {
        Some(content) if role == TranscriptRole::Assistant => {
            add(&mut said, &without_details(content, found), role, found);
        }
        Some(content) => add(&mut said, content, role, found),
        None => said = words(message.get("content").unwrap_or(&Value::Null), role, found),
    }
    if said.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let message = TranscriptMessage {
        id: Some(filled(&message, "id").unwrap_or_else(|| id.to_owned())),
        model: filled(&message, "model"),
        is_on_kept_branch: is_kept,
        ..file.message(thread, role, unix_time(message.get("timestamp"), "timestamp")?, said)
    };
    found.said(line, message, &odd)
}

/// An answer without its details of reasoning and of tools, whatever details stand inside them. Others are the model's
/// own words. Where some have no end, one may be named in the words of another: then each ends at the next end.
fn without_details(content: &str, found: &mut Findings) -> String {
    const KINDS: [(&str, &str); 3] = [
        (" type=\"reasoning\"", kind::THINKING),
        (" type=\"tool_calls\"", kind::TOOL_CALL),
        (" type=\"code_interpreter\"", kind::TOOL_CALL),
    ];
    const BEGIN: &str = "<details";
    const END: &str = "</details>";
    let is_nested = content.matches(BEGIN).count() == content.matches(END).count();
    let (mut words, mut from, mut depth) = (String::new(), Some(0), 0_usize);
    for (at, _) in content.match_indices('<') {
        let rest = content.get(at..).unwrap_or_default();
        match (from, rest.strip_prefix(BEGIN), rest.starts_with(END)) {
            (Some(kept), Some(rest), _) => {
                if let Some((_, kind)) = KINDS.iter().find(|(name, _)| rest.starts_with(name)) {
                    words.push_str(content.get(kept..at).unwrap_or_default());
                    found.not_talk(kind);
                    (from, depth) = (None, 1);
                }
            }
            (None, Some(_), _) => depth += usize::from(is_nested),
            (None, None, true) => {
                depth -= 1;
                from = (depth == 0).then_some(at + END.len());
            }
            _ => {}
        }
    }
    words.push_str(from.and_then(|kept| content.get(kept..)).unwrap_or_default());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_taken_out_with_what_stands_inside_them() {
        let inner = "<details><summary>More</summary>b</details>";
        for (content, words) in [
            (format!("<details type=\"reasoning\" done=\"true\">a{inner}c</details>\nSix knots."), "\nSix knots."),
            (format!("Six{inner}."), "Six<details><summary>More</summary>b</details>."),
            (
                "<details type=\"reasoning\">I could use a <details> block.</details>\nSix knots.".to_owned(),
                "\nSix knots.",
            ),
            ("Six.<details type=\"tool_calls\">a <details type=\"reasoning\">b</details>".to_owned(), "Six."),
        ] {
            assert_eq!(without_details(&content, &mut Findings::default()), words, "{content}");
        }
    }
}

//! Renders chat items as lines, for the tests of the platforms' readers.
//!
//! In: a reader, or its items. Out: one line per item, such as `7 2024-05-01T10:00:00Z Ann: hi | reply=5`, or `skip
//! service message`, or `reject result.json:12: not JSON`. Absent fields are not written.

use super::{
    chat_item::{ChatItem, ChatMessage},
    chat_reader::ChatReader,
};

/// Every item of a reader as a line. The folder of a dead letter's file is left out.
pub(crate) fn lines_of(reader: &mut dyn ChatReader) -> Vec<String> {
    items_of(reader).iter().map(line_of).collect()
}

/// Every item of a reader. Checks that the reader stays at its end.
pub(crate) fn items_of(reader: &mut dyn ChatReader) -> Vec<ChatItem> {
    let mut items = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        items.push(item);
    }
    assert_eq!(reader.next().unwrap(), None, "the end is final");
    items
}

/// An item as a line.
pub(super) fn line_of(item: &ChatItem) -> String {
    match item {
        ChatItem::Message(message) => line_of_message(message),
        ChatItem::Transcript { project, author, message } => {
            let (time, text) = (message.time, &message.text);
            format!("{} {time} {} in {}/{}: {text}", message.key(), author.name, project.name, message.thread)
        }
        ChatItem::Deletion { id, version, .. } => format!("deletion {id} {version:?}"),
        ChatItem::Skip(skip) => format!("skip {}", skip.name()),
        ChatItem::Reject { letter, .. } => {
            let place = letter.origin.rsplit('/').next().unwrap_or_default();
            format!("reject {place}: {}", letter.reason)
        }
    }
}

fn line_of_message(message: &ChatMessage) -> String {
    let ChatMessage { id, version, author, text, time, thread, reply_to, attachments, .. } = message;
    let bot = if author.bot { " (bot)" } else { "" };
    let mut line = format!("{id} {time} {}{bot}: {text}", author.name);
    let mut add = |part: String| line.push_str(&format!(" | {part}"));
    if *version > 0 {
        add(format!("v={version}"));
    }
    if let Some(thread) = thread {
        add(format!("thread={thread}"));
    }
    if let Some(reply_to) = reply_to {
        add(format!("reply={reply_to}"));
    }
    for attachment in attachments {
        let url = attachment.url.as_ref().map(|url| format!(" <{url}>")).unwrap_or_default();
        let caption = attachment.caption.as_deref().unwrap_or_default();
        add(format!("{}: {caption}{url}", attachment.kind.as_deref().unwrap_or_default()));
    }
    line
}

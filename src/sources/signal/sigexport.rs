//! Reads what sigexport writes for one chat: Markdown (`chat.md`) or one JSON object per line (`data.json`).
//!
//! In: lines. Out: items. Both have local times without a zone, names without ids, and quotes as text. So an id is made
//! from the sender and the time, and a quote is an answer to the latest message with the quoted words. Reactions are
//! left out. Only `data.json` has milliseconds and edits.

use std::sync::Arc;

use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::Value;

use super::quote_index::SignalQuoteIndex;
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, LIST, OBJECT, PositionalIds, RecordForm, SkipReason, TEXT, TRUTH,
        shared_file,
    },
    lines::MAX_MESSAGE_BYTES,
    zone::Zone,
};
use types::model::{Attachment, DeadLetter, EventTime};

/// The sender's name if the exporter knows no sender.
const NO_SENDER: &str = "No-Sender";

/// A chat that is being read.
pub(super) struct SigexportChat {
    conversation: Arc<Conversation>,
    /// The file's name in messages to the user.
    origin: String,
    ids: PositionalIds,
    quotes: SignalQuoteIndex,
    /// The quotation that was cut off from the previous message.
    pub(super) cut: Option<String>,
    /// The Markdown message whose lines are still being read.
    begun: Option<SigexportOpenMessage>,
}

struct SigexportOpenMessage {
    line: u64,
    time: String,
    sender: String,
    text: String,
}

/// The fields of a line of `data.json`.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[("date", TEXT), ("sender", TEXT), ("body", TEXT)],
    other: &[
        ("quote", TEXT),
        ("attachments", LIST),
        ("attachments[]", OBJECT),
        ("attachments[]/name", TEXT),
        ("attachments[]/missing_kind", TEXT),
        ("deleted", TRUTH),
        ("call", TRUTH),
        ("edits", LIST),
        ("sticker", OBJECT | TEXT),
    ],
    known: &[
        "edits",
        "reactions",
        "attachments[]/path",
        "attachments[]/missing_kind",
        "attachments[]/content_type",
        "attachments[]/contentType",
        "sticker/emoji",
        "quote",
    ],
    remedy: "write it as the exporter does",
};

/// A line of `data.json`.
#[derive(Deserialize)]
pub(super) struct SigexportRecord {
    date: String,
    #[serde(default)]
    sender: Option<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    quote: Option<String>,
    #[serde(default)]
    sticker: Value,
    #[serde(default)]
    attachments: Vec<SigexportFile>,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    call: bool,
    /// Earlier versions, oldest first.
    #[serde(default)]
    edits: Vec<Value>,
}

#[derive(Deserialize)]
struct SigexportFile {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    missing_kind: Option<String>,
}

/// A message, from either form.
struct SigexportMessage {
    line: u64,
    time: String,
    sender: String,
    text: String,
    quote: String,
    attachments: Vec<Attachment>,
    deleted: bool,
    call: bool,
    version: u64,
}

/// Whether a line begins a Markdown message.
pub(super) fn begins_message(line: &str) -> bool {
    head(line).is_some()
}

/// `[2024-05-01 10:00:00] Name: text`: the time, the name and the text.
fn head(line: &str) -> Option<(&str, &str, &str)> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let digits = |range: std::ops::Range<usize>| time.get(range).is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    let date =
        digits(0..4) && digits(5..7) && digits(8..10) && time.get(4..5) == Some("-") && time.get(7..8) == Some("-");
    let clock = time.get(10..)?.trim_start_matches(',').strip_prefix(' ')?;
    if !date || !matches!(clock.len(), 5 | 8) || !clock.bytes().all(|b| b.is_ascii_digit() || b == b':') {
        return None;
    }
    let (name, text) = rest.split_once(':')?;
    Some((time, name, text.strip_prefix(' ').unwrap_or(text)))
}

impl SigexportChat {
    pub(super) fn new(conversation: Arc<Conversation>, origin: String) -> Self {
        Self {
            conversation,
            origin,
            ids: PositionalIds::default(),
            quotes: SignalQuoteIndex::default(),
            cut: None,
            begun: None,
        }
    }

    /// Takes a line of Markdown. Returns the previous message once it is complete.
    pub(super) fn markdown(&mut self, number: u64, line: &str, zone: &Zone) -> Option<ChatItem> {
        if let Some((time, sender, text)) = head(line) {
            let done = self.end(zone);
            let time = time.replacen(", ", "T", 1).replacen(' ', "T", 1);
            self.begun =
                Some(SigexportOpenMessage { line: number, time, sender: sender.to_owned(), text: text.to_owned() });
            return done;
        }
        match &mut self.begun {
            Some(begun) if begun.text.len() <= MAX_MESSAGE_BYTES => {
                begun.text.push('\n');
                begun.text.push_str(line);
                None
            }
            Some(_) => None,
            None if line.trim().is_empty() => None,
            None => Some(self.reject(number, "it comes before the first message; remove it".to_owned(), line)),
        }
    }

    /// Ends the current Markdown message and returns it.
    pub(super) fn end(&mut self, zone: &Zone) -> Option<ChatItem> {
        let SigexportOpenMessage { line, time, sender, text } = self.begun.take()?;
        let deleted = text.trim() == "(This message was deleted)";
        let (quote, text) = split_quote(&text);
        let text = without_reactions(&text);
        let (text, attachments) = split_files(&text);
        let call = attachments.is_empty() && is_call(text.trim());
        let found = SigexportMessage { line, time, sender, text, quote, attachments, deleted, call, version: 0 };
        Some(self.item(found, zone))
    }

    /// A line of `data.json`.
    pub(super) fn record(&mut self, line: u64, record: SigexportRecord, zone: &Zone) -> ChatItem {
        let mut attachments: Vec<Attachment> = record.attachments.iter().map(SigexportFile::attachment).collect();
        if let Value::Object(sticker) = &record.sticker {
            let emoji = sticker.get("emoji").and_then(Value::as_str).filter(|emoji| !emoji.is_empty());
            attachments.push(labelled("sticker", emoji.unwrap_or("sticker")));
        } else if let Some(emoji) = record.sticker.as_str().filter(|emoji| !emoji.is_empty()) {
            attachments.push(labelled("sticker", emoji));
        }
        let text = record.body.unwrap_or_default();
        let quote = record.quote.map(|quote| split_quote(&quote).0).unwrap_or_default();
        let call = record.call || (attachments.is_empty() && is_call(text.trim()));
        let found = SigexportMessage {
            line,
            time: record.date,
            sender: record.sender.unwrap_or_else(|| NO_SENDER.to_owned()),
            text,
            quote,
            attachments,
            deleted: record.deleted,
            call,
            version: record.edits.len() as u64,
        };
        self.item(found, zone)
    }

    fn item(&mut self, found: SigexportMessage, zone: &Zone) -> ChatItem {
        let text = found.text.trim();
        let Some((written, time)) = moment(&found.time, zone) else {
            let reason = format!("{:?} is not a date and time; correct it", found.time);
            return self.reject(found.line, reason, text);
        };
        let is_empty = text.is_empty() && found.attachments.is_empty();
        if found.call || (found.sender == NO_SENDER && is_empty && !found.deleted) {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        }
        let id = self.ids.id(&written, &found.sender);
        let conversation = Arc::clone(&self.conversation);
        if found.deleted {
            return ChatItem::Deletion { conversation, id, version: None };
        }
        if is_empty {
            return ChatItem::Skip(SkipReason::Empty);
        }
        let reply_to = self.quotes.find(&found.quote);
        self.cut = Some(found.quote);
        self.quotes.add(text, &id);
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id,
            version: found.version,
            author: Account { id: found.sender.clone(), name: found.sender, handle: None, bot: false },
            text: text.to_owned(),
            time,
            thread: None,
            reply_to,
            attachments: found.attachments,
            mentions: Vec::new(),
        }))
    }

    /// A record that cannot be read.
    pub(super) fn reject(&self, line: u64, reason: String, payload: &str) -> ChatItem {
        let letter = DeadLetter::new(format!("{}:{line}", self.origin), reason, payload.as_bytes());
        ChatItem::Reject { conversation: Some(Arc::clone(&self.conversation)), letter }
    }
}

impl SigexportFile {
    fn attachment(&self) -> Attachment {
        match (&self.missing_kind, self.name.as_deref().filter(|name| !name.is_empty())) {
            (_, Some(name)) => shared_file(name, None),
            (Some(kind), None) => missing(kind),
            (None, None) => missing("attachment"),
        }
    }
}

fn missing(kind: &str) -> Attachment {
    let kind = if kind == "attachment" { "file" } else { kind };
    labelled(kind, kind)
}

fn labelled(kind: &str, caption: &str) -> Attachment {
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption.to_owned()), url: None }
}

/// The local time in digits, as used in ids, and the moment.
fn moment(time: &str, zone: &Zone) -> Option<(String, EventTime)> {
    if let Ok(time) = EventTime::read(time) {
        return Some((time.local().to_string(), time));
    }
    let local: DateTime = time.parse().ok()?;
    Some((local.to_string(), zone.moment(local)?))
}

/// The quoted words at the start of a text, and the text after them.
fn split_quote(text: &str) -> (String, String) {
    let start = text.trim_start_matches(['\n', ' ']);
    if !start.starts_with("> ") || !text.starts_with('\n') {
        return (String::new(), text.to_owned());
    }
    let mut quote = Vec::new();
    let mut lines = start.lines();
    let mut rest = Vec::new();
    for line in lines.by_ref() {
        match line.strip_prefix('>') {
            Some(quoted) => quote.push(quoted.strip_prefix(' ').unwrap_or(quoted)),
            None => {
                rest.push(line);
                break;
            }
        }
    }
    rest.extend(lines);
    (quote.join("\n"), rest.join("\n"))
}

/// A text without the line `(- Jim: 👍 -)` of its reactions.
fn without_reactions(text: &str) -> String {
    let Some((before, from)) = text.rsplit_once("\n(- ") else { return text.to_owned() };
    // If the line has no end mark, it and the lines below are words.
    let line = from.lines().next().unwrap_or_default();
    let Some((reactions, _)) = line.split_once(" -)") else { return text.to_owned() };
    let behind = from.get(reactions.len() + " -)".len()..).unwrap_or_default();
    format!("{before}\n{behind}")
}

/// The words of a text, and the files and stickers that are linked after them.
fn split_files(text: &str) -> (String, Vec<Attachment>) {
    let mut rest = text.trim_end();
    let mut attachments = Vec::new();
    while let Some((before, attachment)) = linked_file(rest).or_else(|| not_exported(rest)).or_else(|| sticker(rest)) {
        attachments.push(attachment);
        rest = before.trim_end();
    }
    attachments.reverse();
    (rest.to_owned(), attachments)
}

/// `![name](./media/name)` or `[label](../exported_stickers/…)` at the end.
fn linked_file(text: &str) -> Option<(&str, Attachment)> {
    let (before, path) = text.strip_suffix(')')?.rsplit_once("](")?;
    let is_sticker = path.starts_with("../exported_stickers/");
    if !is_sticker && !path.starts_with("./media/") && !path.starts_with("media/") {
        return None;
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    let before = before.strip_suffix(file).or_else(|| before.rfind('[').and_then(|at| before.get(..=at)))?;
    let label = text.get(before.len()..)?.split_once("](")?.0;
    let before = before.strip_suffix('[')?;
    let attachment = if is_sticker {
        labelled("sticker", if label.is_empty() { "sticker" } else { label })
    } else {
        shared_file(file, None)
    };
    Some((before.strip_suffix('!').unwrap_or(before), attachment))
}

/// `(media not exported)` at the end.
fn not_exported(text: &str) -> Option<(&str, Attachment)> {
    let before = text.strip_suffix(" not exported)")?;
    let kind = ["media", "attachment"].into_iter().find(|kind| before.ends_with(&format!("({kind}")))?;
    Some((before.get(..before.len() - kind.len() - 1)?, missing(kind)))
}

/// `(( 👍 ))` on a separate line at the end.
fn sticker(text: &str) -> Option<(&str, Attachment)> {
    let start = text.rfind("\n(( ")?;
    let label = text.get(start + 4..)?.strip_suffix(" ))")?;
    Some((text.get(..start)?, labelled("sticker", label)))
}

/// `Outgoing voice call (unanswered)` and the like, which the Markdown does not distinguish from words.
fn is_call(text: &str) -> bool {
    let (call, detail) = text.split_once(" (").unwrap_or((text, ")"));
    let mut words = call.split(' ');
    let direction = words.next().is_some_and(|w| matches!(w, "Incoming" | "Outgoing" | "Missed"));
    let is_kind = |word: &str| matches!(word, "voice" | "video" | "audio" | "group" | "adhoc" | "direct");
    let rest: Vec<&str> = words.collect();
    let call = matches!(rest[..], ["call"]) || matches!(rest[..], [kind, "call"] if is_kind(kind));
    direction && call && detail.ends_with(')') && !detail.contains('\n')
}

//! Chooses among the files that Signal's programs write, and reads them one after another.
//!
//! In: a file, a folder or an archive. Out: items in the files' order. If a folder of sigexport has both, its
//! `data.json` is read and its `chat.md`, which holds less, is not.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use serde_json::Value;

use super::{
    envelope,
    sigexport::{self, SigexportChat, SigexportRecord, begins_message},
    signal_cli::SignalCliReader,
};
use crate::{
    chat::{
        ChatItem, ChatReader, Conversation, ConversationPrivacy, ExportTree, FileSample, JsonElement, JsonElements,
        SkipReason, UnreadCounts, has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    lines::{StreamLine, StreamLines},
    trimmed_text::TrimmedText,
    turn_source::SourceProgress,
    zone::{Zone, zone_notice},
};
use types::{config::SourceSettings, lone_surrogates::replace_lone_surrogates, model::DeadLetter};

/// Signal's exports.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "signal",
    about: "Signal: a folder or file of sigexport, or JSON of signal-cli",
    standard_input: false,
    only: Some("chats"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(SignalReader::open(settings)?))),
};

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return kind_of(&sample.name(), sample.head()).is_some();
    }
    sample.entries().filter(|e| is_chat_file(e)).take(5).any(|e| kind_of(e, &sample.head_of(e)).is_some())
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SignalFileKind {
    /// `chat.md`.
    Markdown,
    /// `data.json`: one object per line, with local times.
    Exported,
    /// What signal-cli received: one envelope per line.
    Lines,
    /// The same, as an array.
    Array,
}

fn kind_of(name: &str, head: &str) -> Option<SignalFileKind> {
    let lower = name.to_lowercase();
    let first = head.trim_start();
    if lower.ends_with(".md") || lower.ends_with(".txt") {
        let begun = head.lines().find(|line| !line.trim().is_empty()).filter(|line| begins_message(line))?;
        // WhatsApp writes `[2024-03-05 14:05:01] Name: text` on some phones.
        let is_text = lower.ends_with(".txt");
        let own = begun.contains(", ") && begun.find(", ") < begun.find(']') && begun.find(']') == Some(18);
        return (!is_text || own || (begun.ends_with("  ") && !lower.contains("whatsapp")))
            .then_some(SignalFileKind::Markdown);
    }
    let received = has_json_keys(head, &["envelope"])
        && ["dataMessage", "syncMessage", "editMessage", "sourceNumber", "receiptMessage", "typingMessage"]
            .iter()
            .any(|key| head.contains(&format!("\"{key}\"")));
    let exported = has_json_keys(head, &["date", "sender", "body", "quote", "reactions"]);
    match first.starts_with('[') {
        true => received.then_some(SignalFileKind::Array),
        false if received => Some(SignalFileKind::Lines),
        false => exported.then_some(SignalFileKind::Exported),
    }
}

/// Whether an entry of a folder may be a chat. The folder is checked because stickers have a `data.json` too.
fn is_chat_file(entry: &str) -> bool {
    let mut parts = entry.rsplit('/');
    let name = parts.next().unwrap_or(entry).to_lowercase();
    let in_media = parts.any(|folder| folder == "media" || folder == "exported_stickers");
    let is_log = name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".ndjson");
    !in_media && (is_log || name.ends_with(".md") || name.ends_with(".txt"))
}

/// Files that are read one after another.
pub(super) struct SignalReader {
    path: PathBuf,
    tree: ExportTree,
    zone: Zone,
    zone_setting: String,
    files: VecDeque<SignalExportFile>,
    /// What is known from signal-cli's records, which holds for all files.
    received: SignalCliReader,
    open: Option<SignalOpenFile>,
    found: VecDeque<ChatItem>,
    total_bytes: u64,
    done_bytes: u64,
    has_local_times: bool,
    unread: UnreadCounts,
    trimmed: TrimmedText,
}

struct SignalExportFile {
    entry: String,
    bytes: u64,
    kind: SignalFileKind,
    privacy: ConversationPrivacy,
}

struct SignalOpenFile {
    file: SignalExportFile,
    origin: String,
    exported: SigexportChat,
    input: SignalInput,
}

enum SignalInput {
    Lines(StreamLines),
    Elements(JsonElements),
}

impl SignalReader {
    /// Opens an export.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read, or nothing in it is Signal's.
    pub(super) fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let path = settings.path.clone();
        let zone = Zone::parse(&settings.zone)?;
        let tree = ExportTree::open(&path)?;
        let files = files(&tree)?;
        if files.is_empty() {
            return Err(SourceError::Format {
                path,
                line: 1,
                column: 1,
                problem: "neither a chat of sigexport nor JSON of signal-cli".to_owned(),
                remedy: "run `sigexport FOLDER` on the computer that has Signal's desktop app, and name the folder",
            });
        }
        let total_bytes = files.iter().map(|file| file.bytes).sum();
        Ok(Self {
            path,
            tree,
            zone,
            zone_setting: settings.zone.clone(),
            has_local_times: files
                .iter()
                .any(|file| matches!(file.kind, SignalFileKind::Markdown | SignalFileKind::Exported)),
            files: files.into(),
            received: SignalCliReader::default(),
            unread: UnreadCounts::default(),
            trimmed: TrimmedText::default(),
            open: None,
            found: VecDeque::new(),
            total_bytes,
            done_bytes: 0,
        })
    }

    /// Reads a record, if necessary from the next file; returns false at the end.
    fn read(&mut self) -> Result<bool, SourceError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.files.pop_front() {
                Some(file) => self.open_file(file)?,
                None => return Ok(false),
            },
        };
        let entry = &open.file.entry;
        let more = match &mut open.input {
            SignalInput::Lines(lines) => {
                let line = lines.next().map_err(|e| self.tree.unreadable(entry, lines.number(), e))?;
                let item = match (&line, open.file.kind) {
                    (Some(line), SignalFileKind::Markdown) => {
                        open.exported.markdown(line.number, &String::from_utf8_lossy(&line.bytes), &self.zone)
                    }
                    (Some(line), kind) => line_item(
                        line,
                        kind,
                        &mut self.received,
                        &mut open.exported,
                        &open.origin,
                        &self.zone,
                        &mut self.unread,
                    ),
                    (None, _) => open.exported.end(&self.zone),
                };
                self.found.extend(item);
                if let Some(quotation) = open.exported.cut.take() {
                    self.trimmed.add("quotation", &quotation);
                }
                line.is_some()
            }
            SignalInput::Elements(elements) => {
                let element = elements.next().map_err(|e| self.tree.unreadable(entry, elements.line(), e))?;
                self.found.extend(
                    element
                        .as_ref()
                        .map(|e| element_item(e, &mut self.received, &open.origin, &self.zone, &mut self.unread)),
                );
                element.is_some()
            }
        };
        if more {
            self.open = Some(open);
        } else {
            self.done_bytes += open.file.bytes;
        }
        Ok(true)
    }

    fn open_file(&self, file: SignalExportFile) -> Result<SignalOpenFile, SourceError> {
        let input = self.tree.read(&file.entry)?;
        let input = match file.kind {
            SignalFileKind::Array => SignalInput::Elements(JsonElements::new(input, &["*"])),
            SignalFileKind::Markdown => SignalInput::Lines(StreamLines::of_text(input)),
            SignalFileKind::Exported | SignalFileKind::Lines => SignalInput::Lines(StreamLines::new(input)),
        };
        let name = chat_name(&self.tree, &file.entry);
        let conversation = Conversation { workspace: None, id: name.clone(), name, privacy: file.privacy };
        let origin = self.tree.origin(&file.entry);
        Ok(SignalOpenFile { exported: SigexportChat::new(Arc::new(conversation), origin.clone()), file, origin, input })
    }
}

/// The item of a line of JSON from either program.
fn line_item(
    line: &StreamLine,
    kind: SignalFileKind,
    received: &mut SignalCliReader,
    exported: &mut SigexportChat,
    origin: &str,
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> Option<ChatItem> {
    if line.bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let payload = || String::from_utf8_lossy(&line.bytes).into_owned();
    let place = format!("{origin}:{}", line.number);
    // The records of signal-cli are of many chats.
    let damaged = |exported: &SigexportChat, reason: String| match kind {
        SignalFileKind::Lines => {
            ChatItem::Reject { conversation: None, letter: DeadLetter::new(place.clone(), reason, &line.bytes) }
        }
        _ => exported.reject(line.number, reason, &payload()),
    };
    if let Some(length) = line.too_long {
        let reason = format!("the line has {length} bytes, more than a record may have; leave it out");
        return Some(damaged(exported, reason));
    }
    let advice = |e: serde_json::Error| format!("{e}; write one JSON object per line");
    let value: Value = match serde_json::from_slice(&replace_lone_surrogates(&line.bytes)) {
        Ok(value) => value,
        Err(e) => return Some(damaged(exported, advice(e))),
    };
    if value.get("date").is_some() && value.get("envelope").is_none() {
        let read = sigexport::FORM.read::<SigexportRecord>(value);
        let read = read.and_then(|(record, odd)| odd.judge(exported.record(line.number, record, zone), unread));
        return Some(read.unwrap_or_else(|reason| exported.reject(line.number, reason, &payload())));
    }
    Some(record_item(value, received, place, &line.bytes, zone, unread))
}

/// The item of a record of signal-cli.
fn record_item(
    value: Value,
    received: &mut SignalCliReader,
    origin: String,
    payload: &[u8],
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> ChatItem {
    let record = envelope::innermost(value);
    let of_group = envelope::is_of_group(&record);
    let read = envelope::FORM.read::<envelope::SignalEnvelopeLine>(record);
    let read = read.and_then(|(record, odd)| odd.judge(received.item(record, origin.clone(), payload, zone), unread));
    // A record of a group without words says that the group has changed.
    let read = read.map(|item| match item {
        ChatItem::Skip(SkipReason::Empty) if of_group => ChatItem::Skip(SkipReason::ServiceMessage),
        item => item,
    });
    read.unwrap_or_else(|reason| {
        let record = serde_json::from_slice(&replace_lone_surrogates(payload)).ok();
        let conversation = record.and_then(|record| received.conversation_of_damaged(record));
        ChatItem::Reject { conversation, letter: DeadLetter::new(origin, reason, payload) }
    })
}

/// The item of an element of an array of envelopes.
fn element_item(
    element: &JsonElement,
    received: &mut SignalCliReader,
    origin: &str,
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> ChatItem {
    match element.parse::<Value>(origin) {
        Ok(value) => record_item(value, received, format!("{origin}:{}", element.line), &element.bytes, zone, unread),
        Err(letter) => ChatItem::Reject { conversation: None, letter },
    }
}

impl ChatReader for SignalReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.found.pop_front() {
                return Ok(Some(item));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    fn describe(&self) -> String {
        format!("Signal from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        let open = self.open.as_ref().map_or(0, |open| match &open.input {
            SignalInput::Lines(lines) => lines.read_bytes(),
            SignalInput::Elements(elements) => elements.read_bytes(),
        });
        SourceProgress { done: self.done_bytes + open, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn trimmed(&self) -> TrimmedText {
        self.trimmed.clone()
    }

    fn notice(&self) -> Option<String> {
        self.has_local_times.then(|| zone_notice(&self.path, &self.zone_setting))
    }
}

/// The files that are read. A folder of one chat is the user's own choice. A folder of all chats is an account, whose
/// chats are read only if they are named.
fn files(tree: &ExportTree) -> Result<Vec<SignalExportFile>, SourceError> {
    let mut by_folder: BTreeMap<&str, Vec<SignalExportFile>> = BTreeMap::new();
    for entry in tree.entries().iter().filter(|entry| tree.is_file() || is_chat_file(&entry.name)) {
        let Some(kind) = kind_of_entry(tree, &entry.name)? else { continue };
        let folder = entry.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let file = SignalExportFile {
            entry: entry.name.clone(),
            bytes: entry.bytes,
            kind,
            privacy: ConversationPrivacy::Open,
        };
        by_folder.entry(folder).or_default().push(file);
    }
    let is_account = by_folder.len() > 1;
    let mut files = Vec::new();
    for (_, mut in_folder) in by_folder {
        let is = |file: &SignalExportFile, name: &str| file.entry.rsplit('/').next() == Some(name);
        if in_folder.iter().any(|file| is(file, "data.json")) {
            in_folder.retain(|file| !is(file, "chat.md") && !is(file, "index.md"));
        }
        files.extend(in_folder);
    }
    for file in &mut files {
        file.privacy = if is_account { ConversationPrivacy::Direct } else { ConversationPrivacy::Open };
    }
    Ok(files)
}

fn kind_of_entry(tree: &ExportTree, entry: &str) -> Result<Option<SignalFileKind>, SourceError> {
    let mut lines = StreamLines::new(tree.read(entry)?);
    let mut head = String::new();
    for _ in 0..20 {
        match lines.next().map_err(|e| tree.unreadable(entry, lines.number(), e))? {
            Some(line) => {
                head.push_str(&String::from_utf8_lossy(&line.bytes));
                head.push('\n');
            }
            None => break,
        }
    }
    // The user named this file, so it is read if it begins like a message or like JSON, whatever its name.
    let named = || {
        let first = head.trim_start();
        let begins = head.lines().find(|line| !line.trim().is_empty()).is_some_and(begins_message);
        match first.chars().next() {
            _ if begins => Some(SignalFileKind::Markdown),
            Some('[') if first.contains("\"envelope\"") => Some(SignalFileKind::Array),
            Some('{') if first.contains("\"envelope\"") => Some(SignalFileKind::Lines),
            Some('{') => Some(SignalFileKind::Exported),
            _ => None,
        }
    };
    Ok(kind_of(entry, &head).or_else(|| tree.is_file().then(named).flatten()))
}

/// The name of a chat: the folder's name. For a single file, the file's own name, or the name of the folder that
/// contains it.
fn chat_name(tree: &ExportTree, entry: &str) -> String {
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let name = entry.rsplit('/').next().unwrap_or(entry);
    let is_general = matches!(name, "chat.md" | "index.md" | "data.json");
    let path = tree.path();
    let folder = if tree.is_file() { path.parent() } else { Some(path) };
    let around = || folder.and_then(|f| f.file_name()).map(|n| n.to_string_lossy().into_owned());
    let found = match entry.rsplit_once('/') {
        Some((folder, _)) if is_general => folder.rsplit('/').next().map(str::to_owned),
        None if is_general => around(),
        _ => Some(stem(name)),
    };
    found.filter(|name| !name.is_empty()).unwrap_or_else(|| stem(name))
}

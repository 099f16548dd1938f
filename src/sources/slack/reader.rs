//! Reads Slack's export, message by message.
//!
//! In: the files of an export. Out: its messages, conversation by conversation and day by day, in the files' order:
//! Slack writes each day oldest first. In slackdump's dumps a thread's replies follow its root. If there are two copies
//! of a message, the one that was edited later counts. Holds one message at a time, and the ids of one day.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{
    directory::{SlackDirectory, split},
    message::{FORM as MESSAGE, SlackMessage, item},
};
use crate::{
    SourceError,
    chat::{
        ChatItem, ChatReader, Conversation, ExportTree, FileSample, JsonElement, JsonFileItem, JsonFiles, SkipReason,
        UnreadCounts, UnreadFields, has_json_keys,
    },
    format::{FormatOpener, SourceFormat},
    turn_source::SourceProgress,
    zone::Zone,
};
use types::config::SourceSettings;

/// Slack.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "slack",
    about: "Slack's export, or slackdump's: a zip archive or a directory",
    standard_input: false,
    only: Some("conversations"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(SlackReader::open(settings)?))),
};

/// The paths of the messages in a day's file, and in a conversation that slackdump dumped.
const MESSAGES: &[&str] = &["*", "messages/*", "channel_id", "name"];

/// A reader of an export.
struct SlackReader {
    files: JsonFiles,
    /// By the number of their file.
    conversations: Vec<Arc<Conversation>>,
    directory: SlackDirectory,
    zone: Zone,
    /// The versions of the messages in the file that is read, by id.
    versions: HashMap<String, u64>,
    /// Items to be returned before the next message is read.
    ready: VecDeque<ChatItem>,
    unread: UnreadCounts,
}

/// The position of a message in the export.
struct SlackMessagePosition<'e> {
    element: &'e JsonElement,
    /// The name of its file in messages to the user.
    origin: String,
    conversation: Arc<Conversation>,
}

impl SlackMessagePosition<'_> {
    fn reject(&self, reason: String) -> ChatItem {
        let letter = self.element.reject(&self.origin, reason);
        ChatItem::Reject { conversation: Some(self.conversation.clone()), letter }
    }
}

impl SlackReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let (directory, rejects) = SlackDirectory::read(&tree)?;
        let found = tree.entries().iter().filter_map(|entry| {
            let conversation = conversation_of(&tree, &entry.name, &directory)?;
            Some((entry.name.clone(), conversation))
        });
        let (names, conversations): (Vec<_>, Vec<_>) = found.unzip();
        if names.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file of a day such as general/2024-05-01.json".to_owned(),
                remedy: "name the zip archive or the folder of the export",
            });
        }
        let ready = rejects.into_iter().map(|letter| ChatItem::Reject { conversation: None, letter }).collect();
        let is_listed = |name: &str| is_day(split(name).1) || is_dump(split(name).1);
        Ok(Self {
            files: JsonFiles::new(tree, names, MESSAGES).expect_lists(is_listed),
            conversations,
            directory,
            zone: Zone::parse(&settings.zone)?,
            versions: HashMap::new(),
            ready,
            unread: UnreadCounts::default(),
        })
    }
}

impl ChatReader for SlackReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            match self.files.step()? {
                Some((file, JsonFileItem::Element(element))) => self.take(file, &element),
                Some((_, JsonFileItem::End)) => self.versions.clear(),
                None => return Ok(None),
            }
        }
    }

    fn describe(&self) -> String {
        format!("Slack from {}", self.files.tree().path().display())
    }

    fn progress(&self) -> SourceProgress {
        let (done, total) = self.files.bytes();
        SourceProgress { done, total: Some(total), unit: "bytes" }
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

impl SlackReader {
    /// Adds the items of an element to `ready`.
    fn take(&mut self, file: usize, element: &JsonElement) {
        if element.problem.is_none() && matches!(MESSAGES.get(element.path), Some(&"channel_id" | &"name")) {
            return;
        }
        let Some(conversation) = self.conversations.get(file).cloned() else { return };
        let place = SlackMessagePosition { element, origin: self.files.origin(file), conversation };
        let raw = element.parse::<Value>(&place.origin).and_then(|value| match value {
            Value::Object(_) => MESSAGE.read::<SlackMessage>(value).map_err(|e| element.reject(&place.origin, e)),
            _ => Err(element.reject(&place.origin, "not an object, as a message must be".to_owned())),
        });
        let (mut raw, odd) = match raw {
            Ok(read) => read,
            Err(letter) => {
                let conversation = Some(place.conversation);
                return self.ready.push_back(ChatItem::Reject { conversation, letter });
            }
        };
        let replies = std::mem::take(&mut raw.slackdump_thread_replies);
        self.message(raw, odd, &place);
        for reply in replies {
            match MESSAGE.read(reply) {
                Ok((reply, odd)) => self.message(reply, odd, &place),
                Err(e) => self.ready.push_back(place.reject(format!("a reply: {e}"))),
            }
        }
    }

    fn message(&mut self, raw: SlackMessage, odd: UnreadFields, place: &SlackMessagePosition<'_>) {
        let read = item(raw, &place.conversation, &mut self.directory, &self.zone, &mut self.unread);
        let found = match read.and_then(|item| odd.judge(item, &mut self.unread)) {
            Ok(ChatItem::Message(message)) => match self.versions.get(&message.id) {
                Some(version) if *version >= message.version => ChatItem::Skip(SkipReason::Copy),
                _ => {
                    self.versions.insert(message.id.clone(), message.version);
                    ChatItem::Message(message)
                }
            },
            Ok(other) => other,
            Err(reason) => place.reject(reason),
        };
        self.ready.push_back(found);
    }
}

/// The conversation whose messages a file holds; `None` for lists, uploads and any other file.
fn conversation_of(tree: &ExportTree, file: &str, directory: &SlackDirectory) -> Option<Arc<Conversation>> {
    let (folder, name) = split(file);
    if tree.is_file() {
        let around = tree.path().parent().and_then(|parent| parent.file_name());
        let stem = name.trim_end_matches(".json");
        let conversation =
            if is_day(name) { around.map(|n| n.to_string_lossy().into_owned())? } else { dumped(stem).to_owned() };
        return Some(opened(directory.conversation("", &conversation)));
    }
    if is_day(name) && !folder.is_empty() {
        let (around, folder) = split(folder);
        return Some(directory.conversation(around, folder));
    }
    is_dump(name).then(|| directory.conversation(folder, dumped(name.trim_end_matches(".json"))))
}

/// The conversation as an open one: the user chose its file.
fn opened(conversation: Arc<Conversation>) -> Arc<Conversation> {
    let privacy = crate::chat::ConversationPrivacy::Open;
    Arc::new(Conversation { privacy, ..(*conversation).clone() })
}

/// Whether a file holds one day: `2024-05-01.json`.
fn is_day(name: &str) -> bool {
    let Some(day) = name.strip_suffix(".json") else { return false };
    day.len() == 10
        && day
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Whether a file is a conversation or a thread that slackdump dumped: `C024BE91L.json` or
/// `C024BE91L-1638784588.000100.json`.
fn is_dump(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".json") else { return false };
    let id = dumped(stem);
    id.len() >= 9
        && id.starts_with(['C', 'D', 'G'])
        && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// The id of the conversation in the name of a dump.
fn dumped(stem: &str) -> &str {
    stem.split('-').next().unwrap_or(stem)
}

fn looks_like(sample: &FileSample) -> bool {
    let is_message = |head: &str| {
        has_json_keys(head, &["ts"])
            && (head.contains("\"user\"") || head.contains("\"bot_id\"") || head.contains("\"text\""))
    };
    if sample.is_file() {
        let is_dump = sample.has_json_keys(&["channel_id", "messages"]);
        return is_message(sample.head()) && (is_dump || is_day(&sample.name()));
    }
    let is_listed = sample
        .entries()
        .any(|name| matches!(split(name).1, "channels.json" | "groups.json" | "dms.json" | "mpims.json"));
    let day = sample.entries().find(|name| is_day(split(name).1) || is_dump(split(name).1));
    day.is_some_and(|day| is_listed || is_message(&sample.head_of(day)))
}

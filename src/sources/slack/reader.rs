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
    directory::{Directory, split},
    message::{FORM as MESSAGE, RawMessage, item},
};
use crate::{
    SourceError,
    chat::{
        ChatItem, ChatReader, Conversation, Element, Elements, OddFields, Sample, Skip, Tree, Unread, has_json_keys,
    },
    format::{Opener, SourceFormat},
    turn_source::SourceProgress,
    zone::Zone,
};
use nouns::config::SourceSettings;

/// Slack.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "slack",
    about: "Slack's export, or slackdump's: a zip archive or a directory",
    standard_input: false,
    only: Some("conversations"),
    looks_like,
    open: Opener::Chat(|settings| Ok(Box::new(Slack::open(settings)?))),
};

/// The paths of the messages in a day's file, and in a conversation that slackdump dumped.
const MESSAGES: &[&str] = &["*", "messages/*", "channel_id", "name"];

/// A reader of an export.
struct Slack {
    tree: Tree,
    directory: Directory,
    zone: Zone,
    files: VecDeque<(String, Arc<Conversation>)>,
    open: Option<OpenFile>,
    /// Items to be returned before the next message is read.
    ready: VecDeque<ChatItem>,
    /// Unread parts of the messages in earlier files.
    unread: Unread,
    done_bytes: u64,
    total_bytes: u64,
}

/// The file that is being read.
struct OpenFile {
    name: String,
    origin: String,
    elements: Elements,
    conversation: Arc<Conversation>,
    /// The versions of this file's messages by id.
    versions: HashMap<String, u64>,
    /// Unread parts of the messages in all files so far.
    unread: Unread,
}

impl Slack {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = Tree::open(&settings.path)?;
        let (directory, rejects) = Directory::read(&tree)?;
        let mut files = VecDeque::new();
        let mut total_bytes = 0;
        for entry in tree.entries() {
            if let Some(conversation) = conversation_of(&tree, &entry.name, &directory) {
                files.push_back((entry.name.clone(), conversation));
                total_bytes += entry.bytes;
            }
        }
        if files.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file of a day such as general/2024-05-01.json".to_owned(),
                remedy: "name the zip archive or the folder of the export",
            });
        }
        let ready = rejects.into_iter().map(|letter| ChatItem::Reject { conversation: None, letter }).collect();
        let zone = Zone::parse(&settings.zone)?;
        let unread = Unread::default();
        Ok(Self { tree, directory, zone, files, open: None, ready, unread, done_bytes: 0, total_bytes })
    }

    /// Opens the next file; returns false after the last.
    fn next_file(&mut self) -> Result<bool, SourceError> {
        let Some((name, conversation)) = self.files.pop_front() else { return Ok(false) };
        let (_, file) = split(&name);
        let elements = Elements::new(self.tree.read(&name)?, MESSAGES).expect_list(is_day(file) || is_dump(file));
        let origin = self.tree.origin(&name);
        let unread = std::mem::take(&mut self.unread);
        self.open = Some(OpenFile { name, origin, elements, conversation, versions: HashMap::new(), unread });
        Ok(true)
    }
}

impl ChatReader for Slack {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            let Some(file) = &mut self.open else {
                if self.next_file()? {
                    continue;
                }
                return Ok(None);
            };
            let line = file.elements.line();
            match file.elements.next().map_err(|e| self.tree.unreadable(&file.name, line, e))? {
                Some(element) => file.take(&element, &mut self.directory, &self.zone, &mut self.ready),
                None => {
                    self.done_bytes += file.elements.read_bytes();
                    self.unread = std::mem::take(&mut file.unread);
                    self.open = None;
                }
            }
        }
    }

    fn describe(&self) -> String {
        format!("Slack from {}", self.tree.path().display())
    }

    fn progress(&self) -> SourceProgress {
        let open = self.open.as_ref().map_or(0, |file| file.elements.read_bytes());
        SourceProgress { done: self.done_bytes + open, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.open.as_ref().map_or(&self.unread, |file| &file.unread).counts().clone()
    }
}

impl OpenFile {
    /// Adds the items of an element to `ready`.
    fn take(&mut self, element: &Element, directory: &mut Directory, zone: &Zone, ready: &mut VecDeque<ChatItem>) {
        if element.problem.is_none() && matches!(MESSAGES.get(element.path), Some(&"channel_id" | &"name")) {
            return;
        }
        let raw = element.parse::<Value>(&self.origin).and_then(|value| match value {
            Value::Object(_) => MESSAGE.read::<RawMessage>(value).map_err(|e| element.reject(&self.origin, e)),
            _ => Err(element.reject(&self.origin, "not an object, as a message must be".to_owned())),
        });
        let (mut raw, odd) = match raw {
            Ok(read) => read,
            Err(letter) => {
                let conversation = Some(self.conversation.clone());
                return ready.push_back(ChatItem::Reject { conversation, letter });
            }
        };
        let replies = std::mem::take(&mut raw.slackdump_thread_replies);
        self.message(raw, odd, element, directory, zone, ready);
        for reply in replies {
            match MESSAGE.read(reply) {
                Ok((reply, odd)) => self.message(reply, odd, element, directory, zone, ready),
                Err(e) => {
                    let letter = element.reject(&self.origin, format!("a reply: {e}"));
                    ready.push_back(ChatItem::Reject { conversation: Some(self.conversation.clone()), letter });
                }
            }
        }
    }

    fn message(
        &mut self,
        raw: RawMessage,
        odd: OddFields,
        element: &Element,
        directory: &mut Directory,
        zone: &Zone,
        ready: &mut VecDeque<ChatItem>,
    ) {
        let read = item(raw, &self.conversation, directory, zone, &mut self.unread);
        let found = match read.and_then(|item| odd.judge(item, &mut self.unread)) {
            Ok(ChatItem::Message(message)) => match self.versions.get(&message.id) {
                Some(version) if *version >= message.version => ChatItem::Skip(Skip::Copy),
                _ => {
                    self.versions.insert(message.id.clone(), message.version);
                    ChatItem::Message(message)
                }
            },
            Ok(other) => other,
            Err(reason) => {
                let letter = element.reject(&self.origin, reason);
                ChatItem::Reject { conversation: Some(self.conversation.clone()), letter }
            }
        };
        ready.push_back(found);
    }
}

/// The conversation whose messages a file holds; `None` for lists, uploads and any other file.
fn conversation_of(tree: &Tree, file: &str, directory: &Directory) -> Option<Arc<Conversation>> {
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

/// A file that the user named is the user's own choice.
fn opened(conversation: Arc<Conversation>) -> Arc<Conversation> {
    let privacy = crate::chat::Privacy::Open;
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

fn looks_like(sample: &Sample) -> bool {
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

//! Reads messages from files of Microsoft Graph.
//!
//! In: JSON files. Out: items, oldest first. Before the first message is made, it is known which messages have replies,
//! who takes part in a chat, and whether the export is a single conversation.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    body::words,
    message::{FORM as MESSAGE, REPLIES, TeamsObject, TeamsPlace, author, deleted_ms, is_notice, take_replies},
};
use crate::{
    chat::{
        ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, FileSample, JsonElement, JsonFileItem,
        JsonFiles, SkipReason, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts, UnreadFields,
        has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    zone::Zone,
};
use types::{config::SourceSettings, model::DeadLetter};

/// Chats and channels of Microsoft Teams.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "teams",
    about: "Microsoft Teams: JSON of Microsoft Graph's messages, a file or a folder",
    standard_input: false,
    only: Some("chats and channels"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(TeamsReader::open(settings)?)))),
};

/// The paths of messages, and of what a file may say about the chat.
const PATHS: &[&str] =
    &["*", "value/*", "Value/*", "messages/*", "Messages/*", "topic", "Topic", "displayName", "chatType", "ChatType"];
const NAMES: std::ops::Range<usize> = 5..8;
const CHAT_TYPES: std::ops::Range<usize> = 8..10;
/// The maximum number of people in the name of a chat.
const MAX_NAMES: usize = 10;
/// The longest file that is read as a single message.
const MAX_MESSAGE_BYTES: u64 = 4 << 20;

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_graph(sample.head());
    }
    let mut files = sample.entries().filter(|e| e.ends_with(".json"));
    files.next().is_some_and(|e| is_graph(&sample.head_of(e)))
}

fn is_graph(head: &str) -> bool {
    has_json_keys(head, &["createdDateTime", "body"]) && (head.contains("\"messageType\"") || head.contains("\"from\""))
        || has_json_keys(head, &["CreatedDateTime", "Body"])
}

/// An export that is read file by file.
struct TeamsReader {
    files: JsonFiles,
    zone: Zone,
    /// What the files say of themselves, by their number.
    heads: Vec<TeamsFileHead>,
    /// The number of the file that is read.
    file: usize,
    /// Hashes of the posts that have replies, by place and id.
    roots: HashSet<u64>,
    /// The places, and who wrote in each, up to [`MAX_NAMES`] people.
    people: HashMap<TeamsPlace, BTreeSet<String>>,
    conversations: HashMap<TeamsPlace, Arc<Conversation>>,
    unread: UnreadCounts,
}

#[derive(Clone, Default)]
struct TeamsFileHead {
    /// The chat's name and whether it is a chat, if the file states them.
    topic: Option<String>,
    is_chat: bool,
    /// Whether it held a list.
    has_elements: bool,
    /// Whether any of its messages states its chat or channel.
    has_places: bool,
}

impl TeamsReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let is_file = tree.is_file();
        let entries = tree.entries().iter().filter(|e| is_file || e.name.ends_with(".json"));
        let names: Vec<String> = entries.map(|e| e.name.clone()).collect();
        if names.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file that ends in .json".to_owned(),
                remedy: "name a file of Microsoft Graph's messages, or a folder of them",
            });
        }
        Ok(Self {
            zone: Zone::parse(&settings.zone)?,
            heads: vec![TeamsFileHead::default(); names.len()],
            files: JsonFiles::new(tree, names, PATHS),
            file: 0,
            roots: HashSet::new(),
            people: HashMap::new(),
            conversations: HashMap::new(),
            unread: UnreadCounts::default(),
        })
    }

    /// Handles a value under one of the paths.
    fn element(
        &mut self,
        element: &JsonElement,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let (is_name, is_chat_type) = (NAMES.contains(&element.path), CHAT_TYPES.contains(&element.path));
        if element.problem.is_none() && (is_name || is_chat_type) {
            let text: Option<String> = serde_json::from_slice(&element.bytes).ok().flatten();
            if let Some((file, text)) = self.heads.get_mut(self.file).zip(text.filter(|t| !t.trim().is_empty())) {
                file.is_chat |= is_chat_type;
                if is_name {
                    file.topic.get_or_insert(text);
                }
            }
            return Ok(());
        }
        if let Some(file) = self.heads.get_mut(self.file) {
            file.has_elements = true;
        }
        match element.parse::<Value>(&self.files.origin(self.file)) {
            Ok(message) => self.message(message, element.line, order, found),
            Err(letter) => {
                found.push_back(ChatItem::Reject { conversation: None, letter });
                Ok(())
            }
        }
    }

    /// Keeps a message, the replies inside it, and their replies.
    fn message(
        &mut self,
        mut message: Value,
        line: u64,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        if let Err(reason) = REPLIES.check(&mut message) {
            self.reject(&message, line, reason, order, found)?;
        }
        let replies = take_replies(&mut message);
        let object = TeamsObject(&message);
        let file = u32::try_from(self.file).unwrap_or(u32::MAX);
        let place = TeamsPlace::of(object, file);
        if let Some(file) = self.heads.get_mut(self.file) {
            file.has_places |= !matches!(place, TeamsPlace::File(_));
        }
        match object.unix_ms("createdDateTime", &self.zone) {
            Some(unix_ms) => {
                let names = self.people.entry(place.clone()).or_default();
                if !is_notice(object) && names.len() < MAX_NAMES && MESSAGE.check(&mut message.clone()).is_ok() {
                    names.insert(author(object).name);
                }
                if let Some(root) = object.id("replyToId") {
                    self.roots.insert(hash(&place, &root));
                }
                let payload = serde_json::to_vec(&message).unwrap_or_default();
                order.add(TimedRecord { unix_ms, file, line, payload })?;
            }
            None => {
                let reason = "createdDateTime: missing or not a time; write it as Microsoft Graph does".to_owned();
                self.reject(&message, line, reason, order, found)?;
            }
        }
        for reply in replies {
            self.message(reply, line, order, found)?;
        }
        Ok(())
    }

    /// Keeps a message that cannot be read, since the name of its conversation and who can read it are known only at
    /// the end. A message without a place is returned at once.
    fn reject(
        &mut self,
        message: &Value,
        line: u64,
        reason: String,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let origin = format!("{}:{line}", self.files.origin(self.file));
        let letter = DeadLetter::new(origin, reason, message.to_string().as_bytes());
        let file = u32::try_from(self.file).unwrap_or(u32::MAX);
        match TeamsPlace::of_damaged(TeamsObject(message), file) {
            Some(place) => {
                order.add_reject(&(&place, file), &letter)?;
                // A place that it states counts as a conversation of the export.
                if !matches!(place, TeamsPlace::File(_)) {
                    self.people.entry(place).or_default();
                }
            }
            None => found.push_back(ChatItem::Reject { conversation: None, letter }),
        }
        Ok(())
    }

    /// Reads a file that holds no list as a single message, if it is one.
    fn single(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<(), SourceError> {
        let (tree, name) = (self.files.tree(), self.files.name(self.file));
        if self.heads.get(self.file).is_none_or(|head| head.has_elements) || tree.bytes_of(name) > MAX_MESSAGE_BYTES {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let mut stream = tree.read(name)?;
        std::io::Read::read_to_end(&mut stream, &mut bytes).map_err(|e| tree.unreadable(name, 0, e))?;
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        match serde_json::from_slice::<Value>(text) {
            Ok(message) if TeamsObject(&message).get("createdDateTime").is_some() => {
                self.message(message, 1, order, found)
            }
            // An empty list, or a file that does not hold messages.
            Ok(_) => Ok(()),
            Err(e) => {
                let origin = format!("{}:{}", self.files.origin(self.file), e.line());
                let letter = DeadLetter::new(origin, format!("{e}; export the file again"), text);
                found.push_back(ChatItem::Reject { conversation: None, letter });
                Ok(())
            }
        }
    }

    fn conversation(&mut self, place: &TeamsPlace, file: u32) -> Arc<Conversation> {
        if let Some(conversation) = self.conversations.get(place) {
            return conversation.clone();
        }
        // The user chose to export this one conversation, so it is read.
        let alone = self.people.len() <= 1 && self.files.tree().is_file();
        let stem = self.files.name(file as usize).rsplit('/').next().unwrap_or_default();
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem).to_owned();
        let head = self.heads.get(file as usize);
        let is_chat = matches!(place, TeamsPlace::Chat(_)) || head.is_some_and(|head| head.is_chat);
        let people = self.people.get(place).map(|names| names.iter().cloned().collect::<Vec<_>>().join(", "));
        let topic = head.and_then(|head| head.topic.clone());
        let (workspace, id, otherwise) = match place {
            TeamsPlace::Channel { team, channel } => (team.clone(), channel.clone(), stem),
            TeamsPlace::Chat(id) => (None, id.clone(), people.filter(|names| !names.is_empty()).unwrap_or(stem)),
            TeamsPlace::File(_) => (None, stem.clone(), stem),
        };
        let conversation = Arc::new(Conversation {
            workspace,
            id,
            name: topic.unwrap_or(otherwise),
            privacy: if is_chat && !alone { ConversationPrivacy::Direct } else { ConversationPrivacy::Open },
        });
        self.conversations.insert(place.clone(), conversation.clone());
        conversation
    }

    /// The conversation of an unreadable message; `None` if it states no place, but others in its file do.
    fn conversation_of_damaged(&mut self, place: &TeamsPlace, file: u32) -> Option<Arc<Conversation>> {
        let others_do = self.heads.get(file as usize).is_some_and(|head| head.has_places);
        (!others_do || !matches!(place, TeamsPlace::File(_))).then(|| self.conversation(place, file))
    }
}

impl TeamsReader {
    /// The item of a message.
    ///
    /// # Errors
    /// Says what is missing, and what to write.
    fn said(
        &self,
        message: TeamsObject<'_>,
        odd: &UnreadFields,
        place: &TeamsPlace,
        conversation: Arc<Conversation>,
    ) -> Result<ChatItem, String> {
        if is_notice(message) {
            return Ok(ChatItem::Skip(SkipReason::ServiceMessage));
        }
        let id = message.id("id").ok_or("id: missing; write it as Microsoft Graph does")?;
        let time = message.time("createdDateTime", &self.zone).ok_or("createdDateTime: out of range; write a date")?;
        let version = |key: &str| message.unix_ms(key, &self.zone).and_then(|ms| u64::try_from(ms).ok());
        if let Some(deleted_ms) = deleted_ms(message, &self.zone)? {
            return Ok(ChatItem::Deletion { conversation, id, version: u64::try_from(deleted_ms).ok() });
        }
        let words = words(message);
        // Nobody can post an empty message, so its words were deleted. An empty body may be Graph's only sign of that,
        // and the subject may remain.
        let says_nothing = words.attachments.is_empty() && words.text == message.text("subject").unwrap_or_default();
        if let Some(reason) = odd.without_words().filter(|_| says_nothing) {
            return Err(reason);
        }
        if says_nothing && (!words.text.is_empty() || is_emptied(message)) {
            return Ok(ChatItem::Deletion { conversation, id, version: version("lastModifiedDateTime") });
        }
        if words.text.is_empty() && words.attachments.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        let reply_to = message.id("replyToId");
        let has_replies = self.roots.contains(&hash(place, &id));
        Ok(ChatItem::Message(Box::new(ChatMessage {
            conversation,
            thread: reply_to.clone().or_else(|| has_replies.then(|| id.clone())),
            reply_to: words.quotes.or(reply_to),
            id,
            // `lastModifiedDateTime` is not used, because reactions change it too.
            version: version("lastEditedDateTime").unwrap_or(0),
            author: author(message),
            text: words.text,
            time,
            attachments: words.attachments,
            mentions: words.mentions,
        })))
    }
}

impl UnorderedReader for TeamsReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some((file, step)) = self.files.step()? else { return Ok(false) };
        self.file = file;
        match step {
            JsonFileItem::Element(element) => self.element(&element, order, found)?,
            JsonFileItem::End => self.single(order, found)?,
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        if let Some(((place, file), letter)) = record.rejected::<(TeamsPlace, u32)>() {
            return ChatItem::Reject { conversation: self.conversation_of_damaged(&place, file), letter };
        }
        let mut message: Value = serde_json::from_slice(&record.payload).unwrap_or_default();
        let place = TeamsPlace::of(TeamsObject(&message), record.file);
        let conversation = self.conversation(&place, record.file);
        let read = MESSAGE.check(&mut message).and_then(|odd| {
            let item = self.said(TeamsObject(&message), &odd, &place, conversation)?;
            odd.judge(item, &mut self.unread)
        });
        read.unwrap_or_else(|reason| {
            let place = TeamsPlace::of_damaged(TeamsObject(&message), record.file);
            let conversation = place.and_then(|place| self.conversation_of_damaged(&place, record.file));
            let origin = format!("{}:{}", self.files.origin(record.file as usize), record.line);
            ChatItem::Reject { conversation, letter: DeadLetter::new(origin, reason, &record.payload) }
        })
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn describe(&self) -> String {
        format!("Microsoft Teams' messages in {}", self.files.tree().path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        self.files.bytes()
    }
}

/// Whether a message has a body and the body is completely empty.
fn is_emptied(message: TeamsObject<'_>) -> bool {
    let content = message.object("body").and_then(|body| body.0.get("content").or_else(|| body.0.get("Content")));
    content.is_some_and(|content| content.as_str().is_none_or(str::is_empty))
}

/// A hash of a post's place and id.
fn hash(place: &TeamsPlace, id: &str) -> u64 {
    xxh3_64(format!("{place:?}/{id}").as_bytes())
}

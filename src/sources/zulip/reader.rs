//! Reads messages from Zulip's export.
//!
//! In: files of messages, and the realm's accounts and channels. Out: items, oldest first; messages are sorted because
//! an export has them in the order in which the exporter queried them.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{
    message::{FORM as MESSAGE, ZulipMessage, ZulipSentTime},
    realm::{ZulipRealm, direct},
};
use crate::{
    chat::{
        ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, FileSample, JsonElement, JsonElements,
        JsonFiles, SkipReason, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts,
        has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    zone::Zone,
};
use types::{config::SourceSettings, model::DeadLetter};

/// Zulip's export.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "zulip",
    about: "Zulip export: its folder or archive, or files of messages",
    standard_input: false,
    only: Some("channels"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(ZulipReader::open(settings)?)))),
};

/// The paths of messages in an export, and in the API's replies.
const MESSAGES: &[&str] = &["zerver_message/*", "messages/*", "*"];

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_message_file(sample.head());
    }
    let entries: Vec<&str> = sample.entries().collect();
    let messages = || entries.iter().find(|e| is_messages(e));
    // A sample of an archive may end before its messages, so the file name that Zulip gives it is enough.
    let is_named = sample.name().starts_with("zulip-export") && sample.name().contains(".tar");
    is_named || messages().is_some_and(|e| sample.head_of(e).contains("\"zerver_message\""))
}

/// Whether a text begins like a file of messages.
fn is_message_file(head: &str) -> bool {
    has_json_keys(head, &["zerver_message"]) || has_json_keys(head, &["display_recipient", "sender_full_name"])
}

/// Whether an entry holds messages of an export.
fn is_messages(entry: &str) -> bool {
    let name = file_name(entry);
    name.starts_with("messages-") && name.ends_with(".json") && !format!("/{entry}").contains("/uploads/")
}

fn is_realm(entry: &str) -> bool {
    file_name(entry) == "realm.json"
}

fn file_name(entry: &str) -> &str {
    entry.rsplit('/').next().unwrap_or(entry)
}

/// An export that is read file by file.
struct ZulipReader {
    files: JsonFiles,
    zone: Zone,
    realm: ZulipRealm,
    /// Whether the user named one file of messages.
    alone: bool,
    /// Conversations by recipient and author.
    conversations: HashMap<(i64, Option<i64>), Option<Arc<Conversation>>>,
    /// Whether the messages name their authors.
    has_names: bool,
    unread: UnreadCounts,
}

impl ZulipReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let zone = Zone::parse(&settings.zone)?;
        let tree = ExportTree::open(&settings.path)?;
        let alone = tree.is_file();
        let of = |wanted: fn(&str) -> bool| tree.entries().iter().filter(move |e| wanted(&e.name));
        let mut names: Vec<String> = of(is_messages).map(|e| e.name.clone()).collect();
        if names.is_empty() {
            // Files with the API's replies may have any name.
            let replies = of(if alone { |_| true } else { |name| name.ends_with(".json") && !is_realm(name) });
            names = replies.map(|e| e.name.clone()).collect();
        }
        if names.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file such as messages-000001.json".to_owned(),
                remedy: "name the export's folder, its archive, or a file of messages",
            });
        }
        let realm = match of(is_realm).next() {
            Some(entry) => ZulipRealm::read(&tree, &entry.name)?,
            None => ZulipRealm::default(),
        };
        let has_names = !realm.is_known() && first_names(&tree, names.first())?;
        Ok(Self {
            files: JsonFiles::new(tree, names, MESSAGES),
            zone,
            realm,
            alone,
            conversations: HashMap::new(),
            has_names,
            unread: UnreadCounts::default(),
        })
    }

    fn take(
        &mut self,
        file: usize,
        element: JsonElement,
        order: &mut TimeSorter,
    ) -> Result<Option<ChatItem>, SourceError> {
        let origin = self.files.origin(file);
        let read = element
            .parse::<Value>(&origin)
            .and_then(|value| MESSAGE.read::<ZulipSentTime>(value).map_err(|reason| element.reject(&origin, reason)));
        let missing = || element.reject(&origin, "date_sent: missing; write seconds since 1970".to_owned());
        let unix_ms = match read.and_then(|(sent, _)| sent.unix_ms().ok_or_else(missing)) {
            Ok(unix_ms) => unix_ms,
            Err(letter) => {
                let conversation = self.conversation_of_damaged(&element.bytes);
                return Ok(Some(ChatItem::Reject { conversation, letter }));
            }
        };
        let file = u32::try_from(file).unwrap_or(u32::MAX);
        order.add(TimedRecord { unix_ms, file, line: element.line, payload: element.bytes })?;
        Ok(None)
    }

    /// The conversation of an unreadable record; `None` if that part is unreadable, too.
    fn conversation_of_damaged(&mut self, record: &[u8]) -> Option<Arc<Conversation>> {
        let record: Value = serde_json::from_slice(record).ok()?;
        self.conversation(&ZulipMessage::placed(&record)?)
    }

    /// The conversation in which a message was written.
    fn conversation(&mut self, message: &ZulipMessage) -> Option<Arc<Conversation>> {
        if let Some(recipient) = message.recipient {
            let (realm, sender) = (&self.realm, message.sender());
            let known = self.conversations.entry((recipient, sender));
            let known = known.or_insert_with(|| realm.conversation(recipient, sender).map(Arc::new));
            // The recipient of a direct message is only one of its two people.
            if known.is_some() || (sender.is_none() && realm.is_person(recipient)) {
                return known.clone();
            }
        }
        if let Some((members, names)) = message.members() {
            return Some(Arc::new(direct(&members, &names)));
        }
        let id = match (message.stream_id, message.recipient) {
            (Some(channel), _) => channel.to_string(),
            (None, Some(recipient)) => format!("recipient-{recipient}"),
            (None, None) => message.recipient_name()?,
        };
        let privacy = match (message.is_in_channel(), self.alone) {
            (false, _) => ConversationPrivacy::Direct,
            (true, true) => ConversationPrivacy::Open,
            (true, false) => ConversationPrivacy::Private,
        };
        let name = message.recipient_name().unwrap_or_else(|| id.clone());
        Some(Arc::new(Conversation { workspace: None, id, name, privacy }))
    }

    fn message(&mut self, record: &TimedRecord) -> Result<ChatItem, (Option<Arc<Conversation>>, String)> {
        let value: Value = serde_json::from_slice(&record.payload).unwrap_or_default();
        let read = MESSAGE.read::<ZulipMessage>(value);
        let (message, odd) = read.map_err(|reason| (self.conversation_of_damaged(&record.payload), reason))?;
        let conversation = self.conversation(&message);
        let missing = |reason: &str| (conversation.clone(), reason.to_owned());
        let sender = message.sender().ok_or_else(|| missing("sender: missing; write its number"))?;
        let conversation =
            conversation.clone().ok_or_else(|| missing("recipient: missing or not in realm.json; export both"))?;
        if message.is_notice() || self.realm.is_system(sender) {
            return Ok(ChatItem::Skip(SkipReason::ServiceMessage));
        }
        let wrong = |reason: &str| (Some(conversation.clone()), reason.to_owned());
        let Some(words) = message.words(&self.realm) else {
            let unsupported = odd.without_words();
            return Err(wrong(unsupported.as_deref().unwrap_or("content: missing; write what was said")));
        };
        let time =
            self.zone.at_unix_ms(record.unix_ms).ok_or_else(|| wrong("date_sent: out of range; write a date"))?;
        let id = message.id.to_string();
        if let Some(reason) = odd.without_words().filter(|_| words.text.is_empty() && words.attachments.is_empty()) {
            return Err(wrong(&reason));
        }
        if message.is_emptied(&words) {
            return Ok(ChatItem::Deletion { conversation, id, version: Some(message.version()) });
        }
        if words.text.is_empty() && words.attachments.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        let named = if self.realm.is_known() { None } else { message.named_sender() };
        let author = named.unwrap_or_else(|| self.realm.account(sender));
        // `/me waves` is shown as the author's name and `waves`; a poll begins with its command.
        let text = match words.text.strip_prefix("/me ") {
            Some(act) => format!("{} {act}", author.name),
            None => words.text.strip_prefix("/poll ").unwrap_or(&words.text).to_owned(),
        };
        let thread = if message.is_in_channel() { message.topic() } else { None };
        let said = ChatItem::Message(Box::new(ChatMessage {
            conversation: conversation.clone(),
            id,
            version: message.version(),
            author,
            text,
            time,
            thread,
            reply_to: None,
            attachments: words.attachments,
            mentions: words.mentions,
        }));
        odd.judge(said, &mut self.unread).map_err(|reason| wrong(&reason))
    }
}

impl UnorderedReader for ZulipReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some((file, element)) = self.files.next()? else { return Ok(false) };
        found.extend(self.take(file, element, order)?);
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        self.message(&record).unwrap_or_else(|(conversation, reason)| {
            let origin = format!("{}:{}", self.files.origin(record.file as usize), record.line);
            ChatItem::Reject { conversation, letter: DeadLetter::new(origin, reason, &record.payload) }
        })
    }

    fn describe(&self) -> String {
        format!("Zulip's export {}", self.files.tree().path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        self.files.bytes()
    }

    fn notice(&self) -> Option<String> {
        let path = self.files.tree().path().display();
        let what = match (self.realm.is_known(), self.has_names) {
            (true, _) => return None,
            (false, true) => "it is not known which channels are private",
            (false, false) => "accounts keep their numbers as names and private channels are not known",
        };
        Some(format!("{path}: no realm.json, so that {what}; name the whole export if you have it"))
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

/// Whether the first message of a file names its author.
fn first_names(tree: &ExportTree, file: Option<&String>) -> Result<bool, SourceError> {
    let Some(file) = file else { return Ok(false) };
    let mut elements = JsonElements::new(tree.read(file)?, MESSAGES);
    let first = elements.next().map_err(|e| tree.unreadable(file, elements.line(), e))?;
    let message = first.and_then(|element| serde_json::from_slice::<ZulipMessage>(&element.bytes).ok());
    Ok(message.is_some_and(|message| message.named_sender().is_some()))
}

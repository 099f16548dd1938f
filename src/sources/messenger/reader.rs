//! Reads messages from the files of chats.
//!
//! In: the files of one or many chats, JSON or pages, in any order. Out: items, oldest first, whatever the order of the
//! files and of the messages in them. A chat's title comes after its messages, so everything is read before the first
//! message is returned.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    io::Read,
    path::Path,
    sync::Arc,
};

use serde_json::Value;

use super::{
    html_page::{self, MessengerPageMessage},
    mojibake::repaired,
    record::{FORM as MESSAGE, MessengerMessageKind, MessengerRecord, MessengerStoredMessage},
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, FileSample, JsonElement,
        JsonElements, PositionalIds, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts,
        has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    zone::{Zone, zone_notice},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// Facebook Messenger and Instagram.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "messenger",
    about: "Facebook Messenger or Instagram: message_1.json or .html, a chat's folder, or a whole account",
    standard_input: false,
    only: Some("chats"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(MessengerReader::open(settings)?)))),
};

const HEAD_BYTES: u64 = 64 << 10;
/// The paths that are read in a file.
const PATHS: [&str; 7] =
    ["messages/*", "title", "threadName", "thread_path", "participants/*", "thread_type", "joinable_mode"];
/// The longest page that is read; the platform begins another page after a few thousand messages.
const MAX_PAGE_BYTES: u64 = 64 << 20;
const NO_MESSAGES: &str = "no messages in it; download your information again, as JSON";
const REMEDY: &str = "download your information again and choose JSON as the format";

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_chat(sample.head()) || (is_page(&sample.name()) && is_chat_page(sample.head()));
    }
    let is_part = |entry: &str| numbered(entry).is_some();
    let is_json = |entry: &&str| entry.ends_with(".json");
    sample
        .entries()
        .filter(is_json)
        .any(|e| (is_part(e) || e.contains("messages/")) && is_chat(&sample.head_of(e)))
        // Files of end-to-end encrypted chats are named after their chats.
        || sample.entries().filter(is_json).take(5).any(|e| has_json_keys(&sample.head_of(e), &["participants", "threadName"]))
        || sample.entries().any(|e| is_page(e) && is_part(e))
}

/// Whether a file begins like a chat of one of the schemas.
fn is_chat(head: &str) -> bool {
    [&["sender_name", "timestamp_ms"], &["senderName", "timestamp"], &["participants", "threadName"]]
        .iter()
        .any(|keys| has_json_keys(head, *keys))
        || (has_json_keys(head, &["participants", "messages", "title"]) && !head.contains("\"channel\""))
}

fn is_page(name: &str) -> bool {
    name.ends_with(".html") || name.ends_with(".htm")
}

/// Whether a page is one of Facebook's.
fn is_chat_page(head: &str) -> bool {
    ["Participants: ", "class=\"thread\"", "_a6-g", "_2lej"].iter().any(|mark| head.contains(mark))
}

/// The number of `message_12.json`.
fn numbered(name: &str) -> Option<u32> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let number = file.rsplit_once("message_")?.1;
    number.strip_suffix(".json").or_else(|| number.strip_suffix(".html"))?.parse().ok()
}

/// Chats that are read message by message.
struct MessengerReader {
    tree: ExportTree,
    files: Vec<String>,
    file: usize,
    elements: Option<JsonElements>,
    /// What is known about the chats of the files that were opened.
    chats: Vec<MessengerChat>,
    /// Files that should hold a chat and do not.
    damaged: VecDeque<(String, &'static str)>,
    read_bytes: u64,
    total_bytes: u64,
    /// The conversation of each chat, made once all files have been read.
    conversations: Vec<Arc<Conversation>>,
    /// The zone of pages, which state local times, and the notice about it.
    zone: Zone,
    notice: Option<String>,
    /// The ids of one moment. Messages come in order of time, so a message's id depends on no other moment.
    ids: HashMap<String, PositionalIds>,
    ids_at: i64,
    unread: UnreadCounts,
}

/// What a file says about its chat.
#[derive(Default)]
struct MessengerChat {
    /// The file's index.
    file: usize,
    title: Option<String>,
    path: Option<String>,
    participants: Vec<String>,
    senders: BTreeSet<String>,
    group: bool,
}

impl MessengerReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let is_file = tree.is_file();
        let (mut files, mut damaged, mut pages, mut total_bytes) = (Vec::new(), VecDeque::new(), Vec::new(), 0);
        for entry in tree.entries() {
            let name = &entry.name;
            if is_page(name) {
                pages.extend((is_file || numbered(name).is_some()).then(|| name.clone()));
                continue;
            }
            if !is_file && !name.ends_with(".json") {
                continue;
            }
            let mut head = Vec::new();
            let read = tree.read(name)?.take(HEAD_BYTES).read_to_end(&mut head);
            read.map_err(|e| tree.unreadable(name, 0, e))?;
            let head = String::from_utf8_lossy(&head);
            let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
            if is_chat(head) || (numbered(name).is_some() && has_json_keys(head, &["messages"])) {
                files.push(name.clone());
                total_bytes += entry.bytes;
            } else if numbered(name).is_some() {
                damaged.push_back((name.clone(), NO_MESSAGES));
            }
        }
        let has_json = |page: &str| {
            let json = page.rsplit_once('.').map(|(stem, _)| format!("{stem}.json"));
            json.is_some_and(|json| files.contains(&json))
        };
        // A chat that is present in both forms is read only once.
        let pages: Vec<String> = pages.into_iter().filter(|page| !has_json(page)).collect();
        if files.is_empty() && pages.is_empty() && (is_file || damaged.is_empty()) {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no chat of Messenger or Instagram".to_owned(),
                remedy: REMEDY,
            });
        }
        let bytes_of = |page: &String| tree.entries().iter().find(|e| e.name == *page).map_or(0, |e| e.bytes);
        total_bytes += pages.iter().map(bytes_of).sum::<u64>();
        let zone = Zone::parse(&settings.zone)?;
        // All pages belong to one account, so the first one decides whether a notice is needed; pages in the oldest
        // layout state their zone.
        let notice = match pages.first() {
            Some(page) if has_local_times(&page_text(&tree, page)?, &zone) => {
                Some(zone_notice(Path::new(&tree.origin(page)), &settings.zone))
            }
            _ => None,
        };
        files.extend(pages);
        Ok(Self {
            zone,
            notice,
            tree,
            files,
            file: 0,
            elements: None,
            chats: Vec::new(),
            damaged,
            read_bytes: 0,
            total_bytes,
            conversations: Vec::new(),
            ids: HashMap::new(),
            ids_at: i64::MIN,
            unread: UnreadCounts::default(),
        })
    }

    fn origin(&self, file: usize) -> String {
        self.tree.origin(self.files.get(file).map_or("", String::as_str))
    }

    /// Reads a value of the file.
    fn take(&mut self, element: &JsonElement, order: &mut TimeSorter) -> Result<(), SourceError> {
        let origin = self.origin(self.file);
        let Some(chat) = self.chats.last_mut() else { return Ok(()) };
        let text = || -> Option<String> {
            let text: String = serde_json::from_slice(&element.bytes).ok()?;
            Some(repaired(text.trim().to_owned())).filter(|t| !t.is_empty())
        };
        match PATHS.get(element.path).copied() {
            Some("title" | "threadName") => chat.title = text().or(chat.title.take()),
            Some("thread_path") => chat.path = text(),
            Some("thread_type") => chat.group |= text().is_some_and(|t| t.contains("Group")),
            Some("joinable_mode") => chat.group |= element.bytes != b"null",
            Some("participants/*") => {
                let value: Option<Value> = serde_json::from_slice(&element.bytes).ok();
                let name = value.as_ref().and_then(|v| v.as_str().or_else(|| v.get("name")?.as_str()));
                chat.participants.extend(name.map(|name| repaired(name.to_owned())));
            }
            _ => {
                let read = element.parse::<Value>(&origin).and_then(|value| {
                    let read = MESSAGE.read::<MessengerRecord>(value).and_then(|(record, odd)| {
                        let (unix_ms, kept) = record.read()?;
                        match odd.without_words().filter(|_| kept.what == MessengerMessageKind::Empty) {
                            Some(reason) => return Err(reason),
                            None if matches!(kept.what, MessengerMessageKind::Said { .. }) => {
                                odd.tell_beside(&kept.words(), &mut self.unread);
                            }
                            None => {}
                        }
                        Ok((unix_ms, kept))
                    });
                    let (unix_ms, kept) = read.map_err(|reason| element.reject(&origin, reason))?;
                    match EventTime::new(unix_ms, 0) {
                        Ok(_) => Ok((unix_ms, kept)),
                        Err(e) => Err(element.reject(&origin, format!("timestamp_ms: {e}"))),
                    }
                });
                let (unix_ms, kept) = match read {
                    Ok((unix_ms, kept)) => {
                        chat.senders.insert(kept.sender.clone());
                        (unix_ms, kept)
                    }
                    // Whether the user chose its chat is known only at the end, so the reject is kept until then.
                    Err(letter) => (
                        i64::MIN,
                        MessengerStoredMessage { sender: String::new(), what: MessengerMessageKind::Rejected(letter) },
                    ),
                };
                self.keep(unix_ms, element.line, &kept, order)?;
            }
        }
        Ok(())
    }

    /// Keeps a message of the current chat until messages are returned in order of time.
    fn keep(
        &self,
        unix_ms: i64,
        line: u64,
        kept: &MessengerStoredMessage,
        order: &mut TimeSorter,
    ) -> Result<(), SourceError> {
        let payload = serde_json::to_vec(kept).unwrap_or_default();
        let chat = u32::try_from(self.chats.len().saturating_sub(1)).unwrap_or(u32::MAX);
        order.add(TimedRecord { unix_ms, file: chat, line, payload })
    }

    /// Reads the chats of a page.
    fn take_page(&mut self, name: &str, order: &mut TimeSorter) -> Result<(), SourceError> {
        let text = page_text(&self.tree, name)?;
        self.read_bytes += text.len() as u64;
        let origin = self.tree.origin(name);
        let chats = html_page::chats(&text);
        let is_empty = chats.iter().all(|chat| chat.messages.is_empty());
        for chat in chats {
            let senders = chat.messages.iter().map(|message| message.sender.clone()).collect();
            // On a page of several chats, each chat is identified by its participants.
            let path = chat.is_one_of_several.then(|| chat.participants.join(", ").replace('/', "-"));
            let (title, participants) = (chat.title, chat.participants);
            self.chats.push(MessengerChat { file: self.file, title, path, participants, senders, group: false });
            // The newest message comes first. Messages of the same minute have the same time, so they are added in
            // reverse.
            for message in chat.messages.into_iter().rev() {
                let line = message.line;
                let (unix_ms, kept) = self.of_page(message, &origin);
                self.keep(unix_ms, line, &kept, order)?;
            }
        }
        if is_empty {
            self.damaged.push_back((name.to_owned(), NO_MESSAGES));
        }
        Ok(())
    }

    /// A message of a page, with its time.
    fn of_page(&self, message: MessengerPageMessage, origin: &str) -> (i64, MessengerStoredMessage) {
        let MessengerPageMessage { line, sender, text, shared, stated } = message;
        let rejected = |reason: String| {
            let letter = DeadLetter::new(format!("{origin}:{line}"), reason, format!("{sender}: {text}").as_bytes());
            (i64::MIN, MessengerStoredMessage { sender: String::new(), what: MessengerMessageKind::Rejected(letter) })
        };
        let Some((time, _)) = html_page::time(&stated, &self.zone) else {
            return rejected(format!("{stated:?}: not a time that is known; {REMEDY}"));
        };
        match MessengerRecord::of_page(&sender, time.unix_ms, &text, &shared).read() {
            Ok(read) => read,
            Err(reason) => rejected(reason),
        }
    }

    /// Makes the conversations, once everything has been read.
    fn make_conversations(&mut self) {
        let id = |chat: &MessengerChat| {
            let last = chat.path.as_deref().and_then(|path| path.rsplit('/').find(|part| !part.is_empty()));
            last.map(str::to_owned).unwrap_or_else(|| chat_id(self.files.get(chat.file).map_or("", String::as_str)))
        };
        let ids: Vec<String> = self.chats.iter().map(id).collect();
        let is_account = ids.iter().collect::<BTreeSet<_>>().len() > 1;
        self.conversations = self
            .chats
            .iter()
            .zip(ids)
            .map(|(chat, id)| {
                let group = chat.group || chat.participants.len() > 2;
                let privacy = match (is_account, group) {
                    (false, _) => ConversationPrivacy::Open,
                    (true, true) => ConversationPrivacy::Private,
                    (true, false) => ConversationPrivacy::Direct,
                };
                let named = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
                let name = chat.title.as_deref().map(without_number).filter(|t| !t.is_empty()).map(str::to_owned);
                let name = name
                    .or_else(|| named(chat.participants.iter().map(String::as_str).collect()))
                    .or_else(|| named(chat.senders.iter().map(String::as_str).collect()))
                    .unwrap_or_else(|| id.clone());
                Arc::new(Conversation { workspace: None, id, name, privacy })
            })
            .collect();
    }
}

impl UnorderedReader for MessengerReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        if let Some((name, problem)) = self.damaged.pop_front() {
            let letter = DeadLetter::new(format!("{}:1", self.tree.origin(&name)), problem.to_owned(), b"");
            found.push_back(ChatItem::Reject { conversation: None, letter });
            return Ok(true);
        }
        let Some(name) = self.files.get(self.file) else {
            self.make_conversations();
            return Ok(false);
        };
        if is_page(name) {
            let name = name.clone();
            self.take_page(&name, order)?;
            self.file += 1;
            return Ok(true);
        }
        if self.elements.is_none() {
            self.elements = Some(JsonElements::new(self.tree.read(name)?, &PATHS));
            self.chats.push(MessengerChat { file: self.file, ..MessengerChat::default() });
        }
        let Some(elements) = &mut self.elements else { return Ok(false) };
        match elements.next() {
            Ok(Some(element)) => self.take(&element, order)?,
            Ok(None) => {
                self.read_bytes += elements.read_bytes();
                self.elements = None;
                self.file += 1;
            }
            Err(e) => return Err(self.tree.unreadable(name, elements.line(), e)),
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        let (Ok(kept), Some(conversation)) = (
            serde_json::from_slice::<MessengerStoredMessage>(&record.payload),
            self.conversations.get(record.file as usize).cloned(),
        ) else {
            let file = self.chats.get(record.file as usize).map_or(0, |chat| chat.file);
            let origin = format!("{}:{}", self.origin(file), record.line);
            let letter =
                DeadLetter::new(origin, "cannot be read back; import the file again".to_owned(), &record.payload);
            return ChatItem::Reject { conversation: None, letter };
        };
        if let MessengerMessageKind::Rejected(letter) = kept.what {
            return ChatItem::Reject { conversation: Some(conversation), letter };
        }
        if record.unix_ms != self.ids_at {
            self.ids.clear();
            self.ids_at = record.unix_ms;
        }
        // Every record gets an id, so that a message keeps its id when another one is unsent.
        let ids = self.ids.entry(conversation.id.clone()).or_default();
        let id = ids.id(&record.unix_ms.to_string(), &kept.sender);
        if let Some(skip) = kept.what.skip() {
            return ChatItem::Skip(skip);
        }
        let (MessengerMessageKind::Said { text, attachments }, Ok(time)) =
            (kept.what, EventTime::new(record.unix_ms, 0))
        else {
            return ChatItem::Deletion { conversation, id, version: None };
        };
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id,
            version: 0,
            author: Account { id: kept.sender.clone(), name: kept.sender, handle: None, bot: false },
            text,
            time,
            thread: None,
            reply_to: None,
            attachments,
            mentions: Vec::new(),
        }))
    }

    fn describe(&self) -> String {
        format!("Messenger's chats from {}", self.tree.path().display())
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn bytes(&self) -> (u64, u64) {
        (self.read_bytes + self.elements.as_ref().map_or(0, JsonElements::read_bytes), self.total_bytes)
    }
}

/// The text of a page.
fn page_text(tree: &ExportTree, name: &str) -> Result<String, SourceError> {
    let mut bytes = Vec::new();
    let read = tree.read(name)?.take(MAX_PAGE_BYTES).read_to_end(&mut bytes);
    read.map_err(|e| tree.unreadable(name, 0, e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a page has times that do not state their zone.
fn has_local_times(page: &str, zone: &Zone) -> bool {
    let chats = html_page::chats(page);
    let mut messages = chats.iter().flat_map(|chat| &chat.messages);
    messages.any(|message| html_page::time(&message.stated, zone).is_some_and(|(_, has_zone)| !has_zone))
}

/// The id of a chat whose file does not state one: the folder of `message_1.json`, else the file's name.
fn chat_id(name: &str) -> String {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let stem = [".json", ".html", ".htm"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    let folder = folder.rsplit('/').next().unwrap_or_default();
    match stem.strip_prefix("message_") {
        Some(number) if number.parse::<u32>().is_ok() && !folder.is_empty() => folder.to_owned(),
        _ => stem.to_owned(),
    }
}

/// The name of an encrypted chat without the number that the export adds to it.
fn without_number(title: &str) -> &str {
    match title.rsplit_once('_') {
        Some((name, number))
            if !name.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name
        }
        _ => title,
    }
}

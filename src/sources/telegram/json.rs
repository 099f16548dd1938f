//! Reads `result.json`, of one chat or of a whole account.
//!
//! In: the files of an export. Out: their messages, chat by chat in the file's order, which is oldest first. Memory is
//! bounded by the largest message and by the topics of one chat. Known faults of Telegram Desktop are repaired in the
//! value that has them; a value that stays unreadable is a reject with its line.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    json_repair::repaired_json,
    message::{FORM, TelegramChat, TelegramChatHead},
    message_text::integer,
};
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, Conversation, ExportTree, JsonElement, JsonFileItem, JsonFiles, UnreadCounts},
    turn_source::SourceProgress,
    zone::{Zone, zone_notice},
};

/// The paths of heads and messages: in a file of one chat, in the list of chats, and in the list of chats that the
/// account has left.
const PATHS: [&str; 12] = [
    "name",
    "type",
    "id",
    "messages/*",
    "chats/list/*/name",
    "chats/list/*/type",
    "chats/list/*/id",
    "chats/list/*/messages/*",
    "left_chats/list/*/name",
    "left_chats/list/*/type",
    "left_chats/list/*/id",
    "left_chats/list/*/messages/*",
];
/// How many of these paths belong to one such place.
const PATHS_OF_A_LIST: usize = 4;

/// A reader of the JSON export.
pub(super) struct TelegramJsonReader {
    files: JsonFiles,
    /// The file that is read, from its first value on.
    current: Option<TelegramOpenFile>,
    zone: Zone,
    /// The first item, which was read early to see whether times have a zone.
    first: Option<ChatItem>,
    notice: Option<String>,
    unread: UnreadCounts,
}

struct TelegramOpenFile {
    /// Its name in messages to the user.
    origin: String,
    head: TelegramChatHead,
    /// The chat of the messages that are being read; `None` before the first message.
    chat: Option<TelegramChat>,
    /// Whether the last message stated its moment, or no time at all.
    has_moments: bool,
}

impl TelegramJsonReader {
    /// A reader of these files of the tree, in this order.
    ///
    /// # Errors
    /// [`SourceError`] when the first one cannot be read.
    pub(super) fn open(tree: ExportTree, files: Vec<String>, zone: &str) -> Result<Self, SourceError> {
        let mut reader = Self {
            files: JsonFiles::new(tree, files, &PATHS),
            current: None,
            zone: Zone::parse(zone)?,
            first: None,
            notice: None,
            unread: UnreadCounts::default(),
        };
        reader.first = reader.read()?;
        if reader.current.as_ref().is_some_and(|file| !file.has_moments) {
            reader.notice = Some(zone_notice(reader.files.tree().path(), zone));
        }
        Ok(reader)
    }

    fn read(&mut self) -> Result<Option<ChatItem>, SourceError> {
        while let Some((number, step)) = self.files.step()? {
            match step {
                JsonFileItem::Element(element) => {
                    let file = self.current.get_or_insert_with(|| TelegramOpenFile {
                        origin: self.files.origin(number),
                        head: TelegramChatHead::default(),
                        chat: None,
                        has_moments: true,
                    });
                    if let Some(item) = file.item(&element, &self.zone, &mut self.unread) {
                        return Ok(Some(item));
                    }
                }
                JsonFileItem::End => self.current = None,
            }
        }
        Ok(None)
    }
}

impl ChatReader for TelegramJsonReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        match self.first.take() {
            Some(item) => Ok(Some(item)),
            None => self.read(),
        }
    }

    fn describe(&self) -> String {
        format!("Telegram from {}", self.files.tree().path().display())
    }

    fn progress(&self) -> SourceProgress {
        let (done, total) = self.files.bytes();
        SourceProgress { done, total: Some(total), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

impl TelegramOpenFile {
    /// Handles an element: returns an item, or keeps a part of a chat's head.
    fn item(&mut self, element: &JsonElement, zone: &Zone, unread: &mut UnreadCounts) -> Option<ChatItem> {
        let mut value = match value(element) {
            Some(value) if element.problem.is_none() => value,
            _ => {
                let problem = || element.problem.unwrap_or("not JSON; export the chat again").to_owned();
                let parsed = element.parse::<Value>(&self.origin);
                let letter = parsed.err().unwrap_or_else(|| element.reject(&self.origin, problem()));
                return Some(ChatItem::Reject { conversation: self.conversation(), letter });
            }
        };
        let field = element.path % PATHS_OF_A_LIST;
        let alone = element.path < PATHS_OF_A_LIST;
        if field < PATHS_OF_A_LIST - 1 {
            self.begin(field, &value);
            return None;
        }
        self.has_moments = integer(&value, "date_unixtime").is_some() || value.get("date").is_none();
        let chat = self.chat.get_or_insert_with(|| TelegramChat::new(&self.head, alone, &value, zone.clone()));
        let read = FORM.check(&mut value).and_then(|odd| odd.judge(chat.item(&value)?, unread));
        Some(match read {
            Ok(item) => item,
            Err(reason) => ChatItem::Reject {
                conversation: Some(Arc::clone(chat.conversation())),
                letter: element.reject(&self.origin, reason),
            },
        })
    }

    /// Keeps a field of a chat's head. The first field after messages begins another chat, and so does a field that the
    /// head already has.
    fn begin(&mut self, field: usize, value: &Value) {
        let is_known = match field {
            0 => self.head.name.is_some(),
            1 => self.head.kind.is_some(),
            _ => self.head.id.is_some(),
        };
        if self.chat.take().is_some() || is_known {
            self.head = TelegramChatHead::default();
        }
        let text = || value.as_str().map(|text| text.trim().to_owned());
        match field {
            0 => self.head.name = text(),
            1 => self.head.kind = text(),
            _ => self.head.id = value.as_i64().or_else(|| value.as_str()?.parse().ok()),
        }
    }

    fn conversation(&self) -> Option<Arc<Conversation>> {
        self.chat.as_ref().map(|chat| Arc::clone(chat.conversation()))
    }
}

/// The element as JSON, with known faults of Telegram Desktop repaired.
fn value(element: &JsonElement) -> Option<Value> {
    serde_json::from_slice(&element.bytes).ok().or_else(|| serde_json::from_slice(&repaired_json(&element.bytes)?).ok())
}

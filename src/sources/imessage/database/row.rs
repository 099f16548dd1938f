//! Converts a row of the table `message` into an item.
//!
//! In: a row's values, whatever their types, with its conversation and what was shared. Out: a message, a deletion, a
//! skip, or a dead letter. Pure: nothing here queries the database.

use std::sync::Arc;

use rusqlite::{Row, types::ValueRef};

use super::body;
use crate::{
    chat::{Account, ChatItem, ChatMessage, Conversation, SkipReason},
    lines::MAX_MESSAGE_BYTES,
};
use types::model::{Attachment, DeadLetter, EventTime};

/// The name of the owner of the account, as imessage-exporter writes it.
const ME: &str = "Me";
/// Marks the place of something shared in the words.
const SHARED: char = '\u{fffc}';
/// Milliseconds from 1970 to 2001, when Apple's time begins.
const APPLE_EPOCH_MS: i64 = 978_307_200_000;
/// Times above this are nanoseconds, as macOS 10.13 and later write them; others are seconds.
const MAX_SECONDS: i64 = 100_000_000_000;
/// How much of an archived text is read: its string up to [`MAX_MESSAGE_BYTES`], and what surrounds the string.
pub(super) const MAX_BODY_BYTES: usize = MAX_MESSAGE_BYTES + (64 << 10);

/// The values of a row.
pub(super) struct ImessageRow {
    /// Its place in the order of time.
    pub(super) place: i64,
    /// `message.ROWID`.
    pub(super) number: i64,
    /// The conversation that holds it.
    pub(super) chat: Option<i64>,
    /// The conversation from which the owner deleted it.
    pub(super) deleted_from: Option<i64>,
    guid: String,
    text: String,
    body: Vec<u8>,
    date: i64,
    is_from_me: bool,
    handle: String,
    originator: Option<String>,
    edited: i64,
    retracted: i64,
    item_type: i64,
    group_action: i64,
    associated: i64,
    /// Whether something is shared; `None` if this version of the database does not say.
    pub(super) shares: Option<bool>,
    is_of_app: bool,
    /// The line above the words, if the sender writes such lines.
    subject: String,
}

/// A conversation, with its participants other than the owner.
pub(super) struct ImessageChat {
    pub(super) conversation: Arc<Conversation>,
    pub(super) participants: Vec<String>,
}

impl ImessageRow {
    /// The values, in the order of [`super::reader`]'s query.
    pub(super) fn of(row: &Row<'_>) -> Self {
        let number = |at| integer(row, at).unwrap_or(0);
        Self {
            place: number(0),
            number: number(1),
            chat: integer(row, 2),
            deleted_from: integer(row, 3),
            guid: text(row, 4).unwrap_or_default(),
            text: beginning(row, 5),
            body: bytes(row, 6),
            date: number(7),
            is_from_me: number(8) != 0,
            handle: text(row, 9).unwrap_or_default().trim().to_owned(),
            originator: text(row, 10).filter(|guid| !guid.is_empty()),
            edited: number(11),
            retracted: number(12),
            item_type: number(13),
            group_action: number(14),
            associated: number(15),
            shares: integer(row, 16).map(|count| count != 0),
            is_of_app: text(row, 17).is_some_and(|bundle| !bundle.is_empty()),
            subject: beginning(row, 18).trim().to_owned(),
        }
    }

    /// The skip that it is regardless of its words, if it is a reaction or a notice.
    pub(super) fn skip(&self) -> Option<SkipReason> {
        // 2000 to 2007 are tapbacks, 3000 to 3007 remove one, 4000 is a vote in a poll.
        if (2000..=4000).contains(&self.associated) {
            return Some(SkipReason::Unsupported);
        }
        (self.item_type != 0 || self.group_action != 0).then_some(SkipReason::ServiceMessage)
    }

    /// The item for this row. `origin` names the database.
    pub(super) fn item(self, chat: &ImessageChat, attachments: Vec<Attachment>, origin: &str) -> ChatItem {
        let conversation = Arc::clone(&chat.conversation);
        if self.guid.is_empty() {
            return self.reject(chat, origin, "it has no guid; the message cannot be read");
        }
        if self.chat.is_none() && self.deleted_from.is_some() {
            return ChatItem::Deletion { conversation, id: self.guid, version: None };
        }
        let changed_ms = unix_ms(self.edited.max(self.retracted)).and_then(|ms| u64::try_from(ms).ok());
        if self.retracted > 0 {
            return ChatItem::Deletion { conversation, id: self.guid, version: changed_ms };
        }
        let words = match (self.text.is_empty(), self.body.is_empty()) {
            (true, false) => match body::words(&self.body) {
                Ok(words) => words,
                Err(error) => return self.reject(chat, origin, &error.to_string()),
            },
            _ => &self.text,
        };
        let words = if words.contains(SHARED) { words.replace(SHARED, "").trim().to_owned() } else { words.to_owned() };
        let is_empty = words.trim().is_empty() && attachments.is_empty();
        if is_empty && (changed_ms.is_some() || self.subject.is_empty()) {
            return match changed_ms {
                // When the last part of a message is unsent, Messages empties the row and writes the time.
                Some(version) => ChatItem::Deletion { conversation, id: self.guid, version: Some(version) },
                None if self.is_of_app => ChatItem::Skip(SkipReason::Unsupported),
                None => ChatItem::Skip(SkipReason::Empty),
            };
        }
        let words = match (self.subject.is_empty(), words.trim().is_empty()) {
            (true, _) => words,
            (false, true) => self.subject.clone(),
            (false, false) => format!("{}\n{words}", self.subject),
        };
        let Some(time) = unix_ms(self.date).and_then(|ms| EventTime::new(ms, 0).ok()) else {
            return self.reject(chat, origin, "its date is missing or out of range; the message cannot be read");
        };
        let sender = match &chat.participants[..] {
            _ if self.is_from_me => ME,
            _ if !self.handle.is_empty() => &self.handle,
            [one] => one,
            _ => return self.reject(chat, origin, "it names no sender; the message cannot be read"),
        };
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            version: changed_ms.unwrap_or(0),
            author: Account { id: sender.to_owned(), name: sender.to_owned(), handle: None, bot: false },
            text: words,
            time,
            thread: None,
            reply_to: self.originator,
            attachments,
            mentions: Vec::new(),
            id: self.guid,
        }))
    }

    fn reject(&self, chat: &ImessageChat, origin: &str, reason: &str) -> ChatItem {
        let payload = if self.text.is_empty() { &self.body } else { self.text.as_bytes() };
        let letter = DeadLetter::new(format!("{origin}: message {}", self.number), reason.to_owned(), payload);
        ChatItem::Reject { conversation: Some(Arc::clone(&chat.conversation)), letter }
    }
}

/// One of Apple's times as milliseconds since 1970; `None` for 0, which means no time.
fn unix_ms(time: i64) -> Option<i64> {
    let since_2001_ms = match time {
        ..=0 => return None,
        1..=MAX_SECONDS => time * 1000,
        _ => time / 1_000_000,
    };
    Some(since_2001_ms + APPLE_EPOCH_MS)
}

/// A whole number, even if it is stored as text.
pub(super) fn integer(row: &Row<'_>, at: usize) -> Option<i64> {
    match row.get_ref(at).ok()? {
        ValueRef::Integer(value) => Some(value),
        // Rounds towards zero, and saturates at the limits of `i64`.
        ValueRef::Real(value) => Some(value as i64),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// A text; bytes that are not UTF-8 are replaced.
pub(super) fn text(row: &Row<'_>, at: usize) -> Option<String> {
    match row.get_ref(at).ok()? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Null | ValueRef::Real(_) => None,
    }
}

/// The beginning of a text: more than a turn holds.
fn beginning(row: &Row<'_>, at: usize) -> String {
    match row.get_ref(at) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            String::from_utf8_lossy(bytes.get(..MAX_MESSAGE_BYTES).unwrap_or(bytes)).into_owned()
        }
        _ => text(row, at).unwrap_or_default(),
    }
}

fn bytes(row: &Row<'_>, at: usize) -> Vec<u8> {
    match row.get_ref(at) {
        Ok(ValueRef::Blob(bytes) | ValueRef::Text(bytes)) => bytes.to_vec(),
        _ => Vec::new(),
    }
}

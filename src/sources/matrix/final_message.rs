//! Makes a chat item from what was said in a room.
//!
//! In: the content of a message, its sender and time, and the names of accounts. Out: a chat item. It is the same for
//! an export and for a room that is followed live.

use std::sync::Arc;

use serde_json::Value;

use super::event::words;
use crate::chat::{Account, ChatItem, ChatMessage, Conversation, SkipReason};
use types::model::EventTime;

/// A message whose content is final.
pub(super) struct MatrixFinalMessage {
    pub(super) conversation: Arc<Conversation>,
    pub(super) id: String,
    pub(super) sender: String,
    pub(super) unix_ms: i64,
    /// Its content, after its last edit.
    pub(super) content: Value,
    /// The time of that edit; 0 if there is none.
    pub(super) version: u64,
    pub(super) thread: Option<String>,
    pub(super) reply_to: Option<String>,
}

impl MatrixFinalMessage {
    /// The item of the message. `account` returns accounts by their ids.
    pub(super) fn item(self, account: &dyn Fn(&str) -> Account) -> ChatItem {
        let Self { conversation, id, sender, unix_ms, content, version, thread, reply_to } = self;
        let mut words = words(&content);
        if words.protocol {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        }
        if words.text.is_empty() && words.attachments.is_empty() {
            return ChatItem::Skip(SkipReason::Empty);
        }
        let mut author = account(&sender);
        author.bot = words.bot;
        if words.action {
            words.text = format!("{} {}", author.name, words.text);
        }
        let mut mentions: Vec<Account> =
            words.pills.into_iter().map(|(id, name)| Account { name, ..account(&id) }).collect();
        let named: Vec<Account> = words
            .mentioned
            .iter()
            .map(|id| account(id))
            .filter(|a| words.text.contains(&a.name) && mentions.iter().all(|m| m.id != a.id))
            .collect();
        mentions.extend(named);
        let Ok(time) = EventTime::new(unix_ms, 0) else { return ChatItem::Skip(SkipReason::Unsupported) };
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id,
            version,
            author,
            text: words.text,
            time,
            thread,
            reply_to,
            attachments: words.attachments,
            mentions,
        }))
    }
}

/// An account, from its id and its name in a room.
pub(super) fn account(id: &str, name: Option<String>) -> Account {
    let handle = id.strip_prefix('@').unwrap_or(id);
    let local = handle.split(':').next().filter(|l| !l.is_empty()).unwrap_or(handle);
    let name = name.unwrap_or_else(|| local.to_owned());
    Account { id: id.to_owned(), name, handle: Some(handle.to_owned()), bot: false }
}

/// The name in the content of a member event.
pub(super) fn display_name(content: Option<&Value>) -> Option<String> {
    let name = content?.get("displayname")?.as_str()?.trim();
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

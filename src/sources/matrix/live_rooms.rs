//! Follows the rooms of an account.
//!
//! In: the state of rooms, and their events as they come. Out: the same chat items as from an export of the room, and
//! the request that has to be made first: for the state of an unknown room, or for the message that an edit changes.
//! Memory grows with rooms and their members, never with messages.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::{
    event::{FORM, MatrixEvent},
    final_message::{MatrixFinalMessage, account, display_name},
};
use crate::chat::{Account, ChatItem, Conversation, ConversationPrivacy, SkipReason, UnreadCounts};

/// The rooms that are known.
#[derive(Debug, Default)]
pub(crate) struct MatrixLiveRooms {
    rooms: HashMap<String, MatrixLiveRoom>,
    /// Rooms in which somebody wrote encrypted messages, until a notice has named them.
    encrypted: BTreeSet<String>,
    /// Rooms that a notice has named.
    named: BTreeSet<String>,
    /// Fields that were not read.
    pub(crate) unread: UnreadCounts,
}

#[derive(Debug, Default)]
struct MatrixLiveRoom {
    name: Option<String>,
    alias: Option<String>,
    /// Names of members by account.
    members: HashMap<String, String>,
    is_public: bool,
    is_direct: bool,
    conversation: Option<Arc<Conversation>>,
}

/// What follows from an event.
#[derive(Debug, PartialEq)]
pub(crate) enum MatrixEventOutcome {
    /// Nothing has to be requested: this is its item.
    Item(ChatItem),
    /// It edits this message, which has to be requested by its id; continue with [`MatrixLiveRooms::edited_item`].
    EditOf(String),
}

impl MatrixLiveRooms {
    /// Whether the state of a room is known.
    pub(crate) fn knows(&self, room: &str) -> bool {
        self.rooms.contains_key(room)
    }

    /// Keeps events of a room's state: its name, who may join, its members' names.
    pub(crate) fn learn<'a>(&mut self, room: &str, events: impl IntoIterator<Item = &'a Value>) {
        let room = self.rooms.entry(room.to_owned()).or_default();
        for event in events {
            let text = |pointer: &str| {
                let text = event.pointer(pointer).and_then(Value::as_str).map(str::trim);
                text.filter(|text| !text.is_empty()).map(str::to_owned)
            };
            match event.get("type").and_then(Value::as_str).unwrap_or_default() {
                "m.room.name" => room.name = text("/content/name"),
                "m.room.canonical_alias" => room.alias = text("/content/alias"),
                "m.room.join_rules" => room.is_public = text("/content/join_rule").as_deref() == Some("public"),
                "m.room.member" => {
                    room.is_direct |= event.pointer("/content/is_direct").and_then(Value::as_bool) == Some(true);
                    let before = || display_name(event.pointer("/unsigned/prev_content"));
                    if let (Some(account), Some(name)) =
                        (text("/state_key"), display_name(event.get("content")).or_else(before))
                    {
                        room.members.insert(account, name);
                    }
                }
                _ => {}
            }
        }
    }

    /// The rooms in which somebody wrote encrypted messages since the last call; each room is returned once.
    pub(crate) fn newly_encrypted(&mut self) -> Vec<String> {
        let new: Vec<String> = std::mem::take(&mut self.encrypted).into_iter().collect();
        self.named.extend(new.iter().cloned());
        new
    }

    /// The conversation of a room. It keeps the name that the room has at the first call.
    pub(crate) fn conversation(&mut self, id: &str) -> Arc<Conversation> {
        let room = self.rooms.entry(id.to_owned()).or_default();
        let people = || {
            let mut names: Vec<String> = room.members.values().cloned().collect();
            names.sort_unstable();
            Some(names.join(", ")).filter(|names| !names.is_empty() && room.members.len() <= 8)
        };
        let name = room.name.clone().or_else(|| room.alias.clone()).or_else(people).unwrap_or_else(|| id.to_owned());
        let privacy = match (room.is_public, room.is_direct && room.members.len() <= 8) {
            (true, _) => ConversationPrivacy::Open,
            (_, true) => ConversationPrivacy::Direct,
            _ => ConversationPrivacy::Private,
        };
        let new = || Arc::new(Conversation { workspace: None, id: id.to_owned(), name, privacy });
        Arc::clone(room.conversation.get_or_insert_with(new))
    }

    fn account(&self, room: &str, id: &str) -> Account {
        account(id, self.rooms.get(room).and_then(|room| room.members.get(id).cloned()))
    }

    /// Reads an event of a room's timeline.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn item(&mut self, room: &str, event: &Value) -> Result<MatrixEventOutcome, String> {
        let (mut read, odd) = FORM.read::<MatrixEvent>(event.clone())?;
        if read.state_key.is_some() {
            self.learn(room, [event]);
        }
        let skip = |skip| Ok(MatrixEventOutcome::Item(ChatItem::Skip(skip)));
        if read.state_key.is_some() || read.kind.starts_with("m.call.") {
            return skip(SkipReason::ServiceMessage);
        }
        let conversation = self.conversation(room);
        let missing = |field: &str| format!("{field}: missing; every event must have one");
        let unix_ms = read.origin_server_ts.ok_or_else(|| missing("origin_server_ts"))?;
        if read.kind == "m.room.redaction" {
            let Some(id) = read.removed().map(str::to_owned) else { return skip(SkipReason::Unsupported) };
            let version = u64::try_from(unix_ms).ok();
            return Ok(MatrixEventOutcome::Item(ChatItem::Deletion { conversation, id, version }));
        }
        if !read.is_message() {
            return skip(SkipReason::Unsupported);
        }
        let id = read.event_id.clone().ok_or_else(|| missing("event_id"))?;
        if read.is_redacted() {
            let version = read.redacted_at();
            return Ok(MatrixEventOutcome::Item(ChatItem::Deletion { conversation, id, version }));
        }
        if read.is_encrypted() {
            if !self.named.contains(room) {
                self.encrypted.insert(room.to_owned());
            }
            return skip(SkipReason::Encrypted);
        }
        if let Some(of) = read.edited() {
            return Ok(MatrixEventOutcome::EditOf(of.to_owned()));
        }
        let sender = read.sender.clone().ok_or_else(|| missing("sender"))?;
        let thread = read.thread().map(str::to_owned).or_else(|| read.begins_thread().then(|| id.clone()));
        let reply_to = read.reply_to().map(str::to_owned);
        let (content, version) = read.edited_content();
        let spoken = MatrixFinalMessage { conversation, id, sender, unix_ms, content, version, thread, reply_to };
        let item = spoken.item(&|id| self.account(room, id));
        Ok(MatrixEventOutcome::Item(odd.judge(item, &mut self.unread)?))
    }

    /// The item of a message after an edit.
    ///
    /// # Errors
    /// Why one of the two cannot be read.
    pub(crate) fn edited_item(&mut self, room: &str, original: &Value, edit: &Value) -> Result<ChatItem, String> {
        let (new, odd) = FORM.read::<MatrixEvent>(edit.clone())?;
        let (old, _) = FORM.read::<MatrixEvent>(original.clone())?;
        if new.sender != old.sender {
            return Ok(ChatItem::Skip(SkipReason::Unsupported));
        }
        if old.is_redacted() {
            return Ok(ChatItem::Skip(SkipReason::Copy));
        }
        let (Some(id), Some(sender), Some(unix_ms)) = (old.event_id.clone(), old.sender.clone(), old.origin_server_ts)
        else {
            return Err("the message that it edits has no id, sender or time".to_owned());
        };
        let Some(content) = new.content.get("m.new_content").cloned() else {
            return Ok(ChatItem::Skip(SkipReason::Unsupported));
        };
        let version = new.origin_server_ts.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1);
        let thread = old.thread().map(str::to_owned).or_else(|| old.begins_thread().then(|| id.clone()));
        let reply_to = old.reply_to().map(str::to_owned);
        let conversation = self.conversation(room);
        let spoken = MatrixFinalMessage { conversation, id, sender, unix_ms, content, version, thread, reply_to };
        let item = spoken.item(&|id| self.account(room, id));
        odd.judge(item, &mut self.unread)
    }
}

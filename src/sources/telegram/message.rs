//! Reads one message of the JSON export as a chat item.
//!
//! In: the head of a chat, then its messages in the file's order. Out: an item for each, or the reason why it cannot be
//! read. Ids are the platform's. A chat that became a supergroup holds messages with two series of ids: the older
//! messages get the prefix `group`, as they do in an export made before the change. Accounts and chats have ids as in
//! newer exports (`user5`, `channel7`), whatever the version of Telegram Desktop.

use std::sync::Arc;

use jiff::civil::DateTime;
use serde_json::Value;

use super::{
    attachments::attachments,
    message_text::{forwarded, integer, plain, text_field},
    rich_message::rich_words,
    topics::TelegramTopics,
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, LIST, NUMBER, OBJECT, PositionalIds,
        RecordForm, SkipReason, TEXT,
    },
    zone::Zone,
};
use types::model::EventTime;

/// The fields of a message.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", NUMBER | TEXT),
        ("type", TEXT),
        ("date", TEXT),
        ("date_unixtime", TEXT | NUMBER),
        ("from", TEXT),
        ("from_id", TEXT | NUMBER),
        ("text", TEXT | LIST),
        ("text[]", TEXT | OBJECT),
        ("text[]/text", TEXT),
    ],
    other: &[
        ("text_entities", LIST),
        ("text_entities[]", TEXT | OBJECT),
        ("text_entities[]/text", TEXT),
        ("edited", TEXT),
        ("edited_unixtime", TEXT | NUMBER),
        ("reply_to_message_id", NUMBER | TEXT),
        ("forwarded_from", TEXT),
        ("forwarded_from_id", TEXT | NUMBER),
        ("photo", TEXT),
        ("file", TEXT),
        ("file_name", TEXT),
        ("media_type", TEXT),
        ("sticker_emoji", TEXT),
        ("title", TEXT),
        ("performer", TEXT),
        ("poll", OBJECT),
        ("poll/question", TEXT | LIST),
        ("poll/answers", LIST),
        ("poll/answers[]", OBJECT),
        ("contact_information", OBJECT | TEXT),
        ("location_information", OBJECT | TEXT),
        ("place_name", TEXT),
        ("game_title", TEXT),
        ("invoice_information", OBJECT | TEXT),
        ("rich_message", OBJECT),
        ("address", TEXT),
        ("game_description", TEXT),
        ("todo_list", OBJECT),
        ("giveaway_information", OBJECT),
        ("giveaway_results", OBJECT),
        ("contact_information/first_name", TEXT),
        ("contact_information/last_name", TEXT),
        ("contact_information/phone_number", TEXT),
        ("invoice_information/title", TEXT),
        ("invoice_information/description", TEXT),
        ("poll/answers[]/text", TEXT | LIST),
    ],
    known: &[
        "actor",
        "action",
        "reactions",
        "inline_bot_buttons",
        "via_bot",
        "author",
        "thumbnail",
        "saved_from",
        "contact_vcard",
        "game_link",
        "location_information",
        "giveaway_information/countries",
        "giveaway_information/channels",
        "giveaway_results/winners",
        "poll/answers[]/chosen",
        "poll/answers[]/voters",
        "invoice_information",
        "invoice_information/currency",
        "reply_to_quote",
        "forwarded_from",
        "text[]/document_id",
        "text_entities[]/document_id",
        "**/href",
        "**/language",
        "**/align",
        "**/vertical_align",
        "**/task_state",
        "**/content",
        "**/kind",
    ],
    remedy: "export the chat again",
};

/// Telegram Desktop subtracts this from the ids of messages that are older than a group's change to a supergroup.
const MIGRATED_SHIFT: i64 = 1_000_000_000;
/// Until April 2021, this was added to the ids of users, and twice this to the ids of groups.
const OLD_USER_SHIFT: i64 = 1 << 32;
const OLD_GROUP_SHIFT: i64 = 1 << 33;

/// What the export says about a chat before its messages.
#[derive(Debug, Clone, Default)]
pub(super) struct TelegramChatHead {
    /// Its name; `None` for saved messages and deleted accounts.
    pub(super) name: Option<String>,
    /// Its type, such as `personal_chat`.
    pub(super) kind: Option<String>,
    /// Its id among the chats of its kind.
    pub(super) id: Option<i64>,
}

/// A chat whose messages are being read.
pub(super) struct TelegramChat {
    conversation: Arc<Conversation>,
    /// Whether it is a basic group, whose ids belong to the series before a migration.
    is_basic_group: bool,
    /// The account of the bot, if the chat is with one.
    bot: Option<String>,
    zone: Zone,
    topics: TelegramTopics,
    positions: PositionalIds,
}

impl TelegramChat {
    /// A chat, from its head and its first message, which only shows the age of the export. `alone` means that the file
    /// holds no other chat.
    pub(super) fn new(head: &TelegramChatHead, alone: bool, first: &Value, zone: Zone) -> Self {
        let kind = head.kind.as_deref().unwrap_or_default();
        let is_old = ["from_id", "actor_id"].iter().any(|field| first.get(field).is_some_and(Value::is_number));
        let id = conversation_id(kind, head.id, is_old);
        let name = head.name.clone().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| match kind {
            "saved_messages" => "Saved Messages".to_owned(),
            "replies" => "Replies".to_owned(),
            "verification_codes" => "Verification Codes".to_owned(),
            _ => id.clone().unwrap_or_else(|| "Telegram".to_owned()),
        });
        let privacy = match kind {
            _ if alone => ConversationPrivacy::Open,
            "public_supergroup" | "public_channel" => ConversationPrivacy::Open,
            "personal_chat" | "bot_chat" | "saved_messages" | "replies" | "verification_codes" => {
                ConversationPrivacy::Direct
            }
            // This was not written by Telegram Desktop, which always states both.
            "" if head.id.is_none() => ConversationPrivacy::Open,
            _ => ConversationPrivacy::Private,
        };
        Self {
            bot: id.clone().filter(|_| kind == "bot_chat"),
            conversation: Arc::new(Conversation {
                workspace: None,
                id: id.unwrap_or_else(|| name.clone()),
                name,
                privacy,
            }),
            is_basic_group: kind == "private_group",
            zone,
            topics: TelegramTopics::default(),
            positions: PositionalIds::default(),
        }
    }

    /// Notes that the next message is in a topic, and what it answers there.
    pub(super) fn in_topic(&mut self, topic: i64, answered: Option<i64>) {
        self.topics.begin(topic);
        if let Some(answered) = answered.filter(|answered| *answered != topic) {
            self.topics.of(answered, topic);
        }
    }

    /// The chat as a conversation.
    pub(super) fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }

    /// The item of one message.
    ///
    /// # Errors
    /// Why it cannot be read, and what to do.
    pub(super) fn item(&mut self, message: &Value) -> Result<ChatItem, String> {
        if !message.is_object() {
            return Err("not an object; export the chat again".to_owned());
        }
        match text_field(message, "type").unwrap_or("message") {
            "message" => self.message(message),
            "service" => {
                if text_field(message, "action") == Some("topic_created")
                    && let Some(id) = integer(message, "id")
                {
                    self.topics.begin(id);
                }
                Ok(ChatItem::Skip(SkipReason::ServiceMessage))
            }
            kind => Ok(ChatItem::Skip(SkipReason::unsupported(kind))),
        }
    }

    fn message(&mut self, message: &Value) -> Result<ChatItem, String> {
        let time = self.time(message)?;
        let author = self.author(message);
        let number = integer(message, "id");
        let id = match number {
            Some(id) => self.message_id(id),
            None => self.positions.id(&time.to_string(), &author.id),
        };
        let (thread, reply_to) = self.place(message, number);
        let mut attachments = attachments(message);
        let words = said(message);
        let words = words.as_str();
        // Telegram Desktop writes null for accounts that were deleted or are hidden.
        let is_forwarded = ["forwarded_from", "forwarded_from_id"].iter().any(|key| message.get(key).is_some());
        let text = if is_forwarded {
            let origin = text_field(message, "forwarded_from").or_else(|| text_field(message, "forwarded_from_id"));
            forwarded(origin, words, &mut attachments)
        } else {
            words.to_owned()
        };
        if text.is_empty() && attachments.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        Ok(ChatItem::Message(Box::new(ChatMessage {
            conversation: Arc::clone(&self.conversation),
            id,
            version: self.version(message, time),
            author,
            text,
            time,
            thread,
            reply_to,
            attachments,
            mentions: Vec::new(),
        })))
    }

    /// The time of a message. The difference between its local time and its moment is the offset of the computer that
    /// exported it.
    fn time(&self, message: &Value) -> Result<EventTime, String> {
        let local = text_field(message, "date").and_then(|date| date.parse::<DateTime>().ok());
        let out_of_range = || "date: out of range; a year from 1900 to 2199 is read".to_owned();
        match (integer(message, "date_unixtime"), local) {
            (Some(seconds), local) => {
                let unix_ms = seconds.checked_mul(1_000).ok_or_else(out_of_range)?;
                let offset = local.and_then(|local| offset_between(local, seconds));
                match offset {
                    Some(offset) => EventTime::new(unix_ms, offset).map_err(|_| out_of_range()),
                    None => self.zone.at_unix_ms(unix_ms).ok_or_else(out_of_range),
                }
            }
            (None, Some(local)) => self.zone.moment(local).ok_or_else(out_of_range),
            (None, None) => Err("date_unixtime, date: neither is a time; export the chat again".to_owned()),
        }
    }

    /// When it was last edited, in milliseconds. Versions of Telegram Desktop before June 2020 state an edit in 1970
    /// for messages that were never edited.
    fn version(&self, message: &Value, time: EventTime) -> u64 {
        let local = || text_field(message, "edited").and_then(|date| date.parse::<DateTime>().ok());
        let edited = match integer(message, "edited_unixtime") {
            Some(seconds) => seconds.checked_mul(1_000),
            None => local().and_then(|local| self.zone.moment(local)).map(|edited| edited.unix_ms),
        };
        edited.filter(|ms| *ms >= time.unix_ms).and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default()
    }

    fn author(&self, message: &Value) -> Account {
        let id = match message.get("from_id") {
            Some(Value::String(id)) if !id.trim().is_empty() => Some(id.trim().to_owned()),
            Some(Value::Number(id)) => id.as_i64().map(old_account_id),
            _ => None,
        };
        let name = text_field(message, "from").map(str::to_owned);
        // Telegram Desktop writes no name for deleted accounts.
        let name = name.or_else(|| id.clone()).unwrap_or_else(|| "Deleted Account".to_owned());
        let bot = id.is_some() && id == self.bot;
        Account { id: id.unwrap_or_else(|| name.clone()), name, handle: None, bot }
    }

    /// The topic of a message and the id of the message that it answers. A message that answers a topic's first message
    /// is only a message in the topic.
    fn place(&mut self, message: &Value, id: Option<i64>) -> (Option<String>, Option<String>) {
        let Some(target) = integer(message, "reply_to_message_id") else { return (None, None) };
        match text_field(message, "reply_to_peer_id") {
            // A message in the group that became this supergroup.
            Some(peer) if peer.starts_with("chat") => return (None, Some(migrated_id(target))),
            Some(_) => return (None, None),
            None if message.get("reply_to_peer_id").is_some() => return (None, None),
            None => {}
        }
        let topic = id.and_then(|id| self.topics.of(id, target));
        let reply_to = (!self.topics.is_root(target)).then(|| self.message_id(target));
        (topic.map(|id| self.message_id(id)), reply_to)
    }

    fn message_id(&self, id: i64) -> String {
        if self.is_basic_group {
            migrated_id(id)
        } else if id < 0 && id > -MIGRATED_SHIFT {
            migrated_id(id + MIGRATED_SHIFT)
        } else {
            id.to_string()
        }
    }
}

/// The words of a message: its text, else the text with its styles; and those of its blocks.
fn said(message: &Value) -> String {
    let of = |name: &str| message.get(name).map(plain).filter(|text| !text.trim().is_empty());
    let text = of("text").or_else(|| of("text_entities"));
    let rich = message.get("rich_message").map(rich_words).filter(|rich| !rich.trim().is_empty());
    let parts: Vec<String> = text.into_iter().chain(rich).map(|part| part.trim().to_owned()).collect();
    parts.join("\n")
}

/// The id of a message in a basic group.
fn migrated_id(id: i64) -> String {
    format!("group{id}")
}

/// The id of a chat, in the form in which newer exports write ids of accounts.
fn conversation_id(kind: &str, id: Option<i64>, is_old: bool) -> Option<String> {
    let id = id?;
    let without = |shift: i64| if id >= shift { id - shift } else { id };
    Some(match kind {
        "personal_chat" | "bot_chat" | "saved_messages" | "replies" | "verification_codes" => {
            // The ids of users have since grown beyond the old shift.
            format!("user{}", if is_old { without(OLD_USER_SHIFT) } else { id })
        }
        "private_group" => format!("chat{}", without(OLD_GROUP_SHIFT)),
        "" => id.to_string(),
        _ => format!("channel{}", without(OLD_GROUP_SHIFT)),
    })
}

/// The id of an account that an older version wrote as a number.
fn old_account_id(id: i64) -> String {
    if id >= OLD_GROUP_SHIFT {
        format!("channel{}", id - OLD_GROUP_SHIFT)
    } else if id >= OLD_USER_SHIFT {
        format!("user{}", id - OLD_USER_SHIFT)
    } else {
        format!("user{id}")
    }
}

/// The offset at which a moment has this local time; `None` if the two do not fit together.
fn offset_between(local: DateTime, unix_seconds: i64) -> Option<i32> {
    let as_utc = jiff::tz::Offset::UTC.to_timestamp(local).ok()?.as_second();
    let offset = i32::try_from(as_utc.checked_sub(unix_seconds)?).ok()?;
    (offset.abs() <= 14 * 3_600 && offset % 900 == 0).then_some(offset)
}

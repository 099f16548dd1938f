//! Reads one message of DiscordChatExporter as a chat item.
//!
//! In: the head of a file, then its messages. Out: an item for each, or the reason why it cannot be read. A thread
//! belongs to its parent channel, which DiscordChatExporter calls the category; a private thread is a conversation of
//! its own. Embeds, stickers and files become attachments. A forwarded message's words follow `Forwarded:`. Notices and
//! copies are skips.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    attachments::{attachments, field},
    markdown::plain,
    mentions::{DiscordNames, with_names},
    message_kind::{DiscordMessageKind, message_kind},
    snowflake::{self, id_of},
};
use crate::chat::{
    Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, LIST, NUMBER, OBJECT, RecordForm, SkipReason,
    TEXT, TRUTH,
};
use types::model::EventTime;

/// The fields of a message.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT | NUMBER),
        ("type", TEXT | NUMBER),
        ("timestamp", TEXT),
        ("timestampEdited", TEXT),
        ("content", TEXT),
        ("author", OBJECT),
        ("author/id", TEXT | NUMBER),
        ("author/name", TEXT),
        ("author/nickname", TEXT),
        ("forwardedMessage", OBJECT),
        ("forwardedMessage/content", TEXT),
        ("reference", OBJECT),
        ("reference/messageId", TEXT | NUMBER),
    ],
    other: &[
        ("author/isBot", TRUTH),
        ("author/roles", LIST),
        ("attachments", LIST),
        ("attachments[]", OBJECT),
        ("attachments[]/fileName", TEXT),
        ("attachments[]/url", TEXT),
        ("embeds", LIST),
        ("embeds[]", OBJECT),
        ("embeds[]/title", TEXT),
        ("embeds[]/description", TEXT),
        ("embeds[]/fields", LIST),
        ("embeds[]/fields[]/name", TEXT),
        ("embeds[]/fields[]/value", TEXT),
        ("stickers", LIST),
        ("stickers[]", OBJECT),
        ("stickers[]/name", TEXT),
        ("mentions", LIST),
        ("mentions[]", OBJECT),
        ("mentions[]/name", TEXT),
        ("mentions[]/nickname", TEXT),
        ("mentions[]/id", TEXT | NUMBER),
        ("embeds[]/fields[]", OBJECT),
        ("embeds[]/author", OBJECT),
        ("embeds[]/author/name", TEXT),
        ("embeds[]/footer", OBJECT),
        ("embeds[]/footer/text", TEXT),
        ("forwardedMessage/attachments", LIST),
        ("forwardedMessage/embeds", LIST),
        ("forwardedMessage/stickers", LIST),
    ],
    known: &[
        "author/roles",
        "author/discriminator",
        "author/color",
        "author/avatarUrl",
        "author/isBot",
        "author/name",
        "mentions[]/roles",
        "mentions[]/discriminator",
        "mentions[]/color",
        "mentions[]/avatarUrl",
        "mentions[]/isBot",
        "reactions",
        "inlineEmojis",
        "embeds[]/provider",
        "embeds[]/inlineEmojis",
        "embeds[]/image",
        "embeds[]/images",
        "embeds[]/thumbnail",
        "embeds[]/video",
        "interaction",
        "reference",
        "callEndedTimestamp",
        "isPinned",
        "**/sourceUrl",
        "**/fileSizeBytes",
        "**/proxyUrl",
        "**/iconUrl",
        "**/canonicalUrl",
    ],
    remedy: "export the channel again",
};

/// What the file of a channel or thread says before its messages.
#[derive(Debug, Clone)]
pub(super) struct DiscordChannel {
    /// Its id.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// The conversation that its messages belong to.
    pub(super) conversation: Arc<Conversation>,
    /// Whether it is a thread of that conversation.
    pub(super) is_thread: bool,
}

impl DiscordChannel {
    /// Reads `guild` and `channel` of a file. `alone` means that the export is this one file.
    pub(super) fn new(guild: &Value, channel: &Value, alone: bool) -> Self {
        let id = channel.get("id").and_then(id_of);
        let name =
            field(channel, "name").map(str::to_owned).or_else(|| id.clone()).unwrap_or_else(|| "Discord".to_owned());
        let id = id.unwrap_or_else(|| name.clone());
        let kind = channel.get("type").map(kind_of).unwrap_or_default();
        let is_direct = matches!(kind.as_str(), "DirectTextChat" | "DirectGroupTextChat" | "1" | "3");
        let is_private_thread = matches!(kind.as_str(), "GuildPrivateThread" | "12");
        let is_open_thread = matches!(kind.as_str(), "GuildPublicThread" | "GuildNewsThread" | "10" | "11");
        let parent = channel.get("categoryId").and_then(id_of).filter(|_| is_open_thread);
        let privacy = match (alone, is_direct, is_private_thread) {
            (true, ..) => ConversationPrivacy::Open,
            (_, true, _) => ConversationPrivacy::Direct,
            (.., true) => ConversationPrivacy::Private,
            _ => ConversationPrivacy::Open,
        };
        let workspace = field(guild, "name").map(str::to_owned);
        let is_thread = parent.is_some();
        let (conversation_id, conversation_name) = match parent {
            Some(parent) => (parent.clone(), field(channel, "category").map_or(parent, str::to_owned)),
            None => (id.clone(), name.clone()),
        };
        let conversation = Conversation { workspace, id: conversation_id, name: conversation_name, privacy };
        Self { id, name, conversation: Arc::new(conversation), is_thread }
    }

    /// The item of one message; `channels` are the names of the export's channels by id.
    ///
    /// # Errors
    /// Why it cannot be read, and what to do.
    pub(super) fn item(&self, message: &Value, channels: &HashMap<String, String>) -> Result<ChatItem, String> {
        if !message.is_object() {
            return Err("not an object; export the channel again".to_owned());
        }
        let meaning = message_kind(&message.get("type").map(kind_of).unwrap_or_default());
        if let DiscordMessageKind::No(skip) = meaning {
            return Ok(ChatItem::Skip(skip));
        }
        let id = message.get("id").and_then(id_of).ok_or("id: not an id of Discord; export the channel again")?;
        let time = time(message, "timestamp", &id).ok_or("timestamp: not a time; export the channel again")?;
        let mentioned = DiscordMentions::of(message, channels);
        let render = |text: &str| plain(&with_names(text, &mentioned));
        let mut text = field(message, "content").map(render).unwrap_or_default();
        let mut shared = attachments(message, render);
        if let Some(forwarded) = message.get("forwardedMessage").filter(|f| f.is_object()) {
            if let Some(words) = field(forwarded, "content") {
                let separator = if text.is_empty() { "" } else { "\n" };
                text = format!("{text}{separator}Forwarded: {}", render(words));
            }
            shared.extend(attachments(forwarded, render));
        }
        if text.is_empty() && shared.is_empty() {
            let kind = || message.get("type").map(kind_of).unwrap_or_default();
            let skip = if meaning == DiscordMessageKind::Unknown {
                SkipReason::unsupported(&kind())
            } else {
                SkipReason::Empty
            };
            return Ok(ChatItem::Skip(skip));
        }
        let author = message.get("author").filter(|author| author.is_object());
        let author = author.and_then(account).ok_or("author: has no id and no name; export the channel again")?;
        Ok(ChatItem::Message(Box::new(ChatMessage {
            conversation: Arc::clone(&self.conversation),
            version: version(message, time),
            author,
            text,
            time,
            thread: self.is_thread.then(|| self.id.clone()),
            reply_to: self.reply_to(message, meaning),
            attachments: shared,
            mentions: mentioned.accounts,
            id,
        })))
    }

    /// The id of the message that this one answers. References to another channel are ignored: they come from forwards
    /// and from followed channels.
    fn reply_to(&self, message: &Value, meaning: DiscordMessageKind) -> Option<String> {
        let reference = message.get("reference").filter(|_| meaning == DiscordMessageKind::Words { is_reply: true })?;
        let channel = reference.get("channelId").and_then(id_of);
        let is_here = channel.is_none_or(|channel| channel == self.id || channel == self.conversation.id);
        reference.get("messageId").and_then(id_of).filter(|_| is_here)
    }
}

/// The accounts and roles that a message names.
struct DiscordMentions<'a> {
    accounts: Vec<Account>,
    roles: HashMap<String, String>,
    channels: &'a HashMap<String, String>,
}

impl<'a> DiscordMentions<'a> {
    fn of(message: &Value, channels: &'a HashMap<String, String>) -> Self {
        let mentions = message.get("mentions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let people = mentions.iter().chain(message.get("author"));
        let mut roles = HashMap::new();
        for person in people {
            let held = person.get("roles").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for role in held {
                if let (Some(id), Some(name)) = (role.get("id").and_then(id_of), field(role, "name")) {
                    roles.insert(id, name.to_owned());
                }
            }
        }
        Self { accounts: mentions.iter().filter_map(account).collect(), roles, channels }
    }
}

impl DiscordNames for DiscordMentions<'_> {
    fn account(&self, id: &str) -> Option<String> {
        self.accounts.iter().find(|account| account.id == id).map(|account| account.name.clone())
    }

    fn role(&self, id: &str) -> Option<String> {
        self.roles.get(id).cloned()
    }

    fn channel(&self, id: &str) -> Option<String> {
        self.channels.get(id).cloned()
    }
}

/// An account as DiscordChatExporter writes it. Different senders may share one webhook and so its id; for a webhook,
/// the name therefore becomes part of the id.
fn account(user: &Value) -> Option<Account> {
    let name = field(user, "name").map(str::to_owned);
    let shown = field(user, "nickname").map(str::to_owned);
    let shown = shown.or_else(|| name.clone());
    let id = user.get("id").and_then(id_of);
    let bot = user.get("isBot").and_then(Value::as_bool).unwrap_or_default();
    let discriminator = field(user, "discriminator").filter(|d| !d.bytes().all(|b| b == b'0'));
    let is_webhook = bot && discriminator.is_none();
    let shown = shown.or_else(|| id.clone())?;
    let id = match id {
        Some(id) if is_webhook => format!("{id}/{shown}"),
        Some(id) => id,
        None => shown.clone(),
    };
    let handle = name.map(|name| discriminator.map_or(name.clone(), |d| format!("{name}#{d}")));
    Some(Account { id, name: shown, handle: handle.filter(|_| !is_webhook), bot })
}

/// The time in a field, with the exporting computer's offset. If the field names no zone or is missing, the time that
/// the id holds.
fn time(message: &Value, name: &str, id: &str) -> Option<EventTime> {
    let stated = field(message, name).and_then(|text| EventTime::read(text).ok());
    stated.or_else(|| EventTime::new(snowflake::unix_ms(id)?, 0).ok())
}

/// When a message was last edited, in milliseconds; 0 for never, 1 if the time cannot be read.
fn version(message: &Value, time: EventTime) -> u64 {
    let Some(edited) = field(message, "timestampEdited") else { return 0 };
    let edited = EventTime::read(edited).ok().map(|edited| edited.unix_ms.max(time.unix_ms));
    edited.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1)
}

/// A kind that is written as a name or as a number.
fn kind_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |name| name.trim().to_owned())
}

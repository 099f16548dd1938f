//! Converts messages of Discord's API into the form that DiscordChatExporter exports.
//!
//! In: what the gateway and the API report about servers and channels, and messages. Out: chat items with the same ids,
//! conversation and words as [`DiscordChannel`] produces for the same message in an export. Memory grows with servers
//! and channels, never with messages.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    attachments::field,
    message::DiscordChannel,
    snowflake::{id_of, parse},
};
use crate::chat::{
    ChatItem, Conversation, ConversationPrivacy, LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH, UnreadCounts,
};

/// The permission to see a channel.
const VIEW_CHANNEL: u64 = 1 << 10;
/// The types of channels that hold messages: text, direct and news channels, threads, and the chats of voice channels.
const WITH_MESSAGES: [u64; 9] = [0, 1, 2, 3, 5, 10, 11, 12, 13];
/// DiscordChatExporter's name for the server of direct messages.
const DIRECT: &str = "Direct Messages";

/// The fields of a message. What the reader of an export reads is listed as a whole or by its parts.
const FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[
        ("content", ANY),
        ("attachments[]", ANY),
        ("attachments[]/filename", ANY),
        ("embeds[]/title", ANY),
        ("embeds[]/description", ANY),
        ("embeds[]/author/name", ANY),
        ("embeds[]/footer/text", ANY),
        ("embeds[]/fields[]/name", ANY),
        ("embeds[]/fields[]/value", ANY),
        ("sticker_items[]/name", ANY),
        ("message_snapshots[]/message", ANY),
    ],
    known: &[
        "author",
        "member",
        "mentions",
        "mention_roles",
        "mention_channels",
        "reactions",
        "nonce",
        "activity",
        "application",
        "message_reference",
        "referenced_message",
        "interaction_metadata",
        "interaction",
        "thread",
        "stickers",
        "role_subscription_data",
        "resolved",
        "call",
        "embeds[]/provider",
        "embeds[]/image",
        "embeds[]/thumbnail",
        "embeds[]/video",
        "**/proxy_url",
        "**/icon_url",
        "**/content_type",
        "**/waveform",
        "**/placeholder",
        "**/mentions",
        "**/mention_roles",
        "**/format_type",
        "**/proxy_icon_url",
        "attachments[]/title",
    ],
    remedy: "report it",
};
/// The fields of an API may hold any kind of value.
const ANY: u8 = TEXT | NUMBER | TRUTH | OBJECT | LIST;

/// What is known about servers and channels.
#[derive(Debug, Default)]
pub(crate) struct DiscordServers {
    /// Names of servers by id. The first known name is kept, so that a renamed server stays the same workspace.
    names: BTreeMap<String, String>,
    /// Channels and threads by id, as the API returns them.
    channels: HashMap<String, Value>,
    channel_names: HashMap<String, String>,
    roles: HashMap<String, String>,
    /// Fields that were not read.
    pub(crate) unread: UnreadCounts,
}

impl DiscordServers {
    /// Servers with the names that they had in an earlier run.
    pub(crate) fn new(names: BTreeMap<String, String>) -> Self {
        Self { names, ..Self::default() }
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> &BTreeMap<String, String> {
        &self.names
    }

    /// Keeps a server, with its channels, threads and roles if they are included. Returns the ids of the channels that
    /// may hold messages, each with the id of its last message.
    pub(crate) fn learn_server(&mut self, server: &Value) -> Vec<(String, Option<String>)> {
        let Some(id) = server.get("id").and_then(id_of) else { return Vec::new() };
        if let Some(name) = field(server, "name") {
            self.names.entry(id.clone()).or_insert_with(|| name.to_owned());
        }
        list(server, "roles").iter().for_each(|role| self.learn_role(role));
        let mut found = Vec::new();
        for channel in list(server, "channels").iter().chain(list(server, "threads")) {
            found.extend(self.learn_channel(channel, Some(&id)));
        }
        found
    }

    /// Keeps the name of a role.
    pub(crate) fn learn_role(&mut self, role: &Value) {
        if let (Some(id), Some(name)) = (role.get("id").and_then(id_of), field(role, "name")) {
            self.roles.insert(id, name.to_owned());
        }
    }

    /// Keeps a channel or a thread. Returns its id and its last message's id, if it may hold messages.
    pub(crate) fn learn_channel(&mut self, channel: &Value, server: Option<&str>) -> Option<(String, Option<String>)> {
        let id = channel.get("id").and_then(id_of)?;
        let mut kept = channel.clone();
        if let (Some(server), Some(fields)) = (server, kept.as_object_mut()) {
            fields.entry("guild_id").or_insert_with(|| server.into());
        }
        if let Some(name) = field(channel, "name") {
            self.channel_names.insert(id.clone(), name.to_owned());
        }
        let holds = channel.get("type").and_then(Value::as_u64).is_some_and(|kind| WITH_MESSAGES.contains(&kind));
        self.channels.insert(id.clone(), kept);
        let last = channel.get("last_message_id").and_then(id_of);
        holds.then_some((id, last))
    }

    /// A channel that is not known yet and is needed to read a message of `channel`: the channel itself or, for a
    /// thread, its parent channel.
    pub(crate) fn unknown_channel(&self, channel: &str) -> Option<String> {
        // A value that is not an id cannot be requested; the rejected message says so.
        let is_id = |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let Some(known) = self.channels.get(channel) else { return Some(channel.to_owned()).filter(is_id) };
        let is_thread = matches!(known.get("type").and_then(Value::as_u64), Some(10..=12));
        let parent = known.get("parent_id").and_then(id_of).filter(|_| is_thread)?;
        (!self.channels.contains_key(&parent)).then_some(parent).filter(is_id)
    }

    /// The server of a channel, if the server's name is not known.
    pub(crate) fn unknown_server(&self, channel: &str) -> Option<String> {
        let server = self.channels.get(channel)?.get("guild_id").and_then(id_of)?;
        let is_id = server.bytes().all(|byte| byte.is_ascii_digit());
        (is_id && !self.names.contains_key(&server)).then_some(server)
    }

    /// The chat item for a message.
    ///
    /// # Errors
    /// The conversation, if it is known, and why the message cannot be read.
    pub(crate) fn item(&mut self, message: &Value) -> Result<ChatItem, (Option<Arc<Conversation>>, String)> {
        let id = message.get("channel_id").and_then(id_of);
        let Some(channel) = id.as_deref().and_then(|id| self.channel(id)) else {
            return Err((None, format!("channel_id: {} is not known; let the bot see it", id.unwrap_or_default())));
        };
        let odd = FORM.check(&mut message.clone());
        let item = channel.item(&self.exported(message), &self.channel_names);
        item.and_then(|item| odd?.judge(item, &mut self.unread))
            .map_err(|reason| (Some(Arc::clone(&channel.conversation)), reason))
    }

    /// The deletion of a message; `None` if its channel is not known.
    pub(crate) fn deletion(&self, channel: &str, id: &str) -> Option<ChatItem> {
        let conversation = self.channel(channel)?.conversation;
        id.parse::<u64>().ok()?;
        Some(ChatItem::Deletion { conversation, id: id.to_owned(), version: None })
    }

    /// A channel, as if read from the head of an export.
    fn channel(&self, id: &str) -> Option<DiscordChannel> {
        let channel = self.channels.get(id)?;
        let parent = channel.get("parent_id").and_then(id_of);
        let above = parent.as_ref().and_then(|parent| self.channels.get(parent));
        let server = channel.get("guild_id").and_then(id_of);
        let server_name = match &server {
            Some(server) => self.names.get(server).cloned().unwrap_or_else(|| server.clone()),
            None => DIRECT.to_owned(),
        };
        let name = field(channel, "name").map(str::to_owned).or_else(|| recipients(channel));
        let head = json!({
            "id": id, "name": name, "type": channel.get("type"), "categoryId": parent,
            "category": above.and_then(|above| field(above, "name")),
        });
        let mut exported = DiscordChannel::new(&json!({ "name": server_name }), &head, false);
        // A thread is as open as its parent channel.
        let is_thread = exported.conversation.id != id;
        let seen = if is_thread { above } else { Some(channel) };
        let is_hidden = server.zip(seen).is_some_and(|(server, seen)| is_hidden(seen, &server));
        if is_hidden && exported.conversation.privacy == ConversationPrivacy::Open {
            let conversation =
                Conversation { privacy: ConversationPrivacy::Private, ..(*exported.conversation).clone() };
            exported.conversation = Arc::new(conversation);
        }
        Some(exported)
    }

    /// A message in the form of an export.
    fn exported(&self, message: &Value) -> Value {
        let held: Vec<Value> = list(message, "mention_roles")
            .iter()
            .filter_map(id_of)
            .filter_map(|id| Some(json!({ "name": self.roles.get(&id)?, "id": id })))
            .collect();
        let mentions: Vec<Value> =
            list(message, "mentions").iter().map(|user| person(user, user.get("member"), &[])).collect();
        let reference = message.get("message_reference");
        let of_reference = |key: &str| reference.and_then(|reference| reference.get(key));
        let mut exported = json!({
            "id": message.get("id"),
            "type": message.get("type"),
            "timestamp": message.get("timestamp"),
            "timestampEdited": message.get("edited_timestamp"),
            "author": message.get("author").filter(|author| author.is_object()).map(|author| person(author, message.get("member"), &held)),
            "mentions": mentions,
            "reference": { "messageId": of_reference("message_id"), "channelId": of_reference("channel_id") },
        });
        let forwarded = message.pointer("/message_snapshots/0/message");
        if let Some(fields) = exported.as_object_mut() {
            fields.extend(content(message));
            fields.extend(forwarded.map(|inner| ("forwardedMessage".to_owned(), Value::Object(content(inner)))));
        }
        exported
    }
}

/// The fields for a message's words and what it shares.
fn content(message: &Value) -> serde_json::Map<String, Value> {
    let files = list(message, "attachments");
    let files: Vec<Value> =
        files.iter().map(|file| json!({ "fileName": file.get("filename"), "url": file.get("url") })).collect();
    let stickers = list(message, "sticker_items");
    let stickers: Vec<Value> = stickers.iter().map(|sticker| json!({ "name": sticker.get("name") })).collect();
    [
        ("content", message.get("content").cloned().unwrap_or_default()),
        ("attachments", files.into()),
        ("embeds", list(message, "embeds").to_vec().into()),
        ("stickers", stickers.into()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// An account. Its shown name is the nickname on the server, else the global display name, else the handle.
fn person(user: &Value, member: Option<&Value>, roles: &[Value]) -> Value {
    let nickname = member.and_then(|member| field(member, "nick")).or_else(|| field(user, "global_name"));
    json!({
        "id": user.get("id"), "name": user.get("username"), "discriminator": user.get("discriminator"),
        "nickname": nickname, "isBot": user.get("bot"), "roles": roles,
    })
}

/// The names of the people in a direct conversation.
fn recipients(channel: &Value) -> Option<String> {
    let mut people: Vec<(u64, &str)> = list(channel, "recipients")
        .iter()
        .filter_map(|user| {
            let name = field(user, "global_name").or_else(|| field(user, "username"))?;
            Some((parse(&user.get("id").and_then(id_of)?)?, name))
        })
        .collect();
    people.sort_unstable();
    let names: Vec<&str> = people.into_iter().map(|(_, name)| name).collect();
    Some(names.join(", ")).filter(|names| !names.is_empty())
}

/// Whether a channel is hidden from some people on the server. The role `@everyone` has the server's id.
fn is_hidden(channel: &Value, server: &str) -> bool {
    list(channel, "permission_overwrites").iter().any(|overwrite| {
        let denied = overwrite.get("deny").and_then(|deny| deny.as_str()?.parse::<u64>().ok());
        overwrite.get("id").and_then(id_of).as_deref() == Some(server)
            && denied.is_some_and(|denied| denied & VIEW_CHANNEL != 0)
    })
}

fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatMessage;

    fn servers() -> DiscordServers {
        let mut servers = DiscordServers::default();
        let channels = servers.learn_server(&json!({
            "id": "1", "name": "Makers", "roles": [{"id": "70", "name": "smiths"}],
            "channels": [
                {"id": "10", "type": 0, "name": "general", "last_message_id": "900"},
                {"id": "11", "type": 4, "name": "A category"},
                {"id": "12", "type": 0, "name": "board", "parent_id": "11",
                    "permission_overwrites": [{"id": "1", "type": 0, "allow": "0", "deny": "1024"}]},
            ],
            "threads": [
                {"id": "20", "type": 11, "name": "a thread", "parent_id": "10"},
                {"id": "21", "type": 11, "name": "hidden", "parent_id": "12"},
                {"id": "22", "type": 12, "name": "private", "parent_id": "10"},
            ],
        }));
        let ids: Vec<&str> = channels.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["10", "12", "20", "21", "22"]);
        assert_eq!(channels[0].1.as_deref(), Some("900"));
        servers
    }

    fn message(channel: &str, more: Value) -> Value {
        let mut message = json!({
            "id": "1234567890123456789", "channel_id": channel, "guild_id": "1", "type": 0, "content": "hello",
            "timestamp": "2024-05-01T10:00:00.123000+00:00", "edited_timestamp": null,
            "author": {"id": "5", "username": "ann", "global_name": "Ann B", "discriminator": "0"},
            "member": {"nick": "Ann"}, "mentions": [], "mention_roles": [], "attachments": [], "embeds": [],
        });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    }

    fn said(servers: &mut DiscordServers, message: &Value) -> ChatMessage {
        match servers.item(message).unwrap() {
            ChatItem::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    /// The same message as DiscordChatExporter writes it.
    fn exported_twin(more: Value) -> ChatMessage {
        let mut message = json!({
            "id": "1234567890123456789", "type": "Default", "timestamp": "2024-05-01T10:00:00.123+00:00",
            "timestampEdited": null, "content": "hello",
            "author": {"id": "5", "name": "ann", "discriminator": "0000", "nickname": "Ann", "isBot": false},
            "attachments": [], "embeds": [], "stickers": [], "mentions": [],
        });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let head = json!({"id": "10", "type": "GuildTextChat", "categoryId": "11", "category": "x", "name": "general"});
        let channel = DiscordChannel::new(&json!({"id": "1", "name": "Makers"}), &head, false);
        let channels = HashMap::from([("12".to_owned(), "board".to_owned())]);
        match channel.item(&message, &channels).unwrap() {
            ChatItem::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_live_message_is_the_message_of_the_export() {
        for (live, export) in [
            (json!({}), json!({})),
            (
                json!({"edited_timestamp": "2024-05-01T10:05:00+00:00", "content": "hi"}),
                json!({"timestampEdited": "2024-05-01T10:05:00+00:00", "content": "hi"}),
            ),
            (
                json!({"type": 19, "message_reference": {"message_id": "77", "channel_id": "10"}}),
                json!({"type": "Reply", "reference": {"messageId": "77", "channelId": "10"}}),
            ),
            (
                json!({"content": "<@6> <@&70> <#12> **now**",
                    "mentions": [{"id": "6", "username": "bo", "global_name": "Bo", "member": {"nick": null}}],
                    "mention_roles": ["70"]}),
                json!({"content": "@Bo @smiths #board **now**",
                    "mentions": [{"id": "6", "name": "bo", "nickname": "Bo", "isBot": false}]}),
            ),
            (
                json!({"content": "", "attachments": [{"id": "1", "filename": "a.png", "url": "https://a.example/a.png"}]}),
                json!({"content": "", "attachments": [{"fileName": "a.png", "url": "https://a.example/a.png"}]}),
            ),
            (
                json!({"embeds": [{"title": "A page", "url": "https://a.example", "footer": {"text": "x"}}]}),
                json!({"embeds": [{"title": "A page", "url": "https://a.example", "footer": {"text": "x"}}]}),
            ),
            (
                json!({"content": "", "sticker_items": [{"id": "1", "name": "Wave"}]}),
                json!({"content": "", "stickers": [{"name": "Wave"}]}),
            ),
            (
                json!({"content": "", "message_snapshots": [{"message": {"content": "look"}}]}),
                json!({"content": "", "forwardedMessage": {"content": "look"}}),
            ),
        ] {
            assert_eq!(said(&mut servers(), &message("10", live.clone())), exported_twin(export), "{live}");
        }
    }

    #[test]
    fn conversations_have_their_privacy_and_threads_their_channel() {
        let mut servers = servers();
        servers.learn_channel(
            &json!({"id": "30", "type": 1, "recipients": [{"id": "9", "username": "cy"}, {"id": "8", "global_name": "Bo"}]}),
            None,
        );
        for (channel, id, name, privacy, thread) in [
            ("10", "10", "general", ConversationPrivacy::Open, None),
            ("12", "12", "board", ConversationPrivacy::Private, None),
            ("20", "10", "general", ConversationPrivacy::Open, Some("20")),
            ("21", "12", "board", ConversationPrivacy::Private, Some("21")),
            ("22", "22", "private", ConversationPrivacy::Private, None),
            ("30", "30", "Bo, cy", ConversationPrivacy::Direct, None),
        ] {
            let found = said(&mut servers, &message(channel, json!({})));
            assert_eq!((found.conversation.id.as_str(), found.conversation.name.as_str()), (id, name));
            assert_eq!((found.conversation.privacy, found.thread.as_deref()), (privacy, thread), "{channel}");
        }
        assert_eq!(servers.unknown_channel("99").as_deref(), Some("99"));
        assert_eq!(servers.unknown_channel("20"), None);
        assert!(servers.item(&message("99", json!({}))).is_err());
        assert!(servers.item(&message("10", json!({"author": null}))).is_err());
        assert!(servers.deletion("99", "1").is_none());
        assert!(servers.deletion("10", "").is_none(), "it would delete nothing, for ever");
        // A value that is not an id is not requested.
        assert_eq!(servers.unknown_channel("a b\u{0}"), None);
    }

    #[test]
    fn a_renamed_server_stays_the_same() {
        let mut servers = servers();
        servers.learn_server(&json!({"id": "1", "name": "Crafters"}));
        let found = said(&mut servers, &message("10", json!({})));
        assert_eq!(found.conversation.workspace.as_deref(), Some("Makers"));
    }
}

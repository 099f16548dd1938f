//! Follows Discord as a bot over the gateway (version 10).
//!
//! In: events of the gateway, and what was said in channels while there was no session. Out: messages, edits and
//! deletions, as in an export of the channels. Discord has no confirmations: a lost connection is resumed after the
//! last durable event, and Discord repeats the events since. If a session is over, the missed messages of every channel
//! are requested, with the last ones received before, to find edits and deletions of these. Those of older messages are
//! not found; a notice says so.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    abandoned_part::give_up_after_failures,
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
    platform_client::PlatformClient,
    platform_secret::PlatformSecret,
    recent_messages::RecentMessages,
    socket::{LiveSocket, SocketMessage},
};
use crate::{
    chat::{ChatItem, SkipReason},
    discord::DiscordServers,
};
use types::{config::LiveSourceSettings, lone_surrogates::replace_lone_surrogates, model::DeadLetter};

const API: &str = "https://discord.com/api/v10";
/// What Discord answers whenever it works: the address of its gateway.
const PROBE: &str = "gateway/bot";
/// The gateway intents: servers, their messages, direct messages, and the content of messages.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;
/// Milliseconds from 1970 to the beginning of 2015, from which Discord counts.
const EPOCH_MS: u64 = 1_420_070_400_000;
/// The maximum number of events that one commit covers.
const MAX_AT_ONCE: usize = 256;
/// The number of messages on one page, the maximum that Discord returns.
const PAGE: usize = 100;
/// How long the gateway may take to say hello.
const HELLO: Duration = Duration::from_secs(15);
/// The longest time between two heartbeats, whatever the gateway says.
const MAX_INTERVAL: Duration = Duration::from_secs(600);
/// By how much the local clock may be ahead of Discord's.
const CLOCK_SKEW_MS: u64 = 120_000;

/// What the user should know about a session that could not be resumed.
const LOST_SESSION: &str = "Discord's session was lost, and another has begun. What was said in the meantime is \
    requested of each channel, and edits and deletions are looked for among the last 15 messages received before in \
    each. Not checked: edits and deletions of older messages, and all of that time in direct messages and in archived \
    threads; an export has the edits, and what was deleted is still remembered until you delete it here";

/// The stored position.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct DiscordCursor {
    session: Option<DiscordSession>,
    /// A message id: earlier messages are durable, in channels that are not listed below. 0 before the first run.
    since: u64,
    /// The last known message of each channel in which something was said.
    channels: BTreeMap<String, u64>,
    /// The channels that are still to be requested, each with the message after which the request begins.
    missing: BTreeMap<String, u64>,
    /// For these channels, the last messages that were received before the session was lost.
    to_compare: BTreeMap<String, BTreeSet<u64>>,
    heard: RecentMessages<u64>,
    /// Names of servers by id.
    servers: BTreeMap<String, String>,
}

/// A session that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DiscordSession {
    id: String,
    url: String,
    /// The last event that is durable.
    seq: u64,
}

/// The events that a bot receives.
pub(super) struct DiscordFeed {
    origin: String,
    token: PlatformSecret,
    web: PlatformClient,
    servers: DiscordServers,
    cursor: DiscordCursor,
    connection: Option<DiscordConnection>,
    /// Whether the session is new, so that the servers' last messages show what is missing.
    is_new: bool,
    /// When messages may be requested from Discord again.
    next_request: Instant,
}

struct DiscordConnection {
    socket: LiveSocket,
    interval: Duration,
    next_beat: Instant,
    is_answered: bool,
}

impl DiscordFeed {
    /// Creates the feed; does not connect yet.
    ///
    /// # Errors
    /// [`LiveError`] when a setting is wrong, or the position cannot be read.
    pub(super) fn open(settings: &LiveSourceSettings, origin: &str, cursor: Option<Value>) -> Result<Self, LiveError> {
        let cursor: Option<DiscordCursor> = cursor
            .map(serde_json::from_value)
            .transpose()
            .map_err(|e| LiveError::Position { name: settings.name.clone(), problem: e.to_string() })?;
        let cursor = cursor.unwrap_or_default();
        let token = PlatformSecret::read(settings, "token_env", &settings.token_env)?;
        let base = if settings.endpoint.is_empty() { API } else { &settings.endpoint };
        Ok(Self {
            origin: origin.to_owned(),
            web: PlatformClient::new(base, token.clone(), Some("Bot")),
            token,
            servers: DiscordServers::new(cursor.servers.clone()),
            cursor,
            connection: None,
            is_new: false,
            next_request: Instant::now(),
        })
    }

    /// Connects, and resumes the session or begins one.
    fn connect(&mut self) -> Result<DiscordConnection, LiveError> {
        let url = match &self.cursor.session {
            Some(session) => session.url.clone(),
            None => {
                let reply = self.web.get(PROBE, &[])?;
                reply.get("url").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
        };
        let mut socket = LiveSocket::connect(&format!("{}/?v=10&encoding=json", url.trim_end_matches('/')))?;
        let SocketMessage::Text(hello) = socket.read(HELLO)? else {
            return Err(LiveError::Lost("Discord's gateway does not say hello".to_owned()));
        };
        let hello: Value = serde_json::from_str(&hello).unwrap_or_default();
        let interval = hello.pointer("/d/heartbeat_interval").and_then(Value::as_u64);
        let Some(interval) = interval.map(|ms| Duration::from_millis(ms).min(MAX_INTERVAL)) else {
            return Err(LiveError::Lost("Discord's gateway says something else than hello".to_owned()));
        };
        let mut connection = DiscordConnection {
            socket,
            interval,
            next_beat: Instant::now() + interval.mul_f64(fastrand::f64()),
            is_answered: true,
        };
        match &self.cursor.session {
            Some(DiscordSession { id, seq, .. }) => {
                connection.send(6, json!({ "token": self.token.reveal(), "session_id": id, "seq": seq }))?
            }
            None => self.identify(&mut connection)?,
        }
        Ok(connection)
    }

    fn identify(&self, connection: &mut DiscordConnection) -> Result<(), LiveError> {
        let properties = json!({ "os": std::env::consts::OS, "browser": "ripplemem", "device": "ripplemem" });
        connection.send(2, json!({ "token": self.token.reveal(), "intents": INTENTS, "properties": properties }))
    }

    /// Reads the events that have arrived, waiting up to `wait` for the first, and keeps the connection alive.
    fn read(&mut self, mut wait: Duration) -> Result<Vec<Value>, LiveError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let mut found = Vec::new();
        while found.len() < MAX_AT_ONCE {
            let now = Instant::now();
            if now >= connection.next_beat {
                if !connection.is_answered {
                    return Err(LiveError::Lost("Discord's gateway has fallen silent".to_owned()));
                }
                connection.beat(self.cursor.session.as_ref().map(|session| session.seq))?;
            }
            let text = match connection.socket.read(wait.min(connection.next_beat - now.min(connection.next_beat)))? {
                SocketMessage::Text(text) => text,
                SocketMessage::Beat => continue,
                SocketMessage::Nothing => break,
                SocketMessage::Closed { code, reason } => {
                    self.closed(code, &reason)?;
                    // The session is over; the next call begins another.
                    return Ok(found);
                }
            };
            wait = Duration::ZERO;
            let event: Value = serde_json::from_slice(&replace_lone_surrogates(text.as_bytes())).unwrap_or_default();
            match event.get("op").and_then(Value::as_u64) {
                Some(0) => found.push(event),
                Some(1) => connection.beat(self.cursor.session.as_ref().map(|session| session.seq))?,
                Some(7) => return self.leave(found, "Discord asks to connect again"),
                Some(9) if event.get("d").and_then(Value::as_bool) == Some(true) => {
                    return self.leave(found, "Discord asks to resume again");
                }
                Some(9) => {
                    self.cursor.session = None;
                    // Discord asks for one to five seconds between a lost session and the next.
                    std::thread::sleep(Duration::from_millis(fastrand::u64(1_000..2_000)));
                    self.identify(&mut connection)?;
                }
                Some(11) => connection.is_answered = true,
                _ => {}
            }
        }
        self.connection = Some(connection);
        Ok(found)
    }

    /// Handles a connection that has ended: events that arrived before are returned first.
    fn leave(&mut self, found: Vec<Value>, why: &str) -> Result<Vec<Value>, LiveError> {
        if found.is_empty() { Err(LiveError::Lost(why.to_owned())) } else { Ok(found) }
    }

    /// Interprets the code with which Discord closed the connection.
    fn closed(&mut self, code: Option<u16>, reason: &str) -> Result<(), LiveError> {
        let problem = format!("Discord closed the connection: {} {reason}", code.unwrap_or_default());
        match code {
            Some(4_003 | 4_007 | 4_009) => {
                self.cursor.session = None;
                Ok(())
            }
            Some(4_004) => Err(LiveError::Refused { problem, remedy: "check the bot's token".to_owned() }),
            Some(4_013 | 4_014) => {
                let remedy = "switch on the Message Content Intent of the bot in Discord's developer portal";
                Err(LiveError::Refused { problem, remedy: remedy.to_owned() })
            }
            Some(4_010..=4_012) => Err(LiveError::Refused { problem, remedy: "use a newer build".to_owned() }),
            _ => Err(LiveError::Lost(problem)),
        }
    }

    /// Handles one event.
    fn dispatch(&mut self, event: &Value, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        arrival.moved = true;
        let data = event.get("d").unwrap_or(&Value::Null);
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = event.get("t").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "READY" => {
                let (id, url) = (text("session_id").to_owned(), text("resume_gateway_url").to_owned());
                self.cursor.session = Some(DiscordSession { id, url, seq: 0 });
                self.is_new = true;
                if self.cursor.since == 0 {
                    // The first run begins now; earlier messages are in an export.
                    self.cursor.since = now();
                } else {
                    arrival.notices.push(LOST_SESSION.to_owned());
                }
            }
            "GUILD_CREATE" => {
                for (channel, last) in self.servers.learn_server(data) {
                    self.plan(&channel, last.and_then(|last| last.parse().ok()));
                }
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                data.get("role").into_iter().for_each(|role| self.servers.learn_role(role));
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                self.servers.learn_channel(data, None);
            }
            "MESSAGE_CREATE" => self.message(data, arrival)?,
            // An update without an author is not an edit: Discord added a link preview.
            "MESSAGE_UPDATE" if data.get("author").is_some() => self.message(data, arrival)?,
            "MESSAGE_UPDATE" => arrival.items.push(ChatItem::Skip(SkipReason::Unsupported)),
            "MESSAGE_DELETE" => self.deletion(text("channel_id"), text("id"), arrival)?,
            "MESSAGE_DELETE_BULK" => {
                let ids = data.get("ids").and_then(Value::as_array);
                for id in ids.into_iter().flatten().filter_map(Value::as_str) {
                    self.deletion(text("channel_id"), id, arrival)?;
                }
            }
            _ => {}
        }
        if let (Some(session), Some(seq)) = (&mut self.cursor.session, event.get("s").and_then(Value::as_u64)) {
            session.seq = seq;
        }
        Ok(())
    }

    /// Plans to request what was said in a channel since its last known message, and the last messages received before.
    fn plan(&mut self, channel: &str, last: Option<u64>) {
        let known = self.known(channel);
        let heard = self.cursor.heard.of(channel);
        let is_asked_for = !heard.is_empty() || last.is_some_and(|last| last > known);
        if self.is_new && channel.parse::<u64>().is_ok() && is_asked_for {
            let from = heard.first().map_or(known, |first| known.min(first.saturating_sub(1)));
            self.cursor.missing.entry(channel.to_owned()).or_insert(from);
            self.cursor.to_compare.entry(channel.to_owned()).or_insert(heard);
        }
    }

    /// The last known message of a channel.
    fn known(&self, channel: &str) -> u64 {
        self.cursor.channels.get(channel).copied().unwrap_or(self.cursor.since)
    }

    fn message(&mut self, message: &Value, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let channel = message.get("channel_id").and_then(Value::as_str).unwrap_or_default();
        self.learn(channel, arrival)?;
        let item = self.servers.item(message);
        arrival.unread.take(&mut self.servers.unread);
        if let (Ok(ChatItem::Message(_)), Some(id)) = (&item, id_of(message)) {
            self.cursor.heard.add(channel, id);
        }
        arrival.items.push(item.unwrap_or_else(|(conversation, reason)| {
            // Messages that the user did not choose must not be in the dead letters either.
            let place = json!({ "channel_id": channel, "id": message.get("id") });
            let payload = if conversation.is_some() { message } else { &place };
            let letter = DeadLetter::new(self.origin.clone(), reason, payload.to_string().as_bytes());
            ChatItem::Reject { conversation, letter }
        }));
        if let Some(id) = id_of(message)
            && !self.cursor.missing.contains_key(channel)
        {
            let known = self.cursor.channels.entry(channel.to_owned()).or_default();
            *known = id.max(*known);
        }
        Ok(())
    }

    fn deletion(&mut self, channel: &str, id: &str, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        self.learn(channel, arrival)?;
        if let Ok(id) = id.parse() {
            self.cursor.heard.remove(channel, &id);
        }
        arrival.items.push(self.servers.deletion(channel, id).unwrap_or(ChatItem::Skip(SkipReason::Unsupported)));
        Ok(())
    }

    /// Requests a channel that is not known, a thread's parent channel, and the server.
    fn learn(&mut self, channel: &str, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let (origin, web) = (&self.origin, &self.web);
        let mut known =
            |path: &str| match give_up_after_failures(origin, path, web.get(path, &[]), || web.get(PROBE, &[])) {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(given_up)) => {
                    arrival.give_up(origin, given_up, path);
                    Ok(Value::Null)
                }
                // The bot may not see it; the rejected message will say so.
                Err(LiveError::Refused { .. }) => Ok(Value::Null),
                Err(error) => Err(error),
            };
        for _ in 0..2 {
            let Some(unknown) = self.servers.unknown_channel(channel) else { break };
            let reply = known(&format!("channels/{unknown}"))?;
            self.servers.learn_channel(&reply, None);
        }
        if let Some(server) = self.servers.unknown_server(channel) {
            let reply = known(&format!("guilds/{server}"))?;
            self.servers.learn_server(&reply);
        }
        Ok(())
    }

    /// Requests one page of messages: those that were missed, and known ones to compare.
    fn catch_up(&mut self, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let Some((channel, after)) =
            self.cursor.missing.iter().next().map(|(channel, after)| (channel.clone(), *after))
        else {
            return Ok(());
        };
        let limit = PAGE.to_string();
        let query = [("after", after.to_string()), ("limit", limit)];
        let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let path = format!("channels/{channel}/messages");
        let web = &self.web;
        let reply = match give_up_after_failures(&self.origin, &path, web.get(&path, &query), || web.get(PROBE, &[])) {
            Ok(Ok(reply)) => reply,
            Ok(Err(given_up)) => {
                arrival.give_up(&self.origin, given_up, &path);
                Value::Array(Vec::new())
            }
            Err(LiveError::Limited { after, .. }) => {
                self.next_request = Instant::now() + after;
                return Ok(());
            }
            // The bot may not see this channel.
            Err(LiveError::Refused { .. }) => Value::Array(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut messages: Vec<Value> = match reply {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        };
        messages.sort_by_key(id_of);
        let known = self.known(&channel);
        for message in &messages {
            let is_edited = message.get("edited_timestamp").is_some_and(Value::is_string);
            if is_edited || id_of(message).is_none_or(|id| id > known) {
                self.message(message, arrival)?;
            }
        }
        arrival.moved = true;
        let last = messages.last().and_then(id_of).unwrap_or(after);
        let shown: BTreeSet<u64> = messages.iter().filter_map(id_of).collect();
        // If the bot may not read a channel's history, Discord returns none of it: nothing was deleted.
        let until = match messages.len() {
            0 => after,
            PAGE.. => last.min(known),
            _ => known,
        };
        for id in self.cursor.to_compare.get(&channel).cloned().unwrap_or_default() {
            if id > after && id <= until && !shown.contains(&id) {
                self.deletion(&channel, &id.to_string(), arrival)?;
            }
        }
        if messages.len() < PAGE || last == after {
            self.cursor.missing.remove(&channel);
            self.cursor.to_compare.remove(&channel);
            let known = self.cursor.channels.entry(channel).or_default();
            *known = last.max(*known);
        } else {
            self.cursor.missing.insert(channel, last);
        }
        Ok(())
    }
}

impl DiscordConnection {
    fn send(&mut self, op: u64, data: Value) -> Result<(), LiveError> {
        self.socket.send(json!({ "op": op, "d": data }).to_string())
    }

    fn beat(&mut self, seq: Option<u64>) -> Result<(), LiveError> {
        self.send(1, seq.into())?;
        self.next_beat = Instant::now() + self.interval;
        self.is_answered = false;
        Ok(())
    }
}

impl LiveFeed for DiscordFeed {
    fn next(&mut self, mut wait: Duration) -> Result<FeedArrival, LiveError> {
        let mut arrival = FeedArrival::default();
        let may_ask = Instant::now() >= self.next_request;
        if !self.cursor.missing.is_empty() && self.connection.is_some() && may_ask {
            self.catch_up(&mut arrival)?;
            wait = Duration::ZERO;
        }
        let before = self.cursor.session.clone();
        for event in self.read(wait)? {
            self.dispatch(&event, &mut arrival)?;
        }
        // The end of a session is committed too, so that the next run does not try to resume it.
        arrival.moved |= before.is_some() && self.cursor.session.is_none();
        Ok(arrival)
    }

    fn cursor(&self) -> Value {
        let cursor = DiscordCursor { servers: self.servers.names().clone(), ..self.cursor.clone() };
        serde_json::to_value(cursor).unwrap_or_default()
    }
}

/// The id of a message as a number.
fn id_of(message: &Value) -> Option<u64> {
    message.get("id")?.as_str()?.parse().ok()
}

/// The current time as a message id, set back far enough for any clock skew.
fn now() -> u64 {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
    now_ms.saturating_sub(EPOCH_MS + CLOCK_SKEW_MS).checked_shl(22).unwrap_or_default()
}

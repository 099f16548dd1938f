//! Follows Slack as an app: over Socket Mode, or by the Events API.
//!
//! In: events, and histories of what was said while the app was offline. Out: messages, edits and deletions, as in an
//! export of the workspace. Slack sends an event again until it is confirmed, which happens once it is durable.
//!
//! After each start, the missed messages of the conversations that the app is in are requested, one request after
//! another and alongside the events, at the rate that Slack allows: for apps outside its marketplace, one request per
//! minute with 15 messages. This finds edits and deletions only for the last messages that were received in a
//! conversation. It does not find edits and deletions of older messages and of replies in threads, or new replies in
//! older threads; a notice says so.

use std::{
    collections::{BTreeMap, VecDeque},
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
    recent_ids::RecentIds,
    recent_messages::{OF_CONVERSATION, RecentMessages},
    slack_gap::{SlackGap, SlackGapProgress, SlackMissedMessages},
    socket::{LiveSocket, SocketMessage},
    webhook_inbox::WebhookInbox,
};
use crate::{
    chat::{ChatItem, SkipReason, names_conversation},
    slack::SlackWorkspace,
    zone::Zone,
};
use types::{
    config::{LiveSourceSettings, PrivateConversationKind},
    lone_surrogates::replace_lone_surrogates,
    model::DeadLetter,
};

const API: &str = "https://slack.com/api";
/// What Slack answers whenever it works: who the token is.
const PROBE: &str = "auth.test";
/// The subtypes of events about another message.
const CHANGED: &str = "message_changed";
const DELETED: &str = "message_deleted";
/// Slack pings far more often; a connection that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(120);
/// The maximum number of events that one commit covers.
const MAX_AT_ONCE: usize = 256;
/// The longest pause that a request for a name waits out.
const NAME_PAUSE: Duration = Duration::from_secs(60);
/// By how much the local clock may be ahead of Slack's.
const CLOCK_SKEW: Duration = Duration::from_secs(120);

/// The stored position.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct SlackCursor {
    /// Everything up to this `ts` is durable; empty before the first run.
    since: String,
    /// The same by conversation, for those in which more was said since.
    channels: BTreeMap<String, String>,
    heard: RecentMessages<String>,
    recent: RecentIds,
}

/// The events of a workspace.
pub(super) struct SlackFeed {
    settings: LiveSourceSettings,
    origin: String,
    zone: Zone,
    web: PlatformClient,
    way: SlackTransport,
    /// `None` until Slack has said which workspace the token belongs to.
    workspace: Option<SlackWorkspace>,
    /// The workspace whose events are taken.
    owner: SlackEventOwner,
    cursor: SlackCursor,
    /// The gaps that are still to be requested, and the time up to which everything is known after that.
    gaps: VecDeque<SlackGap>,
    until: String,
    asked_for: SlackGapCounts,
    /// When a history may be requested from Slack again.
    next_request: Instant,
}

enum SlackTransport {
    Socket {
        /// The API for opening connections.
        app: Box<PlatformClient>,
        open: Option<Box<LiveSocket>>,
        seen: Instant,
        /// Envelopes that were returned and are not durable yet.
        unconfirmed: Vec<String>,
    },
    Events(WebhookInbox),
}

impl SlackFeed {
    /// Creates the feed; does not connect yet.
    ///
    /// # Errors
    /// [`LiveError`] when a setting is wrong, or the position cannot be read.
    pub(super) fn open(
        settings: &LiveSourceSettings,
        origin: &str,
        cursor: Option<Value>,
        inbox: WebhookInbox,
    ) -> Result<Self, LiveError> {
        let cursor = cursor.map(serde_json::from_value).transpose();
        let cursor = cursor
            .map_err(|e| LiveError::Position { name: settings.name.clone(), problem: e.to_string() })?
            .unwrap_or_default();
        let base = if settings.endpoint.is_empty() { API } else { &settings.endpoint };
        let web = |key, variable: &str| -> Result<PlatformClient, LiveError> {
            Ok(PlatformClient::new(base, PlatformSecret::read(settings, key, variable)?, Some("Bearer")))
        };
        let way = if settings.has_webhook() {
            SlackTransport::Events(inbox)
        } else {
            let app = Box::new(web("app_token_env", &settings.app_token_env)?);
            SlackTransport::Socket { app, open: None, seen: Instant::now(), unconfirmed: Vec::new() }
        };
        Ok(Self {
            zone: Zone::parse(&settings.zone).map_err(|e| LiveError::of_settings(&settings.name, e))?,
            web: web("token_env", &settings.token_env)?,
            settings: settings.clone(),
            origin: origin.to_owned(),
            way,
            workspace: None,
            owner: SlackEventOwner::default(),
            cursor,
            gaps: VecDeque::new(),
            until: String::new(),
            asked_for: SlackGapCounts::default(),
            next_request: Instant::now(),
        })
    }

    /// Identifies the workspace, connects, and plans the requests for what was missed. The connection is open before
    /// the requests are planned, so no message is lost in between.
    fn begin(&mut self, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let me = api(&self.web, PROBE, &[])?;
        let team = me.get("team_id").and_then(Value::as_str).unwrap_or_default();
        self.owner = SlackEventOwner::of(&me);
        let mut workspace = SlackWorkspace::new(team, self.zone.clone());
        if let SlackTransport::Socket { app, open, seen, .. } = &mut self.way {
            *open = Some(Box::new(connect(app)?));
            *seen = Instant::now();
        }
        self.until = now();
        if self.cursor.since.is_empty() {
            // The first run begins now; earlier messages are in an export.
            self.cursor.since.clone_from(&self.until);
            arrival.moved = true;
        } else {
            for (id, info) in self.conversations()? {
                let oldest = self.cursor.channels.get(&id).unwrap_or(&self.cursor.since).clone();
                let is = |key: &str| info.get(key).and_then(Value::as_bool) == Some(true);
                if !is("is_im") && !is("is_mpim") {
                    workspace.learn_conversation(&id, info, Vec::new());
                }
                let heard = self.cursor.heard.of(&id);
                self.asked_for.conversations += 1;
                self.asked_for.unheard += usize::from(heard.is_empty());
                self.gaps.push_back(SlackGap::new(id, oldest, heard));
            }
        }
        self.workspace = Some(workspace);
        Ok(())
    }

    /// The conversations that the app is in and that the settings allow it to read.
    fn conversations(&self) -> Result<Vec<(String, Value)>, LiveError> {
        let LiveSourceSettings { only, include, .. } = &self.settings;
        let wants = |kind| include.contains(&kind) || !only.is_empty();
        let mut types = vec!["public_channel"];
        if wants(PrivateConversationKind::Private) {
            types.push("private_channel");
        }
        if wants(PrivateConversationKind::Direct) {
            types.extend(["im", "mpim"]);
        }
        let types = types.join(",");
        let mut found = Vec::new();
        let mut page = String::new();
        loop {
            let query = [("types", types.as_str()), ("exclude_archived", "true"), ("limit", "200"), ("cursor", &page)];
            let query: Vec<(&str, &str)> = query.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            let reply = api(&self.web, "users.conversations", &query)?;
            for info in reply.get("channels").and_then(Value::as_array).into_iter().flatten() {
                let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default();
                let (id, name) = (text("id"), text("name"));
                let is_named = only.iter().any(|word| names_conversation(word, id, name));
                if !id.is_empty() && (only.is_empty() || is_named || name.is_empty()) {
                    found.push((id.to_owned(), info.clone()));
                }
            }
            match reply.pointer("/response_metadata/next_cursor").and_then(Value::as_str) {
                Some(next) if !next.is_empty() && next != page => page = next.to_owned(),
                _ => return Ok(found),
            }
        }
    }

    /// Makes one request for missed messages.
    fn catch_up(&mut self, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let Some(gap) = self.gaps.front_mut() else { return Ok(()) };
        let web = &self.web;
        let stepped = gap.step(|method, query| api(web, method, query));
        let part = format!("conversations.history {}", gap.channel());
        let missed = match give_up_after_failures(&self.origin, &part, stepped, || api(web, PROBE, &[])) {
            Ok(Ok(SlackGapProgress::Done(missed))) => missed,
            Ok(Ok(SlackGapProgress::More)) => return Ok(()),
            Ok(Err(given_up)) => {
                arrival.give_up(&self.origin, given_up, &part);
                SlackMissedMessages::default()
            }
            Err(LiveError::Limited { after, .. }) => {
                self.next_request = Instant::now() + after;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let SlackMissedMessages { messages, deleted } = missed;
        let Some(gap) = self.gaps.pop_front() else { return Ok(()) };
        let deletion = |ts: String| json!({"type": "message", "subtype": DELETED, "deleted_ts": ts});
        for message in messages.into_iter().chain(deleted.into_iter().map(deletion)) {
            self.message(gap.channel(), &message, arrival)?;
        }
        arrival.moved = true;
        if self.gaps.is_empty() {
            arrival.notices.push(self.asked_for.told());
            // Now the whole workspace is known up to the moment at which the requests were planned.
            self.cursor.since.clone_from(&self.until);
            let since = &self.cursor.since;
            self.cursor.channels.retain(|_, ts| *ts > *since);
        }
        Ok(())
    }

    /// Handles one event, received either way.
    fn payload(&mut self, payload: &Value, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        if let Some(id) = payload.get("event_id").and_then(Value::as_str)
            && !self.cursor.recent.is_new(id)
        {
            return Ok(());
        }
        if !self.owner.has(payload) {
            arrival.items.push(ChatItem::Skip(SkipReason::Elsewhere));
            return Ok(());
        }
        let event = payload.get("event").unwrap_or(&Value::Null);
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        match (text("type").unwrap_or_default(), text("channel")) {
            ("message", Some(channel)) => self.message(channel, event, arrival),
            ("user_change" | "user_profile_changed", _) => {
                let id = event.pointer("/user/id").and_then(Value::as_str).unwrap_or_default();
                if let Some(workspace) = &mut self.workspace {
                    workspace.renamed(id);
                }
                Ok(())
            }
            _ => {
                arrival.items.push(ChatItem::Skip(SkipReason::Unsupported));
                Ok(())
            }
        }
    }

    fn message(&mut self, channel: &str, message: &Value, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let Some(workspace) = &mut self.workspace else { return Ok(()) };
        let asking = SlackNameSource { web: &self.web, origin: &self.origin };
        learn(&asking, workspace, channel, message, arrival)?;
        let item = workspace.item(channel, message);
        arrival.unread.take(&mut workspace.unread);
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        let ts = text("ts").unwrap_or_default();
        match text("subtype") {
            Some(DELETED) => self.cursor.heard.remove(channel, &text("deleted_ts").unwrap_or_default().to_owned()),
            Some(CHANGED) => {}
            // Replies are left out, because a history does not contain them.
            _ if matches!(item, Ok(ChatItem::Message(_))) && text("thread_ts").is_none_or(|root| root == ts) => {
                self.cursor.heard.add(channel, ts.to_owned());
            }
            _ => {}
        }
        arrival.items.push(item.unwrap_or_else(|(conversation, reason)| {
            // Messages that the user did not choose must not be in the dead letters either.
            let place = json!({ "channel": channel, "ts": message.get("ts") });
            let payload = if conversation.is_some() { message } else { &place };
            let letter = DeadLetter::new(self.origin.clone(), reason, payload.to_string().as_bytes());
            ChatItem::Reject { conversation, letter }
        }));
        let is_of_another = matches!(text("subtype"), Some(CHANGED | DELETED | "message_replied"));
        let mut gap = self.gaps.iter_mut().find(|gap| gap.channel() == channel);
        if let Some(gap) = &mut gap {
            gap.note(message.get("message").filter(|_| text("subtype") == Some(CHANGED)).unwrap_or(message));
        }
        if !ts.is_empty() && !is_of_another && gap.is_none() {
            let known = self.cursor.channels.entry(channel.to_owned()).or_default();
            if ts > known.as_str() {
                ts.clone_into(known);
            }
        }
        Ok(())
    }

    /// The envelopes that have arrived, waiting up to `wait` for the first.
    fn envelopes(&mut self, mut wait: Duration) -> Result<Vec<Value>, LiveError> {
        let mut found = Vec::new();
        let SlackTransport::Socket { app, open, seen, .. } = &mut self.way else { return Ok(found) };
        while found.len() < MAX_AT_ONCE {
            let Some(socket) = open else { return Err(LiveError::Lost("not connected to Slack".to_owned())) };
            match socket.read(wait)? {
                SocketMessage::Text(text) => {
                    let text = replace_lone_surrogates(text.as_bytes());
                    let envelope: Value = serde_json::from_slice(&text).unwrap_or_default();
                    if envelope.get("type").and_then(Value::as_str) == Some("disconnect") {
                        // Slack refreshes connections; the next one is opened before this one closes.
                        *open = Some(Box::new(connect(app)?));
                    } else {
                        found.push(envelope);
                    }
                    wait = Duration::ZERO;
                }
                SocketMessage::Beat => wait = Duration::ZERO,
                SocketMessage::Nothing if seen.elapsed() > SILENCE => {
                    return Err(LiveError::Lost("Slack has fallen silent".to_owned()));
                }
                SocketMessage::Nothing => return Ok(found),
                SocketMessage::Closed { reason, .. } => {
                    return Err(LiveError::Lost(format!("Slack closed the connection {reason}").trim_end().to_owned()));
                }
            }
            *seen = Instant::now();
        }
        Ok(found)
    }
}

impl LiveFeed for SlackFeed {
    fn next(&mut self, mut wait: Duration) -> Result<FeedArrival, LiveError> {
        let mut arrival = FeedArrival::default();
        if self.workspace.is_none() {
            self.begin(&mut arrival)?;
        }
        if !self.gaps.is_empty() && Instant::now() >= self.next_request {
            self.catch_up(&mut arrival)?;
            wait = Duration::ZERO;
        }
        if arrival.moved {
            return Ok(arrival);
        }
        match &mut self.way {
            SlackTransport::Socket { .. } => {
                for envelope in self.envelopes(wait)? {
                    if let Some(payload) = envelope.get("payload").filter(|payload| payload.get("event").is_some()) {
                        self.payload(payload, &mut arrival)?;
                    }
                    // Commands and buttons are confirmed too, or Slack would send them again.
                    if let Some(id) = envelope.get("envelope_id").and_then(Value::as_str)
                        && let SlackTransport::Socket { unconfirmed, .. } = &mut self.way
                    {
                        unconfirmed.push(id.to_owned());
                        arrival.moved = true;
                    }
                }
            }
            SlackTransport::Events(inbox) => {
                for payload in inbox.next_json(wait, &self.origin, &mut arrival) {
                    self.payload(&payload, &mut arrival)?;
                }
            }
        }
        Ok(arrival)
    }

    fn cursor(&self) -> Value {
        serde_json::to_value(&self.cursor).unwrap_or_default()
    }

    fn committed(&mut self) -> Result<(), LiveError> {
        match &mut self.way {
            SlackTransport::Socket { open: Some(socket), unconfirmed, .. } => {
                unconfirmed.drain(..).try_for_each(|id| socket.send(json!({ "envelope_id": id }).to_string()))
            }
            SlackTransport::Socket { .. } => Ok(()),
            SlackTransport::Events(inbox) => {
                inbox.confirm();
                Ok(())
            }
        }
    }
}

/// How much was requested after a pause.
#[derive(Debug, Default)]
struct SlackGapCounts {
    conversations: usize,
    /// The number of conversations in which no earlier message was received.
    unheard: usize,
}

impl SlackGapCounts {
    /// The notice that says what was checked, and what was not.
    fn told(&self) -> String {
        let Self { conversations, unheard } = self;
        format!(
            "what happened in the meantime was requested for {conversations} conversation(s); edits and deletions were \
             looked for among the last {OF_CONVERSATION} messages received before in each, and {unheard} of them have \
             none. Not checked: edits and deletions of older messages and of replies in threads, and new replies in \
             older threads; an export has them"
        )
    }
}

/// The workspace that the token belongs to; also its organisation, if the app is installed in all of it.
#[derive(Debug, Default)]
struct SlackEventOwner {
    team: Option<String>,
    organisation: Option<String>,
}

impl SlackEventOwner {
    /// Reads it from the reply of `auth.test`.
    fn of(me: &Value) -> Self {
        let text = |key: &str| me.get(key).and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        let is_whole = me.get("is_enterprise_install").and_then(Value::as_bool) == Some(true);
        Self { team: text("team_id"), organisation: text("enterprise_id").filter(|_| is_whole) }
    }

    /// Whether an event belongs to this workspace. One app may be installed in several workspaces, and all of them send
    /// to the same address. For a channel that workspaces share, the event names those that it is meant for.
    fn has(&self, payload: &Value) -> bool {
        let names = |of: &Value, key: &str, id: &Option<String>| {
            id.is_some() && of.get(key).and_then(Value::as_str) == id.as_deref()
        };
        let is_ours = |of: &Value| names(of, "team_id", &self.team) || names(of, "enterprise_id", &self.organisation);
        let authorised = payload.get("authorizations").and_then(Value::as_array);
        // Slack names the workspace of every event; an event that names none is therefore not for another workspace.
        let says_nothing = payload.get("team_id").and_then(Value::as_str).is_none() && authorised.is_none();
        self.team.is_none() || says_nothing || is_ours(payload) || authorised.into_iter().flatten().any(is_ours)
    }
}

/// Calls a method of the API.
fn api(web: &PlatformClient, method: &str, query: &[(&str, &str)]) -> Result<Value, LiveError> {
    accepted(method, web.get(method, query)?)
}

/// The reply of a method, if Slack reports success.
fn accepted(method: &str, reply: Value) -> Result<Value, LiveError> {
    if reply.get("ok").and_then(Value::as_bool) == Some(true) {
        return Ok(reply);
    }
    let code = reply.get("error").and_then(Value::as_str).unwrap_or("no reason given");
    let problem = format!("Slack refuses {method}: {code}");
    Err(match code {
        "ratelimited" | "rate_limited" => LiveError::Limited { problem, after: NAME_PAUSE },
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => LiveError::Lost(problem),
        _ => {
            let needed = reply.get("needed").and_then(Value::as_str).map(|scope| format!(" ({scope})"));
            let remedy = format!("check the token and its scopes{}", needed.unwrap_or_default());
            LiveError::Refused { problem, remedy }
        }
    })
}

fn connect(app: &PlatformClient) -> Result<LiveSocket, LiveError> {
    const METHOD: &str = "apps.connections.open";
    let reply = accepted(METHOD, app.post(METHOD, &json!({}), Duration::ZERO)?)?;
    LiveSocket::connect(reply.get("url").and_then(Value::as_str).unwrap_or_default())
}

/// Where names are requested.
struct SlackNameSource<'a> {
    web: &'a PlatformClient,
    origin: &'a str,
}

/// Requests the accounts and the conversation of a message if they are not known.
fn learn(
    asking: &SlackNameSource<'_>,
    workspace: &mut SlackWorkspace,
    channel: &str,
    message: &Value,
    arrival: &mut FeedArrival,
) -> Result<(), LiveError> {
    for id in workspace.unasked(message) {
        let reply = known(asking, "users.info", &[("user", &id)], arrival)?;
        workspace.learn_account(&id, reply.get("user").cloned().unwrap_or_default());
    }
    if workspace.knows(channel) {
        return Ok(());
    }
    let reply = known(asking, "conversations.info", &[("channel", channel)], arrival)?;
    let Some(info) = reply.get("channel") else { return Ok(()) };
    let is = |key: &str| info.get(key).and_then(Value::as_bool) == Some(true);
    let mut members = Vec::new();
    if is("is_im") || is("is_mpim") {
        let reply = known(asking, "conversations.members", &[("channel", channel), ("limit", "100")], arrival)?;
        let listed = reply.get("members").and_then(Value::as_array);
        members.extend(listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        for id in workspace.unasked(&json!({ "text": members.iter().map(|id| format!("<@{id}>")).collect::<String>() }))
        {
            let reply = known(asking, "users.info", &[("user", &id)], arrival)?;
            workspace.learn_account(&id, reply.get("user").cloned().unwrap_or_default());
        }
    }
    workspace.learn_conversation(channel, info.clone(), members);
    Ok(())
}

/// Requests names. Waits if Slack asks for a pause; returns null if Slack does not know the id or never names it.
fn known(
    asking: &SlackNameSource<'_>,
    method: &str,
    query: &[(&str, &str)],
    arrival: &mut FeedArrival,
) -> Result<Value, LiveError> {
    let SlackNameSource { web, origin } = *asking;
    // Slack would refuse an invalid id as an invalid argument every time, so it is not requested.
    if query.first().is_some_and(|(_, id)| id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return Ok(Value::Null);
    }
    let ask = || {
        let reply = web.get(method, query)?;
        let is_unknown = reply.get("error").and_then(Value::as_str).is_some_and(|code| {
            matches!(code, "user_not_found" | "users_not_found" | "user_not_visible" | "channel_not_found")
        });
        if is_unknown { Ok(Value::Null) } else { accepted(method, reply) }
    };
    let ended = match ask() {
        Err(LiveError::Limited { after, .. }) if after <= NAME_PAUSE => {
            std::thread::sleep(after);
            ask()
        }
        other => other,
    };
    let part = format!("{method} {}", query.first().map_or("", |(_, id)| id));
    Ok(give_up_after_failures(origin, &part, ended, || api(web, PROBE, &[]))?.unwrap_or_else(|given_up| {
        arrival.give_up(origin, given_up, &part);
        Value::Null
    }))
}

/// The current time as a `ts`, set back far enough for any clock skew.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(CLOCK_SKEW);
    format!("{}.{:06}", since.as_secs(), since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_the_workspace_of_the_token_are_ours() {
        let owner = SlackEventOwner::of(&json!({"ok": true, "team_id": "T1", "enterprise_id": "E1"}));
        let whole =
            SlackEventOwner::of(&json!({"team_id": "T1", "enterprise_id": "E1", "is_enterprise_install": true}));
        let shared = json!([{"team_id": "T9"}, {"team_id": "T1", "enterprise_id": null}]);
        for (payload, ours, of_organisation) in [
            (json!({"team_id": "T1"}), true, true),
            (json!({"team_id": "T2"}), false, false),
            (json!({"team_id": "T2", "enterprise_id": "E1"}), false, true),
            (json!({"team_id": "T2", "authorizations": [{"team_id": "T2"}]}), false, false),
            (json!({"team_id": "T2", "authorizations": shared}), true, true),
            (json!({"team_id": "T2", "authorizations": [{"team_id": null, "enterprise_id": "E1"}]}), false, true),
            (json!({"team_id": null, "authorizations": [{"team_id": "T2"}]}), false, false),
            (json!({}), true, true),
        ] {
            assert_eq!((owner.has(&payload), whole.has(&payload)), (ours, of_organisation), "{payload}");
        }
    }
}

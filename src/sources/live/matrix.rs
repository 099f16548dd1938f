//! Follows Matrix as an account over the client-server API (`/sync`).
//!
//! In: what each sync returns and, if the server has shortened a timeline, the events before it (`/messages`). Out:
//! messages, edits and redactions, as in an export of the room. The position is the token of the last sync, so a lost
//! connection continues where it was. Encrypted messages are not read; they are counted, and their rooms are named.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    abandoned_part::give_up_after_failures,
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
    platform_client::PlatformClient,
    platform_secret::PlatformSecret,
};
use crate::{
    chat::{ChatItem, SkipReason},
    matrix::{MatrixEventOutcome, MatrixLiveRooms},
};
use types::{config::LiveSourceSettings, model::DeadLetter};

const API: &str = "_matrix/client/v3";
/// The number of missed events on one page.
const PAGE: &str = "100";
/// The maximum number of missed events that are requested for one room after a pause. They are held in memory until the
/// oldest one has arrived.
const MAX_MISSED: usize = 20_000;
/// The filter that excludes unneeded parts of a sync.
const FILTER: &str = r#"{"presence":{"types":[]},"account_data":{"types":[]},"room":{"ephemeral":{"types":[]},"account_data":{"types":[]},"timeline":{"limit":100}}}"#;

/// The stored position.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct MatrixCursor {
    /// The token of the last sync; empty before the first run.
    since: String,
}

/// An account's rooms.
pub(super) struct MatrixFeed {
    origin: String,
    web: PlatformClient,
    rooms: MatrixLiveRooms,
    cursor: MatrixCursor,
}

impl MatrixFeed {
    /// Creates the feed; does not connect yet.
    ///
    /// # Errors
    /// [`LiveError`] when a secret is missing, or the position cannot be read.
    pub(super) fn open(settings: &LiveSourceSettings, origin: &str, cursor: Option<Value>) -> Result<Self, LiveError> {
        let cursor: Option<MatrixCursor> = cursor
            .map(serde_json::from_value)
            .transpose()
            .map_err(|e| LiveError::Position { name: settings.name.clone(), problem: e.to_string() })?;
        let token = PlatformSecret::read(settings, "token_env", &settings.token_env)?;
        let base = format!("{}/{API}", settings.endpoint.trim_end_matches('/'));
        Ok(Self {
            origin: origin.to_owned(),
            web: PlatformClient::new(&base, token, Some("Bearer")),
            rooms: MatrixLiveRooms::default(),
            cursor: cursor.unwrap_or_default(),
        })
    }

    /// Handles what a sync returns for one room.
    fn room(&mut self, id: &str, joined: &Value, since: &str, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let list =
            |pointer: &str| joined.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let timeline = list("/timeline/events");
        let is_first = since.is_empty();
        if is_first {
            // From the first sync only the state is used; earlier messages are in an export.
            self.rooms.learn(
                id,
                list("/state/events").iter().chain(timeline.iter().filter(|e| e.get("state_key").is_some())),
            );
            return Ok(());
        }
        if !timeline.is_empty() && !self.rooms.knows(id) {
            let state = self.part(&format!("rooms/{}/state", escaped(id)), &[], arrival)?;
            self.rooms.learn(id, state.iter().flat_map(Value::as_array).flatten());
        }
        if self.rooms.knows(id) {
            self.rooms.learn(id, list("/state/events"));
        }
        let is_cut = joined.pointer("/timeline/limited").and_then(Value::as_bool) == Some(true);
        if let (true, Some(from)) = (is_cut, joined.pointer("/timeline/prev_batch").and_then(Value::as_str)) {
            let missed = self.before(id, from, since, arrival)?;
            if missed.len() >= MAX_MISSED {
                let name = self.rooms.conversation(id).name.clone();
                arrival.notices.push(format!(
                    "the room {name:?} ({id}): more than the last {MAX_MISSED} events were missed, and only those are \
                     read; import an export for the rest"
                ));
            }
            for event in missed {
                self.event(id, &event, arrival)?;
            }
        }
        timeline.iter().try_for_each(|event| self.event(id, event, arrival))
    }

    /// The events of a room between the last sync and the timeline of this one, oldest first.
    fn before(&self, room: &str, from: &str, since: &str, arrival: &mut FeedArrival) -> Result<Vec<Value>, LiveError> {
        let path = format!("rooms/{}/messages", escaped(room));
        let mut found = Vec::new();
        let mut from = from.to_owned();
        loop {
            let query = [("dir", "b"), ("from", from.as_str()), ("to", since), ("limit", PAGE)];
            let Some(reply) = self.part(&path, &query, arrival)? else { break };
            let page = reply.get("chunk").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            found.extend(page.iter().cloned());
            match reply.get("end").and_then(Value::as_str) {
                Some(end) if !page.is_empty() && end != from && end != since && found.len() < MAX_MISSED => {
                    from = end.to_owned()
                }
                _ => break,
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Requests what belongs to one room; `None` if that is given up, which becomes a dead letter.
    fn part(&self, path: &str, query: &[(&str, &str)], arrival: &mut FeedArrival) -> Result<Option<Value>, LiveError> {
        let ended = self.web.get(path, query);
        Ok(match give_up_after_failures(&self.origin, path, ended, || self.web.get("account/whoami", &[]))? {
            Ok(reply) => Some(reply),
            Err(given_up) => {
                arrival.give_up(&self.origin, given_up, path);
                None
            }
        })
    }

    fn event(&mut self, room: &str, event: &Value, arrival: &mut FeedArrival) -> Result<(), LiveError> {
        let item = match self.rooms.item(room, event) {
            Ok(MatrixEventOutcome::Item(item)) => Ok(item),
            Ok(MatrixEventOutcome::EditOf(of)) => {
                match self.part(&format!("rooms/{}/event/{}", escaped(room), escaped(&of)), &[], arrival) {
                    Ok(Some(original)) => self.rooms.edited_item(room, &original, event),
                    Ok(None) => Ok(ChatItem::Skip(SkipReason::Unsupported)),
                    // The server does not have the event, or does not show it.
                    Err(LiveError::Refused { .. }) => Ok(ChatItem::Skip(SkipReason::Unsupported)),
                    Err(error) => return Err(error),
                }
            }
            Err(reason) => Err(reason),
        };
        arrival.items.push(item.unwrap_or_else(|reason| {
            let letter = DeadLetter::new(self.origin.clone(), reason, event.to_string().as_bytes());
            ChatItem::Reject { conversation: Some(self.rooms.conversation(room)), letter }
        }));
        Ok(())
    }
}

impl LiveFeed for MatrixFeed {
    fn next(&mut self, wait: Duration) -> Result<FeedArrival, LiveError> {
        let mut arrival = FeedArrival::default();
        let since = self.cursor.since.clone();
        let timeout = if since.is_empty() { "0".to_owned() } else { wait.as_millis().to_string() };
        let query = [("since", since.as_str()), ("timeout", &timeout), ("filter", FILTER)];
        let query: Vec<(&str, &str)> = query.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let reply = self.web.get("sync", &query)?;
        let Some(next) = reply.get("next_batch").and_then(Value::as_str) else {
            return Err(LiveError::Lost("the homeserver's reply to a sync has no token".to_owned()));
        };
        for (id, joined) in reply.pointer("/rooms/join").and_then(Value::as_object).into_iter().flatten() {
            self.room(id, joined, &since, &mut arrival)?;
        }
        for room in self.rooms.newly_encrypted() {
            let name = self.rooms.conversation(&room).name.clone();
            arrival
                .notices
                .push(format!("the room {name:?} ({room}) is encrypted: its messages are counted, but not read"));
        }
        arrival.unread.take(&mut self.rooms.unread);
        arrival.moved = next != since;
        next.clone_into(&mut self.cursor.since);
        Ok(arrival)
    }

    fn cursor(&self) -> Value {
        serde_json::to_value(&self.cursor).unwrap_or_default()
    }
}

/// An id, escaped for a URL path.
fn escaped(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

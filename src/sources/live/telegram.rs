//! Follows Telegram as a bot: by long polling, or by a webhook.
//!
//! In: updates of the Bot API. Out: messages and their edits, as in an export of the chat. Telegram keeps updates for
//! 24 hours and returns them until a later poll confirms them; so an update is confirmed once it is durable. Telegram
//! does not report deletions to bots, and has no history to catch up from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
    platform_client::PlatformClient,
    platform_secret::PlatformSecret,
    recent_ids::RecentIds,
    webhook_inbox::WebhookInbox,
};
use crate::{
    chat::{ChatItem, SkipReason},
    telegram::bot_item,
    zone::Zone,
};
use types::{config::LiveSourceSettings, model::DeadLetter};

const API: &str = "https://api.telegram.org";
/// The updates that hold messages.
const WANTED: [&str; 4] = ["message", "edited_message", "channel_post", "edited_channel_post"];
/// The longest wait of a poll; longer ones would delay the shutdown of the service.
const MAX_POLL: Duration = Duration::from_secs(4);
/// After a week without updates, Telegram restarts their numbering at another number.
const NUMBERS_HOLD_SECONDS: u64 = 6 * 24 * 3_600;

/// The stored position: the first update that is not durable, and the most recent updates.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct TelegramCursor {
    offset: i64,
    /// When the last update came, in seconds since 1970.
    last_seconds: u64,
    recent: RecentIds,
}

/// The updates that a bot receives.
pub(super) struct TelegramFeed {
    origin: String,
    zone: Zone,
    way: TelegramTransport,
    cursor: TelegramCursor,
}

enum TelegramTransport {
    Poll(Box<PlatformClient>),
    Webhook(WebhookInbox),
}

impl TelegramFeed {
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
        let way = if settings.has_webhook() {
            TelegramTransport::Webhook(inbox)
        } else {
            let token = PlatformSecret::read(settings, "token_env", &settings.token_env)?;
            let base = if settings.endpoint.is_empty() { API } else { settings.endpoint.trim_end_matches('/') };
            TelegramTransport::Poll(Box::new(PlatformClient::new(
                &format!("{base}/bot{}", token.reveal()),
                token,
                None,
            )))
        };
        let zone = Zone::parse(&settings.zone).map_err(|e| LiveError::of_settings(&settings.name, e))?;
        Ok(Self { origin: origin.to_owned(), zone, way, cursor })
    }

    fn poll(web: &PlatformClient, cursor: &TelegramCursor, wait: Duration) -> Result<Vec<Value>, LiveError> {
        let wait = wait.min(MAX_POLL);
        let mut request = json!({ "timeout": wait.as_secs(), "allowed_updates": WANTED });
        let is_old = now_seconds().saturating_sub(cursor.last_seconds) > NUMBERS_HOLD_SECONDS;
        if cursor.offset > 0 && !is_old {
            request["offset"] = cursor.offset.into();
        }
        let mut reply = web.post("getUpdates", &request, wait)?;
        match reply.get_mut("result").map(Value::take) {
            Some(Value::Array(updates)) => Ok(updates),
            _ => Err(LiveError::Lost("Telegram's reply has no updates".to_owned())),
        }
    }

    fn take(&mut self, update: &Value, arrival: &mut FeedArrival) {
        arrival.moved = true;
        if let Some(id) = update.get("update_id").and_then(Value::as_i64) {
            self.cursor.offset = id.saturating_add(1);
            self.cursor.last_seconds = now_seconds();
            if !self.cursor.recent.is_new(&id.to_string()) {
                return;
            }
        }
        let Some(message) = WANTED.iter().find_map(|kind| update.get(kind)) else {
            return arrival.items.push(ChatItem::Skip(SkipReason::Unsupported));
        };
        arrival.items.push(bot_item(message, &self.zone, &mut arrival.unread).unwrap_or_else(
            |(conversation, reason)| {
                // Messages that the user did not choose must not be in the dead letters either.
                let place = json!({ "update_id": update.get("update_id") });
                let payload = if conversation.is_some() { update } else { &place };
                let letter = DeadLetter::new(self.origin.clone(), reason, payload.to_string().as_bytes());
                ChatItem::Reject { conversation, letter }
            },
        ));
    }
}

impl LiveFeed for TelegramFeed {
    fn next(&mut self, wait: Duration) -> Result<FeedArrival, LiveError> {
        let mut arrival = FeedArrival::default();
        match &mut self.way {
            TelegramTransport::Poll(web) => {
                for update in Self::poll(web, &self.cursor, wait)? {
                    self.take(&update, &mut arrival);
                }
            }
            TelegramTransport::Webhook(inbox) => {
                for update in inbox.next_json(wait, &self.origin, &mut arrival) {
                    self.take(&update, &mut arrival);
                }
            }
        }
        Ok(arrival)
    }

    fn cursor(&self) -> Value {
        serde_json::to_value(&self.cursor).unwrap_or_default()
    }

    fn committed(&mut self) -> Result<(), LiveError> {
        if let TelegramTransport::Webhook(inbox) = &mut self.way {
            inbox.confirm();
        }
        Ok(())
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

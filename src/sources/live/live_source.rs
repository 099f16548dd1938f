//! A live source: a platform's feed, and the turns made from its messages.
//!
//! In: the settings of a source, and what its last run committed. Out: batches of turn events and dead letters, each
//! with the position and the names that belong in the same transaction.
//!
//! Resume contract: a source is opened with what was committed last, and continues after it. After an error, or a batch
//! that was not committed, drop the source and open it again: everything since then is returned again, and duplicates
//! change nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crossbeam_channel::Receiver;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    discord::DiscordFeed,
    error::LiveError,
    live_feed::{FeedArrival, LiveFeed},
    matrix::MatrixFeed,
    signed_webhook::SignedWebhook,
    slack::SlackFeed,
    telegram::TelegramFeed,
    transcripts::TranscriptsFeed,
    webhook::{SourceWebhook, WebhookDelivery},
    webhook_inbox::WebhookInbox,
};
use crate::{
    chat::{AssignedNames, TurnMaker},
    transcripts::{DEFAULT_BANK, DEFAULT_REDACTION},
    turn_source::SourceBatch,
    zone::Zone,
};
use types::{
    config::{ChatPlatform, LiveSourceSettings, SourceSettings},
    model::{DeadLetter, IdSalt, TurnEvent},
};

/// The version of the stored position and names.
const SCHEMA: u32 = 1;

/// What is committed in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveBatch {
    /// Events for the turns topic, in order.
    pub events: Vec<TurnEvent>,
    /// Rejected records.
    pub rejects: Vec<DeadLetter>,
    /// The position after them.
    pub cursor: Vec<u8>,
    /// All names that were given, if one is new.
    pub names: Option<Vec<u8>>,
    /// How many items were not turns, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// What the user should know.
    pub notices: Vec<String>,
    /// Unread fields with words, of messages that were otherwise read, by name.
    pub unread: BTreeMap<String, u64>,
}

/// A stored value with its schema version.
#[derive(Serialize, Deserialize)]
struct StoredValue<T> {
    schema: u32,
    value: T,
}

/// A live source.
pub struct LiveSource {
    name: String,
    origin: String,
    turns: TurnMaker,
    feed: Box<dyn LiveFeed>,
    /// The unread fields that were reported.
    told: BTreeSet<String>,
}

impl LiveSource {
    /// Checks everything that can be checked without the platform.
    ///
    /// # Errors
    /// [`LiveError::Settings`] and [`LiveError::Secret`].
    pub fn check(settings: &LiveSourceSettings) -> Result<(), LiveError> {
        let (_, arriving) = crossbeam_channel::bounded(0);
        if settings.has_webhook() {
            SourceWebhook::open(settings)?;
        }
        Self::open(settings, None, None, arriving).map(drop)
    }

    /// Opens a source after what was committed last. `arriving` receives the requests to its webhook.
    ///
    /// # Errors
    /// [`LiveError`] when a setting is wrong, a secret is missing, or the stored values cannot be read.
    pub fn open(
        settings: &LiveSourceSettings,
        cursor: Option<&[u8]>,
        names: Option<&[u8]>,
        arriving: Receiver<WebhookDelivery>,
    ) -> Result<Self, LiveError> {
        let mut export = settings.as_export();
        let wrong = |error| LiveError::of_settings(&settings.name, error);
        Zone::parse(&export.zone).map_err(wrong)?;
        if settings.platform == ChatPlatform::Transcripts {
            as_transcripts(&mut export);
        }
        let mut turns = TurnMaker::new(&export, settings.platform.name()).map_err(wrong)?;
        if let Some(names) = names {
            turns.restore(stored::<AssignedNames>(settings, names)?);
        }
        let cursor = cursor.map(|bytes| stored::<Value>(settings, bytes)).transpose()?;
        let origin = format!("source {} ({})", settings.name, settings.platform.name());
        let inbox = WebhookInbox::new(arriving);
        let feed: Box<dyn LiveFeed> = match settings.platform {
            ChatPlatform::Telegram => Box::new(TelegramFeed::open(settings, &origin, cursor, inbox)?),
            ChatPlatform::Slack => Box::new(SlackFeed::open(settings, &origin, cursor, inbox)?),
            ChatPlatform::Discord => Box::new(DiscordFeed::open(settings, &origin, cursor)?),
            ChatPlatform::Matrix => Box::new(MatrixFeed::open(settings, &origin, cursor)?),
            ChatPlatform::Webhook => Box::new(SignedWebhook::open(settings, &origin, inbox)?),
            ChatPlatform::Transcripts => Box::new(TranscriptsFeed::open(settings, cursor.as_ref())?),
        };
        Ok(Self { name: settings.name.clone(), origin, turns, feed, told: BTreeSet::new() })
    }

    /// The same source, whose turns' ids are hidden with the salt of a log.
    #[must_use]
    pub fn with_id_salt(mut self, salt: IdSalt) -> Self {
        self.turns.hide_with(salt);
        self
    }

    /// Waits up to `wait` for what comes next; `None` if there is nothing to commit.
    ///
    /// # Errors
    /// [`LiveError`]; after it, open the source again.
    pub fn next(&mut self, wait: Duration) -> Result<Option<LiveBatch>, LiveError> {
        let FeedArrival { items, events, rejects, mut notices, unread, moved } = self.feed.next(wait)?;
        if !moved {
            return Ok(None);
        }
        let mut batch = SourceBatch { events, rejects };
        for item in items {
            let taken = self.turns.take(item, &self.origin, &mut batch);
            taken.map_err(|error| LiveError::of_settings(&self.name, error))?;
        }
        let names = self.turns.assigned().map(|names| json(&names));
        let SourceBatch { events, rejects } = batch;
        let skipped = std::mem::take(&mut self.turns.counts.skipped);
        let unread = unread.counts().clone();
        for field in unread.keys().filter(|field| self.told.insert((*field).clone())) {
            notices.push(format!("unread: {field}: a field with words that is not known; its words are not stored"));
        }
        Ok(Some(LiveBatch { events, rejects, cursor: json(&self.feed.cursor()), names, skipped, notices, unread }))
    }

    /// Confirms to the platform what was committed.
    ///
    /// # Errors
    /// [`LiveError`], as [`LiveSource::next`].
    pub fn committed(&mut self) -> Result<(), LiveError> {
        self.feed.committed()
    }
}

/// Gives turns the settings that an export of transcripts has: its feed applies `only` and `except` itself.
fn as_transcripts(settings: &mut SourceSettings) {
    (settings.only, settings.except) = (Vec::new(), Vec::new());
    if settings.bank.is_empty() {
        DEFAULT_BANK.clone_into(&mut settings.bank);
    }
    if settings.redact.is_empty() {
        settings.redact.push(DEFAULT_REDACTION.to_owned());
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(&StoredValue { schema: SCHEMA, value }).unwrap_or_default()
}

fn stored<T: for<'de> Deserialize<'de>>(settings: &LiveSourceSettings, bytes: &[u8]) -> Result<T, LiveError> {
    let unreadable = |problem: String| LiveError::Position { name: settings.name.clone(), problem };
    let value = stored_value(bytes).map_err(unreadable)?;
    serde_json::from_value(value).map_err(|e| unreadable(e.to_string()))
}

fn stored_value(bytes: &[u8]) -> Result<Value, String> {
    let StoredValue { schema, value } = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if schema == SCHEMA { Ok(value) } else { Err(format!("its form is {schema}, not {SCHEMA}")) }
}

/// Checks that the position or the names of a source have a schema that this build can read.
///
/// # Errors
/// What is wrong with them.
pub fn check_stored(bytes: &[u8]) -> Result<(), String> {
    stored_value(bytes).map(drop)
}

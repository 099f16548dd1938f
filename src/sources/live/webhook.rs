//! Requests that platforms send to the HTTP listener.
//!
//! In: a request's headers and its body as it came. Out: a refusal, a reply that stores nothing, or a
//! body for the source's thread. The platform gets its 200 once everything in the body is durable; a
//! request that is dropped on the way gets a 503, and the platform sends it again.

use serde_json::Value;
use tokio::sync::oneshot;

use super::{
    error::LiveError,
    secret::Secret,
    signature::{Header, check_signed, check_slack, check_token},
};
use nouns::config::{LiveSettings, Platform};

/// The webhook of one source.
#[derive(Debug, Clone)]
pub struct Webhook {
    platform: Platform,
    secret: Secret,
}

/// A request that its platform really sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Verified {
    /// Reply with this text; there is nothing to store.
    Reply(String),
    /// Give the body to the source.
    Deliver,
}

/// A body on its way to its source.
#[derive(Debug)]
pub struct Delivered {
    /// As it came.
    pub body: Vec<u8>,
    /// Told once everything in it is durable; dropped where that fails.
    pub durable: oneshot::Sender<()>,
}

impl Webhook {
    /// The webhook of a source that has one.
    ///
    /// # Errors
    /// [`LiveError::Secret`] when the secret's variable is not set.
    pub fn open(settings: &LiveSettings) -> Result<Self, LiveError> {
        let secret = Secret::read(settings, "secret_env", &settings.secret_env)?;
        Ok(Self { platform: settings.platform, secret })
    }

    /// Checks a request. `header` gives a header by its name in lower case.
    ///
    /// # Errors
    /// Why it is refused; the reply is 401.
    pub fn verify(&self, header: &Header<'_>, body: &[u8], now_seconds: i64) -> Result<Verified, String> {
        let secret = self.secret.reveal();
        match self.platform {
            Platform::Telegram => check_token(secret, "x-telegram-bot-api-secret-token", header)?,
            Platform::Slack => check_slack(secret, header, body, now_seconds)?,
            Platform::Webhook => check_signed(secret, header, body, now_seconds)?,
            Platform::Discord | Platform::Matrix => return Err("this platform sends no requests".to_owned()),
        }
        if self.platform == Platform::Slack
            && let Ok(value) = serde_json::from_slice::<Value>(body)
            && value.get("type").and_then(Value::as_str) == Some("url_verification")
        {
            let challenge = value.get("challenge").and_then(Value::as_str).unwrap_or_default();
            return Ok(Verified::Reply(challenge.to_owned()));
        }
        Ok(Verified::Deliver)
    }
}

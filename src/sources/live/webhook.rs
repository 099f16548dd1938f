//! Checks requests that platforms send to the HTTP listener.
//!
//! In: a request's headers and its unchanged body. Out: a refusal, a reply that stores nothing, or a body for the
//! source's thread. The platform gets its 200 once everything in the body is durable. A request that is dropped before
//! that gets a 503, and the platform sends it again.

use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;

use super::{
    error::LiveError,
    platform_secret::PlatformSecret,
    signature::{HeaderLookup, check_signed, check_slack, check_token},
};
use types::config::{ChatPlatform, LiveSourceSettings};

/// The maximum number of records in one request, as in a call of `/v1/turns`. Each may become a dead letter.
const MAX_RECORDS: usize = 10_000;

/// The header in which Telegram sends the secret.
const TELEGRAM_TOKEN: &str = "x-telegram-bot-api-secret-token";

/// The webhook of one source.
#[derive(Debug, Clone)]
pub struct SourceWebhook {
    platform: ChatPlatform,
    secret: PlatformSecret,
}

/// A request that really came from its platform.
#[derive(Debug, PartialEq, Eq)]
pub enum VerifiedRequest {
    /// Reply with this text; there is nothing to store.
    Reply(String),
    /// Pass the body to the source.
    Deliver,
    /// It holds more records than a request may; nothing is stored.
    TooMany(String),
}

/// A body on its way to its source.
#[derive(Debug)]
pub struct WebhookDelivery {
    /// The unchanged body.
    pub body: Vec<u8>,
    /// Signalled once everything in the body is durable; dropped if that fails.
    pub durable: oneshot::Sender<()>,
}

impl SourceWebhook {
    /// The webhook of a source that has one.
    ///
    /// # Errors
    /// [`LiveError::Secret`] when the secret's variable is not set.
    pub fn open(settings: &LiveSourceSettings) -> Result<Self, LiveError> {
        let secret = PlatformSecret::read(settings, "secret_env", &settings.secret_env)?;
        Ok(Self { platform: settings.platform, secret })
    }

    /// Checks what can be checked before the body has arrived: everything, if the platform does not sign bodies.
    ///
    /// # Errors
    /// Why it is refused; the reply is 401.
    pub fn verify_head(&self, header: &HeaderLookup<'_>) -> Result<(), String> {
        match self.platform {
            ChatPlatform::Telegram => check_token(self.secret.reveal(), TELEGRAM_TOKEN, header),
            ChatPlatform::Slack
            | ChatPlatform::Webhook
            | ChatPlatform::Discord
            | ChatPlatform::Matrix
            | ChatPlatform::Transcripts => Ok(()),
        }
    }

    /// Checks a request. `header` returns a header by its name in lower case.
    ///
    /// # Errors
    /// Why it is refused; the reply is 401.
    pub fn verify(&self, header: &HeaderLookup<'_>, body: &[u8], now_seconds: i64) -> Result<VerifiedRequest, String> {
        let secret = self.secret.reveal();
        match self.platform {
            ChatPlatform::Telegram => check_token(secret, TELEGRAM_TOKEN, header)?,
            ChatPlatform::Slack => check_slack(secret, header, body, now_seconds)?,
            ChatPlatform::Webhook => check_signed(secret, header, body, now_seconds)?,
            ChatPlatform::Discord | ChatPlatform::Matrix | ChatPlatform::Transcripts => {
                return Err("this platform sends no requests".to_owned());
            }
        }
        if self.platform == ChatPlatform::Slack
            && let Ok(value) = serde_json::from_slice::<Value>(body)
            && value.get("type").and_then(Value::as_str) == Some("url_verification")
        {
            let challenge = value.get("challenge").and_then(Value::as_str).unwrap_or_default();
            return Ok(VerifiedRequest::Reply(challenge.to_owned()));
        }
        if self.platform == ChatPlatform::Webhook && holds_more_than(body, MAX_RECORDS) {
            let problem = format!("more than {MAX_RECORDS} records; divide them among several requests");
            return Ok(VerifiedRequest::TooMany(problem));
        }
        Ok(VerifiedRequest::Deliver)
    }
}

/// Whether a body holds more records than `most`: one per line, in arrays, or both. Everything from the first invalid
/// JSON on counts as one record.
fn holds_more_than(body: &[u8], most: usize) -> bool {
    let mut records = 0;
    for value in serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>() {
        let of_array = |raw: &RawValue| serde_json::from_str::<Vec<IgnoredAny>>(raw.get()).map_or(1, |all| all.len());
        records += value.as_ref().map_or(1, |raw| of_array(raw));
        if records > most {
            return true;
        }
        if value.is_err() {
            break;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_however_they_are_written() {
        for (body, records) in
            [("", 0), ("{}", 1), ("{}\n{}\n[{},{},5]\n[]", 5), ("[[],[]]", 2), ("{} nonsense", 2), ("[{},{}", 1)]
        {
            let body = body.as_bytes();
            assert!(!holds_more_than(body, records), "{body:?}");
            assert!(records == 0 || holds_more_than(body, records - 1), "{body:?}");
        }
        assert!(holds_more_than("{}\n".repeat(MAX_RECORDS + 1).as_bytes(), MAX_RECORDS));
    }
}

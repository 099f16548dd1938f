//! Calls a platform's API over HTTP.
//!
//! In: a request. Out: the reply as JSON, or what its failure means: a lost connection, a pause that the platform asks
//! for, or a refusal. Never follows a redirect, and no message ever shows the token.

use std::time::Duration;

use serde_json::Value;
use ureq::{Agent, Body, http::Response};

use super::{error::LiveError, platform_secret::PlatformSecret};
use endpoint::{agent, retry_after};
use types::lone_surrogates::replace_lone_surrogates;

/// The longest reply that is read.
const MAX_REPLY_BYTES: u64 = 64 << 20;
/// The timeout for a request that does not wait for updates.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The pause if the platform asks for one without saying how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that a platform may ask for; after it, the platform may ask again.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);
/// The maximum number of characters that a message quotes from a platform's reply.
const MAX_CHARACTERS: usize = 300;

/// A platform's API.
pub(super) struct PlatformClient {
    agent: Agent,
    base: String,
    token: PlatformSecret,
    /// The scheme before the token in the header `authorization`; `None` if the token is in the path.
    scheme: Option<&'static str>,
}

impl PlatformClient {
    /// `base` is the API's address. Does not connect yet.
    pub(super) fn new(base: &str, token: PlatformSecret, scheme: Option<&'static str>) -> Self {
        Self { agent: agent(), base: base.trim_end_matches('/').to_owned(), token, scheme }
    }

    /// Requests `path` with a query.
    ///
    /// # Errors
    /// [`LiveError`], depending on the platform's reply.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, LiveError> {
        let request = self.agent.get(format!("{}/{path}", self.base)).query_pairs(query.iter().copied());
        let request = match self.authorization() {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        let sent = request.config().timeout_global(Some(TIMEOUT)).build().call();
        self.reply(path, sent)
    }

    /// Sends JSON to `path`; the platform may take `wait` longer to reply.
    ///
    /// # Errors
    /// [`LiveError`], depending on the platform's reply.
    pub(super) fn post(&self, path: &str, body: &Value, wait: Duration) -> Result<Value, LiveError> {
        let request = self.agent.post(format!("{}/{path}", self.base)).header("content-type", "application/json");
        let request = match self.authorization() {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        let sent = request.config().timeout_global(Some(TIMEOUT + wait)).build().send(body.to_string().as_bytes());
        self.reply(path, sent)
    }

    fn authorization(&self) -> Option<String> {
        self.scheme.map(|scheme| format!("{scheme} {}", self.token.reveal()))
    }

    fn reply(&self, path: &str, sent: Result<Response<Body>, ureq::Error>) -> Result<Value, LiveError> {
        let at = self.token.mask(&format!("{}/{path}", self.base));
        let mut response = sent.map_err(|e| LiveError::Lost(format!("{at}: {}", self.token.mask(&e.to_string()))))?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let asked = header("retry-after").as_deref().and_then(retry_after);
        let body = response.body_mut().with_config().limit(MAX_REPLY_BYTES).lossy_utf8(true).read_to_string();
        let body = body.map_err(|e| LiveError::Lost(format!("{at}: the reply ended early: {e}")))?;
        // A lone surrogate in one record would make the whole page unreadable, each time.
        let value: Value = serde_json::from_slice(&replace_lone_surrogates(body.as_bytes())).unwrap_or(Value::Null);
        let problem = || {
            let words = ["/description", "/message", "/error"].iter().find_map(|place| value.pointer(place)?.as_str());
            let words: String = self.token.mask(words.unwrap_or(&body)).chars().take(MAX_CHARACTERS).collect();
            format!("{at}: status {status}: {}", words.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        match status {
            200..300 if value.is_object() || value.is_array() => Ok(value),
            200..300 => Err(LiveError::Lost(format!("{at}: the reply is not JSON"))),
            429 => {
                let stated =
                    ["/parameters/retry_after", "/retry_after"].iter().find_map(|p| value.pointer(p)?.as_f64());
                let stated = stated.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let stated_ms = value.get("retry_after_ms").and_then(Value::as_u64).map(Duration::from_millis);
                let after = asked.or(stated).or(stated_ms).unwrap_or(DEFAULT_PAUSE).min(MAX_PAUSE);
                Err(LiveError::Limited { problem: problem(), after })
            }
            300..500 if status != 408 => {
                Err(LiveError::Refused { problem: problem(), remedy: "check the token and its rights".to_owned() })
            }
            _ => Err(LiveError::Lost(problem())),
        }
    }
}

//! One request to an endpoint that speaks OpenAI's protocol, and what its failure means.
//!
//! In: the body of a request, how long it may take. Out: what the asker reads in the reply; or
//! a failure that may pass (429, 5xx, a timeout, a broken connection), with how long the
//! endpoint asks to be left alone; one of this request alone (too long, not allowed); or one
//! that stays (a wrong key, a wrong model name), in the endpoint's own words. Follows no
//! redirect, so that a key never reaches another host; tells no key.

use std::{
    io::{BufRead, BufReader},
    time::{Duration, SystemTime},
};

use ureq::{
    Agent, Body, ResponseExt as _, Timeout,
    http::Response,
    tls::{RootCerts, TlsConfig},
};

/// Bytes of a reply, at most.
const MOST_BYTES: u64 = 64 << 20;
/// Characters of an endpoint's own words that an error repeats.
const MOST_WORDS: usize = 300;

/// The longest pause before another attempt that the endpoint did not ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The first pause; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The way to an endpoint.
pub struct Endpoint {
    agent: Agent,
    url: String,
    /// The variable that holds the key, and the key.
    key: Option<(String, Option<String>)>,
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may go well another time.
    Transient {
        /// What happened.
        problem: String,
        /// How long the endpoint asks to be left alone.
        after: Option<Duration>,
        /// The endpoint may have worked on it, and charge for that.
        charged: bool,
    },
    /// This request will not; another may.
    Rejected(String),
    /// None will.
    Permanent(String),
}

impl Failure {
    fn transient(problem: impl Into<String>, charged: bool) -> Self {
        Self::Transient { problem: problem.into(), after: None, charged }
    }

    /// A reply that cannot be used: the endpoint has done its work.
    fn unread(problem: String) -> Self {
        Self::transient(problem, true)
    }
}

impl Endpoint {
    /// Reads the key; connects to nothing yet.
    ///
    /// `base` is the URL in front of `/chat/completions`, `path` what stands behind it;
    /// `key_env` names the environment variable with the key, empty: none is sent.
    #[must_use]
    pub fn new(base: &str, path: &str, key_env: &str) -> Self {
        let key = Some(key_env.to_owned()).filter(|variable| !variable.is_empty()).map(|variable| {
            let key = std::env::var(&variable).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
            (variable, key)
        });
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("ripplemem/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .into();
        Self { agent, url: format!("{}/{path}", base.trim_end_matches('/')), key }
    }

    /// The variable that should hold a key and does not.
    #[must_use]
    pub fn missing_key(&self) -> Option<&str> {
        match &self.key {
            Some((variable, None)) => Some(variable),
            _ => None,
        }
    }

    fn key(&self) -> Option<&str> {
        self.key.as_ref().and_then(|(_, key)| key.as_deref())
    }

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends one request, and has the body of its reply read.
    ///
    /// # Errors
    /// [`Failure`], with what `read` finds wrong, too.
    pub fn post<T>(
        &self,
        body: &[u8],
        timeout: Duration,
        read: impl FnOnce(&mut dyn BufRead) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = self.key() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        let mut response = request.send(body).map_err(|e| self.broken(&e))?;
        let status = response.status().as_u16();
        if status != 200 {
            let after = response.headers().get("retry-after").and_then(|v| v.to_str().ok()).and_then(retry_after);
            let words = response.body_mut().with_config().limit(MOST_BYTES).lossy_utf8(true).read_to_string();
            return Err(self.refused(status, after, &words.unwrap_or_default(), &response));
        }
        let reader = response.into_body().into_with_config().limit(MOST_BYTES).reader();
        read(&mut BufReader::new(reader)).map_err(|problem| Failure::unread(self.without_key(&problem)))
    }

    /// No reply, or half of one.
    fn broken(&self, error: &ureq::Error) -> Failure {
        match error {
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                Failure::transient("no connection in time", false)
            }
            ureq::Error::Timeout(_) => Failure::transient("no reply in time", true),
            ureq::Error::BadUri(problem) => Failure::Permanent(format!("not a URL: {problem}")),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
                Failure::Permanent(format!("no trust in the endpoint's certificate: {error}"))
            }
            error => Failure::transient(self.without_key(&error.to_string()), false),
        }
    }

    /// A reply that is no completion.
    fn refused(&self, status: u16, after: Option<Duration>, words: &str, response: &Response<Body>) -> Failure {
        let said = endpoint_words(&self.without_key(words));
        let problem = if said.is_empty() { format!("status {status}") } else { format!("status {status}: {said}") };
        match status {
            300..400 => {
                let to = response.headers().get("location").and_then(|v| v.to_str().ok()).unwrap_or("elsewhere");
                Failure::Permanent(
                    self.without_key(&format!("status {status}: {} has moved to {to}", response.get_uri())),
                )
            }
            // Money that has run out does not come back by waiting.
            429 if words.contains("insufficient_quota") => Failure::Permanent(problem),
            408 | 409 | 425 | 429 | 500..600 => Failure::Transient { problem, after, charged: false },
            400 | 413 | 422 => Failure::Rejected(problem),
            _ => Failure::Permanent(problem),
        }
    }

    fn without_key(&self, text: &str) -> String {
        self.key().map_or_else(|| text.to_owned(), |key| text.replace(key, "[key]"))
    }
}

/// A pause before the next attempt: twice the one before, between half of it and all.
#[must_use]
pub fn backoff(attempts: u32) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// `error.message` of a JSON body, as every endpoint has it; else the body's beginning.
fn endpoint_words(body: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let told = ["/error/message", "/error", "/message", "/detail"].iter().find_map(|p| json.pointer(p)?.as_str());
    let line = told.unwrap_or(body).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MOST_WORDS).collect()
}

/// Seconds, or a date.
fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(86_400.0)));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_in_both_forms() {
        assert_eq!(retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(" 0.5 "), Some(Duration::from_millis(500)));
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        let wait = retry_after(&date).expect("a date");
        assert!(wait > Duration::from_secs(57) && wait <= Duration::from_secs(60), "{wait:?}");
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!((retry_after("soon"), retry_after("-1"), retry_after("NaN")), (None, None, None));
    }

    #[test]
    fn pauses_grow_with_jitter_and_have_an_end() {
        for (attempts, low, high) in [(1, 250, 500), (2, 500, 1_000), (5, 4_000, 8_000), (40, 15_000, 30_000)] {
            for _ in 0..50 {
                let found = backoff(attempts).as_millis();
                assert!((low..=high).contains(&found), "{attempts}: {found}");
            }
        }
    }

    #[test]
    fn an_endpoints_own_words_are_found_and_cut() {
        assert_eq!(endpoint_words(r#"{"error":{"message":"no such\n model","code":1}}"#), "no such model");
        assert_eq!(endpoint_words(r#"{"error":"model 'x' not found"}"#), "model 'x' not found");
        assert_eq!(endpoint_words("<html>down</html>"), "<html>down</html>");
        assert_eq!(endpoint_words(&"x".repeat(9_999)).len(), MOST_WORDS);
    }
}

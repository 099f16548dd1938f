//! The HTTP client of one endpoint.
//!
//! In: a request's body, a timeout, and a function that reads the reply. Out: what the function read, or a
//! [`RequestFailure`] by status code and kind of error, with the endpoint's message. The key is masked in it.

use std::{
    io::{BufRead, BufReader, ErrorKind},
    time::{Duration, Instant},
};

use ureq::{Agent, Body, ResponseExt as _, Timeout, http::Response};

use types::trace_parent;

use super::{
    agent::agent,
    backoff::retry_after,
    reply_problem::{ReplyProblem, error_message},
    request_failure::{RequestFailure, TextSuspicion, says_too_long},
};

/// The longest reply.
const MAX_REPLY_BYTES: u64 = 64 << 20;

/// One path of an endpoint, with its key.
pub struct Endpoint {
    agent: Agent,
    url: String,
    /// The environment variable, and the key that it held.
    key: Option<(String, Option<String>)>,
}

impl Endpoint {
    /// Reads the key; connects to nothing yet.
    ///
    /// Requests go to `base`/`path`, such as `https://host/v1` and `chat/completions`. `key_env`
    /// names the environment variable with the key; when it is empty, no key is sent.
    #[must_use]
    pub fn new(base: &str, path: &str, key_env: &str) -> Self {
        let key = Some(key_env.to_owned()).filter(|variable| !variable.is_empty()).map(|variable| {
            let key = std::env::var(&variable).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
            (variable, key)
        });
        Self { agent: agent(), url: format!("{}/{path}", base.trim_end_matches('/')), key }
    }

    /// The environment variable that should hold the key and is not set.
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

    /// The URL that requests are sent to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends one request; `read` reads the body of the reply.
    ///
    /// # Errors
    /// [`RequestFailure`]. A reply that `read` cannot read is transient, and so is a failure that the reply reports,
    /// unless it names a status that means something else.
    pub fn post<T>(
        &self,
        body: &[u8],
        timeout: Duration,
        read: impl FnOnce(&mut dyn BufRead) -> Result<T, ReplyProblem>,
    ) -> Result<T, RequestFailure> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = self.key() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(trace) = trace_parent::current_trace() {
            request = request.header("traceparent", trace.child().to_string());
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        let from = Instant::now();
        let mut response = request.send(body).map_err(|e| self.connection_failure(&e))?;
        let status = response.status().as_u16();
        if status != 200 {
            let after = response.headers().get("retry-after").and_then(|v| v.to_str().ok()).and_then(retry_after);
            let message = response.body_mut().with_config().limit(MAX_REPLY_BYTES).lossy_utf8(true).read_to_string();
            return Err(self.status_failure(status, after, &message.unwrap_or_default(), &response));
        }
        let reader = response.into_body().into_with_config().limit(MAX_REPLY_BYTES).reader();
        // The endpoint has processed the request, and may charge for it.
        let unreadable = |problem: String| {
            let suspicion = if from.elapsed() < timeout { TextSuspicion::Text } else { TextSuspicion::SlowText };
            RequestFailure::transient(problem, true, suspicion)
        };
        read(&mut BufReader::new(reader)).map_err(|problem| match problem {
            ReplyProblem::Unreadable(problem) => unreadable(self.without_key(&problem)),
            ReplyProblem::Failed { problem, status: None } => {
                let problem = format!("the endpoint failed: {}", self.without_key(&problem));
                if says_too_long(&problem, false) { RequestFailure::Rejected(problem) } else { unreadable(problem) }
            }
            ReplyProblem::Failed { problem, status: Some(status) } => {
                let problem = format!("the endpoint failed with {status}: {}", self.without_key(&problem));
                failure_of(status, problem, None, true)
            }
        })
    }

    /// The failure when there is no reply, or only a part of one.
    fn connection_failure(&self, error: &ureq::Error) -> RequestFailure {
        match error {
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                RequestFailure::transient("no connection in time", false, TextSuspicion::None)
            }
            ureq::Error::Timeout(_) => RequestFailure::transient("no reply in time", true, TextSuspicion::SlowText),
            ureq::Error::BadUri(problem) => RequestFailure::Permanent(format!("not a URL: {problem}")),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
                RequestFailure::Permanent(format!("the endpoint's certificate is not trusted: {error}"))
            }
            error => {
                let suspicion = if is_unreachable(error) { TextSuspicion::None } else { TextSuspicion::Text };
                RequestFailure::transient(self.without_key(&error.to_string()), false, suspicion)
            }
        }
    }

    /// The failure that a reply with a status other than 200 means.
    fn status_failure(
        &self,
        status: u16,
        after: Option<Duration>,
        body: &str,
        response: &Response<Body>,
    ) -> RequestFailure {
        let message = error_message(&self.without_key(body));
        let problem =
            if message.is_empty() { format!("status {status}") } else { format!("status {status}: {message}") };
        match status {
            300..400 => {
                let to = response.headers().get("location").and_then(|v| v.to_str().ok()).unwrap_or("elsewhere");
                RequestFailure::Permanent(
                    self.without_key(&format!("status {status}: {} has moved to {to}", response.get_uri())),
                )
            }
            // Waiting does not refill a quota.
            429 if body.contains("insufficient_quota") => RequestFailure::Permanent(problem),
            _ => failure_of(status, problem, after, false),
        }
    }

    fn without_key(&self, text: &str) -> String {
        self.key().map_or_else(|| text.to_owned(), |key| text.replace(key, "[key]"))
    }
}

/// Whether no connection came about, so that the endpoint has not seen the request.
fn is_unreachable(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NetworkDown
                | ErrorKind::AddrNotAvailable
                | ErrorKind::NotFound
        ),
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

/// What a status means for the next request.
fn failure_of(status: u16, problem: String, after: Option<Duration>, charged: bool) -> RequestFailure {
    let transient = |suspicion| RequestFailure::Transient { problem: problem.clone(), after, charged, suspicion };
    match status {
        400 | 413 | 422 => RequestFailure::Rejected(problem),
        // Some servers answer a text that is too long as a failure of their own.
        500..600 if says_too_long(&problem, false) => RequestFailure::Rejected(problem),
        // Busy: it says so, or when to come again.
        409 | 425 | 429 | 503 | 529 => transient(TextSuspicion::None),
        408 | 500..600 if after.is_some() => transient(TextSuspicion::None),
        408 | 504 | 524 => transient(TextSuspicion::SlowText),
        500..600 => transient(TextSuspicion::Text),
        _ => RequestFailure::Permanent(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_casts_suspicion_on_the_text_only_where_the_endpoint_took_it() {
        let of = |status, problem: &str, after| failure_of(status, problem.to_owned(), after, false);
        let suspicion = |failure: RequestFailure| match failure {
            RequestFailure::Transient { suspicion, .. } => Some(suspicion),
            _ => None,
        };
        for (status, expected) in [
            (429, TextSuspicion::None),
            (503, TextSuspicion::None),
            (529, TextSuspicion::None),
            (500, TextSuspicion::Text),
            (502, TextSuspicion::Text),
            (504, TextSuspicion::SlowText),
            (408, TextSuspicion::SlowText),
        ] {
            assert_eq!(suspicion(of(status, "overloaded, the queue is too long", None)), Some(expected), "{status}");
            assert_eq!(suspicion(of(status, "", Some(Duration::ZERO))), Some(TextSuspicion::None), "{status}");
        }
        for status in [400, 413, 422, 500] {
            let problem = "input (600 tokens) is too large to process";
            assert_eq!(of(status, problem, None), RequestFailure::Rejected(problem.to_owned()), "{status}");
        }
        for status in [301, 401, 403, 404] {
            assert!(matches!(of(status, "", None), RequestFailure::Permanent(_)), "{status}");
        }
        let io = |kind: ErrorKind| is_unreachable(&ureq::Error::Io(kind.into()));
        assert!(io(ErrorKind::ConnectionRefused) && is_unreachable(&ureq::Error::HostNotFound));
        assert!(!io(ErrorKind::ConnectionReset) && !io(ErrorKind::UnexpectedEof) && !io(ErrorKind::BrokenPipe));
    }
}

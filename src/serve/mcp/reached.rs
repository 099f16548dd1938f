//! A memory in another process, reached over HTTP.
//!
//! In: the address and the token that the process wrote beside the directory's lock. Out: the answers of its calls. A
//! connection that fails means that the process is gone; nothing is tried twice here.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use ureq::{Agent, Body, RequestBuilder, http::Response};

use super::call_error::CallError;
use crate::serve::{HttpAddress, api::Problem};

/// The longest that a process works on a request.
const TIMEOUT: Duration = Duration::from_secs(660);
/// The longest answer.
const MAX_BYTES: u64 = 64 << 20;

pub(super) struct Reached {
    agent: Agent,
    address: HttpAddress,
}

impl Reached {
    pub(super) fn new(address: HttpAddress) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).proxy(None);
        Self { agent: config.build().new_agent(), address }
    }

    pub(super) fn post<R: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<R, CallError> {
        let body = serde_json::to_vec(body).map_err(|e| CallError::Refused(e.to_string()))?;
        let request = self.shown(self.agent.post(self.url(path))).header("Content-Type", "application/json");
        self.read(path, request.send(&body))
    }

    /// A request whose parameters stand in the query.
    pub(super) fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, CallError> {
        let request =
            if method == "DELETE" { self.agent.delete(self.url(path)) } else { self.agent.get(self.url(path)) };
        let given = parameters.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        self.read(path, self.shown(request).query_pairs(given).call())
    }

    /// A request with the token, where one is asked for.
    fn shown<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.address.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address.address)
    }

    fn read<R: DeserializeOwned>(
        &self,
        path: &str,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<R, CallError> {
        let gone = |e: &dyn std::fmt::Display| {
            CallError::Gone(format!(
                "{}: {e}; the process that had the memory open has ended; ask again",
                self.url(path)
            ))
        };
        let mut response = response.map_err(|e| gone(&e))?;
        let text = response.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(|e| gone(&e))?;
        if response.status().as_u16() == 200 {
            let other = |e| CallError::Refused(format!("{}: an answer of another version: {e}", self.url(path)));
            return serde_json::from_str(&text).map_err(other);
        }
        Err(match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => problem.into(),
            Err(_) => CallError::Refused(format!("{}: status {}", self.url(path), response.status())),
        })
    }
}

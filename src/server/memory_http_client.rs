//! A memory in another process of this machine, reached over HTTP.
//!
//! In: the address and the token that the process wrote beside the directory's lock. Out: the answers of
//! its calls. A connection that fails means that the process is gone; nothing is tried twice here.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use ureq::{
    Agent, Body, RequestBuilder,
    http::Response,
    typestate::{WithBody, WithoutBody},
};

use super::{
    HttpAddress,
    api::{ApiProblem, ProfileRequest},
};
use types::model::Profile;

/// The longest that a process works on a request.
const TIMEOUT: Duration = Duration::from_secs(660);
/// The longest answer.
const MAX_BYTES: u64 = 64 << 20;

/// A memory in another process.
pub struct MemoryHttpClient {
    agent: Agent,
    address: HttpAddress,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum MemoryHttpError {
    /// The process says why.
    #[error("{}", .0.detail)]
    Problem(ApiProblem),
    /// The process has ended, or breaks the connection.
    #[error("{url}: {problem}; the process that had the memory open has ended; ask again")]
    Gone {
        /// What was called.
        url: String,
        /// The connection's error.
        problem: String,
    },
    /// The answer is of another version.
    #[error("{url}: {problem}; use the same version of the program on both sides")]
    Form {
        /// What was called.
        url: String,
        /// What is wrong.
        problem: String,
    },
}

impl MemoryHttpClient {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(address: HttpAddress) -> Self {
        // A proxy of the environment does not reach this machine's own addresses.
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).proxy(None);
        Self { agent: config.build().new_agent(), address }
    }

    /// A call with a body.
    ///
    /// # Errors
    /// [`MemoryHttpError`].
    pub fn post<R: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<R, MemoryHttpError> {
        self.send(self.agent.post(self.url(path)), path, body)
    }

    /// As [`Self::post`], with the method PUT.
    ///
    /// # Errors
    /// [`MemoryHttpError`].
    pub fn put<R: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<R, MemoryHttpError> {
        self.send(self.agent.put(self.url(path)), path, body)
    }

    fn send<R: DeserializeOwned>(
        &self,
        request: RequestBuilder<WithBody>,
        path: &str,
        body: &impl Serialize,
    ) -> Result<R, MemoryHttpError> {
        let url = self.url(path);
        let body = serde_json::to_vec(body).map_err(|e| MemoryHttpError::Form {
            url: url.clone(),
            problem: format!("the request is not JSON: {e}"),
        })?;
        let request = self.shown(request).header("Content-Type", "application/json");
        read(url, request.send(&body))
    }

    /// A call whose parameters are in the query.
    ///
    /// # Errors
    /// [`MemoryHttpError`].
    pub fn get<R: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, MemoryHttpError> {
        self.query(self.agent.get(self.url(path)), path, parameters)
    }

    /// What persons of a bank said that lasts; with `wait_ms` once it differs from a version, or after this time.
    ///
    /// # Errors
    /// [`MemoryHttpError`].
    pub fn profile(
        &self,
        show: &ProfileRequest,
        version: Option<&str>,
        wait_ms: Option<u64>,
    ) -> Result<Profile, MemoryHttpError> {
        let (of, wait_ms) = (show.parameters(), wait_ms.map(|ms| ms.to_string()));
        let of = of.iter().map(|(name, value)| (*name, value.as_deref()));
        let waits = [("last_event_id", version), ("wait_ms", wait_ms.as_deref())];
        self.get("/v1/profile", &of.chain(waits).collect::<Vec<_>>())
    }

    /// As [`Self::get`], with the method DELETE.
    ///
    /// # Errors
    /// [`MemoryHttpError`].
    pub fn delete<R: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, MemoryHttpError> {
        self.query(self.agent.delete(self.url(path)), path, parameters)
    }

    fn query<R: DeserializeOwned>(
        &self,
        request: RequestBuilder<WithoutBody>,
        path: &str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, MemoryHttpError> {
        let given = parameters.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        read(self.url(path), self.shown(request).query_pairs(given).call())
    }

    /// A request with the token, if one is required.
    fn shown<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.address.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address.address)
    }
}

fn read<R: DeserializeOwned>(url: String, response: Result<Response<Body>, ureq::Error>) -> Result<R, MemoryHttpError> {
    let gone = |e: ureq::Error| MemoryHttpError::Gone { url: url.clone(), problem: e.to_string() };
    let mut response = response.map_err(gone)?;
    let text = response.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(gone)?;
    if response.status().as_u16() == 200 {
        return serde_json::from_str(&text)
            .map_err(|e| MemoryHttpError::Form { problem: format!("an answer of another version: {e}"), url });
    }
    Err(match serde_json::from_str(&text) {
        Ok(problem) => MemoryHttpError::Problem(problem),
        Err(_) => MemoryHttpError::Form { problem: format!("status {}", response.status()), url },
    })
}

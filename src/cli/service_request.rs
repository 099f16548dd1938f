//! One HTTP request to a running service.
//!
//! In: a method, a URL, a token where one is needed, and a body. Out: the body of the response. Never retries.

use std::time::Duration;

use anyhow::{Context, Result};
use server::AdminAccess;
use ureq::http::{Request, Uri};

/// Timeout of a health check.
pub(crate) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a request that makes the service work, such as writing a snapshot.
const WORK_TIMEOUT: Duration = Duration::from_secs(600);

/// Nothing listens at an address.
#[derive(Debug, thiserror::Error)]
#[error("{address}: nobody answers")]
pub(crate) struct Unreachable {
    address: String,
    source: ureq::Error,
}

/// Has the service at an address do some administrative work.
pub(crate) fn administer(access: &AdminAccess, work: &str, body: &str) -> Result<String> {
    let url = format!("http://{}/v1/admin/{work}", access.address);
    request("POST", &url, Some(&access.token), body, WORK_TIMEOUT)
}

/// Sends a request and returns the body of the response.
pub(crate) fn request(method: &str, url: &str, token: Option<&str>, body: &str, timeout: Duration) -> Result<String> {
    let uri: Option<Uri> = url.parse().ok().filter(|uri: &Uri| uri.scheme().is_some() && uri.authority().is_some());
    let uri = uri.with_context(|| format!("--url {url:?}: not http://ADDRESS:PORT/PATH"))?;
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let agent = endpoint::agent();
    let request = agent.configure_request(request.body(body.to_owned())?).timeout_global(Some(timeout)).build();
    let mut response = agent.run(request).map_err(|source| match source {
        ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
            anyhow::Error::from(Unreachable { address: address.clone(), source })
        }
        source => anyhow::Error::from(source).context(address.clone()),
    })?;
    let is_done = response.status() == 200;
    let text = response.body_mut().read_to_string();
    let text = text.with_context(|| format!("{address}: the response is not complete"))?;
    let text = text.trim();
    if is_done {
        return Ok(text.to_owned());
    }
    anyhow::bail!("{url}: {}", if text.is_empty() { "not an answer of this service" } else { text })
}

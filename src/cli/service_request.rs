//! One HTTP request to a running service.
//!
//! In: a method and a URL. Out: the body of the response. Never retries.

use std::time::Duration;

use anyhow::{Context, Result};
use ureq::http::{Request, Uri};

/// Timeout of a health check.
pub(crate) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Nothing listens at an address.
#[derive(Debug, thiserror::Error)]
#[error("{address}: no process answers there")]
pub(crate) struct ServiceUnreachable {
    address: String,
    source: ureq::Error,
}

/// Sends a request and returns the body of the response.
pub(crate) fn request(method: &str, url: &str, timeout: Duration) -> Result<String> {
    let uri: Option<Uri> = url.parse().ok().filter(|uri: &Uri| uri.scheme().is_some() && uri.authority().is_some());
    let uri = uri.with_context(|| format!("--url {url:?}: not http://ADDRESS:PORT/PATH"))?;
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let request = Request::builder().method(method).uri(uri);
    let agent = endpoint::agent();
    let request = agent.configure_request(request.body(())?).timeout_global(Some(timeout)).build();
    let mut response = agent.run(request).map_err(|source| match source {
        ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
            anyhow::Error::from(ServiceUnreachable { address: address.clone(), source })
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

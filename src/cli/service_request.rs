//! One HTTP request to a running service.
//!
//! In: a method, a URL, a token where one is needed, and a body. Out: the body of the response. Written by hand: one request
//! needs no client library. Never retries.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result};
use server::AdminAccess;

/// Timeout of a health check.
pub(crate) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a request that makes the service work, such as writing a snapshot.
const WORK_TIMEOUT: Duration = Duration::from_secs(600);

/// Nothing listens at an address.
#[derive(Debug, thiserror::Error)]
#[error("{address}: nobody answers")]
pub(crate) struct Unreachable {
    address: String,
    source: std::io::Error,
}

/// Has the service at an address do some administrative work.
pub(crate) fn administer(access: &AdminAccess, work: &str, body: &str) -> Result<String> {
    let url = format!("http://{}/v1/admin/{work}", access.address);
    request("POST", &url, Some(&access.token), body, WORK_TIMEOUT)
}

/// Sends a request and returns the body of the response.
pub(crate) fn request(method: &str, url: &str, token: Option<&str>, body: &str, timeout: Duration) -> Result<String> {
    let rest = url.strip_prefix("http://").with_context(|| format!("--url {url:?}: not http://ADDRESS:PORT/PATH"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream =
        TcpStream::connect(address).map_err(|source| Unreachable { address: address.to_owned(), source })?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let shown = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\n{shown}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response).with_context(|| format!("{address}: the response is not complete"))?;
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default().trim();
    if response.starts_with("HTTP/1.1 200") {
        return Ok(body.to_owned());
    }
    anyhow::bail!("{url}: {}", if body.is_empty() { "not an answer of this service" } else { body })
}

//! The names under which a loopback address is reached.
//!
//! In: the headers of a request. Out: whether it is for this address, from this machine. Another host's
//! name means that a browser was made to resolve another site's name to this machine; another origin
//! that a page of another site asks.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};

/// The names of an address.
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Those of a loopback address.
    pub(super) fn of(address: SocketAddr) -> Self {
        let names = [address.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        Self(names.map(|name| format!("{name}:{}", address.port())).to_vec())
    }

    /// Why a request is refused, if it is.
    pub(super) fn refusal(&self, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let ours = |host: &str| self.0.iter().any(|known| known.eq_ignore_ascii_case(host));
        if !text(header::HOST).is_some_and(ours) {
            return Some("the Host header names another host; use the address that the service listens on");
        }
        if text(header::ORIGIN).is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(ours)) {
            return Some("pages of other sites may not ask this");
        }
        None
    }
}

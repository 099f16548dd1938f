//! The names under which an address is reached.
//!
//! In: the headers of a request. Out: whether it is for this service, and not from a page of another
//! site. Another host's name means that a browser was made to resolve another site's name to this
//! machine; another origin that a page of another site asks.

use std::{net::SocketAddr, sync::Arc};

use axum::http::{HeaderMap, header};

/// The names of an address, in lower case; none where any name will do.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// Those of an address, and `more` names, with its port and without. Only a loopback address is also
    /// reached as `localhost`.
    pub(super) fn of(address: SocketAddr, more: &[String]) -> Self {
        let port = address.port();
        let mut names = vec![address.to_string()];
        if address.ip().is_loopback() {
            names.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        for name in more.iter().map(|name| name.to_ascii_lowercase()) {
            names.push(format!("{name}:{port}"));
            // A client leaves the port out where it is that of the scheme, and a proxy may too.
            names.push(name);
        }
        Self(Some(names.into()))
    }

    /// Those of an address for monitoring. One that is reached from elsewhere is called by whatever name a
    /// monitoring system knows it by, and shows nothing that a foreign page may not see.
    pub(super) fn of_monitoring(address: SocketAddr, more: &[String]) -> Self {
        if address.ip().is_loopback() { Self::of(address, more) } else { Self(None) }
    }

    /// Why a request is refused, if it is.
    pub(super) fn refusal(&self, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_ascii_lowercase());
        let Some(names) = &self.0 else { return None };
        let ours = |host: &str| names.iter().any(|known| known == host);
        if !text(header::HOST).is_some_and(|host| ours(&host)) {
            return Some(
                "the Host header names another host; use the address that the service listens on, or a name of http.hosts",
            );
        }
        let of_page = |origin: &str| origin.split_once("://").map(|(_, host)| host.to_owned());
        if text(header::ORIGIN).is_some_and(|origin| !of_page(&origin).is_some_and(|host| ours(&host))) {
            return Some("pages of other sites may not ask this");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &Hosts, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        hosts.refusal(&headers).is_none()
    }

    #[test]
    fn a_loopback_address_has_its_names_and_no_others() {
        let hosts = Hosts::of("127.0.0.1:8321".parse().unwrap(), &[]);
        for host in ["127.0.0.1:8321", "localhost:8321", "LOCALHOST:8321", "[::1]:8321"] {
            assert!(allowed(&hosts, host, None), "{host}");
            assert!(allowed(&hosts, host, Some("http://localhost:8321")), "{host}");
        }
        for host in ["localhost", "127.0.0.1:1", "evil.example:8321", "", "127.0.0.1.evil.example:8321"] {
            assert!(!allowed(&hosts, host, None), "{host}");
        }
        for origin in ["http://evil.example", "null", "http://localhost", "http://localhost:8321.evil.example"] {
            assert!(!allowed(&hosts, "localhost:8321", Some(origin)), "{origin}");
        }
        assert!(hosts.refusal(&HeaderMap::new()).is_some(), "without a host");
    }

    #[test]
    fn another_address_is_reached_by_the_names_of_the_settings() {
        let hosts = Hosts::of("0.0.0.0:443".parse().unwrap(), &["Memory.example.org".to_owned()]);
        assert!(allowed(&hosts, "memory.example.org", Some("https://memory.example.org")));
        assert!(allowed(&hosts, "memory.example.org:443", None));
        assert!(!allowed(&hosts, "localhost:443", None) && !allowed(&hosts, "10.0.0.1:443", None));
        assert!(allowed(&Hosts::of("[::1]:80".parse().unwrap(), &[]), "[::1]:80", None));
    }
}

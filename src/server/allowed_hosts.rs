//! The names under which an address is reached.
//!
//! In: the head of a request. Out: whether it is for this service, and not from a page of another origin. A Host of
//! another name means that a browser was made to resolve another site's name to this machine. Another Origin means that
//! a page of another site, or of another port of this machine, sends the request. A link to the console may be on any
//! page.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderName, Method, header},
};

/// The header in which browsers say whether the page that sends a request is of this origin.
const FETCHED_BY: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Its values for a page of this origin, and if no page sends the request, as for an address that was typed.
const OF_US: [&str; 2] = ["same-origin", "none"];
/// The headers, with their values, of a request for a link that a person follows, or for a redirect.
const NAVIGATED: [(HeaderName, &str); 2] =
    [(HeaderName::from_static("sec-fetch-mode"), "navigate"), (HeaderName::from_static("sec-fetch-dest"), "document")];

/// The names of an address.
#[derive(Debug, Clone)]
pub(super) struct AllowedHosts {
    /// In lower case; `None` if any name is allowed.
    names: Option<Arc<[String]>>,
    /// Whether links on other sites may lead here.
    takes_links: bool,
    /// The origins whose pages may ask.
    origins: Arc<[String]>,
}

impl AllowedHosts {
    /// The names of an address, and `more` names, with its port and without. Only a loopback address is also reached as
    /// `localhost`.
    pub(super) fn of(address: SocketAddr, more: &[String]) -> Self {
        let port = address.port();
        let mut names = vec![address.to_string()];
        if address.ip().is_loopback() {
            names.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        for name in more.iter().map(|name| name.to_ascii_lowercase()) {
            names.push(format!("{name}:{port}"));
            // A client leaves out the port if it is that of the scheme, and a proxy may, too.
            names.push(name);
        }
        Self { names: Some(names.into()), takes_links: false, origins: Arc::default() }
    }

    /// The same names, where pages of these origins may ask, too.
    pub(super) fn with_origins(self, origins: &[String]) -> Self {
        Self { origins: origins.into(), ..self }
    }

    /// Whether the settings name an origin whose pages may ask.
    pub(super) fn names_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|named| named == origin)
    }

    /// The same names, for a page to which links on other sites may lead: the page does nothing but show itself.
    #[cfg(any(test, feature = "console"))]
    pub(super) fn for_pages(self) -> Self {
        Self { takes_links: true, ..self }
    }

    /// The names of an address for monitoring. If other machines reach it, any name is allowed: a monitoring system
    /// chooses the name, and a page of another site may see what is shown there.
    pub(super) fn for_monitoring(address: SocketAddr, more: &[String]) -> Self {
        if address.ip().is_loopback() {
            Self::of(address, more)
        } else {
            Self { names: None, takes_links: false, origins: Arc::default() }
        }
    }

    /// Why a request is refused, if it is. A proxy in front might read another one of two headers, or the target
    /// instead of the header: each header may be given only once, and header and target must both name this service.
    pub(super) fn refusal(&self, request: &Request) -> Option<&'static str> {
        let Some(names) = &self.names else { return None };
        let headers = request.headers();
        let all = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
        let ours = |host: &str| names.iter().any(|known| *known == host.to_ascii_lowercase());
        if all(header::HOST).count() > 1 || all(header::ORIGIN).count() > 1 {
            return Some("the Host or the Origin header is given twice; send it once");
        }
        let of_target = request.uri().authority().map(|authority| authority.as_str());
        if all(header::HOST).count() == 0 || !all(header::HOST).chain(of_target).all(ours) {
            return Some(
                "the Host header or the target names another host; use the address that the service listens on, or a \
                 name of http.hosts",
            );
        }
        let of_others = all(header::ORIGIN).filter(|origin| !self.names_origin(origin));
        let mut of_pages = of_others.map(|origin| origin.split_once("://").map(|(_, host)| host));
        // A browser sends no origin if a page only shows something, such as a picture, but it sends this header.
        let has_origin = all(header::ORIGIN).count() > 0;
        let is = |value: &str, known: &str| value.eq_ignore_ascii_case(known);
        // Another port of this machine is `same-site`.
        let is_of_another_page = !has_origin && all(FETCHED_BY).any(|by| !OF_US.iter().any(|ours| is(by, ours)));
        let is_link = || {
            let navigated = NAVIGATED.iter().all(|(name, value)| all(name.clone()).any(|said| is(said, value)));
            self.takes_links && request.method() == Method::GET && navigated
        };
        if is_of_another_page && !is_link() || of_pages.any(|host| !host.is_some_and(ours)) {
            return Some("pages of other sites and of other ports may not ask this");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, headers: &[(&str, &str)]) -> Request {
        let request = headers.iter().fold(Request::get(target), |request, (name, value)| request.header(*name, *value));
        request.body(axum::body::Body::empty()).unwrap()
    }

    fn allowed(hosts: &AllowedHosts, host: &str, origin: Option<&str>) -> bool {
        let headers: Vec<_> = std::iter::once(("host", host)).chain(origin.map(|origin| ("origin", origin))).collect();
        hosts.refusal(&request("/v1/status", &headers)).is_none()
    }

    #[test]
    fn everything_that_names_a_host_names_ours() {
        let hosts = AllowedHosts::of("127.0.0.1:8321".parse().unwrap(), &[]);
        let (ours, evil) = ("localhost:8321", "evil.example");
        let page = |host: &str| format!("http://{host}");
        for (target, headers, is_allowed) in [
            ("/", vec![("host", ours)], true),
            ("http://localhost:8321/", vec![("host", ours)], true),
            ("http://evil.example/", vec![("host", ours)], false),
            ("http://evil.example/", vec![("host", evil)], false),
            ("http://localhost:8321/", vec![("host", evil)], false),
            ("/", vec![("host", ours), ("host", evil)], false),
            ("/", vec![("host", evil), ("host", ours)], false),
            ("/", vec![("host", ours), ("host", ours)], false),
            ("/", vec![("host", ours), ("origin", &page(ours)), ("origin", &page(evil))], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "cross-site")], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "Cross-Site"), ("origin", &page(ours))], true),
            ("/", vec![("host", ours), ("sec-fetch-site", "same-site")], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "SAME-SITE"), ("origin", &page(ours))], true),
            ("/", vec![("host", ours), ("sec-fetch-site", "same-site"), ("origin", "http://localhost:3000")], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "same-site")], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "nonsense")], false),
            ("/", vec![("host", ours), ("sec-fetch-site", "same-origin")], true),
            ("/", vec![("host", ours), ("sec-fetch-site", "none")], true),
            ("/", vec![], false),
        ] {
            let refusal = hosts.refusal(&request(target, &headers));
            assert_eq!(refusal.is_none(), is_allowed, "{target} {headers:?}: {refusal:?}");
        }
    }

    #[test]
    fn a_link_leads_from_anywhere_to_a_page_alone() {
        let hosts = AllowedHosts::of("127.0.0.1:8321".parse().unwrap(), &[]);
        let page = hosts.clone().for_pages();
        let link = ["cross-site", "navigate", "document"];
        for (method, [site, mode, dest], is_allowed) in [
            ("GET", link, true),
            ("GET", ["same-site", "navigate", "document"], true),
            ("GET", ["same-site", "navigate", "iframe"], false),
            ("GET", ["same-site", "no-cors", "image"], false),
            ("GET", ["same-site", "no-cors", "script"], false),
            ("GET", ["same-site", "cors", "empty"], false),
            ("POST", link, false),
        ] {
            let fetched_by = FETCHED_BY;
            let headers = [
                ("host", "localhost:8321"),
                (fetched_by.as_str(), site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            let mut request = request("/console/", &headers);
            *request.method_mut() = method.parse().unwrap();
            assert_eq!(page.refusal(&request).is_none(), is_allowed, "{method} {site} {mode} {dest}");
            assert!(hosts.refusal(&request).is_some(), "no link leads to anything else: {method} {site} {mode} {dest}");
        }
    }

    #[test]
    fn a_loopback_address_has_its_names_and_no_others() {
        let hosts = AllowedHosts::of("127.0.0.1:8321".parse().unwrap(), &[]);
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
        assert!(hosts.refusal(&request("/", &[])).is_some(), "without a host");
    }

    #[test]
    fn another_address_is_reached_by_the_names_of_the_settings() {
        let hosts = AllowedHosts::of("0.0.0.0:443".parse().unwrap(), &["Memory.example.org".to_owned()]);
        assert!(allowed(&hosts, "memory.example.org", Some("https://memory.example.org")));
        assert!(allowed(&hosts, "memory.example.org:443", None));
        assert!(!allowed(&hosts, "localhost:443", None) && !allowed(&hosts, "10.0.0.1:443", None));
        assert!(allowed(&AllowedHosts::of("[::1]:80".parse().unwrap(), &[]), "[::1]:80", None));
    }
}

//! `[http]`: where a running service takes turns and answers questions over HTTP.

use std::{net::SocketAddr, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::AccessSettings;

/// The HTTP interface of a running service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Address and port that serve `/v1`, such as `127.0.0.1:8321`; port 0 takes a free one. One that is
    /// not a loopback address needs `access.token_file`. With an embedded log, `ripplemem run` then stays
    /// until it is stopped, and the commands reach it there. Without the role `serve` it serves what a service
    /// without a memory has: health, metrics, status, orders. Empty: none.
    pub listen: String,
    /// Further names under which clients reach it, as `Host` names them; a request to another name is
    /// refused. An address such as `0.0.0.0` needs at least one.
    pub hosts: Vec<String>,
    /// URL under which clients reach this instance, where instances divide the memory
    /// (`serve.hold = "assigned"`): the others name it to who asks them for a bank of this one. Empty: the
    /// first of `http.hosts`, or the address, with its port.
    pub advertised: String,
    /// Origins whose pages may ask from a browser, such as `https://app.example`; a page of any other origin is
    /// refused. Such a page shows a token as any client does, and no cookie takes part.
    pub origins: Vec<String>,
    /// Most subscriptions at once, in all. Each keeps a connection, so it is never more than half of the
    /// connections that the system's limit on open files allows.
    #[schemars(range(min = 1, max = 100_000))]
    pub subscriptions: usize,
    /// Most subscriptions of one token at once; never more than an eighth of the connections.
    #[schemars(range(min = 1, max = 100_000))]
    pub subscriptions_of_token: usize,
    /// PEM file of the certificate, with those that signed it, relative to the pipeline file: then
    /// connections are TLS.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key, relative to the pipeline file.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Also serves the routes of Mem0's platform that its client calls (docs/mem0.md). Needs an embedded log.
    pub mem0: bool,
}

impl HttpSettings {
    /// The names under which clients reach it.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let advertised = Url::parse(&self.advertised).ok();
        let authority = advertised.as_ref().map(|url| url.authority().to_owned());
        self.hosts.iter().cloned().chain(authority).collect()
    }

    /// The URL under which clients elsewhere reach it when it listens on `address`.
    #[must_use]
    pub fn advertised(&self, scheme: &str, address: SocketAddr) -> String {
        match (self.advertised.trim_end_matches('/'), self.hosts.first()) {
            ("", Some(host)) => format!("{scheme}://{host}:{}", address.port()),
            ("", None) => format!("{scheme}://{address}"),
            (advertised, _) => advertised.to_owned(),
        }
    }

    /// Checks that no client elsewhere reaches it without a token.
    ///
    /// # Errors
    /// What is wrong with which setting, and what to write.
    pub fn check(&self, access: &AccessSettings) -> Result<(), String> {
        let Self { listen, hosts, advertised, origins, certificate, key, .. } = self;
        check_advertised(advertised)?;
        origins.iter().try_for_each(|origin| check_origin(origin))?;
        if certificate.is_some() != key.is_some() {
            return Err("http.certificate, http.key: one of them is missing; set both or neither".to_owned());
        }
        if listen.is_empty() {
            return Ok(());
        }
        let Ok(address) = listen.parse::<SocketAddr>() else {
            return Err(format!(
                "http.listen: {listen:?} is not an address with a port; write, for example, 127.0.0.1:8321"
            ));
        };
        if !address.ip().is_loopback() && access.token_file.is_none() {
            return Err(format!(
                "http.listen: {listen} is reached from elsewhere, where everybody could read and write every bank; set \
                 access.token_file (`ripplemem token add` makes a token), or listen on 127.0.0.1"
            ));
        }
        if address.ip().is_unspecified() && hosts.is_empty() {
            return Err(format!("http.hosts: empty; name the hosts under which clients reach {listen}"));
        }
        Ok(())
    }
}

/// Checks that an origin has the form in which browsers send it.
fn check_origin(origin: &str) -> Result<(), String> {
    let sent = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let sent = sent.map(|url| url.origin().ascii_serialization());
    match sent {
        Some(sent) if sent == origin => Ok(()),
        Some(sent) => Err(format!("http.origins: {origin:?} is not an origin as browsers send it; write {sent:?}")),
        None => Err(format!(
            "http.origins: {origin:?} is not an origin; name each one with scheme and host, such as https://app.example"
        )),
    }
}

/// Checks that the URL names a host without a path or a query.
fn check_advertised(advertised: &str) -> Result<(), String> {
    let fits = |url: &Url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.path() == "/" && url.query().is_none()
    };
    if advertised.is_empty() || Url::parse(advertised).is_ok_and(|url| fits(&url)) {
        return Ok(());
    }
    Err(format!("http.advertised: {advertised:?} is not the URL of a host; write, for example, http://10.0.0.7:8321"))
}

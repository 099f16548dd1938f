//! The HTTP client that every request with a secret goes through.
//!
//! In: nothing. Out: a client that trusts the certificates that the system trusts, returns every status as a reply, and
//! follows no redirect, so that a key reaches no other host.

use ureq::{
    Agent,
    tls::{RootCerts, TlsConfig},
};

/// A client without connections.
#[must_use]
pub fn agent() -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("ripplemem/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build()
        .into()
}

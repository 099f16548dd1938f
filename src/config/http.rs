//! `[http]`: where a running service takes turns and answers questions over HTTP.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The HTTP interface of a running service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Loopback address and port that serve `/v1`, such as `127.0.0.1:8321`; port 0 takes a free one.
    /// With an embedded log, `ripplemem run` then stays until it is stopped, and the commands reach it
    /// there. On Kafka it needs the role `serve` and `serve.hold = "all"`. Empty: none.
    pub listen: String,
}

impl HttpSettings {
    /// Checks an address: a loopback one with a port.
    ///
    /// # Errors
    /// What is wrong with it and what to write.
    pub fn check(listen: &str) -> Result<(), String> {
        let loopback = listen.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
        if listen.is_empty() || loopback.is_some() {
            return Ok(());
        }
        Err(format!(
            "{listen:?} is not a loopback address with a port; write such as 127.0.0.1:8321: elsewhere everybody could \
             read and write every bank, since this build checks no tokens yet; reach it through a tunnel"
        ))
    }
}

//! `[admin]`: where a service on Kafka takes orders over HTTP, and from whom.

use std::{net::SocketAddr, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The administration of a service on Kafka.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminSettings {
    /// Loopback address and port that serve `/v1/admin`, such as `127.0.0.1:9474`; port 0 takes a free
    /// one and writes it to `admin.address` in `log.directory`. Empty: none.
    pub listen: String,
    /// Name of the environment variable that holds the token; empty: `token_file` holds it.
    pub token_env: String,
    /// File that holds the token, relative to the pipeline file; without it `admin.token` in
    /// `log.directory`. Nobody but its owner may read it. The service creates a missing one.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
}

impl AdminSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.listen.is_empty() {
            let address = self.listen.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
            if address.is_none() {
                return Err(format!(
                    "admin.listen: {:?} is not a loopback address with a port; write such as 127.0.0.1:9474, and reach it \
                     from elsewhere through a tunnel",
                    self.listen
                ));
            }
        }
        if !self.token_env.is_empty() && self.token_file.is_some() {
            return Err("admin.token_file: admin.token_env names the token already; remove one of the two".to_owned());
        }
        Ok(())
    }
}

//! `[metrics]`: where a monitoring system asks a running service how it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The HTTP address of a running service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address and port, such as `127.0.0.1:9464`, that serve `/health`, `/ready` and `/metrics` to any client, and
    /// take the requests of `[[source]]`; empty: none. Nothing there starts work or tells what is remembered.
    /// `http.listen` serves the same, `/metrics` to a token that may read every bank.
    pub listen: String,
}

impl MetricsSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() || self.listen.parse::<std::net::SocketAddr>().is_ok() {
            return Ok(());
        }
        Err(format!("metrics.listen: {:?} is not address:port; write, for example, 127.0.0.1:9464", self.listen))
    }
}

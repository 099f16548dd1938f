//! `[metrics]`: where a running service answers over HTTP how it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The HTTP address of a running service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address and port, such as `127.0.0.1:9464`, that serve `/health`, `/ready` and `/metrics`;
    /// empty: none. There is no authentication; nothing there starts work or tells what is remembered.
    pub listen: String,
}

impl MetricsSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() || self.listen.parse::<std::net::SocketAddr>().is_ok() {
            return Ok(());
        }
        Err(format!("metrics.listen: {:?} is not address:port; write such as 127.0.0.1:9464", self.listen))
    }
}

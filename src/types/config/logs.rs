//! `[logs]`: what log lines say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The log lines of a running service. Their level is the environment variable `RUST_LOG`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLineSettings {
    /// Whether log lines name banks. Otherwise a bank is a hash, such as `#3f1c09a2b6d4`, whose key lies in
    /// `logs.key` in `log.directory`; `GET /v1/bank` gives the hash of a bank.
    pub banks: bool,
}

//! `[access]`: who may do what over HTTP and MCP.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens, and the log of what was done with them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessSettings {
    /// The file of tokens, relative to the pipeline file; `ripplemem token add` writes it. Where it is set,
    /// every request over HTTP must show a token. Without it none is asked for, and the service listens
    /// on loopback addresses alone.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// A file for a line of JSON about each request, without its content, relative to the pipeline file.
    #[serde(default)]
    pub audit_file: Option<PathBuf>,
}

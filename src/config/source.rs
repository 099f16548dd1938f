//! `[source]`: where `ripplemem run` reads turns from, when they are not already in Kafka.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where turns come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// The format of the file: `jsonl`, `locomo`, `longmemeval` or `evermembench`.
    // `source/formats.rs` has the list and checks it.
    pub format: String,
    /// The file, relative to the pipeline file; `-` reads standard input (`jsonl` only).
    pub path: PathBuf,
    /// UTC offset, such as `+02:00`, of times that name none.
    #[serde(default = "utc")]
    pub zone: String,
    /// Reads only the conversations with these ids, from a format that holds several; empty reads
    /// all.
    #[serde(default)]
    pub only: Vec<String>,
}

fn utc() -> String {
    "+00:00".to_owned()
}

//! `[replay]`: topics written as Parquet files while they grow.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Topics written as Parquet while they grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    /// Directory of the tables, relative to the pipeline file.
    pub directory: PathBuf,
    /// Topics to write: any of `turns`, `memory` and `dead-letters`.
    pub topics: Vec<String>,
    /// Whether each bank gets a directory.
    pub by_bank: bool,
    /// Age at which a file is finished even if it is small. A smaller value makes rows visible
    /// sooner, in more and smaller files.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub finish_seconds: u64,
}

impl ReplaySettings {
    pub(super) fn check(&self) -> Result<(), String> {
        for topic in &self.topics {
            if !["turns", "memory", "dead-letters"].contains(&topic.as_str()) {
                return Err(format!("replay.topics: {topic:?} is not known; write turns, memory or dead-letters"));
            }
        }
        Ok(())
    }
}

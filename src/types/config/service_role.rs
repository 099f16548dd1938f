//! `roles`: what a running service does. The key decides which threads start, nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Role")]
pub enum ServiceRole {
    /// Reads turns and writes memory records.
    Extract,
    /// Keeps the event graph from memory records and answers questions.
    Serve,
    /// Writes topics as Parquet.
    Replay,
}

//! What a write may depend on, and what became of it.
//!
//! In: the condition that a caller sends with a turn or a deletion. Out: the verdict of the extraction that reads the
//! record: written, or refused because another version stands. Values without behaviour.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bank;

/// Most records of one group.
pub const MAX_GROUP: usize = 1_000;
/// Versions from here on are not exact in JavaScript. No version that is chosen here reaches it by counting.
pub const FIRST_INEXACT_VERSION: u64 = 1 << 53;

/// What a caller asks of the write of a turn or of a deletion, beyond its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteCondition {
    /// The version that must stand; 0 if the turn must be absent or deleted.
    pub expected_version: Option<u64>,
    /// Whether the version is chosen when the record is read.
    pub chooses_version: bool,
}

impl WriteCondition {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// What became of a request whose records carried a condition: all of them were written, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Verdict")]
pub struct WriteVerdict {
    /// The tenant.
    pub bank: Bank,
    /// The request.
    pub request: String,
    /// Why nothing was written; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedWrite>,
    /// What stands of each record, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<DecidedVersion>,
}

/// The record for which nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Refused")]
pub struct RefusedWrite {
    /// The turn, as it was sent; empty for a group that lacks records.
    pub turn: String,
    /// The version that stands; 0 if the turn is absent or deleted.
    pub version: u64,
    /// Whether the turn was deleted for good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
}

/// What stands of a turn after its record was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decided")]
pub struct DecidedVersion {
    /// The turn, as it was sent.
    pub turn: String,
    /// The version of the turn, or of its deletion.
    pub version: u64,
    /// Whether the record changed nothing because a newer version or a deletion stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

//! What one token may do.

use std::{collections::BTreeSet, fmt, num::NonZeroU32, str::FromStr};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::model::Bank;

/// A kind of request. None includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Right")]
pub enum AccessRight {
    /// Ask, and read what the memory holds.
    Read,
    /// Put turns, and edit them.
    Write,
    /// Delete turns.
    Forget,
    /// Write snapshots, extract again, read dead letters, and see the state of the service. It counts only with access
    /// to every bank.
    Admin,
}

impl AccessRight {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Forget, Self::Admin];

    /// Its name in the file and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Forget => "forget",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for AccessRight {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|right| right.name() == name);
        found.ok_or_else(|| format!("{name:?} is not a right; write read, write, forget or admin"))
    }
}

/// The banks that begin with some segments: `acme` covers `acme` and `acme/support`, but not `acme2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BankPrefix {
    /// Every bank, written `*`.
    Every,
    /// The bank of these segments, and those below it.
    Below(Bank),
}

impl BankPrefix {
    /// Whether a bank begins with these segments.
    #[must_use]
    pub fn covers(&self, bank: &Bank) -> bool {
        match self {
            Self::Every => true,
            Self::Below(prefix) => {
                let rest = bank.as_str().strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }
}

impl FromStr for BankPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Every);
        }
        Bank::parse(text).map(Self::Below).map_err(|e| format!("{e}; or write * for every bank"))
    }
}

impl TryFrom<String> for BankPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<BankPrefix> for String {
    fn from(prefix: BankPrefix) -> Self {
        prefix.to_string()
    }
}

impl fmt::Display for BankPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Below(bank) => bank.fmt(f),
        }
    }
}

/// What one token may do. Anything that it does not name is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenGrant {
    /// Its name in lists and in the audit log.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
    /// The banks it reaches.
    #[serde(default)]
    pub banks: Vec<BankPrefix>,
    /// What it may do there.
    #[serde(default)]
    pub rights: BTreeSet<AccessRight>,
    /// When it was made.
    pub created: Timestamp,
    /// The time from which it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// The maximum number of requests per minute; without it, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<NonZeroU32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_whole_segments_alone() {
        let covers = |prefix: &str, bank: &str| {
            prefix.parse::<BankPrefix>().expect("a prefix").covers(&Bank::parse(bank).expect("a bank"))
        };
        assert!(covers("acme", "acme") && covers("acme", "acme/a/b") && covers("acme/a", "acme/a"));
        assert!(!covers("acme", "acme2") && !covers("acme/a", "acme") && !covers("acme/a", "acme/ab"));
        assert!(covers("*", "anything/at.all"));
        for bad in ["", "acme/", "/", "a*", "acme/*", ".."] {
            assert!(bad.parse::<BankPrefix>().is_err(), "{bad:?}");
        }
    }
}

//! The rule of retention that an operation follows.
//!
//! In: a rule of a pipeline file. Out: its name in operations, in the ledger and in receipts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::config::RetentionSettings;

/// A rule of `[[retention]]`, as the pipeline file had it when the rule was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionRule {
    /// The bank that it names: this one and those below it, or `*`.
    pub bank: String,
    /// Its place in the file, from 1.
    pub rule: u64,
}

impl RetentionRule {
    /// The rule at a place in the file, from 0.
    pub(super) fn at(index: usize, rule: &RetentionSettings) -> Self {
        Self { bank: rule.bank.clone(), rule: index as u64 + 1 }
    }
}

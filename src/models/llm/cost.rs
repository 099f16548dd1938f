//! What requests to the model cost.
//!
//! In: the usage of each response. Out: totals by contract for this process, by bank and by
//! window for the whole directory, and for one caller through its meter. "Spent" counts a
//! response once, when it is paid for; "used" counts it each time it is used, also from the cache.

use std::sync::Mutex;

use serde::Serialize;

use super::contract::Contract;
use types::{
    model::{ModelUsage, WindowId},
    sync,
};

/// What was spent on one bank and contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContractExpense {
    /// The bank.
    pub bank: String,
    /// The contract.
    pub contract: Contract,
    /// Calls, tokens and time.
    #[serde(flatten)]
    pub usage: ModelUsage,
}

/// What was spent on one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowExpense {
    /// The bank.
    pub bank: String,
    /// The window.
    #[serde(flatten)]
    pub window: WindowId,
    /// Calls, tokens and time.
    #[serde(flatten)]
    pub usage: ModelUsage,
}

/// Adds up the usage of several requests, cached responses included.
#[derive(Debug, Default)]
pub struct UsageMeter(Mutex<ModelUsage>);

impl UsageMeter {
    /// The usage so far.
    #[must_use]
    pub fn total(&self) -> ModelUsage {
        *sync::lock(&self.0)
    }

    pub(super) fn add(&self, usage: ModelUsage) {
        *sync::lock(&self.0) += usage;
    }
}

/// Usage by contract.
#[derive(Default)]
pub(super) struct ContractUsage(Mutex<[ModelUsage; Contract::ALL.len()]>);

impl ContractUsage {
    pub(super) fn add(&self, contract: Contract, usage: ModelUsage) {
        sync::lock(&self.0)[contract as usize] += usage;
    }

    pub(super) fn by_contract(&self) -> Vec<(Contract, ModelUsage)> {
        Contract::ALL.into_iter().zip(*sync::lock(&self.0)).collect()
    }
}

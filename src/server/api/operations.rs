//! The operations that administrators start: extracting a bank again with the language model, and erasing the words of
//! deleted turns.
//!
//! In: the caller, who needs the right `admin`. Out: what was begun or done. The status is in `service_status.rs`,
//! snapshots are in `snapshots.rs`.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking_work::blocking,
    problem::{ApiProblem, ProblemCode},
    read_limiters::ReadLimiters,
};
use crate::{
    access::{AccessRight, Caller},
    service_state::ServiceState,
};
use erasure::ErasureReport;
use logs::Log;
use ripplemem::Memory;
use types::model::Bank;

/// A bank that the language model is to read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reextract")]
pub struct ReextractBankRequest {
    /// The bank.
    pub bank: Bank,
}

/// What the language model reads again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reextracted")]
pub struct ReextractBankResponse {
    /// The bank.
    pub bank: Bank,
    /// Its closed windows. One that is not read again keeps its units.
    pub windows: usize,
}

/// The operations of one service.
pub struct ServiceOperations {
    pub(crate) state: Arc<ServiceState>,
    pub(super) log: Arc<dyn Log>,
    /// `None` if this process has no memory, as without the role `serve`.
    pub(super) memory: Option<Arc<Memory>>,
    /// Limits the reads that are not questions.
    pub(super) reads: ReadLimiters,
}

impl ServiceOperations {
    /// The operations of a service on this log. A read waits for its turn until the `deadline` of questions.
    pub(crate) fn new(
        state: Arc<ServiceState>,
        log: Arc<dyn Log>,
        memory: Option<Arc<Memory>>,
        deadline: Duration,
    ) -> Self {
        Self { state, log, memory, reads: ReadLimiters::new(deadline) }
    }

    /// Erases the words of all turns that were deleted, from every stored byte; answered when it is done.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right, without a log in a directory, or if a place cannot be written.
    pub async fn erase(&self, who: &Caller) -> Result<ErasureReport, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let memory = self.memory()?;
        if self.log.erasable().is_none() {
            return Err(ApiProblem::invalid(
                "on Kafka, what is deleted leaves the topics as their retention and compaction say; see \
                 docs/forgetting.md",
            ));
        }
        blocking(move || Ok(memory.erase()?)).await
    }

    /// Has the language model read the closed windows of a bank again, in the background.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right, if no language model extracts here, or for an unknown bank.
    pub async fn reextract(
        &self,
        who: &Caller,
        ReextractBankRequest { bank }: ReextractBankRequest,
    ) -> Result<ReextractBankResponse, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let none = || {
            ApiProblem::new(
                ProblemCode::NoModel,
                "no language model extracts here: set extract.extractor = \"llm\", and [llm]",
            )
        };
        let orders = self.state.orders.get().ok_or_else(none)?;
        let windows = orders.reextract(bank.clone()).await?;
        Ok(ReextractBankResponse { bank, windows })
    }

    pub(super) fn memory(&self) -> Result<Arc<Memory>, ApiProblem> {
        let none =
            || ApiProblem::invalid("this service has no memory; add \"serve\" to its roles, or ask one that has it");
        self.memory.clone().ok_or_else(none)
    }
}

//! The operations of a service, as its administrators order them: here, reading a bank again with the language model,
//! and erasing the words of deleted turns.
//!
//! In: the caller, who needs the right `admin`. Out: what was begun or done. The status is in `status.rs`, snapshots
//! are in `snapshots.rs`.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking::blocking,
    problem::{Code, Problem},
    reads::ReadPlaces,
};
use crate::{
    access::{Caller, Right},
    state::State,
};
use nouns::model::Bank;
use ripplemem::{
    log::Log,
    pipeline::{Erased, Memory},
};

/// A bank that the language model is to read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reextract {
    /// The bank.
    pub bank: Bank,
}

/// What the language model reads again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reextracted {
    /// The bank.
    pub bank: Bank,
    /// Its closed windows. One that is not read again keeps its units.
    pub windows: usize,
}

/// The operations of one service.
pub struct Operations {
    pub(crate) state: Arc<State>,
    pub(super) log: Arc<dyn Log>,
    /// `None` if this process has no memory, as without the role `serve`.
    pub(super) memory: Option<Arc<Memory>>,
    /// The places of reads that are not questions.
    pub(super) reads: ReadPlaces,
}

impl Operations {
    /// Of a service on this log. A read waits for its turn until the `deadline` of questions.
    pub(crate) fn new(state: Arc<State>, log: Arc<dyn Log>, memory: Option<Arc<Memory>>, deadline: Duration) -> Self {
        Self { state, log, memory, reads: ReadPlaces::new(deadline) }
    }

    /// Erases the words of all turns that were deleted, from every stored byte; answered when it is done.
    ///
    /// # Errors
    /// [`Problem`] without the right, without a log in a directory, or where a place cannot be written.
    pub async fn erase(&self, who: &Caller) -> Result<Erased, Problem> {
        who.may_everywhere(Right::Admin)?;
        let memory = self.memory()?;
        if self.log.erasable().is_none() {
            return Err(Problem::invalid(
                "on Kafka, what is deleted leaves the topics as their retention and compaction say; see \
                 docs/forgetting.md",
            ));
        }
        blocking(move || Ok(memory.erase()?)).await
    }

    /// Has the language model read the closed windows of a bank again, in the background.
    ///
    /// # Errors
    /// [`Problem`] without the right, if no language model extracts here, or for an unknown bank.
    pub async fn reextract(&self, who: &Caller, Reextract { bank }: Reextract) -> Result<Reextracted, Problem> {
        who.may_everywhere(Right::Admin)?;
        let none = || {
            Problem::new(Code::NoModel, "no language model extracts here: set extract.extractor = \"llm\", and [llm]")
        };
        let orders = self.state.orders.get().ok_or_else(none)?;
        let windows = orders.reextract(bank.clone()).await?;
        Ok(Reextracted { bank, windows })
    }

    pub(super) fn memory(&self) -> Result<Arc<Memory>, Problem> {
        let none =
            || Problem::invalid("this service has no memory; add \"serve\" to its roles, or ask one that has it");
        self.memory.clone().ok_or_else(none)
    }
}

//! The banks that a caller reaches, with counts if it asks for them.
//!
//! In: the caller, and which page of the list. Out: names in order, and for each bank its counts and whether it
//! answers. No bank that the caller may not read is named or counted.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    bank_status::turns_behind,
    blocking_work::blocking,
    memory_api::MemoryApi,
    problem::ApiProblem,
    read_limiters::{ReadScope, queue_key},
};
use crate::access::{AccessRight, Caller};
use logs::WritePosition;
use memory::index::DataflowAnswer;
use pipeline::{Cancellation, PipelineError};
use replica::ShardLocation;
use ripplemem::Memory;
use types::model::Bank;

/// Most banks of a page.
const MAX_LISTED: usize = 1_000;
/// Most banks of a page that are counted: that walks their units and edges.
const MAX_COUNTED: usize = 100;

/// Which banks are listed.
#[derive(Debug, Clone, Default)]
pub struct BankListRequest {
    /// Whether they are counted.
    pub counts: bool,
    /// Those whose names begin with it.
    pub prefix: Option<String>,
    /// The first of them: the `next` of an earlier page.
    pub from: Option<String>,
    /// Most of them; 100 where they are counted, else all.
    pub limit: Option<usize>,
}

/// The banks that hold something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Banks")]
pub struct BankList {
    /// Their names, in order.
    pub banks: Vec<Bank>,
    /// What each of them holds, in the same order, where the request asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Vec<BankCounts>>,
    /// Where the list goes on: the `from` of another request; absent at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Bank>,
}

/// What a bank holds, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankCounts {
    /// The bank.
    pub bank: Bank,
    /// Whether it answers here.
    pub state: BankAvailability,
    /// The number of units; absent, as the other counts, where the bank does not answer here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// The number of semantic edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_edges: Option<u64>,
    /// The number of structural edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structural_edges: Option<u64>,
    /// Durable turns of the bank's partition that are not reflected yet; those of other banks count, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// When the memory log last took a record of the bank, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_append_ms: Option<i64>,
}

/// Whether a bank answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BankState")]
pub enum BankAvailability {
    /// It answers here.
    Here,
    /// It answers here, and wakes first. Its counts are those with which it fell asleep; they are absent after a start,
    /// until it wakes.
    Asleep,
    /// Its shard is being loaded.
    Loading,
    /// Another instance holds it since a moment ago.
    Elsewhere,
    /// A record of it cannot be read.
    Quarantined,
}

impl MemoryApi {
    /// The banks that hold something, as far as the caller reaches.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right to read.
    pub fn banks(&self, who: &Caller) -> Result<BankList, ApiProblem> {
        who.may(AccessRight::Read)?;
        let banks = self.memory.banks_where(&|bank| who.reaches(bank));
        Ok(BankList { banks, counts: None, next: None })
    }

    /// A page of the banks that hold something, as far as the caller reaches; with counts if it asks for them.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right to read, or for a wrong limit.
    pub async fn list_banks(&self, who: &Arc<Caller>, list: BankListRequest) -> Result<BankList, ApiProblem> {
        who.may(AccessRight::Read)?;
        let BankListRequest { counts, prefix, from, limit } = list;
        let most = if counts { MAX_COUNTED } else { MAX_LISTED };
        if let Some(limit) = limit.filter(|limit| *limit == 0 || *limit > most) {
            return Err(ApiProblem::invalid(format!("limit: {limit} is out of range; allowed is 1 to {most}")));
        }
        let limit = limit.unwrap_or(if counts { MAX_COUNTED } else { usize::MAX });
        let (memory, caller) = (Arc::clone(&self.memory), Arc::clone(who));
        let listed = blocking(move || {
            let passes = |bank: &Bank| {
                prefix.as_deref().is_none_or(|prefix| bank.as_str().starts_with(prefix))
                    && from.as_deref().is_none_or(|from| bank.as_str() >= from)
                    && caller.reaches(bank)
            };
            let mut banks = memory.banks_where(&passes);
            let next = banks.get(limit).cloned();
            banks.truncate(limit);
            Ok((banks, next))
        });
        let (banks, next) = listed.await?;
        let Some(first) = banks.first().filter(|_| counts) else {
            return Ok(BankList { banks, counts: counts.then(Vec::new), next });
        };
        let (lane, memory, of) = (queue_key(who, first), Arc::clone(&self.memory), banks.clone());
        let count = move |cancellation: &Cancellation| {
            let end = memory.end()?;
            let each = of.iter().map(|bank| {
                cancellation.check().map_err(PipelineError::from)?;
                Ok(bank_counts(&memory, bank, &end))
            });
            each.collect::<Result<Vec<BankCounts>, ApiProblem>>()
        };
        let counted = self.operations().reads.read(&lane, ReadScope::Little, count).await?;
        // Counting may take seconds, and the token may be revoked since.
        who.may(AccessRight::Read)?;
        Ok(BankList { banks, counts: Some(counted), next })
    }
}

fn bank_counts(memory: &Memory, bank: &Bank, end: &WritePosition) -> BankCounts {
    let replica = memory.replica();
    let none = |state| BankCounts {
        bank: bank.clone(),
        state,
        units: None,
        semantic_edges: None,
        structural_edges: None,
        behind: None,
        last_append_ms: replica.last_append_ms(bank),
    };
    // Read before the count, which therefore reflects at least this.
    let complete_through = replica.read_to(bank);
    // A count would wait until its shard is loaded.
    if let ShardLocation::Loading { .. } = replica.place_of(bank) {
        return none(BankAvailability::Loading);
    }
    let state = if replica.is_asleep(bank) { BankAvailability::Asleep } else { BankAvailability::Here };
    let behind = || Some(turns_behind(memory, bank, &complete_through, end));
    if state == BankAvailability::Asleep && !replica.has_counts(bank) {
        return BankCounts { behind: behind(), ..none(state) };
    }
    match replica.counts(bank) {
        Ok(DataflowAnswer { value, .. }) => BankCounts {
            units: Some(value.units),
            semantic_edges: Some(value.semantic_edges),
            structural_edges: Some(value.structural_edges),
            behind: behind(),
            ..none(state)
        },
        Err(PipelineError::Quarantined { .. }) => none(BankAvailability::Quarantined),
        Err(PipelineError::OtherInstance { .. }) => none(BankAvailability::Elsewhere),
        // Its last turn was deleted since it was listed.
        Err(PipelineError::UnknownBank { .. }) => none(BankAvailability::Here),
        // Its shard has panicked, and is loaded again.
        Err(_) => none(BankAvailability::Loading),
    }
}

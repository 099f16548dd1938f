//! How much a bank holds, and up to which offsets.
//!
//! In: a bank of a memory. Out: counts, with the offsets up to which turns are reflected. Nothing here shows what was
//! remembered, and nothing is hashed: `digest` does that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{api_forms::is_none, problem::ApiProblem};
use logs::WritePosition;
use memory::index::{DataflowAnswer, GraphCensus};
use ripplemem::Memory;
use types::{
    logged_bank::LoggedBank,
    model::{Bank, LogPosition},
};

/// A bank, counted, and how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankStatus {
    /// The bank.
    pub bank: Bank,
    /// The number of units.
    pub units: u64,
    /// The number of semantic edges.
    pub semantic_edges: u64,
    /// The number of structural edges.
    pub structural_edges: u64,
    /// The offsets that the counts reflect.
    pub reflects: Vec<LogPosition>,
    /// Every turn of the bank before these offsets is reflected, and answers from now on reflect at least them.
    pub complete_through: Vec<LogPosition>,
    /// Durable turns of the bank's partition that are not reflected yet; those of other banks count, too.
    pub behind: u64,
    /// Turns that were sent to the bank since this process began to extract, and were not kept because their ids had
    /// been forgotten; absent for none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_kept: u64,
    /// How log lines name the bank.
    pub logged_as: String,
    /// What its owner should know: that most of it is in a language that the embedding model does not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// The status of a bank in a memory, whose log reaches to `end`.
pub(super) fn bank_status(memory: &Memory, bank: Bank, end: &WritePosition) -> Result<BankStatus, ApiProblem> {
    // Read before the counts, so that the counts reflect at least these offsets.
    let complete_through = memory.replica().read_to(&bank);
    let logged_as = LoggedBank(&bank).to_string();
    let DataflowAnswer { value: counted, reflects, .. } = memory.replica().counts(&bank)?;
    let notice = memory.replica().unread_notice(&bank, &counted);
    let not_kept = memory.log().deletions().not_kept(&bank);
    let behind = turns_behind(memory, &bank, &complete_through, end);
    let GraphCensus { units, semantic_edges, structural_edges, .. } = counted;
    Ok(BankStatus {
        bank,
        units,
        semantic_edges,
        structural_edges,
        reflects,
        complete_through,
        behind,
        not_kept,
        logged_as,
        notice,
    })
}

/// How many turns before the end of the log are not reflected, of the bank's partition.
pub(super) fn turns_behind(memory: &Memory, bank: &Bank, complete_through: &[LogPosition], end: &WritePosition) -> u64 {
    let Some((partition, end)) = end.of(bank) else { return 0 };
    let reflected = complete_through.iter().find(|at| at.topic == "turns").map_or(0, |at| at.next_offset);
    match end.saturating_sub(reflected) {
        0 => 0,
        // On Kafka, some of these offsets hold no turn.
        offsets => memory.log().lag(partition, reflected).unwrap_or(offsets),
    }
}

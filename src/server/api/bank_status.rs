//! How much a bank holds, and up to which offsets.
//!
//! In: a bank of a memory. Out: counts, with the offsets up to which turns are reflected. Nothing here shows what was
//! remembered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{forms::Digest, problem::Problem};
use nouns::{
    logged_bank::LoggedBank,
    model::{Bank, Position},
};
use ripplemem::{log::partition_of, pipeline::Memory};

/// A bank, counted, and how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankStatus {
    /// What it holds.
    #[serde(flatten)]
    pub counts: Digest,
    /// Every turn of the bank before these offsets is reflected, and answers from now on reflect at least them.
    pub complete_through: Vec<Position>,
    /// Durable turns of the bank's partition that are not reflected yet; those of other banks count, too.
    pub behind: u64,
    /// How log lines name the bank.
    pub logged_as: String,
}

/// The status of a bank in a memory.
pub(super) fn bank_status(memory: &Memory, bank: Bank) -> Result<BankStatus, Problem> {
    // Read before the counts, so that the counts reflect at least these offsets.
    let complete_through = memory.replica().read_to(&bank);
    let logged_as = LoggedBank(&bank).to_string();
    let partition = partition_of(&bank, memory.partitions());
    let counts = Digest::of(Some(bank.clone()), memory.replica().digest(Some(&bank))?);
    let end = memory.end()?.places().find_map(|(of, next)| (of == partition).then_some(next));
    let reflected = complete_through.iter().find(|at| at.topic == "turns").map_or(0, |at| at.next_offset);
    let behind = end.unwrap_or_default().saturating_sub(reflected);
    Ok(BankStatus { counts, complete_through, behind, logged_as })
}

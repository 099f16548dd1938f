//! `ripplemem stats`.
//!
//! In: a memory, or one bank of it. Out: the bytes that its units take in memory, by part.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use heart::memory::Footprint;
use nouns::model::Bank;
use server::api;
use terminal::print;

use super::{
    memory_arguments::MemoryArguments,
    reached::{Memory, open_or_reach},
};

/// Show how many bytes units take in memory, by part.
///
/// These are the bytes that the indexes have allocated. The process takes more: for the program, the embedding model,
/// the turns that windows keep so that an edit can be extracted again, and the allocator's reserves.
#[derive(Args)]
pub(crate) struct Stats {
    /// Only this bank. Without it, all banks.
    #[arg(long)]
    bank: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Stats {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        let stats = match open_or_reach(&self.memory.pipeline()?)? {
            Memory::Here(service) => api::Stats::of(bank.clone(), service.replica().footprint(bank.as_ref())?),
            Memory::There(reached) => reached.get("/v1/stats", &[("bank", bank.as_ref().map(Bank::as_str))])?,
        };
        match self.json {
            true => print(&format!("{}\n", serde_json::to_string(&stats)?))?,
            false => print(&table(&stats.parts))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A line for each part: its bytes in total and per unit.
fn table(footprint: &Footprint) -> String {
    let units = footprint.units;
    let mut out = format!("{:<16}{units:>14}\n{:<16}{:>14}{:>14}\n", "units", "", "bytes", "a unit");
    for (name, bytes) in footprint.parts().into_iter().chain([("all", footprint.bytes())]) {
        out.push_str(&format!("{name:<16}{bytes:>14}{:>14}\n", bytes.checked_div(units).unwrap_or_default()));
    }
    out
}

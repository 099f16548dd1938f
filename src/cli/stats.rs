//! `ripplemem stats`.
//!
//! In: a memory, or one bank of it. Out: the bytes that its units take in memory, by part, and how many turns have ids
//! that contain a phone number or a mail address.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use memory::index::MemoryFootprint;
use pipeline::Cancellation;
use server::api::{self, PlainIdCount};
use terminal::print;
use types::model::Bank;

use super::{
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
};

/// Show how many bytes units take in memory, by part.
///
/// These are the bytes that the indexes have allocated. The process takes more: for the program, the embedding model,
/// the turns that windows keep so that an edit can be extracted again, and the allocator's reserves.
///
/// Also say which banks have turns whose ids hold a phone number or a mail address, as earlier builds stored them.
#[derive(Args)]
pub(crate) struct StatsArgs {
    /// Only this bank. Without it, all banks.
    #[arg(long)]
    bank: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl StatsArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        let stats = match open_or_reach(&self.memory.pipeline()?)? {
            MemoryAccess::Here(service) => {
                let measured = service.replica().footprint(bank.as_ref())?;
                let banks = bank.clone().map_or_else(|| service.replica().banks(&|_| true), |bank| [bank].into());
                let plain_ids = PlainIdCount::of(service.log(), banks, &Cancellation::default())?;
                api::MemoryStats::of(bank, measured, Some(plain_ids))
            }
            MemoryAccess::There(reached) => {
                reached.get("/v1/stats", &[("bank", bank.as_ref().map(Bank::as_str)), ("plain_ids", Some("true"))])?
            }
        };
        match self.json {
            true => print(&format!("{}\n", serde_json::to_string(&stats)?))?,
            false => print(&(table(&stats.parts) + &plain_ids_text(stats.plain_ids.as_deref().unwrap_or_default())))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A line for each part: its bytes in total and per unit.
fn table(footprint: &MemoryFootprint) -> String {
    let units = footprint.units;
    let mut out = format!("{:<16}{units:>14}\n{:<16}{:>14}{:>14}\n", "units", "", "bytes", "a unit");
    for (name, bytes) in footprint.parts().into_iter().chain([("all", footprint.bytes())]) {
        out.push_str(&format!("{name:<16}{bytes:>14}{:>14}\n", bytes.checked_div(units).unwrap_or_default()));
    }
    out
}

/// A line for each bank, and what to do; empty without banks.
fn plain_ids_text(found: &[PlainIdCount]) -> String {
    let mut out = String::new();
    for PlainIdCount { bank, turns } in found {
        out.push_str(&format!("bank {bank}: the ids of {turns} turns hold a phone number or a mail address\n"));
    }
    if !found.is_empty() {
        out.push_str(
            "An export that is read again into the same bank keeps these ids. To replace them, read it into another \
             bank with `ripplemem ingest --bank`, then delete the old one's turns with `ripplemem forget --bank BANK \
             --all`.\n",
        );
    }
    out
}

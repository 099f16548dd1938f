//! `ripplemem digest`.
//!
//! In: a memory, or one bank of it. Out: counts of units and edges, and a hash that depends only
//! on the set of them, not on the order of arrival.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::{model::Bank, pipeline::Service};

use super::{memory_arguments::MemoryArguments, open_memory::open_memory, output::print};

/// Count units and edges, with a hash that depends only on the set.
#[derive(Args)]
pub(crate) struct Digest {
    /// One bank. Without it, all banks.
    #[arg(long)]
    bank: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Digest {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        let service = open_memory(&self.memory.pipeline()?)?;
        print(&digest_text(&service, bank.as_ref(), self.json)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The digest of a memory, as a line or as JSON.
pub(crate) fn digest_text(service: &Service, bank: Option<&Bank>, json: bool) -> Result<String> {
    let census = service.digest(bank)?.value;
    let hash = format!("{:032x}", census.hash);
    Ok(if json {
        let value = serde_json::json!({
            "units": census.units, "semantic_edges": census.semantic_edges,
            "structural_edges": census.structural_edges, "hash": hash,
        });
        format!("{value}\n")
    } else {
        format!(
            "memory: {} units, {} semantic edges, {} structural edges, hash {hash}\n",
            census.units, census.semantic_edges, census.structural_edges
        )
    })
}

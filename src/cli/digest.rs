//! `ripplemem digest`.
//!
//! In: a memory, or one bank of it. Out: counts of units and edges, and a hash that depends only on their set, not on
//! the order of arrival.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::PipelineDriver;
use server::api::MemoryDigest as Counts;
use terminal::print;
use types::model::Bank;

use super::{
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
};

/// Count units and edges, with a hash that depends only on their set.
#[derive(Args)]
pub(crate) struct DigestArgs {
    /// Only this bank. Without it, all banks.
    #[arg(long)]
    bank: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl DigestArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        let digest = match open_or_reach(&self.memory.pipeline()?)? {
            MemoryAccess::Here(service) => digest_of(&service, bank.as_ref())?,
            MemoryAccess::There(reached) => reached.get("/v1/digest", &[("bank", bank.as_ref().map(Bank::as_str))])?,
        };
        print(&digest_text(&digest, self.json))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Counts what the memory, or one bank of it, holds, and computes its digest.
pub(crate) fn digest_of(service: &PipelineDriver, bank: Option<&Bank>) -> Result<Counts> {
    Ok(Counts::of(bank.cloned(), service.replica().digest(bank)?))
}

/// The digest of a memory, as a line or as JSON.
pub(crate) fn digest_text(counts: &Counts, json: bool) -> String {
    let Counts { units, semantic_edges, structural_edges, hash, .. } = counts;
    if json {
        let value = serde_json::json!({
            "units": units, "semantic_edges": semantic_edges, "structural_edges": structural_edges, "hash": hash,
        });
        format!("{value}\n")
    } else {
        format!(
            "memory: {units} units, {semantic_edges} semantic edges, {structural_edges} structural edges, hash {hash}\n"
        )
    }
}

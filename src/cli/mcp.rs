//! `ripplemem mcp`.
//!
//! In: the messages of a client of the Model Context Protocol on stdin. Out: the answers on stdout, and
//! nothing else there.

use std::{process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::Args;
use server::{McpOptions, serve_stdio};
use terminal::name_banks_of;
use tokio::sync::Notify;
use types::model::Bank;

use super::memory_args::MemoryArgs;

/// Give an agent the memory as tools (Model Context Protocol on stdin and stdout).
///
/// A client starts this command itself; docs/mcp.md has the lines for those that people use. It ends when the client
/// closes stdin.
#[derive(Args)]
pub(crate) struct McpArgs {
    /// The bank for calls that do not name one, such as a user or a project.
    #[arg(long)]
    bank: Option<String>,
    /// Offer no tools that change the memory.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl McpArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose().context("--bank")?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        ctrlc::set_handler(move || stopped.notify_one()).context("signals cannot be handled")?;
        let pipeline = self.memory.pipeline()?;
        name_banks_of(&pipeline);
        let options = McpOptions { pipeline, bank, read_only: self.read_only };
        serve_stdio(options, &stop)?;
        Ok(ExitCode::SUCCESS)
    }
}

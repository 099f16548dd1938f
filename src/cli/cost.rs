//! `ripplemem cost`.
//!
//! In: the cache of the language model. Out: what was spent, by bank and purpose, or by window.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use models::llm::{Contract, LlmClient};
use types::model::Bank;

use super::{memory_args::MemoryArgs, usage_table::print_usage};

/// Show what was spent on the language model, by bank and purpose.
#[derive(Args)]
pub(crate) struct CostArgs {
    /// Only this bank.
    #[arg(long)]
    bank: Option<String>,
    /// By window, for the responses in the cache.
    #[arg(long)]
    windows: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl CostArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        let pipeline = self.memory.pipeline()?;
        let llm = LlmClient::open(&pipeline.llm, Some(pipeline.llm_directory()))?;
        let chosen = |of: &str| bank.as_ref().is_none_or(|bank| bank.as_str() == of);
        if self.windows {
            let mut expenses = llm.window_expenses()?;
            expenses.retain(|e| chosen(&e.bank));
            let windows: Vec<String> =
                expenses.iter().map(|e| format!("{} {} {}", e.bank, e.window.session.0, e.window.start)).collect();
            let lines: Vec<_> = expenses
                .iter()
                .zip(&windows)
                .map(|(e, window)| (e.usage, Contract::Extract.name(), window.as_str()))
                .collect();
            print_usage(&pipeline, &expenses, &lines, self.json)?;
        } else {
            let mut expenses = llm.expenses()?;
            expenses.retain(|e| chosen(&e.bank));
            let lines: Vec<_> = expenses.iter().map(|e| (e.usage, e.contract.name(), e.bank.as_str())).collect();
            print_usage(&pipeline, &expenses, &lines, self.json)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

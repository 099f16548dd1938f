//! `ripplemem restate`.
//!
//! In: a memory. Out: the same memory, in which each record says what its turns state that lasts.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::RestateReport;
use terminal::{print, with_progress};

use super::memory_args::MemoryArgs;

/// Find the instructions, preferences, facts and plans in turns that were stored before profiles were kept.
/// Nothing is embedded and no model is asked. It needs the log for itself; on Kafka, stop the service that extracts.
#[derive(Args)]
pub(crate) struct RestateArgs {
    #[command(flatten)]
    memory: MemoryArgs,
}

impl RestateArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let RestateReport { records, written, statements } =
            with_progress(|progress| ripplemem::restate(&pipeline, progress))?;
        print(&format!("{records} records read, {written} written with {statements} statements\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

//! `ripplemem estimate`.
//!
//! In: a source. Out: the calls and tokens that a language model would need to read it, by bank. Sends nothing.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use models::llm::Contract;
use terminal::{pipeline_or_defaults, say, with_progress};

use super::{source_args::SourceArgs, usage_table::print_usage};

/// Count what the language model would be sent for a source, without sending anything.
#[derive(Args)]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// A pipeline file, for its windows and prices. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl EstimateArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let settings = self.source.settings()?;
        let pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        let mut source = sources::open(&settings)?;
        let estimates = with_progress(|progress| ripplemem::estimate(&pipeline, &mut *source, progress))?;
        let lines: Vec<_> = estimates.iter().map(|e| (e.usage, Contract::Extract.name(), e.bank.as_str())).collect();
        print_usage(&pipeline, &estimates, &lines, self.json)?;
        if !self.json {
            say("prompts are counted; responses are assumed to be as long as the turns, without repairs");
        }
        Ok(ExitCode::SUCCESS)
    }
}

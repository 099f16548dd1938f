//! `ripplemem lag`.
//!
//! In: the log. Out: for each partition, how far extraction is behind the end of the turns topic.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::{print, say};

use super::memory_args::MemoryArgs;

/// Show how far the turns are extracted, by partition.
#[derive(Args)]
pub(crate) struct LagArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl LagArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let lags = server::lag(&self.memory.pipeline()?)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string(&lags)?))?;
        } else {
            print("partition     position          end          lag\n")?;
            let shown = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
            for server::ExtractionLag { partition, position, end, lag, problem } in lags {
                print(&format!("{partition:>9} {:>12} {end:>12} {:>12}\n", shown(position), shown(lag)))?;
                problem.iter().for_each(|problem| say(problem));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

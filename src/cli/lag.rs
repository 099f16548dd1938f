//! `ripplemem lag`.
//!
//! In: the log. Out: for each partition, how far extraction is behind the end of the turns topic.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{memory_arguments::MemoryArguments, output::print};

/// Show how far the turns are extracted, by partition.
#[derive(Args)]
pub(crate) struct Lag {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Lag {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let lags = server::lag(&self.memory.pipeline()?)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string(&lags)?))?;
        } else {
            print("partition     position          end          lag\n")?;
            for server::Lag { partition, position, end, lag } in lags {
                print(&format!("{partition:>9} {position:>12} {end:>12} {lag:>12}\n"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

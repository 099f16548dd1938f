//! `ripplemem-eval hooks`.
//!
//! In: conversations between a user and an assistant, with questions. Out: what hooks of coding agents would give to
//! them, as tables or as JSON.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use eval::{AgentSet, HooksRequest};
use terminal::{print, with_progress};

use super::pipeline_args::PipelineArgs;

/// Measure what hooks of coding agents give to questions and to a day's prompts, by how near a quote must be.
#[derive(Args)]
pub(crate) struct HooksArgs {
    /// The directory of BEAM's chats, or with --realmem that of RealMem's dialogues.
    directory: PathBuf,
    /// The directory is RealMem's.
    #[arg(long)]
    realmem: bool,
    /// How near a unit must be: shares of the best one.
    #[arg(long, value_delimiter = ',', default_value = "0,0.2,0.4,0.6,0.8,0.9")]
    shares: Vec<f64>,
    #[command(flatten)]
    settings: PipelineArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl HooksArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let set = if self.realmem { AgentSet::RealMem } else { AgentSet::Beam };
        let pipeline = self.settings.read()?;
        let request = HooksRequest { set, path: self.directory, pipeline, least_shares: self.shares };
        let figures = with_progress(|progress| eval::evaluate_hooks(&request, progress))?;
        match self.json {
            true => print(&format!("{}\n", serde_json::to_string_pretty(&figures)?))?,
            false => print(&eval::hooks_page(&figures))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

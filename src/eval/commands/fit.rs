//! `ripplemem-eval fit`.
//!
//! In: development sets. Out: a row for each way to choose weights and the cutoff, measured on other dialogues than
//! those on which they were chosen, as a table or as JSON.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, ensure};
use clap::Args;
use eval::{AgentSet, BenchmarkFormat};
use terminal::{pipeline_or_defaults, print, with_progress};

/// Choose weights and the cutoff, and measure the choice on other dialogues than those on which it was made.
#[derive(Args)]
pub(crate) struct FitArgs {
    /// LoCoMo's file.
    #[arg(long)]
    locomo: Option<PathBuf>,
    /// REALTALK's directory.
    #[arg(long)]
    realtalk: Option<PathBuf>,
    /// The directory of BEAM's chats.
    #[arg(long)]
    beam: Option<PathBuf>,
    /// The directory of RealMem's dialogues.
    #[arg(long)]
    realmem: Option<PathBuf>,
    /// A pipeline file. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// How many sets of weights a search draws.
    #[arg(long, default_value_t = 400)]
    draws: usize,
    /// The seed of the search.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The maximum number of tokens of a context, on average over the questions of each set.
    #[arg(long, default_value_t = 1472.0)]
    tokens: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl FitArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let sets = [(BenchmarkFormat::Locomo, self.locomo), (BenchmarkFormat::RealTalk, self.realtalk)];
        let sets: Vec<_> = sets.into_iter().filter_map(|(format, path)| Some((format, path?))).collect();
        let agent_sets = [(AgentSet::Beam, self.beam), (AgentSet::RealMem, self.realmem)];
        let agent_sets: Vec<_> = agent_sets.into_iter().filter_map(|(set, path)| Some((set, path?))).collect();
        ensure!(
            !sets.is_empty() || !agent_sets.is_empty(),
            "name a development set: --locomo FILE, or --realtalk, --beam or --realmem with a directory"
        );
        let pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        let (draws, seed, tokens) = (self.draws, self.seed, self.tokens);
        let request = eval::FitRequest { sets, agent_sets, pipeline, draws, seed, tokens };
        let fit = with_progress(|progress| eval::fit(&request, progress))?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&fit)?))?;
        } else {
            print(&eval::fit_table(&fit))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

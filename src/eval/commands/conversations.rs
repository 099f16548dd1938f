//! `ripplemem-eval conversations`.
//!
//! In: annotated IRC logs. Out: how many links and whole conversations are found, or fitted weights.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use terminal::{pipeline_or_defaults, print};

/// Measure how well interleaved conversations are separated, on the annotated logs of irc-disentanglement.
#[derive(Args)]
pub(crate) struct ConversationsArgs {
    /// A directory of NAME.annotation.txt, with NAME.raw.txt or NAME.ascii.txt beside each.
    directory: PathBuf,
    /// Fit weights to the directory and print them, for src/memory/window/antecedent.rs.
    #[arg(long)]
    fit: bool,
    /// A pipeline file, for its window.gap_minutes. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, conflicts_with = "fit")]
    json: bool,
}

impl ConversationsArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let gap_minutes = pipeline_or_defaults(self.pipeline.as_deref())?.window.gap_minutes;
        if self.fit {
            let weights = eval::fit_conversations(&self.directory, gap_minutes)?;
            let weights: Vec<String> = weights.iter().map(|weight| format!("{weight:.2}")).collect();
            print(&format!("{}\n", weights.join(", ")))?;
            return Ok(ExitCode::SUCCESS);
        }
        let score = eval::score_conversations(&self.directory, gap_minutes)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&score)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let row = |name: &str, found: eval::LinkCounts| {
            let [precision, recall, f1] = [found.precision(), found.recall(), found.f1()].map(|share| 100.0 * share);
            let eval::LinkCounts { marked, chosen, right } = found;
            format!("{name:<14}{precision:>9.1}{recall:>8.1}{f1:>6.1}{marked:>8}{chosen:>8}{right:>7}\n")
        };
        print(&format!(
            "{} logs, {} marked lines\n{:14}precision  recall    F1  marked  chosen  right\n{}{}",
            score.logs,
            score.lines,
            "",
            row("links", score.links),
            row("conversations", score.conversations)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

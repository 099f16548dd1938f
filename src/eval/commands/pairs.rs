//! `ripplemem-eval pairs`.
//!
//! In: a file of pairs. Out: how many questions were called supported, of those that the turns answer and of the
//! others, and each wrong verdict, as a table or as JSON.

use std::{fmt::Write, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use terminal::{print, with_progress};

use super::pipeline_args::PipelineArgs;

/// Judge pairs of questions: one that a few turns answer, and one that they do not.
#[derive(Args)]
pub(crate) struct PairsArgs {
    /// The file, such as tests/data/agents/pairs.jsonl.
    file: PathBuf,
    #[command(flatten)]
    settings: PipelineArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl PairsArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.settings.read()?;
        let verdicts = with_progress(|progress| eval::judge_pairs(&self.file, &pipeline, progress))?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&verdicts)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut page =
            "| language | told: called supported | not told: called unsupported |\n|---|---|---|\n".to_owned();
        let mut languages: Vec<&str> = verdicts.iter().map(|verdict| verdict.language.as_str()).collect();
        languages.dedup();
        for language in languages {
            let of = |told: bool| {
                let own = verdicts.iter().filter(|v| v.language == language && v.told == told);
                format!("{} of {}", own.clone().filter(|v| v.supported == told).count(), own.count())
            };
            writeln!(page, "| {language} | {} | {} |", of(true), of(false))?;
        }
        for wrong in verdicts.iter().filter(|verdict| verdict.supported != verdict.told) {
            let whether = if wrong.told { "told" } else { "not told" };
            writeln!(page, "{whether}, {:.2}: {}", wrong.sufficiency, wrong.question)?;
        }
        print(&page)?;
        Ok(ExitCode::SUCCESS)
    }
}

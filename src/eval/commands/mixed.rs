//! `ripplemem-eval mixed`.
//!
//! In: dialogues of people and chats with an assistant. Out: how much of the evidence one memory of both quotes, beside
//! a memory of each alone, as a table or as JSON.

use std::{fmt::Write, path::PathBuf, process::ExitCode};

use anyhow::{Result, ensure};
use clap::Args;
use eval::{BenchmarkFormat, MixedFigures, MixedRequest, MixedRow};
use terminal::{print, with_progress};

use super::pipeline_args::PipelineArgs;

/// Merge dialogues of people with chats with an assistant, and compare each memory of both with a memory of one.
#[derive(Args)]
pub(crate) struct MixedArgs {
    /// LoCoMo's file.
    #[arg(long)]
    locomo: Option<PathBuf>,
    /// REALTALK's directory.
    #[arg(long)]
    realtalk: Option<PathBuf>,
    /// The directory of BEAM's chats.
    #[arg(long)]
    beam: PathBuf,
    /// The assistant's shares of the passages, in percent.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "10,30,60,90",
        value_parser = clap::value_parser!(u32).range(1..100)
    )]
    percents: Vec<u32>,
    #[command(flatten)]
    settings: PipelineArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl MixedArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let people = [(BenchmarkFormat::Locomo, self.locomo), (BenchmarkFormat::RealTalk, self.realtalk)];
        let people: Vec<_> = people.into_iter().filter_map(|(format, path)| Some((format, path?))).collect();
        ensure!(!people.is_empty(), "name the dialogues of people: --locomo FILE or --realtalk DIRECTORY");
        let pipeline = self.settings.read()?;
        let request = MixedRequest { people, chats: self.beam, percents: self.percents, pipeline };
        let rows = with_progress(|progress| eval::evaluate_mixed(&request, progress))?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&rows)?))?;
        } else {
            print(&table(&rows)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(rows: &[MixedRow]) -> Result<String> {
    let mut table = "| memory | assistant | questions of | number | merged: touched / full / facts, tokens | alone |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let whose = if row.third { "a third person's" } else { "one of the two's" };
        let of = if row.of_chat { "the chat" } else { "the people" };
        writeln!(
            table,
            "| {} with {whose} chat | {} %, {:.1} reached | {of} | {} | {} | {} |",
            row.set,
            row.percent,
            100.0 * row.reached,
            row.questions,
            figures(&row.merged),
            figures(&row.alone)
        )?;
    }
    Ok(table)
}

fn figures(of: &MixedFigures) -> String {
    let facts = of.facts.map_or_else(|| "–".to_owned(), |facts| format!("{:.1}", 100.0 * facts));
    format!("{:.1} / {:.1} / {facts}, {:.0}", 100.0 * of.touched, 100.0 * of.full, of.tokens)
}

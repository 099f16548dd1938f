//! `ripplemem-eval beam` and `ripplemem-eval realmem`.
//!
//! In: conversations between a user and an assistant, with questions. Out: how much of the evidence the memory and the
//! baselines quote, as a page or as JSON, and every context with its score.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;
use eval::{AgentContext, AgentSet, AgentsRequest};
use terminal::{print, say, with_progress};

use super::pipeline_args::PipelineArgs;

/// The options of both commands.
#[derive(Args)]
pub(crate) struct AgentsArgs {
    /// The benchmark's directory, with BEAM's chats (SIZE/N/chat.json) or RealMem's dialogues
    /// (NAME_dialogues_256k.json); or one of these files.
    directory: PathBuf,
    /// Only these conversations, such as 100K/1 or Ethan_Hunt.
    #[arg(long, value_delimiter = ',')]
    conversations: Vec<String>,
    #[command(flatten)]
    settings: PipelineArgs,
    /// Also score the baselines: whole messages and chunks, by meaning, by words and by both.
    #[arg(long, alias = "rivals")]
    baselines: bool,
    /// The baselines' mean number of tokens. Without it, the memory's.
    #[arg(long, requires = "baselines", value_parser = clap::value_parser!(u32).range(1..))]
    tokens: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write a report into this directory: report.md, and what `ripplemem-eval console --report` shows of each
    /// question.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Write every context with its score into this file, one line of JSON each.
    #[arg(long)]
    contexts: Option<PathBuf>,
}

impl AgentsArgs {
    pub(crate) fn run(self, set: AgentSet) -> Result<ExitCode> {
        let pipeline = self.settings.read()?;
        let request = AgentsRequest {
            set,
            path: self.directory,
            only: self.conversations,
            pipeline,
            baselines: self.baselines,
            tokens: self.tokens.map(f64::from),
        };
        let run = with_progress(|progress| eval::evaluate_agents(&request, progress))?;
        if let Some(path) = &self.contexts {
            write_contexts(path, &run.contexts).with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        if let Some(directory) = &self.report {
            eval::write_agents_report(directory, &run)?;
            say(&format!("the report is {}", directory.join("report.md").display()));
        }
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&run.result)?))?;
        } else {
            print(&eval::agents_page(&run.result))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_contexts(path: &Path, contexts: &[AgentContext]) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for context in contexts {
        serde_json::to_writer(&mut out, context)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

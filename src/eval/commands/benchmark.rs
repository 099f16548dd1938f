//! `ripplemem-eval FORMAT`.
//!
//! In: a benchmark file. Out: figures over its questions, as a table or as JSON, and a report.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Parser;
use eval::{Ablation, AgentSet, BenchmarkFormat, Calibration};
use terminal::{print, read_pipeline, say, with_progress};
use types::config::Pipeline;

use super::{
    agents::AgentsArgs, calibrate::CalibrateArgs, console::ConsoleArgs, conversations::ConversationsArgs, fit::FitArgs,
    hooks::HooksArgs, mixed::MixedArgs, pairs::PairsArgs, pipeline_args::PipelineArgs, schema::EvalSchemaArgs,
};

/// Score the memory on a benchmark: build it, ask every question, and compare the answers with the evidence.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some input was rejected, 78 the pipeline \
file is not valid."
)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    command: Option<EvalCommand>,
    #[arg(help = format!("The format: {}", format_names()), required = true)]
    format: Option<String>,
    /// The file, as published; for realtalk the directory.
    #[arg(required = true)]
    path: Option<PathBuf>,
    /// Only these conversations.
    #[arg(long, value_delimiter = ',')]
    conversations: Vec<String>,
    /// At most this many questions per conversation, taken in file order.
    #[arg(long)]
    limit: Option<usize>,
    /// Choose the questions for --limit at random, with this number as the seed: the same number gives the same
    /// questions.
    #[arg(long, requires = "limit")]
    seed: Option<u64>,
    /// The UTC offset to assume for times without one, such as +02:00.
    #[arg(long, default_value = "+00:00")]
    zone: String,
    #[command(flatten)]
    settings: PipelineArgs,
    /// Also score the baselines: other retrievers over the same memory.
    #[arg(long, alias = "rivals")]
    baselines: bool,
    /// Score without these parts, one at a time: structural-cues, graph-expansion, planned-recollection,
    /// second-round, longer-first-hop, greeted-names, named-days, open-windows, model-edges (asks
    /// the model of [llm]), or all (which includes model-edges only if [llm] names a model).
    #[arg(long, value_delimiter = ',')]
    ablate: Vec<String>,
    /// Compare ways of embedding a turn, at full precision and in 8 bits, by recall and ingestion time. Builds the
    /// memory eight times.
    #[arg(long)]
    vectors: bool,
    /// For each of these sizes, such as 1000,10000, merge all conversations into one bank of about that many units, and
    /// score it with and without the graph. Asks the questions of the conversations that fit into the smallest size.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    sizes: Vec<u64>,
    /// Turns as JSON lines that enlarge the merged bank once all conversations are in it.
    #[arg(long, requires = "sizes")]
    filler: Option<PathBuf>,
    /// Have the language model of [llm] answer the questions (without --judge, only those that the dialogue supports).
    /// It also answers them from the contexts of the paper's profile, and from those of a flat mixture with the same
    /// number of tokens. Paid answers are cached: the same command continues a run that was interrupted.
    #[arg(long)]
    answers: bool,
    /// A pipeline file whose [llm] is another model, which judges the answers.
    #[arg(long, requires = "answers")]
    judge: Option<PathBuf>,
    /// Print JSON (schemas/eval.v1.json).
    #[arg(long)]
    json: bool,
    /// Write a report into this directory: report.md, plots, a page for each question, and the same for
    /// `ripplemem-eval console --report`.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Show this calibration in the report: a file with the output of `ripplemem-eval calibrate --json`.
    #[arg(long, requires = "report")]
    calibration: Option<PathBuf>,
}

/// What an evaluation does besides measuring the settings as they are.
#[derive(clap::Subcommand)]
enum EvalCommand {
    /// Score the choice of which parts of long turns are quoted, on BEAM's chats between a user and an assistant.
    Beam(AgentsArgs),
    /// Score the choice of which parts of long turns are quoted, on RealMem's dialogues; for each query, the memory
    /// holds the sessions before its own.
    #[command(name = "realmem")]
    RealMem(AgentsArgs),
    Fit(FitArgs),
    Mixed(MixedArgs),
    Hooks(HooksArgs),
    Pairs(PairsArgs),
    Conversations(ConversationsArgs),
    Calibrate(CalibrateArgs),
    Console(ConsoleArgs),
    Schema(EvalSchemaArgs),
}

impl EvalArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            Some(EvalCommand::Beam(agents)) => return agents.run(AgentSet::Beam),
            Some(EvalCommand::RealMem(agents)) => return agents.run(AgentSet::RealMem),
            Some(EvalCommand::Fit(fit)) => return fit.run(),
            Some(EvalCommand::Mixed(mixed)) => return mixed.run(),
            Some(EvalCommand::Hooks(hooks)) => return hooks.run(),
            Some(EvalCommand::Pairs(pairs)) => return pairs.run(),
            Some(EvalCommand::Conversations(conversations)) => return conversations.run(),
            Some(EvalCommand::Calibrate(calibrate)) => return calibrate.run(),
            Some(EvalCommand::Console(console)) => return console.run(),
            Some(EvalCommand::Schema(schema)) => return schema.run(),
            None => {}
        }
        // Read this before the evaluation, which takes minutes, so that a wrong file fails at once.
        let calibration = self.calibration.as_deref().map(read_calibration).transpose()?;
        let (json, report) = (self.json, self.report.clone());
        let request = self.request()?;
        let run = with_progress(|progress| eval::evaluate(&request, progress))?;
        if let Some(directory) = report {
            eval::report::write(&directory, &run, calibration.as_ref())?;
            say(&format!("the report is {}", directory.join("report.md").display()));
        }
        if json {
            print(&format!("{}\n", serde_json::to_string_pretty(&run.result)?))?;
        } else {
            print(&eval::table(&run.result))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn request(self) -> Result<eval::EvalRequest> {
        // clap requires both if no other command is given.
        let (format, path) = (self.format.unwrap_or_default(), self.path.unwrap_or_default());
        let format = BenchmarkFormat::parse(&format)
            .with_context(|| format!("{format:?} is not a benchmark; write {}", format_names()))?;
        let pipeline = self.settings.read()?;
        let judge = self.judge.as_deref().map(read_pipeline).transpose()?.map(|pipeline| pipeline.llm);
        Ok(eval::EvalRequest {
            format,
            path,
            only: self.conversations,
            limit: self.limit,
            seed: self.seed,
            zone: self.zone,
            ablations: ablations(&self.ablate, &pipeline)?,
            pipeline,
            baselines: self.baselines,
            vectors: self.vectors,
            sizes: self.sizes,
            filler: self.filler,
            answers: self.answers,
            compare_answers: self.answers,
            judge,
        })
    }
}

fn format_names() -> String {
    BenchmarkFormat::ALL.map(BenchmarkFormat::name).join(" or ")
}

fn read_calibration(path: &Path) -> Result<Calibration> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{}: not what `ripplemem-eval calibrate --json` prints", path.display()))
}

fn ablations(names: &[String], pipeline: &Pipeline) -> Result<Vec<Ablation>> {
    let mut ablations = Vec::new();
    for name in names {
        match Ablation::parse(name) {
            Some(ablation) => ablations.push(ablation),
            None if name == "all" => {
                ablations.extend(Ablation::ALL.iter().filter(|a| pipeline.llm.is_set() || !a.asks_model()));
            }
            None => {
                let known: Vec<&str> = Ablation::ALL.iter().map(|a| a.name()).collect();
                anyhow::bail!("--ablate {name:?} is not known; write {} or all", known.join(", "));
            }
        }
    }
    Ok(ablations)
}

//! What the command line takes, and what its help says.
//!
//! In: arguments. Out: a command with its settings read, or an error that names the argument.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ripplemem::{
    config::{Pipeline, SnapshotSettings, SourceSettings},
    eval::{self, Ablation, BenchmarkFormat},
    model::Bank,
    serve,
    snapshot::AsOf,
};

/// Long-term memory for LLM agents as a live dataflow.
#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some input was \
rejected (see the dead letters), 78 the pipeline file is not valid."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a pipeline: its source to its end, then what the memory holds; with its log on
    /// Kafka, until it is stopped.
    Run {
        /// The pipeline file.
        pipeline: PathBuf,
    },
    /// Take turns from a file or from standard input.
    Ingest {
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Recollect evidence for a question.
    Ask {
        /// The question.
        question: String,
        /// The bank that is asked.
        #[arg(long)]
        bank: String,
        /// When it is asked, in RFC 3339; "yesterday" in a question means nothing without it.
        #[arg(long)]
        at: Option<String>,
        /// A turn that the answer must reflect, as PARTITION:OFFSET of the turns topic (log on Kafka).
        #[arg(long)]
        after: Option<String>,
        /// Ask the memory as it was: up to an offset of the bank's partition of the memory topic, or a time of
        /// appending in RFC 3339; rounded down to the end of a read.
        #[arg(long)]
        as_of: Option<String>,
        /// Show the ripple: first hop, plan, what each hop brought, what was kept.
        #[arg(long, conflicts_with = "json")]
        trace: bool,
        /// Print the whole answer as JSON (schemas/topics/answers.v1.json).
        #[arg(long)]
        json: bool,
        /// Answer in words, with the lines that the answer rests on ([llm] in the pipeline file).
        #[arg(long, conflicts_with_all = ["json", "trace"])]
        answer: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Write a snapshot of the memory to the place that the pipeline names; with the log on Kafka, by the
    /// service at metrics.listen where one answers there.
    Snapshot {
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Units and edges of a bank that came and went between two points of its past; with the log on Kafka,
    /// as far as the newest snapshot reaches.
    Diff {
        /// The bank.
        #[arg(long)]
        bank: String,
        /// An offset of the bank's partition of the memory topic, or a time of appending in RFC 3339.
        #[arg(long)]
        from: String,
        /// The same; up to now without it.
        #[arg(long)]
        to: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Have the language model read a bank's closed windows again, and pay for it again. On Kafka the
    /// service at metrics.listen does it; what it has not read when it stops stays as it was.
    Reextract {
        /// The bank.
        #[arg(long)]
        bank: String,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Count what a language model would be sent for a source, before any of it is.
    Estimate {
        #[command(flatten)]
        source: SourceArgs,
        /// A pipeline file: its windows and prices; the defaults without it.
        #[arg(long)]
        pipeline: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What was spent on the language model, by bank and purpose.
    Cost {
        /// Only this bank.
        #[arg(long)]
        bank: Option<String>,
        /// By window, of the responses that are kept.
        #[arg(long)]
        windows: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Write what the memory holds of a bank into a file, to move it into another log.
    Export {
        /// The bank.
        #[arg(long)]
        bank: String,
        /// The file: JSON Lines (schemas/bank.v1.json), compressed where its name ends in .zst.
        #[arg(long)]
        to: PathBuf,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Write an exported bank into a log of either kind; beside a running service, if there is one. Stopped, it
    /// goes on when it is run again.
    Import {
        /// The file that `export` wrote.
        file: PathBuf,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Make the memory's vectors anew with the model that the pipeline names, and switch to it. Questions are
    /// answered from the old ones until then. Stopped, it goes on when it is run again.
    Reembed {
        /// Remove the memory of the old model afterwards.
        #[arg(long)]
        drop_old: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Set a model's semantic threshold and match floor from unlabelled dialogue.
    Calibrate {
        /// The files; no question in them is read.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Their format: jsonl, locomo, longmemeval or evermembench.
        #[arg(long, default_value = "jsonl")]
        format: String,
        /// The bank of records that name none.
        #[arg(long)]
        bank: Option<String>,
        /// The offset of times that name none, such as +02:00.
        #[arg(long, default_value = "+00:00")]
        zone: String,
        /// A pipeline file that names the model; the defaults without it.
        #[arg(long)]
        pipeline: Option<PathBuf>,
        /// The mean of semantic choices a unit, instead of memory.target_semantic_choices.
        #[arg(long)]
        target: Option<f64>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Count units and edges, with a hash that depends only on the set.
    Digest {
        /// One bank; all of them without it.
        #[arg(long)]
        bank: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Score the memory on a benchmark: build it, ask every question, compare with the evidence.
    Eval(EvalArgs),
    /// Look into a topic of the log: one JSON object a record, without vectors.
    Tap {
        /// turns, memory or dead-letters; on Kafka also questions, answers or edges.
        topic: String,
        /// Only from the last so many offsets of each partition on; on Kafka, marks of transactions count.
        #[arg(long)]
        last: Option<usize>,
        /// Go on with what comes (log on Kafka), until stopped.
        #[arg(long)]
        follow: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Write a topic of the log as Parquet, from where the last run into the directory ended.
    Replay {
        /// The directory; each topic has one of its own in it.
        #[arg(long)]
        to: PathBuf,
        /// Where a new directory begins: earliest, an offset of each partition, or a time of appending in
        /// RFC 3339. One that holds a replay goes on where that ended.
        #[arg(long)]
        from: Option<String>,
        /// turns, memory or dead-letters.
        #[arg(long, default_value = "turns")]
        topic: String,
        /// Only this partition.
        #[arg(long)]
        partition: Option<u32>,
        /// Make a directory for each bank.
        #[arg(long)]
        by_bank: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// How far the turns are extracted, by partition.
    Lag {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: MemoryArgs,
    },
    /// Ask a running service whether it is ready; for health checks.
    Health {
        /// Where it tells.
        #[arg(long, default_value = "http://127.0.0.1:9464/ready")]
        url: String,
    },
    /// Check a pipeline file, and that its model can be loaded.
    Validate {
        /// The pipeline file.
        pipeline: PathBuf,
        /// Check the file alone.
        #[arg(long)]
        file_only: bool,
    },
    /// Make the table of synonyms anew from the model's word vectors (for developers).
    #[command(hide = true)]
    Synonyms {
        /// Where to write it: src/language/synonyms.txt.
        #[arg(long)]
        write: PathBuf,
        /// A pipeline file that names the model; the defaults without it.
        #[arg(long)]
        pipeline: Option<PathBuf>,
    },
    /// Print the JSON Schema of a topic's records.
    Schema {
        /// turns, memory, dead-letters, questions or answers, or eval, or bank (an export); all topics without it.
        topic: Option<String>,
        /// Write every schema into this directory instead.
        #[arg(long, conflicts_with = "topic")]
        write: Option<PathBuf>,
    },
}

/// What is evaluated.
#[derive(Args)]
pub(crate) struct EvalArgs {
    /// The format: locomo, longmemeval or evermembench.
    pub(crate) format: String,
    /// The file, as published.
    pub(crate) path: PathBuf,
    /// Only these conversations.
    #[arg(long, value_delimiter = ',')]
    pub(crate) conversations: Vec<String>,
    /// At most so many questions a conversation, in file order.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// The offset of times that name none, such as +02:00.
    #[arg(long, default_value = "+00:00")]
    pub(crate) zone: String,
    /// A pipeline file; the defaults without it. Its log is not touched.
    #[arg(long, conflicts_with = "profile")]
    pub(crate) pipeline: Option<PathBuf>,
    /// The profile: default, paper, paper-longmemeval or paper-evermembench.
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Compare with other retrievers over the same memory.
    #[arg(long, alias = "rivals")]
    pub(crate) baselines: bool,
    /// Leave parts out, one after another: structural-cues, graph-expansion, planned-recollection,
    /// second-round, longer-first-hop, open-windows, model-edges (which asks the model of [llm]), or
    /// all, which takes model-edges in where [llm] names a model.
    #[arg(long, value_delimiter = ',')]
    pub(crate) ablate: Vec<String>,
    /// Compare ways to make vectors of a turn, at full precision and in 8 bits: recall beside the time
    /// of ingestion. Builds the memory eight times.
    #[arg(long)]
    pub(crate) vectors: bool,
    /// Merge all conversations into one bank of about so many units, one size after the other, such as
    /// 1000,10000, and say what the graph is worth at each. The questions are those of the
    /// conversations that the least size has room for.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sizes: Vec<u64>,
    /// Turns as JSON lines that the merged bank grows by when all conversations are in it.
    #[arg(long, requires = "sizes")]
    pub(crate) filler: Option<PathBuf>,
    /// Have the language model of [llm] answer every question, and judge the answers.
    #[arg(long)]
    pub(crate) answers: bool,
    /// Print JSON (schemas/eval.v1.json).
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report into this directory: report.md, plots, a page for each question.
    #[arg(long)]
    pub(crate) report: Option<PathBuf>,
    /// Show this calibration in the report, as `calibrate --json` printed it.
    #[arg(long, requires = "report")]
    pub(crate) calibration: Option<PathBuf>,
}

impl EvalArgs {
    pub(crate) fn request(self) -> Result<eval::EvalRequest> {
        let format = BenchmarkFormat::parse(&self.format).with_context(|| {
            format!("{:?} is not a benchmark; write locomo, longmemeval or evermembench", self.format)
        })?;
        let pipeline = match (&self.pipeline, &self.profile) {
            (Some(path), _) => Pipeline::read(path)?,
            (None, profile) => {
                let profile = profile.as_deref().unwrap_or("default");
                Pipeline::parse(&format!("version = 1\nprofile = {profile:?}")).map_err(anyhow::Error::msg)?
            }
        };
        let mut ablations = Vec::new();
        for name in &self.ablate {
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
        Ok(eval::EvalRequest {
            format,
            path: self.path,
            only: self.conversations,
            limit: self.limit,
            zone: self.zone,
            pipeline,
            baselines: self.baselines,
            ablations,
            vectors: self.vectors,
            sizes: self.sizes,
            filler: self.filler,
            answers: self.answers,
        })
    }
}

/// Which memory a command works on.
#[derive(Args)]
pub(crate) struct MemoryArgs {
    /// A pipeline file; the defaults without it.
    #[arg(long)]
    pub(crate) pipeline: Option<PathBuf>,
    /// The directory of the log, instead of the pipeline's.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Where snapshots lie, instead of the pipeline's: a directory, or s3://BUCKET/PREFIX, gs://… or az://….
    #[arg(long)]
    pub(crate) snapshots: Option<String>,
}

/// Where turns come from.
#[derive(Args)]
pub(crate) struct SourceArgs {
    /// The format: jsonl, locomo, longmemeval or evermembench.
    format: String,
    /// The file; - for standard input (jsonl).
    path: PathBuf,
    /// The bank of records that name none; for the datasets, what stands in front of each conversation's name.
    #[arg(long)]
    bank: Option<String>,
    /// The offset of times that name none, such as +02:00.
    #[arg(long, default_value = "+00:00")]
    zone: String,
    /// Only these conversations (locomo), questions (longmemeval) or groups (evermembench).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

impl SourceArgs {
    pub(crate) fn settings(self) -> Result<(SourceSettings, Option<Bank>)> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        Ok((SourceSettings { format: self.format, path: self.path, zone: self.zone, only: self.only }, bank))
    }
}

impl MemoryArgs {
    pub(crate) fn pipeline(&self) -> Result<Pipeline> {
        let mut pipeline = match &self.pipeline {
            Some(path) => Pipeline::read(path)?,
            None => Pipeline::parse("version = 1").map_err(anyhow::Error::msg)?,
        };
        if let Some(data) = &self.data {
            pipeline.log.directory.clone_from(data);
        }
        if let Some(snapshots) = &self.snapshots {
            SnapshotSettings::check(snapshots).map_err(|problem| anyhow::anyhow!("--snapshots: {problem}"))?;
            pipeline.snapshot.directory.clone_from(snapshots);
        }
        Ok(pipeline)
    }
}

/// A point of the past, from an argument.
pub(crate) fn point(argument: &str, text: &str) -> Result<AsOf> {
    serve::parse_as_of(text).with_context(|| {
        format!("{argument} {text:?}: neither an offset nor a time in RFC 3339, such as 2024-05-06T09:00:00Z")
    })
}

//! The arguments of `ripplemem bench`, and the sequence of its steps.
//!
//! In: arguments. Out: the figures on stdout. A step that fails has said why on stderr.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use sources::TurnSource;
use terminal::{pipeline_or_defaults, print};
use types::config::Pipeline;

use super::{
    super::source_args::SourceArgs,
    bench_step::{BenchStep, EmptyMeasurement, IngestMeasurement, PARTS},
    figures::{BenchFigures, BenchSubject},
    measured_source::MeasuredSource,
    sleep_step::{self, SleepFigures},
    synthetic_dialogue::SyntheticDialogue,
};

/// How many turns the synthetic dialogue has, unless the arguments say it.
const TURNS: u64 = 10_000;

/// Measure on this machine how fast a memory ingests turns and answers, and how much space it takes. Without FORMAT and
/// PATH, it measures a synthetic dialogue. Everything that it writes is removed at the end.
#[derive(Args)]
#[command(mut_arg("format", |arg| arg.required(false).requires("path")), mut_arg("path", |arg| arg.required(false)))]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    source: Option<SourceArgs>,
    /// How many turns. Without it, all turns of a file, or 10000 turns of the synthetic dialogue. Of a file, the first
    /// turns are taken.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    turns: Option<u64>,
    /// Divide the turns, in their order, into this many banks of the same size. Without it, a file keeps its banks, and
    /// the synthetic dialogue is one bank.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    banks: Option<u64>,
    /// How many turns each bank has, in place of --turns.
    #[arg(long, requires = "banks", conflicts_with = "turns", value_parser = clap::value_parser!(u64).range(1..))]
    turns_per_bank: Option<u64>,
    /// Measure what it is worth that unused banks leave memory: the memory, the time to the first answer, and questions
    /// and turns to banks that sleep, beside the same without sleep. Only with the synthetic dialogue.
    #[arg(long, requires = "banks", conflicts_with = "path")]
    sleep: bool,
    /// The seed of the synthetic dialogue: the same one gives the same turns.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many questions are asked. They are turns that ask something.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    questions: u64,
    /// Make vectors from hashes instead of with the pipeline's model. This is faster, and measures only the memory.
    #[arg(long)]
    hashed: bool,
    /// A pipeline file, for its settings. Without it, the defaults. Its log and its snapshots are not touched.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The step that this process takes.
    #[arg(long, hide = true)]
    step: Option<BenchStep>,
    /// The directory of the steps.
    #[arg(long, hide = true, requires = "step")]
    within: Option<PathBuf>,
}

impl BenchArgs {
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        if let (Some(banks), Some(of_each)) = (self.banks, self.turns_per_bank) {
            self.turns = Some(banks.saturating_mul(of_each));
        }
        let mut pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        if pipeline.llm.is_set() {
            bail!("llm.endpoint: bench measures without a language model; give it a pipeline file without [llm]");
        }
        if self.banks.is_some() && self.turns.is_none() && self.source.is_some() {
            bail!("--banks: needs --turns for a file, so that all banks have the same size");
        }
        if self.banks > self.turns.or(Some(TURNS)) {
            bail!("--banks: more than there are turns; a bank needs at least one");
        }
        if self.hashed {
            "fixed".clone_into(&mut pipeline.embed.model);
        }
        match (self.step, self.within.clone()) {
            (Some(step), Some(within)) => self.take(step, pipeline, &within)?,
            _ if self.sleep => self.take_with_sleep()?,
            _ => self.take_all(&pipeline)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Takes one step in this process, and prints what it measured.
    fn take(self, step: BenchStep, mut pipeline: Pipeline, within: &Path) -> Result<()> {
        step.prepare(&mut pipeline, within);
        let (questions, banks) = (self.questions, self.banks.unwrap_or(1));
        let sleep = |sleeps| sleep_step::measure(&pipeline, within, banks, questions, sleeps);
        let measured = match step {
            BenchStep::Empty => serde_json::to_string(&BenchStep::empty(&pipeline)?)?,
            BenchStep::Ingest => {
                serde_json::to_string(&BenchStep::ingest(&pipeline, self.measured_source()?, within)?)?
            }
            BenchStep::Restore => serde_json::to_string(&BenchStep::restore(&pipeline, within, questions)?)?,
            BenchStep::Awake => serde_json::to_string(&sleep(false)?)?,
            BenchStep::Asleep => serde_json::to_string(&sleep(true)?)?,
        };
        print(&measured)
    }

    /// Takes every step, each in a process of its own.
    fn take_all(self, pipeline: &Pipeline) -> Result<()> {
        let directory = tempfile::tempdir().context("no temporary directory; TMPDIR names another place for it")?;
        let empty = of_process(BenchStep::Empty, directory.path())?;
        let ingested = of_process(BenchStep::Ingest, directory.path())?;
        let restored = of_process(BenchStep::Restore, directory.path())?;
        let json = self.json;
        let subject = BenchSubject {
            source: self.measured_source()?.describe(),
            model: pipeline.embed.model.clone(),
            embed_threads: pipeline.embed.threads,
        };
        let figures = BenchFigures::of(subject, &empty, ingested, restored);
        match json {
            true => print(&format!("{}\n", serde_json::to_string_pretty(&figures)?)),
            false => print(&figures.table()),
        }
    }

    /// Ingests, and measures the banks with sleep and without it, each in a process of its own.
    fn take_with_sleep(self) -> Result<()> {
        let directory = tempfile::tempdir().context("no temporary directory; TMPDIR names another place for it")?;
        let empty: EmptyMeasurement = of_process(BenchStep::Empty, directory.path())?;
        let ingested: IngestMeasurement = of_process(BenchStep::Ingest, directory.path())?;
        // Each of both begins with the same files.
        let of_asleep = BenchStep::Asleep.directory(directory.path());
        copy_below(directory.path(), &of_asleep, &PARTS).context("the temporary directory cannot be written")?;
        let measured =
            [of_process(BenchStep::Awake, directory.path())?, of_process(BenchStep::Asleep, directory.path())?];
        let (banks, turns) = (ingested.banks, ingested.turns);
        let figures = SleepFigures::of(banks, turns, empty.resident_bytes, measured);
        match self.json {
            true => print(&format!("{}\n", serde_json::to_string_pretty(&figures)?)),
            false => print(&figures.table()),
        }
    }

    /// The turns that are measured.
    fn measured_source(self) -> Result<MeasuredSource> {
        let wanted = usize::try_from(self.questions)?;
        match self.source {
            Some(arguments) => {
                let source = sources::open(&arguments.settings()?)?;
                Ok(MeasuredSource::new(source, self.turns, self.banks, wanted))
            }
            None => {
                let (turns, banks) = (self.turns.unwrap_or(TURNS), self.banks.unwrap_or(1));
                let dialogue = Box::new(SyntheticDialogue::new(self.seed, turns, banks));
                Ok(MeasuredSource::new(dialogue, None, None, wanted))
            }
        }
    }
}

/// Copies some directories, with everything below them.
fn copy_below(from: &Path, to: &Path, names: &[impl AsRef<Path>]) -> io::Result<()> {
    for name in names {
        let (from, to) = (from.join(name), to.join(name));
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                copy_below(&from, &to, &[entry.file_name()])?;
            } else {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// Runs a step in a process with the same arguments, and returns what it measured.
fn of_process<T: DeserializeOwned>(step: BenchStep, within: &Path) -> Result<T> {
    let program = std::env::current_exe().context("this program's own file is not known")?;
    let output = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--step", step.name(), "--within"])
        .arg(within)
        .stderr(Stdio::inherit())
        .output()
        .context("no process can be started")?;
    if !output.status.success() {
        bail!("the step {:?} failed: {}", step.name(), output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("the step {:?} printed no figures", step.name()))
}

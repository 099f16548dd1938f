//! `ripplemem-eval calibrate`.
//!
//! In: files of dialogue without labels. Out: a model's semantic threshold, the scale of its cosines and that of its
//! stored bytes, as a table and TOML, or as JSON. Builds a memory in a temporary directory, which is deleted at
//! the end. Never asks a language model.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use eval::Calibration;
use models::embed;
use terminal::{REJECTED, format_help, open_memory, pipeline_or_defaults, print, say, with_progress};
use types::{
    config::{FsyncPolicy, LogKind, Pipeline, RULES, SourceSettings},
    model::{SpannedText, Vector},
};

/// Set a model's semantic threshold, the scale of its cosines and that of its stored bytes from unlabelled dialogue.
#[derive(Args)]
pub(crate) struct CalibrateArgs {
    /// The files. Their questions are not read.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[arg(long, default_value = "jsonl", help = format_help("Their format"))]
    format: String,
    /// The bank for records that do not name one.
    #[arg(long)]
    bank: Option<String>,
    /// The time zone to assume for times without one, such as +02:00 or Europe/Berlin.
    #[arg(long, default_value = "+00:00")]
    zone: String,
    /// A pipeline file that names the model. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// The mean number of semantic choices per unit, instead of memory.target_semantic_choices.
    #[arg(long)]
    target: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl CalibrateArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let directory = tempfile::tempdir().context("no temporary directory could be made; set TMPDIR")?;
        let mut pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        if let Some(target) = self.target {
            pipeline.memory.target_semantic_choices = target;
        }
        pipeline.log.kind = LogKind::Embedded;
        pipeline.log.directory = directory.path().join("log");
        pipeline.log.fsync = FsyncPolicy::System;
        pipeline.snapshot.directory.clear();
        // No threshold depends on a language model, so none is asked and paid for.
        RULES.clone_into(&mut pipeline.extract.extractor);

        let (calibration, rejects) = self.calibrate(&pipeline)?;
        self.print_calibration(&pipeline, &calibration)?;
        if rejects > 0 {
            say(&format!("{rejects} records were rejected and left out; `ingest` keeps them as dead letters"));
            return Ok(ExitCode::from(REJECTED));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Builds the memory and measures it; also returns the number of rejected records.
    fn calibrate(&self, pipeline: &Pipeline) -> Result<(Calibration, u64)> {
        let settings = |path: &PathBuf| SourceSettings {
            bank: self.bank.clone().unwrap_or_default(),
            zone: self.zone.clone(),
            ..SourceSettings::new(&self.format, path)
        };
        let sources = self.files.iter().map(|path| eval::readers::open(&settings(path)));
        let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
        let mut service = open_memory(pipeline)?;
        let mut rejects = 0;
        for source in &mut sources {
            let ingested = with_progress(|progress| service.ingest(&mut **source, progress));
            rejects += ingested.with_context(|| source.describe())?.rejects;
        }
        let (model, memory) = (&pipeline.embed.model, &pipeline.memory);
        let mut embedder = embed::open(&pipeline.embed, &pipeline.model())?;
        let units = eval::samples(service.log(), &mut |text| embedder.embed_query(text))?;
        let plain = |text| SpannedText { text, spans: Vec::new() };
        let texts: Vec<SpannedText> = eval::texts(service.log())?.into_iter().map(plain).collect();
        let whole: Vec<Vector> = embedder.embed(&texts)?.into_iter().map(|vectors| vectors.whole).collect();
        let (choices, target) = (memory.semantic_edges, memory.target_semantic_choices);
        let calibration = eval::calibrate(model, &units, choices, target, &whole)?;
        Ok((calibration, rejects))
    }

    fn print_calibration(&self, pipeline: &Pipeline, calibration: &Calibration) -> Result<()> {
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(calibration)?));
        }
        let Calibration { units, banks, choices, target_choices, chance, questions, .. } = calibration;
        print(&calibration.table())?;
        print(&format!(
            "\n# {units} units of {banks} banks: {choices:.2} semantic choices per unit (target {target_choices}).\n\
             # {:.0} % of random pairs of one of {questions} questions and a unit match at or below the floor;\n\
             # as many of those questions find no unit of another turn above the ceiling.\n\
             # bytes hold the vectors of this model best times byte_factor.\n{}",
            chance * 100.0,
            calibration.toml(!pipeline.embed.models.contains_key(&pipeline.embed.model))
        ))
    }
}

//! What to evaluate.
//!
//! In: the options of `ripplemem-eval`, checked. Out: a request, and the sources that it names.

use std::path::{Path, PathBuf};

use super::{ablation::Ablation, dataset::BenchmarkFormat, readers};
use sources::{SourceError, TurnSource};
use types::config::{LlmSettings, Pipeline, SourceSettings};

/// The bank of filler turns that do not name a bank.
const FILLER: &str = "filler";

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct EvalRequest {
    /// The file's format.
    pub format: BenchmarkFormat,
    /// The file.
    pub path: PathBuf,
    /// Only these conversations; all when empty.
    pub only: Vec<String>,
    /// At most this many questions per conversation.
    pub limit: Option<usize>,
    /// The seed for a random choice of these questions; without it, they are the first ones in the file.
    pub seed: Option<u64>,
    /// The offset, such as `+02:00`, for times without one.
    pub zone: String,
    /// The settings; the log's directory is ignored.
    pub pipeline: Pipeline,
    /// Whether to ask the baselines too.
    pub baselines: bool,
    /// The ablations to measure, in this order.
    pub ablations: Vec<Ablation>,
    /// Whether to compare ways of embedding a turn.
    pub vectors: bool,
    /// Sizes in units: all conversations are merged into one bank, which grows to each size.
    pub sizes: Vec<u64>,
    /// A file of turns, as JSON lines, that are added to the bank once it holds every conversation.
    pub filler: Option<PathBuf>,
    /// Whether the language model answers every question in words.
    pub answers: bool,
    /// Whether it also answers from the contexts of the paper's profile and of the flat mixture.
    pub compare_answers: bool,
    /// The language model that judges the answers; never the one that wrote them.
    pub judge: Option<LlmSettings>,
}

impl EvalRequest {
    /// A request for the figures of a file, without comparisons.
    pub(crate) fn of_file(format: BenchmarkFormat, path: &Path, pipeline: &Pipeline) -> Self {
        Self {
            format,
            path: path.to_owned(),
            only: Vec::new(),
            limit: None,
            seed: None,
            zone: "+00:00".to_owned(),
            pipeline: pipeline.clone(),
            baselines: false,
            ablations: Vec::new(),
            vectors: false,
            sizes: Vec::new(),
            filler: None,
            answers: false,
            compare_answers: false,
            judge: None,
        }
    }

    /// The file's turns.
    pub(crate) fn open_source(&self) -> Result<Box<dyn TurnSource>, SourceError> {
        let only = self.only.clone();
        readers::open(&SourceSettings { only, ..self.source_settings(self.format.name(), &self.path) })
    }

    /// The filler's turns, if there is a filler.
    pub(crate) fn open_filler(&self) -> Result<Option<Box<dyn TurnSource>>, SourceError> {
        let open = |path: &PathBuf| {
            sources::open(&SourceSettings { bank: FILLER.to_owned(), ..self.source_settings("jsonl", path) })
        };
        self.filler.as_ref().map(open).transpose()
    }

    fn source_settings(&self, format: &str, path: &Path) -> SourceSettings {
        SourceSettings { zone: self.zone.clone(), ..SourceSettings::new(format, path) }
    }
}

//! What each process of the bench does.
//!
//! In: the settings, and the directory that the steps share. Out: what was measured. `empty` measures a process that
//! remembers one turn and has answered one question. `ingest` fills a log and writes a snapshot. `restore` opens it
//! again and asks questions.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use ingest::unit_texts;
use logs::Topic;
use models::embed::{self, EmbedderPool, QuestionVectorCache};
use pipeline::Cancellation;
use ripplemem::PipelineDriver;
use serde::{Deserialize, Serialize};
use sources::TurnSource;
use terminal::{say, with_progress};
use types::{
    config::{LogKind, Pipeline},
    model::{Bank, EventTime, MemoryRecord, Question, SpannedText, Turn, TurnEvent},
};

use super::{
    measured_source::MeasuredSource,
    process_memory::{mark_peak, peak_bytes, resident_bytes, settled_bytes},
};

/// The maximum number of texts with which the embedder alone is timed, evenly spread over all texts.
const MAX_TEXTS: usize = 4_000;
/// Records of the log that are read at once.
const RECORDS_AT_ONCE: usize = 512;
/// The bank of the turn that opens the model.
const WARM: &str = "bench-warm";
/// The directories of the log and of the snapshots.
pub(super) const PARTS: [&str; 2] = ["log", "snapshots"];
/// The file that keeps the questions between two steps.
const QUESTIONS: &str = "questions.json";

/// A step of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BenchStep {
    /// A memory of one turn.
    Empty,
    /// Ingests the turns into the memory.
    Ingest,
    /// Starts from the snapshot, and asks the questions.
    Restore,
    /// Measures the banks while all are in memory.
    Awake,
    /// Measures the banks while unused ones sleep.
    Asleep,
}

/// What an empty process needs.
#[derive(Serialize, Deserialize)]
pub(super) struct EmptyMeasurement {
    /// After it has answered.
    pub resident_bytes: Option<u64>,
}

/// What the ingestion needed.
#[derive(Serialize, Deserialize)]
pub(super) struct IngestMeasurement {
    pub turns: u64,
    pub banks: u64,
    pub units: u64,
    /// Texts that went through the model.
    pub texts: u64,
    pub seconds: f64,
    /// Texts per second of the embedder alone.
    pub alone_texts_per_second: f64,
    /// With the model open, before the first turn.
    pub empty_bytes: Option<u64>,
    pub peak_bytes: Option<u64>,
    pub settled_bytes: Option<u64>,
    /// The log with its caches.
    pub log_bytes: u64,
    pub snapshot_bytes: u64,
}

/// What a start from the snapshot needed, and the questions after it.
#[derive(Serialize, Deserialize)]
pub(super) struct RestoreMeasurement {
    pub seconds: f64,
    pub units: u64,
    /// After the questions were answered.
    pub resident_bytes: Option<u64>,
    /// Milliseconds of each question.
    pub asked_ms: Vec<f64>,
    /// Milliseconds of each question when it is asked again at once with the vectors of its texts.
    pub without_embedding_ms: Vec<f64>,
}

impl BenchStep {
    /// The step's name as an argument.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Ingest => "ingest",
            Self::Restore => "restore",
            Self::Awake => "awake",
            Self::Asleep => "asleep",
        }
    }

    /// The directory of the step's log and snapshots, below that of all steps.
    pub(super) fn directory(self, within: &Path) -> PathBuf {
        match self {
            Self::Empty | Self::Asleep => within.join(self.name()),
            Self::Ingest | Self::Restore | Self::Awake => within.to_owned(),
        }
    }

    /// Moves the log and the snapshots below the directory of the steps.
    pub(super) fn prepare(self, pipeline: &mut Pipeline, within: &Path) {
        let [log, snapshots] = PARTS.map(|name| self.directory(within).join(name));
        pipeline.log.kind = LogKind::Embedded;
        pipeline.log.directory = log;
        pipeline.snapshot.directory = snapshots.to_string_lossy().into_owned();
    }

    /// Measures a process that holds next to nothing.
    pub(super) fn empty(pipeline: &Pipeline) -> Result<EmptyMeasurement> {
        drop(warm(pipeline)?);
        // Opened again, so that only the model for the questions is open.
        let service = open(pipeline)?;
        let question = Question::new(Bank::parse(WARM)?, "What opens the model?");
        ask_all(&service, pipeline, &[question])?;
        Ok(EmptyMeasurement { resident_bytes: settled_bytes() })
    }

    /// Fills the log from a source.
    pub(super) fn ingest(pipeline: &Pipeline, mut source: MeasuredSource, within: &Path) -> Result<IngestMeasurement> {
        if let Some(notice) = source.notice() {
            say(&notice);
        }
        let mut service = warm(pipeline)?;
        let empty_bytes = settled_bytes();
        let is_marked = mark_peak();
        let started = Instant::now();
        let ingested = with_progress(|progress| service.ingest(&mut source, progress));
        ingested.with_context(|| source.describe())?;
        service.replica().wait_until_visible()?;
        let seconds = started.elapsed().as_secs_f64();
        if source.turns() == 0 {
            bail!("{}: it holds no readable turn, so there is nothing to measure", source.describe());
        }
        let questions = serde_json::to_string(&source.questions())?;
        fs::write(within.join(QUESTIONS), questions).context("the temporary directory cannot be written")?;
        service.replica().snapshot()?;
        let settled_bytes = settled_bytes();
        let peak_bytes = peak_bytes().filter(|_| is_marked);
        let units = units_of(&service)?;
        let texts = embedded_texts(&service, pipeline)?;
        drop(service);
        Ok(IngestMeasurement {
            turns: source.turns(),
            banks: source.banks(),
            units,
            texts: texts.len() as u64,
            seconds,
            alone_texts_per_second: alone(pipeline, &texts)?,
            empty_bytes,
            peak_bytes,
            settled_bytes,
            log_bytes: bytes_below(&pipeline.log.directory)?,
            snapshot_bytes: bytes_below(Path::new(&pipeline.snapshot.directory))?,
        })
    }

    /// Opens what was ingested, and asks.
    pub(super) fn restore(pipeline: &Pipeline, within: &Path, most: u64) -> Result<RestoreMeasurement> {
        let mut questions = stored_questions(within)?;
        questions.truncate(usize::try_from(most)?);
        let started = Instant::now();
        let service = open(pipeline)?;
        let seconds = started.elapsed().as_secs_f64();
        let (asked_ms, without_embedding_ms) = ask_all(&service, pipeline, &questions)?;
        let resident_bytes = settled_bytes().or_else(resident_bytes);
        Ok(RestoreMeasurement { seconds, units: units_of(&service)?, resident_bytes, asked_ms, without_embedding_ms })
    }
}

/// The questions that the ingestion found.
pub(super) fn stored_questions(within: &Path) -> Result<Vec<Question>> {
    let questions = fs::read(within.join(QUESTIONS)).context("the questions of the step before it")?;
    Ok(serde_json::from_slice(&questions)?)
}

fn open(pipeline: &Pipeline) -> Result<PipelineDriver> {
    let service = with_progress(|progress| PipelineDriver::open(pipeline, progress))?;
    Ok(service)
}

/// A memory of one turn, whose model is open, with its snapshot.
fn warm(pipeline: &Pipeline) -> Result<PipelineDriver> {
    let mut service = open(pipeline)?;
    let turn = Turn::new(Bank::parse(WARM)?, "1", "Ann", "This turn opens the model.", EventTime::new(0, 0)?);
    service.log().append_turns(&[TurnEvent::from(turn)])?;
    service.catch_up()?;
    service.replica().snapshot()?;
    Ok(service)
}

/// The units of the whole memory, except that of [`warm`].
fn units_of(service: &PipelineDriver) -> Result<u64> {
    let all = service.replica().digest(None)?.value.units;
    Ok(all - service.replica().digest(Some(&Bank::parse(WARM)?))?.value.units)
}

/// Asks each question twice, the second time with the vectors of the first; returns the milliseconds of both.
fn ask_all(service: &PipelineDriver, pipeline: &Pipeline, questions: &[Question]) -> Result<(Vec<f64>, Vec<f64>)> {
    let embedders = EmbedderPool::open(&pipeline.embed, &pipeline.model())?;
    let ask = |question: &Question, kept: &QuestionVectorCache| -> Result<f64> {
        let started = Instant::now();
        service.replica().ask(question, &embedders, Some(kept), &Cancellation::default(), None)?;
        Ok(milliseconds(started.elapsed()))
    };
    // The first answers only warm up the machine's caches.
    for question in questions.iter().take(questions.len() / 20) {
        ask(question, &QuestionVectorCache::default())?;
    }
    let (mut asked, mut without_embedding) = (Vec::new(), Vec::new());
    for question in questions {
        let kept = QuestionVectorCache::default();
        asked.push(ask(question, &kept)?);
        without_embedding.push(ask(question, &kept)?);
    }
    Ok((asked, without_embedding))
}

/// The texts of the closed windows, as the path embedded them.
fn embedded_texts(service: &PipelineDriver, pipeline: &Pipeline) -> Result<Vec<SpannedText>> {
    let (template, mut texts) = (pipeline.model().turn_template, Vec::new());
    for partition in 0..service.log().partitions() {
        let mut from = 0;
        loop {
            let records = service.log().read(Topic::Memory, partition, from, RECORDS_AT_ONCE)?.records;
            let Some(last) = records.last() else { break };
            from = last.offset + 1;
            for value in records.iter().filter_map(|record| record.value.as_deref()) {
                let record: MemoryRecord = serde_json::from_slice(value)?;
                if record.bank.as_str() == WARM {
                    continue;
                }
                for unit in &record.units {
                    let parts: Vec<_> = unit.parts.iter().map(|p| (p.speaker.as_str(), p.text.as_str())).collect();
                    texts.extend(unit_texts(&pipeline.embed, &template, &parts));
                }
            }
        }
    }
    Ok(texts)
}

/// Texts per second of the embedder alone, in batches of the size that the path uses.
fn alone(pipeline: &Pipeline, texts: &[SpannedText]) -> Result<f64> {
    let step = texts.len().div_ceil(MAX_TEXTS).max(1);
    let texts: Vec<SpannedText> = texts.iter().step_by(step).cloned().collect();
    let mut embedder = embed::open(&pipeline.embed, &pipeline.model())?;
    embedder.embed(texts.get(..1).unwrap_or_default())?;
    let started = Instant::now();
    for batch in texts.chunks(pipeline.embed.read_turns.max(1)) {
        embedder.embed(batch)?;
    }
    Ok(texts.len() as f64 / started.elapsed().as_secs_f64().max(f64::MIN_POSITIVE))
}

/// Bytes that the files below a directory take up.
fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let of_entry = entry.metadata()?;
        bytes += if of_entry.is_dir() { bytes_below(&entry.path())? } else { taken_up(&of_entry) };
    }
    Ok(bytes)
}

/// The bytes that a file takes up on disk, which may be less than its length if it is filled later.
#[cfg(unix)]
fn taken_up(file: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    file.blocks() * 512
}

#[cfg(not(unix))]
fn taken_up(file: &fs::Metadata) -> u64 {
    file.len()
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

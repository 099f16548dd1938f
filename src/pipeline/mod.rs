//! Wires the rooms; reads like the diagram.
//!
//! ```text
//! source ─► turns log ─► window ─► extract ─► embed ─► memory log ─► memory dataflow ◄─► recall
//! ```
//! In: a pipeline's settings, a source, questions. Out: evidence. A turn is acknowledged
//! once the turns log has it; everything after that is made again from the logs when the
//! process was killed. What is answered comes from the dataflow, which is fed from the
//! memory log and from nothing else.

use std::sync::Mutex;

use crate::{
    config::{LogKind, Pipeline},
    embed::{self, Embedder},
    extract::ExtractError,
    llm::LlmError,
    log::{self, Log, LogError, Topic},
    memory::{
        Answered, Census, Familiar, FamiliarityProbe, FirstHopProbe, Hit, MemoryError, MemoryHandle, Neighbour,
        NeighbourhoodProbe,
    },
    model::{Bank, Evidence, ModelRef, Question},
    recall::{self, Failure, RecallError},
    snapshot::{AsOf, Diff, Manifest, SnapshotError},
    source::{Source, SourceError},
    sync,
};

#[path = "replica/answerer.rs"]
mod answerer;
#[path = "ingest/background.rs"]
mod background;
#[path = "maintenance/estimate.rs"]
mod estimate;
#[path = "ingest/extraction.rs"]
mod extraction;
#[path = "replica/live.rs"]
mod live;
#[path = "ingest/parts.rs"]
mod parts;
#[path = "replica/reader.rs"]
mod reader;
#[path = "replica/recorder.rs"]
mod recorder;
#[path = "maintenance/reembed.rs"]
mod reembed;
#[path = "maintenance/replay.rs"]
mod replay;
#[path = "ingest/split.rs"]
mod split;
#[path = "ingest/stage.rs"]
mod stage;
#[path = "maintenance/synonyms.rs"]
mod synonyms;
#[path = "maintenance/transfer/mod.rs"]
mod transfer;
#[path = "ingest/vectors.rs"]
mod vectors;

pub(crate) use answerer::snapshots;
pub use answerer::{Answerer, Beginning, TakeTurns};
use background::Extractors;
pub use estimate::{Estimate, estimate};
pub use extraction::{Progressed, ReadAgain, extract};
pub use parts::unit_texts;
pub use reembed::{Reembedded, reembed};
pub use replay::{Replay, ReplayError, ReplayRequest};
use stage::{HeldTurns, Stage};
pub use synonyms::synonym_table;
pub use transfer::{Exported, Imported, TransferError, export, import};
use vectors::Vectors;

/// How often what the model made is looked for while nothing else is to be done.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Why a pipeline stopped.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The extractor failed.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] embed::EmbedError),
    /// The language model cannot be asked.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}; the system has too many")]
    Thread(std::io::Error),
    /// The dataflow failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The question could not be answered.
    #[error(transparent)]
    Recall(#[from] RecallError),
    /// Snapshots could not be read or written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A record of our own memory topic cannot be used.
    #[error("memory partition {partition}, offset {offset}: {problem}")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What is wrong and what to do.
        problem: String,
    },
    /// An earlier read failed before its records were written.
    #[error(
        "turns partition {partition}: an earlier read failed before its records were written; open the pipeline again, \
         the log holds every turn"
    )]
    Halted {
        /// The partition.
        partition: u32,
    },
    /// The log was made with another model.
    #[error(
        "the memory was made with model {found}, the pipeline names {expected}: vectors of two models are never \
         compared; name {found} in [embed], or make the vectors anew by `ripplemem reembed --pipeline FILE`"
    )]
    Model {
        /// The model of the log.
        found: String,
        /// The model of the pipeline.
        expected: String,
    },
    /// Another instance works on the bank's partition.
    #[error("bank {bank}: in partition {partition}, which another instance extracts; ask that one")]
    Elsewhere {
        /// The bank.
        bank: Bank,
        /// Its partition of the turns topic.
        partition: u32,
    },
    /// The bank holds nothing.
    #[error("bank {bank}: unknown; {known}")]
    UnknownBank {
        /// The bank that was asked.
        bank: Bank,
        /// Which banks there are.
        known: String,
    },
}

impl PipelineError {
    fn other_model(found: &ModelRef, expected: &ModelRef) -> Self {
        let named = |model: &ModelRef| format!("{} ({})", model.name, model.hash);
        Self::Model { found: named(found), expected: named(expected) }
    }
}

/// What a source brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Events that went to the turns log.
    pub events: u64,
    /// Records that went to the dead letters instead.
    pub rejects: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Windows whose units are a language model's now.
    pub by_model: u64,
    /// Windows whose units from a model could not be used.
    pub refused: u64,
}

/// What a language model did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Windows whose units are the model's now.
    pub read: u64,
    /// Windows whose units from the model could not be used; the dead letters say why.
    pub refused: u64,
    /// Windows that still wait; the next run goes on with them.
    pub left: u64,
    /// Why they wait.
    pub problem: Option<String>,
}

/// How far a long piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as `loading`.
    pub doing: &'static str,
    /// What is behind us.
    pub done: u64,
    /// All there is, where that is known.
    pub total: Option<u64>,
    /// What is counted.
    pub unit: &'static str,
}

/// A pipeline at work on its logs, call by call.
pub struct Service {
    pipeline: Pipeline,
    log: Box<dyn Log>,
    answerer: Answerer,
    stages: Vec<Stage>,
    extractors: Extractors,
    vectors: Mutex<Vectors>,
    warnings: Vec<String>,
}

impl Service {
    /// Opens the logs and brings the memory up to their end, from the newest snapshot on where
    /// the pipeline names a place for them; those of an embedded log are written there, too. Turns
    /// that were acknowledged but not extracted yet stay so until [`Self::catch_up`].
    ///
    /// # Errors
    /// [`PipelineError`] that names the file, or the partition and offset.
    pub fn open(pipeline: &Pipeline, progress: &mut dyn FnMut(Progress)) -> Result<Self, PipelineError> {
        let log = log::open(&pipeline.log)?;
        let (mut total, mut stages, mut warnings) = (0, Vec::new(), Vec::new());
        for partition in 0..log.partitions() {
            total += log.end(Topic::Memory, partition)?;
        }
        let mut restored: Vec<HeldTurns> = (0..log.partitions()).map(|_| HeldTurns::default()).collect();
        let answerer = Answerer::open(
            pipeline,
            &*log,
            Beginning {
                edges: None,
                // On Kafka that is the business of the service that runs.
                record: pipeline.log.kind == LogKind::Embedded,
                turns: Some(&mut |key, turns| {
                    let partition = log::partition_of(&key.bank, log.partitions());
                    if let Some(held) = restored.get_mut(partition as usize) {
                        held.take(key, turns);
                    }
                }),
                say: &mut |warning| warnings.push(warning.to_owned()),
                progress: &mut |done, total| {
                    progress(Progress { doing: "restoring", done, total: Some(total), unit: "bytes" });
                },
            },
        )?;
        for (partition, mut held) in (0..).zip(restored) {
            while answerer.follow(&*log, partition, |key, record, at| {
                held.take(key, record.map(|r| (r.turns.clone(), r.extractor.as_str())));
                progress(Progress { doing: "loading", done: at, total: Some(total), unit: "records" });
            })? {}
            let position = match answerer.position(partition) {
                // Input that changed no record is covered by the position alone.
                Some(position) if pipeline.log.kind == LogKind::Kafka => position,
                _ => log.read_position(partition)?,
            };
            stages.push(Stage::new(partition, pipeline, &held, position, answerer.model()));
        }
        answerer.snapshot()?;
        Ok(Self {
            pipeline: pipeline.clone(),
            vectors: Mutex::new(Vectors::new(pipeline)),
            extractors: Extractors::new(pipeline)?,
            log,
            answerer,
            stages,
            warnings,
        })
    }

    /// Extracts what the turns log holds and the memory log does not, `read_turns` at a
    /// time; afterwards the memory reflects every acknowledged turn.
    ///
    /// # Errors
    /// [`PipelineError`]; nothing acknowledged is lost: a service that is opened again goes on.
    /// This one answers [`PipelineError::Halted`] from then on.
    pub fn catch_up(&mut self) -> Result<Ingested, PipelineError> {
        let mut ingested = Ingested::default();
        let limit = self.pipeline.embed.read_turns;
        for stage in &mut self.stages {
            loop {
                let mut vectors = sync::lock(&self.vectors);
                let Some(done) = stage.step(&*self.log, &self.extractors, &mut vectors, limit)? else { break };
                self.warnings.append(&mut vectors.take_warnings());
                drop(vectors);
                ingested.rejects += done.rejects;
                ingested.windows += done.windows;
                ingested.units += done.units;
                ingested.by_model += done.by_model;
                ingested.refused += done.refused;
                while self.answerer.follow(&*self.log, stage.partition(), |_, _, _| {})? {}
            }
        }
        self.answerer.check_model(sync::lock(&self.vectors).model())?;
        Ok(ingested)
    }

    /// Takes a source to its end.
    ///
    /// # Errors
    /// [`PipelineError`]; what was read before it stays acknowledged.
    pub fn ingest(
        &mut self,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Ingested, PipelineError> {
        let mut all = self.catch_up()?;
        while let Some(batch) = source.next(self.pipeline.embed.read_turns)? {
            self.log.append_dead_letters(&batch.rejects)?;
            self.log.append_turns(&batch.events)?;
            let done = self.catch_up()?;
            all.events += batch.events.len() as u64;
            all.rejects += batch.rejects.len() as u64 + done.rejects;
            all.windows += done.windows;
            all.units += done.units;
            all.by_model += done.by_model;
            all.refused += done.refused;
            let at = source.progress();
            progress(Progress { doing: "ingesting", done: at.done, total: at.total, unit: at.unit });
        }
        Ok(all)
    }

    /// Leaves the windows that wait for a language model to a later run: nothing is sent before
    /// [`Self::finish`].
    pub fn leave_unread(&self) {
        if let Some(model) = &self.extractors.model {
            model.hold();
        }
    }

    /// Waits until a language model has read every closed window, or can read no more; at once
    /// without one. What is left, the next run goes on with.
    ///
    /// # Errors
    /// [`PipelineError`] as [`Self::catch_up`].
    pub fn finish(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Finished, PipelineError> {
        let mut finished = Finished::default();
        if let Some(model) = &self.extractors.model {
            model.wake();
        }
        loop {
            let done = self.catch_up()?;
            finished.read += done.by_model;
            finished.refused += done.refused;
            let waiting: Vec<(usize, usize)> = self.stages.iter().map(Stage::waiting).collect();
            let left: usize = waiting.iter().map(|(all, _)| all).sum();
            let at_work: usize = waiting.iter().map(|(_, at_work)| at_work).sum();
            finished.left = left as u64;
            let Some(model) = &self.extractors.model else { break };
            self.warnings.append(&mut model.take_warnings());
            if model.rests() {
                // What is under way comes back, and nothing is sent after it.
                model.hold();
            }
            if left == 0 || (at_work == 0 && model.rests()) {
                finished.problem = model.problem().filter(|_| left > 0);
                break;
            }
            let done = finished.read + finished.refused;
            progress(Progress { doing: "reading", done, total: Some(done + finished.left), unit: "windows" });
            std::thread::sleep(LOOK);
        }
        Ok(finished)
    }

    /// Has every closed window of a bank read by the language model again, also where that was
    /// paid for before; each window's units replace those that it has.
    ///
    /// # Errors
    /// [`PipelineError::UnknownBank`], [`LlmError::NotSet`] without a model, and as [`Self::finish`].
    pub fn reextract(&mut self, bank: &Bank, progress: &mut dyn FnMut(Progress)) -> Result<Finished, PipelineError> {
        self.answerer.knows(bank)?;
        if self.extractors.model.is_none() {
            return Err(LlmError::NotSet.into());
        }
        self.catch_up()?;
        for stage in &mut self.stages {
            // None: another partition's.
            let _ = stage.read_again(bank);
        }
        self.finish(progress)
    }

    /// Recollects evidence for a question.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank or an empty question, or when a room fails.
    pub fn ask(&self, question: &Question) -> Result<Evidence, PipelineError> {
        let mut vectors = sync::lock(&self.vectors);
        self.answerer.ask(question, vectors.embedder()?, None)
    }

    /// Writes a snapshot of what the memory holds; none when nothing has changed since the last,
    /// or none are written here.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`]; the memory goes on.
    pub fn snapshot(&self) -> Result<Option<Manifest>, PipelineError> {
        self.answerer.snapshot()
    }

    /// Recollects evidence for a question from a bank as it was; see [`Answerer::past`].
    ///
    /// # Errors
    /// As [`Self::ask`] and [`Answerer::past`].
    pub fn ask_as_of(&self, question: &Question, at: AsOf) -> Result<Evidence, PipelineError> {
        let past = self.answerer.past(&question.bank, at)?;
        let mut vectors = sync::lock(&self.vectors);
        past.ask(question, vectors.embedder()?, None)
    }

    /// Counts of units and edges and a hash that depends only on the set.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn digest(&self, bank: Option<&Bank>) -> Result<Answered<Census>, PipelineError> {
        self.answerer.digest(bank)
    }

    /// What a user should know, such as a cache that was made anew; each is said once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The memory.
    #[must_use]
    pub fn answerer(&self) -> &Answerer {
        &self.answerer
    }

    /// The durable log.
    #[must_use]
    pub fn log(&self) -> &dyn Log {
        &*self.log
    }
}

/// Brings a memory up to the end of its log, and writes a snapshot of it; the newest one when
/// nothing has changed since. Extracts nothing.
///
/// # Errors
/// [`PipelineError`].
pub fn take_snapshot(
    pipeline: &Pipeline,
    say: &mut dyn FnMut(&str),
    progress: &mut dyn FnMut(Progress),
) -> Result<Manifest, PipelineError> {
    let (answerer, _log) = up_to_date(pipeline, true, say, progress)?;
    match answerer.snapshot()? {
        Some(manifest) => Ok(manifest),
        None => answerer.newest_manifest(),
    }
}

/// What came and went in a bank between two points of its past; see [`Answerer::diff`].
///
/// # Errors
/// [`PipelineError`].
pub fn diff(
    pipeline: &Pipeline,
    bank: &Bank,
    from: AsOf,
    to: AsOf,
    say: &mut dyn FnMut(&str),
) -> Result<Diff, PipelineError> {
    // On Kafka a service may be writing: up to its newest snapshot.
    let (answerer, _log) = up_to_date(pipeline, pipeline.log.kind == LogKind::Embedded, say, &mut |_| {})?;
    answerer.diff(bank, from, to)
}

/// A memory that reflects its log as it stands, and records what it reads with `record`.
fn up_to_date(
    pipeline: &Pipeline,
    record: bool,
    say: &mut dyn FnMut(&str),
    progress: &mut dyn FnMut(Progress),
) -> Result<(Answerer, Box<dyn Log>), PipelineError> {
    let log = log::open(&pipeline.log)?;
    let mut total = 0;
    for partition in 0..log.partitions() {
        total += log.end(Topic::Memory, partition)?;
    }
    let restoring = &mut |done, total| {
        progress(Progress { doing: "restoring", done, total: Some(total), unit: "bytes" });
    };
    let beginning = Beginning { edges: None, record, turns: None, say, progress: restoring };
    let answerer = Answerer::open(pipeline, &*log, beginning)?;
    for partition in 0..log.partitions() {
        while answerer.follow(&*log, partition, |_, _, at| {
            progress(Progress { doing: "loading", done: at, total: Some(total), unit: "records" });
        })? {}
    }
    Ok((answerer, log))
}

/// Checks what only the machine can tell: that the model and its runtime can be loaded.
///
/// # Errors
/// [`PipelineError::Embed`] that lists where they were looked for.
pub fn check_model(pipeline: &Pipeline) -> Result<String, PipelineError> {
    let embedder: Box<dyn Embedder> = embed::open(&pipeline.embed, &pipeline.model())?;
    let model = embedder.model();
    Ok(format!("{} ({} components, hash {})", model.name, embedder.dimensions(), model.hash))
}

impl recall::Memory for MemoryHandle {
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure> {
        Ok(Self::first_hop(self, probe)?)
    }

    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<Familiar>, Failure> {
        Ok(Self::familiar(self, probe)?)
    }

    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure> {
        Ok(Self::neighbourhood(self, probe)?)
    }
}

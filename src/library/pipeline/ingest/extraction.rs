//! Extraction as a running service: the partitions that the consumer group assigns, in turn.
//!
//! In: a Kafka log. Out: memory records, transaction by transaction, until told to stop. A partition
//! is taken over before it is read, which fences its former owner. After a failure of the cluster a
//! partition is taken over again; a partition that another instance has taken over is dropped.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use tokio::sync::oneshot;

use crate::log::{
    KafkaLog, Log, LogError,
    kafka::members::{Group, Member, Membership},
    partition_of,
};
use models::{embed::EmbedError, llm::LlmError};
use nouns::{
    config::Pipeline,
    model::{Bank, ModelRef, Usage},
};

use super::{
    PipelineError,
    background::{Background, Extractors},
    stage::Stage,
    vectors::Vectors,
};
use crate::pipeline::replica::model_of;

/// How long the loop waits for changes of membership when there is nothing else to do.
const IDLE: Duration = Duration::from_millis(5);
/// Backoff before a partition is taken over again.
const BACKOFF: Duration = Duration::from_millis(500);
/// The same after an endpoint of embeddings was away past its retries.
const ENDPOINT_BACKOFF: Duration = Duration::from_secs(5);

/// What happens while extraction runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractionEvent {
    /// This instance has asked to join the group.
    Joined,
    /// A partition was taken over.
    TakenOver {
        /// The partition.
        partition: u32,
        /// The first offset that is not covered.
        position: u64,
        /// How long that took.
        took: Duration,
    },
    /// A partition was revoked, or another instance has taken it over.
    Left {
        /// The partition.
        partition: u32,
    },
    /// A transaction was committed.
    Committed {
        /// The partition.
        partition: u32,
        /// The first offset that is not covered.
        position: u64,
        /// Append time of the last event that it covers, in milliseconds since 1970.
        append_ms: Option<i64>,
        /// Events that were read.
        events: u64,
        /// Of them, those that became dead letters.
        rejects: u64,
        /// Of them, those that were forwarded to their bank's partition.
        forwards: u64,
        /// Windows that were written as final.
        windows: u64,
        /// Units that were written.
        units: u64,
        /// How long the step took, extraction and embedding included.
        took: Duration,
        /// The language model's usage for each window whose result this step used.
        model_usage: Vec<Usage>,
    },
    /// The number of windows that wait for the language model has changed.
    Waiting {
        /// The partition.
        partition: u32,
        /// Windows that wait.
        windows: usize,
    },
    /// A transaction was not committed.
    Aborted {
        /// The partition.
        partition: u32,
        /// Why.
        problem: String,
    },
    /// Something that a user should know.
    Warning(String),
}

/// A request to send the closed windows of a bank to the language model again, past the cache.
pub struct ReextractRequest {
    /// The bank.
    pub bank: Bank,
    /// Receives their number, or why none is sent.
    pub reply: oneshot::Sender<Result<usize, PipelineError>>,
}

/// Extracts until `stop`, and serves the requests to reextract a bank.
///
/// # Errors
/// [`PipelineError`] that no retry mends; everything acknowledged is in the log.
pub fn extract(
    pipeline: &Pipeline,
    log: &KafkaLog,
    requests: &Receiver<ReextractRequest>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ExtractionEvent),
) -> Result<(), PipelineError> {
    let extractors = Extractors::new(pipeline)?;
    let mut vectors = Vectors::new(pipeline);
    // Opened now, so that the first turn does not wait for it.
    let Some(model) = open_model(&mut vectors, stop, tell)? else { return Ok(()) };
    if let Some(found) = model_of(log)?.filter(|found| *found != model) {
        return Err(PipelineError::other_model(&found, &model));
    }
    let member = Member::join(log, Group::Extractors)?;
    tell(ExtractionEvent::Joined);
    let mut stages: BTreeMap<u32, Stage> = BTreeMap::new();
    let mut due: BTreeMap<u32, Instant> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, usize> = BTreeMap::new();
    // Fenced before the group revoked the partition: by then it has, or a transaction timed out.
    let fenced_backoff = Duration::from_secs(2 * pipeline.log.kafka.session_seconds);
    let mut idle = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let mut changed = false;
        for change in member.changes(idle)? {
            changed = true;
            match change {
                Membership::Assigned(partitions) => due.extend(partitions.iter().map(|p| (*p, Instant::now()))),
                Membership::Revoked(partitions) => {
                    for partition in partitions {
                        due.remove(&partition);
                        if stages.remove(&partition).is_some() {
                            tell(ExtractionEvent::Left { partition });
                        }
                        log.disown(partition);
                    }
                }
            }
        }
        if changed {
            // Only their owner learns what is deleted in the other partitions.
            let ours = |p| stages.contains_key(&p) || due.contains_key(&p);
            extractors.keep_partitions(ours, log.partitions())?;
            vectors.keep_partitions(ours, log.partitions())?;
        }
        idle = IDLE;
        let now = Instant::now();
        let ready: Vec<u32> = due.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        for partition in ready {
            let started = Instant::now();
            match Stage::take_over(partition, pipeline, log) {
                Ok(mut stage) => {
                    stage.take_warnings().into_iter().for_each(|w| tell(ExtractionEvent::Warning(w)));
                    stage.evict_responses(&extractors)?;
                    let position = stage.position();
                    vectors.take_over(partition, position, log.partitions())?;
                    tell(ExtractionEvent::TakenOver { partition, position, took: started.elapsed() });
                    member.show_position(partition, position);
                    stages.insert(partition, stage);
                    due.remove(&partition);
                }
                Err(error) => retry_later(partition, error, &mut due, fenced_backoff, tell)?,
            }
        }
        for ReextractRequest { bank, reply } in requests.try_iter() {
            // The caller may have stopped waiting.
            drop(reply.send(reextract(&bank, &mut stages, &extractors, log)));
        }
        let mut failed = Vec::new();
        for (partition, stage) in &mut stages {
            let started = Instant::now();
            let step = stage.step(log, &extractors, &mut vectors, pipeline.embed.read_turns);
            let model = extractors.model.as_ref().map(Background::take_warnings).unwrap_or_default();
            vectors.take_warnings().into_iter().chain(model).for_each(|w| tell(ExtractionEvent::Warning(w)));
            match step {
                Ok(None) => {}
                Ok(Some(done)) => {
                    idle = Duration::ZERO;
                    member.show_position(*partition, stage.position());
                    vectors.reached(*partition, stage.position())?;
                    tell(ExtractionEvent::Committed {
                        partition: *partition,
                        position: stage.position(),
                        append_ms: done.append_ms,
                        events: done.events,
                        rejects: done.rejects,
                        forwards: done.forwards,
                        windows: done.windows,
                        units: done.units,
                        took: started.elapsed(),
                        model_usage: done.usage,
                    });
                }
                Err(error) => failed.push((*partition, error)),
            }
            let (windows, _) = stage.waiting();
            if extractors.model.is_some() && waiting.insert(*partition, windows) != Some(windows) {
                tell(ExtractionEvent::Waiting { partition: *partition, windows });
            }
        }
        for (partition, error) in failed {
            stages.remove(&partition);
            log.disown(partition);
            retry_later(partition, error, &mut due, fenced_backoff, tell)?;
        }
        waiting.retain(|partition, _| stages.contains_key(partition));
    }
    Ok(())
}

/// The model, once its endpoint answers; None when told to stop before.
fn open_model(
    vectors: &mut Vectors,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ExtractionEvent),
) -> Result<Option<ModelRef>, PipelineError> {
    let mut said = false;
    while !stop.load(Ordering::Relaxed) {
        match vectors.embedder() {
            Ok(embedder) => return Ok(Some(embedder.model().clone())),
            Err(error @ PipelineError::Embed(EmbedError::Unavailable { .. })) => {
                if !std::mem::replace(&mut said, true) {
                    tell(ExtractionEvent::Warning(error.to_string()));
                }
                std::thread::sleep(BACKOFF);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Queues the closed windows of a bank for the model again, and gives their number.
fn reextract(
    bank: &Bank,
    stages: &mut BTreeMap<u32, Stage>,
    extractors: &Extractors,
    log: &KafkaLog,
) -> Result<usize, PipelineError> {
    let Some(model) = &extractors.model else { return Err(LlmError::NotConfigured.into()) };
    let partition = partition_of(bank, log.partitions());
    let other_instance = || PipelineError::OtherInstance { bank: bank.clone(), partition };
    let stage = stages.get_mut(&partition).ok_or_else(other_instance)?;
    let unknown = || PipelineError::UnknownBank {
        bank: bank.clone(),
        known: format!("its partition, {partition}, has no turn of it"),
    };
    let windows = stage.reextract(bank).ok_or_else(unknown)?;
    model.resume();
    Ok(windows)
}

/// Schedules another takeover of a partition that failed, unless the group revokes it first.
fn retry_later(
    partition: u32,
    error: PipelineError,
    due: &mut BTreeMap<u32, Instant>,
    fenced_backoff: Duration,
    tell: &mut dyn FnMut(ExtractionEvent),
) -> Result<(), PipelineError> {
    match &error {
        PipelineError::Log(LogError::Fenced { .. }) => {
            due.insert(partition, Instant::now() + fenced_backoff);
            tell(ExtractionEvent::Left { partition });
        }
        PipelineError::Embed(EmbedError::Unavailable { .. }) => {
            due.insert(partition, Instant::now() + ENDPOINT_BACKOFF);
            tell(ExtractionEvent::Aborted { partition, problem: error.to_string() });
        }
        PipelineError::Waits { .. } => {
            due.insert(partition, Instant::now() + fenced_backoff);
            tell(ExtractionEvent::Aborted { partition, problem: error.to_string() });
        }
        PipelineError::Log(LogError::Cluster { retriable: true, .. }) => {
            due.insert(partition, Instant::now() + BACKOFF);
            tell(ExtractionEvent::Aborted { partition, problem: error.to_string() });
        }
        _ => return Err(error),
    }
    Ok(())
}

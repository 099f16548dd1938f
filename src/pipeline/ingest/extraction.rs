//! Extraction as a running service: the partitions that the group gives us, one after another.
//!
//! In: a Kafka log. Out: memory records, transaction by transaction, until told to stop. A
//! partition is taken over before it is read: whoever had it before can commit no more. What
//! fails because the cluster is away is taken over again; a partition that another instance
//! has taken is let go.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use tokio::sync::oneshot;

use crate::{
    config::Pipeline,
    llm::LlmError,
    log::{
        KafkaLog, Log, LogError,
        kafka::members::{Member, Membership},
        partition_of,
    },
    model::{Bank, Usage},
};

use super::{
    PipelineError,
    background::{Background, Extractors},
    live::model_of,
    stage::Stage,
    vectors::Vectors,
};

/// How long the loop looks for changes of membership when there is nothing to do.
const IDLE: Duration = Duration::from_millis(5);
/// How long after a failure a partition is taken over again.
const AGAIN: Duration = Duration::from_millis(500);

/// What extraction tells as it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progressed {
    /// This instance asked to be a member of the group.
    Joined,
    /// A partition was taken over, in so much time, and goes on from this offset.
    TakenOver {
        /// The partition.
        partition: u32,
        /// The first offset that is not covered.
        position: u64,
        /// What taking over took.
        took: Duration,
    },
    /// A partition went to another instance.
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
        /// Of them, rejected ones.
        rejects: u64,
        /// Of them, those that were sent on to their bank's partition.
        forwards: u64,
        /// Windows that were written as final.
        windows: u64,
        /// Units that were written.
        units: u64,
        /// What the step took, extraction and embedding included.
        took: Duration,
        /// What the language model took for each window of which it was told that it was read.
        model_took: Vec<Usage>,
    },
    /// So many windows of a partition wait for the language model.
    Waiting {
        /// The partition.
        partition: u32,
        /// How many.
        windows: usize,
    },
    /// A transaction was not committed.
    Aborted {
        /// The partition.
        partition: u32,
        /// Why.
        problem: String,
    },
    /// What a user should know.
    Warning(String),
}

/// A bank whose closed windows a language model is to read again, also where that was paid for
/// before.
pub struct ReadAgain {
    /// The bank.
    pub bank: Bank,
    /// Is told how many they are, or why none will be.
    pub reply: oneshot::Sender<Result<usize, PipelineError>>,
}

/// Extracts until `stop`, and has windows read again when it is asked to.
///
/// # Errors
/// [`PipelineError`] for what does not pass by itself; everything acknowledged is in the log.
pub fn extract(
    pipeline: &Pipeline,
    log: &KafkaLog,
    asked: &Receiver<ReadAgain>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Progressed),
) -> Result<(), PipelineError> {
    let extractors = Extractors::new(pipeline)?;
    let mut vectors = Vectors::new(pipeline);
    // Opened now: the first turn should not wait for the model.
    let model = vectors.embedder()?.model().clone();
    if let Some(found) = model_of(log)?.filter(|found| *found != model) {
        return Err(PipelineError::other_model(&found, &model));
    }
    let member = Member::join(log)?;
    tell(Progressed::Joined);
    let mut stages: BTreeMap<u32, Stage> = BTreeMap::new();
    let mut due: BTreeMap<u32, Instant> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, usize> = BTreeMap::new();
    // Fenced though the group has not spoken: by then it has, or a transaction took too long.
    let later = Duration::from_secs(2 * pipeline.log.kafka.session_seconds);
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
                            tell(Progressed::Left { partition });
                        }
                        log.disown(partition);
                    }
                }
            }
        }
        if changed {
            // Whoever has the others learns what is taken back there.
            extractors.keep_partitions(|p| stages.contains_key(&p) || due.contains_key(&p), log.partitions())?;
        }
        idle = IDLE;
        let now = Instant::now();
        let ready: Vec<u32> = due.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        for partition in ready {
            let begun = Instant::now();
            match Stage::take_over(partition, pipeline, log) {
                Ok(stage) => {
                    stage.release(&extractors)?;
                    let position = stage.position();
                    tell(Progressed::TakenOver { partition, position, took: begun.elapsed() });
                    member.show_position(partition, position);
                    stages.insert(partition, stage);
                    due.remove(&partition);
                }
                Err(error) => set_aside(partition, error, &mut due, later, tell)?,
            }
        }
        for ReadAgain { bank, reply } in asked.try_iter() {
            // Whoever asked may be gone.
            drop(reply.send(read_again(&bank, &mut stages, &extractors, log)));
        }
        let mut lost = Vec::new();
        for (partition, stage) in &mut stages {
            let begun = Instant::now();
            let step = stage.step(log, &extractors, &mut vectors, pipeline.embed.read_turns);
            let model = extractors.model.as_ref().map(Background::take_warnings).unwrap_or_default();
            vectors.take_warnings().into_iter().chain(model).for_each(|w| tell(Progressed::Warning(w)));
            match step {
                Ok(None) => {}
                Ok(Some(done)) => {
                    idle = Duration::ZERO;
                    member.show_position(*partition, stage.position());
                    tell(Progressed::Committed {
                        partition: *partition,
                        position: stage.position(),
                        append_ms: done.append_ms,
                        events: done.events,
                        rejects: done.rejects,
                        forwards: done.forwards,
                        windows: done.windows,
                        units: done.units,
                        took: begun.elapsed(),
                        model_took: done.took,
                    });
                }
                Err(error) => lost.push((*partition, error)),
            }
            let (windows, _) = stage.waiting();
            if extractors.model.is_some() && waiting.insert(*partition, windows) != Some(windows) {
                tell(Progressed::Waiting { partition: *partition, windows });
            }
        }
        for (partition, error) in lost {
            stages.remove(&partition);
            log.disown(partition);
            set_aside(partition, error, &mut due, later, tell)?;
        }
        waiting.retain(|partition, _| stages.contains_key(partition));
    }
    Ok(())
}

/// Has the closed windows of a bank read again, and says how many they are.
fn read_again(
    bank: &Bank,
    stages: &mut BTreeMap<u32, Stage>,
    extractors: &Extractors,
    log: &KafkaLog,
) -> Result<usize, PipelineError> {
    let Some(model) = &extractors.model else { return Err(LlmError::NotSet.into()) };
    let partition = partition_of(bank, log.partitions());
    let elsewhere = || PipelineError::Elsewhere { bank: bank.clone(), partition };
    let stage = stages.get_mut(&partition).ok_or_else(elsewhere)?;
    let unknown = || PipelineError::UnknownBank {
        bank: bank.clone(),
        known: format!("its partition, {partition}, has no turn of it"),
    };
    let windows = stage.read_again(bank).ok_or_else(unknown)?;
    model.wake();
    Ok(windows)
}

/// A partition that could not be worked on is taken over again later, unless the group gives
/// it away until then.
fn set_aside(
    partition: u32,
    error: PipelineError,
    due: &mut BTreeMap<u32, Instant>,
    later: Duration,
    tell: &mut dyn FnMut(Progressed),
) -> Result<(), PipelineError> {
    match &error {
        PipelineError::Log(LogError::Fenced { .. }) => {
            due.insert(partition, Instant::now() + later);
            tell(Progressed::Left { partition });
        }
        PipelineError::Log(LogError::Cluster { retriable: true, .. }) => {
            due.insert(partition, Instant::now() + AGAIN);
            tell(Progressed::Aborted { partition, problem: error.to_string() });
        }
        _ => return Err(error),
    }
    Ok(())
}

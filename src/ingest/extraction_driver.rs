//! The only driver of extraction: runs the stages of this process's partitions, step by step (decision 48).
//!
//! In: a log, and which of its partitions belong to this process. Out: memory records, transaction by transaction, and
//! events about what happened. A partition is taken over before it is read, which fences its former owner. After a
//! failure, its stage is rebuilt from the log after a pause that grows with each failure; the others continue. The
//! [`ExtractionSchedule`] says how long extraction runs and which failures end it.

use crate::log_events;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tokio::sync::oneshot;
use tracing::debug_span;

use logs::{AssignmentChange, Log, LogError, PartitionAssignment, partition_of};
use models::{embed::EmbedError, llm::LlmError};
use types::{
    backoff::Backoff,
    config::Pipeline,
    model::{Bank, ModelRef, ModelUsage},
    wake_signal::WakeSignal,
};

use super::{
    PipelineError,
    cached_embedder::CachedEmbedder,
    extraction_stage::{ExtractionStage, StageOutcome},
    model_worker_pool::ExtractorSet,
    sleeping_windows::BankMoves,
    transaction_work::ExtractionStepReport,
};
use pipeline::redacted_error;

/// The longest wait for news: anything that raises no news, such as the end of a pause, is noticed after it.
const PATIENCE: Duration = Duration::from_millis(250);
/// The time between two looks for banks that may sleep, while there is something to extract.
const SLEEP_CHECK: Duration = Duration::from_millis(200);
/// The pause after an embedding endpoint was unavailable for longer than its own retries.
const ENDPOINT_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause while the cluster is unavailable; once it is back, new turns wait for no longer than this.
const CLUSTER_PAUSE: Duration = Duration::from_secs(5);

/// How long extraction runs, and what a failure does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractionSchedule {
    /// Until nothing is left to do; the first failure ends it.
    UntilCaughtUp,
    /// Until it is stopped; no failure ends it.
    Forever,
    /// Until it is stopped, or fails in a way that no retry can fix. A partition that another process has taken over is
    /// left alone for this long: during that time the group revokes it, or assigns it here again.
    ByGroup {
        /// Two session timeouts.
        fenced_pause: Duration,
    },
}

/// What happens while extraction runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractionEvent {
    /// This instance has asked to join its group, if there is one.
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
    Committed(CommittedTransaction),
    /// The number of windows that wait for the language model has changed.
    Waiting {
        /// The partition.
        partition: u32,
        /// How many windows wait.
        windows: usize,
        /// Why they wait, if the endpoint is the reason.
        problem: Option<String>,
    },
    /// A step failed; it will be tried again.
    Failed {
        /// The partition.
        partition: u32,
        /// Why.
        problem: String,
        /// Whether the log refuses writes ([`PipelineError::refuses_writes`]).
        refuses_writes: bool,
    },
    /// A step succeeded after one that failed.
    Recovered {
        /// The partition.
        partition: u32,
    },
}

/// A transaction that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// The partition.
    pub partition: u32,
    /// The first offset that is not covered.
    pub position: u64,
    /// Append time of the last event that it covers, in milliseconds since 1970.
    pub append_ms: Option<i64>,
    /// Events that were read.
    pub events: u64,
    /// Of them, those that became dead letters.
    pub rejects: u64,
    /// Of them, turns that were not kept because they were deleted before.
    pub not_kept: u64,
    /// Of them, those that changed nothing because a newer version or a deletion stands, those of `not_kept` included.
    pub stale: u64,
    /// Of them, those that were forwarded to their bank's partition.
    pub forwards: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Windows that got the language model's units.
    pub by_model: u64,
    /// Windows for which the language model's units could not be used.
    pub refused: u64,
    /// Dead letters that were written: for events, windows, and texts without a vector.
    pub dead_letters: u64,
    /// How long it was worked on, extraction and embedding included.
    pub took: Duration,
    /// The language model's usage for each window whose result this step used.
    pub model_usage: Vec<ModelUsage>,
}

/// A request to send the closed windows of a bank to the language model again, past the cache.
struct ReextractionRequest {
    bank: Bank,
    /// Receives their number, or why none is sent.
    reply: oneshot::Sender<Result<usize, PipelineError>>,
}

/// An order to a running extraction.
enum ExtractionOrder {
    Reextract(ReextractionRequest),
    /// Remove evicted entries from the files of the caches; the sender receives the result.
    EraseCaches(Sender<Result<(), PipelineError>>),
}

/// Sends orders to a running extraction.
#[derive(Clone)]
pub struct ExtractionOrderSender {
    orders: Sender<ExtractionOrder>,
    news: Arc<WakeSignal>,
}

/// Receives the orders for a running extraction.
pub struct ExtractionOrderReceiver(Receiver<ExtractionOrder>);

impl ExtractionOrderSender {
    /// Both ends, for an extraction from a log.
    #[must_use]
    pub fn new(log: &dyn Log) -> (Self, ExtractionOrderReceiver) {
        let (orders, arriving) = unbounded();
        (Self { orders, news: Arc::clone(log.news()) }, ExtractionOrderReceiver(arriving))
    }

    /// Makes the language model read a bank's closed windows again, and returns their number.
    ///
    /// # Errors
    /// [`PipelineError::UnknownBank`], [`PipelineError::OtherInstance`], [`LlmError::NotConfigured`] without a
    /// model, [`PipelineError::Cancelled`] if extraction has ended.
    pub async fn reextract(&self, bank: Bank) -> Result<usize, PipelineError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.orders.send(ExtractionOrder::Reextract(ReextractionRequest { bank, reply }));
        sent.map_err(|_| PipelineError::Cancelled)?;
        self.news.raise();
        answer.await.unwrap_or(Err(PipelineError::Cancelled))
    }

    /// Removes evicted vectors and responses from the files of the caches, and waits until it is done.
    ///
    /// # Errors
    /// [`PipelineError`] of a cache; [`PipelineError::Cancelled`] if extraction has ended.
    pub fn erase_caches(&self) -> Result<(), PipelineError> {
        let (reply, answer) = bounded(1);
        self.orders.send(ExtractionOrder::EraseCaches(reply)).map_err(|_| PipelineError::Cancelled)?;
        self.news.raise();
        answer.recv().unwrap_or(Err(PipelineError::Cancelled))
    }
}

/// What a run of the stages needs.
pub struct ExtractionRun<'a> {
    /// The log.
    pub log: &'a dyn Log,
    /// Decides which partitions belong to this process.
    pub assignment: &'a dyn PartitionAssignment,
    /// Which stage is next, and until when.
    pub schedule: ExtractionSchedule,
    /// Makes the memory of this process follow what was written for a partition; a failure counts as a failure of the
    /// step.
    pub follow: &'a dyn Fn(u32) -> Result<(), PipelineError>,
    /// Moves banks into the memory of this process and out of it; `None` if no bank sleeps.
    pub moves: Option<&'a dyn BankMoves>,
}

/// The stages of this process's partitions.
pub struct ExtractionDriver {
    pipeline: Pipeline,
    /// What makes units of windows.
    pub extractors: ExtractorSet,
    vectors: CachedEmbedder,
    stages: BTreeMap<u32, ExtractionStage>,
    /// Partitions whose stage must be built from the log, each with the time at which that is due.
    due: BTreeMap<u32, Instant>,
    /// Partitions whose last step or takeover failed.
    failing: BTreeMap<u32, FailureStreak>,
    /// When banks were last put to sleep.
    slept: Instant,
    /// What was last reported about the windows that wait for the language model.
    waiting: BTreeMap<u32, (usize, Option<String>)>,
}

/// The failures of a partition since its last good step.
struct FailureStreak {
    backoff: Backoff,
    /// The last one.
    problem: String,
}

impl ExtractionDriver {
    /// An extraction without stages.
    ///
    /// # Errors
    /// [`PipelineError::Llm`] when the language model that extracts cannot be used.
    pub fn new(pipeline: &Pipeline, news: &Arc<WakeSignal>) -> Result<Self, PipelineError> {
        Ok(Self {
            extractors: ExtractorSet::new(pipeline, news)?,
            vectors: CachedEmbedder::new(pipeline),
            pipeline: pipeline.clone(),
            stages: BTreeMap::new(),
            due: BTreeMap::new(),
            failing: BTreeMap::new(),
            slept: Instant::now(),
            waiting: BTreeMap::new(),
        })
    }

    /// Adds a stage that was built elsewhere, such as from a snapshot.
    pub fn add(&mut self, stage: ExtractionStage) {
        self.stages.insert(stage.partition(), stage);
    }

    /// The model of the vectors, if it was opened.
    pub fn model(&self) -> Option<&ModelRef> {
        self.vectors.model()
    }

    /// Windows that the language model has not read yet, and how many of them it is reading.
    pub fn windows_waiting(&self) -> (u64, u64) {
        let waiting = self.stages.values().map(ExtractionStage::waiting);
        waiting.fold((0, 0), |(all, reading), (more, read)| (all + more as u64, reading + read as u64))
    }

    /// Runs by the schedule; `stop` ends it.
    ///
    /// # Errors
    /// [`PipelineError`] as the schedule says; everything acknowledged is in the log.
    pub fn run(
        &mut self,
        run: &ExtractionRun<'_>,
        orders: &ExtractionOrderReceiver,
        stop: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) -> Result<(), PipelineError> {
        let news = run.log.news();
        if run.schedule != ExtractionSchedule::UntilCaughtUp {
            // This extraction reports its own pauses as events, and can end them early.
            self.vectors.shorten_attempts();
        }
        if let Some(moves) = run.moves {
            self.stages.values_mut().try_for_each(|stage| stage.sleep_with(moves))?;
        }
        while !stop() {
            let seen = news.count();
            self.follow_group(run, tell)?;
            self.take_over_due(run, tell)?;
            for order in orders.0.try_iter() {
                // The caller may have stopped waiting.
                match order {
                    ExtractionOrder::Reextract(ReextractionRequest { bank, reply }) => {
                        drop(reply.send(self.reextract(&bank, run.log, run.moves)));
                    }
                    ExtractionOrder::EraseCaches(reply) => drop(reply.send(self.erase_caches())),
                }
            }
            if self.step_all(run, tell)? {
                if self.slept.elapsed() >= SLEEP_CHECK {
                    self.sleep_unused(run);
                }
                continue;
            }
            let slept = self.sleep_unused(run);
            if run.schedule == ExtractionSchedule::UntilCaughtUp {
                break;
            }
            if slept {
                // There may be more.
                continue;
            }
            let next_due = self.due.values().map(|at| at.saturating_duration_since(Instant::now())).min();
            news.wait(seen, next_due.map_or(PATIENCE, |next| next.min(PATIENCE)));
        }
        Ok(())
    }

    /// Puts some banks to sleep that are unused, and for which there is nothing to do, and drops their windows. Returns
    /// whether there was one.
    fn sleep_unused(&mut self, run: &ExtractionRun<'_>) -> bool {
        let Some(moves) = run.moves else { return false };
        self.slept = Instant::now();
        let partitions = run.log.partitions();
        let stages = &self.stages;
        // A partition without a stage is taken over again: what there is to do for its banks is not known.
        let is_busy = |bank: &Bank| stages.get(&partition_of(bank, partitions)).is_none_or(|stage| stage.is_busy(bank));
        let asleep = moves.sleep_unused(&is_busy);
        for bank in &asleep {
            if let Some(stage) = self.stages.get_mut(&partition_of(bank, partitions)) {
                stage.drop_windows(bank);
            }
        }
        !asleep.is_empty()
    }

    /// Removes evicted vectors and responses from the files of the caches.
    ///
    /// # Errors
    /// [`PipelineError`] of a cache.
    pub fn erase_caches(&mut self) -> Result<(), PipelineError> {
        self.vectors.erase_cache()?;
        CachedEmbedder::erase_separate_cache(&self.pipeline)?;
        self.extractors.erase_cache(&self.pipeline)
    }

    /// Applies what the group has decided.
    fn follow_group(
        &mut self,
        run: &ExtractionRun<'_>,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) -> Result<(), PipelineError> {
        let (log, changes) = (run.log, run.assignment.changes()?);
        if changes.is_empty() {
            return Ok(());
        }
        for change in changes {
            match change {
                AssignmentChange::Assigned(partitions) => {
                    self.due.extend(partitions.into_iter().map(|p| (p, Instant::now())))
                }
                AssignmentChange::Revoked(partitions) => {
                    for partition in partitions {
                        self.due.remove(&partition);
                        self.leave(partition, log, tell);
                    }
                }
            }
        }
        // Only a partition's owner learns what is deleted there.
        let ours = |partition| self.stages.contains_key(&partition) || self.due.contains_key(&partition);
        self.extractors.keep_partitions(ours, log.partitions())?;
        self.vectors.keep_partitions(ours, log.partitions())
    }

    /// Drops the stage or the failures of a partition that another process has now.
    fn leave(&mut self, partition: u32, log: &dyn Log, tell: &mut dyn FnMut(ExtractionEvent)) {
        self.waiting.remove(&partition);
        let had_failed = self.failing.remove(&partition).is_some();
        if self.stages.remove(&partition).is_some() || had_failed {
            log_events::partition_left(partition);
            tell(ExtractionEvent::Left { partition });
        }
        log.disown(partition);
    }

    /// Builds the stages whose time has come, from the log.
    fn take_over_due(
        &mut self,
        run: &ExtractionRun<'_>,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) -> Result<(), PipelineError> {
        let now = Instant::now();
        let ready: Vec<u32> = self.due.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        for partition in ready {
            match self.take_over(partition, run) {
                Ok(position) => {
                    self.due.remove(&partition);
                    let took = now.elapsed();
                    log_events::partition_taken(partition, position, took.as_secs_f64());
                    run.assignment.show_position(partition, position);
                    tell(ExtractionEvent::TakenOver { partition, position, took });
                }
                Err(error) => self.retry_later(partition, error, run, tell)?,
            }
        }
        Ok(())
    }

    fn take_over(&mut self, partition: u32, run: &ExtractionRun<'_>) -> Result<u64, PipelineError> {
        let mut stage = ExtractionStage::take_over(partition, &self.pipeline, run.log, self.vectors.model())?;
        run.moves.map_or(Ok(()), |moves| stage.sleep_with(moves))?;
        let progress = stage.progress();
        if run.assignment.is_shared() {
            stage.evict_responses(&self.extractors)?;
            self.vectors.take_over(partition, &progress, run.log.partitions())?;
        }
        self.stages.insert(partition, stage);
        Ok(progress.low())
    }

    /// Works on one piece in each stage; returns whether any of them did something.
    fn step_all(
        &mut self,
        run: &ExtractionRun<'_>,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) -> Result<bool, PipelineError> {
        let mut any = false;
        for partition in self.stages.keys().copied().collect::<Vec<_>>() {
            let _span = debug_span!("step", partition).entered();
            let worked = self.work(partition, run).and_then(|worked| match worked {
                StageOutcome::Piece => Ok(worked),
                _ => (run.follow)(partition).map(|()| worked),
            });
            if matches!(worked, Ok(StageOutcome::Nothing | StageOutcome::Committed(_)))
                && self.failing.remove(&partition).is_some()
            {
                log_events::extraction_recovered(partition);
                tell(ExtractionEvent::Recovered { partition });
            }
            let worked = match worked {
                Ok(StageOutcome::Nothing) => {
                    run.log.maintain(partition).map(|()| StageOutcome::Nothing).map_err(PipelineError::from)
                }
                worked => worked,
            };
            match worked {
                Ok(StageOutcome::Nothing) => {}
                Ok(StageOutcome::Piece) => any = true,
                Ok(StageOutcome::Committed(step)) => {
                    any = true;
                    let Some(progress) = self.stages.get(&partition).map(ExtractionStage::progress) else { continue };
                    let position = progress.low();
                    if run.assignment.is_shared() {
                        run.assignment.show_position(partition, position);
                        self.vectors.note_evicted(partition, &progress)?;
                    }
                    let committed = committed(partition, position, step);
                    log_events::transaction_committed(&committed);
                    tell(ExtractionEvent::Committed(committed));
                }
                Err(error) => {
                    let is_away = matches!(error, PipelineError::Log(LogError::Cluster { retriable: true, .. }));
                    self.retry_later(partition, error, run, tell)?;
                    if is_away {
                        // The other stages would wait as long, and meanwhile the group may have moved their partitions.
                        return Ok(true);
                    }
                }
            }
            self.tell_waiting(partition, tell);
        }
        Ok(any)
    }

    fn work(&mut self, partition: u32, run: &ExtractionRun<'_>) -> Result<StageOutcome, PipelineError> {
        let log = run.log;
        let Some(stage) = self.stages.get_mut(&partition) else { return Ok(StageOutcome::Nothing) };
        let (extractors, vectors, limit) = (&self.extractors, &mut self.vectors, self.pipeline.embed.read_turns);
        let pipeline = &self.pipeline;
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let worked = stage.work(log, extractors, vectors, limit)?;
            let woke = run.moves.map_or(Ok(false), |moves| stage.wake_banks(pipeline, log, moves))?;
            Ok(if woke && matches!(worked, StageOutcome::Nothing) { StageOutcome::Piece } else { worked })
        }));
        worked.unwrap_or(Err(PipelineError::ExtractionPanicked { partition }))
    }

    fn tell_waiting(&mut self, partition: u32, tell: &mut dyn FnMut(ExtractionEvent)) {
        let (Some(model), Some(stage)) = (&self.extractors.model, self.stages.get(&partition)) else { return };
        let (windows, _) = stage.waiting();
        let now = (windows, model.problem().filter(|_| windows > 0));
        if self.waiting.get(&partition) != Some(&now) {
            self.waiting.insert(partition, now.clone());
            let (windows, problem) = now;
            tell(ExtractionEvent::Waiting { partition, windows, problem });
        }
    }

    /// Queues the closed windows of a bank for the language model again, past the cache, and returns their number.
    pub fn reextract(
        &mut self,
        bank: &Bank,
        log: &dyn Log,
        moves: Option<&dyn BankMoves>,
    ) -> Result<usize, PipelineError> {
        let Some(model) = &self.extractors.model else { return Err(LlmError::NotConfigured.into()) };
        let partition = partition_of(bank, log.partitions());
        let other_instance = || PipelineError::OtherInstance { bank: bank.clone(), partition };
        let stage = self.stages.get_mut(&partition).ok_or_else(other_instance)?;
        let unknown = || PipelineError::UnknownBank {
            bank: bank.clone(),
            known: format!("its partition, {partition}, has no turn of it"),
        };
        moves.map_or(Ok(()), |moves| stage.wake_bank(&self.pipeline, log, moves, bank))?;
        let windows = stage.reextract(bank).ok_or_else(unknown)?;
        model.resume();
        Ok(windows)
    }

    /// Schedules a partition's stage to be rebuilt after a failure, unless the failure ends extraction.
    fn retry_later(
        &mut self,
        partition: u32,
        error: PipelineError,
        run: &ExtractionRun<'_>,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) -> Result<(), PipelineError> {
        let begun = || FailureStreak { backoff: Backoff::SERVICE, problem: String::new() };
        let mut failing = self.failing.remove(&partition).unwrap_or_else(begun);
        let Some(pause) = run.schedule.pause_after(&error, &mut failing.backoff) else { return Err(error) };
        self.due.insert(partition, Instant::now() + pause);
        if matches!(error, PipelineError::Log(LogError::Fenced { .. })) {
            self.leave(partition, run.log, tell);
            return Ok(());
        }
        self.stages.remove(&partition);
        run.log.disown(partition);
        let (problem, refuses_writes) = (error.to_string(), error.refuses_writes());
        if failing.problem != problem {
            let (why, seconds) = (redacted_error(&error), pause.as_secs_f64());
            log_events::extraction_failed(partition, seconds, &why);
        }
        tell(ExtractionEvent::Failed { partition, problem: problem.clone(), refuses_writes });
        self.failing.insert(partition, FailureStreak { problem, ..failing });
        Ok(())
    }

    /// Opens the model of the vectors once its endpoint answers, so that the first turn does not wait for it; `None` if
    /// it is stopped before.
    pub fn open_model(
        &mut self,
        stop: &dyn Fn() -> bool,
        news: &WakeSignal,
    ) -> Result<Option<ModelRef>, PipelineError> {
        let mut backoff = Backoff::SERVICE;
        let mut said = false;
        while !stop() {
            match self.vectors.embedder() {
                Ok(embedder) => return Ok(Some(embedder.model().clone())),
                Err(error @ PipelineError::Embed(EmbedError::Unavailable { .. })) => {
                    if !std::mem::replace(&mut said, true) {
                        log_events::embedding_unavailable(&redacted_error(&error));
                    }
                    let until = Instant::now() + backoff.jittered();
                    while Instant::now() < until && !stop() {
                        news.wait(news.count(), PATIENCE);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl ExtractionSchedule {
    /// The pause after a failure; `None` if the failure ends the extraction.
    fn pause_after(self, error: &PipelineError, backoff: &mut Backoff) -> Option<Duration> {
        let fenced_pause = match self {
            Self::UntilCaughtUp => return None,
            Self::Forever => return Some(backoff.jittered()),
            Self::ByGroup { fenced_pause } => fenced_pause,
        };
        match error {
            // Fenced before the group revoked the partition: after the pause it has, or a transaction timed out.
            // A record that cannot be read stops only its partition, until another record of its key is written.
            PipelineError::Log(LogError::Fenced { .. } | LogError::Unreadable { .. }) | PipelineError::Waits { .. } => {
                Some(fenced_pause)
            }
            PipelineError::Embed(EmbedError::Unavailable { .. }) => Some(ENDPOINT_PAUSE),
            PipelineError::Log(LogError::Cluster { retriable: true, .. }) => {
                Some(backoff.jittered().min(CLUSTER_PAUSE))
            }
            _ => None,
        }
    }
}

fn committed(partition: u32, position: u64, step: ExtractionStepReport) -> CommittedTransaction {
    let ExtractionStepReport {
        events,
        forwards,
        append_ms,
        rejects,
        not_kept,
        stale,
        windows,
        units,
        by_model,
        refused,
        dead_letters,
        usage,
        took,
    } = step;
    CommittedTransaction {
        partition,
        position,
        append_ms,
        events,
        rejects,
        not_kept,
        stale,
        forwards,
        windows,
        units,
        by_model,
        refused,
        dead_letters,
        took,
        model_usage: usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::{EmbeddedLog, Topic, Transaction, WholeLogAssignment};
    use types::model::TurnEvent;

    /// The events of a partition that failed with this error and was then revoked.
    fn told_after(error: PipelineError) -> Vec<ExtractionEvent> {
        let home = tempfile::tempdir().expect("a directory");
        let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("a pipeline");
        pipeline.log.directory = home.path().join("log");
        let log = EmbeddedLog::open(&pipeline.log).expect("a log");
        let mut extraction = ExtractionDriver::new(&pipeline, log.news()).expect("no model to fail");
        extraction.add(ExtractionStage::take_over(0, &pipeline, &log, None).expect("a stage"));
        let schedule = ExtractionSchedule::ByGroup { fenced_pause: Duration::from_secs(60) };
        let run =
            ExtractionRun { log: &log, assignment: &WholeLogAssignment, schedule, follow: &|_| Ok(()), moves: None };
        let mut told = Vec::new();
        extraction.retry_later(0, error, &run, &mut |event| told.push(event)).expect("it is tried again");
        assert!(extraction.due.contains_key(&0) && extraction.stages.is_empty());
        extraction.leave(0, &log, &mut |event| told.push(event));
        assert!(extraction.failing.is_empty());
        told
    }

    #[test]
    fn a_partition_that_failed_and_was_revoked_is_no_failure_of_this_process() {
        let waits = PipelineError::Waits { partition: 0, offset: 1, problem: "a newer build".to_owned() };
        let told = told_after(waits);
        assert!(matches!(
            told[..],
            [
                ExtractionEvent::Failed { partition: 0, refuses_writes: false, .. },
                ExtractionEvent::Left { partition: 0 }
            ]
        ));
    }

    /// The log's first record is of another model, and those of ours follow it.
    #[test]
    fn a_partition_is_extracted_on_beside_a_record_of_another_model() {
        let home = tempfile::tempdir().expect("a directory");
        let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("a pipeline");
        pipeline.log.directory = home.path().join("log");
        let log = EmbeddedLog::open(&pipeline.log).expect("a log");
        let (_orders, arriving) = ExtractionOrderSender::new(&log);
        let extract = |turn: &str| {
            let lines = [
                format!(
                    r#"{{"bank": "{turn}", "session": "s", "turn": "{turn}", "speaker": "Ann", "time": "2024-05-01T10:00:00Z", "text": "The red kayak is in the boathouse."}}"#
                ),
                format!(r#"{{"type": "session_end", "bank": "{turn}", "session": "s"}}"#),
            ];
            let events = lines.map(|line| TurnEvent::from_json(line.as_bytes()).expect("an event"));
            log.append_turns(&events).expect("room");
            let mut extraction = ExtractionDriver::new(&pipeline, log.news()).expect("no model to fail");
            extraction.open_model(&|| false, log.news()).expect("a model");
            let run = ExtractionRun {
                log: &log,
                assignment: &WholeLogAssignment,
                schedule: ExtractionSchedule::UntilCaughtUp,
                follow: &|_| Ok(()),
                moves: None,
            };
            extraction.take_over(0, &run).expect("a stage");
            extraction.run(&run, &arriving, &|| false, &mut |_| {})
        };
        extract("a").and_then(|()| extract("b")).expect("extracted");
        let records = log.read(Topic::Memory, 0, 0, 100).expect("read").records;
        let mut memory: Vec<_> =
            records.into_iter().filter(|of| of.value.is_some()).map(|of| (of.key, of.value)).collect();
        assert_eq!(memory.len(), 2);
        let mut value: serde_json::Value =
            serde_json::from_slice(memory[0].1.as_deref().expect("a value")).expect("JSON");
        value["model"]["hash"] = "other".into();
        memory[0].1 = Some(serde_json::to_vec(&value).expect("JSON"));
        let next_offset = log.read_position(0).expect("a position");
        log.commit(&Transaction { partition: 0, next_offset, memory, ..Transaction::default() }).expect("committed");
        extract("c").expect("extracted");
    }

    #[test]
    fn a_partition_that_another_process_has_taken_over_has_not_failed() {
        let told = told_after(LogError::Fenced { partition: 0 }.into());
        assert_eq!(told, [ExtractionEvent::Left { partition: 0 }]);
    }
}

//! A pipeline at work in this process, call by call.
//!
//! In: a pipeline's settings, a source, questions. Out: evidence. A turn is acknowledged once the turns log has it;
//! after a kill, everything behind the logs is made again from them. Starts no extraction by itself: [`super::Memory`]
//! does.

use crate::log_events;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crossbeam_channel::Sender;

use logs::{self, Log, Topic, WholeLogAssignment};
use memory::index::EdgeChanges;
use models::{embed::EmbedderPool, llm::LlmError};
use snapshots::AsOf;
use sources::TurnSource;
use types::{
    config::{LogKind, Pipeline, ShardAssignmentMode},
    model::{Bank, Evidence, Explanation, ExplanationQuery, Question},
    sync,
};

use super::turn_locator::TurnLocator;
use erasure::{
    ErasureReport, ErasureTargets, ForgetOperationStore, Receipt, check_places, receipts, with_memory_progress,
};
use ingest::{
    BankMoves, ExtractionDriver, ExtractionEvent, ExtractionOrderReceiver, ExtractionOrderSender, ExtractionRun,
    ExtractionSchedule, ExtractionStage, IngestReport, LiveTurns, ModelExtractionReport,
};
use pipeline::{PipelineError, Progress, redacted_error};
use replica::{QueryQueue, QueryRequest, Replica, ReplicaOptions, complete_explanation};

/// Longest wait for a result of the language model; a result ends the wait.
const PATIENCE: Duration = Duration::from_millis(250);

/// A pipeline on its logs, driven call by call.
pub struct PipelineDriver {
    pipeline: Pipeline,
    log: Arc<dyn Log>,
    replica: Arc<Replica>,
    extraction: ExtractionDriver,
    /// No one sends orders while it is driven call by call.
    orders: ExtractionOrderReceiver,
    /// The embedders of questions, if they were opened before the memory.
    embedders: Option<Arc<EmbedderPool>>,
    /// Where the turns of requested banks are; those of banks that sleep are forgotten.
    places: Arc<TurnLocator>,
    /// Started by the first question.
    queue: Mutex<Option<Arc<QueryQueue>>>,
}

impl PipelineDriver {
    /// Opens the logs and brings the memory up to their end, from the newest snapshot if the pipeline names a place for
    /// snapshots. On an embedded log it also writes snapshots there. Acknowledged turns that are not extracted yet stay
    /// so until [`Self::catch_up`].
    ///
    /// # Errors
    /// [`PipelineError`] that names the file, or the partition and offset.
    pub fn open(pipeline: &Pipeline, progress: &mut dyn FnMut(Progress)) -> Result<Self, PipelineError> {
        Self::open_to_ask(pipeline, None, None, progress)
    }

    /// As [`Self::open`]; `edges` receives every change of the graph's edges, and `embedders` embed the questions.
    pub(super) fn open_to_ask(
        pipeline: &Pipeline,
        edges: Option<Sender<EdgeChanges>>,
        embedders: Option<Arc<EmbedderPool>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, PipelineError> {
        check_places(pipeline)?;
        let log: Arc<dyn Log> = Arc::from(logs::open(&pipeline.log)?);
        // On Kafka the running service does that.
        if pipeline.log.kind == LogKind::Embedded {
            ForgetOperationStore::of(&*log, &pipeline.forget).resume(&|_| true)?;
        }
        let mut extraction = ExtractionDriver::new(pipeline, log.news())?;
        let mut total = 0;
        for partition in 0..log.partitions() {
            total += log.end(Topic::Memory, partition)?;
        }
        let mut restored: Vec<LiveTurns> = (0..log.partitions()).map(|_| LiveTurns::default()).collect();
        let replica = Replica::open(
            pipeline,
            &*log,
            ReplicaOptions {
                hold: ShardAssignmentMode::All,
                edges,
                // On Kafka the running service writes them.
                record: pipeline.log.kind == LogKind::Embedded,
                // On Kafka banks sleep in the running service.
                waking_log: (pipeline.log.kind == LogKind::Embedded).then(|| Arc::clone(&log)),
                asks: embedders.as_ref().and_then(|embedders| embedders.known_model().cloned()),
                turns: Some(&mut |key, turns| {
                    let partition = logs::partition_of(&key.bank, log.partitions());
                    if let Some(live) = restored.get_mut(partition as usize) {
                        live.apply(key, turns);
                    }
                }),
                progress: &mut |done, total| {
                    progress(Progress { doing: "restoring", done, total: Some(total), unit: "bytes" });
                },
            },
        )?;
        for (partition, mut live) in (0..).zip(restored) {
            let unfinished = replica.read_asleep(&*log, partition, &mut |at| {
                progress(Progress { doing: "loading", done: at, total: Some(total), unit: "records" });
            })?;
            // There is something left to do for them, or a record of theirs cannot be read.
            for bank in &unfinished {
                ingest::read_bank(&mut live, &*log, partition, bank)?;
            }
            while replica.follow(&*log, partition, |key, record, at| {
                let record = record.filter(|record| record.bank == key.bank);
                live.apply(key, record.map(|r| (r.turns.clone(), r.extractor.as_str())));
                progress(Progress { doing: "loading", done: at, total: Some(total), unit: "records" });
            })? {}
            let progress = match replica.progress(partition) {
                // Input that changed no record is covered by the position alone.
                Some(progress) if pipeline.log.kind == LogKind::Kafka => progress,
                _ => log.progress(partition)?,
            };
            replica.unreadable(partition).iter().for_each(|record| live.take_unreadable(&record.key));
            extraction.add(ExtractionStage::new(partition, pipeline, &*log, live, progress, replica.model())?);
        }
        replica.snapshot()?;
        let (_, orders) = ExtractionOrderSender::new(&*log);
        Ok(Self {
            pipeline: pipeline.clone(),
            embedders,
            queue: Mutex::default(),
            places: Arc::default(),
            replica: Arc::new(replica),
            extraction,
            orders,
            log,
        })
    }

    /// Extracts the turns that the memory log does not cover yet, `read_turns` at a time;
    /// afterwards the memory reflects every acknowledged turn.
    ///
    /// # Errors
    /// [`PipelineError`]; from then on [`PipelineError::Halted`]. Nothing acknowledged is lost: a
    /// service that is opened again continues.
    pub fn catch_up(&mut self) -> Result<IngestReport, PipelineError> {
        let mut ingested = IngestReport::default();
        let Self { extraction, orders, log, replica, places, .. } = self;
        let follow = |partition| follow(replica, &**log, partition);
        let banks = ReplicaBanks { replica, places };
        let run = ExtractionRun {
            log: &**log,
            assignment: &WholeLogAssignment,
            schedule: ExtractionSchedule::UntilCaughtUp,
            follow: &follow,
            moves: banks.moves(),
        };
        extraction.run(&run, orders, &|| false, &mut |event| {
            if let ExtractionEvent::Committed(committed) = event {
                ingested += IngestReport::from(&committed);
            }
        })?;
        replica.check_model(extraction.model())?;
        Ok(ingested)
    }

    /// Runs extraction until `stop` returns true, and carries out `orders` meanwhile. If an error ends the run, it is
    /// logged, not returned.
    pub(super) fn extract(
        &mut self,
        orders: &ExtractionOrderReceiver,
        stop: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(ExtractionEvent),
    ) {
        let Self { extraction, log, replica, places, .. } = self;
        let follow = |partition| follow(replica, &**log, partition);
        let banks = ReplicaBanks { replica, places };
        let run = ExtractionRun {
            log: &**log,
            assignment: &WholeLogAssignment,
            schedule: ExtractionSchedule::Forever,
            follow: &follow,
            moves: banks.moves(),
        };
        if let Err(error) = extraction.run(&run, orders, stop, tell) {
            log_events::extraction_stopped(&redacted_error(&error));
        }
    }

    /// Ingests a source to its end.
    ///
    /// # Errors
    /// [`PipelineError`]; turns that were read before it stay acknowledged.
    pub fn ingest(
        &mut self,
        source: &mut dyn TurnSource,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<IngestReport, PipelineError> {
        source.hide_ids(self.log.id_salt()?);
        let mut all = self.catch_up()?;
        while let Some(batch) = source.next(self.pipeline.embed.read_turns)? {
            self.log.append_dead_letters(&batch.rejects)?;
            self.log.append_turns(&batch.events)?;
            all += self.catch_up()?;
            all.events += batch.events.len() as u64;
            all.rejects += batch.rejects.len() as u64;
            let at = source.progress();
            progress(Progress { doing: "ingesting", done: at.done, total: at.total, unit: at.unit });
        }
        Ok(all)
    }

    /// Sends nothing to the language model before [`Self::wait_for_model`]; a later run reads the windows
    /// that wait for it.
    pub fn pause_model(&self) {
        if let Some(model) = &self.extraction.extractors.model {
            model.pause();
        }
    }

    /// Waits until the language model has read every closed window, or stops reading; returns at
    /// once without a model. The next run reads the windows that are left.
    ///
    /// # Errors
    /// [`PipelineError`] as [`Self::catch_up`].
    pub fn wait_for_model(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ModelExtractionReport, PipelineError> {
        let mut finished = ModelExtractionReport::default();
        if let Some(model) = &self.extraction.extractors.model {
            model.resume();
        }
        loop {
            let seen = self.log.news().count();
            let done = self.catch_up()?;
            finished.read += done.by_model;
            finished.refused += done.refused;
            let (left, in_flight) = self.extraction.windows_waiting();
            finished.left = left;
            let Some(model) = &self.extraction.extractors.model else { break };
            if model.is_paused() {
                // After a backoff nothing more is sent; requests in flight still finish.
                model.pause();
            }
            if left == 0 || (in_flight == 0 && model.is_paused()) {
                finished.problem = model.problem().filter(|_| left > 0);
                break;
            }
            let done = finished.read + finished.refused;
            progress(Progress { doing: "reading", done, total: Some(done + finished.left), unit: "windows" });
            self.log.news().wait(seen, PATIENCE);
        }
        Ok(finished)
    }

    /// Sends every closed window of a bank to the language model again, past the cache. The new
    /// units of a window replace the old ones.
    ///
    /// # Errors
    /// [`PipelineError::UnknownBank`], [`LlmError::NotConfigured`] without a model, and as [`Self::wait_for_model`].
    pub fn reextract(
        &mut self,
        bank: &Bank,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ModelExtractionReport, PipelineError> {
        self.replica.check_bank(bank)?;
        if self.extraction.extractors.model.is_none() {
            return Err(LlmError::NotConfigured.into());
        }
        self.catch_up()?;
        let banks = ReplicaBanks { replica: &self.replica, places: &self.places };
        self.extraction.reextract(bank, &*self.log, banks.moves())?;
        self.wait_for_model(progress)
    }

    /// The receipt of each operation that forgot turns, the latest first.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed, or the key file cannot be read.
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        let settings = &self.pipeline.forget;
        let forgets = ForgetOperationStore::of(&*self.log, settings);
        with_memory_progress(&self.replica, Some(self.extraction.windows_waiting().0), &mut |settled| {
            receipts(forgets, settled, settings.key_file.as_deref())
        })
    }

    /// Erases the words of all turns that were deleted, after [`Self::catch_up`]; see [`super::Memory::erase`].
    ///
    /// # Errors
    /// As [`super::Memory::erase`].
    pub fn erase(&mut self) -> Result<ErasureReport, PipelineError> {
        let Self { pipeline, log, replica, extraction, .. } = self;
        let forgets = ForgetOperationStore::of(&**log, &pipeline.forget);
        let (waiting, replica) = (extraction.windows_waiting().0, &**replica);
        let mut erase_caches = || extraction.erase_caches();
        let mut places = ErasureTargets { forgets, replica, erase_caches: &mut erase_caches };
        with_memory_progress(replica, Some(waiting), &mut |settled| places.erase(settled))
    }

    /// Recollects evidence for a question.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank or an empty question, or when a crate below fails.
    pub fn ask(&self, question: &Question) -> Result<Evidence, PipelineError> {
        self.query_queue()?.ask_and_wait(QueryRequest::now(question.clone()))
    }

    /// The queue where questions wait and are answered; started by the first call.
    ///
    /// # Errors
    /// [`PipelineError`] when the model cannot be opened, or no thread started.
    pub fn query_queue(&self) -> Result<Arc<QueryQueue>, PipelineError> {
        let mut started = sync::lock(&self.queue);
        if let Some(queue) = &*started {
            return Ok(Arc::clone(queue));
        }
        let embedders = match &self.embedders {
            Some(embedders) => Arc::clone(embedders),
            None => Arc::new(EmbedderPool::open(&self.pipeline.embed, &self.pipeline.model())?),
        };
        let log = (self.pipeline.log.kind == LogKind::Embedded).then(|| Arc::clone(&self.log));
        let durable = Arc::clone(&self.log);
        let is_behind = move |bank: &Bank| {
            let partition = logs::partition_of(bank, durable.partitions());
            durable.progress(partition).and_then(|at| durable.lag(partition, at.of(bank))).is_ok_and(|lag| lag > 0)
        };
        let (replica, threads) = (Arc::clone(&self.replica), self.pipeline.serve.threads);
        let queue = QueryQueue::start(replica, embedders, log, Arc::new(is_behind), threads)?;
        Ok(Arc::clone(started.insert(Arc::new(queue))))
    }

    /// Recollects evidence for a question from a bank as of a point of the past; see [`Replica::past`].
    ///
    /// # Errors
    /// As [`Self::ask`] and [`Replica::past`].
    pub fn ask_as_of(&self, question: &Question, at: AsOf) -> Result<Evidence, PipelineError> {
        self.query_queue()?.ask_and_wait(QueryRequest { as_of: Some(at), ..QueryRequest::now(question.clone()) })
    }

    /// Explains what the answer to a question does with a turn; as of a point of the past if one is given.
    ///
    /// # Errors
    /// As [`Self::ask`] and [`Replica::past`].
    pub fn explain(
        &self,
        question: &Question,
        subject: ExplanationQuery,
        as_of: Option<AsOf>,
    ) -> Result<Explanation, PipelineError> {
        let explained = self
            .query_queue()?
            .explain_and_wait(QueryRequest { as_of, ..QueryRequest::now(question.clone()) }, subject)?;
        complete_explanation(&*self.log, &self.replica, &question.bank, explained)
    }

    /// Where the turns of requested banks are.
    pub(super) fn places(&self) -> Arc<TurnLocator> {
        Arc::clone(&self.places)
    }

    /// The memory and the log, for callers that share them.
    pub(super) fn replica_and_log(&self) -> (Arc<Replica>, Arc<dyn Log>) {
        (Arc::clone(&self.replica), Arc::clone(&self.log))
    }

    /// The memory.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The durable log.
    #[must_use]
    pub fn log(&self) -> &dyn Log {
        &*self.log
    }
}

/// The banks of a replica, as extraction moves them.
struct ReplicaBanks<'r> {
    replica: &'r Replica,
    places: &'r TurnLocator,
}

impl ReplicaBanks<'_> {
    /// What moves them; `None` if no bank sleeps.
    fn moves(&self) -> Option<&dyn BankMoves> {
        self.replica.sleep_status().is_some().then_some(self)
    }
}

impl BankMoves for ReplicaBanks<'_> {
    fn wake(&self, bank: &Bank) -> Result<(), PipelineError> {
        self.replica.wake(bank)
    }

    fn is_asleep(&self, bank: &Bank) -> bool {
        self.replica.is_asleep(bank)
    }

    fn sleep_unused(&self, is_busy: &dyn Fn(&Bank) -> bool) -> Vec<Bank> {
        let asleep = self.replica.sleep_unused(is_busy);
        asleep.iter().for_each(|bank| self.places.forget(bank));
        asleep
    }
}

fn follow(replica: &Replica, log: &dyn Log, partition: u32) -> Result<(), PipelineError> {
    while replica.follow(log, partition, |_, _, _| {})? {}
    Ok(())
}

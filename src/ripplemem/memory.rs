//! The methods of a memory: put, ask, forget, list, close.
//!
//! In: turns, questions. Out: proof that turns are durable, evidence, and the problems of the background threads, as
//! values. A write never waits for a model. Every method can be called from any thread.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use crossbeam_channel::Sender;

use super::{
    PipelineDriver,
    background_tasks::BackgroundTasks,
    metadata_reader::MetadataReader,
    profile::{ProfileQuery, profile},
    status::{MemoryEvent, MemoryStatus},
    turn_locator::{SessionSpan, TurnLocator, TurnPage, TurnPageRequest, TurnSpan},
    verdict_reader::follow_verdicts,
};
use erasure::{DurableDeletion, RetentionStatus, check_forgetting};
use ingest::{ExtractionOrderSender, LiveSourceEvent, LiveSourceOptions, follow_source};
use logs::{Log, Topic, VerdictReceiver, WritePosition, partition_of};
use memory::index::EdgeChanges;
use models::embed::EmbedderPool;
use pipeline::{Cancellation, PipelineError, Progress};
use replica::{QueryQueue, QueryRequest, Replica};
use sources::live::WebhookDelivery;
use types::{
    config::{ForgetSettings, LLM, LogKind, Pipeline},
    model::{Bank, DeadLetter, Evidence, Profile, Selector, TurnEvent},
};

/// A memory that stays open. The main page of this crate has an example.
pub struct Memory {
    // Fields drop in this order: the threads end before what they use.
    pub(super) background: Option<BackgroundTasks>,
    queue: Arc<QueryQueue>,
    pub(super) replica: Arc<Replica>,
    pub(super) log: Arc<dyn Log>,
    pub(super) forget: ForgetSettings,
    /// Whether a language model extracts, in this process or another one.
    pub(super) is_read_by_model: bool,
    pub(super) places: Arc<TurnLocator>,
}

/// How a memory is opened.
pub struct MemoryOptions<'b> {
    /// Receives every change of the graph's edges, beginning with the edges that the log gives at the start.
    /// The receiver must take all changes: the channel has no limit.
    pub edges: Option<Sender<EdgeChanges>>,
    /// Called with every event of the background threads.
    pub tell: Box<dyn Fn(&MemoryEvent<'_>) + Send + Sync>,
    /// Called with the progress of opening.
    pub progress: &'b mut dyn FnMut(Progress),
}

impl Memory {
    /// Opens the memory of a pipeline, or creates it. Turns that were put before and are not extracted
    /// yet are now extracted.
    ///
    /// # Errors
    /// [`PipelineError`]: the directory is in use, the model cannot be opened, a snapshot is of another
    /// log, the key file of `[forget]` cannot be read, or the log is on Kafka.
    pub fn open(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        Self::open_with(pipeline, MemoryOptions { edges: None, tell: Box::new(|_| {}), progress: &mut |_| {} })
    }

    /// As [`Self::open`], with changes of edges, events of the background threads and the progress of opening.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(pipeline: &Pipeline, options: MemoryOptions<'_>) -> Result<Self, PipelineError> {
        if pipeline.log.kind == LogKind::Kafka {
            return Err(PipelineError::NotEmbedded);
        }
        check_forgetting(pipeline)?;
        let MemoryOptions { edges, tell, progress } = options;
        let embedders = Arc::new(EmbedderPool::open(&pipeline.embed, &pipeline.model())?);
        let service = PipelineDriver::open_to_ask(pipeline, edges, Some(embedders), progress)?;
        let (replica, log) = service.replica_and_log();
        let (queue, places) = (service.query_queue()?, service.places());
        let background = Some(BackgroundTasks::start(service, pipeline, &Arc::from(tell))?);
        let forget = pipeline.forget.clone();
        Ok(Self {
            background,
            queue,
            replica,
            log,
            forget,
            is_read_by_model: pipeline.extract.extractor == LLM,
            places,
        })
    }

    /// A memory on a log on Kafka. It does not extract; the caller makes `replica` follow the log.
    pub fn with_replica(log: Arc<dyn Log>, replica: Arc<Replica>, queue: Arc<QueryQueue>, pipeline: &Pipeline) -> Self {
        let (forget, places) = (pipeline.forget.clone(), Arc::<TurnLocator>::default());
        let is_read_by_model = pipeline.extract.extractor == LLM;
        Self { background: None, queue, replica, log, forget, is_read_by_model, places }
    }

    /// Writes turns, edits, deletions and ends of sessions to the log, and returns when they are durable.
    /// Extraction follows in the background. A turn that is put again, with the same id and version,
    /// changes nothing. A higher version replaces it.
    ///
    /// # Errors
    /// [`PipelineError::Turn`]: one of them is not valid, and nothing was written. [`PipelineError::Log`]: some
    /// may have been written; put all of them again.
    pub fn put<E: Into<TurnEvent>>(&self, turns: impl IntoIterator<Item = E>) -> Result<WritePosition, PipelineError> {
        let events: Vec<TurnEvent> = turns.into_iter().map(Into::into).collect();
        for (index, event) in events.iter().enumerate() {
            event.check().map_err(|problem| PipelineError::Turn { index, problem })?;
        }
        let is_group = events.iter().any(|event| matches!(event, TurnEvent::Conditional(write) if write.count > 1));
        Ok(if is_group { self.log.append_together(&events)? } else { self.log.append_turns(&events)? })
    }

    /// Waits for the verdict on the conditional records of a request, which are written next.
    #[must_use]
    pub fn await_verdict(&self, request: &str) -> VerdictReceiver {
        self.log.outcomes().await_verdict(request)
    }

    /// Makes the verdicts on requests about these banks arrive here, whichever process extracts the banks. Called
    /// before their records are written.
    ///
    /// # Errors
    /// [`PipelineError::Log`], [`PipelineError::Thread`].
    pub fn follow_verdicts(&self, banks: &BTreeSet<Bank>, requests: &[String]) -> Result<(), PipelineError> {
        // A log in a directory has one process, which tells its own verdicts.
        if self.log.erasable().is_some() {
            return Ok(());
        }
        let partitions: BTreeSet<u32> = banks.iter().map(|bank| partition_of(bank, self.log.partitions())).collect();
        for partition in partitions {
            follow_verdicts(&self.log, partition, requests)?;
        }
        Ok(())
    }

    /// Follows a live source until `stop`; see [`follow_source`].
    ///
    /// # Errors
    /// As [`follow_source`].
    pub fn follow_source(
        &self,
        run: LiveSourceOptions<'_>,
        arriving: &crossbeam_channel::Receiver<WebhookDelivery>,
        stop: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(LiveSourceEvent),
    ) -> Result<(), PipelineError> {
        follow_source(&*self.log, run, arriving, stop, tell)
    }

    /// Writes the records that a source could not read, with the reasons.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn put_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), PipelineError> {
        Ok(self.log.append_dead_letters(letters)?)
    }

    /// Deletes a turn for good: no version of it comes back, and if it is put later, it is not kept. No answer contains
    /// it once the memory reflects the deletion; see [`Self::wait_for`].
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn forget(&self, bank: &Bank, turn: &str) -> Result<DurableDeletion, PipelineError> {
        self.forget_all(bank, std::iter::once(turn.to_owned()))
    }

    /// Deletes turns of a bank as one operation, as [`Self::forget`]. Repeating it is harmless.
    ///
    /// # Errors
    /// As [`Self::put`], [`PipelineError::Held`] if a hold covers the bank, and [`PipelineError::Forget`] if the key
    /// file cannot be read or the ledger cannot be written.
    pub fn forget_all(
        &self,
        bank: &Bank,
        turns: impl Iterator<Item = String>,
    ) -> Result<DurableDeletion, PipelineError> {
        erasure::forget_turns(&*self.log, &self.forget, bank, turns)
    }

    /// Fails if a hold covers one of these turns, as [`Self::forget`] does. [`Self::put`] does not check this: a deletion that a
    /// platform sends is accepted.
    ///
    /// # Errors
    /// [`PipelineError::Held`], and [`PipelineError::Log`].
    pub fn check_holds(&self, bank: &Bank, turns: &[String]) -> Result<(), PipelineError> {
        erasure::check_holds(&*self.log, &self.forget, bank, turns)
    }

    /// Fails where [`Self::forget`] of these turns would, before anything is deleted.
    ///
    /// # Errors
    /// As [`Self::check_holds`], and [`PipelineError::Forget`] if the key file cannot be read.
    pub fn check_deletion(&self, bank: &Bank, turns: &[String]) -> Result<(), PipelineError> {
        erasure::check_key(&self.forget)?;
        self.check_holds(bank, turns)
    }

    /// The turns of a bank that a selector selects, in time order, each as last edited. An empty selector selects all
    /// turns. Reads all records of the bank, until no one waits any more.
    ///
    /// # Errors
    /// As [`Self::turns`]; [`PipelineError::Select`] for a selector that [`Selector::check`] refuses.
    pub fn selected_turns(
        &self,
        bank: &Bank,
        select: &Selector,
        cancellation: &Cancellation,
    ) -> Result<Vec<pipeline::StoredTurn>, PipelineError> {
        pipeline::selected_turns(&*self.log, bank, select, cancellation)
    }

    /// The turns of a bank whose ids pass, in time order, each as last edited. Reads all records of the bank, so use it
    /// for lists and not for questions. Stops once no one waits any more.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed; [`PipelineError::Cancelled`] or [`PipelineError::Deadline`] once no one
    /// waits any more.
    pub fn turns(
        &self,
        bank: &Bank,
        passes: &dyn Fn(&str) -> bool,
        cancellation: &Cancellation,
    ) -> Result<Vec<pipeline::StoredTurn>, PipelineError> {
        pipeline::turns_that_pass(&*self.log, bank, &|held| passes(&held.turn.turn), usize::MAX, cancellation)
    }

    /// A turn of a bank, as last edited; see [`Self::turns_by_ids`].
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn turn(&self, bank: &Bank, turn: &str) -> Result<Option<pipeline::StoredTurn>, PipelineError> {
        Ok(self.turns_by_ids(bank, &[turn.to_owned()])?.pop())
    }

    /// The turns of a bank with these ids, in time order, each as last edited. Ids that it does not hold are left out.
    /// Reads the records of these turns, and the bank's records that are new since the last call of this or one of the
    /// next two methods.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn turns_by_ids(&self, bank: &Bank, ids: &[String]) -> Result<Vec<pipeline::StoredTurn>, PipelineError> {
        self.places.by_ids(&*self.log, bank, ids)
    }

    /// What adds the metadata of turns to answers.
    pub fn metadata_reader(&self) -> MetadataReader {
        MetadataReader::of(Arc::clone(&self.log), Arc::clone(&self.places))
    }

    /// A page of the turns of some banks. Reads what [`Self::turns_by_ids`] does.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn page_of_turns(&self, banks: &[Bank], of: TurnPageRequest) -> Result<TurnPage, PipelineError> {
        self.places.page(&*self.log, banks, of)
    }

    /// The number of a bank's turns and their times; `None` if it has no turns. Reads only the records that
    /// [`Self::turns_by_ids`] calls new.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn span_of_turns(&self, bank: &Bank) -> Result<Option<TurnSpan>, PipelineError> {
        self.places.span(&*self.log, bank)
    }

    /// The sessions of a bank whose names begin with `prefix`, from the name `from` on, at most `limit`, by name. Reads
    /// only the records that [`Self::turns_by_ids`] calls new.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn sessions(
        &self,
        bank: &Bank,
        prefix: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<SessionSpan>, PipelineError> {
        self.places.sessions(&*self.log, bank, prefix, from, limit)
    }

    /// As [`Self::sessions`], of a log without an open memory.
    ///
    /// # Errors
    /// As [`Self::sessions`].
    pub fn sessions_of(
        log: &dyn Log,
        bank: &Bank,
        prefix: Option<&str>,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SessionSpan>, PipelineError> {
        TurnLocator::default().sessions(log, bank, prefix.unwrap_or_default(), from.unwrap_or_default(), limit)
    }

    /// What persons of a bank said that lasts, in this memory or in one of its past.
    ///
    /// # Errors
    /// [`PipelineError`] for a memory that is loading, a wrong selector, if the log failed, or if no one waits any more.
    pub fn profile(
        &self,
        replica: &Replica,
        query: &ProfileQuery,
        cancellation: &Cancellation,
    ) -> Result<Profile, PipelineError> {
        profile(&self.places, &*self.log, replica, query, cancellation)
    }

    /// `[forget]` of the pipeline.
    #[must_use]
    pub fn forget_settings(&self) -> &ForgetSettings {
        &self.forget
    }

    /// When the record at an offset of the turns topic was appended, in milliseconds since 1970; `None` without one.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn append_ms(&self, bank: &Bank, offset: u64) -> Result<Option<i64>, PipelineError> {
        pipeline::append_ms(&*self.log, bank, offset)
    }

    /// The versions of a turn, oldest first; empty if the memory does not hold the turn. In a bank in which edits erase
    /// the earlier text, only the last one. Reads the bank's partition of the turns topic, up to the newest version.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub fn versions(
        &self,
        bank: &Bank,
        turn: &str,
        cancellation: &Cancellation,
    ) -> Result<Vec<pipeline::TurnVersion>, PipelineError> {
        let Some(held) = self.turn(bank, turn)? else { return Ok(Vec::new()) };
        let mut versions = pipeline::versions(&*self.log, bank, turn, held.offset, cancellation)?;
        if self.forget.erases_edits_of(bank) {
            versions.drain(..versions.len().saturating_sub(1));
        }
        Ok(versions)
    }

    /// Answers a question. Dropping the future cancels the question.
    ///
    /// # Errors
    /// [`PipelineError`]; [`replica::refusal`] gives its code, and a message that names no other bank.
    pub async fn ask(&self, asked: QueryRequest) -> Result<Evidence, PipelineError> {
        self.queue.ask(asked).await
    }

    /// As [`Self::ask`], for a caller without a runtime.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_and_wait(&self, asked: QueryRequest) -> Result<Evidence, PipelineError> {
        self.queue.ask_and_wait(asked)
    }

    /// Whether this process follows, or will follow, every partition that `written` names.
    pub fn follows(&self, written: &WritePosition) -> bool {
        let partitions = self.log.partitions();
        // The turns topic may have more partitions than the memory. The memory has their positions, too.
        let exists = |partition| partition < partitions || self.replica.position(partition).is_some();
        written.partition_ends().all(|(partition, _)| exists(partition) && self.replica.holds(partition % partitions))
    }

    /// Waits until answers reflect what was written. False if that is not so by `until`.
    #[must_use]
    pub fn wait_for(&self, written: &WritePosition, until: Instant) -> bool {
        self.replica.wait_for(written, until)
    }

    /// The ends of the log now: answers that reflect them reflect everything that is durable.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn end(&self) -> Result<WritePosition, PipelineError> {
        let mut end = WritePosition::nothing(self.log.partitions());
        for partition in 0..self.log.partitions() {
            match self.log.end(Topic::Turns, partition)? {
                0 => {}
                next => end.extend(partition, next),
            }
        }
        Ok(end)
    }

    /// The current ends of the turns of some banks. A read position reaches them, and then lists contain every turn of
    /// these banks that is durable now.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn end_of(&self, banks: &[Bank]) -> Result<WritePosition, PipelineError> {
        let mut end = WritePosition::nothing(self.log.partitions());
        end.name_banks(banks);
        for bank in banks {
            let partition = partition_of(bank, self.log.partitions());
            match self.log.end_of_turns(partition)? {
                0 => {}
                next => end.extend(partition, next),
            }
        }
        Ok(end)
    }

    /// The banks that hold something, in the order of their names.
    #[must_use]
    pub fn banks(&self) -> Vec<Bank> {
        self.banks_where(&|_| true)
    }

    /// The banks that hold something and pass, in the order of their names.
    #[must_use]
    pub fn banks_where(&self, passes: &dyn Fn(&Bank) -> bool) -> Vec<Bank> {
        self.replica.banks(passes).into_iter().collect()
    }

    /// The replica that follows the memory log in this process: counts, units and snapshots.
    #[must_use]
    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// The sender of orders to the extraction. `None` if this memory only follows its log.
    #[must_use]
    pub fn extraction_orders(&self) -> Option<&ExtractionOrderSender> {
        self.background.as_ref().map(BackgroundTasks::orders)
    }

    /// The queue of its questions.
    #[must_use]
    pub fn query_queue(&self) -> &Arc<QueryQueue> {
        &self.queue
    }

    /// The durable log.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// The state of the memory.
    #[must_use]
    pub fn status(&self) -> MemoryStatus {
        let behind = |partition| self.log.read_position(partition).and_then(|at| self.log.lag(partition, at));
        let status = self.background.as_ref().map(BackgroundTasks::status).unwrap_or_default();
        MemoryStatus { behind: (0..self.log.partitions()).filter_map(|p| behind(p).ok()).sum(), ..status }
    }

    /// What retention did since the memory was opened; `None` without a rule, and if another process extracts.
    #[must_use]
    pub fn retention(&self) -> Option<RetentionStatus> {
        self.background.as_ref().and_then(|background| background.status().retention)
    }

    /// What fails in the background, such as an endpoint that does not answer. It is tried again until
    /// it succeeds. Turns that are put meanwhile are durable, and are extracted afterwards.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.status().problem
    }

    /// The number of partitions of the log, which [`logs::WritePosition::parse`] needs.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.log.partitions()
    }

    /// Ends the background threads, writes a snapshot if the pipeline names a place for snapshots, and releases the
    /// directory. Turns that are not extracted yet stay in the log, and are extracted once it is opened again. Dropping
    /// the memory does the same without the snapshot.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`]. Nothing is lost; the next start reads more of the log.
    pub fn close(mut self) -> Result<(), PipelineError> {
        self.background = None;
        self.replica.snapshot().map(drop)
    }
}

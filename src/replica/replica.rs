//! The memory that follows the memory log, and its answers.
//!
//! In: the memory log, questions with a model to embed them. Out: evidence, counts, and the offsets that the memory
//! reflects. Questions may run in parallel, even while it follows the log.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use crossbeam_channel::{Receiver, Sender};

use tokio::sync::watch;

use logs::{Log, ReadProgress, Topic, WritePosition};
use memory::{
    index::{ChoiceChanges, DataflowAnswer, EdgeChanges, ShardError, ShardThreadPool, UnitNeighbourhood},
    recall,
};
use models::embed::{EmbedderPool, QuestionVectorCache};
use snapshots::{AsOf, LogSnapshots, Manifest, RestoredSnapshot, UnreadableMemoryRecord};
use types::{
    config::{LogKind, Pipeline, ShardAssignmentMode},
    model::{
        Bank, BankKey, Evidence, ExplanationQuery, LogPosition, MemoryKey, MemoryRecord, ModelRef, Question, UnitId,
        WindowTurn,
    },
    sync,
    wake_signal::WakeSignal,
};

use super::{
    AnswerStageTimes, Cancellation, PipelineError, WrittenSnapshots,
    asleep_start::{AsleepOffsets, AsleepSnapshot, newest_asleep},
    awake_shard::AwakeShard,
    bank_change_tracker::BankChangeTracker,
    past_memory_cache::{ForgottenTurnCount, PastMemoryCache, PastMemoryKey},
    recollector::{PreparedQuery, Recollector, raise_positions},
    replica_snapshots::ReplicaSnapshots,
    shard::{ReplicaShard, RestoredShard},
    shard_reader::RestoredPartition,
    shard_set::ShardSet,
    snapshot_location::delete_old_snapshots,
    snapshot_recorder::ShardStartState,
    watermarks::TurnWatermarks,
};

/// A memory that follows a log: a shard for each partition that it holds.
pub struct Replica {
    pub(super) pipeline: Pipeline,
    /// Generation of the memory topic.
    generation: u32,
    recollector: Arc<Recollector>,
    pub(super) shards: ShardSet,
    pub(super) recording: ReplicaSnapshots,
    /// Held while a shard is made at run time.
    taking: Mutex<()>,
    past: PastMemoryCache<Self>,
    /// For a memory of the past: how many turns were forgotten since.
    pub(super) since: Option<ForgottenTurnCount>,
    pub(super) reached: TurnWatermarks,
    /// The log from which banks wake; `None` if no bank sleeps.
    pub(super) waking_log: Option<Arc<dyn Log>>,
    /// The banks that are to sleep on request.
    pub(super) sleep_requests: Mutex<BTreeSet<Bank>>,
    /// The changes, for the tasks that watch banks.
    changes: Arc<BankChangeTracker>,
}

/// The state of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardStatus {
    /// Its partition of the memory.
    pub partition: u32,
    /// Whether it has not reached the end of its log yet.
    pub loading: bool,
    /// The offset of the record before which it waits, because only another build reads it.
    pub waits_before: Option<u64>,
    /// The first offset that it has not read.
    pub next_offset: u64,
    /// Its banks that are quarantined.
    pub quarantined_banks: usize,
    /// How often it was rebuilt after a panic.
    pub rebuilds: u64,
}

/// Where a shard is, for a caller that asks one of its banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardLocation {
    /// It answers here.
    Here,
    /// It will answer here.
    Loading {
        /// Its partition of the memory.
        partition: u32,
    },
    /// Another process has it.
    Elsewhere {
        /// Its partition of the memory.
        partition: u32,
    },
}

/// Receives the turns and the extractor of a restored record; `None` if the record was removed.
pub type RestoredTurnsHandler<'b> = &'b mut dyn FnMut(&MemoryKey, Option<(Vec<WindowTurn>, &str)>);

/// How a memory is opened.
pub struct ReplicaOptions<'b> {
    /// Which partitions it holds from the beginning: all of them, or none before [`Replica::assign`].
    pub hold: ShardAssignmentMode,
    /// Receives every change of the graph's edges.
    pub edges: Option<Sender<EdgeChanges>>,
    /// Whether to write snapshots, if the pipeline names a place for them.
    pub record: bool,
    /// The model that embeds the questions, if known: a memory that has vectors of it accepts no others.
    pub asks: Option<ModelRef>,
    /// The log from which banks wake, if the pipeline has them sleep and the caller calls [`Replica::sleep_unused`].
    pub waking_log: Option<Arc<dyn Log>>,
    /// Receives the turns of each restored record, and the removals since.
    pub turns: Option<RestoredTurnsHandler<'b>>,
    /// Receives the number of snapshot bytes that have been read, and the total.
    pub progress: &'b mut dyn FnMut(u64, u64),
}

impl Replica {
    /// A memory restored from the newest snapshot, if there is one; it continues from there.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] when its threads cannot be started, [`PipelineError::Snapshot`]
    /// when the place cannot be read, or its snapshots are of another log,
    /// [`PipelineError::Llm`] when the language model that the pipeline names cannot be used.
    pub fn open(pipeline: &Pipeline, log: &dyn Log, options: ReplicaOptions<'_>) -> Result<Self, PipelineError> {
        let ReplicaOptions { hold, edges, record, asks, waking_log, turns, progress } = options;
        let place = &pipeline.snapshot.directory;
        let record = record && !place.is_empty();
        let threads = ShardThreadPool::start(pipeline.memory.workers).map_err(PipelineError::Thread)?;
        let mut shards =
            ShardSet::new(pipeline, log.partitions(), threads, edges, Arc::clone(log.news()), record, asks);
        let waking_log = waking_log.filter(|_| pipeline.memory.has_sleep());
        if waking_log.is_some() {
            shards = shards.with_sleep();
        }
        let recording = ReplicaSnapshots::open(pipeline, log, record)?;
        let recollector = Arc::new(Recollector::open(pipeline)?);
        let replica = Self { waking_log, ..Self::new(pipeline, log.generation(), shards, recording, recollector) };
        if hold == ShardAssignmentMode::Assigned {
            return Ok(replica);
        }
        for partition in 0..log.partitions() {
            replica.shards.put(replica.shards.new_shard(partition)?);
        }
        let Some(snapshots) = replica.recording.snapshots() else { return Ok(replica) };
        let (mut found, mut bytes) = (Vec::new(), 0);
        for partition in 0..log.partitions() {
            let (seen, mut of_shard) = (snapshots.newest_id(partition)?, 0);
            let mut read = |done, total| {
                of_shard = total;
                progress(bytes + done, bytes + total);
            };
            let (restored, offsets) = replica.newest(log, snapshots, partition, turns.is_some(), &mut read)?;
            bytes += of_shard;
            found.push((ShardStartState { partition, seen, restored }, offsets));
        }
        let brought = replica.restore(log, &found)?;
        for (of_shard, _) in &found {
            if let Some(shard) = replica.shards.get(of_shard.partition) {
                replica.recording.begin(&shard, of_shard, brought.get(&of_shard.partition))?;
            }
        }
        if let Some(turns) = turns {
            let records = found.into_iter().filter_map(|(of, _)| of.restored).flat_map(|restored| restored.records);
            for record in records.filter(|record| record.names.is_none()) {
                turns(&record.key, Some((record.window_turns, record.extractor.as_str())));
            }
            let removed = brought.values().filter_map(|shard| shard.removed.as_ref());
            removed.flat_map(|(update, _)| &update.records).for_each(|(key, _)| turns(key, None));
        }
        Ok(replica)
    }

    fn new(
        pipeline: &Pipeline,
        generation: u32,
        shards: ShardSet,
        recording: ReplicaSnapshots,
        recollector: Arc<Recollector>,
    ) -> Self {
        Self {
            recollector,
            shards,
            recording,
            taking: Mutex::default(),
            past: PastMemoryCache::default(),
            since: None,
            reached: TurnWatermarks::default(),
            waking_log: None,
            sleep_requests: Mutex::default(),
            changes: Arc::default(),
            pipeline: pipeline.clone(),
            generation,
        }
    }

    /// Loads the reranker, if the pipeline names one: otherwise the first question does.
    ///
    /// # Errors
    /// [`PipelineError::Rerank`] if its files are missing or damaged.
    pub fn open_reranker(&self) -> Result<(), PipelineError> {
        self.recollector.reranker(&self.pipeline)?;
        Ok(())
    }

    /// Loads snapshots into the shards, as many at once as there are threads.
    fn restore(
        &self,
        log: &dyn Log,
        found: &[(ShardStartState, AsleepOffsets)],
    ) -> Result<BTreeMap<u32, RestoredShard>, PipelineError> {
        let next = AtomicUsize::new(0);
        let restore_some = || {
            let mut brought = Vec::new();
            while let Some((ShardStartState { partition, restored, .. }, offsets)) =
                found.get(next.fetch_add(1, Ordering::Relaxed))
            {
                if let (Some(shard), Some(restored)) = (self.shards.get(*partition), restored) {
                    brought.push((*partition, self.restore_shard(log, &shard, restored, offsets)?));
                }
            }
            Ok::<_, PipelineError>(brought)
        };
        let brought = std::thread::scope(|scope| {
            let running: Vec<_> = (0..self.pipeline.memory.workers).map(|_| scope.spawn(restore_some)).collect();
            let stopped = || PipelineError::from(ShardError::Stopped("a restore panicked".to_owned()));
            let ended = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(stopped())));
            ended.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(brought.into_iter().flatten().collect())
    }

    /// The newest snapshot of a partition, and of the banks that stay asleep, where their records are.
    fn newest(
        &self,
        log: &dyn Log,
        snapshots: &LogSnapshots,
        partition: u32,
        window_turns: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Option<RestoredSnapshot>, AsleepOffsets), PipelineError> {
        if self.waking_log.is_some()
            && let Some(AsleepSnapshot { restored, offsets }) =
                newest_asleep(&self.pipeline, log, snapshots, partition, window_turns, progress)?
        {
            return Ok((Some(restored), offsets));
        }
        let warn = &mut |problem: &str| log_events::snapshot_not_restored(partition, problem);
        Ok((snapshots.newest(partition, window_turns, warn, progress)?, AsleepOffsets::new()))
    }

    /// Loads a snapshot into a shard.
    fn restore_shard(
        &self,
        log: &dyn Log,
        shard: &ReplicaShard,
        restored: &RestoredSnapshot,
        offsets: &AsleepOffsets,
    ) -> Result<RestoredShard, PipelineError> {
        let (partition, manifest) = (shard.partition, &restored.manifest);
        let mut covers: BTreeMap<u32, ReadProgress> =
            manifest.covers.iter().map(|(partition, next)| (*partition, (*next).into())).collect();
        // The position in an embedded log also covers input that changed no record.
        let at = manifest.reached.iter().find(|at| at.partition == partition);
        if self.pipeline.log.kind == LogKind::Embedded
            && let Some(at) = at
            && log.end(Topic::Memory, partition)? == at.next_offset
        {
            covers.insert(partition, log.progress(partition)?);
        }
        let snapshot = RestoredPartition { restored, covers, offsets };
        shard.restore(&snapshot)?;
        let brought = shard.check_restored(log, &self.pipeline.snapshot.directory, &snapshot)?;
        self.reached.extend(snapshot.covers);
        Ok(brought)
    }

    /// Takes a partition at run time: an empty shard, restored from its newest snapshot if there is one.
    /// [`Self::follow`] loads the rest; until then, questions to its banks wait.
    ///
    /// # Errors
    /// As [`Self::open`]. The partition is then either not held, or unchanged.
    pub fn take(&self, log: &dyn Log, partition: u32) -> Result<(), PipelineError> {
        let _taking = sync::lock(&self.taking);
        let shard = self.shards.new_shard(partition)?;
        if let Some(snapshots) = self.recording.snapshots() {
            if let Some(before) = self.shards.get(partition) {
                self.recording.hand_over(&before);
            }
            let seen = snapshots.newest_id(partition)?;
            let (restored, offsets) = self.newest(log, snapshots, partition, false, &mut |_, _| {})?;
            let restore = |restored| self.restore_shard(log, &shard, restored, &offsets);
            let brought = restored.as_ref().map(restore).transpose()?;
            self.recording.begin(&shard, &ShardStartState { partition, seen, restored }, brought.as_ref())?;
        }
        self.shards.put(shard);
        self.changes.note_lost(partition);
        Ok(())
    }

    /// Leaves a partition: its shard is dropped with everything it holds, once its last question has ended.
    pub fn leave(&self, partition: u32) {
        let _taking = sync::lock(&self.taking);
        if let Some(shard) = self.shards.remove(partition) {
            self.recording.end(&shard);
            self.reached.forget(partition);
            self.changes.note_lost(partition);
        }
    }

    /// Makes the shard of a partition panic, for tests; false if it is not held here.
    #[doc(hidden)]
    pub fn panic_shard(&self, partition: u32) -> bool {
        let shard = self.shards.get(partition);
        shard.inspect(|shard| shard.memory.panic()).is_some()
    }

    /// Whether the partition can be loaded now without waiting for earlier loads. When that becomes true again, the
    /// signal [`Log::news`] of the log with which the memory was opened is raised.
    #[must_use]
    pub fn has_room(&self, partition: u32) -> bool {
        self.shards.get(partition).is_none_or(|shard| shard.memory.has_room())
    }

    /// Notes partitions that a group has assigned to this process, and returns at once: questions to
    /// their banks wait until [`Self::take`] and [`Self::follow`] have loaded them. If `replaces_all`, these
    /// partitions replace all earlier ones.
    pub fn assign(&self, partitions: &[u32], replaces_all: bool) {
        let known = partitions.iter().filter(|partition| **partition < self.shards.partitions());
        self.shards.assign(|assigned| {
            if replaces_all {
                assigned.clear();
            }
            assigned.extend(known);
        });
        if replaces_all {
            self.record_no_more(&self.shards.revoked());
        }
    }

    /// Notes partitions that a group has revoked; they are answered until [`Self::leave`], and another
    /// process may write their snapshots at once.
    pub fn revoke(&self, partitions: &[u32]) {
        self.shards.assign(|assigned| assigned.retain(|partition| !partitions.contains(partition)));
        self.record_no_more(partitions);
    }

    fn record_no_more(&self, partitions: &[u32]) {
        let held = partitions.iter().filter_map(|partition| self.shards.get(*partition));
        held.for_each(|shard| self.recording.end(&shard));
    }

    /// Partitions that a group has assigned to this process.
    #[must_use]
    pub fn assigned(&self) -> Vec<u32> {
        self.shards.assigned()
    }

    /// Whether a partition is held, or assigned.
    #[must_use]
    pub fn holds(&self, partition: u32) -> bool {
        self.shards.get(partition).is_some() || self.shards.is_awaited(partition)
    }

    /// Where a bank's shard is.
    #[must_use]
    pub fn place_of(&self, bank: &Bank) -> ShardLocation {
        let partition = self.shards.partition_of(bank);
        match self.shards.get(partition) {
            Some(shard) if !shard.is_loading() || shard.memory.is_stopped() => ShardLocation::Here,
            None if !self.shards.is_awaited(partition) => ShardLocation::Elsewhere { partition },
            _ => ShardLocation::Loading { partition },
        }
    }

    /// Partitions that are assigned and not taken yet.
    #[must_use]
    pub fn awaited(&self) -> Vec<u32> {
        self.shards.awaited().unwrap_or_default()
    }

    /// Partitions that answer nothing yet: those that are loading, and those that are assigned and not
    /// taken.
    #[must_use]
    pub fn loading(&self) -> Vec<u32> {
        let loading = |shard: &Arc<ReplicaShard>| shard.is_loading() && !shard.memory.is_stopped();
        let held = self.shards.all().into_iter().filter(loading).map(|shard| shard.partition);
        held.chain(self.awaited()).collect()
    }

    /// Partitions that are held and were revoked.
    #[must_use]
    pub fn revoked(&self) -> Vec<u32> {
        self.shards.revoked()
    }

    /// Whether every partition that this process should hold is loaded, except for shards that have panicked. `hold` is
    /// the one in [`ReplicaOptions`].
    #[must_use]
    pub fn is_loaded(&self, hold: ShardAssignmentMode) -> bool {
        let awaits =
            hold == ShardAssignmentMode::Assigned && self.shards.awaited().is_none_or(|awaited| !awaited.is_empty());
        !awaits && self.shards.all().iter().all(|shard| !shard.is_loading() || shard.memory.is_stopped())
    }

    /// Whether a bank's shard is loading, or will be, or the bank wakes: its questions then wait in the query queue.
    #[must_use]
    pub fn is_loading(&self, bank: &Bank) -> bool {
        match self.shards.of(bank) {
            Ok(shard) if shard.memory.is_stopped() => false,
            Ok(shard) => shard.is_loading() || shard.sleep.as_ref().is_some_and(|sleep| sleep.is_moving(bank.key())),
            Err(_) => self.shards.is_awaited(self.shards.partition_of(bank)),
        }
    }

    /// Whether any question can be answered, which means that not all of the shards have panicked.
    #[must_use]
    pub fn can_answer(&self) -> bool {
        let shards = self.shards.all();
        shards.is_empty() || shards.iter().any(|shard| !shard.memory.is_stopped())
    }

    /// The state of each shard, by partition.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardStatus> {
        let status = |shard: Arc<ReplicaShard>| ShardStatus {
            partition: shard.partition,
            loading: shard.is_loading(),
            waits_before: shard.waits_before(),
            next_offset: shard.next(),
            quarantined_banks: sync::read(&shard.held).quarantined_banks(),
            rebuilds: self.shards.rebuilds(shard.partition),
        };
        self.shards.all().into_iter().map(status).collect()
    }

    /// Reads the next records of a memory partition; false when there are none, or it is not held.
    /// `each` gets every record, with the offset after it. A shard that has panicked is rebuilt, from the newest
    /// snapshot or the start of the log.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] before a record of a newer schema or with an unreadable key: the memory keeps
    /// answering from the state before that record, and a later call tries again. [`PipelineError::Memory`] during the
    /// pause before a shard that keeps panicking is rebuilt; the others are not affected.
    pub fn follow(
        &self,
        log: &dyn Log,
        partition: u32,
        mut each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<bool, PipelineError> {
        let Some(mut shard) = self.shards.get(partition) else { return Ok(false) };
        if shard.memory.is_stopped() {
            if !self.shards.try_rebuild(partition) {
                return Err(ShardError::Stopped("it has panicked, and is rebuilt after a pause".to_owned()).into());
            }
            self.take(log, partition)?;
            self.shards.note_rebuilt(partition);
            let Some(another) = self.shards.get(partition) else { return Ok(false) };
            shard = another;
        }
        // In a directory the start reads the log, because extraction needs to know for which banks something is left.
        if shard.is_loading() && log.shared().is_some() && self.begins_asleep(log) {
            match shard.read_asleep(log) {
                Ok(true) => return Ok(true),
                // Before a record that waits, or is replaced by a later one, what follows is loaded.
                Ok(false) | Err(PipelineError::Waits { .. }) => drop(self.leave_asleep(log, &shard)?),
                Err(error) => return Err(error),
            }
        }
        let record = |read, choices: &Receiver<ChoiceChanges>| self.recording.take(&shard, read, choices);
        let mut watched = BTreeSet::new();
        let noted = |key: &MemoryKey, record: Option<&MemoryRecord>, next_offset| {
            if self.changes.note(&key.bank, next_offset) {
                let covered = self.position_of(partition, &key.bank).unwrap_or_default();
                watched.insert(key.bank.clone());
                record.into_iter().for_each(|record| self.changes.keep(&key.bank, record, next_offset, covered));
            }
            each(key, record, next_offset);
        };
        let read = shard.follow(log, noted, record);
        if shard.sleep.is_some() && !matches!(read, Ok(None)) {
            // It may have woken a bank whose questions wait in the query queue.
            self.reached.news().raise();
        }
        if matches!(read, Ok(None) | Err(PipelineError::Waits { .. })) {
            shard.set_loaded();
        }
        let Some(covers) = read? else { return Ok(false) };
        if !covers.is_empty() {
            self.reached.extend(covers);
        }
        self.changes.note_loaded(partition, watched);
        Ok(true)
    }

    /// The changes to the banks that are watched.
    #[must_use]
    pub fn changes(&self) -> &Arc<BankChangeTracker> {
        &self.changes
    }

    /// How far a bank's partition was read: every question from now on reflects at least this. Empty if the partition
    /// is not held.
    #[must_use]
    pub fn read_to(&self, bank: &Bank) -> Vec<LogPosition> {
        let partition = self.shards.partition_of(bank);
        let Some(shard) = self.shards.get(partition) else { return Vec::new() };
        let position = |topic: &str, next_offset| LogPosition { topic: topic.to_owned(), partition, next_offset };
        let turns = self.position_of(partition, bank).map(|next| position("turns", next));
        std::iter::once(position("memory", shard.next())).chain(turns).collect()
    }

    /// The signal that is raised when the memory reflects more turns, or holds another partition.
    #[must_use]
    pub fn news(&self) -> &Arc<WakeSignal> {
        self.reached.news()
    }

    /// As [`Self::news`], for async tasks.
    #[must_use]
    pub fn subscribe_watermarks(&self) -> watch::Receiver<()> {
        self.reached.subscribe()
    }

    /// Waits until the memory reflects what was written; false on timeout.
    pub fn wait_for(&self, written: &WritePosition, until: Instant) -> bool {
        self.reached.wait_for(written, until)
    }

    /// Recollects evidence for a question; texts whose vectors are `kept` are not embedded, and a question that keeps
    /// vectors is not reranked. `times` receives how long its stages took. The timeouts of the language model and the
    /// reranker end before the deadline, if any, so that there is an answer without them; no text is embedded and no
    /// hop begins after the deadline.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown or quarantined bank, one that is loading or an empty question, or when recall
    /// or the memory fails.
    pub fn ask(
        &self,
        question: &Question,
        embedders: &EmbedderPool,
        kept: Option<&QuestionVectorCache>,
        cancellation: &Cancellation,
        times: Option<&AnswerStageTimes>,
    ) -> Result<Evidence, PipelineError> {
        // Before it is asked: its answer reflects at least this, though other banks of the partition may be behind.
        let reflected = self.read_to(&question.bank);
        let prepared = self.prepare(question, embedders, kept, cancellation, times)?;
        let mut found = prepared.recollect().map_err(|error| self.recall_failure(&prepared, error))?;
        let rounds = found.trace.rounds.iter_mut().map(|round| &mut round.reflects);
        rounds.chain([&mut found.reflects]).for_each(|of| raise_positions(of, &reflected));
        Ok(found)
    }

    /// The answer of a bank that holds nothing, as of these positions.
    ///
    /// # Errors
    /// [`PipelineError::Recall`] if the question cannot be asked of any bank.
    pub fn empty_evidence(&self, question: &Question, reflects: Vec<LogPosition>) -> Result<Evidence, PipelineError> {
        Ok(recall::empty_bank_evidence(question, &self.pipeline.recall, reflects)?)
    }

    /// Explains what the answer to a question does with a turn, from its unit on; otherwise as [`Self::ask`].
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn explain(
        &self,
        question: &Question,
        subject: &ExplanationQuery,
        embedders: &EmbedderPool,
        cancellation: &Cancellation,
    ) -> Result<recall::RecallExplanation, PipelineError> {
        let prepared = self.prepare(question, embedders, None, cancellation, None)?;
        prepared.explain(subject).map_err(|error| self.recall_failure(&prepared, error))
    }

    /// Prepares a question with its shard and its models, once its bank can answer.
    fn prepare<'a>(
        &'a self,
        question: &'a Question,
        embedders: &'a EmbedderPool,
        kept: Option<&'a QuestionVectorCache>,
        cancellation: &'a Cancellation,
        times: Option<&'a AnswerStageTimes>,
    ) -> Result<PreparedQuery<'a>, PipelineError> {
        let shard = self.shards.of(&question.bank)?;
        // The shard may have panicked since the query queue saw that it was loaded.
        if shard.is_loading() && !shard.memory.is_stopped() {
            return Err(PipelineError::Loading { bank: question.bank.clone(), partition: shard.partition });
        }
        let shard = self.readable(shard, &question.bank, Some(cancellation))?;
        check_models(sync::read(&shard.held).model(), Some(embedders.model()?))?;
        // A followed question is asked again with every change: it keeps its vectors, and is not reranked.
        let reranker = if kept.is_none() { self.recollector.reranker(&self.pipeline)? } else { None };
        let (pipeline, llm) = (&self.pipeline, self.recollector.llm());
        Ok(PreparedQuery { question, pipeline, shard, embedders, kept, llm, reranker, cancellation, times })
    }

    /// Why a question failed. If its shard stopped meanwhile, the question can be asked again, unless no shard is left.
    fn recall_failure(&self, prepared: &PreparedQuery<'_>, error: recall::RecallError) -> PipelineError {
        let PreparedQuery { question, shard, .. } = prepared;
        if shard.memory.is_stopped() && self.shards.all().iter().any(|other| !other.memory.is_stopped()) {
            return PipelineError::Loading { bank: question.bank.clone(), partition: shard.partition };
        }
        error.into()
    }

    /// A unit of a bank, with the units that its edges lead to; `None` if it is not in the bank.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown or quarantined bank, and one that is loading.
    pub fn unit(&self, bank: &Bank, id: UnitId) -> Result<DataflowAnswer<Option<UnitNeighbourhood>>, PipelineError> {
        Ok(self.shard_to_show(bank)?.memory.unit(bank.key(), id)?)
    }

    /// The shard of a bank, if the bank can be shown.
    pub(super) fn shard_to_show(&self, bank: &Bank) -> Result<AwakeShard, PipelineError> {
        let shard = self.shards.of(bank)?;
        if shard.is_loading() {
            return Err(PipelineError::Loading { bank: bank.clone(), partition: shard.partition });
        }
        self.readable(shard, bank, None)
    }

    /// A bank's memory as of the last recorded read of its log at or before a point of the past: a
    /// separate memory, which follows no log. Its evidence states that read's offset.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] when no snapshots were written then, or their history is shorter.
    pub fn past(&self, bank: &Bank, at: AsOf) -> Result<Arc<Self>, PipelineError> {
        let (snapshots, partition, purged) = self.recording.history(&self.shards, bank, &[at])?;
        let (offset, at_ms) = snapshots.point(partition, at)?;
        let point = PastMemoryKey { bank: bank.clone(), partition, offset, purged };
        self.past.memory(&point, || {
            let restored = snapshots.as_of(bank, partition, point.offset)?;
            Ok(Arc::new(self.past_memory(partition, at_ms, &restored)?))
        })
    }

    /// A memory of one partition that follows no log, as of a time.
    fn past_memory(&self, partition: u32, at_ms: i64, restored: &RestoredSnapshot) -> Result<Self, PipelineError> {
        let threads = Arc::clone(self.shards.threads());
        let shards =
            ShardSet::new(&self.pipeline, self.shards.partitions(), threads, None, Arc::default(), false, None);
        let (recording, recollector) = (ReplicaSnapshots::none(&self.pipeline), Arc::clone(&self.recollector));
        let mut memory = Self::new(&self.pipeline, self.generation, shards, recording, recollector);
        memory.since = Some(ForgottenTurnCount::at(at_ms));
        let shard = memory.shards.new_shard(partition)?;
        shard.restore(&RestoredPartition { restored, covers: BTreeMap::new(), offsets: &AsleepOffsets::new() })?;
        shard.set_loaded();
        memory.shards.put(shard);
        Ok(memory)
    }

    /// Writes a snapshot of each shard that has changed since its last one and whose snapshots no other process writes;
    /// `None` when there is no such shard. Returns the newest snapshot of every shard whose snapshots this process
    /// writes.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] of the first shard that failed; the others are written, and the memory
    /// keeps answering.
    pub fn snapshot(&self) -> Result<Option<WrittenSnapshots>, PipelineError> {
        self.recording.write(&self.shards, false)
    }

    /// Deletes the snapshots of the memory before each re-embedding.
    pub fn delete_old_snapshots(&self) -> Result<(), PipelineError> {
        Ok(delete_old_snapshots(&self.pipeline, self.shards.partitions(), self.generation)?)
    }

    /// As [`Self::snapshot`], on a person's request. If another process has claimed a shard's snapshots but has written
    /// none since this process began, this process claims them.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn snapshot_on_request(&self) -> Result<Option<WrittenSnapshots>, PipelineError> {
        self.recording.write(&self.shards, true)
    }

    /// The newest snapshot of each shard; `None` if the pipeline names no place.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] if the place cannot be read.
    pub fn snapshots(&self) -> Result<Option<Vec<Manifest>>, PipelineError> {
        self.recording.newest(self.shards.partitions())
    }

    /// How many shards are held here whose snapshots another process writes, as of the last snapshot.
    #[must_use]
    pub fn written_elsewhere(&self) -> usize {
        self.recording.written_elsewhere()
    }

    /// Takes again the shards that are no longer recorded because another process wrote their snapshots or the place
    /// was unavailable for too long, once no other process writes their snapshots. From then on, this process writes
    /// them. Returns their number.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_over(&self, log: &dyn Log) -> Result<usize, PipelineError> {
        let partitions = self.recording.to_take_over(&self.shards)?;
        partitions.iter().try_for_each(|partition| self.take(log, *partition))?;
        Ok(partitions.len())
    }

    /// Waits until questions see every record that was read, and its edges are sent. A shard that has panicked is
    /// skipped.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] when no shard is left.
    pub fn wait_until_visible(&self) -> Result<(), PipelineError> {
        let waits: Vec<_> = self.shards.all().iter().map(|shard| shard.memory.wait_for_loads().map(|_| ())).collect();
        if waits.iter().any(Result::is_ok) { Ok(()) } else { Ok(waits.into_iter().collect::<Result<(), _>>()?) }
    }

    /// How many banks are quarantined.
    #[must_use]
    pub fn quarantined_banks(&self) -> usize {
        self.shards.all().iter().map(|shard| sync::read(&shard.held).quarantined_banks()).sum()
    }

    /// The live records of a partition that cannot be read.
    #[must_use]
    pub fn unreadable(&self, partition: u32) -> Vec<UnreadableMemoryRecord> {
        let shard = self.shards.get(partition);
        shard.map(|shard| sync::read(&shard.held).unreadable().cloned().collect()).unwrap_or_default()
    }

    /// The banks that hold something and for which `passes` is true, by name.
    #[must_use]
    pub fn banks(&self, passes: &dyn Fn(&Bank) -> bool) -> BTreeSet<Bank> {
        let mut banks = BTreeSet::new();
        for shard in self.shards.all() {
            banks.extend(sync::read(&shard.held).all_banks().filter(|bank| passes(bank)).cloned());
        }
        banks
    }

    /// The name of a bank that has or had a live record.
    #[must_use]
    pub fn bank(&self, key: BankKey) -> Option<Bank> {
        self.shards.bank(key)
    }

    /// The model of the log's vectors.
    pub fn model(&self) -> Option<ModelRef> {
        self.shards.model()
    }

    /// Fails when the log's vectors are of another model.
    pub fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        check_models(self.model().as_ref(), expected)
    }

    /// Fails for a bank that holds nothing.
    pub fn check_bank(&self, bank: &Bank) -> Result<(), PipelineError> {
        self.shards.check_bank(&*self.shards.of(bank)?, bank)
    }
}

fn check_models(found: Option<&ModelRef>, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
    match (found, expected) {
        (Some(found), Some(expected)) if found != expected => Err(PipelineError::other_model(found, expected)),
        _ => Ok(()),
    }
}

//! The memory that follows the memory log, and its answers.
//!
//! In: the memory log, questions with a model to embed them. Out: evidence, counts, and the
//! offsets that the memory reflects. Questions may run in parallel, also while it follows the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender};

use crate::{
    log::{Log, Topic, memory_name},
    snapshot::{AsOf, BankDiff, LogRead, Restored, SnapshotError, Snapshots, UnreadableRecord},
};
use heart::{
    memory::{
        Answered, Census, CensusProbe, ChoiceChanges, EdgeChanges, Footprint, MemoryError, MemoryHandle, MemoryThreads,
        UnitWithNeighbours,
    },
    recall::{self, Planner, RulesPlanner, Unplanned},
};
use models::{
    embed::{EmbedderPool, KeptVectors},
    llm::{Llm, LlmPlanner},
};
use nouns::{
    config::{Hold, LLM, LogKind, Pipeline},
    model::{
        Bank, BankKey, Evidence, MemoryKey, MemoryRecord, ModelRef, Position, Question, SCHEMA_VERSION, UnitId,
        WindowTurn,
    },
    sync,
};

use super::{
    Cancellation, PipelineError,
    changes::Changes,
    past::{PastMemories, PastPoint, deletes},
    reader::RestoredPartition,
    recall_memory::AskedMemory,
    recorder::{Found, Recorder},
    shard::{RestoredShard, Shard},
    shards::Shards,
};

/// A memory that follows a log: a shard for each partition that it holds.
pub struct Answerer {
    pub(super) pipeline: Pipeline,
    /// Generation of the memory topic.
    generation: u32,
    /// Plans, or reads cues, where the pipeline names it for that.
    llm: Option<Arc<Llm>>,
    pub(super) shards: Shards,
    /// Where snapshots are kept.
    pub(super) snapshots: Option<Arc<Snapshots>>,
    pub(super) recorder: Option<Recorder>,
    /// A name that no other process has that writes snapshots.
    pub(super) run: String,
    /// The shards whose snapshots another process writes, when they were last written.
    pub(super) written_elsewhere: AtomicUsize,
    /// Held while a shard is made at run time.
    taking: Mutex<()>,
    pub(super) past: PastMemories<Self>,
    /// By turns partition: the first offset that the memory does not reflect.
    reached: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
    /// For those who watch banks.
    changes: Arc<Changes>,
}

/// Most time before a question's deadline that is kept for the rules.
const RULES_TIME: Duration = Duration::from_secs(1);

/// How a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardStatus {
    /// Its partition of the memory.
    pub partition: u32,
    /// Whether it has not reached the end of its log yet.
    pub loading: bool,
    /// Whether it waits before a record that only another build reads.
    pub waiting: bool,
    /// The first offset that it has not read.
    pub next_offset: u64,
    /// Its banks that are quarantined.
    pub quarantined_banks: usize,
    /// How often it was made again after a panic.
    pub rebuilds: u64,
}

/// Where a shard is, for who asks one of its banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardPlace {
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

/// Takes the turns and the extractor of a restored record; None where the record was removed.
pub type OnRestoredTurns<'b> = &'b mut dyn FnMut(&MemoryKey, Option<(Vec<WindowTurn>, &str)>);

/// How a memory is opened.
pub struct AnswererOptions<'b> {
    /// Which partitions it holds from the beginning: all, or none before [`Answerer::assign`].
    pub hold: Hold,
    /// Receives every change of the graph's edges.
    pub edges: Option<Sender<EdgeChanges>>,
    /// Whether to write snapshots, where the pipeline names a place for them.
    pub record: bool,
    /// Receives the turns of each restored record, and the removals since.
    pub turns: Option<OnRestoredTurns<'b>>,
    /// Receives warnings for the user.
    pub say: &'b mut dyn FnMut(&str),
    /// Receives the bytes of the snapshot that were read, and their total.
    pub progress: &'b mut dyn FnMut(u64, u64),
}

impl Answerer {
    /// A memory restored from the newest snapshot, where there is one; it continues from there.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] when its threads cannot be started, [`PipelineError::Snapshot`]
    /// when the place cannot be read, or its snapshots are of another log,
    /// [`PipelineError::Llm`] when the language model that the pipeline names cannot be used.
    pub fn open(pipeline: &Pipeline, log: &dyn Log, options: AnswererOptions<'_>) -> Result<Self, PipelineError> {
        let AnswererOptions { hold, edges, record, turns, say, progress } = options;
        let place = &pipeline.snapshot.directory;
        let record = record && !place.is_empty();
        let threads = MemoryThreads::start(pipeline.memory.workers).map_err(PipelineError::Thread)?;
        let shards = Shards::new(pipeline, log.partitions(), threads, edges, record);
        let mut answerer = Self::new(pipeline, log.generation(), shards)?;
        if !place.is_empty() {
            answerer.snapshots = Some(Arc::new(snapshots(pipeline, log.partitions(), log.generation())?));
        }
        if record {
            answerer.recorder = Some(Recorder::start().map_err(PipelineError::Thread)?);
        }
        if hold == Hold::Assigned {
            return Ok(answerer);
        }
        for partition in 0..log.partitions() {
            answerer.shards.put(answerer.shards.make(partition)?);
        }
        let Some(snapshots) = &answerer.snapshots else { return Ok(answerer) };
        let (mut found, mut bytes) = (Vec::new(), 0);
        for partition in 0..log.partitions() {
            let (seen, mut of_shard) = (snapshots.newest_id(partition)?, 0);
            let restored = snapshots.newest(partition, turns.is_some(), say, &mut |done, total| {
                of_shard = total;
                progress(bytes + done, bytes + total);
            })?;
            bytes += of_shard;
            found.push(Found { partition, seen, restored });
        }
        let brought = answerer.restore(log, &found)?;
        for of_shard in &found {
            if let Some(shard) = answerer.shards.get(of_shard.partition) {
                answerer.record(&shard, of_shard, brought.get(&of_shard.partition))?;
            }
        }
        if let Some(turns) = turns {
            for record in found.into_iter().filter_map(|of| of.restored).flat_map(|restored| restored.records) {
                turns(&record.key, Some((record.window_turns, record.extractor.as_str())));
            }
            let removed = brought.values().filter_map(|shard| shard.removed.as_ref());
            removed.flat_map(|(update, _)| &update.records).for_each(|(key, _)| turns(key, None));
        }
        Ok(answerer)
    }

    fn new(pipeline: &Pipeline, generation: u32, shards: Shards) -> Result<Self, PipelineError> {
        let asks = [&pipeline.recall.planner, &pipeline.recall.cues_by].iter().any(|by| *by == LLM);
        let llm = if asks { Some(Llm::open(&pipeline.llm, pipeline.responses())?) } else { None };
        llm.as_ref().map_or(Ok(()), |llm| llm.check_key())?;
        Ok(Self {
            llm,
            shards,
            snapshots: None,
            recorder: None,
            run: format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id()),
            written_elsewhere: AtomicUsize::default(),
            taking: Mutex::default(),
            past: PastMemories::default(),
            reached: Mutex::default(),
            moved: Condvar::new(),
            changes: Arc::default(),
            pipeline: pipeline.clone(),
            generation,
        })
    }

    /// Loads snapshots into the shards, as many at once as there are threads.
    fn restore(&self, log: &dyn Log, found: &[Found]) -> Result<BTreeMap<u32, RestoredShard>, PipelineError> {
        let next = AtomicUsize::new(0);
        let restore_some = || {
            let mut brought = Vec::new();
            while let Some(Found { partition, restored, .. }) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let (Some(shard), Some(restored)) = (self.shards.get(*partition), restored) {
                    brought.push((*partition, self.restore_shard(log, &shard, restored)?));
                }
            }
            Ok::<_, PipelineError>(brought)
        };
        let brought = std::thread::scope(|scope| {
            let running: Vec<_> = (0..self.pipeline.memory.workers).map(|_| scope.spawn(restore_some)).collect();
            let stopped = || PipelineError::from(MemoryError::Stopped("a restore panicked".to_owned()));
            let ended = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(stopped())));
            ended.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(brought.into_iter().flatten().collect())
    }

    /// Loads a snapshot into a shard.
    fn restore_shard(&self, log: &dyn Log, shard: &Shard, restored: &Restored) -> Result<RestoredShard, PipelineError> {
        let (partition, manifest) = (shard.partition, &restored.manifest);
        let mut covers: BTreeMap<u32, u64> = manifest.covers.iter().copied().collect();
        // An embedded log also states the position of input that changed no record.
        let at = manifest.reached.iter().find(|at| at.partition == partition);
        if self.pipeline.log.kind == LogKind::Embedded
            && let Some(at) = at
            && log.end(Topic::Memory, partition)? == at.next_offset
        {
            covers.insert(partition, log.read_position(partition)?);
        }
        let snapshot = RestoredPartition { restored, covers };
        shard.restore(&snapshot)?;
        let brought = shard.check_restored(log, &self.pipeline.snapshot.directory, &snapshot)?;
        self.reached().extend(snapshot.covers);
        Ok(brought)
    }

    /// Takes a partition at run time: an empty shard, restored from its newest snapshot where there is
    /// one. It loads the rest with [`Self::follow`]; until then questions to its banks wait.
    ///
    /// # Errors
    /// As [`Self::open`]. The partition is then not held, or as it was.
    pub fn take(&self, log: &dyn Log, partition: u32) -> Result<(), PipelineError> {
        let _taking = sync::lock(&self.taking);
        let shard = self.shards.make(partition)?;
        if let Some(snapshots) = &self.snapshots {
            if let (Some(recorder), Some(before)) = (&self.recorder, self.shards.get(partition)) {
                // What this process recorded is the point at which it goes on recording; where that cannot
                // be written, the log has it.
                drop(recorder.snapshot(before.id, jiff::Timestamp::now().as_millisecond(), self.claim_rule()));
                recorder.end(before.id);
            }
            let seen = snapshots.newest_id(partition)?;
            let restored = snapshots.newest(partition, false, &mut |_| {}, &mut |_, _| {})?;
            let brought = restored.as_ref().map(|restored| self.restore_shard(log, &shard, restored)).transpose()?;
            self.record(&shard, &Found { partition, seen, restored }, brought.as_ref())?;
        }
        self.shards.put(shard);
        self.changes.lost(partition);
        Ok(())
    }

    /// Leaves a partition: its shard is dropped with all that it holds, once nobody asks it any more.
    pub fn leave(&self, partition: u32) {
        let _taking = sync::lock(&self.taking);
        if let Some(shard) = self.shards.remove(partition) {
            if let Some(recorder) = &self.recorder {
                recorder.end(shard.id);
            }
            self.reached().remove(&partition);
            self.moved.notify_all();
            self.changes.lost(partition);
        }
    }

    /// The shard of a partition.
    #[cfg(test)]
    pub(super) fn shard(&self, partition: u32) -> Option<Arc<Shard>> {
        self.shards.get(partition)
    }

    /// Whether a load of the partition would not wait for earlier ones.
    #[must_use]
    pub fn has_room(&self, partition: u32) -> bool {
        self.shards.get(partition).is_none_or(|shard| shard.memory.has_room())
    }

    /// Notes partitions that a group has assigned to this process, and returns at once: questions to
    /// their banks wait until [`Self::take`] and [`Self::follow`] have loaded them. `anew`: it has these
    /// only, whatever it had before.
    pub fn assign(&self, partitions: &[u32], anew: bool) {
        let known = partitions.iter().filter(|partition| **partition < self.shards.partitions());
        self.shards.assign(|assigned| {
            if anew {
                assigned.clear();
            }
            assigned.extend(known);
        });
        if anew {
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
        if let Some(recorder) = &self.recorder {
            let held = partitions.iter().filter_map(|partition| self.shards.get(*partition));
            held.for_each(|shard| recorder.end(shard.id));
        }
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
    pub fn place_of(&self, bank: &Bank) -> ShardPlace {
        let partition = self.shards.partition_of(bank);
        match self.shards.get(partition) {
            Some(shard) if !shard.is_loading() || shard.memory.is_stopped() => ShardPlace::Here,
            None if !self.shards.is_awaited(partition) => ShardPlace::Elsewhere { partition },
            _ => ShardPlace::Loading { partition },
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
        let loading = |shard: &Arc<Shard>| shard.is_loading() && !shard.memory.is_stopped();
        let held = self.shards.all().into_iter().filter(loading).map(|shard| shard.partition);
        held.chain(self.awaited()).collect()
    }

    /// Partitions that are held and were revoked.
    #[must_use]
    pub fn revoked(&self) -> Vec<u32> {
        self.shards.revoked()
    }

    /// Whether every partition that this process should hold is loaded, but for shards that have
    /// panicked. `hold` is that of [`AnswererOptions`].
    #[must_use]
    pub fn is_loaded(&self, hold: Hold) -> bool {
        let awaits = hold == Hold::Assigned && self.shards.awaited().is_none_or(|awaited| !awaited.is_empty());
        !awaits && self.shards.all().iter().all(|shard| !shard.is_loading() || shard.memory.is_stopped())
    }

    /// Whether a bank's shard is loading, or will be: its questions then wait in the front.
    #[must_use]
    pub fn is_loading(&self, bank: &Bank) -> bool {
        match self.shards.of(bank) {
            Ok(shard) => shard.is_loading() && !shard.memory.is_stopped(),
            Err(_) => self.shards.is_awaited(self.shards.partition_of(bank)),
        }
    }

    /// Whether any question can be answered: not every shard that is held has panicked.
    #[must_use]
    pub fn can_answer(&self) -> bool {
        let shards = self.shards.all();
        shards.is_empty() || shards.iter().any(|shard| !shard.memory.is_stopped())
    }

    /// How the shards are, by partition.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardStatus> {
        let status = |shard: Arc<Shard>| ShardStatus {
            partition: shard.partition,
            loading: shard.is_loading(),
            waiting: shard.is_waiting(),
            next_offset: shard.next(),
            quarantined_banks: sync::read(&shard.held).quarantined_banks(),
            rebuilds: self.shards.rebuilds(shard.partition),
        };
        self.shards.all().into_iter().map(status).collect()
    }

    /// Reads the next records of a memory partition; false when there are none, or it is not held.
    /// `each` gets every record, with the offset after it. A shard that has panicked is made again, from
    /// the newest snapshot or the start of the log.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] before a record of a newer schema or with an unreadable key: the memory
    /// keeps answering as of before it, and a later call tries again. [`PipelineError::Memory`] while a
    /// shard that panics again and again is left alone; the others are not affected.
    pub fn follow(
        &self,
        log: &dyn Log,
        partition: u32,
        mut each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<bool, PipelineError> {
        let Some(mut shard) = self.shards.get(partition) else { return Ok(false) };
        if shard.memory.is_stopped() {
            if !self.shards.may_rise(partition) {
                return Err(MemoryError::Stopped("it has panicked, and is made again after a pause".to_owned()).into());
            }
            self.take(log, partition)?;
            self.shards.has_risen(partition);
            let Some(another) = self.shards.get(partition) else { return Ok(false) };
            shard = another;
        }
        let record = |read: LogRead, choices: &Receiver<ChoiceChanges>| {
            if let Some(recorder) = &self.recorder {
                let (next_offset, deletes) = (read.next_offset, deletes(&read));
                recorder.take(shard.id, read, choices);
                self.past.has_read(partition, next_offset, deletes);
            }
        };
        let mut watched = BTreeSet::new();
        let noted = |key: &MemoryKey, record: Option<&MemoryRecord>, next_offset| {
            if self.changes.note(&key.bank, next_offset) {
                watched.insert(key.bank.clone());
            }
            each(key, record, next_offset);
        };
        let read = shard.follow(log, noted, record);
        if matches!(read, Ok(None) | Err(PipelineError::Waits { .. })) {
            shard.set_loaded();
            self.moved.notify_all();
        }
        let Some(covers) = read? else { return Ok(false) };
        if !covers.is_empty() {
            self.reached().extend(covers);
            self.moved.notify_all();
        }
        self.changes.loaded(partition, watched);
        Ok(true)
    }

    /// The first offset of a turns partition that the memory does not reflect, where known.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<u64> {
        self.reached().get(&partition).copied()
    }

    /// The changes of the banks that somebody watches.
    #[must_use]
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// How far a bank's partition was read: a question from now on reflects at least this. Empty where the
    /// partition is not held.
    #[must_use]
    pub fn read_to(&self, bank: &Bank) -> Vec<Position> {
        let partition = self.shards.partition_of(bank);
        let Some(shard) = self.shards.get(partition) else { return Vec::new() };
        let position = |topic: &str, next_offset| Position { topic: topic.to_owned(), partition, next_offset };
        let turns = self.position(partition).map(|next| position("turns", next));
        std::iter::once(position("memory", shard.next())).chain(turns).collect()
    }

    /// Waits until the memory reflects a turns partition up to an offset; false on timeout.
    pub fn wait_for(&self, partition: u32, next_offset: u64, until: Instant) -> bool {
        let mut reached = self.reached();
        loop {
            if reached.get(&partition).is_some_and(|at| *at >= next_offset) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            reached = sync::wait_timeout(&self.moved, reached, left);
        }
    }

    /// Recollects evidence for a question; texts whose vectors are `kept` are not embedded. The language model's timeout ends before the deadline, if
    /// any, so that the rules can answer; no text is embedded and no hop begins after the deadline.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown or quarantined bank, one that is loading or an empty question, or
    /// when a room fails.
    pub fn ask(
        &self,
        question: &Question,
        embedders: &EmbedderPool,
        kept: Option<&KeptVectors>,
        cancellation: &Cancellation,
    ) -> Result<Evidence, PipelineError> {
        let model_ref = embedders.model();
        let shard = self.shards.of(&question.bank)?;
        let loading = || PipelineError::Loading { bank: question.bank.clone(), partition: shard.partition };
        // It panicked after the front had seen that it was loaded.
        if shard.is_loading() && !shard.memory.is_stopped() {
            return Err(loading());
        }
        self.shards.check_bank(&shard, &question.bank)?;
        check_models(sync::read(&shard.held).model(), Some(model_ref))?;
        let rules = RulesPlanner::new(&self.pipeline.model());
        // On a shared log only the extracting process learns of deletions and can evict a response.
        let (settings, keep) = (&self.pipeline.recall, self.pipeline.log.kind == LogKind::Embedded);
        let until = Instant::now() + Duration::from_secs(self.pipeline.llm.question_seconds);
        // The rules need time too, where the model is late.
        let before = |deadline: Instant| {
            let left = deadline.saturating_duration_since(Instant::now());
            deadline.checked_sub((left / 4).min(RULES_TIME)).unwrap_or(deadline)
        };
        let until = cancellation.deadline().map_or(until, |deadline| until.min(before(deadline)));
        let model = self.llm.as_ref().map(|llm| LlmPlanner::new(Arc::clone(llm), rules, settings, until, keep));
        let planner: &dyn Planner = match &model {
            _ if !self.pipeline.recall.planned => &Unplanned(rules),
            Some(model) => model,
            None => &rules,
        };
        let mut embed = |texts: &[&str]| {
            cancellation.check()?;
            let embedded = |texts: &[&str]| embedders.embed_queries(texts);
            kept.map_or_else(|| embedded(texts), |kept| kept.of(texts, embedded)).map_err(Into::into)
        };
        let memory = AskedMemory { memory: &shard.memory, cancellation };
        let found = recall::recollect(&memory, &mut embed, question, planner, &self.pipeline.recall, model_ref);
        found.map_err(|error| {
            if shard.memory.is_stopped() && self.shards.all().iter().any(|other| !other.memory.is_stopped()) {
                return loading();
            }
            error.into()
        })
    }

    /// A unit of a bank, with the units that its edges lead to; none where the bank has not the unit.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown or quarantined bank, and one that is loading.
    pub fn unit(&self, bank: &Bank, id: UnitId) -> Result<Answered<Option<UnitWithNeighbours>>, PipelineError> {
        let shard = self.shards.of(bank)?;
        if shard.is_loading() {
            return Err(PipelineError::Loading { bank: bank.clone(), partition: shard.partition });
        }
        self.shards.check_bank(&shard, bank)?;
        Ok(shard.memory.unit(bank.key(), id)?)
    }

    /// Every part of the question's bank, scored once for each of the settings: for measurements.
    ///
    /// # Errors
    /// [`PipelineError`] for a bank of another instance, or when a room fails.
    pub fn every_part(
        &self,
        question: &Question,
        embed: &mut recall::EmbedTexts<'_>,
        settings: &[nouns::config::RecallSettings],
    ) -> Result<Vec<heart::memory::FamiliarParts>, PipelineError> {
        let shard = self.shards.of(&question.bank)?;
        Ok(recall::every_part(&shard.memory, embed, question, settings)?)
    }

    /// A bank's memory as of the last recorded read of its log at or before a point of the past: a
    /// separate memory, which follows no log. Its evidence states that read's offset.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] when no snapshots were written then, or their history is shorter.
    pub fn past(&self, bank: &Bank, at: AsOf) -> Result<Arc<Self>, PipelineError> {
        let (snapshots, partition, purged) = self.history(bank, &[at])?;
        let offset = snapshots.resolve(partition, at)?;
        let point = PastPoint { bank: bank.clone(), partition, offset, purged };
        self.past.memory(&point, || {
            let restored = snapshots.as_of(bank, partition, point.offset)?;
            Ok(Arc::new(self.past_memory(partition, &restored)?))
        })
    }

    /// A memory of one partition that follows no log.
    fn past_memory(&self, partition: u32, restored: &Restored) -> Result<Self, PipelineError> {
        let threads = Arc::clone(self.shards.threads());
        let shards = Shards::new(&self.pipeline, self.shards.partitions(), threads, None, false);
        let memory = Self::new(&self.pipeline, self.generation, shards)?;
        let shard = memory.shards.make(partition)?;
        shard.restore(&RestoredPartition { restored, covers: BTreeMap::new() })?;
        shard.set_loaded();
        memory.shards.put(shard);
        Ok(memory)
    }

    /// What was added to a bank and removed from it between two points of its past.
    ///
    /// # Errors
    /// As [`Self::past`].
    pub fn diff(&self, bank: &Bank, from: AsOf, to: AsOf) -> Result<BankDiff, PipelineError> {
        let (snapshots, partition, _) = self.history(bank, &[from, to])?;
        let (from, to) = (snapshots.resolve(partition, from)?, snapshots.resolve(partition, to)?);
        Ok(snapshots.diff(bank, partition, from, to)?)
    }

    /// Counts of units and edges and a hash that depends only on the set.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn digest(&self, bank: Option<&Bank>) -> Result<Answered<Census>, PipelineError> {
        let probe = CensusProbe { bank: bank.map(Bank::key), listing: false };
        if let Some(bank) = bank {
            let shard = self.shards.of(bank)?;
            self.shards.check_bank(&shard, bank)?;
            return Ok(shard.memory.census(probe)?);
        }
        self.of_all(|memory| memory.census(probe.clone()), Census::add)
    }

    /// How much room one bank takes in memory, or all of them.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn footprint(&self, bank: Option<&Bank>) -> Result<Answered<Footprint>, PipelineError> {
        if let Some(bank) = bank {
            let shard = self.shards.of(bank)?;
            self.shards.check_bank(&shard, bank)?;
            return Ok(shard.memory.footprint(Some(bank.key()))?);
        }
        self.of_all(|memory| memory.footprint(None), |whole, part| whole.add(&part))
    }

    /// What every shard answers, added up.
    fn of_all<T: Default>(
        &self,
        ask: impl Fn(&MemoryHandle) -> Result<Answered<T>, MemoryError>,
        add: impl Fn(&mut T, T),
    ) -> Result<Answered<T>, PipelineError> {
        let mut whole = Answered { value: T::default(), epoch: 0, reflects: Vec::new() };
        for shard in self.shards.all() {
            let Answered { value, epoch, reflects } = ask(&shard.memory)?;
            add(&mut whole.value, value);
            whole.epoch = whole.epoch.max(epoch);
            whole.reflects.extend(reflects);
        }
        whole.reflects.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        Ok(whole)
    }

    /// Waits until questions see every record that was read, and its edges are handed over. A shard that
    /// has fallen is passed over.
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
    pub fn unreadable(&self, partition: u32) -> Vec<UnreadableRecord> {
        let shard = self.shards.get(partition);
        shard.map(|shard| sync::read(&shard.held).unreadable().cloned().collect()).unwrap_or_default()
    }

    /// The banks that hold something and pass, by name.
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
    pub(in crate::pipeline) fn model(&self) -> Option<ModelRef> {
        self.shards.model()
    }

    /// Fails when the log's vectors are of another model.
    pub(in crate::pipeline) fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        check_models(self.model().as_ref(), expected)
    }

    /// Fails for a bank that holds nothing.
    pub(in crate::pipeline) fn check_bank(&self, bank: &Bank) -> Result<(), PipelineError> {
        self.shards.check_bank(&*self.shards.of(bank)?, bank)
    }

    fn reached(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        sync::lock(&self.reached)
    }
}

/// The snapshots of a generation of the memory: those of the first are in the configured place,
/// those of later ones below it.
pub fn snapshots(pipeline: &Pipeline, partitions: u32, generation: u32) -> Result<Snapshots, SnapshotError> {
    let name = memory_name(generation);
    let mut log = match pipeline.log.kind {
        LogKind::Embedded => "an embedded log".to_owned(),
        LogKind::Kafka => format!("the topic {}.{name}", pipeline.log.kafka.prefix),
    };
    let mut place = pipeline.snapshot.directory.clone();
    if generation > 1 {
        place = format!("{}/{name}", place.trim_end_matches('/'));
        if pipeline.log.kind == LogKind::Embedded {
            log = format!("{name} of an embedded log");
        }
    }
    let settings = serde_json::json!([SCHEMA_VERSION, edge_settings(pipeline)]);
    let settings = blake3::hash(settings.to_string().as_bytes()).to_hex().to_string();
    Snapshots::open(&place, &log, partitions, settings)
}

/// The settings that a bank's edges depend on, besides its units.
pub(in crate::pipeline) fn edge_settings(pipeline: &Pipeline) -> BTreeMap<String, f64> {
    let m = &pipeline.memory;
    let named = [
        ("semantic_edges", m.semantic_edges as f64),
        ("structural_edges", m.structural_edges as f64),
        ("cue_neighbours", m.cue_neighbours as f64),
        ("structural_threshold", m.structural_threshold),
        ("participant_weight", m.participant_weight),
        ("location_weight", m.location_weight),
        ("time_weight", m.time_weight),
        ("time_decay_days", m.time_decay_days),
        ("semantic_threshold", pipeline.model().semantic_threshold),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

fn check_models(found: Option<&ModelRef>, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
    match (found, expected) {
        (Some(found), Some(expected)) if found != expected => Err(PipelineError::other_model(found, expected)),
        _ => Ok(()),
    }
}

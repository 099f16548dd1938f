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

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::{
    config::{Hold, LLM, LogKind, Pipeline},
    embed::EmbedderPool,
    llm::Llm,
    log::{Log, Topic, memory_name, partition_of},
    memory::{Answered, Census, CensusProbe, ChoiceChanges, EdgeChanges, MemoryError, MemoryThreads},
    model::{Bank, BankKey, Evidence, MemoryKey, MemoryRecord, ModelRef, Question, SCHEMA_VERSION, WindowTurn},
    recall::{self, LlmPlanner, Planner, RulesPlanner, Unplanned},
    snapshot::{AsOf, BankDiff, LogRead, Manifest, Restored, SnapshotError, Snapshots},
    sync,
};

use super::{
    Cancellation, PipelineError,
    past::{PastMemories, PastPoint, deletes},
    reader::PartitionOfSnapshot,
    recall_memory::AskedMemory,
    recorder::Recorder,
    shard::{RestoredShard, Shard},
    shards::Shards,
};

/// A memory that follows a log: a shard for each partition that it holds.
pub struct Answerer {
    pipeline: Pipeline,
    /// Generation of the memory topic.
    generation: u32,
    /// Plans, or reads cues, where the pipeline names it for that.
    llm: Option<Arc<Llm>>,
    shards: Shards,
    recorder: Option<Recorder>,
    /// Held while a shard is made at run time.
    taking: Mutex<()>,
    past: PastMemories<Self>,
    /// By turns partition: the first offset that the memory does not reflect.
    reached: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
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
        if hold == Hold::Assigned {
            return Ok(answerer);
        }
        for partition in 0..log.partitions() {
            answerer.shards.put(answerer.shards.make(partition)?);
        }
        if place.is_empty() {
            return Ok(answerer);
        }
        let snapshots = snapshots(pipeline, log.partitions(), log.generation())?;
        let restored = snapshots.newest(turns.is_some(), say, progress)?;
        let brought = match &restored {
            Some(restored) => answerer.restore(log, restored)?,
            None => Vec::new(),
        };
        if record {
            let run = format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
            answerer.record(snapshots, restored.as_ref(), &brought, run)?;
        }
        if let Some(turns) = turns {
            for record in restored.into_iter().flat_map(|restored| restored.records) {
                turns(&record.key, Some((record.window_turns, record.extractor.as_str())));
            }
            let removed = brought.iter().filter_map(|shard| shard.removed.as_ref());
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
            recorder: None,
            taking: Mutex::default(),
            past: PastMemories::default(),
            reached: Mutex::default(),
            moved: Condvar::new(),
            pipeline: pipeline.clone(),
            generation,
        })
    }

    /// Loads a snapshot into the shards, as many at once as there are threads.
    fn restore(&self, log: &dyn Log, restored: &Restored) -> Result<Vec<RestoredShard>, PipelineError> {
        let parts = self.parts_of(log, restored)?;
        let next = AtomicUsize::new(0);
        let restore_some = || {
            let mut brought = Vec::new();
            while let Some((partition, part)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Some(shard) = self.shards.get(*partition) else { continue };
                brought.push(self.restore_shard(log, &shard, part)?);
            }
            Ok::<_, PipelineError>(brought)
        };
        let brought = std::thread::scope(|scope| {
            let running: Vec<_> = (0..self.pipeline.memory.workers).map(|_| scope.spawn(restore_some)).collect();
            let stopped = || PipelineError::from(MemoryError::Stopped("a restore panicked".to_owned()));
            let ended = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(stopped())));
            ended.collect::<Result<Vec<_>, _>>()
        })?;
        for (_, part) in &parts {
            self.reached().extend(part.covers.iter().map(|(turns, next)| (*turns, *next)));
        }
        Ok(brought.into_iter().flatten().collect())
    }

    fn restore_shard(
        &self,
        log: &dyn Log,
        shard: &Shard,
        part: &PartitionOfSnapshot<'_>,
    ) -> Result<RestoredShard, PipelineError> {
        shard.restore(part)?;
        shard.check_restored(log, &self.pipeline.snapshot.directory, part)
    }

    /// What a snapshot holds of each partition.
    fn parts_of<'s>(
        &self,
        log: &dyn Log,
        restored: &'s Restored,
    ) -> Result<Vec<(u32, PartitionOfSnapshot<'s>)>, PipelineError> {
        let empty =
            || PartitionOfSnapshot { restored, records: Vec::new(), unreadable: Vec::new(), covers: BTreeMap::new() };
        let mut parts: Vec<(u32, PartitionOfSnapshot<'s>)> =
            (0..self.shards.partitions()).map(|partition| (partition, empty())).collect();
        for record in &restored.records {
            if let Some((_, part)) = parts.get_mut(self.shards.partition_of(&record.key.bank) as usize) {
                part.records.push(record);
            }
        }
        for record in &restored.manifest.unreadable {
            if let Some((_, part)) = parts.get_mut(self.shards.partition_of(&record.key.bank) as usize) {
                part.unreadable.push(record);
            }
        }
        let manifest = &restored.manifest;
        for (partition, part) in &mut parts {
            part.covers.extend(manifest.covers.iter().filter(|(turns, _)| turns == partition).copied());
            // An embedded log also states the position of input that changed no record.
            let at = manifest.reached.iter().find(|at| at.partition == *partition);
            if self.pipeline.log.kind == LogKind::Embedded
                && let Some(at) = at
                && log.end(Topic::Memory, *partition)? == at.next_offset
            {
                part.covers.insert(*partition, log.read_position(*partition)?);
            }
        }
        Ok(parts)
    }

    /// Starts the recorder.
    fn record(
        &mut self,
        snapshots: Snapshots,
        restored: Option<&Restored>,
        brought: &[RestoredShard],
        run: String,
    ) -> Result<(), PipelineError> {
        let mut writer = snapshots.writer(restored, run, self.pipeline.snapshot.history_days)?;
        if let Some(restored) = restored.filter(|restored| !restored.same_settings) {
            let changes = brought.iter().flat_map(|shard| shard.choices.iter().copied()).collect();
            writer.replace_choices(restored, changes, |bank| self.shards.partition_of(bank));
        }
        for (update, choices) in brought.iter().filter_map(|shard| shard.removed.as_ref()) {
            writer.add(update, choices)?;
        }
        self.recorder = Some(Recorder::start(writer).map_err(PipelineError::Thread)?);
        Ok(())
    }

    /// Takes a partition at run time: an empty shard, restored from the newest snapshot where there is
    /// one. It loads the rest with [`Self::follow`]; until then questions to its banks wait.
    ///
    /// # Errors
    /// As [`Self::open`]. The partition is then not held.
    pub fn take(&self, log: &dyn Log, partition: u32) -> Result<(), PipelineError> {
        let _taking = sync::lock(&self.taking);
        let shard = self.shards.make(partition)?;
        if !self.pipeline.snapshot.directory.is_empty() {
            // What this process recorded is the point at which it goes on recording.
            self.snapshot()?;
            let snapshots = snapshots(&self.pipeline, self.shards.partitions(), self.generation)?;
            let restored = snapshots.newest(false, &mut |_| {}, &mut |_, _| {})?;
            if let Some(restored) = &restored {
                let parts = self.parts_of(log, restored)?;
                if let Some((_, part)) = parts.iter().find(|(of, _)| *of == partition) {
                    let brought = self.restore_shard(log, &shard, part)?;
                    if let (Some(recorder), Some((update, choices))) = (&self.recorder, brought.removed) {
                        let (sender, receiver) = bounded(1);
                        // The receiver is right here.
                        drop(sender.send(choices));
                        recorder.take(update, &receiver);
                    }
                    self.reached().extend(part.covers.iter().map(|(turns, next)| (*turns, *next)));
                }
            }
        }
        self.shards.put(shard);
        Ok(())
    }

    /// Leaves a partition: its shard is dropped with all that it holds, once nobody asks it any more.
    pub fn leave(&self, partition: u32) {
        let _taking = sync::lock(&self.taking);
        if self.shards.remove(partition) {
            self.reached().remove(&partition);
            self.moved.notify_all();
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
    }

    /// Notes partitions that a group has revoked; they are answered until [`Self::leave`].
    pub fn revoke(&self, partitions: &[u32]) {
        self.shards.assign(|assigned| assigned.retain(|partition| !partitions.contains(partition)));
    }

    /// Partitions that are assigned and not taken yet.
    #[must_use]
    pub fn awaited(&self) -> Vec<u32> {
        self.shards.awaited().unwrap_or_default()
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

    /// Writes a snapshot; None when nothing has changed since the last, or this memory writes none.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`]; the memory keeps answering.
    pub fn snapshot(&self) -> Result<Option<Manifest>, PipelineError> {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let Some(recorder) = &self.recorder else { return Ok(None) };
        Ok(self.past.snapshot(|| recorder.snapshot(now_ms))?)
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
        each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
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
                let deletes = deletes(&read);
                recorder.take(read, choices);
                self.past.has_read(deletes);
            }
        };
        let read = shard.follow(log, each, record);
        if matches!(read, Ok(None) | Err(PipelineError::Waits { .. })) {
            shard.set_loaded();
            self.moved.notify_all();
        }
        let Some(covers) = read? else { return Ok(false) };
        if !covers.is_empty() {
            self.reached().extend(covers);
            self.moved.notify_all();
        }
        Ok(true)
    }

    /// The first offset of a turns partition that the memory does not reflect, where known.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<u64> {
        self.reached().get(&partition).copied()
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

    /// Recollects evidence for a question. The language model's timeout ends before the deadline, if
    /// any, so that the rules can answer; no text is embedded and no hop begins after the deadline.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown or quarantined bank, one that is loading or an empty question, or
    /// when a room fails.
    pub fn ask(
        &self,
        question: &Question,
        embedders: &EmbedderPool,
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
            embedders.embed_queries(texts).map_err(Into::into)
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

    /// Every part of the question's bank, scored once for each of the settings: for measurements.
    ///
    /// # Errors
    /// [`PipelineError`] for a bank of another instance, or when a room fails.
    pub(crate) fn every_part(
        &self,
        question: &Question,
        embed: &mut recall::EmbedTexts<'_>,
        settings: &[crate::config::RecallSettings],
    ) -> Result<Vec<crate::memory::FamiliarParts>, PipelineError> {
        let shard = self.shards.of(&question.bank)?;
        Ok(recall::every_part(&shard.memory, embed, question, settings)?)
    }

    /// The newest snapshot.
    pub(in crate::pipeline) fn newest_manifest(&self) -> Result<Manifest, PipelineError> {
        Ok(snapshots(&self.pipeline, self.shards.partitions(), self.generation)?
            .manifest()?
            .ok_or(SnapshotError::None)?)
    }

    /// A bank's memory as of the last recorded read of its log at or before a point of the past: a
    /// separate memory, which follows no log. Its evidence states that read's offset.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] when no snapshots were written then, or their history is shorter.
    pub fn past(&self, bank: &Bank, at: AsOf) -> Result<Arc<Self>, PipelineError> {
        let (snapshots, partition, purged) = self.history(bank, &[at])?;
        let point = PastPoint { bank: bank.clone(), offset: snapshots.resolve(partition, at)?, purged };
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
        let (records, unreadable) = (restored.records.iter().collect(), restored.manifest.unreadable.iter().collect());
        shard.restore(&PartitionOfSnapshot { restored, records, unreadable, covers: BTreeMap::new() })?;
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

    /// The snapshots, which hold these points and no deleted turn; the bank's partition; and the
    /// number of their last purge.
    fn history(&self, bank: &Bank, points: &[AsOf]) -> Result<(Snapshots, u32, u64), PipelineError> {
        if self.pipeline.snapshot.directory.is_empty() {
            return Err(SnapshotError::None.into());
        }
        let partitions = self.shards.partitions();
        if let Some(recorder) = &self.recorder {
            let now_ms = jiff::Timestamp::now().as_millisecond();
            for at in points {
                self.past.bring_up(partition_of(bank, partitions), *at, || recorder.snapshot(now_ms))?;
            }
        }
        let snapshots = snapshots(&self.pipeline, partitions, self.generation)?;
        let purged = snapshots.manifest()?.map_or(0, |manifest| manifest.last_deletion);
        Ok((snapshots, partition_of(bank, partitions), purged))
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
        let mut whole = Answered { value: Census::default(), epoch: 0, reflects: Vec::new() };
        for shard in self.shards.all() {
            let Answered { value, epoch, reflects } = shard.memory.census(probe.clone())?;
            whole.value.add(value);
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

    /// The banks with live records, by name.
    #[must_use]
    pub fn banks(&self) -> BTreeSet<Bank> {
        let mut banks = BTreeSet::new();
        for shard in self.shards.all() {
            banks.extend(sync::read(&shard.held).all_banks().cloned());
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

    /// Fails for a bank without a live record.
    pub(in crate::pipeline) fn check_bank(&self, bank: &Bank) -> Result<(), PipelineError> {
        self.shards.check_bank(&*self.shards.of(bank)?, bank)
    }

    fn reached(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        sync::lock(&self.reached)
    }
}

/// The snapshots of a generation of the memory: those of the first are in the configured place,
/// those of later ones below it.
pub(crate) fn snapshots(pipeline: &Pipeline, partitions: u32, generation: u32) -> Result<Snapshots, SnapshotError> {
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

//! The memory that follows the memory log, and its answers.
//!
//! In: the memory log, questions with a model to embed them. Out: evidence, counts, and the
//! offsets that the memory reflects. Questions may run in parallel, also while it follows the log.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::{
    config::{LLM, LogKind, Pipeline},
    embed::EmbedderPool,
    llm::Llm,
    log::{Log, REMOVALS_KEPT_MS, Topic, memory_name, partition_of},
    memory::{Answered, Census, CensusProbe, ChoiceChanges, EdgeChanges, Listeners, MemoryHandle},
    model::{Bank, BankKey, Evidence, MemoryKey, MemoryRecord, ModelRef, Question, SCHEMA_VERSION, Score, WindowTurn},
    recall::{self, LlmPlanner, Planner, RulesPlanner, Unplanned},
    snapshot::{AsOf, BankDiff, LogRead, Manifest, Restored, SnapshotError, Snapshots, UnreadableRecord},
    sync,
};

use super::{
    Cancellation, PipelineError,
    past::{PastMemories, PastPoint, deletes},
    reader::Reader,
    recall_memory::AskedMemory,
    recorder::Recorder,
};

/// A memory that follows a log.
pub struct Answerer {
    pipeline: Pipeline,
    /// Generation of the memory topic.
    generation: u32,
    /// Plans, or reads cues, where the pipeline names it for that.
    llm: Option<Arc<Llm>>,
    memory: MemoryHandle,
    reader: RwLock<Reader>,
    recorder: Option<Recorder>,
    /// Held during a read of the log, so that reads do not overlap.
    following: Mutex<()>,
    past: PastMemories<Self>,
    /// By turns partition: the first offset that the memory does not reflect.
    reached: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
}

/// Most time before a question's deadline that is kept for the rules.
const RULES_TIME: Duration = Duration::from_secs(1);

const DAY_MS: u64 = 24 * 3_600_000;

/// Takes the turns and the extractor of a restored record; None where the record was removed.
pub type OnRestoredTurns<'b> = &'b mut dyn FnMut(&MemoryKey, Option<(Vec<WindowTurn>, &str)>);

/// How a memory is opened.
pub struct AnswererOptions<'b> {
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
        let AnswererOptions { edges, record, turns, say, progress } = options;
        let place = &pipeline.snapshot.directory;
        let record = record && !place.is_empty();
        let (choices_out, choices_in) = unbounded();
        let choices = record.then_some(choices_out);
        let mut answerer = Self::new(pipeline, log.partitions(), log.generation(), Listeners { edges, choices })?;
        if place.is_empty() {
            return Ok(answerer);
        }
        let snapshots = snapshots(pipeline, log.partitions(), log.generation())?;
        let restored = snapshots.newest(turns.is_some(), say, progress)?;
        let removed = match &restored {
            Some(restored) => answerer.restore(log, restored)?,
            None => Vec::new(),
        };
        if record {
            let run = format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
            answerer.record(snapshots, restored.as_ref(), &removed, choices_in, run, log.partitions())?;
        }
        if let Some(turns) = turns {
            for record in restored.into_iter().flat_map(|restored| restored.records) {
                turns(&record.key, Some((record.window_turns, record.extractor.as_str())));
            }
            removed.iter().flat_map(|update| &update.records).for_each(|(key, _)| turns(key, None));
        }
        Ok(answerer)
    }

    fn new(pipeline: &Pipeline, partitions: u32, generation: u32, listeners: Listeners) -> Result<Self, PipelineError> {
        let asks = [&pipeline.recall.planner, &pipeline.recall.cues_by].iter().any(|by| *by == LLM);
        let llm = if asks { Some(Llm::open(&pipeline.llm, pipeline.responses())?) } else { None };
        llm.as_ref().map_or(Ok(()), |llm| llm.check_key())?;
        let threshold = Score::from_f64(pipeline.model().semantic_threshold);
        Ok(Self {
            llm,
            memory: MemoryHandle::start(&pipeline.memory, threshold, listeners)?,
            reader: RwLock::new(Reader::new(partitions)),
            recorder: None,
            following: Mutex::default(),
            past: PastMemories::default(),
            reached: Mutex::default(),
            moved: Condvar::new(),
            pipeline: pipeline.clone(),
            generation,
        })
    }

    /// Loads a snapshot; gives the removals that compaction has erased from the log since.
    fn restore(&self, log: &dyn Log, restored: &Restored) -> Result<Vec<LogRead>, PipelineError> {
        let ahead = |problem| SnapshotError::Ahead { place: self.pipeline.snapshot.directory.clone(), problem };
        let mut covers: BTreeMap<u32, u64> = restored.manifest.covers.iter().copied().collect();
        for at in &restored.manifest.reached {
            // An embedded log also states the position of input that changed no record.
            let embedded = self.pipeline.log.kind == LogKind::Embedded;
            if embedded && log.end(Topic::Memory, at.partition)? == at.next_offset {
                covers.insert(at.partition, log.read_position(at.partition)?);
            }
        }
        let mut reader = sync::write(&self.reader);
        reader.restore(restored, &covers, &self.memory)?;
        let mut removed = Vec::new();
        for at in &restored.manifest.reached {
            let partition = at.partition;
            let end = log.end(Topic::Memory, partition)?;
            if end < at.next_offset {
                let problem = format!("it reaches offset {} of partition {partition}", at.next_offset);
                return Err(ahead(format!("{problem}, the log ends at {end}")).into());
            }
            let Some((offset, append_ms)) = at.last else { continue };
            let found = log.read(Topic::Memory, partition, offset, 1)?.records.into_iter().next();
            if found.is_some_and(|found| found.offset == offset && found.append_ms != append_ms) {
                return Err(ahead(format!("the log has another record at offset {offset} of it")).into());
            }
            let Some(keys) = log.live_keys(partition)? else {
                let age_ms = jiff::Timestamp::now().as_millisecond().saturating_sub(restored.manifest.taken_ms);
                let age_ms = age_ms.unsigned_abs();
                if age_ms > REMOVALS_KEPT_MS - DAY_MS {
                    let place = self.pipeline.snapshot.directory.clone();
                    return Err(SnapshotError::Old { place, days: age_ms / DAY_MS }.into());
                }
                continue;
            };
            let mut live = HashSet::with_capacity(keys.len());
            for (key, offset) in keys {
                let key = MemoryKey::from_bytes(&key).map_err(|e| ahead(e.to_string()))?;
                if offset < at.next_offset && !reader.holds(&key) {
                    return Err(ahead(format!("the log has a record at offset {offset} that it lacks")).into());
                }
                live.insert(key);
            }
            let of_partition = |key: &&MemoryKey| partition_of(&key.bank, log.partitions()) == partition;
            let unreadable = restored.manifest.unreadable.iter().map(|record| &record.key);
            let held = restored.records.iter().map(|record| &record.key).chain(unreadable).filter(of_partition);
            let removed_keys: Vec<MemoryKey> = held.filter(|key| !live.contains(*key)).cloned().collect();
            if !removed_keys.is_empty() {
                reader.remove(&removed_keys, &self.memory)?;
                let records = removed_keys.into_iter().map(|key| (key, None)).collect();
                let (next_offset, offset) = (at.next_offset, end - 1);
                removed.push(LogRead { partition, next_offset, offset, append_ms, records, ..LogRead::default() });
            }
        }
        drop(reader);
        self.reached().extend(covers);
        Ok(removed)
    }

    /// Starts the recorder.
    fn record(
        &mut self,
        snapshots: Snapshots,
        restored: Option<&Restored>,
        removed: &[LogRead],
        choices: Receiver<ChoiceChanges>,
        run: String,
        partitions: u32,
    ) -> Result<(), PipelineError> {
        self.memory.wait_for_loads()?;
        let mut changes: Vec<ChoiceChanges> = choices.try_iter().collect();
        let of_removed = changes.split_off(changes.len().saturating_sub(removed.len()));
        let mut writer = snapshots.writer(restored, run, self.pipeline.snapshot.history_days)?;
        if let Some(restored) = restored.filter(|restored| !restored.same_settings) {
            writer.replace_choices(restored, changes.into_iter().flatten().collect(), |bank| {
                partition_of(bank, partitions)
            });
        }
        for (update, choices) in removed.iter().zip(&of_removed) {
            writer.add(update, choices)?;
        }
        let recorder =
            Recorder::start(writer, choices).map_err(|e| crate::memory::MemoryError::Stopped(e.to_string()))?;
        self.recorder = Some(recorder);
        Ok(())
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

    /// Reads the next records of a memory partition; false when there are none. `each` gets every
    /// record, with the offset after it.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] before a record of a newer schema or with an unreadable key: the memory
    /// keeps answering as of before it, and a later call tries again.
    pub fn follow(
        &self,
        log: &dyn Log,
        partition: u32,
        each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<bool, PipelineError> {
        // Keeps the recorder's order equal to the memory's, without blocking questions.
        let _order = sync::lock(&self.following);
        let mut reader = sync::write(&self.reader);
        let keep = self.recorder.is_some();
        let Some(update) = reader.read(log, &self.memory, partition, keep, each)? else { return Ok(false) };
        drop(reader);
        let covers = update.covers.clone();
        if let Some(recorder) = &self.recorder {
            let deletes = deletes(&update);
            recorder.take(update);
            self.past.has_read(deletes);
        }
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
    /// [`PipelineError`] for an unknown or quarantined bank or an empty question, or when a room fails.
    pub fn ask(
        &self,
        question: &Question,
        embedders: &EmbedderPool,
        cancellation: &Cancellation,
    ) -> Result<Evidence, PipelineError> {
        let model_ref = embedders.model();
        {
            let reader = self.reader();
            known(&reader, &question.bank)?;
            reader.check_model(Some(model_ref))?;
        }
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
        let memory = AskedMemory { memory: &self.memory, cancellation };
        Ok(recall::recollect(&memory, &mut embed, question, planner, &self.pipeline.recall, model_ref)?)
    }

    /// The newest snapshot.
    pub(in crate::pipeline) fn newest_manifest(&self) -> Result<Manifest, PipelineError> {
        Ok(snapshots(&self.pipeline, self.reader().partitions(), self.generation)?
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
            let memory = Self::new(&self.pipeline, self.reader().partitions(), self.generation, Listeners::default())?;
            sync::write(&memory.reader).restore(&restored, &BTreeMap::new(), &memory.memory)?;
            Ok(Arc::new(memory))
        })
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
        let partitions = self.reader().partitions();
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
        bank.map_or(Ok(()), |bank| known(&self.reader(), bank))?;
        Ok(self.memory.census(CensusProbe { bank: bank.map(Bank::key), listing: false })?)
    }

    /// Waits until questions see every record that was read, and its edges are handed over.
    ///
    /// # Errors
    /// [`PipelineError::Memory`].
    pub fn wait_until_visible(&self) -> Result<(), PipelineError> {
        Ok(self.memory.wait_for_loads().map(|_| ())?)
    }

    /// How many banks are quarantined.
    #[must_use]
    pub fn quarantined_banks(&self) -> usize {
        self.reader().quarantined_banks()
    }

    /// The name of a bank that has or had a live record.
    #[must_use]
    pub fn bank(&self, key: BankKey) -> Option<Bank> {
        self.reader().bank(key)
    }

    /// The model of the log's vectors.
    pub(in crate::pipeline) fn model(&self) -> Option<ModelRef> {
        self.reader().model().cloned()
    }

    /// Fails when the log's vectors are of another model.
    pub(in crate::pipeline) fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        self.reader().check_model(expected)
    }

    /// Fails for a bank without a live record.
    pub(in crate::pipeline) fn check_bank(&self, bank: &Bank) -> Result<(), PipelineError> {
        known(&self.reader(), bank)
    }

    fn reader(&self) -> RwLockReadGuard<'_, Reader> {
        sync::read(&self.reader)
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

fn known(reader: &Reader, bank: &Bank) -> Result<(), PipelineError> {
    if let Some(UnreadableRecord { offset, problem, .. }) = reader.unreadable(bank) {
        let partition = partition_of(bank, reader.partitions());
        let (bank, offset, problem) = (bank.clone(), *offset, problem.clone());
        return Err(PipelineError::Quarantined { bank, partition, offset, problem });
    }
    if reader.has_bank(bank) {
        return Ok(());
    }
    Err(PipelineError::UnknownBank { bank: bank.clone(), known: reader.banks() })
}

//! The memory that follows the memory log, and what it answers.
//!
//! In: the memory log, questions with a model to embed them. Out: evidence, counts, and how
//! far the memory reaches. Several questions may be asked at once, also while it follows.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::{
    config::{LLM, LogKind, Pipeline},
    embed::Embedder,
    llm::Llm,
    log::{Log, REMOVALS_KEPT_MS, Topic, memory_name, partition_of},
    memory::{Answered, Census, CensusProbe, ChoiceChanges, EdgeChanges, Listeners, MemoryHandle},
    model::{Bank, BankKey, Evidence, MemoryKey, MemoryRecord, ModelRef, Question, SCHEMA_VERSION, Score, WindowTurn},
    recall::{self, LlmPlanner, Planner, RulesPlanner, Unplanned},
    snapshot::{AsOf, Diff, Manifest, Restored, SnapshotError, Snapshots, Update},
    sync,
};

use super::{PipelineError, reader::Reader, recorder::Recorder};

/// A memory that follows a log.
pub struct Answerer {
    pipeline: Pipeline,
    /// Of the memory topic.
    generation: u32,
    /// What plans or reads cues besides the rules.
    llm: Option<Arc<Llm>>,
    memory: MemoryHandle,
    reader: RwLock<Reader>,
    recorder: Option<Recorder>,
    /// One read at a time.
    following: Mutex<()>,
    /// Memories as they were, the last that was asked in front.
    past: Mutex<VecDeque<Past>>,
    /// The first offset of each turns partition that the memory does not reflect.
    reached: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
}

const DAY_MS: u64 = 24 * 3_600_000;

/// Memories of the past that are held at once.
const PAST: usize = 4;

/// A bank as of an offset, and the last snapshot before that something was removed with.
struct Past {
    bank: Bank,
    offset: u64,
    purged: u64,
    memory: Arc<Answerer>,
}

/// Takes the turns of a restored record and its extractor; none where the record is no more.
pub type TakeTurns<'b> = &'b mut dyn FnMut(&MemoryKey, Option<(Vec<WindowTurn>, &str)>);

/// How a memory begins.
pub struct Beginning<'b> {
    /// Who is told of every change of the graph's edges.
    pub edges: Option<Sender<EdgeChanges>>,
    /// Whether snapshots are written from now on, where the pipeline names a place for them.
    pub record: bool,
    /// Who is told of the turns of each restored record, and of records that are no more.
    pub turns: Option<TakeTurns<'b>>,
    /// What a person should know.
    pub say: &'b mut dyn FnMut(&str),
    /// How many bytes of a snapshot, of how many, were read.
    pub progress: &'b mut dyn FnMut(u64, u64),
}

impl Answerer {
    /// A memory that holds the newest snapshot, where the pipeline names a place and there is
    /// one, and goes on from there.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] when its threads cannot be started, [`PipelineError::Snapshot`]
    /// when the place cannot be read, or holds what does not belong to the log,
    /// [`PipelineError::Llm`] when a language model is to be asked and cannot be.
    pub fn open(pipeline: &Pipeline, log: &dyn Log, beginning: Beginning<'_>) -> Result<Self, PipelineError> {
        let Beginning { edges, record, turns, say, progress } = beginning;
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
        let gone = match &restored {
            Some(restored) => answerer.restore(log, restored)?,
            None => Vec::new(),
        };
        if record {
            let run = format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
            answerer.record(snapshots, restored.as_ref(), &gone, choices_in, run, log.partitions())?;
        }
        if let Some(turns) = turns {
            for record in restored.into_iter().flat_map(|restored| restored.records) {
                turns(&record.key, Some((record.window_turns, record.extractor.as_str())));
            }
            gone.iter().flat_map(|update| &update.records).for_each(|(key, _)| turns(key, None));
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
            past: Mutex::default(),
            reached: Mutex::default(),
            moved: Condvar::new(),
            pipeline: pipeline.clone(),
            generation,
        })
    }

    /// Loads a snapshot; gives what the log has removed since without leaving a trace.
    fn restore(&self, log: &dyn Log, restored: &Restored) -> Result<Vec<Update>, PipelineError> {
        let ahead = |problem| SnapshotError::Ahead { place: self.pipeline.snapshot.directory.clone(), problem };
        let mut covers: BTreeMap<u32, u64> = restored.manifest.covers.iter().copied().collect();
        for at in &restored.manifest.reached {
            // Input that changed no record leaves no trace behind the last one, but in an embedded log.
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
            let held = restored.records.iter().map(|record| &record.key).filter(of_partition);
            let gone: Vec<MemoryKey> = held.filter(|key| !live.contains(*key)).cloned().collect();
            if !gone.is_empty() {
                reader.remove(&gone, &self.memory)?;
                let records = gone.into_iter().map(|key| (key, None)).collect();
                let (next_offset, covers) = (at.next_offset, Vec::new());
                removed.push(Update { partition, next_offset, offset: end - 1, append_ms, covers, records });
            }
        }
        drop(reader);
        self.reached().extend(covers);
        Ok(removed)
    }

    /// Starts to write snapshots.
    fn record(
        &mut self,
        snapshots: Snapshots,
        restored: Option<&Restored>,
        gone: &[Update],
        choices: Receiver<ChoiceChanges>,
        run: String,
        partitions: u32,
    ) -> Result<(), PipelineError> {
        self.memory.wait_for_loads()?;
        let mut told: Vec<ChoiceChanges> = choices.try_iter().collect();
        let of_gone = told.split_off(told.len().saturating_sub(gone.len()));
        let mut writer = snapshots.writer(restored, run, self.pipeline.snapshot.history_days)?;
        if let Some(restored) = restored.filter(|restored| !restored.same_settings) {
            writer.rechoose(restored, told.into_iter().flatten().collect(), |bank| partition_of(bank, partitions));
        }
        for (update, choices) in gone.iter().zip(&of_gone) {
            writer.take(update, choices)?;
        }
        let recorder =
            Recorder::start(writer, choices).map_err(|e| crate::memory::MemoryError::Stopped(e.to_string()))?;
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Writes a snapshot of what was followed; none when nothing has changed since the last, or
    /// none are written here.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`]; the memory goes on.
    pub fn snapshot(&self) -> Result<Option<Manifest>, PipelineError> {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        Ok(self.recorder.as_ref().map(|recorder| recorder.snapshot(now_ms)).transpose()?.flatten())
    }

    /// Takes the next records of a memory partition; false when there are none. `each` sees
    /// them, with the offset after each.
    ///
    /// # Errors
    /// [`PipelineError`] that names the offset of a record that cannot be used.
    pub fn follow(
        &self,
        log: &dyn Log,
        partition: u32,
        each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<bool, PipelineError> {
        // The recorder gets the reads in the memory's order, and no question waits while it does.
        let _order = sync::lock(&self.following);
        let mut reader = sync::write(&self.reader);
        let keep = self.recorder.is_some();
        let Some(update) = reader.read(log, &self.memory, partition, keep, each)? else { return Ok(false) };
        drop(reader);
        let covers = update.covers.clone();
        if let Some(recorder) = &self.recorder {
            recorder.take(update);
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

    /// Waits until the memory reflects a turns partition up to an offset; false when `until`
    /// came first.
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

    /// Recollects evidence for a question; a language model is waited for until `deadline` at
    /// most, where there is one.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank or an empty question, or when a room fails.
    pub fn ask(
        &self,
        question: &Question,
        embedder: &mut dyn Embedder,
        deadline: Option<Instant>,
    ) -> Result<Evidence, PipelineError> {
        let model_ref = embedder.model().clone();
        {
            let reader = self.reader();
            known(&reader, &question.bank)?;
            reader.check_model(Some(&model_ref))?;
        }
        let rules = RulesPlanner::new(&self.pipeline.model());
        // A log that is shared tells only the one who extracts from it what was taken back.
        let (settings, keep) = (&self.pipeline.recall, self.pipeline.log.kind == LogKind::Embedded);
        let until = Instant::now() + Duration::from_secs(self.pipeline.llm.question_seconds);
        let until = deadline.map_or(until, |deadline| until.min(deadline));
        let model = self.llm.as_ref().map(|llm| LlmPlanner::new(Arc::clone(llm), rules, settings, until, keep));
        let planner: &dyn Planner = match &model {
            _ if !self.pipeline.recall.planned => &Unplanned(rules),
            Some(model) => model,
            None => &rules,
        };
        let mut embed = |text: &str| embedder.embed_query(text).map_err(Into::into);
        Ok(recall::recollect(&self.memory, &mut embed, question, planner, &self.pipeline.recall, &model_ref)?)
    }

    /// The newest snapshot that there is.
    pub(in crate::pipeline) fn newest_manifest(&self) -> Result<Manifest, PipelineError> {
        Ok(snapshots(&self.pipeline, self.reader().partitions(), self.generation)?
            .manifest()?
            .ok_or(SnapshotError::None)?)
    }

    /// A bank's memory as it was at the end of the last read of its log at or before a point of
    /// the past: another memory, which follows nothing. The evidence that it gives says which
    /// offset that was.
    ///
    /// # Errors
    /// [`PipelineError::Snapshot`] when nobody wrote snapshots then, or they no longer reach back.
    pub fn past(&self, bank: &Bank, at: AsOf) -> Result<Arc<Self>, PipelineError> {
        let (snapshots, partition, purged) = self.history(bank)?;
        let offset = snapshots.round(partition, at)?;
        let mut held = sync::lock(&self.past);
        // What was taken back since is in no answer.
        held.retain(|past| past.purged == purged);
        let same = |past: &Past| past.offset == offset && past.bank == *bank;
        let past = match held.iter().position(same).and_then(|at| held.remove(at)) {
            Some(past) => past,
            None => {
                let restored = snapshots.as_of(bank, partition, offset)?;
                let memory =
                    Self::new(&self.pipeline, self.reader().partitions(), self.generation, Listeners::default())?;
                sync::write(&memory.reader).restore(&restored, &BTreeMap::new(), &memory.memory)?;
                Past { bank: bank.clone(), offset, purged, memory: Arc::new(memory) }
            }
        };
        let memory = Arc::clone(&past.memory);
        held.push_front(past);
        held.truncate(PAST);
        Ok(memory)
    }

    /// What came and went in a bank between two points of its past.
    ///
    /// # Errors
    /// As [`Self::past`].
    pub fn diff(&self, bank: &Bank, from: AsOf, to: AsOf) -> Result<Diff, PipelineError> {
        let (snapshots, partition, _) = self.history(bank)?;
        let (from, to) = (snapshots.round(partition, from)?, snapshots.round(partition, to)?);
        Ok(snapshots.diff(bank, partition, from, to)?)
    }

    /// Snapshots that reach up to now, without what was taken back; the bank's partition, and
    /// the last snapshot that something was removed with.
    fn history(&self, bank: &Bank) -> Result<(Snapshots, u32, u64), PipelineError> {
        if self.pipeline.snapshot.directory.is_empty() {
            return Err(SnapshotError::None.into());
        }
        self.snapshot()?;
        let partitions = self.reader().partitions();
        let snapshots = snapshots(&self.pipeline, partitions, self.generation)?;
        let purged = snapshots.manifest()?.map_or(0, |manifest| manifest.purged);
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

    /// Waits until everything that was followed is visible, its edges handed over.
    ///
    /// # Errors
    /// [`PipelineError::Memory`].
    pub fn settle(&self) -> Result<(), PipelineError> {
        Ok(self.memory.wait_for_loads().map(|_| ())?)
    }

    /// The name of a bank that the memory knows, or knew.
    #[must_use]
    pub fn bank(&self, key: BankKey) -> Option<Bank> {
        self.reader().bank(key)
    }

    /// Whose vectors the log holds.
    pub(in crate::pipeline) fn model(&self) -> Option<ModelRef> {
        self.reader().model().cloned()
    }

    /// Fails when the log was made with another model.
    pub(in crate::pipeline) fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        self.reader().check_model(expected)
    }

    /// Fails for a bank that the memory does not know.
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

/// Each generation of the memory has snapshots of its own: those of the first lie in the
/// place itself, later ones below it.
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

/// All that the edges of a bank depend on, but for its units.
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
    if reader.knows(bank) {
        return Ok(());
    }
    Err(PipelineError::UnknownBank { bank: bank.clone(), known: reader.banks() })
}

//! New vectors for a whole memory, after a change of the embedding model (decision 25).
//!
//! In: a log whose vectors are of one model, and a pipeline that names another model. Out: the next generation of the
//! memory topic, with the same records and new vectors, and the switch to it. Extracts nothing. No record holds vectors
//! of two models, and no memory follows two generations. A record that no build can use is copied unchanged, after the
//! readable parts of its window, and reported by name: its bank stays quarantined.
//!
//! A record is written when the next generation lacks it, or when its record there differs in more than the vectors. No
//! other progress is stored, so a killed run continues where it stopped. The records of a partition are written with
//! the read position that covers them. A service on Kafka may commit to the old generation after that; the turns of
//! such commits are after the position, so the extractor of the new generation extracts them again.

use crate::log_events;
use std::collections::{BTreeMap, HashMap};

use logs::{self, GenerationalLog, KeyedValue, Log, ReadProgress, Topic, memory_name};
use memory::extract::rules_extractor::drafts_from_record;
use models::embed::EmbedError;
use types::{
    config::Pipeline,
    logged_bank::LoggedBank,
    model::{MemoryKey, MemoryRecord, ModelRef, Vector, WindowState},
};

use super::{PipelineError, Progress, unreadable_topic_record::UnreadableTopicRecord};
use ingest::{self, CachedEmbedder, DeclinedText, EmbeddedDrafts, MAX_VALUE_BYTES, WindowDrafts};
use pipeline::{LiveRecords, model_of, record_of};
use replica::delete_old_snapshots;

/// How many units are embedded and written at once.
const UNITS_AT_ONCE: usize = 128;
/// A round that wrote at most this many records is the last.
const LAST_ROUND_RECORDS: u64 = 64;
/// The maximum number of rounds, in case turns arrive faster than they are embedded.
const ROUNDS: u32 = 8;

/// What a re-embedding did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReembedReport {
    /// The model of the old vectors; `None` if there were none of another model.
    pub from: Option<ModelRef>,
    /// The model of the new vectors.
    pub to: ModelRef,
    /// The current generation's topic.
    pub name: String,
    /// How many records it has: one for each closed window, and one for each open turn.
    pub windows: u64,
    /// How many of them this run wrote.
    pub written: u64,
    /// Topics of old generations that were removed.
    pub dropped: Vec<String>,
    /// Whether an old generation was kept.
    pub kept: bool,
    /// The live records that were copied unread, with their places in the old generation.
    pub unreadable: Vec<UnreadableTopicRecord>,
}

/// Fills the next generation with vectors of the pipeline's model, and switches to it.
///
/// # Errors
/// [`PipelineError`]; before the switch the old memory is unchanged.
pub fn reembed(
    pipeline: &Pipeline,
    drop_old: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReembedReport, PipelineError> {
    let mut log = logs::open_generations(&pipeline.log)?;
    let mut vectors = CachedEmbedder::with_separate_cache(pipeline);
    let to = vectors.embedder()?.model().clone();
    let from = model_of(&*log, None)?.filter(|from| *from != to);
    let (mut windows, mut written, mut unreadable) = (0, 0, Vec::new());
    if from.is_some() {
        log.begin_next()?;
        for _ in 0..ROUNDS {
            let before = written;
            windows = 0;
            unreadable.clear();
            for partition in 0..log.partitions() {
                let vectors = &mut vectors;
                let unreadable = &mut unreadable;
                let mut copy =
                    PartitionCopy { pipeline, log: &*log, partition, to: &to, vectors, written: 0, unreadable };
                windows += copy.run(progress)?;
                written += copy.written;
            }
            if written - before <= LAST_ROUND_RECORDS {
                break;
            }
        }
        log.switch(&to)?;
        drop(log);
        log = logs::open_generations(&pipeline.log)?;
    }
    vectors.discard();
    let mut dropped = Vec::new();
    if drop_old {
        dropped = log.drop_old()?;
        delete_old_snapshots(pipeline, log.partitions(), log.generation())?;
    }
    let (name, kept) = (memory_name(log.generation()), from.is_some() && !drop_old);
    Ok(ReembedReport { from, to, name, windows, written, dropped, kept, unreadable })
}

/// A window's record in the next generation.
struct NextGenerationRecord {
    /// The hash of the window without its vectors; `None` if the vectors are of another model.
    hash: Option<blake3::Hash>,
    parts: u32,
}

/// The copy of one partition to the next generation.
struct PartitionCopy<'c> {
    pipeline: &'c Pipeline,
    log: &'c dyn GenerationalLog,
    partition: u32,
    to: &'c ModelRef,
    vectors: &'c mut CachedEmbedder,
    written: u64,
    unreadable: &'c mut Vec<UnreadableTopicRecord>,
}

impl PartitionCopy<'_> {
    /// Copies to the next generation the records that it lacks, and removes those that it should not have. Returns the
    /// number of records.
    fn run(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<u64, PipelineError> {
        let (log, partition) = (self.log, self.partition);
        let old = LiveRecords::of(log, Topic::Memory, partition, |_, _| Ok(true))?;
        // Without a position, nothing was ever committed.
        let Some(covered) = old.end.position.clone() else { return Ok(0) };
        let next = LiveRecords::of(log, Topic::NextMemory, partition, |_, _| Ok(true))?;
        let mut in_next: HashMap<Vec<u8>, NextGenerationRecord> = HashMap::new();
        each_window(log, &next, partition, &mut |window| {
            let ours = window.record.as_ref().is_none_or(|record| record.model == *self.to);
            let hash = ours.then(|| without_vectors(&window));
            in_next.insert(window.key.to_bytes(), NextGenerationRecord { hash, parts: window.parts });
            Ok(())
        })?;
        let (mut windows, mut waiting, mut units) = (0, Vec::new(), 0);
        let total = old.count();
        each_window(log, &old, partition, &mut |window| {
            windows += 1;
            let found = in_next.remove(&window.key.to_bytes());
            self.unreadable.extend(window.unread.iter().map(|(_, at)| at.clone()));
            if found.as_ref().is_some_and(|found| found.hash == Some(without_vectors(&window))) {
                return Ok(());
            }
            units += window.record.as_ref().map_or(0, |record| record.units.len());
            waiting.push((window, found.map_or(1, |found| found.parts)));
            if units >= UNITS_AT_ONCE {
                units = 0;
                self.write(std::mem::take(&mut waiting), &covered)?;
            }
            progress(Progress { doing: "reembedding", done: windows, total: Some(total), unit: "records" });
            Ok(())
        })?;
        self.write(waiting, &covered)?;
        let mut removed: Vec<KeyedValue> = Vec::new();
        for (key, NextGenerationRecord { parts, .. }) in in_next {
            let failed = |e: types::model::FieldError| PipelineError::Record {
                partition,
                offset: next.end.end,
                problem: e.to_string(),
            };
            let key = MemoryKey::from_bytes(&key).map_err(failed)?;
            removed.extend((0..parts).map(|part| (MemoryKey { part, ..key.clone() }.to_bytes(), None)));
        }
        if !removed.is_empty() || next.end.position.as_ref() != Some(&covered) {
            log.fill_next(partition, &removed, &covered)?;
            self.written += removed.len() as u64;
        }
        Ok(windows)
    }

    /// Embeds and writes records, each with the number of its parts in the next generation.
    fn write(&mut self, windows: Vec<(LiveWindowRecord, u32)>, covered: &ReadProgress) -> Result<(), PipelineError> {
        if windows.is_empty() {
            return Ok(());
        }
        let settings = &self.pipeline.extract;
        let drafts = |record: &MemoryRecord| drafts_from_record(record, settings);
        let drafted: Vec<WindowDrafts> = windows
            .iter()
            .map(|(window, _)| WindowDrafts {
                bank: window.key.bank.clone(),
                window: window.key.window.clone(),
                drafts: window.record.as_ref().map(drafts).unwrap_or_default(),
                asked_again: window.record.as_ref().is_some_and(|record| record.state == WindowState::Open),
            })
            .collect();
        let EmbeddedDrafts { model, units: made, declined } = self.vectors.units(&drafted)?;
        let declined = declined.into_iter().zip(&drafted).flat_map(|(of, d)| of.into_iter().map(move |of| (of, d)));
        for (DeclinedText { problem, left_out, .. }, window) in declined {
            if !left_out {
                let (bank, window) = (LoggedBank(&window.bank), window.window.start);
                log_events::text_declined(bank, window);
                continue;
            }
            // The unit would be lost.
            let problem = format!("bank {}, session {:?}: {problem}", window.bank, window.window.session.0);
            return Err(EmbedError::Model { model: model.name, problem }.into());
        }
        let mut records: Vec<KeyedValue> = Vec::new();
        self.written += windows.len() as u64;
        let mut closed = Vec::new();
        for (((window, before), units), drafted) in windows.into_iter().zip(made).zip(&drafted) {
            let LiveWindowRecord { key, record, unread, .. } = window;
            let mut values = Vec::new();
            if let Some(record) = record {
                if record.state == WindowState::Final {
                    closed.push(drafted);
                }
                let record = MemoryRecord { model: model.clone(), units, ..record };
                values = ingest::values(&record, MAX_VALUE_BYTES).map_err(|e| PipelineError::Record {
                    partition: self.partition,
                    offset: covered.through,
                    problem: format!("window {:?} has no JSON form: {e}", record.window),
                })?;
            }
            values.extend(unread.into_iter().map(|(value, _)| value));
            let removed = std::iter::repeat_n(None, (before as usize).saturating_sub(values.len()));
            let key = |part| MemoryKey { part, ..key.clone() }.to_bytes();
            records.extend((0..).map(key).zip(values.into_iter().map(Some).chain(removed)));
        }
        self.log.fill_next(self.partition, &records, covered)?;
        closed.into_iter().try_for_each(|drafted| self.vectors.evict(drafted))
    }
}

/// The live record of a window or of an open turn, its parts joined.
struct LiveWindowRecord {
    /// The key of its first part.
    key: MemoryKey,
    /// What can be read of it.
    record: Option<MemoryRecord>,
    /// The values that cannot be read.
    unread: Vec<(Vec<u8>, UnreadableTopicRecord)>,
    parts: u32,
}

/// A part: its record, or its value and the reason why the value cannot be read.
type RecordPart = Result<MemoryRecord, (Vec<u8>, UnreadableTopicRecord)>;

/// Passes every live record to `show`.
fn each_window(
    log: &dyn Log,
    live: &LiveRecords,
    partition: u32,
    show: &mut dyn FnMut(LiveWindowRecord) -> Result<(), PipelineError>,
) -> Result<(), PipelineError> {
    let (parts, topic) = (live.parts()?, memory_name(log.generation()));
    let mut waiting: HashMap<Vec<u8>, BTreeMap<u32, RecordPart>> = HashMap::new();
    live.each(log, &mut |key, record| {
        let unread = |problem| {
            let at = UnreadableTopicRecord::new(&topic, partition, key, record, problem);
            (record.value.clone().unwrap_or_default(), at)
        };
        let part = record_of(partition, key, record)?.map_err(unread);
        let whole = MemoryKey { part: 0, ..key.clone() };
        let bytes = whole.to_bytes();
        let count = parts.get(&bytes).copied().unwrap_or(1);
        let joined = waiting.entry(bytes.clone()).or_default();
        joined.insert(key.part, part);
        if joined.len() < count as usize {
            return Ok(());
        }
        let mut window = LiveWindowRecord { key: whole, record: None, unread: Vec::new(), parts: count };
        for part in waiting.remove(&bytes).unwrap_or_default().into_values() {
            match (part, &mut window.record) {
                (Ok(part), Some(first)) => {
                    first.turns.extend(part.turns);
                    first.units.extend(part.units);
                    if let Some((stated, more)) = first.statements.as_mut().zip(part.statements) {
                        stated.found.extend(more.found);
                    }
                }
                (Ok(part), none) => *none = Some(part),
                (Err(unread), _) => window.unread.push(unread),
            }
        }
        show(window)
    })
}

/// A hash of a window without the vectors of its record and their model.
fn without_vectors(window: &LiveWindowRecord) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    if let Some(record) = &window.record {
        let mut bare = record.clone();
        bare.model = ModelRef { name: String::new(), hash: String::new() };
        for unit in &mut bare.units {
            unit.vector = Vector::from([]);
            for part in &mut unit.parts {
                (part.vectors, part.pair) = (Vec::new(), None);
            }
        }
        hash.update(&serde_json::to_vec(&bare).unwrap_or_default());
    }
    for (value, _) in &window.unread {
        hash.update(value);
    }
    hash.finalize()
}

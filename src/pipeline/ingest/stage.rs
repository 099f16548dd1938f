//! The extraction stage of one partition: turns log to memory log.
//!
//! In: turn events from the position that the memory log states; what a language model made
//! of closed windows, where one is set. Out: one transaction a read, with the records of
//! every window that changed, the nulls of the records they replace, rejects, and the new
//! position. What a model made of turns that have changed meanwhile is dropped. A crash before
//! the transaction repeats the read; the records have the same keys, so a repetition replaces
//! itself.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    config::{LLM, Pipeline},
    extract::{
        self, DraftUnit, Extractor,
        plain::{PLAIN, plain_unit},
    },
    log::{Log, Topic, Transaction, partition_of},
    model::{
        Bank, DeadLetter, MemoryKey, MemoryRecord, ModelRef, Place, SCHEMA_VERSION, TurnEvent, Usage, Window,
        WindowState, WindowTurn,
    },
    window::{WindowChange, Windower},
};

use super::{
    PipelineError,
    background::{self, Arrived, Extractors, Failed, StageId, Waiting},
    split::{self, MAX_VALUE_BYTES},
    vectors::{Drafted, Vectors},
};

/// Turns to memory records, for one partition.
pub(super) struct Stage {
    partition: u32,
    windower: Windower,
    position: u64,
    least_content_words: u32,
    /// How many parts each window has that has more than one, by the key of its first.
    parts: HashMap<MemoryKey, u32>,
    /// Closed windows whose units are the rules' until a model has read them.
    waiting: Waiting,
    /// Whose vectors the log holds.
    model: Option<ModelRef>,
    /// A read failed between its drain and its commit.
    halted: bool,
    /// Tells it from those that worked on the partition before.
    run: u64,
}

/// How many stages this process has had.
static STAGES: AtomicU64 = AtomicU64::new(0);

/// The turns of the live records of a partition: what a stage goes on from.
#[derive(Debug, Default)]
pub(super) struct HeldTurns(HashMap<MemoryKey, HeldRecord>);

#[derive(Debug)]
struct HeldRecord {
    turns: Vec<WindowTurn>,
    /// Its units wait for a language model.
    waits: bool,
}

impl HeldTurns {
    /// Takes the next record in log order, its turns and its extractor, or its removal.
    pub(super) fn take(&mut self, key: &MemoryKey, record: Option<(Vec<WindowTurn>, &str)>) {
        match record {
            Some((turns, extractor)) => {
                let waits = background::waits(extractor);
                drop(self.0.insert(key.clone(), HeldRecord { turns, waits }));
            }
            None => drop(self.0.remove(key)),
        }
    }
}

/// What of a record a stage needs: the units are skipped, not read.
#[derive(serde::Deserialize)]
struct TurnsOnly {
    turns: Vec<WindowTurn>,
    extractor: String,
    model: ModelRef,
    units: Vec<serde::de::IgnoredAny>,
}

/// What one step wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// Events that were read.
    pub events: u64,
    /// Events that lie in another partition than their bank's, and were sent there.
    pub forwards: u64,
    /// Append time of the last event, in milliseconds since 1970.
    pub append_ms: Option<i64>,
    /// Events that were rejected.
    pub rejects: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units of the records that were written.
    pub units: u64,
    /// Windows whose units are the model's now.
    pub by_model: u64,
    /// Windows whose units from the model could not be used.
    pub refused: u64,
    /// What each of those took, and each of those by the model.
    pub took: Vec<Usage>,
}

/// A record that is still to get its units; its drafts stand beside it.
struct Planned {
    key: MemoryKey,
    state: WindowState,
    extractor: String,
    turns_hash: String,
    turns: Vec<WindowTurn>,
}

impl Stage {
    /// A stage that goes on from what the partition holds, and from a position of its turns.
    pub(super) fn new(
        partition: u32,
        pipeline: &Pipeline,
        held: &HeldTurns,
        position: u64,
        model: Option<ModelRef>,
    ) -> Self {
        let mut windower = Windower::new(&pipeline.window);
        let mut parts: HashMap<MemoryKey, u32> = HashMap::new();
        let mut waiting = Waiting::default();
        for (key, HeldRecord { turns, waits }) in &held.0 {
            windower.restore(key, turns);
            if *waits && pipeline.extract.extractor == LLM {
                waiting.add(&key.bank, &key.window, false);
            }
            if key.part > 0 {
                let count = parts.entry(MemoryKey { part: 0, ..key.clone() }).or_default();
                *count = (*count).max(key.part + 1);
            }
        }
        let least_content_words = pipeline.extract.least_content_words;
        let run = STAGES.fetch_add(1, Ordering::Relaxed);
        Self { partition, windower, position, least_content_words, parts, waiting, model, halted: false, run }
    }

    /// Takes a partition over: nobody else commits to it from now on.
    pub(super) fn take_over(partition: u32, pipeline: &Pipeline, log: &dyn Log) -> Result<Self, PipelineError> {
        log.own(partition)?;
        let (mut held, mut model, mut failure) = (HeldTurns::default(), None, None);
        let position = log.replay(partition, &mut |record| {
            let failed = |problem: String| PipelineError::Record { partition, offset: record.offset, problem };
            let read = MemoryKey::from_bytes(&record.key).map_err(|e| failed(e.to_string())).and_then(|key| {
                let read = record.value.as_deref().map(serde_json::from_slice::<TurnsOnly>).transpose();
                let read = read.map_err(|e| failed(format!("not a memory record: {e}")))?;
                if let Some(read) = read.as_ref().filter(|read| model.is_none() && !read.units.is_empty()) {
                    model = Some(read.model.clone());
                }
                held.take(&key, read.as_ref().map(|r| (r.turns.clone(), r.extractor.as_str())));
                Ok(())
            });
            failure = failure.take().or(read.err());
        })?;
        failure.map_or(Ok(()), Err)?;
        Ok(Self::new(partition, pipeline, &held, position, model))
    }

    /// The partition.
    pub(super) fn partition(&self) -> u32 {
        self.partition
    }

    /// The first offset of its turns that is not covered.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Lets go of responses about windows that changed while others worked on the partition.
    pub(super) fn release(&self, extractors: &Extractors) -> Result<(), PipelineError> {
        let windows = self.windower.banks().flat_map(|bank| self.windower.closed_windows(bank));
        if extractors.model.is_some() {
            windows.into_iter().try_for_each(|w| extractors.release_window(&w))
        } else {
            Ok(())
        }
    }

    /// Windows that wait for the model, and how many of them it has in hand.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.waiting.count(), self.waiting.at_work())
    }

    /// Has the closed windows of a bank read by the model again, and says how many they are;
    /// None for a bank of which nothing was said here.
    pub(super) fn read_again(&mut self, bank: &Bank) -> Option<usize> {
        self.windower.banks().find(|known| *known == bank)?;
        let mut windows = self.windower.closed_windows(bank);
        windows.retain(extract::llm::has_turns);
        for window in &windows {
            self.waiting.add(bank, &window.id, true);
        }
        Some(windows.len())
    }

    /// Reads at most `limit` events and writes what they change; None when there is nothing to do.
    pub(super) fn step(
        &mut self,
        log: &dyn Log,
        extractors: &Extractors,
        vectors: &mut Vectors,
        limit: usize,
    ) -> Result<Option<Step>, PipelineError> {
        if self.halted {
            return Err(PipelineError::Halted { partition: self.partition });
        }
        let records = log.read(Topic::Turns, self.partition, self.position, limit)?.records;
        let (mut dead_letters, mut forwards) = (Vec::new(), Vec::new());
        for record in &records {
            let value = record.value.as_deref().unwrap_or_default();
            let read = if record.key.is_empty() {
                Err("the record has no key; write the bank's name as its key".to_owned())
            } else {
                TurnEvent::from_json(value)
            };
            match read {
                Ok(event) if partition_of(event.bank(), log.partitions()) != self.partition => forwards.push(event),
                Ok(event) => self.windower.apply(record.offset, &event),
                Err(reason) => {
                    let place = Place { partition: self.partition, offset: record.offset };
                    dead_letters.push(DeadLetter::of_turn(place, reason, value));
                }
            }
        }
        // Drained changes are not handed out again: until they are committed, only the
        // log can give them back.
        self.halted = true;
        let (changes, revised) = (self.windower.drain(), self.windower.take_revised());
        let next_offset = records.last().map_or(self.position, |r| r.offset + 1);
        let mut memory = Vec::new();
        let mut counts = BTreeMap::new();
        let mut planned = Vec::new();
        let mut step = Step {
            events: records.len() as u64,
            forwards: forwards.len() as u64,
            append_ms: records.last().map(|r| r.append_ms),
            rejects: dead_letters.len() as u64,
            ..Step::default()
        };
        if let Some(background) = &extractors.model {
            for arrived in background.arrived(self.id()) {
                self.arrive(arrived, extractors, &mut planned, &mut dead_letters, &mut step)?;
            }
        }
        if records.is_empty() && changes.is_empty() && planned.is_empty() && dead_letters.is_empty() {
            self.halted = false;
            self.hand_over(extractors);
            return Ok(None);
        }
        // A window that was closed before is not closed once more by what the model made of it.
        let read_again = planned.len() as u64;
        for change in changes {
            plan(change, extractors, self.least_content_words, &mut planned, &mut memory)?;
        }
        let (planned, drafted): (Vec<Planned>, Vec<Drafted>) = planned.into_iter().unzip();
        if !planned.is_empty() {
            let (model, units) = vectors.units(&drafted)?;
            // Before anything is written: a log that held vectors of two would be of no use.
            match &self.model {
                Some(found) if *found != model => return Err(PipelineError::other_model(found, &model)),
                Some(_) => {}
                None => self.model = units.iter().any(|units| !units.is_empty()).then(|| model.clone()),
            }
            for (planned, units) in planned.iter().zip(units) {
                step.units += units.len() as u64;
                step.windows += u64::from(planned.state == WindowState::Final);
                let record = MemoryRecord {
                    schema: SCHEMA_VERSION,
                    bank: planned.key.bank.clone(),
                    window: planned.key.window.clone(),
                    state: planned.state,
                    turns_hash: planned.turns_hash.clone(),
                    extractor: planned.extractor.clone(),
                    model: model.clone(),
                    turns: planned.turns.clone(),
                    units,
                };
                let values = split::values(&record, MAX_VALUE_BYTES).map_err(|e| PipelineError::Record {
                    partition: self.partition,
                    offset: next_offset,
                    problem: format!("window {:?} has no JSON form: {e}", record.window),
                })?;
                let count = values.len() as u32;
                let before = self.parts.get(&planned.key).copied().unwrap_or(1);
                let gone = std::iter::repeat_n(None, before.saturating_sub(count) as usize);
                let key = |part| MemoryKey { part, ..planned.key.clone() }.to_bytes();
                memory.extend((0..).map(key).zip(values.into_iter().map(Some).chain(gone)));
                if count != before {
                    counts.insert(planned.key.clone(), count);
                }
            }
        }
        step.windows -= read_again;
        // Before: a process that ends in between has let go. And after: what was asked of the
        // memory meanwhile rests on what it held.
        extractors.release_turns(&revised)?;
        log.commit(&Transaction { partition: self.partition, next_offset, memory, dead_letters, forwards })?;
        extractors.release_turns(&revised)?;
        self.position = next_offset;
        self.halted = false;
        self.parts.extend(counts);
        self.parts.retain(|_, count| *count > 1);
        for (planned, drafted) in planned.into_iter().zip(&drafted) {
            if planned.state != WindowState::Final {
                continue;
            }
            vectors.release(drafted)?;
            if background::waits(&planned.extractor) {
                self.waiting.add(&planned.key.bank, &planned.key.window, false);
            }
            let MemoryKey { bank, window, .. } = planned.key;
            extractors.release_window(&Window { bank, id: window, turns: planned.turns })?;
        }
        self.hand_over(extractors);
        Ok(Some(step))
    }

    fn id(&self) -> StageId {
        StageId { partition: self.partition, run: self.run }
    }

    /// Gives the model what waits for it, as much as it takes.
    fn hand_over(&mut self, extractors: &Extractors) {
        if let Some(background) = &extractors.model {
            let (id, windower) = (self.id(), &self.windower);
            self.waiting.hand_over(id, background, |bank, window| windower.closed(bank, window));
        }
    }

    /// The record of a window that the model has read; none where its turns have changed.
    fn arrive(
        &mut self,
        arrived: Arrived,
        extractors: &Extractors,
        planned: &mut Vec<(Planned, Drafted)>,
        dead_letters: &mut Vec<DeadLetter>,
        step: &mut Step,
    ) -> Result<(), PipelineError> {
        self.waiting.came_back();
        let Arrived { window, anew, turns_hash, result, took, .. } = arrived;
        let current = self.windower.closed(&window.bank, &window.id);
        if current.is_none_or(|current| current.turns_hash() != turns_hash) {
            return Ok(());
        }
        let (extractor, drafts) = match result {
            Ok(found) => {
                step.by_model += 1;
                step.took.push(took);
                found
            }
            Err(Failed::Later) => {
                self.waiting.add(&window.bank, &window.id, anew);
                return Ok(());
            }
            Err(Failed::Refused { problem, said, extractor }) => {
                let origin = format!(
                    "bank {}, session {:?}, window {}, by {extractor}",
                    window.bank, window.id.session.0, window.id.start
                );
                let stays = if anew { "what was made of it before stays" } else { "its plain units stay" };
                let reason = format!("{problem}; {stays}");
                dead_letters.push(DeadLetter::new(origin, reason, said.as_bytes()));
                step.refused += 1;
                step.took.push(took);
                if anew {
                    return Ok(());
                }
                (background::instead_of(&extractors.rules, &extractor), extractors.rules.extract(&window)?)
            }
        };
        planned.push(closed_record(window, turns_hash, extractor, drafts));
        Ok(())
    }
}

/// The one record of a closed window, still without vectors.
fn closed_record(window: Window, turns_hash: String, extractor: String, drafts: Vec<DraftUnit>) -> (Planned, Drafted) {
    let key = MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn: None, part: 0 };
    let planned = Planned { key, state: WindowState::Final, extractor, turns_hash, turns: window.turns };
    (planned, Drafted { bank: window.bank, window: window.id, drafts })
}

/// The records that a changed window asks for, and the nulls.
fn plan(
    change: WindowChange,
    extractors: &Extractors,
    least_content_words: u32,
    planned: &mut Vec<(Planned, Drafted)>,
    memory: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
) -> Result<(), PipelineError> {
    let WindowChange { window, closed, write_open, remove_open } = change;
    let key = |turn: Option<String>| MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn, part: 0 };
    memory.extend(remove_open.into_iter().map(|turn| (key(Some(turn)).to_bytes(), None)));
    if closed {
        let (extractor, drafts) = (extractors.provisional(&window), extractors.rules.extract(&window)?);
        let turns_hash = window.turns_hash();
        planned.push(closed_record(window, turns_hash, extractor, drafts));
        return Ok(());
    }
    let mut speakers: Vec<String> = window.turns.iter().map(|t| t.turn.speaker.clone()).collect();
    speakers.sort();
    speakers.dedup();
    for turn in write_open {
        let held: Vec<WindowTurn> = window.turns.iter().filter(|t| t.turn.turn == turn).cloned().collect();
        let alone = Window { bank: window.bank.clone(), id: window.id.clone(), turns: held };
        let drafts = alone.turns.iter().filter_map(|held| plain_unit(held, &speakers, least_content_words)).collect();
        let open_record = Planned {
            key: key(Some(turn)),
            state: WindowState::Open,
            extractor: PLAIN.to_owned(),
            turns_hash: alone.turns_hash(),
            turns: alone.turns,
        };
        planned.push((open_record, Drafted { bank: window.bank.clone(), window: window.id.clone(), drafts }));
    }
    Ok(())
}

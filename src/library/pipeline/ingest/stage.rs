//! The extraction stage of one partition, from the turns log to the memory log.
//!
//! In: turn events from the position that the memory log states; a language model's results for closed windows, if a
//! model is configured. Out: one transaction per read, with the records of every window that changed, the nulls of the
//! records they replace, dead letters, and the new position. A result for turns that have changed since the request is
//! discarded. Where deletions change many closed windows, their records lose units first, which needs no model, and the
//! windows are extracted again in later steps (decision 56). After a crash before the transaction, the read is repeated.
//! That is idempotent: the records have the same keys.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use tracing::warn;

use crate::log::{self, Log, Topic, Transaction, partition_of};
use heart::{
    extract::{
        DraftUnit, Extractor, TurnLanguages,
        passages::CUTTER,
        plain::{PLAIN, plain_units},
    },
    window::{WindowChange, Windower},
};
use models::llm::extractor;
use nouns::{
    config::{ExtractSettings, LLM, Pipeline},
    logged_bank::LoggedBank,
    model::{
        Bank, DeadLetter, InputPosition, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, Usage, Window, WindowId,
        WindowState, WindowTurn,
    },
};

use super::{
    PipelineError,
    background::{self, Extractors, Failed, ModelResult, StageId, WaitingWindows},
    in_part,
    live_turns::{LiveTurns, RecordTurns},
    split::{self, MAX_VALUE_BYTES, Storable},
    turn_record::read_event,
    vectors::{DeclinedText, EmbeddedDrafts, Vectors, WindowDrafts},
};
use crate::pipeline::replica::{Unread, check_schema};

/// Turns the turns of one partition into memory records.
pub(in crate::pipeline) struct Stage {
    partition: u32,
    windower: Windower,
    position: u64,
    /// Numbers of parts above one, by the key of the record's first part.
    parts: HashMap<MemoryKey, u32>,
    /// Closed windows that the model has not read yet.
    waiting: WaitingWindows,
    /// Closed windows whose records lack units: they are extracted again.
    in_part: BTreeSet<(Bank, WindowId)>,
    extract: ExtractSettings,
    /// The model of the log's vectors.
    model: Option<ModelRef>,
    /// Whether a step failed between its drain and its commit.
    halted: bool,
    /// A number that no earlier stage of the partition had.
    run: u64,
}

/// The maximum number of turns in the windows that close in one step, for each event of a full read. A steady stream
/// closes fewer, so it is never read twice.
const MOST_CLOSING: usize = 4;

/// From how many closed windows on, in one step, deletions are applied before the windows are extracted again. With
/// fewer, what others said in them is never missing.
const IN_PART_FROM: usize = 4;

/// How many windows are extracted again in one step, so that new turns wait for no longer than for a few others.
const EXTRACTED_AGAIN: usize = 4;

/// How many stages this process has made.
static STAGES: AtomicU64 = AtomicU64::new(0);

/// The fields of a record that a stage needs; the units are skipped.
#[derive(serde::Deserialize)]
struct TurnsOnly {
    bank: Bank,
    turns: Vec<WindowTurn>,
    extractor: String,
    model: ModelRef,
    units: Vec<serde::de::IgnoredAny>,
}

/// What one step wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::pipeline) struct Step {
    /// Events that were read.
    pub events: u64,
    /// Events of other partitions' banks, forwarded there.
    pub forwards: u64,
    /// Append time of the last event, in milliseconds since 1970.
    pub append_ms: Option<i64>,
    /// Events that were rejected.
    pub rejects: u64,
    /// Turns that were not kept because they had been deleted before.
    pub not_kept: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units of the records that were written.
    pub units: u64,
    /// Windows that got the model's units.
    pub by_model: u64,
    /// Windows for which the model's units could not be used.
    pub refused: u64,
    /// Usage of each window counted in `by_model` and `refused`.
    pub usage: Vec<Usage>,
}

/// A record without its units.
struct RecordFrame {
    key: MemoryKey,
    state: WindowState,
    extractor: String,
    turns_hash: String,
    turns: Vec<WindowTurn>,
}

impl Stage {
    /// A stage that continues from the live records of its partition, at a position of its turns.
    pub(in crate::pipeline) fn new(
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        mut live: LiveTurns,
        position: u64,
        model: Option<ModelRef>,
    ) -> Result<Self, PipelineError> {
        live.recover(partition, pipeline, log, position)?;
        let mut windower = Windower::new(&pipeline.window);
        let mut parts: HashMap<MemoryKey, u32> = HashMap::new();
        let (mut waiting, mut in_part) = (WaitingWindows::default(), BTreeSet::new());
        for (key, RecordTurns { turns, provisional, in_part: lacks_units }) in live.records() {
            windower.restore(key, turns);
            for hole in turns.iter().filter(|turn| turn.deleted) {
                log.deletions().note(&key.bank, &hole.turn.turn, hole.turn.version);
            }
            if *lacks_units {
                in_part.insert((key.bank.clone(), key.window.clone()));
            }
            if *provisional && pipeline.extract.extractor == LLM {
                waiting.add(&key.bank, &key.window, false);
            }
            if key.part > 0 {
                let count = parts.entry(MemoryKey { part: 0, ..key.clone() }).or_default();
                *count = (*count).max(key.part + 1);
            }
        }
        let extract = pipeline.extract.clone();
        let run = STAGES.fetch_add(1, Ordering::Relaxed);
        Ok(Self { partition, windower, position, parts, waiting, in_part, extract, model, halted: false, run })
    }

    /// Takes a partition over: from now on the log refuses commits of its former owner. `ours` is the model that
    /// embeds, where it is open.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] if the memory holds a record of a newer build: that build must extract here.
    pub(in crate::pipeline) fn take_over(
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        ours: Option<&ModelRef>,
    ) -> Result<Self, PipelineError> {
        log.own(partition)?;
        let (mut live, mut model, mut failure) = (LiveTurns::default(), None, None);
        let position = log.replay(partition, &mut |record| {
            let waits = |problem: String| PipelineError::Waits { partition, offset: record.offset, problem };
            let key = MemoryKey::from_bytes(&record.key);
            // The removal of a key that this build cannot read does not matter to it.
            if key.is_err() && record.value.is_none() {
                return;
            }
            let read = key.map_err(|e| waits(e.to_string())).and_then(|key| {
                let value = record.value.as_deref();
                if let Some(Err(newer @ Unread::Newer(_))) = value.map(check_schema) {
                    return Err(waits(newer.to_string()));
                }
                let read = value.and_then(|value| serde_json::from_slice::<TurnsOnly>(value).ok());
                let read = read.filter(|read| read.bank == key.bank);
                // As the memory is ours where it has a vector of our model, one record of another counts as wrong.
                if let Some(read) = read.as_ref().filter(|read| !read.units.is_empty())
                    && (model.is_none() || Some(&read.model) == ours)
                {
                    model = Some(read.model.clone());
                }
                live.take(&key, read.as_ref().map(|r| (r.turns.clone(), r.extractor.as_str())));
                if value.is_some() && read.is_none() {
                    live.take_unreadable(&key);
                }
                Ok(())
            });
            if let Err(waits) = read {
                // For each key, only the last record counts.
                match log.is_replaced(partition, record) {
                    Ok(true) => {}
                    Ok(false) => drop(failure.get_or_insert(waits)),
                    Err(error) => drop(failure.get_or_insert(error.into())),
                }
            }
        })?;
        failure.map_or(Ok(()), Err)?;
        Self::new(partition, pipeline, log, live, position, model)
    }

    /// The partition.
    pub(in crate::pipeline) fn partition(&self) -> u32 {
        self.partition
    }

    /// The first offset of its turns that is not covered.
    pub(in crate::pipeline) fn position(&self) -> u64 {
        self.position
    }

    /// Evicts responses about windows that changed while another process owned the partition.
    pub(super) fn evict_responses(&self, extractors: &Extractors) -> Result<(), PipelineError> {
        let windows = self.windower.banks().flat_map(|bank| self.windower.closed_windows(bank));
        if extractors.model.is_some() {
            windows.into_iter().try_for_each(|w| extractors.evict_window(&w))
        } else {
            Ok(())
        }
    }

    /// Windows that the model has not read yet, and how many of them are in flight.
    pub(in crate::pipeline) fn waiting(&self) -> (usize, usize) {
        (self.waiting.count(), self.waiting.in_flight())
    }

    /// Queues the closed windows of a bank for the model again, past the cache, and returns their number; `None` for a
    /// bank without a turn in this partition.
    pub(in crate::pipeline) fn reextract(&mut self, bank: &Bank) -> Option<usize> {
        if !self.windower.has_turns(bank) {
            return None;
        }
        let mut windows = self.windower.closed_windows(bank);
        windows.retain(extractor::has_turns);
        for window in &windows {
            self.waiting.add(bank, &window.id, true);
        }
        Some(windows.len())
    }

    /// Reads at most `limit` events and writes what they change; `None` when there is nothing to do.
    pub(in crate::pipeline) fn step(
        &mut self,
        log: &dyn Log,
        extractors: &Extractors,
        vectors: &mut Vectors,
        limit: usize,
    ) -> Result<Option<Step>, PipelineError> {
        if self.halted {
            return Err(PipelineError::Halted { partition: self.partition });
        }
        let mut work = self.read(log, limit)?;
        // The windower hands out each change once. If a change is not committed, only the log has it.
        self.halted = true;
        self.collect(&mut work, log, extractors)?;
        if work.is_empty() {
            self.halted = false;
            self.hand_over(extractors);
            return Ok(None);
        }
        self.embed(&mut work, vectors, limit)?;
        self.write_in_part(&mut work)?;
        self.commit(&mut work, log, extractors)?;
        self.halted = false;
        let step = self.evict(work, vectors, extractors)?;
        self.hand_over(extractors);
        Ok(Some(step))
    }

    /// Reads the next events and applies them to the windows, until the windows that close hold too many turns. Events
    /// of other partitions' banks are forwarded; those that cannot be used become dead letters.
    fn read(&mut self, log: &dyn Log, limit: usize) -> Result<Work, PipelineError> {
        let records = log.read(Topic::Turns, self.partition, self.position, limit)?.records;
        let (mut dead_letters, mut forwards, mut events, mut not_kept) = (Vec::new(), Vec::new(), 0, 0);
        for record in &records {
            // Each closed turn has its record in memory until the commit (decision 46).
            if self.windower.closing_turns() >= MOST_CLOSING * limit {
                break;
            }
            events += 1;
            match read_event(record) {
                Ok(event) if partition_of(event.bank(), log.partitions()) != self.partition => forwards.push(event),
                Ok(event) => {
                    not_kept += u64::from(log.deletions().read(&event));
                    self.windower.apply(record.offset, &event);
                }
                Err(reason) => {
                    let position = InputPosition { partition: self.partition, offset: record.offset };
                    let value = record.value.as_deref().unwrap_or_default();
                    dead_letters.push(DeadLetter::of_turn(position, reason, value));
                }
            }
        }
        let records = records.get(..events).unwrap_or_default();
        let step = Step {
            events: records.len() as u64,
            forwards: forwards.len() as u64,
            append_ms: records.last().map(|r| r.append_ms),
            rejects: dead_letters.len() as u64,
            not_kept,
            ..Step::default()
        };
        let next_offset = records.last().map_or(self.position, |r| r.offset + 1);
        let partition = self.partition;
        let transaction = Transaction { partition, next_offset, dead_letters, forwards, ..Transaction::default() };
        Ok(Work { transaction, step, ..Work::default() })
    }

    /// Drafts the records of every window that changed, and of those that the model has read.
    fn collect(&mut self, work: &mut Work, log: &dyn Log, extractors: &Extractors) -> Result<(), PipelineError> {
        let changes = self.windower.drain();
        work.revised = self.windower.take_revised();
        work.changes = changes.len();
        if let Some(background) = &extractors.model {
            for result in background.take_results(self.id()) {
                self.take_result(result, extractors, work)?;
            }
        }
        work.read_by_model = work.planned.len();
        let forget = in_part::forgetting(&changes, &work.revised);
        let are_many = forget.iter().filter(|forgets| **forgets).count() >= IN_PART_FROM;
        for (change, forgets) in changes.into_iter().zip(forget) {
            if are_many
                && forgets
                && let Some(record) = self.in_part(log, &change.window, extractors)?
            {
                work.in_part.push(record);
                continue;
            }
            plan(change, extractors, self.extract.least_content_words, &self.parts, work)?;
        }
        if work.in_part.is_empty() {
            self.extract_again(work, extractors)?;
        }
        Ok(())
    }

    /// The record of a closed window without the units that say anything of its deleted turns; `None` where the window
    /// is as easily extracted again.
    fn in_part(
        &self,
        log: &dyn Log,
        window: &Window,
        extractors: &Extractors,
    ) -> Result<Option<MemoryRecord>, PipelineError> {
        let key = MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn: None, part: 0 };
        let is_empty = window.turns.iter().all(|turn| turn.deleted || turn.context);
        if is_empty || self.parts.contains_key(&key) {
            return Ok(None);
        }
        let record = in_part::last_record(log, self.partition, &key)?;
        let Some(record) = record.filter(|record| Some(&record.model) == self.model.as_ref()) else { return Ok(None) };
        let drafts = extractors.rules.extract(window)?;
        Ok(Some(in_part::in_part(record, window.clone(), &drafts, &self.extract)))
    }

    /// Plans the records of some of the windows that lack units.
    fn extract_again(&mut self, work: &mut Work, extractors: &Extractors) -> Result<(), PipelineError> {
        let some: Vec<(Bank, WindowId)> = self.in_part.iter().take(EXTRACTED_AGAIN).cloned().collect();
        for (bank, window) in some {
            // One that changed just now is planned already.
            let is_planned = work.planned.iter().any(|of| of.key.bank == bank && of.key.window == window);
            let closed = self.windower.closed(&bank, &window).filter(|_| !is_planned);
            if let Some(window) = closed {
                work.plan(extracted(window, extractors)?);
                work.extracted_again += 1;
            }
            self.in_part.remove(&(bank, window));
        }
        Ok(())
    }

    /// Makes the vectors of all drafts, and with them the records. At most the vectors of `limit` parts, or of one
    /// window, are in memory in full precision at once.
    fn embed(&mut self, work: &mut Work, vectors: &mut Vectors, limit: usize) -> Result<(), PipelineError> {
        let mut first = 0;
        while first < work.planned.len() {
            let mut parts = 0;
            let fits = |drafted: &&WindowDrafts| {
                parts += drafted.drafts.iter().map(|draft| draft.parts.len()).sum::<usize>();
                parts <= limit
            };
            let count = work.drafted[first..].iter().take_while(fits).count().max(1);
            self.embed_windows(work, first..first + count, vectors)?;
            first += count;
        }
        let closed = work.planned.iter().filter(|planned| planned.state == WindowState::Final).count();
        // The windows that the model has read were counted when they closed, and those that are extracted again when
        // they forgot.
        work.step.windows = (closed - work.read_by_model - work.extracted_again + work.in_part.len()) as u64;
        Ok(())
    }

    /// Makes the vectors of some of the windows, in one call of the model, and with them the records.
    fn embed_windows(
        &mut self,
        work: &mut Work,
        windows: Range<usize>,
        vectors: &mut Vectors,
    ) -> Result<(), PipelineError> {
        let EmbeddedDrafts { model, units, problems } = vectors.units(&work.drafted[windows.clone()])?;
        // Checked before anything is written: vectors of two models cannot be compared.
        match &self.model {
            Some(found) if *found != model => return Err(PipelineError::other_model(found, &model)),
            Some(_) => {}
            None => self.model = units.iter().any(|units| !units.is_empty()).then(|| model.clone()),
        }
        for ((planned, units), declined) in work.planned[windows].iter().zip(units).zip(problems) {
            // The record of an open turn is followed by that of its window.
            if let Some(DeclinedText { problem, text }) = declined.filter(|_| planned.state == WindowState::Final) {
                let origin = window_origin(&planned.key.bank, &planned.key.window, &planned.extractor);
                let reason = format!("{problem}; the window lacks the units that hold this text");
                let (bank, window) = (LoggedBank(&planned.key.bank), planned.key.window.start);
                warn!(%bank, window, "a dead letter: the endpoint of the vectors declines a text of the window");
                let letter = DeadLetter::new(origin, reason, text.as_bytes());
                work.transaction.dead_letters.push(letter.in_bank(Some(planned.key.bank.clone())));
            }
            work.step.units += units.len() as u64;
            let by_passages = units.iter().flat_map(|unit| &unit.parts).any(|part| part.range.is_some());
            let record = MemoryRecord {
                schema: SCHEMA_VERSION,
                bank: planned.key.bank.clone(),
                window: planned.key.window.clone(),
                state: planned.state,
                turns_hash: planned.turns_hash.clone(),
                extractor: planned.extractor.clone(),
                cutter: by_passages.then(|| CUTTER.to_owned()),
                model: model.clone(),
                turns: planned.turns.clone(),
                units,
            };
            let Storable { values, too_large_bytes } = self.storable(&record, work.transaction.next_offset)?;
            if let Some(bytes) = too_large_bytes {
                work.step.units -= record.units.len() as u64;
                let reason = format!(
                    "a unit of {bytes} bytes, more than the {} that a record holds: the window has no units; set a smaller \
                     extract.unit_turns, or send shorter turns",
                    log::MAX_VALUE_BYTES
                );
                let text = record.units.first().map_or("", |unit| unit.restatement.as_str());
                let origin = window_origin(&record.bank, &record.window, &record.extractor);
                let (bank, window) = (LoggedBank(&record.bank), record.window.start);
                warn!(%bank, window, bytes, "a dead letter: a unit of the window is larger than a record may be");
                let letter = DeadLetter::new(origin, reason, text.as_bytes());
                work.transaction.dead_letters.push(letter.in_bank(Some(record.bank.clone())));
            }
            self.write(&planned.key, values, &mut work.transaction, &mut work.part_counts);
        }
        Ok(())
    }

    /// Adds the records that lack units to the transaction.
    fn write_in_part(&self, work: &mut Work) -> Result<(), PipelineError> {
        let records = std::mem::take(&mut work.in_part);
        for record in &records {
            let key = MemoryKey { bank: record.bank.clone(), window: record.window.clone(), turn: None, part: 0 };
            // It was no larger before.
            let Storable { values, .. } = self.storable(record, work.transaction.next_offset)?;
            self.write(&key, values, &mut work.transaction, &mut work.part_counts);
        }
        work.in_part = records;
        Ok(())
    }

    /// The values of a record that a transaction up to `offset` holds.
    fn storable(&self, record: &MemoryRecord, offset: u64) -> Result<Storable, PipelineError> {
        split::storable(record, MAX_VALUE_BYTES, log::MAX_VALUE_BYTES).map_err(|e| PipelineError::Record {
            partition: self.partition,
            offset,
            problem: format!("window {:?} has no JSON form: {e}", record.window),
        })
    }

    /// Adds a record's values to the transaction, and the nulls of the parts that it no longer has.
    fn write(
        &self,
        first: &MemoryKey,
        values: Vec<Vec<u8>>,
        transaction: &mut Transaction,
        part_counts: &mut BTreeMap<MemoryKey, u32>,
    ) {
        let count = values.len() as u32;
        let before = self.parts.get(first).copied().unwrap_or(1);
        let removed = std::iter::repeat_n(None, before.saturating_sub(count) as usize);
        let key = |part| MemoryKey { part, ..first.clone() }.to_bytes();
        transaction.memory.extend((0..).map(key).zip(values.into_iter().map(Some).chain(removed)));
        if count != before {
            part_counts.insert(first.clone(), count);
        }
    }

    /// Writes everything in one transaction, with the position that it reaches.
    fn commit(&mut self, work: &mut Work, log: &dyn Log, extractors: &Extractors) -> Result<(), PipelineError> {
        // Before the commit, so that a crash in between leaves no response about an old text; and
        // after it, since a question may have asked about the old text until then.
        extractors.evict_turns(&work.revised)?;
        log.commit(&work.transaction)?;
        extractors.evict_turns(&work.revised)?;
        self.position = work.transaction.next_offset;
        self.parts.extend(std::mem::take(&mut work.part_counts));
        self.parts.retain(|_, count| *count > 1);
        Ok(())
    }

    /// Evicts from the caches what the windows that were written as final will not ask for again, and queues those that
    /// the model has to read.
    fn evict(&mut self, work: Work, vectors: &mut Vectors, extractors: &Extractors) -> Result<Step, PipelineError> {
        // A closed window's vectors follow below; an open one may stay open for long.
        work.revised_open.iter().try_for_each(|drafted| vectors.evict(drafted))?;
        for (planned, drafted) in work.planned.into_iter().zip(&work.drafted) {
            if planned.state != WindowState::Final {
                continue;
            }
            vectors.evict(drafted)?;
            if background::is_provisional(&planned.extractor) {
                self.waiting.add(&planned.key.bank, &planned.key.window, false);
            }
            let MemoryKey { bank, window, .. } = planned.key;
            extractors.evict_window(&Window { bank, id: window, turns: planned.turns })?;
        }
        for MemoryRecord { bank, window, turns, .. } in work.in_part {
            let drafted =
                WindowDrafts { bank: bank.clone(), window: window.clone(), drafts: Vec::new(), asked_again: false };
            vectors.evict(&drafted)?;
            extractors.evict_window(&Window { bank: bank.clone(), id: window.clone(), turns })?;
            self.in_part.insert((bank, window));
        }
        Ok(work.step)
    }

    fn id(&self) -> StageId {
        StageId { partition: self.partition, run: self.run }
    }

    /// Hands waiting windows to the model until it accepts no more.
    fn hand_over(&mut self, extractors: &Extractors) {
        if let Some(background) = &extractors.model {
            let (id, windower) = (self.id(), &self.windower);
            self.waiting.hand_over(id, background, |bank, window| windower.closed(bank, window));
        }
    }

    /// Drafts the record of a window that the model has read; `None` if its turns have changed.
    fn take_result(
        &mut self,
        result: ModelResult,
        extractors: &Extractors,
        work: &mut Work,
    ) -> Result<(), PipelineError> {
        self.waiting.returned();
        let ModelResult { window, bypass_cache, turns_hash, result, usage, .. } = result;
        let current = self.windower.closed(&window.bank, &window.id);
        if current.is_none_or(|current| current.turns_hash() != turns_hash) {
            return Ok(());
        }
        let (extractor, drafts) = match result {
            Ok(found) => {
                work.step.by_model += 1;
                work.step.usage.push(usage);
                found
            }
            Err(Failed::RetryLater) => {
                self.waiting.add(&window.bank, &window.id, bypass_cache);
                return Ok(());
            }
            Err(Failed::Refused { problem, response, extractor }) => {
                let origin = window_origin(&window.bank, &window.id, &extractor);
                let stays = if bypass_cache { "the units that it had before stay" } else { "its plain units stay" };
                let reason = format!("{problem}; {stays}");
                let letter = DeadLetter::new(origin, reason, response.as_bytes());
                work.transaction.dead_letters.push(letter.in_bank(Some(window.bank.clone())));
                work.step.refused += 1;
                work.step.usage.push(usage);
                if bypass_cache {
                    return Ok(());
                }
                (background::fallback_name(&extractors.rules, &extractor), extractors.rules.extract(&window)?)
            }
        };
        self.in_part.remove(&(window.bank.clone(), window.id.clone()));
        work.plan(closed_record(window, turns_hash, extractor, drafts));
        Ok(())
    }
}

/// One step on its way from the turns log to the memory log.
#[derive(Default)]
struct Work {
    transaction: Transaction,
    step: Step,
    /// Windows that changed.
    changes: usize,
    /// Turns that were edited or deleted.
    revised: Vec<(Bank, BTreeSet<String>)>,
    planned: Vec<RecordFrame>,
    /// The drafts of each planned record.
    drafted: Vec<WindowDrafts>,
    /// All drafts of the open windows that hold a revised turn.
    revised_open: Vec<WindowDrafts>,
    /// How many of the planned records, from the first, come from the model.
    read_by_model: usize,
    /// Records without the units that said something of deleted turns.
    in_part: Vec<MemoryRecord>,
    /// How many of the planned records are of windows that lacked units.
    extracted_again: usize,
    /// The new numbers of parts, for records where they change.
    part_counts: BTreeMap<MemoryKey, u32>,
}

impl Work {
    fn is_empty(&self) -> bool {
        let dead_letters = &self.transaction.dead_letters;
        self.step.events == 0 && self.changes == 0 && self.planned.is_empty() && dead_letters.is_empty()
    }

    fn plan(&mut self, (planned, drafted): (RecordFrame, WindowDrafts)) {
        self.planned.push(planned);
        self.drafted.push(drafted);
    }
}

/// The origin of a dead letter about a window.
fn window_origin(bank: &Bank, window: &WindowId, extractor: &str) -> String {
    format!("bank {bank}, session {:?}, window {}, by {extractor}", window.session.0, window.start)
}

/// The record of a closed window as the rules extract it, still without vectors.
fn extracted(window: Window, extractors: &Extractors) -> Result<(RecordFrame, WindowDrafts), PipelineError> {
    let (extractor, drafts) = (extractors.provisional_name(&window), extractors.rules.extract(&window)?);
    let turns_hash = window.turns_hash();
    Ok(closed_record(window, turns_hash, extractor, drafts))
}

/// The single record of a closed window, still without vectors.
fn closed_record(
    window: Window,
    turns_hash: String,
    extractor: String,
    drafts: Vec<DraftUnit>,
) -> (RecordFrame, WindowDrafts) {
    let key = MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn: None, part: 0 };
    let asked_again = background::is_provisional(&extractor);
    let planned = RecordFrame { key, state: WindowState::Final, extractor, turns_hash, turns: window.turns };
    (planned, WindowDrafts { bank: window.bank, window: window.id, drafts, asked_again })
}

/// Plans the records of a changed window, and the nulls of those that it no longer has.
fn plan(
    change: WindowChange,
    extractors: &Extractors,
    least_content_words: u32,
    parts: &HashMap<MemoryKey, u32>,
    work: &mut Work,
) -> Result<(), PipelineError> {
    let WindowChange { window, closed, write_open, remove_open } = change;
    let key = |turn: Option<String>| MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn, part: 0 };
    for turn in remove_open {
        // The record of a very long turn has several parts.
        let first = key(Some(turn));
        let count = parts.get(&first).copied().unwrap_or(1);
        let removed = (0..count).map(|part| (MemoryKey { part, ..first.clone() }.to_bytes(), None));
        work.transaction.memory.extend(removed);
        if count > 1 {
            work.part_counts.insert(first, 1);
        }
    }
    if closed {
        work.plan(extracted(window, extractors)?);
        return Ok(());
    }
    let mut speakers: Vec<String> = window.turns.iter().map(|t| t.turn.speaker.clone()).collect();
    speakers.sort();
    speakers.dedup();
    let languages = TurnLanguages::of(&window.turns, extractors.rules.language());
    let plain = |turn: &WindowTurn| plain_units(turn, &languages, &speakers, least_content_words);
    let revised = |turn: &WindowTurn| {
        work.revised.iter().any(|(bank, turns)| *bank == window.bank && turns.contains(&turn.turn.turn))
    };
    if window.turns.iter().any(revised) {
        let drafts = window.turns.iter().flat_map(&plain).collect();
        let (bank, window) = (window.bank.clone(), window.id.clone());
        work.revised_open.push(WindowDrafts { bank, window, drafts, asked_again: true });
    }
    for turn in write_open {
        let turns: Vec<WindowTurn> = window.turns.iter().filter(|t| t.turn.turn == turn).cloned().collect();
        let alone = Window { bank: window.bank.clone(), id: window.id.clone(), turns };
        let drafts = alone.turns.iter().flat_map(&plain).collect();
        let open_record = RecordFrame {
            key: key(Some(turn)),
            state: WindowState::Open,
            extractor: PLAIN.to_owned(),
            turns_hash: alone.turns_hash(),
            turns: alone.turns,
        };
        let (bank, window) = (window.bank.clone(), window.id.clone());
        work.plan((open_record, WindowDrafts { bank, window, drafts, asked_again: true }));
    }
    Ok(())
}

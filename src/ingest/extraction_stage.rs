//! The extraction stage of one partition, from the turns log to the memory log.
//!
//! In: turn events that the memory log does not cover; a language model's results for closed windows, if a model is
//! configured. Out: transactions, each with the records of some banks' changed windows, the nulls of the records that
//! they replace, dead letters, and how far every bank is covered. Banks take turns, one piece at a time, by the bytes
//! that are embedded for them, so a bank with much to do delays no other; banks with little to do share a transaction
//! (decision 58). A result for turns that have changed since the request is discarded. If deletions change many closed
//! windows, their records first lose units, which needs no model, and the windows are extracted again in later
//! transactions (decision 56). After a crash before a transaction, its events are read again. That is idempotent: the
//! records have the same keys.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use logs::{Log, ReadProgress, Transaction};
use memory::{
    extract::{Extractor, passages::CUTTER},
    window::Windower,
};
use types::{
    config::{ExtractSettings, Pipeline},
    logged_bank::LoggedBank,
    model::{
        Bank, DeadLetter, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, Window, WindowId, WindowState, WindowTurn,
    },
};

use super::sharing_limits::{
    BEGUN_BYTES, EXTRACTED_AGAIN, LITTLE_BYTES, MAX_CLOSING, MAX_SHARED, OWN_BYTES, PIECE_BYTES, PLANNED_BYTES,
    READ_AGAIN_BYTES, SHARED_BYTES, UNFINISHED_BANKS,
};
use super::{
    PipelineError,
    cached_embedder::{CachedEmbedder, DeclinedText, EmbeddedDrafts, WindowDrafts},
    dropped_windows::DroppedWindows,
    live_turns::{LiveTurns, RecordTurns},
    model_worker_pool::{self, ExtractorSet, ModelFailure, ModelResult, StageId, WaitingWindows},
    partial_windows,
    pending_turns::{PendingTurns, StrayEvents},
    storable_values::{self, MAX_VALUE_BYTES, StorableValues},
    transaction_work::{ExtractionStepReport, TransactionWork, closed_record, extracted, plan, window_origin},
    write_groups::WriteGroups,
};
use types::record_value::{RecordValueError, check_schema};

/// Turns the turns of one partition into memory records.
pub struct ExtractionStage {
    pub(super) partition: u32,
    pub(super) windower: Windower,
    /// Banks whose windows may have been dropped.
    pub(super) dropped: DroppedWindows,
    /// The turns that were read and are not covered.
    pub(super) pending: PendingTurns,
    /// Events of other partitions' banks, and rejected events, since the last transaction.
    strays: StrayEvents,
    /// Whether the last read reached the end of the log.
    is_at_end: bool,
    /// The bytes that were embedded since the last read.
    since_read: usize,
    /// The first offset that the transactions so far do not reach, except for banks that are behind.
    through: u64,
    /// The work in progress, in the order of its turns.
    pub(super) works: VecDeque<TransactionWork>,
    /// Whether the last turn went to shared work.
    was_shared: bool,
    /// The model's results for banks whose work is in progress.
    pub(super) results: Vec<ModelResult>,
    /// Numbers of parts above one, by the key of the record's first part.
    pub(super) parts: HashMap<MemoryKey, u32>,
    /// Closed windows that the model has not read yet.
    pub(super) waiting: WaitingWindows,
    /// Closed windows whose records lack units: they are extracted again.
    pub(super) in_part: BTreeSet<(Bank, WindowId)>,
    pub(super) extract: ExtractSettings,
    /// The model of the log's vectors.
    model: Option<ModelRef>,
    /// Whether a step failed between its drain and its commit.
    halted: bool,
    /// A number that no earlier stage of the partition had.
    run: u64,
}

/// How many stages this process has made.
static STAGES: AtomicU64 = AtomicU64::new(0);

/// The fields of a record that a stage needs; the units are skipped.
#[derive(serde::Deserialize)]
pub(super) struct StageRecordFields {
    pub(super) bank: Bank,
    pub(super) turns: Vec<WindowTurn>,
    pub(super) extractor: String,
    model: ModelRef,
    units: Vec<serde::de::IgnoredAny>,
}

/// What a call of [`ExtractionStage::work`] did.
#[derive(Debug)]
pub enum StageOutcome {
    /// There was nothing to do.
    Nothing,
    /// It worked on a piece, and more is left to do.
    Piece,
    /// It ended a transaction.
    Committed(ExtractionStepReport),
}

impl ExtractionStage {
    /// A stage that continues from the live records of its partition, which cover its turns so far.
    pub fn new(
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        mut live: LiveTurns,
        progress: ReadProgress,
        model: Option<ModelRef>,
    ) -> Result<Self, PipelineError> {
        live.recover(partition, pipeline, log, &progress)?;
        let extract = pipeline.extract.clone();
        let run = STAGES.fetch_add(1, Ordering::Relaxed);
        let mut stage = Self {
            partition,
            windower: Windower::new(&pipeline.window),
            dropped: DroppedWindows::default(),
            through: progress.through,
            pending: PendingTurns::new(partition, progress),
            strays: StrayEvents::default(),
            is_at_end: false,
            since_read: 0,
            works: VecDeque::new(),
            was_shared: false,
            results: Vec::new(),
            parts: HashMap::new(),
            waiting: WaitingWindows::default(),
            in_part: BTreeSet::new(),
            extract,
            model,
            halted: false,
            run,
        };
        live.records().for_each(|(key, RecordTurns { turns, .. })| stage.windower.restore(key, turns));
        stage.note_records(log, &live)?;
        Ok(stage)
    }

    /// Takes a partition over: from now on the log refuses commits of its former owner. `ours` is the model that
    /// embeds, if it is open.
    ///
    /// # Errors
    /// [`PipelineError::Waits`] if the memory holds a record of a newer build: that build must extract here.
    pub fn take_over(
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        ours: Option<&ModelRef>,
    ) -> Result<Self, PipelineError> {
        log.own(partition)?;
        let (mut live, mut model, mut failure) = (LiveTurns::default(), None, None);
        let progress = log.replay(partition, &mut |record| {
            let waits = |problem: String| PipelineError::Waits { partition, offset: record.offset, problem };
            let key = MemoryKey::from_bytes(&record.key);
            // The removal of a key that this build cannot read does not matter to it.
            if key.is_err() && record.value.is_none() {
                return;
            }
            let read = key.map_err(|e| waits(e.to_string())).and_then(|key| {
                let value = record.value.as_deref();
                if let Some(Err(newer @ RecordValueError::Newer(_))) = value.map(check_schema) {
                    return Err(waits(newer.to_string()));
                }
                let read = value.and_then(|value| serde_json::from_slice::<StageRecordFields>(value).ok());
                let read = read.filter(|read| read.bank == key.bank);
                // If the memory has a vector of our model, single records of other models count as wrong.
                if let Some(read) = read.as_ref().filter(|read| !read.units.is_empty())
                    && (model.is_none() || Some(&read.model) == ours)
                {
                    model = Some(read.model.clone());
                }
                live.apply(&key, read.as_ref().map(|r| (r.turns.clone(), r.extractor.as_str())));
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
        Self::new(partition, pipeline, log, live, progress, model)
    }

    /// The partition.
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// How far its turns are covered.
    pub fn progress(&self) -> ReadProgress {
        ReadProgress { through: self.through, ..self.pending.progress() }
    }

    /// Windows that the model has not read yet, and how many of them are in flight.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.count(), self.waiting.in_flight())
    }

    /// Works until a transaction is committed, of at most `limit` events; `None` when there is nothing to do.
    pub fn step(
        &mut self,
        log: &dyn Log,
        extractors: &ExtractorSet,
        vectors: &mut CachedEmbedder,
        limit: usize,
    ) -> Result<Option<ExtractionStepReport>, PipelineError> {
        loop {
            match self.work(log, extractors, vectors, limit)? {
                StageOutcome::Nothing => return Ok(None),
                StageOutcome::Piece => {}
                StageOutcome::Committed(step) => return Ok(Some(step)),
            }
        }
    }

    /// Works on one piece: reads new events, and continues the work whose turn it is.
    pub fn work(
        &mut self,
        log: &dyn Log,
        extractors: &ExtractorSet,
        vectors: &mut CachedEmbedder,
        limit: usize,
    ) -> Result<StageOutcome, PipelineError> {
        if self.halted {
            return Err(PipelineError::Halted { partition: self.partition });
        }
        if self.is_at_end || self.since_read >= READ_AGAIN_BYTES || self.works.is_empty() {
            self.is_at_end = self.pending.read_on(log, &mut self.strays)?;
            self.since_read = 0;
        }
        // The windower returns each change only once. If a change is not committed, only the log has it.
        self.halted = true;
        self.begin(log, extractors, limit)?;
        let worked = self.go_on(log, extractors, vectors, limit)?;
        self.halted = false;
        if !matches!(worked, StageOutcome::Piece) {
            self.hand_over(extractors);
        }
        Ok(worked)
    }

    pub(super) fn is_at_work(&self, bank: &Bank) -> bool {
        self.works.iter().any(|work| work.banks.contains(bank))
    }

    /// Begins work for banks that wait: banks with little to do share it, the others each have their own.
    fn begin(&mut self, log: &dyn Log, extractors: &ExtractorSet, limit: usize) -> Result<(), PipelineError> {
        let may_share = self.works.iter().filter(|work| work.is_shared).count() < MAX_SHARED;
        let mut begun_bytes: usize = self.works.iter().map(|work| work.bytes).sum();
        let mut shared = TransactionWork { is_shared: true, ..TransactionWork::default() };
        if may_share {
            let left: Vec<Bank> = self.windower.changed_banks().take(UNFINISHED_BANKS).cloned().collect();
            shared.banks.extend(left.into_iter().filter(|bank| !self.is_at_work(bank)));
            self.change(&mut shared);
        }
        for _ in 0..self.pending.waiting() {
            let Some((bank, bytes)) = self.pending.next() else { break };
            if !self.has_windows(&bank) {
                self.pending.put_back(bank);
                continue;
            }
            let is_free = !self.is_at_work(&bank);
            let is_little = bytes.is_some_and(|bytes| bytes <= LITTLE_BYTES);
            let has_room = may_share && shared.bytes < SHARED_BYTES && shared.step.events < limit as u64;
            if is_free && is_little && has_room && shared.closing_turns < MAX_CLOSING * limit {
                self.take(&mut shared, log, bank, limit)?;
            } else if is_free && !is_little && !shared.banks.contains(&bank) && begun_bytes < BEGUN_BYTES {
                let mut own = TransactionWork::default();
                self.take(&mut own, log, bank, limit)?;
                self.extract_again(&mut own, extractors)?;
                begun_bytes += own.bytes;
                self.works.push_back(own);
            } else {
                self.pending.put_back(bank);
            }
        }
        if may_share {
            self.take_results(&mut shared, extractors)?;
            self.extract_again(&mut shared, extractors)?;
        }
        if !shared.banks.is_empty() {
            // Shared work goes first, but never twice in a row if other work waits.
            let after_one = self.was_shared && self.works.front().is_some_and(|work| !work.is_shared);
            self.works.insert(usize::from(after_one), shared);
        }
        Ok(())
    }

    /// Takes the next events of a bank, and the changes that they cause.
    fn take(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        bank: Bank,
        limit: usize,
    ) -> Result<(), PipelineError> {
        let most = (limit as u64).saturating_sub(work.step.events).max(1) as usize;
        let events = self.pending.take_whole_groups(log, &bank, OWN_BYTES, most, self.is_at_end)?;
        let (mut events, mut groups) = (events.into_iter(), WriteGroups::default());
        // Each closed turn has its record in memory until the commit (decision 46).
        while (groups.has_open() || work.closing_turns + self.windower.closing_turns() < MAX_CLOSING * limit)
            && let Some(read) = events.next()
        {
            self.apply_read(work, log, read, &mut groups)?;
        }
        work.transaction.dead_letters.extend(groups.into_dead_letters(self.partition));
        self.pending.give_back(&bank, events.collect());
        work.closing_turns += self.windower.closing_turns();
        self.dropped.note_applied(&bank);
        work.banks.insert(bank.clone());
        work.taken.push(bank);
        self.change(work);
        Ok(())
    }

    /// Moves the changes of the work's banks into the work.
    fn change(&mut self, work: &mut TransactionWork) {
        let changes = self.windower.drain_of(&work.banks);
        work.change(changes, self.windower.take_revised());
    }

    /// Drafts the records of windows that the model has read, for banks without work in progress.
    fn take_results(&mut self, work: &mut TransactionWork, extractors: &ExtractorSet) -> Result<(), PipelineError> {
        let Some(background) = &extractors.model else { return Ok(()) };
        self.results.extend(background.take_results(self.id()));
        for result in std::mem::take(&mut self.results) {
            if self.is_at_work(&result.window.bank) {
                self.results.push(result);
            } else {
                work.banks.insert(result.window.bank.clone());
                self.take_result(result, extractors, work)?;
            }
        }
        work.read_by_model = work.planned.len();
        Ok(())
    }

    /// Works on one piece of the work whose turn it is.
    fn go_on(
        &mut self,
        log: &dyn Log,
        extractors: &ExtractorSet,
        vectors: &mut CachedEmbedder,
        limit: usize,
    ) -> Result<StageOutcome, PipelineError> {
        let Some(mut work) = self.works.pop_front() else {
            return if self.is_stated() || self.dropped.is_waited_for() {
                Ok(StageOutcome::Nothing)
            } else {
                self.state(log, extractors, vectors)
            };
        };
        let begun = Instant::now();
        if !self.plan(&mut work, log, extractors)? {
            work.worked += begun.elapsed();
            self.works.push_front(work);
            return Ok(StageOutcome::Piece);
        }
        let mut ahead = match work.ahead.take() {
            Some(ahead) => ahead,
            None => vectors.precompute(&work.drafted, PIECE_BYTES)?,
        };
        if !ahead.is_done() {
            let bytes = vectors.embed_piece(&work.drafted, &mut ahead, PIECE_BYTES)?;
            self.since_read += bytes;
            (work.ahead, work.worked) = (Some(ahead), work.worked + begun.elapsed());
            if work.credit == 0 {
                work.credit = PIECE_BYTES * work.banks.len().max(1);
            }
            work.credit = work.credit.saturating_sub(bytes);
            self.was_shared = work.is_shared;
            if work.credit > 0 {
                self.works.push_front(work);
            } else {
                self.works.push_back(work);
            }
            // What was read is stated soon, so that a bank without turns there does not wait for others.
            let is_near = self.works.iter().any(|work| work.is_shared);
            return if is_near || self.is_stated() {
                Ok(StageOutcome::Piece)
            } else {
                self.state(log, extractors, vectors)
            };
        }
        self.was_shared = work.is_shared;
        self.since_read += work.bytes;
        work.ahead = Some(ahead);
        if work.is_empty() {
            return Ok(StageOutcome::Piece);
        }
        self.embed(&mut work, vectors, limit)?;
        self.write_in_part(&mut work)?;
        work.worked += begun.elapsed();
        Ok(StageOutcome::Committed(self.finish(work, log, extractors, vectors)?))
    }

    /// Whether the transactions so far state all that was read.
    fn is_stated(&self) -> bool {
        self.pending.through() == self.through && self.strays.events == 0
    }

    /// States what was read, in a separate transaction.
    fn state(
        &mut self,
        log: &dyn Log,
        extractors: &ExtractorSet,
        vectors: &mut CachedEmbedder,
    ) -> Result<StageOutcome, PipelineError> {
        Ok(StageOutcome::Committed(self.finish(TransactionWork::default(), log, extractors, vectors)?))
    }

    /// Plans records of changed windows, up to a number of bytes; true once all are planned.
    fn plan(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        extractors: &ExtractorSet,
    ) -> Result<bool, PipelineError> {
        let mut bytes = 0;
        while let Some((change, forgets)) = work.unplanned.pop_front() {
            bytes += change.window.turns.iter().map(|of| of.turn.text.len()).sum::<usize>();
            if work.are_many
                && forgets
                && let Some(record) = self.in_part(log, &change.window, extractors)?
            {
                work.in_part.push(record);
            } else {
                plan(change, extractors, self.extract.least_content_words, &self.parts, work)?;
            }
            if bytes >= PLANNED_BYTES {
                break;
            }
        }
        Ok(work.unplanned.is_empty())
    }

    /// Commits the work, and evicts cached entries that it makes superfluous.
    fn finish(
        &mut self,
        mut work: TransactionWork,
        log: &dyn Log,
        extractors: &ExtractorSet,
        vectors: &mut CachedEmbedder,
    ) -> Result<ExtractionStepReport, PipelineError> {
        let begun = Instant::now();
        let StrayEvents { events, append_ms, forwards, dead_letters } = std::mem::take(&mut self.strays);
        work.step.events += events;
        work.step.append_ms = work.step.append_ms.max(append_ms);
        (work.step.forwards, work.step.rejects) = (forwards.len() as u64, dead_letters.len() as u64);
        work.transaction.forwards.extend(forwards);
        work.transaction.dead_letters.extend(dead_letters);
        self.commit(&mut work, log, extractors)?;
        work.step.took = work.worked + begun.elapsed();
        self.evict(work, vectors, extractors)
    }

    /// The record of a closed window without the units that depend on its deleted turns; `None` if extracting the
    /// window again is as easy.
    fn in_part(
        &self,
        log: &dyn Log,
        window: &Window,
        extractors: &ExtractorSet,
    ) -> Result<Option<MemoryRecord>, PipelineError> {
        let key = MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn: None, part: 0 };
        let is_empty = window.turns.iter().all(|turn| !turn.is_recalled() || turn.context);
        if is_empty || self.parts.contains_key(&key) {
            return Ok(None);
        }
        let record = partial_windows::last_record(log, self.partition, &key)?;
        let Some(record) = record.filter(|record| Some(&record.model) == self.model.as_ref()) else { return Ok(None) };
        let drafts = extractors.rules.extract(window)?;
        Ok(Some(partial_windows::partial_record(record, window.clone(), &drafts, &self.extract)))
    }

    /// Plans the records of some of the windows that lack units: of the work's banks, and, if it is shared, of banks
    /// without work in progress.
    fn extract_again(&mut self, work: &mut TransactionWork, extractors: &ExtractorSet) -> Result<(), PipelineError> {
        if work.are_many {
            return Ok(());
        }
        let is_ours = |bank: &Bank| work.banks.contains(bank) || (work.is_shared && !self.is_at_work(bank));
        let some = self.in_part.iter().filter(|(bank, _)| is_ours(bank)).take(EXTRACTED_AGAIN);
        for (bank, window) in some.cloned().collect::<Vec<_>>() {
            work.banks.insert(bank.clone());
            // A window that changed just now is planned anyway.
            let closed = self.windower.closed_window(&bank, &window).filter(|_| !work.changes(&bank, &window));
            if let Some(window) = closed {
                work.plan(extracted(window, extractors)?);
                work.extracted_again += 1;
            }
            self.in_part.remove(&(bank, window));
        }
        Ok(())
    }

    /// Makes the vectors of all drafts, and with them the records. At most the vectors of `limit` parts, or of one
    /// window, are in memory in full precision at the same time.
    fn embed(
        &mut self,
        work: &mut TransactionWork,
        vectors: &mut CachedEmbedder,
        limit: usize,
    ) -> Result<(), PipelineError> {
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
        // Windows that the model has read were counted when they closed, and windows that are extracted again were
        // counted when they lost units.
        work.step.windows = (closed - work.read_by_model - work.extracted_again + work.in_part.len()) as u64;
        Ok(())
    }

    /// Makes the vectors of some of the windows, in one call of the model, and with them the records.
    fn embed_windows(
        &mut self,
        work: &mut TransactionWork,
        windows: Range<usize>,
        vectors: &mut CachedEmbedder,
    ) -> Result<(), PipelineError> {
        let drafted = &work.drafted[windows.clone()];
        let EmbeddedDrafts { model, units, declined } = match &work.ahead {
            Some(ahead) => vectors.units_with(drafted, ahead)?,
            None => vectors.units(drafted)?,
        };
        // Checked before anything is written: vectors of two models cannot be compared.
        match &self.model {
            Some(found) if *found != model => return Err(PipelineError::other_model(found, &model)),
            Some(_) => {}
            None => self.model = units.iter().any(|units| !units.is_empty()).then(|| model.clone()),
        }
        for ((planned, units), declined) in work.planned[windows].iter().zip(units).zip(declined) {
            // The record of an open turn is followed by that of its window.
            let is_final = planned.state == WindowState::Final;
            for DeclinedText { problem, left_out, turns, text } in declined.into_iter().filter(|_| is_final) {
                let origin = window_origin(&planned.key.bank, &planned.key.window, &planned.extractor);
                let origin = format!("{origin}, turns {turns:?}");
                let what = if left_out {
                    "the window lacks the unit that holds this text"
                } else {
                    "this text has no vector of its own, and is found by its words and by what is said around it"
                };
                let reason = format!("{problem}; {what}");
                let (bank, window) = (LoggedBank(&planned.key.bank), planned.key.window.start);
                log_events::text_declined(bank, window);
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
                statements: Some(planned.statements.clone()),
            };
            let StorableValues { values, too_large_bytes } = self.storable(&record)?;
            if let Some(bytes) = too_large_bytes {
                work.step.units -= record.units.len() as u64;
                let reason = format!(
                    "a unit of {bytes} bytes, more than the {} that a record holds: the window has no units; set a smaller \
                     extract.unit_turns, or send shorter turns",
                    logs::MAX_VALUE_BYTES
                );
                let text = record.units.first().map_or("", |unit| unit.restatement.as_str());
                let origin = window_origin(&record.bank, &record.window, &record.extractor);
                let (bank, window) = (LoggedBank(&record.bank), record.window.start);
                log_events::unit_too_large(bank, window, bytes);
                let letter = DeadLetter::new(origin, reason, text.as_bytes());
                work.transaction.dead_letters.push(letter.in_bank(Some(record.bank.clone())));
            }
            self.write(&planned.key, values, &mut work.transaction, &mut work.part_counts);
        }
        Ok(())
    }

    /// Adds the records that lack units to the transaction.
    fn write_in_part(&self, work: &mut TransactionWork) -> Result<(), PipelineError> {
        let records = std::mem::take(&mut work.in_part);
        for record in &records {
            let key = MemoryKey { bank: record.bank.clone(), window: record.window.clone(), turn: None, part: 0 };
            // The record was no larger before, so it fits.
            let StorableValues { values, .. } = self.storable(record)?;
            self.write(&key, values, &mut work.transaction, &mut work.part_counts);
        }
        work.in_part = records;
        Ok(())
    }

    /// The values of a record.
    fn storable(&self, record: &MemoryRecord) -> Result<StorableValues, PipelineError> {
        storable_values::storable(record, MAX_VALUE_BYTES, logs::MAX_VALUE_BYTES).map_err(|e| PipelineError::Record {
            partition: self.partition,
            offset: self.through,
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

    /// Writes everything in one transaction, with the progress that it reaches.
    fn commit(
        &mut self,
        work: &mut TransactionWork,
        log: &dyn Log,
        extractors: &ExtractorSet,
    ) -> Result<(), PipelineError> {
        // Before the commit, so that a crash in between leaves no response about an old text; and
        // after it, since a question may have asked about the old text until then.
        extractors.evict_turns(&work.revised)?;
        work.step.dead_letters = work.transaction.dead_letters.len() as u64;
        work.taken.iter().for_each(|bank| self.pending.cover(bank));
        let ReadProgress { through, behind } = self.pending.progress();
        (work.transaction.partition, work.transaction.next_offset, work.transaction.behind) =
            (self.partition, through, behind);
        log.commit(&work.transaction)?;
        extractors.evict_turns(&work.revised)?;
        self.through = through;
        self.parts.extend(std::mem::take(&mut work.part_counts));
        self.parts.retain(|_, count| *count > 1);
        Ok(())
    }

    /// Evicts from the caches what the windows that were written as final will not ask for again, and queues the
    /// windows that the model is yet to read.
    fn evict(
        &mut self,
        work: TransactionWork,
        vectors: &mut CachedEmbedder,
        extractors: &ExtractorSet,
    ) -> Result<ExtractionStepReport, PipelineError> {
        // A closed window's vectors follow below; an open one may stay open for long.
        work.revised_open.iter().try_for_each(|drafted| vectors.evict(drafted))?;
        for (planned, drafted) in work.planned.into_iter().zip(&work.drafted) {
            if planned.state != WindowState::Final {
                continue;
            }
            vectors.evict(drafted)?;
            if model_worker_pool::is_provisional(&planned.extractor) {
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

    /// Sends waiting windows to the model until it accepts no more.
    fn hand_over(&mut self, extractors: &ExtractorSet) {
        if let Some(background) = &extractors.model {
            let (id, windower) = (self.id(), &self.windower);
            self.waiting.send_windows(id, background, |bank, window| windower.closed_window(bank, window));
        }
    }

    /// Drafts the record of a window that the model has read; `None` if its turns have changed.
    fn take_result(
        &mut self,
        result: ModelResult,
        extractors: &ExtractorSet,
        work: &mut TransactionWork,
    ) -> Result<(), PipelineError> {
        self.waiting.note_returned(&result.window.bank);
        let ModelResult { window, bypass_cache, turns_hash, result, usage, .. } = result;
        let current = self.windower.closed_window(&window.bank, &window.id);
        if current.is_none_or(|current| current.turns_hash() != turns_hash) {
            return Ok(());
        }
        let (extractor, drafts) = match result {
            Ok(found) => {
                work.step.by_model += 1;
                work.step.usage.push(usage);
                found
            }
            Err(ModelFailure::RetryLater) => {
                self.waiting.add(&window.bank, &window.id, bypass_cache);
                return Ok(());
            }
            Err(ModelFailure::Refused { problem, response, extractor }) => {
                let turns: Vec<&str> = window
                    .turns
                    .iter()
                    .filter(|turn| !turn.context && turn.is_recalled())
                    .map(|turn| turn.turn.turn.as_str())
                    .collect();
                let origin = format!("{}, turns {turns:?}", window_origin(&window.bank, &window.id, &extractor));
                let stays = if bypass_cache { "the units that it had before stay" } else { "its plain units stay" };
                let reason = format!("{problem}; {stays}");
                let letter = DeadLetter::new(origin, reason, response.as_bytes());
                work.transaction.dead_letters.push(letter.in_bank(Some(window.bank.clone())));
                work.step.refused += 1;
                work.step.usage.push(usage);
                if bypass_cache {
                    return Ok(());
                }
                (model_worker_pool::fallback_name(&extractors.rules, &extractor), extractors.rules.extract(&window)?)
            }
        };
        self.in_part.remove(&(window.bank.clone(), window.id.clone()));
        work.plan(closed_record(window, turns_hash, extractor, drafts, extractors.rules.language()));
        Ok(())
    }
}

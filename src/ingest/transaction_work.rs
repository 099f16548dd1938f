//! The work of one transaction: events of some banks, the windows that they change, and the records of those windows.
//!
//! In: changed windows, and windows that a language model has read. Out: planned records, still without vectors, and
//! the nulls of the records that they replace. A bank is in the work of only one transaction at a time.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use super::{
    PipelineError,
    cached_embedder::{PrecomputedVectors, WindowDrafts},
    model_worker_pool::{self, ExtractorSet},
    partial_windows,
};
use logs::Transaction;
use memory::{
    extract::{
        DraftUnit, Extractor, TurnLanguages,
        open_turn::{PLAIN, plain_units},
    },
    statements::record_statements,
    window::WindowChange,
};
use types::model::{
    Bank, Language, MemoryKey, MemoryRecord, ModelUsage, RecordStatements, Window, WindowId, WindowState, WindowTurn,
};

/// If deletions change at least this many closed windows in one transaction, they are applied before the windows are
/// extracted again. With fewer, no units of the remaining turns are missing in between.
const IN_PART_FROM: usize = 4;

/// What one step wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtractionStepReport {
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
    /// Records that changed nothing because a newer version or a deletion stands, those of `not_kept` included.
    pub stale: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units of the records that were written.
    pub units: u64,
    /// Windows that got the model's units.
    pub by_model: u64,
    /// Windows for which the model's units could not be used.
    pub refused: u64,
    /// Dead letters that were written.
    pub dead_letters: u64,
    /// Usage of each window counted in `by_model` and `refused`.
    pub usage: Vec<ModelUsage>,
    /// How long the step took.
    pub took: Duration,
}

/// A record without its units.
pub(super) struct RecordFrame {
    pub(super) key: MemoryKey,
    pub(super) state: WindowState,
    pub(super) extractor: String,
    pub(super) turns_hash: String,
    pub(super) turns: Vec<WindowTurn>,
    pub(super) statements: RecordStatements,
}

/// The work of one transaction, on its way from the turns log to the memory log.
#[derive(Default)]
pub(super) struct TransactionWork {
    pub(super) transaction: Transaction,
    pub(super) step: ExtractionStepReport,
    /// The banks that wait for it.
    pub(super) banks: BTreeSet<Bank>,
    /// The banks from which events were taken.
    pub(super) taken: Vec<Bank>,
    /// Whether it was begun for banks with little to do.
    pub(super) is_shared: bool,
    /// The bytes of its events.
    pub(super) bytes: usize,
    /// The turns of the windows that its events close.
    pub(super) closing_turns: usize,
    /// The bytes that may still be embedded before other work has its turn.
    pub(super) credit: usize,
    /// The time spent on it so far.
    pub(super) worked: Duration,
    /// Windows that changed.
    pub(super) changes: usize,
    /// The changes that are not planned yet, and whether each deletes turns of a closed window.
    pub(super) unplanned: VecDeque<(WindowChange, bool)>,
    /// Whether enough closed windows lose turns that they first lose units, before they are extracted again.
    pub(super) are_many: bool,
    /// Turns that were edited or deleted.
    pub(super) revised: Vec<(Bank, BTreeSet<String>)>,
    pub(super) planned: Vec<RecordFrame>,
    /// The drafts of each planned record.
    pub(super) drafted: Vec<WindowDrafts>,
    /// Vectors that are made piece by piece; `None` until everything is planned.
    pub(super) ahead: Option<PrecomputedVectors>,
    /// All drafts of the open windows that hold a revised turn.
    pub(super) revised_open: Vec<WindowDrafts>,
    /// How many of the planned records, from the first, come from the model.
    pub(super) read_by_model: usize,
    /// Records that lost the units which depend on deleted turns.
    pub(super) in_part: Vec<MemoryRecord>,
    /// How many of the planned records are of windows that lacked units.
    pub(super) extracted_again: usize,
    /// The new numbers of parts, for records where they change.
    pub(super) part_counts: BTreeMap<MemoryKey, u32>,
}

impl TransactionWork {
    /// Whether it writes nothing.
    pub(super) fn is_empty(&self) -> bool {
        let Transaction { dead_letters, forwards, .. } = &self.transaction;
        let is_read = !self.taken.is_empty() || self.changes > 0;
        !is_read && self.planned.is_empty() && dead_letters.is_empty() && forwards.is_empty()
    }

    pub(super) fn plan(&mut self, (planned, drafted): (RecordFrame, WindowDrafts)) {
        self.planned.push(planned);
        self.drafted.push(drafted);
    }

    /// Adds changes of its banks' windows, with the turns that were edited or deleted.
    pub(super) fn change(&mut self, changes: Vec<WindowChange>, revised: Vec<(Bank, BTreeSet<String>)>) {
        self.changes += changes.len();
        let forget = partial_windows::deletes_closed_turns(&changes, &revised);
        self.revised.extend(revised);
        self.unplanned.extend(changes.into_iter().zip(forget));
        self.are_many = self.unplanned.iter().filter(|(_, forgets)| *forgets).count() >= IN_PART_FROM;
    }

    /// Whether it contains a change of this window.
    pub(super) fn changes(&self, bank: &Bank, window: &WindowId) -> bool {
        let is_planned = self.planned.iter().any(|of| of.key.bank == *bank && of.key.window == *window);
        is_planned || self.unplanned.iter().any(|(of, _)| of.window.bank == *bank && of.window.id == *window)
    }
}

/// The origin of a dead letter about a window.
pub(super) fn window_origin(bank: &Bank, window: &WindowId, extractor: &str) -> String {
    format!("bank {bank}, session {:?}, window {}, by {extractor}", window.session.0, window.start)
}

/// The record of a closed window as the rules extract it, still without vectors.
pub(super) fn extracted(
    window: Window,
    extractors: &ExtractorSet,
) -> Result<(RecordFrame, WindowDrafts), PipelineError> {
    let (extractor, drafts) = (extractors.provisional_name(&window), extractors.rules.extract(&window)?);
    let turns_hash = window.turns_hash();
    Ok(closed_record(window, turns_hash, extractor, drafts, extractors.rules.language()))
}

/// The single record of a closed window, still without vectors.
pub(super) fn closed_record(
    window: Window,
    turns_hash: String,
    extractor: String,
    drafts: Vec<DraftUnit>,
    language: Language,
) -> (RecordFrame, WindowDrafts) {
    let languages = TurnLanguages::of(&window.turns, language);
    let statements = record_statements(&window.turns, &window.turns, |turn| languages.of_turn(turn));
    let key = MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn: None, part: 0 };
    let asked_again = model_worker_pool::is_provisional(&extractor);
    let planned =
        RecordFrame { key, state: WindowState::Final, extractor, turns_hash, turns: window.turns, statements };
    (planned, WindowDrafts { bank: window.bank, window: window.id, drafts, asked_again })
}

/// Plans the records of a changed window, and the nulls of those that it no longer has.
pub(super) fn plan(
    change: WindowChange,
    extractors: &ExtractorSet,
    least_content_words: u32,
    parts: &HashMap<MemoryKey, u32>,
    work: &mut TransactionWork,
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
            statements: record_statements(&alone.turns, &window.turns, |turn| languages.of_turn(turn)),
            turns: alone.turns,
        };
        let (bank, window) = (window.bank.clone(), window.id.clone());
        work.plan((open_record, WindowDrafts { bank, window, drafts, asked_again: true }));
    }
    Ok(())
}

//! The turns of a bank, as the log holds them.
//!
//! In: a log, a bank. Out: the bank's turns, each once and as last edited, or the versions of one turn; deleted turns
//! are left out. A list reads every record of the bank, and stops early once no one waits for it.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use super::{Cancellation, PipelineError, each_record};
use logs::{Log, LogRecord, Topic, partition_of};
use types::model::{Bank, MemoryKey, Selector, StoredTimes, Turn, TurnEvent, WindowTurn, holds_contact};
use types::record_value::turns_of;

/// The pause between two checks of how far the turns are extracted.
const PAUSE: Duration = Duration::from_millis(100);

/// A turn that the memory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurn {
    /// The turn, as last edited.
    pub turn: Arc<Turn>,
    /// The offset of this version in the turns topic.
    pub offset: u64,
    /// When the memory's record that holds it was written, in milliseconds since 1970.
    pub recorded_ms: i64,
    /// When this version and the first one were stored; `None` if an earlier build recorded it.
    pub stored: Option<StoredTimes>,
}

impl StoredTurn {
    /// Its place in a list: by time, and those of one moment as they arrived, as far as that is known: of turns that were
    /// stored in the same millisecond, an edited one comes last.
    #[must_use]
    pub fn place(&self) -> impl Ord + Copy + '_ {
        (self.turn.time, self.stored.map(|stored| stored.first_ms), self.offset, self.turn.turn.as_str())
    }
}

/// A version of a turn, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnVersion {
    /// The turn in this version.
    pub turn: Turn,
    /// When the version was appended to the log, in milliseconds since 1970.
    pub append_ms: i64,
}

/// The turns of a bank whose ids pass, in time order, each as last edited. Reading stops once `most` are found.
///
/// # Errors
/// [`PipelineError`] if the log failed; [`PipelineError::Quarantined`] if a record of the bank cannot be read.
pub fn stored_turns(
    log: &dyn Log,
    bank: &Bank,
    passes: &dyn Fn(&str) -> bool,
    most: usize,
) -> Result<Vec<StoredTurn>, PipelineError> {
    turns_that_pass(log, bank, &|held| passes(&held.turn.turn), most, &Cancellation::default())
}

/// As [`stored_turns`], but `passes` receives the whole turn, and reading stops once no one waits.
pub fn turns_that_pass(
    log: &dyn Log,
    bank: &Bank,
    passes: &dyn Fn(&StoredTurn) -> bool,
    most: usize,
    cancellation: &Cancellation,
) -> Result<Vec<StoredTurn>, PipelineError> {
    let partition = partition_of(bank, log.partitions());
    let mut found: HashMap<String, StoredTurn> = HashMap::new();
    let (mut problem, mut ended) = (None, Ok(()));
    let all = &mut |_: &[u8], _| true;
    log.live_records(partition, &MemoryKey::prefix(bank), all, &mut |record| {
        ended = cancellation.check();
        if ended.is_err() {
            return ControlFlow::Break(());
        }
        let turns = match turns_of_record(record) {
            Ok(turns) => turns,
            Err(error) => {
                problem = Some((record.offset, error));
                return ControlFlow::Break(());
            }
        };
        for held in turns {
            // Of two records that hold a turn, the later one says what it is.
            if passes(&held) {
                found.insert(held.turn.turn.clone(), held);
            } else {
                found.remove(&held.turn.turn);
            }
        }
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    ended?;
    if let Some((offset, problem)) = problem {
        return Err(PipelineError::Quarantined { bank: bank.clone(), partition, offset, problem });
    }
    let mut turns: Vec<StoredTurn> = found.into_values().collect();
    turns.sort_by(|a, b| a.place().cmp(&b.place()));
    Ok(turns)
}

/// How many turns of a bank have an id that holds a phone number or a mail address, as earlier builds stored it. Reads
/// all records of the bank, until no one waits any more. A record that cannot be read is left out.
///
/// # Errors
/// [`PipelineError`] if the log failed; [`PipelineError::Cancelled`] or [`PipelineError::Deadline`] once no one waits
/// any more.
pub fn count_plain_ids(log: &dyn Log, bank: &Bank, cancellation: &Cancellation) -> Result<u64, PipelineError> {
    // A turn may stand in several records.
    let (mut ids, mut ended) = (HashSet::new(), Ok(()));
    let all = &mut |_: &[u8], _| true;
    log.live_records(partition_of(bank, log.partitions()), &MemoryKey::prefix(bank), all, &mut |record| {
        ended = cancellation.check();
        if ended.is_err() {
            return ControlFlow::Break(());
        }
        let held = turns_of_record(record).into_iter().flatten();
        ids.extend(held.map(|held| held.turn.turn.clone()).filter(|id| holds_contact(id)));
        ControlFlow::Continue(())
    })?;
    ended?;
    Ok(ids.len() as u64)
}

/// The turns that a memory record holds. Deleted turns, and turns that it holds only as context, are left out.
///
/// # Errors
/// Why the record cannot be read.
pub fn turns_of_record(record: &LogRecord) -> Result<impl Iterator<Item = StoredTurn>, String> {
    let turns = turns_of(record.value.as_deref().unwrap_or_default())?.into_iter();
    let recorded_ms = record.append_ms;
    let held = turns.filter(|turn| !turn.context && !turn.deleted);
    Ok(held.map(move |WindowTurn { turn, source_offset: offset, stored, .. }| StoredTurn {
        turn,
        offset,
        recorded_ms,
        stored,
    }))
}

/// The turns of a bank that a selector selects, in time order. An empty selector selects all turns. Only the selected
/// turns are kept in memory.
///
/// # Errors
/// As [`stored_turns`]; [`PipelineError::Select`] for a selector that [`Selector::check`] refuses;
/// [`PipelineError::Cancelled`] or [`PipelineError::Deadline`] once no one waits any more.
pub fn selected_turns(
    log: &dyn Log,
    bank: &Bank,
    select: &Selector,
    cancellation: &Cancellation,
) -> Result<Vec<StoredTurn>, PipelineError> {
    if select.is_empty() {
        return turns_that_pass(log, bank, &|_| true, usize::MAX, cancellation);
    }
    let selection = select.compile().map_err(|problem| PipelineError::Select { problem })?;
    turns_that_pass(log, bank, &|held| selection.takes(&held.turn), usize::MAX, cancellation)
}

/// Waits until lists of a bank's turns include every turn that is durable now, whichever process extracts. False if
/// `may_wait` becomes false before that.
///
/// # Errors
/// [`PipelineError::Log`].
pub fn wait_until_listed(log: &dyn Log, bank: &Bank, may_wait: &dyn Fn() -> bool) -> Result<bool, PipelineError> {
    let partition = partition_of(bank, log.partitions());
    let end = log.end_of_turns(partition)?;
    while log.listed_to(bank)? < end {
        if !may_wait() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// When the record at an offset of the turns topic was appended, in milliseconds since 1970; `None` without one.
pub fn append_ms(log: &dyn Log, bank: &Bank, offset: u64) -> Result<Option<i64>, PipelineError> {
    let read = log.read(Topic::Turns, partition_of(bank, log.partitions()), offset, 1)?;
    Ok(read.records.first().filter(|record| record.offset == offset).map(|record| record.append_ms))
}

/// The versions of a turn up to the offset `last` of the turns topic, oldest first. Reads the bank's partition up to
/// that offset. Versions that were sent again, or came after a newer version, are left out: they changed nothing.
pub fn versions(
    log: &dyn Log,
    bank: &Bank,
    id: &str,
    last: u64,
    cancellation: &Cancellation,
) -> Result<Vec<TurnVersion>, PipelineError> {
    let mut versions = Vec::<TurnVersion>::new();
    each_record(log, bank, last.saturating_add(1), cancellation, &mut |LogRecord { append_ms, value, .. }| {
        let event = TurnEvent::from_log(value.as_deref().unwrap_or_default());
        if let Ok(TurnEvent::Turn(turn)) = event
            && turn.turn == id
            && versions.last().is_none_or(|before| before.turn.version < turn.version)
        {
            versions.push(TurnVersion { turn, append_ms: *append_ms });
        }
    })?;
    Ok(versions)
}

//! How many turns were forgotten since a point of the past.
//!
//! In: the turns log, a bank, and times. Out: how many turns the bank had at one of these times and no longer has, no
//! matter who deleted them. Depends only on the log: on its records, their order, and when each was appended. Erased
//! turns count as before. Turns that an import brought are only in the memory's records, and count from the import on;
//! an imported turn that was edited counts from its first edit on.

use std::{collections::HashMap, ops::ControlFlow};

use memchr::memmem;
use memory::window::UNSEEN_SESSION;

use super::{Cancellation, PipelineError, Replica};
use logs::{Log, partition_of};
use pipeline::{each_record, imported_ms};
use snapshots::{AsOf, BankDiff};
use types::model::{Bank, MemoryKey, TurnEvent};
use types::record_value::turns_of;

/// Bytes that the JSON of every deletion contains.
const DELETION: &[u8] = b"\"deletion\"";

/// The state of a turn that has a deletion, as of the records read so far.
#[derive(Debug, Default)]
struct TurnDeletionState {
    /// The highest version of the turn, and the highest version of its deletions.
    turn: Option<u64>,
    deletion: Option<u64>,
    /// When its last record was appended.
    append_ms: i64,
    /// Whether the bank had it at one of the times.
    was_held: bool,
}

impl TurnDeletionState {
    /// The state of a turn that was imported at this time.
    fn imported(at_ms: i64) -> Self {
        Self { turn: Some(0), append_ms: at_ms, ..Self::default() }
    }

    fn is_new(&self) -> bool {
        self.turn.is_none() && self.deletion.is_none()
    }

    fn is_held(&self) -> bool {
        self.turn.is_some_and(|turn| self.deletion.is_none_or(|deletion| turn > deletion))
    }
}

/// The turns of a bank that were deleted while the memory held them, each with the offset of its last deletion.
fn emptied(log: &dyn Log, bank: &Bank) -> Result<HashMap<String, u64>, PipelineError> {
    let mut emptied = HashMap::new();
    let partition = partition_of(bank, log.partitions());
    // This session has the deletions of turns that the memory never held.
    let mut is_seen =
        |key: &[u8], _: u64| MemoryKey::from_bytes(key).is_ok_and(|key| key.window.session.0 != UNSEEN_SESSION);
    log.live_records(partition, &MemoryKey::prefix(bank), &mut is_seen, &mut |record| {
        // A record that cannot be read quarantines its bank, which says so.
        let turns = turns_of(record.value.as_deref().unwrap_or_default()).unwrap_or_default().into_iter();
        emptied.extend(turns.filter(|turn| turn.deleted).map(|turn| (turn.turn.turn.clone(), turn.source_offset)));
        ControlFlow::Continue(())
    })?;
    Ok(emptied)
}

/// What was added to and removed from a bank between two points of its past; see [`Replica::diff`]. On a log in a
/// directory, also how many turns were forgotten since.
pub fn compare_points(
    replica: &Replica,
    log: &dyn Log,
    bank: &Bank,
    [from, to]: [AsOf; 2],
) -> Result<BankDiff, PipelineError> {
    let mut difference = replica.diff(bank, from, to)?;
    if log.erasable().is_some() {
        difference.forgotten = count_forgotten_since(log, bank, &difference.append_ms)?;
    }
    Ok(difference)
}

/// How many turns a bank had at one of these times, in milliseconds since 1970, and no longer has.
pub(super) fn count_forgotten_since(log: &dyn Log, bank: &Bank, points_ms: &[i64]) -> Result<u64, PipelineError> {
    let (mut turns, mut deleted_ms) = (HashMap::<String, TurnDeletionState>::new(), i64::MIN);
    each_record(log, bank, u64::MAX, &Cancellation::default(), &mut |record| {
        let json = record.value.as_deref().unwrap_or_default();
        if memmem::find(json, DELETION).is_some()
            && let Ok(TurnEvent::Deletion(deletion)) = TurnEvent::from_log(json)
        {
            turns.entry(deletion.turn).or_default();
            deleted_ms = record.append_ms.max(deleted_ms);
        }
    })?;
    // Usually nothing was deleted since, and no turn need be read.
    if points_ms.iter().all(|point| deleted_ms <= *point) {
        return Ok(0);
    }
    let imported = match imported_ms(log, bank)? {
        Some(at_ms) => Some((at_ms, emptied(log, bank)?)),
        None => None,
    };
    each_record(log, bank, u64::MAX, &Cancellation::default(), &mut |record| {
        let (turn, version, is_deletion) = match TurnEvent::from_log(record.value.as_deref().unwrap_or_default()) {
            Ok(TurnEvent::Turn(turn)) => (turn.turn, turn.version, false),
            Ok(TurnEvent::Deletion(deletion)) => (deletion.turn, deletion.version, true),
            _ => return,
        };
        let Some(state) = turns.get_mut(&turn) else { return };
        // The log has no earlier record of it, yet this deletion or a later one emptied it: an import brought it.
        if let Some((at_ms, emptied)) = &imported
            && is_deletion
            && state.is_new()
            && emptied.get(&turn).is_some_and(|offset| *offset >= record.offset)
        {
            *state = TurnDeletionState::imported(*at_ms);
        }
        let between = |point: &i64| state.append_ms <= *point && *point < record.append_ms;
        state.was_held |= state.is_held() && points_ms.iter().any(between);
        state.append_ms = record.append_ms;
        let newest = if is_deletion { &mut state.deletion } else { &mut state.turn };
        *newest = (*newest).max(Some(version));
    })?;
    Ok(turns.values().filter(|turn| turn.was_held && !turn.is_held()).count() as u64)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;
    use types::{
        config::Pipeline,
        model::{EventTime, SessionId, Turn, TurnDeletion, WindowId, WindowTurn},
    };

    use super::*;
    use logs::{EmbeddedLog, Topic, Transaction};
    use pipeline::note_import;

    #[test]
    fn turns_count_that_were_there_and_are_no_more() {
        let home = tempfile::tempdir().unwrap();
        let mut settings = Pipeline::parse("version = 1").unwrap().log;
        settings.directory = home.path().join("log");
        let log = EmbeddedLog::open(&settings).unwrap();
        let bank = Bank::parse("b").unwrap();
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let said = |id: &str, version: u64| {
            TurnEvent::Turn(Turn { version, ..Turn::new(bank.clone(), id, "Ann", "about a \"deletion\"", time) })
        };
        let deleted = |id: &str, version: u64| {
            TurnEvent::Deletion(TurnDeletion { bank: bank.clone(), turn: id.to_owned(), version })
        };
        // Each write gets a different time.
        let mut points = Vec::new();
        for events in [
            vec![said("a", 0), said("b", 0), said("c", 0)],
            vec![deleted("b", u64::MAX), deleted("never", u64::MAX)],
            vec![said("d", 0), said("b", 9)],
            vec![deleted("a", 5), deleted("d", 5)],
            vec![said("a", 6)],
        ] {
            log.append_turns(&events).unwrap();
            let last = log.end(Topic::Turns, 0).unwrap() - 1;
            points.push(log.read(Topic::Turns, 0, last, 1).unwrap().records[0].append_ms);
            std::thread::sleep(Duration::from_millis(3));
        }
        let since = |points: &[i64]| count_forgotten_since(&log, &bank, points).unwrap();
        assert_eq!(since(&[points[0] - 1]), 0, "before the first turn");
        assert_eq!(since(&[points[0]]), 1, "b; a was restored");
        assert_eq!(since(&[points[1]]), 0, "b was gone, and d not there");
        assert_eq!(since(&[points[2]]), 1, "d; b stays deleted");
        assert_eq!(since(&[points[0], points[2]]), 2);
        assert_eq!(since(&[points[3]]), 0);
        assert_eq!(since(&[points[4]]), 0);
        assert_eq!(count_forgotten_since(&log, &Bank::parse("other").unwrap(), &points).unwrap(), 0);
    }

    #[test]
    fn a_turn_that_an_import_brought_counts_from_the_import_on() {
        let home = tempfile::tempdir().unwrap();
        let mut settings = Pipeline::parse("version = 1").unwrap().log;
        settings.directory = home.path().join("log");
        let log = EmbeddedLog::open(&settings).unwrap();
        let bank = Bank::parse("b").unwrap();
        note_import(&log, &Bank::parse("b2").unwrap(), 7).unwrap();
        note_import(&log, &bank, 1_000).unwrap();
        let deletions = ["never", "moved"].map(|turn| {
            TurnEvent::Deletion(TurnDeletion { bank: bank.clone(), turn: turn.to_owned(), version: u64::MAX })
        });
        log.append_turns(&deletions).unwrap();
        let emptied = |turn: &str, source_offset: u64| WindowTurn {
            turn: Arc::new(Turn::new(bank.clone(), turn, "-", "", EventTime::parse("2024-05-06T09:00:00Z").unwrap())),
            ordinal: 0,
            context: false,
            deleted: true,
            source_offset,
            stored: None,
        };
        let memory = [("s", emptied("moved", 1)), (UNSEEN_SESSION, emptied("never", 0))].map(|(session, turn)| {
            let window = WindowId { session: SessionId(session.to_owned()), start: 0 };
            let key = MemoryKey { bank: bank.clone(), window, turn: None, part: 0 };
            (key.to_bytes(), Some(json!({ "turns": [turn] }).to_string().into_bytes()))
        });
        let partition = partition_of(&bank, log.partitions());
        let covered = Transaction { partition, next_offset: 2, memory: memory.into(), ..Transaction::default() };
        log.commit(&covered).unwrap();
        let since = |point: i64| count_forgotten_since(&log, &bank, &[point]).unwrap();
        assert_eq!([since(999), since(1_000), since(i64::MAX)], [0, 1, 0]);
    }
}

//! The titles of a bank's sessions.
//!
//! In: titles, and the deletions of turns. Out: the records that hold the titles. A title is kept until another one
//! replaces it, until it is emptied, or until the last turn of its session is deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    change::{TITLE_ID, TITLE_SESSION, WindowChange, session_title, title_id},
    packed_turns::PackedTurn,
    session_windows::SessionWindows,
};
use types::model::{Bank, EventTime, SessionId, SessionTitle, Turn, Window, WindowId, WindowTurn};

/// The speaker in the record of a title.
const NO_SPEAKER: &str = "-";

/// The titles of a bank's sessions.
#[derive(Debug, Default)]
pub(super) struct SessionTitles {
    titles: BTreeMap<String, StoredTitle>,
    /// Sessions whose record is to be written or, without a title, removed.
    changed: BTreeSet<String>,
}

#[derive(Debug)]
struct StoredTitle {
    title: String,
    source_offset: u64,
    /// Whether its record is in the memory log.
    in_log: bool,
}

impl SessionTitles {
    pub(super) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Sets the title of a session, or removes it.
    pub(super) fn apply(&mut self, offset: u64, title: &SessionTitle) {
        if title.title.trim().is_empty() {
            self.remove(&title.session);
        } else {
            self.set(offset, &title.session, &title.title);
        }
    }

    /// Removes the title of a session that has no turn left.
    pub(super) fn drop_if_empty(&mut self, session: &str, sessions: &[SessionWindows]) {
        if !self.titles.contains_key(session) {
            return;
        }
        let is_left = |turn: &PackedTurn<'_>| !turn.deleted && turn.session == Some(session);
        if !sessions.iter().any(|of| of.turns.iter().any(|turn| is_left(&turn))) {
            self.remove(session);
        }
    }

    fn set(&mut self, offset: u64, session: &str, title: &str) {
        let known = self.titles.get(session);
        if known.is_some_and(|known| known.title == title) {
            return;
        }
        let in_log = known.is_some_and(|known| known.in_log);
        let stored = StoredTitle { title: title.to_owned(), source_offset: offset, in_log };
        self.titles.insert(session.to_owned(), stored);
        self.changed.insert(session.to_owned());
    }

    fn remove(&mut self, session: &str) {
        if let Some(removed) = self.titles.remove(session) {
            if removed.in_log {
                self.changed.insert(session.to_owned());
            } else {
                self.changed.remove(session);
            }
        }
    }

    /// Takes a record of the memory log.
    pub(super) fn restore(&mut self, record: &WindowTurn) {
        if let Some((session, title)) = session_title(&record.turn) {
            let stored = StoredTitle { title: title.to_owned(), source_offset: record.source_offset, in_log: true };
            self.titles.insert(session.to_owned(), stored);
        }
    }

    /// The record with this id.
    pub(super) fn record(&self, bank: &Bank, id: &str) -> Option<WindowTurn> {
        let (session, stored) = self.titles.get_key_value(id.strip_prefix(TITLE_ID)?)?;
        Some(record_of(bank, session, stored))
    }

    pub(super) fn drain(&mut self, bank: &Bank) -> Option<WindowChange> {
        let (mut turns, mut remove_open) = (Vec::new(), Vec::new());
        for session in std::mem::take(&mut self.changed) {
            match self.titles.get_mut(&session) {
                Some(stored) => {
                    stored.in_log = true;
                    turns.push(record_of(bank, &session, stored));
                }
                None => remove_open.push(title_id(&session)),
            }
        }
        if turns.is_empty() && remove_open.is_empty() {
            return None;
        }
        let write_open = turns.iter().map(|of| of.turn.turn.clone()).collect();
        let id = WindowId { session: SessionId(TITLE_SESSION.to_owned()), start: 0 };
        let window = Window { bank: bank.clone(), id, turns };
        Some(WindowChange { window, closed: false, write_open, remove_open })
    }
}

fn record_of(bank: &Bank, session: &str, stored: &StoredTitle) -> WindowTurn {
    let time = EventTime { unix_ms: 0, offset_seconds: 0 };
    let turn = Turn::new(bank.clone(), &title_id(session), NO_SPEAKER, &stored.title, time);
    let source_offset = stored.source_offset;
    WindowTurn { turn: Arc::new(turn), ordinal: 0, context: false, deleted: true, source_offset, stored: None }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Windower,
        tests::{RecordLedger, settings},
    };
    use super::*;
    use types::model::{TurnDeletion, TurnEvent};

    fn bank() -> Bank {
        Bank::parse("b").unwrap()
    }

    fn titles(ledger: &RecordLedger) -> Vec<(String, String)> {
        let turns = ledger.0.values().flat_map(|record| record.turns.iter());
        turns.filter_map(|of| session_title(&of.turn)).map(|(s, t)| (s.to_owned(), t.to_owned())).collect()
    }

    #[test]
    fn a_title_is_kept_until_its_session_has_no_turn_left() {
        let title = |session: &str, title: &str| {
            TurnEvent::SessionTitle(SessionTitle { bank: bank(), session: session.to_owned(), title: title.to_owned() })
        };
        let turn = |id: &str, session: &str| {
            let time = EventTime::parse("2024-05-01T10:00:00Z").unwrap();
            TurnEvent::Turn(Turn { session: Some(session.to_owned()), ..Turn::new(bank(), id, "Ann", "hi", time) })
        };
        let gone = |id: &str| TurnEvent::Deletion(TurnDeletion::permanent(bank(), id.to_owned()));
        let events = [
            title("s", "Before its first turn"),
            turn("1", "s"),
            turn("2", "s"),
            title("s", "Boats"),
            turn("3", "t"),
            title("t", "Tents"),
            title("u", "Later"),
            title("u", ""),
            gone("1"),
            gone("3"),
            gone("2"),
        ];
        let expected: [&[(&str, &str)]; 11] = [
            &[("s", "Before its first turn")],
            &[("s", "Before its first turn")],
            &[("s", "Before its first turn")],
            &[("s", "Boats")],
            &[("s", "Boats")],
            &[("s", "Boats"), ("t", "Tents")],
            &[("s", "Boats"), ("t", "Tents"), ("u", "Later")],
            &[("s", "Boats"), ("t", "Tents")],
            &[("s", "Boats"), ("t", "Tents")],
            &[("s", "Boats")],
            &[],
        ];
        for restarts in [false, true] {
            let settings = settings(9, 0);
            let (mut windower, mut ledger) = (Windower::new(&settings), RecordLedger::default());
            for (offset, (event, expected)) in events.iter().zip(expected).enumerate() {
                if restarts {
                    windower = ledger.restart(&settings);
                }
                windower.apply(offset as u64 + 1, event);
                ledger.write(&windower.drain());
                let expected: Vec<_> = expected.iter().map(|(s, t)| ((*s).to_owned(), (*t).to_owned())).collect();
                assert_eq!(titles(&ledger), expected, "after {event:?}");
            }
        }
    }
}

//! Memory records back to the state that wrote them.
//!
//! In: the live records of a bank, in any order. Out: sessions, ordinals, versions,
//! deletions and windows as they were, and as changes what the log left unfinished: a
//! closed window without a final record, open records beside a final one, a record that
//! holds a replaced version of a turn. Ends and idle marks are not stored: the window
//! that they closed has its final record from the same transaction.

use std::sync::Arc;

use super::{
    Rules, UNSEEN_SESSION,
    bank::{BankWindows, Place, Unseen},
    session::{Held, Session},
};
use crate::model::{Deletion, MemoryKey, WindowTurn};

/// The version of every turn in every record, to find the records that are behind.
#[derive(Debug, Default)]
pub(super) struct Copies(Vec<Copy>);

#[derive(Debug)]
struct Copy {
    place: Place,
    start: u32,
    version: (u64, bool, u64),
}

impl BankWindows {
    /// Takes one record; [`Self::settle`] follows the last.
    pub(super) fn restore(&mut self, key: &MemoryKey, turns: &[WindowTurn]) {
        if key.window.session.0 == UNSEEN_SESSION {
            for turn in turns {
                let (version, source_offset) = (turn.turn.version, turn.source_offset);
                let unseen = Unseen { version, source_offset, in_log: true };
                self.unseen.insert(turn.turn.turn.clone(), unseen);
            }
            return;
        }
        let index = self.session(&key.window.session);
        let start = key.window.start;
        for turn in turns {
            self.restore_turn(index, start, turn);
        }
        let Some(session) = self.sessions.get_mut(index) else { return };
        let span = session.windows.entry(start).or_default();
        match &key.turn {
            Some(turn) => {
                let ordinal = turns.first().map_or(start, |held| held.ordinal);
                span.in_log.insert((ordinal, turn.clone()));
            }
            None => {
                span.closed = true;
                let context = turns.iter().filter(|turn| turn.context);
                span.context = context.map(|turn| start.saturating_sub(turn.ordinal)).max().unwrap_or(0);
                self.reach = self.reach.max(span.context);
            }
        }
    }

    fn restore_turn(&mut self, index: usize, start: u32, turn: &WindowTurn) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        let version = (turn.turn.version, turn.deleted, turn.source_offset);
        let held = Held { turn: Arc::clone(&turn.turn), deleted: turn.deleted, source_offset: turn.source_offset };
        let best = session.turns.entry(turn.ordinal).or_insert_with(|| held.clone());
        if version_of(best) < version {
            *best = held;
        }
        let place = Place { session: index, ordinal: turn.ordinal };
        self.places.insert(turn.turn.turn.clone(), place);
        self.copies.0.push(Copy { place, start, version });
    }

    /// Brings the restored records together.
    pub(super) fn settle(&mut self) {
        let later = LaterTurns::of(&self.sessions);
        for index in 0..self.sessions.len() {
            self.settle_session(index, &later);
        }
        for copy in std::mem::take(&mut self.copies).0 {
            self.settle_copy(&copy);
        }
        let seen: Vec<String> = self.unseen.keys().filter(|turn| self.places.contains_key(*turn)).cloned().collect();
        for turn in seen {
            if let Some(unseen) = self.forget_unseen(&turn) {
                let deletion = Deletion { bank: self.bank.clone(), turn, version: unseen.version };
                self.delete(unseen.source_offset, &deletion);
            }
        }
    }

    fn settle_session(&mut self, index: usize, later: &LaterTurns) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if let Some(number) = session.auto {
            for held in session.turns.values() {
                self.autos.add(number, held.turn.time.unix_ms);
            }
        }
        let starts: Vec<u32> = session.windows.keys().copied().collect();
        for start in starts {
            let Some(last_ms) = session.retime(start) else {
                // Only a record without turns leads here: there is nothing to hold.
                session.windows.remove(&start);
                continue;
            };
            let Some(span) = session.windows.get_mut(&start) else { continue };
            if span.closed {
                if !span.in_log.is_empty() {
                    self.changed.insert((index, start));
                }
                continue;
            }
            span.context = self.rules.overlap.min(start);
            if is_due(session, start, &self.rules, later) {
                self.changed.insert((index, start));
                if let Some(span) = session.windows.get_mut(&start) {
                    span.closed = true;
                }
            } else {
                self.open.insert((last_ms, index));
            }
        }
    }

    /// A record that holds another version than the winning one is written again.
    fn settle_copy(&mut self, copy: &Copy) {
        let Some(session) = self.sessions.get_mut(copy.place.session) else { return };
        let current = session.turns.get(&copy.place.ordinal).is_some_and(|held| version_of(held) == copy.version);
        if current {
            return;
        }
        if let Some(span) = session.windows.get_mut(&copy.start) {
            if !span.closed {
                span.unwritten.insert(copy.place.ordinal);
            }
            self.changed.insert((copy.place.session, copy.start));
        }
    }
}

/// Whether a window without a final record had closed, or closes under these settings:
/// another follows it, it is full, or a turn from after its gap came after its turns.
fn is_due(session: &Session, start: u32, rules: &Rules, later: &LaterTurns) -> bool {
    let follows = session.open() != Some(start);
    follows || session.is_full(start, rules) || (rules.sessions && went_silent(session, start, rules, later))
}

fn went_silent(session: &Session, start: u32, rules: &Rules, later: &LaterTurns) -> bool {
    let Some(offset) = session.own(start).map(|(_, held)| held.source_offset).max() else { return false };
    let Some(span) = session.windows.get(&start) else { return false };
    later.latest_after(offset).is_some_and(|time_ms| span.last_ms.saturating_add(rules.gap_ms) < time_ms)
}

/// For every text of a bank, by offset: the latest event time from there on.
struct LaterTurns(Vec<(u64, i64)>);

impl LaterTurns {
    fn of(sessions: &[Session]) -> Self {
        let texts = sessions.iter().flat_map(|session| session.turns.values()).filter(|held| !held.deleted);
        let mut times: Vec<(u64, i64)> = texts.map(|held| (held.source_offset, held.turn.time.unix_ms)).collect();
        times.sort_unstable();
        let mut latest = i64::MIN;
        for (_, time) in times.iter_mut().rev() {
            latest = latest.max(*time);
            *time = latest;
        }
        Self(times)
    }

    /// The latest event time among the texts that came after an offset.
    fn latest_after(&self, offset: u64) -> Option<i64> {
        let next = self.0.partition_point(|(at, _)| *at <= offset);
        self.0.get(next).map(|(_, time)| *time)
    }
}

fn version_of(held: &Held) -> (u64, bool, u64) {
    (held.turn.version, held.deleted, held.source_offset)
}

//! Rebuilds the state from the memory records that it wrote.
//!
//! In: the live records of a bank, in any order. Out: its sessions, ordinals, versions, deletions and windows; and, as
//! changes, what the log left unfinished: a closed window without a final record, open records next to a final one, a
//! record with a replaced version of a turn. End marks and idle marks are not stored, because the transaction that
//! applied one also wrote the final record.

use super::{
    bank_windows::{BankWindows, RestoredTurn, UnseenDeletion},
    change::{TITLE_SESSION, UNSEEN_SESSION},
    packed_turns::PackedTurn,
    session_windows::{SessionWindows, TurnPosition, WindowSpan},
    window_rules::WindowRules,
};
use types::model::{MemoryKey, TurnDeletion, WindowTurn};

impl BankWindows {
    /// Takes one record; [`Self::reconcile`] must be called after the last one.
    pub(super) fn restore_record(&mut self, key: &MemoryKey, turns: &[WindowTurn]) {
        if key.window.session.0 == UNSEEN_SESSION {
            for turn in turns {
                let (version, source_offset) = (turn.turn.version, turn.source_offset);
                let unseen = UnseenDeletion { version, source_offset, in_log: true };
                self.unseen.insert(turn.turn.turn.clone(), unseen);
            }
            return;
        }
        if key.window.session.0 == TITLE_SESSION {
            turns.iter().for_each(|turn| self.titles.restore(turn));
            return;
        }
        let index = self.session(&key.window.session);
        let start = key.window.start;
        for turn in turns {
            self.restore_turn(index, start, turn);
        }
        let Some(session) = self.sessions.get_mut(index) else { return };
        let span = session.windows.get_or_insert_with(start, WindowSpan::default);
        match &key.turn {
            Some(_) => span.open_records().in_log.extend(turns.iter().map(|turn| turn.ordinal)),
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
        if session.turns.get(turn.ordinal).is_none_or(|best| version_of(&best) < version) {
            let mut restored = PackedTurn::of(&turn.turn, turn.ordinal, turn.source_offset);
            (restored.deleted, restored.stored) = (turn.deleted, turn.stored);
            session.turns.insert(&restored);
        }
        let position = TurnPosition { session: index, ordinal: turn.ordinal };
        self.positions.insert(position, &self.sessions);
        self.restored.push(RestoredTurn { position, start, version });
    }

    /// Reconciles the restored records with each other and with the settings.
    pub(super) fn reconcile(&mut self) {
        let later = LatestTextTimes::of(&self.sessions);
        for index in 0..self.sessions.len() {
            self.reconcile_session(index, &later);
        }
        for turn in std::mem::take(&mut self.restored) {
            self.rewrite_replaced(&turn);
        }
        let is_seen = |turn: &&String| self.positions.get(turn, &self.sessions).is_some();
        let seen: Vec<String> = self.unseen.keys().filter(is_seen).cloned().collect();
        for turn in seen {
            if let Some(unseen) = self.remove_unseen(&turn) {
                let deletion = TurnDeletion { bank: self.bank.clone(), turn, version: unseen.version };
                self.delete(unseen.source_offset, &deletion);
            }
        }
    }

    fn reconcile_session(&mut self, index: usize, later: &LatestTextTimes) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if let Some(number) = session.auto {
            for turn in session.turns.iter() {
                self.autos.add(number, turn.unix_ms);
            }
        }
        for turn in session.turns.iter() {
            self.conversations.add(&session.id, &turn, TurnPosition { session: index, ordinal: turn.ordinal });
        }
        let starts: Vec<u32> = session.windows.iter().map(|(start, _)| *start).collect();
        for start in starts {
            let Some(last_ms) = session.retime(start) else {
                // A record without turns: there are no empty windows.
                session.windows.remove(start);
                continue;
            };
            let Some(span) = session.windows.get_mut(start) else { continue };
            if span.closed {
                if span.is_open_in_log() {
                    self.changed.insert((index, start));
                }
                continue;
            }
            span.context = self.rules.overlap.min(start);
            if is_due(session, start, &self.rules, later) {
                self.changed.insert((index, start));
                if let Some(span) = session.windows.get_mut(start) {
                    span.closed = true;
                }
            } else {
                self.open.insert((last_ms, index));
            }
        }
    }

    /// Marks the window of a record that holds a replaced version, so that the record is written again.
    fn rewrite_replaced(&mut self, turn: &RestoredTurn) {
        let Some(session) = self.sessions.get_mut(turn.position.session) else { return };
        let current =
            session.turns.get(turn.position.ordinal).is_some_and(|current| version_of(&current) == turn.version);
        if current {
            return;
        }
        if let Some(span) = session.windows.get_mut(turn.start) {
            if !span.closed {
                span.open_records().unwritten.insert(turn.position.ordinal);
            }
            self.changed.insert((turn.position.session, turn.start));
        }
    }
}

/// Whether a window without a final record had closed, or closes under the current settings: another window follows it,
/// it is full, or a later text closes it.
fn is_due(session: &SessionWindows, start: u32, rules: &WindowRules, later: &LatestTextTimes) -> bool {
    let follows = session.open_window() != Some(start);
    follows || session.is_full(start, rules) || closed_by_later_text(session, start, rules, later)
}

fn closed_by_later_text(session: &SessionWindows, start: u32, rules: &WindowRules, later: &LatestTextTimes) -> bool {
    let Some(offset) = session.own_turns(start).map(|turn| turn.source_offset).max() else { return false };
    let Some(span) = session.windows.get(start) else { return false };
    later.latest_after(offset).is_some_and(|text_ms| rules.closes_at_text(span.last_ms, text_ms))
}

/// Every text of a bank: (offset, latest event time from that offset on), by offset.
struct LatestTextTimes(Vec<(u64, i64)>);

impl LatestTextTimes {
    fn of(sessions: &[SessionWindows]) -> Self {
        let texts = sessions.iter().flat_map(|session| session.turns.iter()).filter(|turn| !turn.deleted);
        let mut times: Vec<(u64, i64)> = texts.map(|turn| (turn.source_offset, turn.unix_ms)).collect();
        times.sort_unstable();
        let mut latest = i64::MIN;
        for (_, time) in times.iter_mut().rev() {
            latest = latest.max(*time);
            *time = latest;
        }
        Self(times)
    }

    /// The latest event time among the texts after an offset.
    fn latest_after(&self, offset: u64) -> Option<i64> {
        let next = self.0.partition_point(|(at, _)| *at <= offset);
        self.0.get(next).map(|(_, time)| *time)
    }
}

fn version_of(turn: &PackedTurn<'_>) -> (u64, bool, u64) {
    (turn.version, turn.deleted, turn.source_offset)
}

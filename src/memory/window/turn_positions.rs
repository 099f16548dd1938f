//! Where each turn of a bank is, by its id.
//!
//! In: turns that were added. Out: the session and the ordinal of a turn. Only eight bytes are held for each turn: its
//! id is read from the turn itself, so a lookup needs the bank's sessions.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::session_windows::{SessionWindows, TurnPosition};

/// The positions of the turns of a bank.
#[derive(Debug, Default)]
pub(super) struct TurnPositions {
    /// Session and ordinal.
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
}

impl TurnPositions {
    /// The position of a turn.
    pub(super) fn get(&self, turn: &str, sessions: &[SessionWindows]) -> Option<TurnPosition> {
        let found = self.table.find(self.hasher.hash_one(turn), |at| id(*at, sessions) == Some(turn))?;
        Some(TurnPosition { session: found.0 as usize, ordinal: found.1 })
    }

    /// Adds a turn that is in one of the sessions; a turn that was added before keeps its position.
    pub(super) fn insert(&mut self, position: TurnPosition, sessions: &[SessionWindows]) {
        // Four billion sessions would not fit into memory.
        let at = (position.session as u32, position.ordinal);
        let Some(turn) = id(at, sessions) else { return };
        let hash = |turn: &str| self.hasher.hash_one(turn);
        let is_same = |other: &(u32, u32)| id(*other, sessions) == Some(turn);
        self.table.entry(hash(turn), is_same, |other| hash(id(*other, sessions).unwrap_or_default())).or_insert(at);
    }
}

/// The id of the turn at a position.
fn id((session, ordinal): (u32, u32), sessions: &[SessionWindows]) -> Option<&str> {
    Some(sessions.get(session as usize)?.turns.get(ordinal)?.id)
}

#[cfg(test)]
mod tests {
    use super::{super::packed_turns::PackedTurn, *};
    use types::model::{Bank, EventTime, SessionId, Turn};

    #[test]
    fn every_turn_is_found_where_it_lies_and_no_other() {
        let bank = Bank::parse("team").expect("a valid name");
        let time = EventTime::new(0, 0).expect("a time");
        let mut sessions: Vec<SessionWindows> =
            (0..3).map(|n| SessionWindows::new(SessionId(format!("caller:{n}")))).collect();
        let mut positions = TurnPositions::default();
        for n in 0..600 {
            let position = TurnPosition { session: n % 3, ordinal: (n / 3 * 2) as u32 };
            let turn = Turn::new(bank.clone(), &n.to_string(), "Ann", "Hello.", time);
            sessions[position.session].turns.insert(&PackedTurn::of(&turn, position.ordinal, n as u64));
            positions.insert(position, &sessions);
            positions.insert(position, &sessions);
        }
        for n in 0..600 {
            let found = positions.get(&n.to_string(), &sessions).expect("a position");
            assert_eq!((found.session, found.ordinal), (n % 3, (n / 3 * 2) as u32));
        }
        assert_eq!(positions.table.len(), 600);
        assert!(positions.get("600", &sessions).is_none() && positions.get("", &sessions).is_none());
    }
}

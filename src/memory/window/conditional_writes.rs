//! Whether a write's condition holds, and which version it gets.
//!
//! In: the writes of a group, in the order of the log. Out: what stands of each, if all conditions hold as of the turns
//! before the group; otherwise the first one that does not, and no change. A function of the events.

use super::{bank_windows::BankWindows, change::WriteEffect, packed_turns::PackedTurn};
use types::model::{ConditionalWrite, DecidedVersion, RefusedWrite, Turn, TurnChange, WriteVerdict};

/// What stands of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StandingTurn {
    Absent,
    Deleted { version: u64 },
    Held { version: u64 },
}

/// What became of a group of conditional writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDecision {
    /// The verdict.
    pub verdict: WriteVerdict,
    /// What each write has become, as a record without a condition; `None` if it wrote nothing.
    pub changes: Vec<Option<TurnChange>>,
}

impl GroupDecision {
    /// The decision that nothing is written.
    pub(super) fn refused(write: &ConditionalWrite, count: usize, refused: RefusedWrite) -> Self {
        let (bank, request) = (write.bank.clone(), write.request.clone());
        let verdict = WriteVerdict { bank, request, refused: Some(refused), written: Vec::new() };
        Self { verdict, changes: vec![None; count] }
    }

    /// The decision that all of it is written, before any of it was.
    pub(super) fn written(write: &ConditionalWrite) -> Self {
        let (bank, request) = (write.bank.clone(), write.request.clone());
        Self { verdict: WriteVerdict { bank, request, refused: None, written: Vec::new() }, changes: Vec::new() }
    }

    /// Adds a write of the group: as it was sent, as it stands, and what it did.
    pub(super) fn add(&mut self, sent: &ConditionalWrite, version: u64, change: Option<TurnChange>, did: WriteEffect) {
        let (turn, stale) = (sent.change.turn_id().to_owned(), did == WriteEffect::Stale);
        self.verdict.written.push(DecidedVersion { turn, version, stale });
        self.changes.push(change);
    }
}

impl BankWindows {
    fn standing(&self, turn: &str) -> StandingTurn {
        if let Some(current) = self.positions.get(turn, &self.sessions).and_then(|position| self.current(position)) {
            let version = current.version;
            return if current.deleted { StandingTurn::Deleted { version } } else { StandingTurn::Held { version } };
        }
        let unseen = self.unseen.get(turn);
        unseen.map_or(StandingTurn::Absent, |unseen| StandingTurn::Deleted { version: unseen.version })
    }

    /// Whether the turn's current version says the same, apart from its number.
    fn says_the_same(&self, turn: &Turn) -> bool {
        let Some(position) = self.positions.get(&turn.turn, &self.sessions) else { return false };
        let Some(current) = self.current(position) else { return false };
        let mut new = PackedTurn::of(turn, position.ordinal, current.source_offset);
        new.version = current.version;
        new.equals_except_offset(&current)
    }

    /// The version that a write gets. `Ok(None)`: there is nothing to delete.
    ///
    /// # Errors
    /// [`RefusedWrite`] if its condition does not hold.
    pub(super) fn version_of(&self, write: &ConditionalWrite) -> Result<Option<u64>, RefusedWrite> {
        let turn = write.change.turn_id();
        let standing = self.standing(turn);
        let refused = |version| {
            let forgotten = standing == StandingTurn::Deleted { version: u64::MAX };
            RefusedWrite { turn: turn.to_owned(), version, forgotten }
        };
        let (present, latest) = match standing {
            StandingTurn::Held { version } => (version, version),
            StandingTurn::Deleted { version } => (0, version),
            StandingTurn::Absent => (0, 0),
        };
        let is_held = matches!(standing, StandingTurn::Held { .. });
        if write.expected_version.is_some_and(|expected| expected != present || (expected == 0) == is_held) {
            return Err(refused(present));
        }
        let version = match &write.change {
            TurnChange::Turn(turn) if write.chooses_version && is_held && self.says_the_same(turn) => present,
            TurnChange::Deletion(_) if write.chooses_version && !is_held => return Ok(None),
            _ if write.chooses_version => latest.saturating_add(1),
            change => change.version(),
        };
        // A version that does not win would change nothing, as if the condition had not held.
        let loses = match &write.change {
            TurnChange::Turn(_) => {
                version < latest || (!is_held && standing != StandingTurn::Absent && version == latest)
            }
            TurnChange::Deletion(_) => version < latest,
        };
        if write.expected_version.is_some() && loses { Err(refused(present)) } else { Ok(Some(version)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Windower, tests::settings};
    use super::*;
    use types::model::{Bank, EventTime, TurnDeletion, TurnEvent};

    fn bank() -> Bank {
        Bank::parse("b").unwrap()
    }

    fn turn(id: &str, version: u64, text: &str) -> Turn {
        Turn { version, ..Turn::new(bank(), id, "Ann", text, EventTime::parse("2024-05-01T10:00:00Z").unwrap()) }
    }

    fn deletion(id: &str, version: u64) -> TurnDeletion {
        TurnDeletion { bank: bank(), turn: id.to_owned(), version }
    }

    /// A write: the expected version, whether the version is chosen, and the change.
    fn write(expected_version: Option<u64>, chooses_version: bool, change: TurnChange) -> ConditionalWrite {
        let request = "r".to_owned();
        ConditionalWrite { bank: bank(), request, index: 0, count: 1, expected_version, chooses_version, change }
    }

    /// A windower in which turn `1` has version 3, turn `0` version 0, turn `d` was deleted in version 5, `gone` for
    /// good, and `never` before it arrived.
    fn windower() -> Windower {
        let mut windower = Windower::new(&settings(9, 0));
        let events: [TurnEvent; 7] = [
            turn("1", 3, "hi").into(),
            turn("0", 0, "zero").into(),
            turn("d", 4, "x").into(),
            TurnEvent::Deletion(deletion("d", 5)),
            turn("gone", 1, "x").into(),
            TurnEvent::Deletion(deletion("gone", u64::MAX)),
            TurnEvent::Deletion(deletion("never", 2)),
        ];
        for (offset, event) in events.iter().enumerate() {
            windower.apply(offset as u64, event);
        }
        windower
    }

    #[test]
    fn a_condition_holds_for_exactly_the_version_that_stands() {
        let said = |id: &str, version: u64| TurnChange::Turn(turn(id, version, "new"));
        let gone = |id: &str, version: u64| TurnChange::Deletion(deletion(id, version));
        let last = u64::MAX;
        // The expected version, whether it is chosen, the change; then the version that is written, or that stands.
        for (expected, chooses, change, outcome) in [
            (Some(3), true, said("1", 0), Ok(4)),
            (Some(3), false, said("1", 9), Ok(9)),
            (Some(3), false, said("1", 2), Err(3)),
            (Some(2), true, said("1", 0), Err(3)),
            (Some(4), true, said("1", 0), Err(3)),
            (Some(0), true, said("1", 0), Err(3)),
            (None, true, said("1", 0), Ok(4)),
            (None, true, TurnChange::Turn(turn("1", 0, "hi")), Ok(3)),
            (Some(3), true, TurnChange::Turn(turn("1", 0, "hi")), Ok(3)),
            (Some(0), true, said("0", 0), Err(0)),
            (None, true, said("0", 0), Ok(1)),
            (Some(0), true, said("new", 0), Ok(1)),
            (Some(0), false, said("new", 7), Ok(7)),
            (Some(1), true, said("new", 0), Err(0)),
            (None, true, said("new", 0), Ok(1)),
            (Some(0), true, said("d", 0), Ok(6)),
            (None, true, said("d", 0), Ok(6)),
            (Some(5), true, said("d", 0), Err(0)),
            (Some(0), false, said("d", 5), Err(0)),
            (Some(0), true, said("gone", 0), Err(0)),
            (None, true, said("gone", 0), Ok(last)),
            (Some(0), true, said("never", 0), Ok(3)),
            (Some(3), false, gone("1", last), Ok(last)),
            (Some(3), true, gone("1", 0), Ok(4)),
            (Some(2), false, gone("1", last), Err(3)),
            // Below a deletion that stands.
            (Some(4), false, gone("d", last), Err(0)),
            (Some(3), true, gone("d", 0), Err(0)),
            (None, true, gone("d", 0), Ok(0)),
            (None, true, gone("new", 0), Ok(0)),
        ] {
            let mut windower = windower();
            let write = write(expected, chooses, change);
            let decision = windower.decide(&[(20, write.clone())]).unwrap();
            let decided = match &decision.verdict.refused {
                Some(refused) => Err(refused.version),
                None => Ok(decision.verdict.written[0].version),
            };
            assert_eq!(decided, outcome, "{write:?}: {decision:?}");
            // What is refused, or says the same, leaves no change; and nothing depends on when windows are drained.
            let mut drained = self::windower();
            drop(drained.drain());
            assert_eq!(drained.decide(&[(20, write.clone())]).unwrap(), decision, "{write:?}");
            if outcome.is_err() {
                assert!(drained.drain().is_empty(), "{write:?}");
            }
        }
    }

    #[test]
    fn of_a_group_all_is_written_or_nothing() {
        let part = |index: u32, expected: Option<u64>, change: TurnChange| ConditionalWrite {
            index,
            count: 3,
            ..write(expected, expected.is_some(), change)
        };
        let said = |id: &str| TurnChange::Turn(turn(id, 0, "new"));
        let mut windower = windower();
        drop(windower.drain());
        let group = |expected: u64| {
            [part(0, Some(3), said("1")), part(1, None, said("2")), part(2, Some(expected), said("0"))]
                .into_iter()
                .zip(20..)
                .map(|(write, offset)| (offset, write))
                .collect::<Vec<_>>()
        };
        let refused = windower.decide(&group(1)).unwrap();
        assert_eq!(refused.verdict.refused.as_ref().map(|of| (of.turn.as_str(), of.version)), Some(("0", 0)));
        assert_eq!(refused.changes, [None, None, None]);
        assert!(windower.drain().is_empty());
        let mut last = group(0);
        last[2].1.change = said("3");
        let written = windower.decide(&last).unwrap();
        let versions: Vec<u64> = written.verdict.written.iter().map(|of| of.version).collect();
        assert_eq!((written.verdict.refused.clone(), versions), (None, vec![4, 0, 1]));
        assert!(written.changes.iter().all(Option::is_some));
        assert!(!windower.drain().is_empty());
    }

    /// What a decision leaves in the log, put into an empty windower, gives the same turns as the decision did.
    #[test]
    fn what_stands_in_the_log_says_what_was_decided() {
        let mut windower = windower();
        let change = TurnChange::Turn(turn("1", 0, "new"));
        let decision = windower.decide(&[(20, write(Some(3), true, change))]).unwrap();
        let mut again = self::windower();
        for change in decision.changes.into_iter().flatten() {
            again.apply(20, &change.into());
        }
        assert_eq!(again.drain(), windower.drain());
    }
}

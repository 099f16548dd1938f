//! The changes of turns and windows in a bank's records, kept until a follower of the bank takes them.
//!
//! In: the bank's records, as they are loaded. Out: new versions of turns, and closed windows, in the order of the log;
//! and the turns with a newer version, whose earlier words must no longer be sent. Only a bounded number is kept, with
//! cut text; the rest is counted. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use types::model::{EventTime, MemoryRecord, WindowState, WindowTurn};

/// Most changes that are kept.
const MAX_KEPT: usize = 1_000;
/// Most turns whose newer versions are kept.
const MAX_VERSIONS: usize = 20_000;
/// Most characters of a turn's text.
const MAX_CHARACTERS: usize = 1_000;

/// A change that a record shows and no earlier one did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordChange {
    /// A version of a turn was read for the first time: it was said, edited or deleted.
    Turn(TurnRevision),
    /// A closed window was written: for the first time, or again because its turns or units changed.
    Window(WrittenWindow),
}

/// A version of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRevision {
    /// Its id.
    pub turn: String,
    /// Who said it; empty once a later version was read.
    pub speaker: String,
    /// When it was said.
    pub time: EventTime,
    /// Its session.
    pub session: String,
    /// What was said, at most 1,000 characters; empty once it is deleted, or a later version was read.
    pub text: String,
    /// Whether the text is cut.
    pub is_cut: bool,
    /// Whether this version deletes it.
    pub is_deleted: bool,
}

/// A closed window, or a part of one that is too large for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenWindow {
    /// Its session.
    pub session: String,
    /// Ordinal, in the session, of its first turn.
    pub start: u32,
    /// The ids of its turns that are not deleted.
    pub turns: Vec<String>,
}

/// The turns that have another version by now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnVersionChanges {
    /// By the id of the turn: its last version.
    pub by_turn: BTreeMap<String, LatestTurnVersion>,
    /// The offset of the memory partition after the last record whose version was left out because there were too many:
    /// any turn may have such a version. 0 if there is none.
    pub left_out_to: u64,
}

/// The last version of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatestTurnVersion {
    /// The offset of the memory partition after its record. An answer that reflects the partition up to there uses this
    /// version; one that reflects less may hold the words of an earlier one.
    pub next_offset: u64,
    /// Whether it, or one shortly before it, deletes the turn.
    pub is_deleted: bool,
}

/// The changes of a bank that no one has taken yet.
#[derive(Debug, Default)]
pub(super) struct RecordChangeBuffer {
    /// Each change with the offset after its record.
    changes: VecDeque<(u64, RecordChange)>,
    /// Offsets of versions in the turns topic that the memory did not cover when they were kept. A version may stand in
    /// several records of a load.
    noted: BTreeSet<u64>,
    left_out: u64,
    versions: TurnVersionChanges,
}

impl RecordChangeBuffer {
    /// Keeps the changes in a record. `covered` is the first offset of the turns topic that no earlier load covers.
    pub(super) fn note(&mut self, record: &MemoryRecord, next_offset: u64, covered: u64) {
        self.noted = self.noted.split_off(&covered);
        let own = || record.turns.iter().filter(|turn| !turn.context);
        for turn in own().filter(|turn| turn.source_offset >= covered) {
            if self.noted.insert(turn.source_offset) {
                self.note_version(&turn.turn.turn, next_offset, turn.deleted);
                let session = record.window.session.0.clone();
                self.keep(next_offset, || RecordChange::Turn(read_turn(turn, session)));
            }
        }
        if record.state == WindowState::Final {
            self.keep(next_offset, || {
                let turns = own().filter(|turn| !turn.deleted).map(|turn| turn.turn.turn.clone()).collect();
                let session = record.window.session.0.clone();
                RecordChange::Window(WrittenWindow { session, start: record.window.start, turns })
            });
        }
    }

    /// Takes the changes of the records before an offset, and the number of changes that were left out.
    pub(super) fn take(&mut self, until: u64) -> (Vec<RecordChange>, u64) {
        let end = self.changes.partition_point(|(next_offset, _)| *next_offset <= until);
        let taken = self.changes.drain(..end).map(|(_, change)| change).collect();
        (taken, std::mem::take(&mut self.left_out))
    }

    /// Takes the turn versions that were noted since the last call.
    pub(super) fn take_versions(&mut self) -> TurnVersionChanges {
        std::mem::take(&mut self.versions)
    }

    /// Drops the words of earlier versions of a turn, and notes that it has another version.
    fn note_version(&mut self, turn: &str, next_offset: u64, is_deleted: bool) {
        for (_, change) in &mut self.changes {
            if let RecordChange::Turn(read) = change
                && read.turn == turn
            {
                (read.speaker, read.text, read.is_cut) = (String::new(), String::new(), false);
            }
        }
        let TurnVersionChanges { by_turn, left_out_to } = &mut self.versions;
        if by_turn.len() < MAX_VERSIONS || by_turn.contains_key(turn) {
            let version = by_turn.entry(turn.to_owned()).or_default();
            version.next_offset = next_offset;
            version.is_deleted |= is_deleted;
        } else {
            *left_out_to = next_offset;
        }
    }

    fn keep(&mut self, next_offset: u64, change: impl FnOnce() -> RecordChange) {
        if self.changes.len() < MAX_KEPT {
            self.changes.push_back((next_offset, change()));
        } else {
            self.left_out += 1;
        }
    }
}

fn read_turn(held: &WindowTurn, session: String) -> TurnRevision {
    let turn = &*held.turn;
    let end = turn.text.char_indices().nth(MAX_CHARACTERS).map(|(end, _)| end);
    TurnRevision {
        turn: turn.turn.clone(),
        speaker: turn.speaker.clone(),
        time: turn.time,
        session,
        text: turn.text[..end.unwrap_or(turn.text.len())].to_owned(),
        is_cut: end.is_some(),
        is_deleted: held.deleted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, ModelRef, SCHEMA_VERSION, SessionId, Turn, WindowId};

    /// A record with turns, each with its offset in the turns topic.
    fn record(state: WindowState, turns: &[(&str, u64)]) -> MemoryRecord {
        let bank = Bank::parse("b").unwrap();
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let turn = |(id, source_offset): &(&str, u64)| {
            let turn = Turn::new(bank.clone(), id, "Ann", &"é".repeat(1_001), time);
            WindowTurn {
                turn: turn.into(),
                ordinal: 0,
                context: false,
                deleted: false,
                source_offset: *source_offset,
                stored: None,
            }
        };
        MemoryRecord {
            schema: SCHEMA_VERSION,
            window: WindowId { session: SessionId("s".to_owned()), start: 0 },
            state,
            turns_hash: String::new(),
            extractor: "none/1".to_owned(),
            cutter: None,
            model: ModelRef { name: "none".to_owned(), hash: String::new() },
            turns: turns.iter().map(turn).collect(),
            units: Vec::new(),
            bank: bank.clone(),
            statements: None,
        }
    }

    /// The turns that are taken, and how many windows.
    fn taken(kept: &mut RecordChangeBuffer, until: u64) -> (Vec<String>, usize) {
        let (mut turns, mut windows) = (Vec::new(), 0);
        for change in kept.take(until).0 {
            match change {
                RecordChange::Turn(turn) => turns.push(turn.turn),
                RecordChange::Window(_) => windows += 1,
            }
        }
        (turns, windows)
    }

    #[test]
    fn a_version_of_a_turn_is_told_once_however_many_records_hold_it() {
        let mut kept = RecordChangeBuffer::default();
        kept.note(&record(WindowState::Open, &[("2", 7)]), 10, 6);
        // In the same load as the turn between them, and again when the window closes.
        kept.note(&record(WindowState::Open, &[("1", 6)]), 11, 6);
        kept.note(&record(WindowState::Final, &[("1", 6), ("2", 7)]), 12, 6);
        kept.note(&record(WindowState::Final, &[("1", 6), ("2", 9)]), 20, 8);
        assert_eq!(taken(&mut kept, 11), (vec!["2".to_owned(), "1".to_owned()], 0));
        assert_eq!(taken(&mut kept, 99), (vec!["2".to_owned()], 2), "it was edited");
    }

    #[test]
    fn no_more_is_kept_than_fits_and_words_are_cut() {
        let mut kept = RecordChangeBuffer::default();
        for offset in 0..MAX_KEPT as u64 + 5 {
            kept.note(&record(WindowState::Open, &[(offset.to_string().as_str(), offset)]), offset + 1, 0);
        }
        let (changes, left_out) = kept.take(u64::MAX);
        assert_eq!((changes.len(), left_out), (MAX_KEPT, 5));
        let Some(RecordChange::Turn(turn)) = changes.first() else { panic!("{changes:?}") };
        assert_eq!((turn.text.chars().count(), turn.is_cut), (MAX_CHARACTERS, true));
        for version in 0..MAX_VERSIONS as u64 {
            kept.note_version(&format!("other {version}"), 2_000 + version, false);
        }
        let TurnVersionChanges { by_turn, left_out_to } = kept.take_versions();
        assert_eq!((by_turn.len(), left_out_to), (MAX_VERSIONS, 1_999 + MAX_VERSIONS as u64));
        assert_eq!(kept.take_versions(), TurnVersionChanges::default());
    }

    #[test]
    fn a_later_version_leaves_no_words_of_the_one_before_and_is_named_once() {
        let mut kept = RecordChangeBuffer::default();
        kept.note(&record(WindowState::Open, &[("1", 6), ("2", 7)]), 10, 6);
        assert_eq!(kept.take_versions().by_turn.into_keys().collect::<Vec<_>>(), ["1", "2"]);
        let mut deletion = record(WindowState::Open, &[("1", 8)]);
        deletion.turns[0].deleted = true;
        kept.note(&deletion, 11, 6);
        let last = LatestTurnVersion { next_offset: 11, is_deleted: true };
        assert_eq!(kept.take_versions().by_turn, BTreeMap::from([("1".to_owned(), last)]));
        let told: Vec<(String, bool)> = kept
            .take(10)
            .0
            .into_iter()
            .map(|change| match change {
                RecordChange::Turn(turn) => (turn.turn, turn.text.is_empty() && turn.speaker.is_empty()),
                RecordChange::Window(window) => panic!("{window:?}"),
            })
            .collect();
        assert_eq!(told, [("1".to_owned(), true), ("2".to_owned(), false)]);
    }
}

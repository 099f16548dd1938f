//! The turns of a session, packed, because a windower keeps all turns of all banks.
//!
//! In: turns. Out: the same turns, by ordinal. Up to sixteen consecutive turns share one piece of memory, in which each
//! takes the bytes of its names and words and about twenty more. Reading a turn skips those before it in its piece.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use types::{
    model::{Attachment, Bank, EventTime, Metadata, SpeakerKind, StoredTimes, Turn},
    shrinkable_collection::insert_sparingly,
};

/// The maximum number of turns in one piece of memory.
const MAX_IN_RUN: u32 = 16;
/// A piece of this size takes no further turn at its end, because a change moves everything after it.
const FULL_BYTES: usize = 4 << 10;

/// The winning version of a turn, without its bank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedTurn<'t> {
    pub(super) ordinal: u32,
    pub(super) version: u64,
    pub(super) deleted: bool,
    /// The offset of this version in the turns topic.
    pub(super) source_offset: u64,
    pub(super) stored: Option<StoredTimes>,
    pub(super) unix_ms: i64,
    offset_seconds: i32,
    pub(super) id: &'t str,
    pub(super) speaker: &'t str,
    kind: Option<SpeakerKind>,
    pub(super) text: &'t str,
    #[serde(borrow)]
    pub(super) session: Option<&'t str>,
    #[serde(borrow)]
    thread: Option<&'t str>,
    #[serde(borrow)]
    reply_to: Option<&'t str>,
    /// The kind, caption and address of each. [`Attachment`] itself is not used, because its encoding omits absent
    /// fields, and only a format with field names can read that.
    #[serde(borrow)]
    attachments: Vec<[Option<&'t str>; 3]>,
    /// As JSON; empty for none.
    metadata: Cow<'t, str>,
    recall: bool,
}

impl<'t> PackedTurn<'t> {
    /// A version of a turn, to be stored at an ordinal.
    pub(super) fn of(turn: &'t Turn, ordinal: u32, source_offset: u64) -> Self {
        let attachments = turn.attachments.iter();
        let attachments =
            attachments.map(|Attachment { kind, caption, url }| [kind, caption, url].map(|text| text.as_deref()));
        Self {
            ordinal,
            version: turn.version,
            deleted: false,
            source_offset,
            stored: None,
            unix_ms: turn.time.unix_ms,
            offset_seconds: turn.time.offset_seconds,
            id: &turn.turn,
            speaker: &turn.speaker,
            kind: turn.kind,
            text: &turn.text,
            session: turn.session.as_deref(),
            thread: turn.thread.as_deref(),
            reply_to: turn.reply_to.as_deref(),
            attachments: attachments.collect(),
            metadata: turn.metadata.as_ref().map(Metadata::to_json).unwrap_or_default().into(),
            recall: turn.recall,
        }
    }

    /// The whole turn, in its bank.
    pub(super) fn to_turn(&self, bank: &Bank) -> Turn {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let attachments = self.attachments.iter().map(|texts| {
            let [kind, caption, url] = texts.map(owned);
            Attachment { kind, caption, url }
        });
        Turn {
            bank: bank.clone(),
            turn: self.id.to_owned(),
            version: self.version,
            speaker: self.speaker.to_owned(),
            kind: self.kind,
            text: self.text.to_owned(),
            time: EventTime { unix_ms: self.unix_ms, offset_seconds: self.offset_seconds },
            session: owned(self.session),
            thread: owned(self.thread),
            reply_to: owned(self.reply_to),
            attachments: attachments.collect(),
            metadata: Metadata::from_json(&self.metadata),
            recall: self.recall,
        }
    }

    /// The higher rank wins; at the same version a deletion wins over a text (decision 4).
    pub(super) fn rank(&self) -> (u64, bool) {
        (self.version, self.deleted)
    }

    /// Whether both are equal apart from the offset at which they were read, and when they were stored.
    pub(super) fn equals_except_offset(&self, other: &Self) -> bool {
        let (source_offset, stored) = (other.source_offset, other.stored);
        Self { source_offset, stored, ..self.clone() } == *other
    }
}

/// The turns of a session.
#[derive(Debug, Default)]
pub(super) struct PackedTurns {
    /// In the order of ordinals; none is empty.
    runs: Vec<PackedRun>,
}

impl PackedTurns {
    /// The ordinal of the last turn.
    pub(super) fn last_ordinal(&self) -> Option<u32> {
        self.runs.last().map(|run| run.last)
    }

    /// The turn at an ordinal.
    pub(super) fn get(&self, ordinal: u32) -> Option<PackedTurn<'_>> {
        self.from(ordinal).next().filter(|turn| turn.ordinal == ordinal)
    }

    /// All turns, by ordinal.
    pub(super) fn iter(&self) -> impl Iterator<Item = PackedTurn<'_>> {
        self.from(0)
    }

    /// The turns at an ordinal and after it.
    pub(super) fn from(&self, ordinal: u32) -> impl Iterator<Item = PackedTurn<'_>> {
        let first = self.run_of(ordinal);
        let turns = self.runs.iter().skip(first).flat_map(PackedRun::turns).map(|(_, turn)| turn);
        turns.skip_while(move |turn| turn.ordinal < ordinal)
    }

    /// Stores a turn; replaces the one at its ordinal, if there is one.
    pub(super) fn insert(&mut self, turn: &PackedTurn<'_>) {
        let mut at = self.run_of(turn.ordinal);
        if at == self.runs.len() {
            match self.runs.last_mut() {
                Some(last) if !last.is_full() => at -= 1,
                last => {
                    if let Some(last) = last {
                        last.bytes.shrink_to_fit();
                    }
                    insert_sparingly(&mut self.runs, at, PackedRun::default());
                }
            }
        }
        let Some(run) = self.runs.get_mut(at) else { return };
        run.insert(turn);
        if let Some(second) = run.split_if_large() {
            insert_sparingly(&mut self.runs, at + 1, second);
        }
    }

    /// Releases the space that was kept for more turns: a window has closed, and there may be no more turns.
    pub(super) fn shrink_last(&mut self) {
        if let Some(last) = self.runs.last_mut() {
            last.bytes.shrink_to_fit();
        }
    }

    /// The index of the run that holds an ordinal, or would hold it; the number of runs if the ordinal is after all
    /// turns.
    fn run_of(&self, ordinal: u32) -> usize {
        self.runs.partition_point(|run| run.last < ordinal)
    }
}

/// Consecutive turns.
#[derive(Debug, Default)]
struct PackedRun {
    /// The ordinal of the last turn.
    last: u32,
    count: u32,
    /// The turns, one after the other.
    bytes: Vec<u8>,
}

impl PackedRun {
    /// The turns, each with the place where it starts.
    fn turns(&self) -> impl Iterator<Item = (usize, PackedTurn<'_>)> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let start = self.bytes.len() - rest.len();
            let (turn, after) = postcard::take_from_bytes(rest).ok()?;
            rest = after;
            Some((start, turn))
        })
    }

    /// Whether it takes no more turns at its end.
    fn is_full(&self) -> bool {
        self.count >= MAX_IN_RUN || self.bytes.len() >= FULL_BYTES
    }

    fn insert(&mut self, turn: &PackedTurn<'_>) {
        // Its lengths are known and the vector grows, so this cannot fail.
        let encoded = postcard::to_allocvec(turn).unwrap_or_default();
        let mut end = self.bytes.len();
        let mut start = end;
        if self.count > 0 && turn.ordinal <= self.last {
            let mut from = self.turns().skip_while(|(_, other)| other.ordinal < turn.ordinal);
            let found = from.next();
            start = found.as_ref().map_or(end, |(at, _)| *at);
            end = match found {
                Some((_, other)) if other.ordinal == turn.ordinal => from.next().map_or(end, |(at, _)| at),
                _ => start,
            };
        }
        if start == end {
            self.count += 1;
        }
        if self.bytes.capacity() - self.bytes.len() < encoded.len() {
            // Grows by less than the library would.
            self.bytes.reserve_exact(encoded.len().max(self.bytes.len() / 4));
        }
        self.bytes.splice(start..end, encoded);
        if self.bytes.len() < self.bytes.capacity() / 4 * 3 {
            // Little remains of a deleted turn, so the freed space is released.
            self.bytes.shrink_to_fit();
        }
        self.last = self.last.max(turn.ordinal);
    }

    /// Splits off its second half if it has become too large.
    fn split_if_large(&mut self) -> Option<Self> {
        let is_large = self.count > MAX_IN_RUN || self.count > 1 && self.bytes.len() > 2 * FULL_BYTES;
        if !is_large {
            return None;
        }
        let half = self.count / 2;
        let mut turns = self.turns().skip(half as usize - 1);
        let ((_, before), (start, _)) = (turns.next()?, turns.next()?);
        let first_last = before.ordinal;
        drop(turns);
        let second = Self { last: self.last, count: self.count - half, bytes: self.bytes.split_off(start) };
        self.bytes.shrink_to_fit();
        (self.last, self.count) = (first_last, half);
        Some(second)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn turn(text: String) -> Turn {
        let bank = Bank::parse("team").expect("a valid name");
        let time = EventTime::parse("2024-01-01T00:00:00+01:00").expect("a time");
        Turn { text, ..Turn::new(bank, "1", "Zoë", "", time) }
    }

    #[test]
    fn a_held_turn_is_the_same_turn() {
        let plain = turn("Grüße, and “thanks”".to_owned());
        let attached = Attachment { kind: None, caption: Some("a kayak".to_owned()), url: None };
        let full = Turn {
            version: u64::MAX,
            session: Some("room".to_owned()),
            thread: Some(String::new()),
            reply_to: Some("0".to_owned()),
            attachments: vec![attached.clone(), Attachment { kind: Some(String::new()), ..attached }],
            ..plain.clone()
        };
        let before_1970 = EventTime::parse("1901-12-31T23:59:59.999-23:59").expect("a time");
        let metadata = Metadata::from_json(r#"{"a":1.0,"b":{"c":["é"]}}"#);
        let silent = Turn { metadata, recall: false, ..full.clone() };
        let bare = Turn { metadata: Some(Metadata::default()), ..plain.clone() };
        let early = Turn { time: before_1970, session: None, ..full.clone() };
        for turn in [plain, silent, bare, Turn { thread: None, ..full.clone() }, early, full] {
            let stored = Some(StoredTimes { ms: 1_700_000_000_000, first_ms: -1 });
            let held = PackedTurn { deleted: true, stored, ..PackedTurn::of(&turn, u32::MAX, u64::MAX) };
            let mut turns = PackedTurns::default();
            turns.insert(&held);
            let found = turns.get(u32::MAX).expect("it is held");
            assert_eq!((&found, &found.to_turn(&turn.bank)), (&held, &turn));
            assert!(found.equals_except_offset(&PackedTurn { source_offset: 0, ..held.clone() }));
            assert!(!found.equals_except_offset(&PackedTurn { deleted: false, ..held }));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn turns_in_any_order_and_their_versions_are_held_by_ordinal(
            steps in proptest::collection::vec((0u32..200, 0usize..600, any::<bool>()), 1..400),
            ascending in any::<bool>(),
        ) {
            let (mut held, mut expected) = (PackedTurns::default(), BTreeMap::new());
            for (offset, (any, length, is_long)) in (0u64..).zip(steps) {
                let at = if ascending && offset % 4 != 0 { offset as u32 } else { any };
                let said = turn("é".repeat(if is_long { 5 * length } else { length / 8 }));
                held.insert(&PackedTurn::of(&said, at, offset));
                expected.insert(at, (offset, said));
                let found = held.get(at).map(|turn| turn.source_offset);
                prop_assert_eq!(found, Some(offset));
                prop_assert_eq!(held.last_ordinal(), expected.last_key_value().map(|(at, _)| *at));
                let from: Vec<_> = held.from(any).map(|turn| turn.ordinal).take(3).collect();
                prop_assert!(expected.range(any..).map(|(at, _)| *at).take(3).eq(from));
                prop_assert!(held.runs.iter().all(|run| run.turns().count() == run.count as usize));
                prop_assert!(held.runs.iter().all(|run| run.count <= MAX_IN_RUN && run.count > 0));
                prop_assert!(held.runs.iter().all(|run| run.bytes.len() >= run.bytes.capacity() / 4 * 3));
            }
            held.shrink_last();
            prop_assert!(held.runs.last().is_some_and(|run| run.bytes.len() == run.bytes.capacity()));
            let bank = Bank::parse("team").expect("a valid name");
            let all: Vec<_> = held.iter().map(|turn| (turn.ordinal, (turn.source_offset, turn.to_turn(&bank)))).collect();
            prop_assert!(expected.into_iter().eq(all));
        }
    }
}

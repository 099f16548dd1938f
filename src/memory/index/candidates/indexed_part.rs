//! A part of a unit with what the familiarity score compares.
//!
//! In: a unit, and one of its parts. Out: the part's words, its speaker, the names in it and the times that it names.
//! It never changes, except for its slot in the candidate index of its bank.

use std::{cell::Cell, ops::Range, sync::Arc};

use crate::index::{
    lexical::term_analyzer::{TermAnalyzer, TermBagSlice},
    memory_footprint::COUNTS_BYTES,
    units::{
        association_score::{NameKey, name_key},
        live_unit::{LiveUnit, PartRows, PartVectors},
        turn_facts::TurnFacts,
        unit_body::{PartBody, UnitBody},
    },
};
use crate::language::{greeted_name::greeted_name, person_names::capitalised_runs, times::find_times_in};
use types::model::{Interval, Language, SpeakerKind, TextFeatures, UnitId, canonical_name};

/// Identifies a part and determines its place in the order of its bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::index) struct PartKey {
    /// The session of its turn.
    pub session: u64,
    /// The ordinal of its turn in the session.
    pub ordinal: u32,
    /// The unit that holds it.
    pub unit: UnitId,
    /// Its index in the unit.
    pub part: u32,
}

/// A part's place in the candidate index.
pub(in crate::index) type PartSlot = u32;

/// No slot.
pub(in crate::index) const NONE: PartSlot = PartSlot::MAX;

/// A part with what the score compares.
#[derive(Debug)]
pub(in crate::index) struct IndexedPart {
    /// The unit that holds it.
    pub unit: Arc<LiveUnit>,
    rows: PartRows,
    /// The counts of its stems; then the keys of the first word of every name in it; then the key of the name by which
    /// it greets somebody. They are in one piece of memory because there is one for every turn of every bank.
    hashes: Box<[u64]>,
    /// How many stems it has.
    stems: u32,
    /// How many words.
    length: u32,
    /// Bytes of its text and its speaker's name.
    pub text_bytes: u32,
    /// Ordinal, in its session, of its turn.
    ordinal: u32,
    /// Its index in the unit.
    at: u32,
    /// Keys of the speaker's whole name and of its first word.
    pub speaker: [NameKey; 2],
    /// Features of its words.
    pub marks: TextFeatures,
    greets: bool,
    /// The intervals that its words name; most parts name none.
    events: Box<[Interval]>,
    /// Whether it is a passage of a long turn: no part around it counts with it, and it counts with no other part.
    pub is_passage: bool,
    /// Whether an assistant said it.
    pub is_by_assistant: bool,
    /// Whether an assistant, a tool or a bot said it.
    pub is_by_program: bool,
    /// Whether it repeats the restatement of its unit, not the words of a turn.
    pub is_restated: bool,
    /// What selectors compare of its turn besides; here as well as at the unit, because it is read for every part.
    pub facts: Option<Arc<TurnFacts>>,
    /// Its slot in the candidate index, if there is one.
    pub slot: Cell<PartSlot>,
}

impl IndexedPart {
    /// The part of a unit at an index.
    pub(in crate::index) fn new(unit: &Arc<LiveUnit>, at: u32, part: PartBody<'_>, words: &mut TermAnalyzer) -> Self {
        let name = canonical_name(part.speaker);
        let first = name.split(' ').next().unwrap_or_default();
        let greeted = greeted_name(part.text).map(|name| name_key(&canonical_name(name)));
        let bag = words.term_bag(part.text, part.marks.language);
        Self {
            unit: unit.clone(),
            rows: unit.rows_of(at as usize),
            hashes: bag.counts().iter().copied().chain(names(part.text, part.marks.language)).chain(greeted).collect(),
            stems: bag.counts().len() as u32,
            length: bag.slice().length(),
            text_bytes: part.bytes() as u32,
            ordinal: part.ordinal,
            at,
            speaker: [name_key(&name), name_key(first)],
            marks: part.marks,
            greets: greeted.is_some(),
            events: events(&unit.body, part),
            is_passage: part.range.is_some(),
            is_by_assistant: part.kind == Some(SpeakerKind::Assistant),
            is_by_program: !matches!(part.kind, None | Some(SpeakerKind::Person)),
            is_restated: unit.body.is_restated(),
            facts: unit.facts_of(part.turn).cloned(),
            slot: Cell::new(NONE),
        }
    }

    /// Its bytes in memory, without those of its unit.
    pub(in crate::index) fn bytes(&self) -> usize {
        COUNTS_BYTES + size_of::<Self>() + size_of_val(&*self.hashes) + size_of_val(&*self.events)
    }

    /// Its place in the order of the bank.
    pub(in crate::index) fn key(&self) -> PartKey {
        PartKey { session: self.unit.position.session, ordinal: self.ordinal, unit: self.unit.id, part: self.at }
    }

    /// Its words.
    pub(in crate::index) fn words(&self) -> TermBagSlice<'_> {
        TermBagSlice::new(&self.hashes[..self.stems as usize], self.length)
    }

    /// Keys of the first word of every name in it: people, places, titles, brands.
    pub(in crate::index) fn names(&self) -> &[NameKey] {
        &self.hashes[self.stems as usize..self.hashes.len() - usize::from(self.greets)]
    }

    /// Key of the name by which it greets somebody.
    pub(in crate::index) fn greeted(&self) -> Option<NameKey> {
        self.hashes.last().copied().filter(|_| self.greets)
    }

    /// The intervals of what it tells, besides the moment at which it was said.
    pub(in crate::index) fn events(&self) -> &[Interval] {
        &self.events
    }

    /// Its vectors.
    pub(in crate::index) fn vectors(&self) -> PartVectors<'_> {
        self.unit.vectors_at(self.rows)
    }
}

/// The first word of every name in a text. German text has none here, because every German noun is capitalised.
fn names(text: &str, language: Language) -> impl Iterator<Item = NameKey> {
    let text = if language == Language::De { "" } else { text };
    let first = |run: Range<usize>| text.get(run)?.split_whitespace().next();
    capitalised_runs(text).into_iter().filter_map(first).map(|word| name_key(&canonical_name(word)))
}

/// The intervals that the words of a part name; that of the unit, where the part only repeats the unit.
fn events(unit: &UnitBody, part: PartBody<'_>) -> Box<[Interval]> {
    if unit.is_restated() {
        let is_saying = |time: &Interval| time.start_ms == time.end_ms && time.start_ms == part.said_at.unix_ms;
        return unit.time.as_deref().copied().filter(|time| !is_saying(time)).into_iter().collect();
    }
    // Counting the expressions costs less than reading them, and was done when the part was made.
    if part.marks.times == 0 {
        return Box::default();
    }
    find_times_in(part.text, part.marks.language, Some(part.said_at)).into_iter().map(|time| time.interval).collect()
}

//! The parts of one bank, in the order of sessions and ordinals.
//!
//! In: added and deleted units. Out: their parts, and in a large bank the candidate index of these parts. Deleted parts
//! leave that index in [`BankParts::repair`], which follows the last change of a load and goes step by step. If more
//! parts leave than stay, the index is given up, and made again of those that stay. A part is shared with the scans that
//! read it, so that a scan can pause.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
    rc::Rc,
    sync::Arc,
};

use crate::index::{
    candidates::{
        candidate_index::CandidateIndex,
        indexed_part::{IndexedPart, NONE, PartKey, PartSlot},
    },
    lexical::term_analyzer::TermAnalyzer,
    memory_footprint::tree_bytes,
    units::{
        association_score::{NameKey, name_key},
        live_unit::LiveUnit,
        unit_body::{PartBody, estimated_tokens},
    },
    work_budget::{CHANGED_CANDIDATE, WorkBudget},
};
use types::{
    chunked_map::ChunkedMap,
    model::{Language, canonical_name},
    shrinkable_collection::push_sparingly,
};

/// The maximum number of speakers that are named if the asker is not a speaker.
const NAMED_SPEAKERS: usize = 5;

/// How many parts of an index that was given up are freed while one part is changed.
const FREED_FOR_ONE: usize = 16;

/// The parts of one bank in the order of sessions and ordinals.
#[derive(Debug, Default)]
pub(in crate::index) struct BankParts {
    parts: ChunkedMap<PartKey, Rc<IndexedPart>>,
    /// The number of parts from which on a bank has candidates.
    candidates_from: usize,
    /// A part counts with another while fewer words than this are in between.
    window_words: u32,
    /// Bytes of the texts of all parts.
    text_bytes: u64,
    /// How many parts an assistant said.
    assistants: usize,
    /// The speakers, by the keys of their whole names.
    speakers: BTreeMap<NameKey, SpeakerCounts>,
    /// How many parts are in each language.
    languages: Vec<(Language, u32)>,
    /// Only a large bank has one.
    candidates: Option<Box<CandidateIndex>>,
    /// The candidate index is being made: it has the parts up to this one, or none yet.
    making: Option<Option<PartKey>>,
    /// The slots of deleted parts that are still in the candidate index.
    leaving: Vec<PartSlot>,
    /// Parts that were added since and are not in it yet.
    arriving: Vec<PartKey>,
    /// A candidate index that was given up; its parts are freed a few at a time.
    given_up: Option<Box<CandidateIndex>>,
}

/// Who speaks in a bank.
#[derive(Debug)]
struct SpeakerCounts {
    name: Box<str>,
    parts: usize,
    /// How many of these parts a program said.
    by_program: usize,
}

impl BankParts {
    /// No parts. A bank of `candidates_from` parts or more has candidates; a part counts with another while fewer than
    /// `window_words` words are in between.
    pub(in crate::index) fn new(candidates_from: usize, window_words: u32) -> Self {
        Self { candidates_from, window_words, ..Self::default() }
    }

    /// Adds the parts of units, in the order of the bank, so that neighbouring parts are also neighbours in the
    /// candidate index. [`Self::repair`] follows.
    pub(in crate::index) fn insert(&mut self, units: &[Arc<LiveUnit>], words: &mut TermAnalyzer) {
        let mut added: Vec<(PartKey, &Arc<LiveUnit>, PartBody<'_>)> = units
            .iter()
            .flat_map(|unit| keys(unit).zip(unit.body.parts()).map(move |(key, part)| (key, unit, part)))
            .collect();
        added.sort_unstable_by_key(|(key, ..)| *key);
        for (key, unit, part) in added {
            let indexed = Rc::new(IndexedPart::new(unit, key.part, part, words));
            self.remove(key);
            self.text_bytes += u64::from(indexed.text_bytes);
            self.assistants += usize::from(indexed.is_by_assistant);
            let unheard = || SpeakerCounts { name: part.speaker.into(), parts: 0, by_program: 0 };
            let speaker = self.speakers.entry(indexed.speaker[0]).or_insert_with(unheard);
            speaker.parts += 1;
            speaker.by_program += usize::from(indexed.is_by_program);
            self.count_language(indexed.marks.language, true);
            self.parts.insert(key, indexed);
            if self.making.is_none() && self.candidates.is_some() {
                if self.leaving.is_empty() && self.arriving.is_empty() {
                    self.add_candidate(key);
                } else {
                    self.arriving.push(key);
                }
            }
        }
        if self.candidates.is_none() && self.parts.len() >= self.candidates_from {
            self.make_candidates();
        }
    }

    /// Removes the parts of units. [`Self::repair`] follows.
    pub(in crate::index) fn delete<'u>(&mut self, units: impl Iterator<Item = &'u Arc<LiveUnit>>) {
        let before = self.parts.len();
        units.flat_map(|unit| keys(unit)).for_each(|key| self.remove(key));
        self.free_given_up(FREED_FOR_ONE * (before - self.parts.len()));
        // The index is dropped only far below the bound, so that a bank near the bound does not build it again and
        // again.
        let is_small = self.parts.len() < self.candidates_from / 2;
        if self.candidates.is_some() && (is_small || self.leaving.len() > self.parts.len()) {
            (self.leaving, self.arriving, self.making) = (Vec::new(), Vec::new(), None);
            // One that was begun since is empty.
            let old = self.candidates.take();
            self.given_up = self.given_up.take().or(old);
            if self.parts.len() >= self.candidates_from {
                self.make_candidates();
            }
        }
    }

    /// Does one step of what is left to do of the candidate index, within the allowance where that allows a step.
    /// Returns whether there is more to do.
    pub(in crate::index) fn repair(&mut self, allowance: &mut WorkBudget) -> bool {
        let most = (allowance.left() / CHANGED_CANDIDATE).max(1) as usize;
        if self.given_up.is_some() {
            self.free_given_up(FREED_FOR_ONE * most);
            allowance.spend(CHANGED_CANDIDATE * most as u64);
            return self.wants_repair();
        }
        let changed;
        if let Some(last) = self.making {
            let some: Vec<PartKey> = self.parts.after(last).map(|(key, _)| *key).take(most).collect();
            changed = some.len();
            some.iter().for_each(|key| self.add_candidate(*key));
            self.making = if changed < most { None } else { Some(some.last().copied().or(last)) };
        } else if let Some(index) = self.candidates.as_mut().filter(|_| !self.leaving.is_empty()) {
            changed = most.min(self.leaving.len());
            let some = self.leaving.split_off(self.leaving.len() - changed);
            some.into_iter().for_each(|slot| index.delete(slot));
            if self.leaving.is_empty() {
                self.leaving = Vec::new();
                index.complete_removals();
                self.arriving.sort_unstable_by(|a, b| b.cmp(a));
            }
        } else {
            changed = most.min(self.arriving.len());
            let some = self.arriving.split_off(self.arriving.len() - changed);
            some.into_iter().rev().for_each(|key| self.add_candidate(key));
            if self.arriving.is_empty() {
                self.arriving = Vec::new();
            }
        }
        allowance.spend(CHANGED_CANDIDATE * changed as u64);
        self.wants_repair()
    }

    /// Whether [`Self::repair`] has something to do.
    pub(in crate::index) fn wants_repair(&self) -> bool {
        self.making.is_some() || !self.leaving.is_empty() || !self.arriving.is_empty() || self.given_up.is_some()
    }

    /// The parts after one, in order; all of them after None.
    pub(in crate::index) fn after(&self, key: Option<PartKey>) -> impl Iterator<Item = &(PartKey, Rc<IndexedPart>)> {
        self.parts.after(key)
    }

    /// How many parts there are.
    pub(in crate::index) fn len(&self) -> usize {
        self.parts.len()
    }

    /// How many of them an assistant said.
    pub(in crate::index) fn assistants(&self) -> usize {
        self.assistants
    }

    /// The language that most of them are in; if several are equally common, the first of these.
    pub(in crate::index) fn language(&self) -> Language {
        let most = self.languages.iter().max_by_key(|(language, parts)| (*parts, Reverse(*language)));
        most.map_or_else(Language::default, |(language, _)| *language)
    }

    /// The only person who speaks; None if nobody does, or if several do.
    pub(in crate::index) fn only_person(&self) -> Option<String> {
        let mut persons = self.speakers.values().filter(|speaker| speaker.by_program < speaker.parts);
        let only = persons.next().filter(|_| persons.next().is_none());
        only.map(|speaker| speaker.name.to_string())
    }

    /// Whether a word belongs to a speaker's name.
    pub(in crate::index) fn names_speaker(&self, word: &str) -> bool {
        self.speakers.values().any(|speaker| canonical_name(&speaker.name).split(' ').any(|name| name == word))
    }

    /// The names of some speakers, if no speaker has this name, whole or as its first word.
    pub(in crate::index) fn speakers_if_absent(&self, name: &str) -> Option<Vec<String>> {
        let keys = |speaker: &str| {
            let name = canonical_name(speaker);
            [name_key(&name), name_key(name.split(' ').next().unwrap_or_default())]
        };
        let key = name_key(name);
        if self.speakers.values().any(|speaker| keys(&speaker.name).contains(&key)) {
            return None;
        }
        let mut names: Vec<String> = self.speakers.values().map(|speaker| speaker.name.to_string()).collect();
        names.sort_unstable();
        names.truncate(NAMED_SPEAKERS);
        Some(names)
    }

    /// A part counts with another while fewer words than this are in between.
    pub(in crate::index) fn window_words(&self) -> u32 {
        self.window_words
    }

    /// The estimated tokens of all parts.
    pub(in crate::index) fn estimated_tokens(&self) -> f64 {
        estimated_tokens(self.parts.len(), self.text_bytes)
    }

    /// Bytes in memory of the parts, and of their candidate index.
    pub(in crate::index) fn bytes(&self) -> [usize; 2] {
        let parts = self.parts.iter().map(|(_, part)| part.bytes()).sum::<usize>();
        let speakers = self.speakers.values().map(|speaker| speaker.name.len()).sum::<usize>();
        let speakers = speakers + tree_bytes::<NameKey, SpeakerCounts>(self.speakers.len());
        [self.parts.bytes() + parts + speakers, self.candidates.as_ref().map_or(0, |index| index.bytes())]
    }

    /// The candidate index, if the bank is large enough.
    pub(in crate::index) fn candidates(&self) -> Option<&CandidateIndex> {
        self.candidates.as_deref().filter(|_| self.parts.len() >= self.candidates_from)
    }

    /// The slots of a unit's parts in the candidate index.
    pub(in crate::index) fn slots<'p>(&'p self, unit: &'p LiveUnit) -> impl Iterator<Item = PartSlot> + 'p {
        keys(unit).filter_map(|key| Some(self.parts.get(key)?.slot.get())).filter(|slot| *slot != NONE)
    }

    fn remove(&mut self, key: PartKey) {
        let Some(removed) = self.parts.remove(key) else { return };
        self.text_bytes -= u64::from(removed.text_bytes);
        self.assistants -= usize::from(removed.is_by_assistant);
        self.count_language(removed.marks.language, false);
        if let Entry::Occupied(mut speaker) = self.speakers.entry(removed.speaker[0]) {
            speaker.get_mut().parts -= 1;
            speaker.get_mut().by_program -= usize::from(removed.is_by_program);
            if speaker.get().parts == 0 {
                speaker.remove();
            }
        }
        let slot = removed.slot.get();
        if self.candidates.is_some() && self.making.is_none() && slot != NONE {
            push_sparingly(&mut self.leaving, slot);
        }
    }

    fn count_language(&mut self, language: Language, added: bool) {
        match self.languages.iter_mut().find(|(known, _)| *known == language) {
            Some((_, parts)) => *parts = if added { *parts + 1 } else { parts.saturating_sub(1) },
            None => self.languages.push((language, u32::from(added))),
        }
    }

    /// Begins to make the candidate index.
    fn make_candidates(&mut self) {
        self.candidates = Some(Box::new(CandidateIndex::new(self.window_words)));
        self.making = Some(None);
    }

    /// Adds a part to the candidate index, unless it is gone or there already.
    fn add_candidate(&mut self, key: PartKey) {
        let Some(index) = &mut self.candidates else { return };
        let Some(indexed) = self.parts.get(key) else { return };
        let is_made = self.making.is_none();
        if is_made && indexed.slot.get() != NONE {
            return;
        }
        let counts = |(other, part): &(PartKey, Rc<IndexedPart>)| {
            let slot = part.slot.get();
            if other.session != key.session {
                return Some(NONE);
            }
            (slot != NONE && !part.is_passage).then_some(slot)
        };
        let mut beside = [None; 2];
        if !indexed.is_passage {
            beside[0] = self.parts.before(key).find_map(counts);
            // While the index is made, it has no later part.
            beside[1] = is_made.then(|| self.parts.after(Some(key)).find_map(counts)).flatten();
        }
        let [before, after] = beside.map(|slot| slot.unwrap_or(NONE));
        index.insert(indexed, before, after);
    }

    fn free_given_up(&mut self, most: usize) {
        let Some(index) = &mut self.given_up else { return };
        if !index.free_parts(most) {
            self.given_up = None;
        }
    }
}

/// The places of a unit's parts in the order of the bank.
fn keys(unit: &LiveUnit) -> impl Iterator<Item = PartKey> {
    let key = |(at, part): (u32, PartBody<'_>)| PartKey {
        session: unit.position.session,
        ordinal: part.ordinal,
        unit: unit.id,
        part: at,
    };
    (0..).zip(unit.body.parts()).map(key)
}

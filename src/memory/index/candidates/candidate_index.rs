//! An index of the parts of a large bank, so that a question does not have to read all of them.
//!
//! In: the parts of a bank as they are added and removed, each with the parts before and after it in its session. Out:
//! for each part, a slot with its neighbours and features, and codes of its centroids; postings by stem with the number
//! of windows that hold the stem; and the speakers. All that can be read here is a function of the set of parts; only
//! the numbers of slots, rows, sessions and speakers depend on the bank's history.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    hash::BuildHasherDefault,
    ops::Range,
    rc::Rc,
    slice::from_ref,
};

use super::{
    centroids::PartCentroids,
    dense_ids::DenseIds,
    indexed_part::{IndexedPart, NONE, PartKey, PartSlot},
    part_columns::{ASKS, LIVE, PASSAGE, PartColumns, PartFeatures, SessionNeighbours, marks},
    scratch_buffers::ScratchBuffers,
    stem_postings::{PartChange, StemPostings, WordWindowChange},
};
use crate::index::id_hasher::IdHasher;
use crate::index::{
    lexical::{greeting_index::GreetingPostings, term_analyzer::TermBagSlice, word_window::WordWindow},
    memory_footprint::{map_bytes, tree_bytes, vec_bytes},
    units::association_score::NameKey,
    vectors::kernel::{self, AHEAD},
};
use types::{model::EventTime, shrinkable_collection::push_sparingly};

const DAY_MS: i64 = 86_400_000;

/// How often the words of a part itself count in its window.
pub(in crate::index) const OWN_WORDS: u32 = 2;
/// The maximum number of names in a part that count.
pub(in crate::index) const MAX_NAMES: u8 = 3;
/// The maximum number of expressions of time in a part that count.
pub(in crate::index) const MAX_TIMES: u8 = 2;

/// The parts of a large bank, from which candidates are chosen.
#[derive(Debug, Default)]
pub(in crate::index) struct CandidateIndex {
    /// A part counts with another while fewer words than this are in between.
    reach_words: u32,
    parts: Vec<Option<Rc<IndexedPart>>>,
    columns: PartColumns,
    free: BTreeSet<PartSlot>,
    gists: PartCentroids,
    stems: StemPostings,
    window_words: u64,
    sessions: DenseIds,
    speakers: DenseIds,
    /// For each speaker, by number, the keys of the whole name and of its first word.
    speaker_keys: Vec<[NameKey; 2]>,
    /// The numbers of the speakers who have this name, or this first word of their name.
    named: HashMap<NameKey, Vec<u32>, BuildHasherDefault<IdHasher>>,
    greetings: GreetingPostings,
    /// The slots of the parts that name a time, which are few.
    with_events: BTreeSet<PartSlot>,
    scratch: RefCell<Option<ScratchBuffers>>,
}

impl CandidateIndex {
    /// No parts. A part counts with another while fewer than `window_words` words are in between.
    pub(in crate::index) fn new(window_words: u32) -> Self {
        Self { reach_words: window_words, ..Self::default() }
    }

    /// Bytes in memory, without the parts themselves.
    pub(in crate::index) fn bytes(&self) -> usize {
        let named =
            map_bytes::<NameKey, Vec<u32>>(self.named.capacity()) + self.named.values().map(vec_bytes).sum::<usize>();
        let numbers = self.sessions.bytes() + self.speakers.bytes() + vec_bytes(&self.speaker_keys);
        let slots = vec_bytes(&self.parts) + self.columns.bytes() + tree_bytes::<PartSlot, ()>(self.free.len());
        let scratch = self.scratch.borrow().as_ref().map_or(0, ScratchBuffers::bytes);
        let events = tree_bytes::<PartSlot, ()>(self.with_events.len());
        events + slots + self.gists.bytes() + named + numbers + self.stems.bytes() + self.greetings.bytes() + scratch
    }

    /// Adds a part between two others of its session.
    pub(in crate::index) fn insert(&mut self, indexed: &Rc<IndexedPart>, before: PartSlot, after: PartSlot) {
        self.complete_removals();
        let key = indexed.key();
        let slot = self.free_slot(before, after);
        let at = slot as usize;
        if at == self.parts.len() {
            push_sparingly(&mut self.parts, None);
            self.columns.push();
        }
        indexed.slot.set(slot);
        let (session, _) = self.sessions.acquire(key.session);
        let speaker = self.enter_speaker(indexed.speaker);
        self.greetings.insert(key.session, indexed.speaker[0], indexed.greeted());
        self.columns.set(slot, PartFeatures { session, speaker, ..PartFeatures::of(key, indexed) });
        if !indexed.events().is_empty() {
            self.with_events.insert(slot);
        }
        self.parts[at] = Some(Rc::clone(indexed));
        self.gists.insert(slot, &indexed.vectors());
        let (second_before, second_after) =
            (self.columns.near_slot(before).before, self.columns.near_slot(after).after);
        self.columns.link(&[second_before, before, slot, after, second_after]);
        self.change(PartChange::Insert, slot);
    }

    /// Completes removals; it follows the last one before a question.
    pub(in crate::index) fn complete_removals(&mut self) {
        self.stems.complete_removals();
    }

    /// Removes a part. [`Self::complete_removals`] follows.
    pub(in crate::index) fn delete(&mut self, slot: PartSlot) {
        let at = slot as usize;
        let Some(indexed) = self.parts.get(at).cloned().flatten() else { return };
        self.change(PartChange::Delete, slot);
        let SessionNeighbours { before, after, second_before, second_after } = self.columns.near_slot(slot);
        self.columns.link(&[second_before, before, after, second_after]);
        self.columns.unlink(slot);
        self.gists.delete(slot, &indexed.vectors());
        let PartKey { session, .. } = indexed.key();
        self.sessions.release(session);
        self.leave_speaker(indexed.speaker);
        self.greetings.delete(session, indexed.speaker[0], indexed.greeted());
        self.with_events.remove(&slot);
        self.columns.set(slot, PartFeatures::default());
        self.parts[at] = None;
        self.free.insert(slot);
    }

    /// Frees at most `most` parts of an index that is not read any more; false if it has none left.
    pub(in crate::index) fn free_parts(&mut self, most: usize) -> bool {
        self.parts.truncate(self.parts.len().saturating_sub(most));
        !self.parts.is_empty()
    }

    /// A slot for a part between two others: next to one of them if possible, so that the parts of a window are in
    /// consecutive slots.
    fn free_slot(&mut self, before: PartSlot, after: PartSlot) -> PartSlot {
        let next_to = [before.checked_add(1), after.checked_sub(1)].into_iter().flatten();
        let free = next_to.chain(self.free.first().copied()).find(|slot| self.free.contains(slot));
        let slot = free.unwrap_or(self.parts.len() as PartSlot);
        self.free.remove(&slot);
        slot
    }

    /// One more than the greatest slot.
    pub(in crate::index) fn slots(&self) -> usize {
        self.parts.len()
    }

    /// The part in a slot.
    pub(in crate::index) fn part(&self, slot: PartSlot) -> Option<&Rc<IndexedPart>> {
        self.parts.get(slot as usize)?.as_ref()
    }

    /// The place in the order of the bank of the part in a slot.
    pub(in crate::index) fn key(&self, slot: PartSlot) -> Option<PartKey> {
        self.part(slot).map(|part| part.key())
    }

    /// The parts in these slots, in the order of the bank.
    pub(in crate::index) fn in_order(&self, slots: &[PartSlot]) -> Vec<(PartKey, PartSlot)> {
        let ahead = |at: usize| slots.get(at).copied();
        let keyed = slots.iter().enumerate().filter_map(|(at, slot)| {
            if let Some(slot) = ahead(at + 3 * AHEAD) {
                self.prefetch_part(slot);
            }
            if let Some(part) = ahead(at + 2 * AHEAD).and_then(|slot| self.part(slot)) {
                kernel::fetch_ahead(from_ref(&**part));
            }
            if let Some(part) = ahead(at + AHEAD).and_then(|slot| self.part(slot)) {
                kernel::fetch_ahead(from_ref(&*part.unit));
            }
            Some((self.key(*slot)?, *slot))
        });
        let mut keyed: Vec<(PartKey, PartSlot)> = keyed.collect();
        keyed.sort_unstable();
        keyed
    }

    /// Has the processor fetch the pointer to the part in a slot ([`kernel::fetch_ahead`]).
    pub(in crate::index) fn prefetch_part(&self, slot: PartSlot) {
        let at = slot as usize;
        kernel::fetch_ahead(self.parts.get(at..=at).unwrap_or_default());
    }

    /// The parts in some slots that name a time.
    pub(in crate::index) fn with_events(&self, slots: Range<usize>) -> impl Iterator<Item = (PartSlot, &IndexedPart)> {
        let named = self.with_events.range(slots.start as PartSlot..slots.end as PartSlot);
        named.filter_map(|slot| Some((*slot, &**self.part(*slot)?)))
    }

    /// The features of every slot.
    pub(in crate::index) fn columns(&self) -> &PartColumns {
        &self.columns
    }

    /// The centroids of every slot.
    pub(in crate::index) fn centroids(&self) -> &PartCentroids {
        &self.gists
    }

    /// The postings by stem.
    pub(in crate::index) fn stems(&self) -> &StemPostings {
        &self.stems
    }

    /// The number of words in all windows.
    pub(in crate::index) fn window_words(&self) -> u64 {
        self.window_words
    }

    /// One more than the greatest number of a session.
    pub(in crate::index) fn sessions(&self) -> usize {
        self.sessions.id_bound()
    }

    /// The number of a session.
    pub(in crate::index) fn session(&self, key: u64) -> Option<u32> {
        self.sessions.get(key)
    }

    /// One more than the greatest number of a speaker.
    pub(in crate::index) fn speakers(&self) -> usize {
        self.speakers.id_bound()
    }

    /// The speakers with this name, or with this first word of their name.
    pub(in crate::index) fn speakers_named(&self, name: NameKey) -> impl Iterator<Item = (u32, [NameKey; 2])> {
        let numbers = self.named.get(&name).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|number| (*number, self.speaker_keys[*number as usize]))
    }

    /// The buffers that the last question left.
    pub(in crate::index) fn take_scratch(&self) -> ScratchBuffers {
        self.scratch.take().unwrap_or_default()
    }

    /// Keeps the buffers for the next question. If several questions are asked at once, only one question's buffers are
    /// kept.
    pub(in crate::index) fn keep_scratch(&self, scratch: ScratchBuffers) {
        self.scratch.replace(Some(scratch));
    }

    /// The greetings.
    pub(in crate::index) fn greetings(&self) -> &GreetingPostings {
        &self.greetings
    }

    /// The parts on one side of a part whose words count with it, from the nearest on.
    pub(in crate::index) fn side(&self, of: PartSlot, back: bool) -> impl Iterator<Item = PartSlot> {
        self.side_without(of, back, NONE)
    }

    /// As [`Self::side`], as if the part `without` were not there.
    fn side_without(&self, of: PartSlot, back: bool, without: PartSlot) -> impl Iterator<Item = PartSlot> {
        let step = move |slot: PartSlot| {
            let near = self.columns.near_slot(slot);
            if back { near.before } else { near.after }
        };
        let (mut near, mut window) = (step(of), WordWindow::new(self.reach_words));
        std::iter::from_fn(move || {
            if near == without {
                near = step(near);
            }
            let words = *self.columns.length().get(near as usize)?;
            let found = window.admits(words.into()).then_some(near);
            near = step(near);
            found
        })
    }

    /// All that can be read here, except the numbers that depend on the history.
    #[cfg(test)]
    pub(in crate::index) fn listed(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let key = |slot: PartSlot| self.key(slot);
        let mut parts: Vec<_> = (0..self.slots() as PartSlot)
            .filter_map(|slot| {
                let (part, f, near) = (key(slot)?, self.columns.get(slot), self.columns.near_slot(slot));
                let speaker = self.speaker_keys[f.speaker as usize];
                let features = (f.window, f.month, f.day, f.length, f.marks);
                let event = self.with_events.contains(&slot);
                Some((part, near.all().map(key), features, speaker, event, self.gists.listed(slot)))
            })
            .collect();
        parts.sort_by_key(|part| part.0);
        let mut named: Vec<_> = self.named.iter().map(|(name, numbers)| (*name, numbers.len())).collect();
        named.sort_unstable();
        (parts, named, self.greetings.listed(), self.stems.listed(key), self.window_words, self.gists.scale())
    }

    /// Updates the counts of the windows around a part, which must be linked.
    fn change(&mut self, change: PartChange, slot: PartSlot) {
        let bag = |slot: PartSlot| Some(self.parts.get(slot as usize)?.as_ref()?.words());
        let Some(own) = bag(slot) else { return };
        let near: Vec<(PartSlot, bool)> =
            [true, false].into_iter().flat_map(|back| self.side(slot, back).map(move |other| (other, back))).collect();
        let window: Vec<TermBagSlice<'_>> =
            std::iter::once(slot).chain(near.iter().map(|(other, _)| *other)).filter_map(bag).collect();
        let mut lengths: Vec<(PartSlot, i64)> = Vec::with_capacity(near.len());
        let mut other_windows = Vec::with_capacity(near.len());
        for (other, back) in near {
            // Seen from the other part, the new part is on the opposite side, and it pushes parts out of the window
            // there.
            let with: Vec<PartSlot> = self.side(other, !back).filter(|near| *near != slot).collect();
            let pushed_out: Vec<TermBagSlice<'_>> =
                self.side_without(other, !back, slot).skip(with.len()).filter_map(bag).collect();
            let out: i64 = pushed_out.iter().map(|out| i64::from(out.length())).sum();
            let stay = with.into_iter().chain(self.side(other, back)).chain([other]).filter_map(bag).collect();
            other_windows.push(WordWindowChange { stay, pushed_out });
            lengths.push((other, i64::from(own.length()) - out));
        }
        let length = own.length() * (OWN_WORDS - 1) + window.iter().map(|bag| bag.length()).sum::<u32>();
        self.stems.apply_change(change, slot, own, &window, &other_windows);
        let sign = if change == PartChange::Insert { 1 } else { -1 };
        let mut total = sign * i64::from(length);
        for (other, more) in lengths {
            let window = &mut self.columns.window_mut()[other as usize];
            *window = (i64::from(*window) + sign * more) as u32;
            total += sign * more;
        }
        self.columns.window_mut()[slot as usize] = length;
        self.window_words = self.window_words.wrapping_add_signed(total);
    }

    fn enter_speaker(&mut self, keys: [NameKey; 2]) -> u32 {
        let (number, fresh) = self.speakers.acquire(keys[0]);
        if fresh {
            if self.speaker_keys.len() <= number as usize {
                self.speaker_keys.resize(number as usize + 1, keys);
            }
            self.speaker_keys[number as usize] = keys;
            for key in distinct(keys) {
                self.named.entry(key).or_default().push(number);
            }
        }
        number
    }

    fn leave_speaker(&mut self, keys: [NameKey; 2]) {
        let Some((number, true)) = self.speakers.release(keys[0]) else { return };
        for key in distinct(keys) {
            if let Some(numbers) = self.named.get_mut(&key) {
                numbers.retain(|other| *other != number);
                if numbers.is_empty() {
                    self.named.remove(&key);
                }
            }
        }
    }
}

impl PartFeatures {
    fn of(key: PartKey, indexed: &IndexedPart) -> Self {
        let said_at = indexed.unit.body.part_said_at(key.part as usize);
        let date = said_at.local().date();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = LIVE | flag(indexed.marks.asks, ASKS) | flag(indexed.is_passage, PASSAGE);
        let names = indexed.names().len().min(MAX_NAMES.into()) as u8;
        Self {
            month: month(date.year(), date.month()),
            day: day(said_at) as i32,
            length: indexed.words().length().min(255) as u8,
            marks: marks(flags, indexed.marks.times.min(MAX_TIMES), names),
            ..Self::default()
        }
    }
}

/// The day on which something was said, as days since 1970-01-01.
pub(in crate::index) fn day(said_at: EventTime) -> i64 {
    (said_at.unix_ms + i64::from(said_at.offset_seconds) * 1_000).div_euclid(DAY_MS)
}

/// Months since year 0.
pub(in crate::index) fn month(year: i16, month: i8) -> i32 {
    i32::from(year) * 12 + i32::from(month) - 1
}

fn distinct([whole, first]: [NameKey; 2]) -> impl Iterator<Item = NameKey> {
    [Some(whole), Some(first).filter(|first| *first != whole)].into_iter().flatten()
}

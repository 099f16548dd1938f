//! Rough scores of all parts of a large bank, and the parts that deserve the full score.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's
//! candidate index. Out: the candidates, in the order of the bank, with the parts around them, which are
//! only read for context, and the question's words in all of these. A rough score is the familiarity
//! with estimates in place of cosines: a code of signs for each vector. Words come from the postings.
//! Everything but the estimates has the meaning that `familiarity` gives it. Ties are broken by the
//! order of the bank, so the candidates are a function of the set of parts. The work can pause at every
//! step.

use std::ops::Range;

use super::{
    api::FamiliarityProbe,
    asked::{AskedWord, AskedWords, Speakers, told},
    candidate_index::{CandidateIndex, month},
    codes::CodeQuery,
    indexed_part::{NONE, PartKey, Slot},
    kernel::BLOCK_ROWS,
    part_columns::{ASKS, LIVE, PAIR, names, times},
    word_gains::{Damping, WordGains},
    words::TermKey,
    work::{Allowance, COUNTED_POSTING, READ_POSTING, ROUGH_PART, SCANNED_BLOCK},
};
use crate::model::UnitId;

/// Candidates of each single channel: the best by sentence, by pair and by words.
const OF_A_CHANNEL: usize = 64;
/// Most postings that are counted for the question's words. The rarest words come first; those that no
/// longer fit add nothing to the rough score.
const MOST_POSTINGS: usize = 30_000;
/// Slots of a step.
const SLOTS_AT_ONCE: usize = 2_048;
/// Slots whose best decides whether any of them is among the best of a channel.
const SLOTS_OF_A_CHUNK: usize = 64;
/// Blocks of codes of a step.
const BLOCKS_AT_ONCE: usize = 32;
/// Parts of a session whose mean is the score of the session.
pub(super) const SESSION_BEST: usize = 3;
/// Most parts above the zero of the scale, and so the least candidates that edges leave.
pub const SCALE_PARTS: usize = 1_000;

/// What the full score reads.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The parts, in the order of the bank.
    pub parts: Vec<ChosenPart>,
    /// The words of the question that each holds, one part after the other.
    pub words: Vec<AskedWord>,
}

/// A part that the full score reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChosenPart {
    /// Its place in the order of the bank.
    pub key: PartKey,
    /// Its slot.
    pub slot: Slot,
    /// Whether it is the next part of the session after the one before it in this list.
    pub follows: bool,
    /// For a part that is context only, its rough score.
    pub context: Option<f64>,
    /// Where its words end in [`Chosen::words`]: they follow those of the part before it in this list.
    pub words_end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    #[default]
    Start,
    Words,
    Sentences,
    Pairs,
    Own,
    Next,
    Around,
    Rank,
    Find,
}

/// Rough scores on their way.
#[derive(Default)]
pub(super) struct RoughScan {
    step: Step,
    /// The next term, block or slot of the step.
    at: usize,
    terms: Vec<(TermKey, f64)>,
    /// Postings that were counted in this step.
    counted: usize,
    /// What the words add, by slot.
    words: WordGains,
    /// How much a window is damped by its words.
    damping: Damping,
    /// Sums of codes, by slot.
    meaning: Vec<u16>,
    pair: Vec<u16>,
    queries: Option<Queries>,
    /// The share of each speaker.
    speakers: Vec<f32>,
    /// What each byte of marks adds.
    marks: Vec<f32>,
    /// The score without the shares of neighbours and session.
    own: Vec<f32>,
    /// The cosine of the pair, then the score with the shares of the neighbours.
    smooth: Vec<f32>,
    /// The best parts of each session.
    sessions: Vec<[(f32, Slot); SESSION_BEST]>,
    /// What each session adds to its parts.
    session_shares: Vec<f32>,
    best: Option<Channels>,
    chosen: Vec<bool>,
    /// The parts that the full score reads.
    parts: Vec<ChosenPart>,
    /// The place among them of the part in each slot, or [`NONE`].
    listed: Vec<u32>,
    /// The words that were found in them: the place of the part, and the word.
    found: Vec<(u32, AskedWord)>,
}

struct Queries {
    sentences: CodeQuery,
    pairs: CodeQuery,
}

struct Channels {
    all: Best,
    meaning: Best,
    pair: Best,
    words: Best,
}

/// What the scan reads besides the index.
pub(super) struct Asked<'q> {
    /// The probe.
    pub probe: &'q FamiliarityProbe,
    /// Its words, rated.
    pub words: &'q AskedWords,
    /// The people that it names, counted.
    pub speakers: &'q Speakers,
    /// How many parts deserve the full score.
    pub wanted: usize,
}

impl RoughScan {
    /// Goes on until the work is spent; the chosen parts once all are scored. `linked` gives the parts
    /// of the units that edges lead to from a unit.
    pub(super) fn go_on(
        &mut self,
        asked: &Asked<'_>,
        index: &CandidateIndex,
        linked: &dyn Fn(UnitId) -> Vec<Slot>,
        allowance: &mut Allowance,
    ) -> Option<Chosen> {
        loop {
            let end = self.end(index);
            while self.at < end {
                if allowance.is_spent() {
                    return None;
                }
                allowance.spend(self.one(asked, index, end));
            }
            self.at = 0;
            self.counted = 0;
            self.step = match self.step {
                Step::Start => {
                    self.prepare(asked, index);
                    Step::Words
                }
                Step::Words => {
                    let most = self.words.most();
                    if most > 0.0 {
                        self.words.scale(asked.probe.weights.words as f32 / most);
                    }
                    Step::Sentences
                }
                Step::Sentences => Step::Pairs,
                Step::Pairs => Step::Own,
                Step::Own => Step::Next,
                Step::Next => Step::Around,
                Step::Around => {
                    self.session_shares = self.sessions.iter().map(|best| session_share(asked.probe, best)).collect();
                    Step::Rank
                }
                Step::Rank => {
                    self.choose(asked, index, linked);
                    Step::Find
                }
                Step::Find => return Some(self.listed_words()),
            };
        }
    }

    /// The rough scores of a session's best parts that are not candidates.
    pub(super) fn rest_of_session(&self, session: u32) -> impl Iterator<Item = f64> {
        let best = self.sessions.get(session as usize).into_iter().flatten();
        best.filter(|(_, slot)| *slot != NONE && !self.chosen[*slot as usize]).map(|(score, _)| f64::from(*score))
    }

    /// Where the step ends.
    fn end(&self, index: &CandidateIndex) -> usize {
        match self.step {
            Step::Start => 0,
            Step::Words | Step::Find => self.terms.len(),
            Step::Sentences => index.sentences().0.blocks(),
            Step::Pairs => index.pairs().blocks(),
            Step::Own | Step::Next | Step::Around | Step::Rank => index.slots(),
        }
    }

    /// Some of the step; returns the work.
    fn one(&mut self, asked: &Asked<'_>, index: &CandidateIndex, end: usize) -> u64 {
        let blocks = self.at..end.min(self.at + BLOCKS_AT_ONCE);
        let slots = self.at..end.min(self.at + SLOTS_AT_ONCE);
        match self.step {
            Step::Start => 0,
            Step::Words => {
                let postings = self.count_term(index);
                self.at += 1;
                COUNTED_POSTING * postings as u64
            }
            Step::Find => {
                let postings = self.find_term(asked, index);
                self.at += 1;
                READ_POSTING * postings as u64
            }
            Step::Sentences => {
                let work = SCANNED_BLOCK * blocks.len() as u64;
                self.at = blocks.end;
                self.scan_sentences(index, blocks);
                work
            }
            Step::Pairs => {
                let work = SCANNED_BLOCK * blocks.len() as u64;
                self.at = blocks.end;
                self.scan_pairs(index, blocks);
                work
            }
            Step::Own | Step::Next | Step::Around | Step::Rank => {
                let work = ROUGH_PART * slots.len() as u64;
                self.at = slots.end;
                match self.step {
                    Step::Own => self.own(asked, index, slots),
                    Step::Next => self.next(asked, index, slots),
                    Step::Around => self.around(asked, index, slots),
                    _ => self.rank(index, slots),
                }
                work
            }
        }
    }

    fn prepare(&mut self, asked: &Asked<'_>, index: &CandidateIndex) {
        let slots = index.slots();
        self.terms = asked.words.rated();
        self.words = WordGains::new(slots);
        self.meaning = vec![0; slots];
        self.pair = vec![0; slots];
        let FamiliarityProbe { vector, weights, .. } = asked.probe;
        let queries = Queries { sentences: index.sentences().0.query(vector), pairs: index.pairs().query(vector) };
        self.queries = Some(queries);
        self.own = vec![NO_SCORE; slots];
        self.smooth = vec![NO_SCORE; slots];
        self.sessions = vec![[(NO_SCORE, NONE); SESSION_BEST]; index.sessions()];
        self.chosen = vec![false; slots];
        self.best = Some(Channels {
            all: Best::new(asked.wanted),
            meaning: Best::new(OF_A_CHANNEL),
            pair: Best::new(OF_A_CHANNEL),
            words: Best { least: f32::MIN_POSITIVE, ..Best::new(OF_A_CHANNEL) },
        });
        // Without a named speaker everyone has the same share.
        let nobody = asked.speakers.share([0, 0]) as f32;
        self.speakers = vec![nobody; index.speakers()];
        for (number, keys) in asked.speakers.names().iter().flat_map(|name| index.speakers_named(*name)) {
            self.speakers[number as usize] = asked.speakers.share(keys) as f32;
        }
        let [least, next] = [0, 1].map(|words| asked.words.damping(words));
        self.damping = Damping { least: least as f32, step: (next - least) as f32 };
        let for_times = if asked.probe.asks_time { weights.times_asked } else { weights.times };
        let of_marks = |marks: u8| {
            let asks = f64::from(u8::from(marks & ASKS != 0));
            for_times * f64::from(times(marks)) + weights.names * f64::from(names(marks)) - weights.asks * asks
        };
        let of_marks = |marks: u8| if marks & LIVE == 0 { NO_SCORE } else { of_marks(marks) as f32 };
        self.marks = (0..=u8::MAX).map(of_marks).collect();
    }

    /// Adds the gains of one term to the windows that hold it; returns how many postings it has.
    fn count_term(&mut self, index: &CandidateIndex) -> usize {
        let Some((term, worth)) = self.terms.get(self.at).copied() else { return 0 };
        let Some(stem) = index.stems().get(term) else { return 0 };
        let postings = stem.parts.len();
        if self.counted > 0 && self.counted + postings > MOST_POSTINGS {
            return 0;
        }
        self.counted += postings;
        self.words.add(index, &stem.parts, worth, self.damping);
        postings
    }

    fn scan_sentences(&mut self, index: &CandidateIndex, blocks: Range<usize>) {
        let Some(queries) = &self.queries else { return };
        let (codes, slots) = index.sentences();
        let mut sums = [0; BLOCK_ROWS];
        for block in blocks {
            codes.scan(&queries.sentences, block, &mut sums);
            for (slot, sum) in slots.iter().skip(block * BLOCK_ROWS).zip(sums) {
                if let Some(best) = self.meaning.get_mut(*slot as usize) {
                    *best = sum.max(*best);
                }
            }
        }
    }

    fn scan_pairs(&mut self, index: &CandidateIndex, blocks: Range<usize>) {
        let Some(queries) = &self.queries else { return };
        let codes = index.pairs();
        let mut sums = [0; BLOCK_ROWS];
        for block in blocks {
            let first = block * BLOCK_ROWS;
            codes.scan(&queries.pairs, block, &mut sums);
            let end = self.pair.len().min(first + BLOCK_ROWS);
            self.pair[first..end].copy_from_slice(&sums[..end - first]);
        }
    }

    /// The score of each part alone, but for the pair of the next one.
    fn own(&mut self, asked: &Asked<'_>, index: &CandidateIndex, slots: Range<usize>) {
        let (Some(queries), Some(channels)) = (&self.queries, &mut self.best) else { return };
        let (w, columns) = (&asked.probe.weights, index.columns());
        let [meaning, pair, trio] = [w.meaning, w.pair, w.trio].map(|weight| weight as f32);
        let [speaker, month_weight] = [w.speaker, w.month].map(|weight| weight as f32);
        let marks = &columns.marks()[slots.clone()];
        let own = &mut self.own[slots.clone()];
        let pairs = &mut self.smooth[slots.clone()];
        let words = &self.words.gains()[slots.clone()];
        let sums = &self.meaning[slots.clone()];
        let mut sentences = [0.0; SLOTS_AT_ONCE];
        let sentences = &mut sentences[..slots.len()];
        for (sentence, sum) in sentences.iter_mut().zip(sums) {
            *sentence = queries.sentences.cosine(*sum);
        }
        let or_sentence = |marks: u8, pair: f32, sentence: f32| if marks & PAIR != 0 { pair } else { sentence };
        let sums = self.pair[slots.clone()].iter().zip(marks);
        for ((of_pair, (sum, marks)), sentence) in pairs.iter_mut().zip(sums).zip(&*sentences) {
            *of_pair = or_sentence(*marks, queries.pairs.cosine(*sum), *sentence);
        }
        for (((own, of_pair), sentence), words) in own.iter_mut().zip(&*pairs).zip(&*sentences).zip(words) {
            *own = meaning * sentence + (pair + trio / 2.0) * of_pair + words;
        }
        for (own, number) in own.iter_mut().zip(&columns.speaker()[slots.clone()]) {
            *own += speaker * self.speakers.get(*number as usize).copied().unwrap_or_default();
        }
        if !asked.probe.months.is_empty() {
            let said_in = |at: i32| {
                let named = |(year, named): &(Option<i16>, i8)| match year {
                    Some(year) => at == month(*year, *named),
                    None => at.rem_euclid(12) + 1 == i32::from(*named),
                };
                asked.probe.months.iter().any(named)
            };
            for (own, at) in own.iter_mut().zip(&columns.month()[slots.clone()]) {
                *own += if said_in(*at) { month_weight } else { 0.0 };
            }
        }
        if !asked.probe.days.is_empty() {
            for (own, at) in own.iter_mut().zip(&columns.day()[slots.clone()]) {
                *own += (w.day * told(&asked.probe.days, (*at).into())) as f32;
            }
        }
        // What holds no part gets no score here.
        for (own, marks) in own.iter_mut().zip(marks) {
            *own += self.marks[usize::from(*marks)];
        }
        channels.meaning.add_live(sentences, marks, slots.start);
        channels.pair.add_live(pairs, marks, slots.start);
        channels.words.add_live(words, marks, slots.start);
    }

    /// Adds the share of the pair of the next part.
    fn next(&mut self, asked: &Asked<'_>, index: &CandidateIndex, slots: Range<usize>) {
        let half = asked.probe.weights.trio as f32 / 2.0;
        let pairs = &self.smooth;
        let near = &index.columns().near()[slots.clone()];
        for ((own, near), pair) in self.own[slots.clone()].iter_mut().zip(near).zip(&pairs[slots]) {
            *own += half * pairs.get(near.after as usize).unwrap_or(pair);
        }
    }

    /// Adds the shares of the neighbours.
    fn around(&mut self, asked: &Asked<'_>, index: &CandidateIndex, slots: Range<usize>) {
        let columns = index.columns();
        let shares = [asked.probe.weights.next_turn as f32, asked.probe.weights.second_turn as f32];
        let own = &self.own[..];
        let of = |slot: Slot| own.get(slot as usize).copied().unwrap_or(NO_SCORE);
        let best = |one: Slot, other: Slot| {
            let (one, other) = (of(one), of(other));
            let best = if one > other { one } else { other };
            if best > NO_SCORE { best } else { 0.0 }
        };
        for (at, (smooth, near)) in
            slots.clone().zip(self.smooth[slots.clone()].iter_mut().zip(&columns.near()[slots.clone()]))
        {
            *smooth = own[at]
                + shares[0] * best(near.before, near.after)
                + shares[1] * best(near.second_before, near.second_after);
        }
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        for ((at, score), session) in slots.clone().zip(&self.smooth[slots.clone()]).zip(&columns.session()[slots]) {
            let best = &mut self.sessions[*session as usize];
            if *score >= best[SESSION_BEST - 1].0 && *score > NO_SCORE {
                enter(best, *score, at as Slot, key);
            }
        }
    }

    fn rank(&mut self, index: &CandidateIndex, slots: Range<usize>) {
        let Some(channels) = &mut self.best else { return };
        let (marks, sessions) = (&index.columns().marks()[slots.clone()], &index.columns().session()[slots.clone()]);
        let mut scores = [NO_SCORE; SLOTS_AT_ONCE];
        let scores = &mut scores[..slots.len()];
        for ((score, smooth), session) in scores.iter_mut().zip(&self.smooth[slots.clone()]).zip(sessions) {
            *score = smooth + self.session_shares.get(*session as usize).copied().unwrap_or_default();
        }
        channels.all.add_live(scores, marks, slots.start);
    }

    /// The best by the whole score and by each channel, what the edges of the very best lead to, and the
    /// parts around all of them.
    fn choose(&mut self, asked: &Asked<'_>, index: &CandidateIndex, linked: &dyn Fn(UnitId) -> Vec<Slot>) {
        let Some(Channels { all, meaning, pair, words }) = self.best.take() else { return };
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        let all = all.finish(key);
        let mut anchors: Vec<UnitId> = Vec::new();
        for (_, _, unit, _) in all.iter().filter_map(|slot| key(*slot)) {
            if anchors.len() == asked.probe.linked_units {
                break;
            }
            if !anchors.contains(&unit) {
                anchors.push(unit);
            }
        }
        all.iter().for_each(|slot| self.chosen[*slot as usize] = true);
        let mut linked: Vec<Slot> = anchors.into_iter().flat_map(linked).collect();
        linked.retain(|slot| !std::mem::replace(&mut self.chosen[*slot as usize], true));
        all.iter().chain(&linked).for_each(|slot| self.chosen[*slot as usize] = false);
        // They take the places of the last, so that there are as many candidates with edges as without.
        let mut chosen = all;
        chosen.truncate(asked.wanted.saturating_sub(linked.len()).max(SCALE_PARTS));
        chosen.extend(linked);
        chosen.extend([meaning, pair, words].into_iter().flat_map(|best| best.finish(key)));
        chosen.retain(|slot| !std::mem::replace(&mut self.chosen[*slot as usize], true));
        // The windows of parts in order follow one another, too: what counts with a part and lies before
        // the part before it counts with that one.
        let mut chosen: Vec<(PartKey, Slot)> = chosen.into_iter().filter_map(|slot| Some((key(slot)?, slot))).collect();
        chosen.sort_unstable();
        self.listed = vec![NONE; index.slots()];
        let mut window = Vec::new();
        for (_, slot) in chosen {
            window.clear();
            window.extend(index.side(slot, true));
            window.reverse();
            window.push(slot);
            window.extend(index.side(slot, false));
            for near in window.iter().copied() {
                if self.listed[near as usize] != NONE {
                    continue;
                }
                let Some(key) = key(near) else { continue };
                self.listed[near as usize] = self.parts.len() as u32;
                let context = (!self.chosen[near as usize]).then(|| f64::from(self.own[near as usize]));
                let before = index.columns().near_slot(near).before;
                let follows = self.parts.last().is_some_and(|last| last.slot == before);
                self.parts.push(ChosenPart { key, slot: near, follows, context, words_end: 0 });
            }
        }
    }

    /// Finds one term in the listed parts; returns how many postings it has. Reading them costs less than
    /// the words of the parts, which lie all over the memory.
    fn find_term(&mut self, asked: &Asked<'_>, index: &CandidateIndex) -> usize {
        let Some((term, _)) = self.terms.get(self.at) else { return 0 };
        let (Some(word), Some(stem)) = (asked.words.place_of(*term), index.stems().get(*term)) else { return 0 };
        let listed = |(slot, count): &(Slot, u16)| {
            let at = self.listed.get(*slot as usize).copied().filter(|at| *at != NONE)?;
            Some((at, (word, u32::from(*count))))
        };
        self.found.extend(stem.parts.iter().filter_map(listed));
        stem.parts.len()
    }

    /// The listed parts, each with the words that were found in it.
    fn listed_words(&mut self) -> Chosen {
        let (mut parts, found) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.found));
        let mut counts = vec![0; parts.len()];
        found.iter().for_each(|(at, _)| counts[*at as usize] += 1);
        let mut first = 0;
        for (part, count) in parts.iter_mut().zip(counts) {
            // Where its next word goes, so that it is the end once all are placed.
            part.words_end = first;
            first += count;
        }
        let mut words = vec![(0, 0); found.len()];
        for (at, word) in found {
            let next = &mut parts[at as usize].words_end;
            words[*next] = word;
            *next += 1;
        }
        Chosen { parts, words }
    }
}

/// The score of a slot without a part.
const NO_SCORE: f32 = f32::NEG_INFINITY;

/// Puts a part among the best of its session where it belongs. Of equal scores the first in the order of the
/// keys comes first, as slots depend on the history.
fn enter<K: Ord>(best: &mut [(f32, Slot); SESSION_BEST], score: f32, slot: Slot, key: impl Fn(Slot) -> K) {
    let before = |(other, of): &(f32, Slot)| *other > score || (*other == score && *of != NONE && key(*of) < key(slot));
    let place = best.partition_point(before);
    if place < SESSION_BEST {
        best[place..].rotate_right(1);
        best[place] = (score, slot);
    }
}

/// A share of the mean of a session's best parts.
fn session_share(probe: &FamiliarityProbe, best: &[(f32, Slot)]) -> f32 {
    let best = best.iter().filter(|(_, slot)| *slot != NONE);
    let (sum, count) = best.fold((0.0, 0.0), |(sum, count), (score, _)| (sum + score, count + 1.0));
    probe.weights.session as f32 * sum / f32::max(count, 1.0)
}

/// The greatest score.
fn greatest(scores: &[f32]) -> f32 {
    const LANES: usize = 8;
    let (rows, rest) = scores.as_chunks::<LANES>();
    let mut most = [NO_SCORE; LANES];
    for row in rows {
        most.iter_mut().zip(row).for_each(|(most, score)| *most = if score > most { *score } else { *most });
    }
    most.iter().chain(rest).copied().fold(NO_SCORE, f32::max)
}

/// The best of many scores. All that tie with the last are kept until the end.
struct Best {
    wanted: usize,
    least: f32,
    found: Vec<(f32, Slot)>,
    trim_at: usize,
}

impl Best {
    fn new(wanted: usize) -> Self {
        Self { wanted, least: NO_SCORE, found: Vec::new(), trim_at: 4 * wanted }
    }

    /// Adds the parts of these scores and marks, from a slot on.
    fn add_live(&mut self, scores: &[f32], marks: &[u8], first: usize) {
        let chunks = scores.chunks(SLOTS_OF_A_CHUNK).zip(marks.chunks(SLOTS_OF_A_CHUNK));
        for ((scores, marks), first) in chunks.zip((first..).step_by(SLOTS_OF_A_CHUNK)) {
            if greatest(scores) < self.least {
                continue;
            }
            for ((score, marks), slot) in scores.iter().zip(marks).zip(first..) {
                if marks & LIVE != 0 {
                    self.add(*score, slot as Slot);
                }
            }
        }
    }

    fn add(&mut self, score: f32, slot: Slot) {
        if score >= self.least {
            self.found.push((score, slot));
            if self.found.len() > self.trim_at {
                self.trim();
            }
        }
    }

    fn trim(&mut self) {
        if self.wanted == 0 || self.found.len() <= self.wanted {
            return;
        }
        let (_, last, _) = self.found.select_nth_unstable_by(self.wanted - 1, |a, b| b.0.total_cmp(&a.0));
        let least = last.0;
        self.least = least;
        self.found.retain(|(score, _)| *score >= least);
        self.trim_at = (4 * self.wanted).max(2 * self.found.len());
    }

    /// The best, in order; those of one score in the order of their keys.
    fn finish<K: Ord>(mut self, key: impl Fn(Slot) -> K) -> Vec<Slot> {
        self.trim();
        self.found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| key(a.1).cmp(&key(b.1))));
        self.found.truncate(self.wanted);
        self.found.into_iter().map(|(_, slot)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_parts_of_a_session_those_first_in_the_bank_are_its_best() {
        // The greater the slot, the earlier the part in the order of the bank.
        let key = |slot: Slot| 10 - slot;
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
            let mut best = [(NO_SCORE, NONE); SESSION_BEST];
            order.into_iter().for_each(|slot| enter(&mut best, 0.5, slot, key));
            assert_eq!(best.map(|(_, slot)| slot), [4, 3, 2], "{order:?}");
        }
    }
}

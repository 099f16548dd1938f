//! How familiar each part of a bank is to a question (decision 19).
//!
//! In: the parts of a bank (`bank_parts`); a probe with the question's vector, words, names and time. Out: as of an
//! epoch, the best parts with their scores, the terms of each score, and the zero of the bank's scale. In a bank with a
//! candidate index, only the candidates are scored, with the same terms and the statistics of the whole bank; in other
//! banks, every part is scored. No statistic counts a deleted unit. The passes may pause after any part; the result
//! does not depend on where they pause. The sums run in the order of sessions and ordinals, so that they do not depend
//! on arrival order; logarithms are rounded to 20 binary digits, so that they do not depend on the processor.
//!
//! The score is a weighted sum (`types/config/familiarity.rs` explains each weight): the cosine of the part's best
//! sentence; the cosines of the part with its neighbours; BM25 over the part (its words count twice) and the turns
//! around it; who speaks; the time that is asked for; features of the words. Then a share of the neighbours' scores and
//! of the session's best scores is added. A passage of a long turn has no neighbours and is not a neighbour: the short
//! turns before and after it are neighbours of each other. The features of its words do not count.
//!
//! A selector takes parts out of the ranking, and nothing else: what a part's neighbours and its session lend it, and
//! the statistics of words, are those of the bank. The zero of the scale is that of the parts that are ranked.

use std::{cmp::Reverse, ops::Range, rc::Rc, slice::from_ref};

use super::bank_parts::BankParts;
use crate::index::{
    candidates::{
        candidate_index::{CandidateIndex, MAX_NAMES, MAX_TIMES, OWN_WORDS},
        candidate_selection::{CandidateSelection, SCALE_PARTS},
        indexed_part::{IndexedPart, NONE, PartKey, PartSlot},
        query_terms::{NameSet, QuerySpeakers, QueryTerms, QueryTopics, QueryWordHit, QueryWords, TermMap, add_words},
        session_best_slots::SESSION_BEST,
        slot_set::SlotSet,
    },
    lexical::{
        greeting_index::BankGreetings,
        term_analyzer::{TermAnalyzer, TermKey},
        word_window::WordWindow,
    },
    matching_parts::MatchingParts,
    probes::{FamiliarPart, FamiliarityProbe, FamiliarityResult},
    units::{association_score::NameKey, unit_body::estimated_tokens},
    vectors::{
        kernel::{self, AHEAD},
        unit_vector_rows::VectorRows,
    },
    work_budget::{MATCHED_PART, PASSED_PART, SCANNED_VECTOR, WorkBudget},
};
use types::model::{FamiliarityTerms, Score, UnitId};

/// The greatest fixed-point score is 2. A familiarity is at most about the sum of its weights; it is divided by this
/// for comparison.
const FAMILIARITY_SCALE: f64 = 16.0;

/// One part on its way to a score.
struct PartScore {
    key: PartKey,
    /// Its slot in the candidate index, or [`NONE`].
    slot: PartSlot,
    indexed: Rc<IndexedPart>,
    /// The words of the question that it contains, as a range in [`QueryWordCounts`].
    words: Range<usize>,
    length: u32,
    /// Those of its window, in the order of the question, as a range in [`QueryWordCounts`]; and the window's length.
    window: Range<usize>,
    window_length: u32,
    /// Cosine of the question and its best sentence.
    cosine: f64,
    /// Cosine of the question and the part with the turn before it.
    pair: f64,
    /// The question's topics that it holds itself, one bit for each.
    topics: u64,
    terms: FamiliarityTerms,
    /// Whether it lies in the time of the probe.
    is_in_time: bool,
    own: f64,
    smooth: f64,
    /// Its place among the parts that are not passages; for a passage, the place of the next such part.
    place: usize,
}

/// The index of a large bank, and its candidates.
type LargeBank<'a> = (&'a CandidateIndex, &'a CandidateSelection);

/// The words of the question, by their index in it, with their counts. The words of all parts follow each other in one
/// list, so that no part needs an allocation of its own.
#[derive(Default)]
struct QueryWordCounts {
    in_parts: Vec<QueryWordHit>,
    in_windows: Vec<QueryWordHit>,
}

/// The passes over the bank, in order. Each needs what the previous one found about all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScoringPass {
    /// Before the first pass.
    #[default]
    Start,
    /// Finds the parts that are ranked, if not all are.
    Match,
    /// Chooses candidates, in a large bank.
    Choose,
    /// Takes every part, or every candidate, with the words of the question that it contains and with the name that is
    /// greeted in it.
    Collect,
    /// Counts these words in the window of each part, and finds which of the named people speak.
    Windows,
    /// Computes BM25 of the words.
    Words,
    /// Finds the topics in the part itself, and computes the cosines.
    Align,
    /// Adds the next pair, the speaker, the time and the features of the words.
    Features,
    /// Adds the shares of the neighbours, and finds each session's best parts.
    Around,
    /// Adds the share of the session, and ranks the parts.
    Rank,
}

/// A familiarity probe that is being answered.
#[derive(Default)]
pub(in crate::index) struct FamiliarityScan {
    pass: ScoringPass,
    /// The next part of the pass.
    at: usize,
    parts: Vec<PartScore>,
    /// The parts that are not passages, in order.
    turns: Vec<usize>,
    found: QueryWordCounts,
    /// In a large bank, the parts that are scored.
    candidates: Option<Box<CandidateSelection>>,
    /// Parts in the bank.
    total: usize,
    /// How many of them an assistant said.
    assistants: usize,
    only_person: Option<String>,
    unknown_asker: Option<Vec<String>>,
    /// The estimated tokens of all parts in the bank, or of those that are ranked.
    tokens: f64,
    /// How many parts are ranked, if not all are, and the bytes of their texts.
    matched: (usize, u64),
    /// The part that was matched last.
    last_matched: Option<PartKey>,
    /// In a large bank, the slots of the parts that are ranked, if not all are.
    matching_slots: Option<SlotSet>,
    /// A part counts with another while fewer words than this are in between.
    window_words: u32,
    asked: QueryWords,
    topics: QueryTopics,
    speakers: QuerySpeakers,
    greetings: BankGreetings,
    /// The first words of the names of all speakers.
    present: NameSet,
    sessions: SessionMeans,
    ranked: Vec<(Reverse<Score>, PartKey, usize)>,
    /// How many of the scored parts lie in the time of the probe.
    in_time: usize,
    /// Whether a part of a large bank may lie in it.
    may_hold_time: bool,
}

/// The mean of the best parts of each session. Sessions are added in their order.
#[derive(Default)]
struct SessionMeans {
    session: Option<u64>,
    best: Vec<f64>,
    /// The first estimates of its best parts that are not candidates, best first. They are used if too few parts are
    /// candidates.
    rest: Vec<f64>,
    means: Vec<(u64, f64)>,
    /// The session whose mean was asked for last.
    at: usize,
}

impl FamiliarityScan {
    /// Works until the allowance is spent; returns the answer once every part is scored. `linked` returns the slots of
    /// the parts of the units that a unit's edges lead to.
    pub(in crate::index) fn resume(
        &mut self,
        probe: &FamiliarityProbe,
        bank: &BankParts,
        linked: &dyn Fn(UnitId) -> Vec<PartSlot>,
        words: &mut TermAnalyzer,
        allowance: &mut WorkBudget,
    ) -> Option<FamiliarityResult> {
        let wanted = probe.candidates;
        let index = bank.candidates().filter(|_| wanted > 0 && wanted < bank.len());
        loop {
            match self.pass {
                ScoringPass::Start => {
                    let language = probe.language.unwrap_or_else(|| bank.language());
                    self.asked = QueryWords::new(probe, language, words);
                    self.topics = QueryTopics::new(probe, language, words, |word| bank.names_speaker(word));
                    self.speakers = QuerySpeakers::new(probe);
                    self.total = bank.len();
                    self.assistants = bank.assistants();
                    self.only_person = bank.only_person();
                    self.unknown_asker = probe.asker.as_deref().and_then(|name| bank.speakers_if_absent(name));
                    self.tokens = bank.estimated_tokens();
                    self.window_words = bank.window_words();
                    self.matching_slots = probe.matching.as_ref().and(index).map(|index| {
                        let mut slots = SlotSet::default();
                        slots.clear(index.slots());
                        slots
                    });
                    self.candidates = index.map(|index| {
                        self.count_all(probe, index);
                        Box::default()
                    });
                }
                ScoringPass::Match => {
                    if let Some(matching) = &probe.matching {
                        self.match_parts(matching, bank, allowance)?;
                    }
                }
                ScoringPass::Choose => {
                    if let (Some(candidates), Some(index)) = (&mut self.candidates, index) {
                        let (words, speakers, matching) = (&self.asked, &self.speakers, self.matching_slots.as_ref());
                        let asked = QueryTerms { probe, words, speakers, wanted, matching };
                        if !candidates.resume(&asked, index, linked, allowance) {
                            return None;
                        }
                    }
                }
                ScoringPass::Collect => {
                    while let Some(index) = index
                        && let Some(candidate) = self.next_candidate()
                    {
                        if allowance.is_spent() {
                            return None;
                        }
                        self.fetch_candidates(index);
                        self.collect_candidate(index, candidate)?;
                        allowance.spend(PASSED_PART);
                    }
                    let every = index.is_none().then(|| bank.after(self.parts.last().map(|part| part.key)));
                    for (key, indexed) in every.into_iter().flatten() {
                        if allowance.is_spent() {
                            return None;
                        }
                        self.collect(*key, indexed, probe);
                        allowance.spend(PASSED_PART);
                    }
                }
                pass => {
                    while self.at < self.parts.len() {
                        if allowance.is_spent() {
                            return None;
                        }
                        allowance.spend(self.run_pass_step(pass, probe, index));
                        self.at += 1;
                    }
                }
            }
            self.at = 0;
            self.pass = match self.pass {
                ScoringPass::Start => ScoringPass::Match,
                ScoringPass::Match => ScoringPass::Choose,
                ScoringPass::Choose => ScoringPass::Collect,
                ScoringPass::Collect => {
                    if index.is_none() {
                        self.topics.rate(self.total);
                        let meanings = std::mem::take(&mut self.greetings).into_meanings();
                        self.speakers.add_meanings(meanings, |name| self.present.contains(&name));
                    }
                    ScoringPass::Windows
                }
                ScoringPass::Windows => {
                    if index.is_none() {
                        self.asked.rate(self.total);
                    }
                    ScoringPass::Words
                }
                ScoringPass::Words => ScoringPass::Align,
                ScoringPass::Align => ScoringPass::Features,
                ScoringPass::Features => ScoringPass::Around,
                ScoringPass::Around => {
                    self.sessions.close();
                    ScoringPass::Rank
                }
                ScoringPass::Rank => {
                    if let (Some(candidates), Some(index)) = (self.candidates.take(), index) {
                        self.may_hold_time = candidates.holds_time();
                        index.keep_scratch(candidates.into_scratch());
                    }
                    return Some(self.answer(probe));
                }
            };
        }
    }

    /// Takes the statistics of the whole bank from its index.
    fn count_all(&mut self, probe: &FamiliarityProbe, index: &CandidateIndex) {
        self.topics.count_all(index);
        self.topics.rate(self.total);
        if probe.greeted_names {
            let meanings = index.greetings().meanings(self.speakers.names());
            self.speakers.add_meanings(meanings, |name| speaks(index, name));
        }
        self.speakers.count_all(index);
        self.asked.count_all(index);
        self.asked.rate(self.total);
    }

    /// Finds the parts that are ranked; `None` if the allowance is spent before the end.
    fn match_parts(&mut self, matching: &MatchingParts, bank: &BankParts, allowance: &mut WorkBudget) -> Option<()> {
        let mut ahead = bank.after(self.last_matched).skip(AHEAD);
        for (key, indexed) in bank.after(self.last_matched) {
            if allowance.is_spent() {
                return None;
            }
            allowance.spend(MATCHED_PART);
            self.last_matched = Some(*key);
            ahead.next().into_iter().for_each(|(_, part)| kernel::fetch_ahead(from_ref(&**part)));
            if matching.takes(key.unit, key.part) {
                self.matched.0 += 1;
                self.matched.1 += u64::from(indexed.text_bytes);
                if let Some(slots) = &mut self.matching_slots {
                    slots.insert(indexed.slot.get());
                }
            }
        }
        self.tokens = estimated_tokens(self.matched.0, self.matched.1);
        Some(())
    }

    /// Takes a part, and counts it in the statistics.
    fn collect(&mut self, key: PartKey, indexed: &Rc<IndexedPart>, probe: &FamiliarityProbe) {
        let first = self.found.in_parts.len();
        let words = indexed.words().terms().filter_map(|(t, n)| Some((self.asked.word_index(t)?, u32::from(n))));
        self.found.in_parts.extend(words);
        self.add_part(key, NONE, first, indexed);
        let (place, part) = (self.asked.word_indexes(), &self.parts[self.parts.len() - 1]);
        self.topics.count(|term| self.found.holds(part, term, place));
        if probe.greeted_names {
            let greeted = indexed.greeted().filter(|name| self.speakers.names().contains(name));
            self.greetings.add(key.session, indexed.speaker[0], greeted);
        }
        self.present.insert(indexed.speaker[1]);
    }

    /// The next candidate to be collected.
    fn next_candidate(&self) -> Option<(PartKey, PartSlot)> {
        self.candidates.as_ref()?.all().get(self.parts.len()).copied()
    }

    /// Has the processor fetch candidates that are collected later.
    fn fetch_candidates(&self, index: &CandidateIndex) {
        let all = self.candidates.as_ref().map_or(&[][..], |candidates| candidates.all());
        let slot = |ahead: usize| all.get(self.parts.len() + ahead).map(|(_, slot)| *slot);
        if let Some(slot) = slot(3 * AHEAD) {
            index.prefetch_part(slot);
        }
        if let Some(part) = slot(2 * AHEAD).and_then(|slot| index.part(slot)) {
            kernel::fetch_ahead(from_ref(&**part));
        }
        if let Some(part) = slot(AHEAD).and_then(|slot| index.part(slot)) {
            kernel::fetch_ahead(part.names());
        }
    }

    /// Takes a candidate. None if there is no such part, which does not happen.
    fn collect_candidate(&mut self, index: &CandidateIndex, (key, slot): (PartKey, PartSlot)) -> Option<()> {
        let indexed = index.part(slot)?;
        // Only the names in scored parts are looked up.
        for name in indexed.names() {
            if speaks(index, *name) {
                self.present.insert(*name);
            }
        }
        let first = self.found.in_parts.len();
        self.found.in_parts.extend_from_slice(self.candidates.as_ref()?.words_of(slot));
        self.add_part(key, slot, first, indexed);
        Some(())
    }

    /// Takes a part whose words begin at `first` in `found.in_parts`.
    fn add_part(&mut self, key: PartKey, slot: PartSlot, first: usize, indexed: &Rc<IndexedPart>) {
        self.parts.push(PartScore {
            key,
            slot,
            indexed: Rc::clone(indexed),
            words: first..self.found.in_parts.len(),
            length: indexed.words().length(),
            window: 0..0,
            window_length: 0,
            cosine: 0.0,
            pair: 0.0,
            topics: 0,
            terms: FamiliarityTerms::default(),
            is_in_time: false,
            own: 0.0,
            smooth: 0.0,
            place: self.turns.len(),
        });
        if !indexed.is_passage {
            self.turns.push(self.parts.len() - 1);
        }
    }

    /// Does one part in a pass; returns how much work that was.
    fn run_pass_step(&mut self, pass: ScoringPass, probe: &FamiliarityProbe, index: Option<&CandidateIndex>) -> u64 {
        let at = self.at;
        let large = index.zip(self.candidates.as_deref());
        match pass {
            ScoringPass::Start | ScoringPass::Match | ScoringPass::Choose | ScoringPass::Collect => {}
            ScoringPass::Windows => {
                let (window, length) = match large {
                    Some(large) => self.found.window_of_candidate(self.parts[at].slot, large),
                    None => self.found.window(&self.parts, &self.turns, at, self.window_words),
                };
                let part = &mut self.parts[at];
                if large.is_none() {
                    self.asked.count(&self.found.in_windows[window.clone()], length);
                    self.speakers.count(part.indexed.speaker);
                }
                (part.window, part.window_length) = (window, length);
            }
            ScoringPass::Words => {
                let part = &mut self.parts[at];
                let window = &self.found.in_windows[part.window.clone()];
                self.asked.gain(window, part.window_length, &mut part.terms);
            }
            ScoringPass::Align => {
                if let Some(part) = self.parts.get(at + 3 * AHEAD) {
                    kernel::fetch_ahead(from_ref(&*part.indexed));
                }
                if let Some(part) = self.parts.get(at + 2 * AHEAD) {
                    kernel::fetch_ahead(from_ref(&*part.indexed.unit));
                }
                if let Some(part) = self.parts.get(at + AHEAD) {
                    part.indexed.vectors().fetch_ahead();
                }
                let mut terms = self.parts[at].terms;
                self.asked.share(probe, &mut terms);
                let part = &self.parts[at];
                let topics = self.topics.topic_bits(|term| self.found.holds(part, term, self.asked.word_indexes()));
                let part = &mut self.parts[at];
                (part.terms, part.topics) = (terms, topics);
                return PASSED_PART + add_cosines(probe, part) * SCANNED_VECTOR;
            }
            ScoringPass::Features => {
                if let Some((index, _)) = large {
                    fetch_next_pairs(&self.parts, at, index);
                }
                // The mean of the cosines of a part's pair and of the next part's pair.
                let pair = self.parts[at].pair;
                let next = next_pair(probe, &self.parts, &self.turns, at, large).unwrap_or(pair);
                let part = &mut self.parts[at];
                part.terms.pair += probe.weights.trio * probe.cosines.of((pair + next) / 2.0);
                part.terms.speaker = self.speakers.share(part.indexed.speaker) * probe.weights.speaker;
                add_features(probe, part, &self.present);
            }
            ScoringPass::Around => {
                let lent = neighbour_share(probe, &self.parts, &self.turns, at, large);
                let part = &mut self.parts[at];
                part.terms.around = lent;
                part.smooth = part.own + lent;
                let session = part.key.session;
                if self.sessions.add(session, part.smooth)
                    && let Some((index, candidates)) = large
                    && let Some(session) = index.session(session)
                {
                    self.sessions.rest = candidates.rest_of_session(session).collect();
                }
            }
            ScoringPass::Rank => {
                let mean = self.sessions.mean(self.parts[at].key.session);
                let part = &mut self.parts[at];
                part.terms.session = probe.weights.session * mean;
                let PartKey { unit, part: of_unit, .. } = part.key;
                if probe.matching.as_ref().is_some_and(|matching| !matching.takes(unit, of_unit)) {
                    return PASSED_PART;
                }
                // No other part gets a share of this.
                let chosen =
                    probe.time.as_ref().filter(|_| part.is_in_time).map_or(0.0, |time| time.chosen(&probe.weights));
                part.terms.month += chosen;
                self.in_time += usize::from(part.is_in_time);
                let score = Score::from_f64((part.smooth + part.terms.session + chosen) / FAMILIARITY_SCALE);
                self.ranked.push((Reverse(score), part.key, at));
                let wanted = self.wanted_parts(probe);
                if self.ranked.len() >= 2 * wanted + 64 {
                    self.ranked.select_nth_unstable(wanted);
                    self.ranked.truncate(wanted);
                }
            }
        }
        PASSED_PART
    }

    /// How many of the best parts are needed, in order of score.
    fn wanted_parts(&self, probe: &FamiliarityProbe) -> usize {
        probe.limit.max(SCALE_PARTS).min(self.total)
    }

    /// The best parts in order, with the zero of the scale and the number of all parts.
    fn answer(&mut self, probe: &FamiliarityProbe) -> FamiliarityResult {
        let mut order = std::mem::take(&mut self.ranked);
        order.sort_unstable();
        order.truncate(self.wanted_parts(probe));
        let zero = self.zero(&order, probe.zero * self.tokens.min(probe.scale_tokens as f64));
        order.truncate(probe.limit);
        let of_part = |(score, key, at): (Reverse<Score>, PartKey, usize)| {
            let PartScore { indexed, cosine, topics, terms, .. } = &self.parts[at];
            FamiliarPart {
                unit: indexed.unit.body.clone(),
                part: key.part as usize,
                speaker: indexed.speaker,
                asks: indexed.marks.asks,
                restated: indexed.unit.body.is_restated(),
                score: score.0.as_f64() * FAMILIARITY_SCALE,
                cosine: Score::from_f64(*cosine),
                topics: *topics,
                terms: *terms,
            }
        };
        let best = order.into_iter().map(of_part).collect();
        let unknown_asker = self.unknown_asker.take();
        let (topics, speaker_topics) = std::mem::take(&mut self.topics).into_topics();
        FamiliarityResult {
            best,
            zero,
            parts_total: self.total,
            scored: self.parts.len(),
            assistants: self.assistants,
            tokens: self.tokens,
            topics,
            only_person: self.only_person.take(),
            unknown_asker,
            speaker_topics,
            in_time: probe.time.is_some().then(|| self.in_time.max(usize::from(self.may_hold_time))),
        }
    }

    /// The score of the part that ranks below `above` tokens of better parts.
    fn zero(&self, order: &[(Reverse<Score>, PartKey, usize)], above: f64) -> f64 {
        let compared = order.get(..SCALE_PARTS).unwrap_or(order);
        let mut bytes = 0;
        let reached = compared.iter().zip(1..).find(|((_, _, at), parts)| {
            bytes += u64::from(self.parts[*at].indexed.text_bytes);
            estimated_tokens(*parts, bytes) >= above
        });
        let zero = reached.map(|(part, _)| part).or(compared.last());
        zero.map_or(0.0, |(score, ..)| score.0.as_f64() * FAMILIARITY_SCALE)
    }
}

impl QueryWordCounts {
    /// Whether a part contains a word.
    fn holds(&self, part: &PartScore, term: TermKey, place: &TermMap<usize>) -> bool {
        match place.get(&term) {
            Some(at) => self.in_parts[part.words.clone()].iter().any(|(word, _)| word == at),
            None => part.indexed.words().count(term) > 0,
        }
    }

    /// The window of a part: how often each word of the question occurs in it, and its length.
    fn window(&mut self, parts: &[PartScore], turns: &[usize], at: usize, window_words: u32) -> (Range<usize>, u32) {
        let Self { in_parts, in_windows } = self;
        let first = in_windows.len();
        let mut length = 0;
        let mut add = |part: &PartScore, times: u32| {
            length += times * part.length;
            add_words(in_windows, first, &in_parts[part.words.clone()], times);
        };
        add(&parts[at], OWN_WORDS);
        for after in [false, true] {
            let mut reach = WordWindow::new(window_words);
            let beside = (1..).map_while(|distance| part_at_distance(parts, turns, at, distance, after));
            beside.take_while(|near| reach.admits(parts[*near].length)).for_each(|near| add(&parts[near], 1));
        }
        in_windows[first..].sort_unstable();
        (first..in_windows.len(), length)
    }

    /// As [`Self::window`], in a large bank.
    fn window_of_candidate(&mut self, slot: PartSlot, (index, candidates): LargeBank<'_>) -> (Range<usize>, u32) {
        let Self { in_windows, .. } = self;
        let first = in_windows.len();
        let near = [true, false].into_iter().flat_map(|back| index.side(slot, back)).map(|near| (near, 1));
        for (near, times) in near.chain([(slot, OWN_WORDS)]) {
            add_words(in_windows, first, candidates.words_of(near), times);
        }
        in_windows[first..].sort_unstable();
        (first..in_windows.len(), index.columns().window()[slot as usize])
    }
}

impl SessionMeans {
    /// Adds a part; returns whether it is the first of its session.
    fn add(&mut self, session: u64, smooth: f64) -> bool {
        let first = self.session != Some(session);
        if first {
            self.close();
            self.session = Some(session);
        }
        let place = self.best.partition_point(|other| other.total_cmp(&smooth).is_ge());
        self.best.insert(place, smooth);
        self.best.truncate(SESSION_BEST);
        first
    }

    /// Ends the session.
    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            let missing = SESSION_BEST.saturating_sub(self.best.len());
            self.best.extend(self.rest.drain(..).take(missing));
            self.means.push((session, self.best.iter().sum::<f64>() / self.best.len().max(1) as f64));
            self.best.clear();
        }
    }

    /// The mean of a session; they are asked for in their order.
    fn mean(&mut self, session: u64) -> f64 {
        while self.means.get(self.at).is_some_and(|(other, _)| *other != session) {
            self.at += 1;
        }
        self.means.get(self.at).map_or(0.0, |(_, mean)| *mean)
    }
}

/// Adds the cosines of the sentences and of the pair; returns how many vectors were multiplied.
fn add_cosines(probe: &FamiliarityProbe, part: &mut PartScore) -> u64 {
    let w = &probe.weights;
    let own = part.indexed.vectors();
    part.cosine = best(&probe.vector, &own.sentences).unwrap_or_default();
    // A part without a turn before it has no pair, so its best sentence counts instead.
    part.pair = best(&probe.vector, &own.pair).unwrap_or(part.cosine);
    part.terms.meaning = w.meaning * probe.cosines.of(part.cosine);
    part.terms.pair = w.pair * probe.cosines.of(part.pair);
    (own.sentences.len() + own.pair.len()) as u64
}

/// The best cosine of a vector and rows; none if there is no row.
fn best(vector: &[i16], rows: &VectorRows<'_>) -> Option<f64> {
    rows.best_cosine(vector).map(Score::as_f64)
}

/// Adds the time and the features of the words.
fn add_features(probe: &FamiliarityProbe, part: &mut PartScore, present: &NameSet) {
    let (w, indexed) = (&probe.weights, &part.indexed);
    let times = if probe.asks_time { w.times_asked } else { w.times };
    let flag = |set: bool| f64::from(u8::from(set));
    if let Some(time) = &probe.time {
        let (body, at) = (&indexed.unit.body, part.key.part as usize);
        let times = time.times_of(body.part_said_at(at), indexed.events());
        (part.terms.month, part.is_in_time) = time.term(w, &times);
    }
    let marks = indexed.marks;
    // Speakers are addressed in every other turn ("Hey Ines!"), so their names do not count.
    let names = indexed.names().iter().filter(|n| !present.contains(n)).take(MAX_NAMES.into()).count();
    // A passage has many of these features, whatever it says.
    if !indexed.is_passage {
        part.terms.marks =
            times * f64::from(marks.times.min(MAX_TIMES)) - w.asks * flag(marks.asks) + w.names * names as f64;
    }
    part.own = part.terms.own_sum();
}

/// Whether the first word of a speaker's name is this one.
fn speaks(index: &CandidateIndex, name: NameKey) -> bool {
    index.speakers_named(name).any(|(_, [_, first])| first == name)
}

/// The pair cosine of the next part in the session; if that part has no pair, the cosine of its best sentence.
fn next_pair(
    probe: &FamiliarityProbe,
    parts: &[PartScore],
    turns: &[usize],
    at: usize,
    large: Option<LargeBank<'_>>,
) -> Option<f64> {
    let next = part_at_distance(parts, turns, at, 1, true).map(|next| &parts[next]);
    let Some((index, _)) = large else { return next.map(|next| next.pair) };
    let after = index.columns().near_slot(parts[at].slot).after;
    if let Some(next) = next.filter(|next| next.slot == after) {
        return Some(next.pair);
    }
    let vectors = part_after(&parts[at], index)?.vectors();
    best(&probe.vector, &vectors.pair).or_else(|| best(&probe.vector, &vectors.sentences))
}

/// The part after a candidate in its session.
fn part_after<'s>(part: &PartScore, index: &'s CandidateIndex) -> Option<&'s IndexedPart> {
    index.part(index.columns().near_slot(part.slot).after).map(Rc::as_ref)
}

/// Has the processor fetch what [`next_pair`] will read for later candidates.
fn fetch_next_pairs(parts: &[PartScore], at: usize, index: &CandidateIndex) {
    if let Some(part) = parts.get(at + 3 * AHEAD) {
        index.prefetch_part(index.columns().near_slot(part.slot).after);
    }
    if let Some(next) = parts.get(at + 2 * AHEAD).and_then(|part| part_after(part, index)) {
        kernel::fetch_ahead(from_ref(next));
    }
    if let Some(next) = parts.get(at + AHEAD).and_then(|part| part_after(part, index)) {
        next.vectors().pair.fetch_ahead();
    }
}

/// A share of the better neighbour's score, at a distance of one turn and of two.
fn neighbour_share(
    probe: &FamiliarityProbe,
    parts: &[PartScore],
    turns: &[usize],
    at: usize,
    large: Option<LargeBank<'_>>,
) -> f64 {
    let shares = [probe.weights.next_turn, probe.weights.second_turn];
    let sides = |distance: usize| {
        [false, true].into_iter().filter_map(move |after| part_at_distance(parts, turns, at, distance, after))
    };
    let better = match large {
        None => [1, 2].map(|distance| sides(distance).map(|near| parts[near].own).reduce(f64::max)),
        Some((index, candidates)) => {
            let near = index.columns().near_slot(parts[at].slot);
            // A candidate that is within two turns is among the two nearest candidates on its side that are turns.
            let own = |slot: PartSlot| {
                let scored = [1, 2].into_iter().flat_map(sides).find(|near| parts[*near].slot == slot);
                scored.map(|near| parts[near].own).or_else(|| candidates.estimate(slot))
            };
            let better = |sides: [PartSlot; 2]| sides.into_iter().filter_map(own).reduce(f64::max);
            [better([near.before, near.after]), better([near.second_before, near.second_after])]
        }
    };
    shares.iter().zip(better).map(|(share, own)| share * own.unwrap_or(0.0)).sum()
}

/// The part at a distance before or after another in its session. Only turns that are not split into passages are
/// counted; a passage has no such part.
fn part_at_distance(parts: &[PartScore], turns: &[usize], at: usize, distance: usize, after: bool) -> Option<usize> {
    let part = &parts[at];
    let place = if after { part.place.checked_add(distance) } else { part.place.checked_sub(distance) };
    let near = *turns.get(place.filter(|_| !part.indexed.is_passage)?)?;
    (parts[near].key.session == part.key.session).then_some(near)
}

//! The first estimate of the score of every part of a large bank.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's candidate index.
//! Out: for each part, an estimate of its own familiarity; the best parts by this estimate and by their words; and the
//! best parts of each session. The code of a centroid stands for all vectors of a part. The words of two turns on
//! either side stand for its window, and each turn counts as if it alone held the word. So a part costs little more
//! than reading the 48 bytes of its code. All results are a function of the set of parts; the work can pause at every
//! step.

use std::ops::Range;

use super::{
    best_slots::{BestSlots, NO_SCORE, greatest},
    candidate_index::{CandidateIndex, OWN_WORDS},
    indexed_part::{IndexedPart, NONE, PartSlot},
    part_columns::{ASKS, LIVE, PASSAGE, SessionNeighbours, names, times},
    query_terms::QueryTerms,
    scratch_buffers::{ScratchBuffers, refill_buffer},
    session_best_slots::SessionBestSlots,
};
use crate::index::{
    lexical::{bm25, term_analyzer::TermKey},
    probes::ProbedTime,
    vectors::{
        kernel::{self, BLOCK_ROWS, CodeTable},
        vector_codes::CodeCosines,
    },
    work_budget::{COUNTED_POSTING, ESTIMATED_BLOCK, SCANNED_BLOCK, WorkBudget},
};
use types::config::FamiliarityWeights;

/// The maximum number of postings that are counted for the question's words. The rarest words come first; words that no
/// longer fit add nothing here.
const MAX_POSTINGS: usize = 30_000;
/// How many postings' parts are looked up at once.
const POSTINGS_AT_ONCE: usize = 16;
/// The number of steps in a gain of 1. Sums of whole steps do not depend on the order of the postings.
const GAIN_STEPS: f64 = 65_536.0;
/// The number of blocks of codes that are scanned at once.
const BLOCKS_AT_ONCE: usize = 32;

/// The results of the first estimates.
#[derive(Default)]
pub(in crate::index) struct PartEstimates {
    /// The estimate of each slot; [`NO_SCORE`] if it holds no part.
    pub scores: Vec<f32>,
    /// The best parts of each session.
    pub sessions: Vec<SessionBestSlots>,
    /// The best parts, in order.
    pub best: Vec<PartSlot>,
    /// The best parts by their words alone, in order.
    pub by_words: Vec<PartSlot>,
    /// Whether a part lies in the time of the probe.
    pub holds_time: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EstimateStep {
    #[default]
    Words,
    /// The centroids of long parts beyond the first.
    MoreGists,
    /// The first centroids, and the estimates.
    Estimates,
}

/// First estimates while they are being made.
#[derive(Default)]
pub(in crate::index) struct FirstEstimate {
    step: EstimateStep,
    /// The next term or block of the step.
    at: usize,
    terms: Vec<(TermKey, f64)>,
    /// The number of postings that were counted.
    counted: usize,
    /// An approximate BM25, in steps, of the words of each part and of two turns on either side; and the greatest of
    /// these.
    words: Vec<u32>,
    most: u32,
    /// What a step of a gain is worth, once all postings are counted.
    words_worth: f32,
    /// The sums of the codes of further centroids of long parts; later, those that have not been compared with the
    /// first centroid yet.
    more_gists: Vec<(PartSlot, u16)>,
    query: Option<CentroidQuery>,
    /// What each speaker adds, if a speaker is named.
    speakers: Option<Vec<f32>>,
    /// What each byte of marks adds.
    marks: Vec<f32>,
    estimates: PartEstimates,
    best: Option<BestSlots>,
    by_words: Option<BestSlots>,
}

struct CentroidQuery {
    table: CodeTable,
    cosines: CodeCosines,
    /// The weight of a centroid, which stands for the best sentence, the pair and the next pair.
    worth: f32,
}

impl FirstEstimate {
    /// Before its first step. `by_words` says how many of the best parts by words are wanted; `terms` are the
    /// question's terms that the bank has.
    pub(in crate::index) fn new(
        asked: &QueryTerms<'_>,
        index: &CandidateIndex,
        terms: &[(TermKey, f64)],
        by_words: usize,
        scratch: &mut ScratchBuffers,
    ) -> Self {
        let (slots, w) = (index.slots(), &asked.probe.weights);
        let table = CodeTable::of_signs(&asked.probe.vector);
        let cosines = index.centroids().scale().cosines([0, 1].map(|sum| table.product(sum)));
        let share = |keys| w.speaker * asked.speakers.share(keys);
        let (scale, worth) = (asked.probe.cosines, w.meaning + w.pair + w.trio);
        let others = share([0, 0]) + worth * scale.offset;
        let mut speakers = None;
        for (number, keys) in asked.speakers.names().iter().flat_map(|name| index.speakers_named(*name)) {
            let speakers = speakers.get_or_insert_with(|| vec![0.0; index.speakers()]);
            speakers[number as usize] = (share(keys) - share([0, 0])) as f32;
        }
        let for_times = if asked.probe.asks_time { w.times_asked } else { w.times };
        let of_marks = |marks: u8| {
            let asks = f64::from(u8::from(marks & ASKS != 0));
            let features = for_times * f64::from(times(marks)) + w.names * f64::from(names(marks)) - w.asks * asks;
            others + if marks & PASSAGE == 0 { features } else { 0.0 }
        };
        // A slot without a part gets no score.
        let of_marks = |marks: u8| if marks & LIVE == 0 { NO_SCORE } else { of_marks(marks) as f32 };
        Self {
            terms: terms.to_vec(),
            words: refill_buffer(&mut scratch.words, slots, 0),
            query: Some(CentroidQuery { table, cosines, worth: (worth * scale.factor) as f32 }),
            speakers,
            marks: (0..=u8::MAX).map(of_marks).collect(),
            estimates: PartEstimates {
                scores: refill_buffer(&mut scratch.scores, 0, NO_SCORE),
                sessions: vec![SessionBestSlots::EMPTY; index.sessions()],
                ..PartEstimates::default()
            },
            best: Some(BestSlots::new(asked.wanted)),
            by_words: Some(BestSlots::positive(by_words)),
            ..Self::default()
        }
    }

    /// The buffer of the words, for the next question.
    pub(in crate::index) fn into_buffer(self) -> Vec<u32> {
        self.words
    }

    /// Works until the allowance is spent; returns the estimates once they are complete.
    pub(in crate::index) fn resume(
        &mut self,
        asked: &QueryTerms<'_>,
        index: &CandidateIndex,
        allowance: &mut WorkBudget,
    ) -> Option<PartEstimates> {
        loop {
            let end = match self.step {
                EstimateStep::Words => self.terms.len(),
                EstimateStep::MoreGists => index.centroids().more().0.blocks(),
                EstimateStep::Estimates => index.slots().div_ceil(BLOCK_ROWS),
            };
            while self.at < end {
                if allowance.is_spent() {
                    return None;
                }
                allowance.spend(self.run_piece(asked, index, end));
            }
            self.at = 0;
            self.step = match self.step {
                EstimateStep::Words => {
                    self.words_worth = asked.probe.weights.words as f32 / self.most.max(1) as f32;
                    EstimateStep::MoreGists
                }
                EstimateStep::MoreGists => {
                    // Sorted from last to first, because they are taken from the end.
                    self.more_gists.sort_unstable_by(|a, b| b.cmp(a));
                    EstimateStep::Estimates
                }
                EstimateStep::Estimates => {
                    let best = |best: &mut Option<BestSlots>| {
                        best.take().map_or_else(Vec::new, |best| best.finish(|slot| index.key(slot)))
                    };
                    (self.estimates.best, self.estimates.by_words) = (best(&mut self.best), best(&mut self.by_words));
                    return Some(std::mem::take(&mut self.estimates));
                }
            };
        }
    }

    /// Does a piece of the step; returns how much work that was.
    fn run_piece(&mut self, asked: &QueryTerms<'_>, index: &CandidateIndex, end: usize) -> u64 {
        if self.step == EstimateStep::Words {
            let postings = self.count_term(index);
            self.at += 1;
            return COUNTED_POSTING * postings as u64;
        }
        let blocks = self.at..end.min(self.at + BLOCKS_AT_ONCE);
        let count = blocks.len() as u64;
        self.at = blocks.end;
        if self.step == EstimateStep::MoreGists {
            self.scan_more_centroids(index, blocks);
            return SCANNED_BLOCK * count;
        }
        blocks.for_each(|block| self.estimate(asked, index, block));
        ESTIMATED_BLOCK * count
    }

    /// Adds the gains of one term in the parts that hold it; returns how many these are.
    fn count_term(&mut self, index: &CandidateIndex) -> usize {
        let (term, worth) = self.terms[self.at];
        let Some(stem) = index.stems().get(term) else { return 0 };
        let postings = stem.parts.len();
        if self.counted > 0 && self.counted + postings > MAX_POSTINGS {
            return 0;
        }
        self.counted += postings;
        // As in a window of mean length that holds the word only here.
        let damping = bm25::damping(1.0, 1.0);
        let gain = |count: u32| (bm25::gain(worth, f64::from(count), damping) * GAIN_STEPS) as u32;
        let (once, around) = (gain(OWN_WORDS), gain(1));
        let Self { words, most, .. } = self;
        let mut chunks = stem.parts.chunks(POSTINGS_AT_ONCE).peekable();
        while let Some(parts) = chunks.next() {
            for (slot, _) in chunks.peek().copied().unwrap_or_default() {
                index.columns().fetch_ahead(*slot);
                kernel::fetch_ahead(words.get(*slot as usize..=*slot as usize).unwrap_or_default());
            }
            // They are scattered over the memory, and fetching many at once takes no longer than fetching one.
            let mut near = [SessionNeighbours::NOTHING; POSTINGS_AT_ONCE];
            near.iter_mut().zip(parts).for_each(|(near, (slot, _))| *near = index.columns().near_slot(*slot));
            for ((slot, count), SessionNeighbours { before, after, second_before, second_after }) in
                parts.iter().zip(near)
            {
                let own = if *count == 1 { once } else { gain(OWN_WORDS * u32::from(*count)) };
                let near = [second_before, before, after, second_after].map(|near| (near, around));
                for (slot, gain) in near.into_iter().chain([(*slot, own)]) {
                    // Beyond the ends of a session there are no valid slots.
                    if let Some(words) = words.get_mut(slot as usize) {
                        *words = words.saturating_add(gain);
                        *most = (*most).max(*words);
                    }
                }
            }
        }
        postings
    }

    fn scan_more_centroids(&mut self, index: &CandidateIndex, blocks: Range<usize>) {
        let Some(CentroidQuery { table, .. }) = &self.query else { return };
        let (codes, slots) = index.centroids().more();
        for block in blocks {
            let of_slots = slots.iter().copied().skip(block * BLOCK_ROWS).zip(codes.sums(table, block));
            self.more_gists.extend(of_slots.filter(|(slot, _)| *slot != NONE));
        }
    }

    /// The estimates of the slots of a block.
    fn estimate(&mut self, asked: &QueryTerms<'_>, index: &CandidateIndex, block: usize) {
        let (Some(CentroidQuery { table, cosines, worth }), Some(best)) = (&self.query, &mut self.best) else { return };
        let PartEstimates { scores, sessions, holds_time, .. } = &mut self.estimates;
        let Some(by_words) = &mut self.by_words else { return };
        let slots = block * BLOCK_ROWS..index.slots().min((block + 1) * BLOCK_ROWS);
        let mut sums = index.centroids().first().sums(table, block);
        while let Some((slot, sum)) = self.more_gists.pop_if(|(slot, _)| (*slot as usize) < slots.end) {
            let of_slot = &mut sums[slot as usize - slots.start];
            *of_slot = sum.max(*of_slot);
        }
        let (w, columns) = (&asked.probe.weights, index.columns());
        let (words, marks) = (&self.words[slots.clone()], &columns.marks()[slots.clone()]);
        let mut estimates = [NO_SCORE; BLOCK_ROWS];
        let estimates = &mut estimates[..slots.len()];
        for ((estimate, sum), words) in estimates.iter_mut().zip(sums).zip(words) {
            *estimate = worth * cosines.of(sum) + self.words_worth * *words as f32;
        }
        for (estimate, marks) in estimates.iter_mut().zip(marks) {
            *estimate += self.marks[usize::from(*marks)];
        }
        if let Some(speakers) = &self.speakers {
            for (estimate, speaker) in estimates.iter_mut().zip(&columns.speaker()[slots.clone()]) {
                *estimate += speakers.get(*speaker as usize).copied().unwrap_or_default();
            }
        }
        // What may not be chosen keeps its estimate, since it still lends a share of it to the parts around it.
        let without = |scores: &mut [f32]| {
            if asked.matching.is_some() {
                let passed = scores.iter_mut().zip(slots.clone());
                passed.filter(|(_, slot)| !asked.takes(*slot as PartSlot)).for_each(|(score, _)| *score = NO_SCORE);
            }
        };
        match &asked.probe.time {
            None if asked.matching.is_none() => best.add_all(estimates, slots.start),
            None => {
                let mut ranked = [NO_SCORE; BLOCK_ROWS];
                let ranked = &mut ranked[..estimates.len()];
                ranked.copy_from_slice(estimates);
                without(ranked);
                best.add_all(ranked, slots.start);
            }
            Some(time) => {
                let in_time = add_time(time, w, index, slots.clone(), estimates);
                *holds_time |= slots.clone().zip(in_time).any(|(slot, is_in)| is_in && asked.takes(slot as PartSlot));
                // Parts of the time come first, but lend no more to the parts around them.
                let chosen = time.chosen(w) as f32;
                let mut ranked = [NO_SCORE; BLOCK_ROWS];
                for (ranked, (estimate, in_time)) in ranked.iter_mut().zip(estimates.iter().zip(in_time)) {
                    *ranked = estimate + if in_time { chosen } else { 0.0 };
                }
                let ranked = &mut ranked[..estimates.len()];
                without(ranked);
                best.add_all(ranked, slots.start);
            }
        }
        let mut of_words = [0.0; BLOCK_ROWS];
        let of_words = &mut of_words[..slots.len()];
        of_words.iter_mut().zip(words).for_each(|(score, words)| *score = *words as f32);
        without(of_words);
        by_words.add_all(of_words, slots.start);
        let of_slots = &columns.session()[slots.clone()];
        let first = of_slots.first().copied().unwrap_or_default();
        let others = of_slots.iter().fold(0, |others, session| others | (session ^ first));
        // Most blocks are in a single session, and contain none of its best parts.
        if others > 0 || greatest(estimates) >= sessions[first as usize].least() {
            let key = |slot: PartSlot| index.key(slot);
            for ((estimate, session), slot) in estimates.iter().zip(of_slots).zip(slots) {
                sessions[*session as usize].insert(*estimate, slot as PartSlot, key);
            }
        }
        scores.extend_from_slice(estimates);
    }
}

/// Adds what the time of a question adds to the estimates of some slots; returns which of their parts lie in the time.
/// The columns have the days on which parts were said; where the day alone does not decide, the part does.
fn add_time(
    time: &ProbedTime,
    weights: &FamiliarityWeights,
    index: &CandidateIndex,
    slots: Range<usize>,
    estimates: &mut [f32],
) -> [bool; BLOCK_ROWS] {
    let (days, months) = (index.columns().day(), index.columns().month());
    let of_part = |part: &IndexedPart| {
        let said_at = part.unit.body.part_said_at(part.key().part as usize);
        time.term(weights, &time.times_of(said_at, part.events()))
    };
    let of_slot = |slot: usize| {
        let month = (months[slot].rem_euclid(12) + 1) as i8;
        match time.term_of_day(weights, i64::from(days[slot]), month) {
            Some(found) => found,
            None => index.part(slot as PartSlot).map_or((0.0, false), |part| of_part(part)),
        }
    };
    let mut in_time = [false; BLOCK_ROWS];
    let mut terms = [0.0; BLOCK_ROWS];
    for (at, slot) in slots.clone().enumerate().filter(|(at, _)| estimates[*at] > NO_SCORE) {
        (terms[at], in_time[at]) = of_slot(slot);
    }
    for (slot, part) in index.with_events(slots.clone()).filter(|_| !time.of_saying) {
        let at = slot as usize - slots.start;
        (terms[at], in_time[at]) = of_part(part);
    }
    estimates.iter_mut().zip(terms).for_each(|(estimate, term)| *estimate += term as f32);
    in_time
}

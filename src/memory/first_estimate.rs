//! The first estimate of the score of every part of a large bank.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's
//! candidate index. Out: for each part an estimate of its familiarity alone, and the slots that deserve a
//! better one: the best, and the neighbours of the very best. The code of a gist stands for all vectors of a
//! part, and the words of the part itself for its window. So a part costs little more than the 48 bytes of
//! its code. A function of the set of parts; the work can pause at every step.

use std::ops::Range;

use super::{
    asked::{Asked, told},
    best_slots::{BestSlots, NO_SCORE},
    bm25,
    candidate_index::{CandidateIndex, OWN_WORDS, month},
    codes::Cosines,
    indexed_part::Slot,
    kernel::{BLOCK_ROWS, CodeTable},
    part_columns::{ASKS, LIVE, Near, names, times},
    session_best::SessionBest,
    words::TermKey,
    work::{Allowance, COUNTED_POSTING, ROUGH_PART, SCANNED_BLOCK},
};

/// The best by this estimate, which get a better one.
const REFINED: usize = 2_048;
/// The very best, whose neighbours get a better one, too: a share of theirs is added to them.
const WITH_NEIGHBOURS: usize = 1_024;
/// The best by their words alone, with their neighbours: the best window by words sets what words are worth.
const BY_WORDS: usize = 128;
/// Most postings that are counted for the question's words. The rarest words come first; those that no
/// longer fit add nothing here.
const MOST_POSTINGS: usize = 30_000;
/// Slots of a step.
const SLOTS_AT_ONCE: usize = 2_048;
/// Blocks of codes of a step.
const BLOCKS_AT_ONCE: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    #[default]
    Words,
    Gists,
    Scores,
}

/// First estimates on their way.
#[derive(Default)]
pub(super) struct FirstEstimate {
    step: Step,
    /// The next term, block or slot of the step.
    at: usize,
    terms: Vec<(TermKey, f64)>,
    /// Postings that were counted.
    counted: usize,
    /// BM25 of the words of each part alone, and the greatest.
    words: Vec<f32>,
    most: f32,
    /// What a gain is worth, once all are counted.
    words_worth: f32,
    /// The greatest sum of the codes of the gists of each part.
    gists: Vec<u16>,
    query: Option<Query>,
    /// The share of each speaker.
    speakers: Vec<f32>,
    /// What each byte of marks adds.
    marks: Vec<f32>,
    scores: Vec<f32>,
    best: Option<BestSlots>,
    by_words: Option<BestSlots>,
    /// The best parts of each session.
    sessions: Vec<SessionBest>,
}

struct Query {
    table: CodeTable,
    cosines: Cosines,
    /// What a gist weighs: it stands for the best sentence, the pair, and the next pair.
    worth: f32,
}

impl FirstEstimate {
    /// Before its first step.
    pub(super) fn new(asked: &Asked<'_>, index: &CandidateIndex) -> Self {
        let (slots, w) = (index.slots(), &asked.probe.weights);
        let table = CodeTable::of_signs(&asked.probe.vector);
        let [gists, ..] = index.scales();
        let cosines = gists.cosines([0, 1].map(|sum| table.product(sum)));
        // Without a named speaker everyone has the same share.
        let share = |keys| (w.speaker * asked.speakers.share(keys)) as f32;
        let mut speakers = vec![share([0, 0]); index.speakers()];
        for (number, keys) in asked.speakers.names().iter().flat_map(|name| index.speakers_named(*name)) {
            speakers[number as usize] = share(keys);
        }
        let for_times = if asked.probe.asks_time { w.times_asked } else { w.times };
        let of_marks = |marks: u8| {
            let asks = f64::from(u8::from(marks & ASKS != 0));
            for_times * f64::from(times(marks)) + w.names * f64::from(names(marks)) - w.asks * asks
        };
        // What holds no part gets no score.
        let of_marks = |marks: u8| if marks & LIVE == 0 { NO_SCORE } else { of_marks(marks) as f32 };
        Self {
            terms: asked.words.rated(),
            words: vec![0.0; slots],
            gists: vec![0; slots],
            query: Some(Query { table, cosines, worth: (w.meaning + w.pair + w.trio) as f32 }),
            speakers,
            marks: (0..=u8::MAX).map(of_marks).collect(),
            scores: vec![NO_SCORE; slots],
            best: Some(BestSlots::new(REFINED)),
            by_words: Some(BestSlots::positive(BY_WORDS)),
            sessions: vec![SessionBest::EMPTY; index.sessions()],
            ..Self::default()
        }
    }

    /// Goes on until the work is spent; then the slots that deserve a better estimate.
    pub(super) fn go_on(
        &mut self,
        asked: &Asked<'_>,
        index: &CandidateIndex,
        allowance: &mut Allowance,
    ) -> Option<Vec<Slot>> {
        loop {
            let end = match self.step {
                Step::Words => self.terms.len(),
                Step::Gists => index.gists().0.blocks(),
                Step::Scores => index.slots(),
            };
            while self.at < end {
                if allowance.is_spent() {
                    return None;
                }
                allowance.spend(self.one(asked, index, end));
            }
            self.at = 0;
            self.step = match self.step {
                Step::Words => {
                    self.words_worth = if self.most > 0.0 { asked.probe.weights.words as f32 / self.most } else { 0.0 };
                    Step::Gists
                }
                Step::Gists => Step::Scores,
                Step::Scores => return Some(self.refined(index)),
            };
        }
    }

    /// What of a part's estimate a better one replaces: its gist and its words.
    pub(super) fn estimated(&self, slot: Slot) -> f32 {
        let at = slot as usize;
        self.of_gist(self.gists[at]) + self.words_worth * self.words[at]
    }

    /// The estimates by slot.
    pub(super) fn take_scores(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.scores)
    }

    /// The best parts of each session by these.
    pub(super) fn take_sessions(&mut self) -> Vec<SessionBest> {
        std::mem::take(&mut self.sessions)
    }

    /// Some of the step; returns the work.
    fn one(&mut self, asked: &Asked<'_>, index: &CandidateIndex, end: usize) -> u64 {
        match self.step {
            Step::Words => {
                let postings = self.count_term(index);
                self.at += 1;
                COUNTED_POSTING * postings as u64
            }
            Step::Gists => {
                let blocks = self.at..end.min(self.at + BLOCKS_AT_ONCE);
                let work = SCANNED_BLOCK * blocks.len() as u64;
                self.at = blocks.end;
                self.scan_gists(index, blocks);
                work
            }
            Step::Scores => {
                let slots = self.at..end.min(self.at + SLOTS_AT_ONCE);
                let work = ROUGH_PART * slots.len() as u64;
                self.at = slots.end;
                self.score(asked, index, slots);
                work
            }
        }
    }

    /// Adds the gains of one term in the parts that hold it; returns how many these are.
    fn count_term(&mut self, index: &CandidateIndex) -> usize {
        let (term, worth) = self.terms[self.at];
        let Some(stem) = index.stems().get(term) else { return 0 };
        let postings = stem.parts.len();
        if self.counted > 0 && self.counted + postings > MOST_POSTINGS {
            return 0;
        }
        self.counted += postings;
        // As in a window of mean length that holds the word here alone.
        let damping = bm25::damping(1.0, 1.0);
        let gain = |count: u16| bm25::gain(worth, f64::from(OWN_WORDS) * f64::from(count), damping) as f32;
        let once = gain(1);
        for (slot, count) in &stem.parts {
            let words = &mut self.words[*slot as usize];
            *words += if *count == 1 { once } else { gain(*count) };
            self.most = self.most.max(*words);
        }
        postings
    }

    fn scan_gists(&mut self, index: &CandidateIndex, blocks: Range<usize>) {
        let Some(Query { table, .. }) = &self.query else { return };
        let (codes, slots) = index.gists();
        let mut sums = [0; BLOCK_ROWS];
        for block in blocks {
            codes.scan(table, block, &mut sums);
            for (slot, sum) in slots.iter().skip(block * BLOCK_ROWS).zip(sums) {
                if let Some(best) = self.gists.get_mut(*slot as usize) {
                    *best = sum.max(*best);
                }
            }
        }
    }

    fn of_gist(&self, sum: u16) -> f32 {
        self.query.as_ref().map_or(0.0, |query| query.worth * query.cosines.of(sum))
    }

    fn score(&mut self, asked: &Asked<'_>, index: &CandidateIndex, slots: Range<usize>) {
        let (Some(Query { cosines, worth, .. }), Some(best)) = (&self.query, &mut self.best) else { return };
        let Some(by_words) = &mut self.by_words else { return };
        let (w, columns) = (&asked.probe.weights, index.columns());
        let marks = &columns.marks()[slots.clone()];
        let scores = &mut self.scores[slots.clone()];
        let sums = self.gists[slots.clone()].iter().zip(&self.words[slots.clone()]);
        for (score, (sum, words)) in scores.iter_mut().zip(sums) {
            *score = worth * cosines.of(*sum) + self.words_worth * words;
        }
        let known = columns.speaker()[slots.clone()].iter().zip(marks);
        for (score, (speaker, marks)) in scores.iter_mut().zip(known) {
            let speaker = self.speakers.get(*speaker as usize).copied().unwrap_or_default();
            *score += speaker + self.marks[usize::from(*marks)];
        }
        if !asked.probe.months.is_empty() {
            let said_in = |at: i32| {
                let named = |(year, named): &(Option<i16>, i8)| match year {
                    Some(year) => at == month(*year, *named),
                    None => at.rem_euclid(12) + 1 == i32::from(*named),
                };
                asked.probe.months.iter().any(named)
            };
            for (score, at) in scores.iter_mut().zip(&columns.month()[slots.clone()]) {
                *score += if said_in(*at) { w.month as f32 } else { 0.0 };
            }
        }
        if !asked.probe.days.is_empty() {
            for (score, at) in scores.iter_mut().zip(&columns.day()[slots.clone()]) {
                *score += (w.day * told(&asked.probe.days, (*at).into())) as f32;
            }
        }
        best.add_live(scores, marks, slots.start);
        by_words.add_live(&self.words[slots.clone()], marks, slots.start);
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        for ((score, session), slot) in scores.iter().zip(&columns.session()[slots.clone()]).zip(slots) {
            self.sessions[*session as usize].enter(*score, slot as Slot, key);
        }
    }

    /// The best, and the neighbours of the very best.
    fn refined(&mut self, index: &CandidateIndex) -> Vec<Slot> {
        let (Some(best), Some(by_words)) = (self.best.take(), self.by_words.take()) else { return Vec::new() };
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        let (best, by_words) = (best.finish(key), by_words.finish(key));
        let near = best.iter().take(WITH_NEIGHBOURS).chain(&by_words).flat_map(|slot| {
            let Near { before, after, second_before, second_after } = index.columns().near_slot(*slot);
            [second_before, before, after, second_after]
        });
        let mut refined: Vec<Slot> = near.chain(best.iter().chain(&by_words).copied()).collect();
        refined.sort_unstable();
        refined.dedup();
        // What lies beyond a session is no slot.
        refined.retain(|slot| index.place(*slot).is_some());
        refined
    }
}

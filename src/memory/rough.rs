//! Rough scores of the parts of a large bank, and the parts that deserve the full score.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's
//! candidate index. Out: the candidates, in the order of the bank, with the parts around them, which are
//! only read for context, and the question's words in all of these. A rough score is the familiarity
//! with estimates in place of cosines. Every part has a [first estimate](FirstEstimate). The best by that,
//! and the neighbours of the very best, get a second one: from a code of signs for each vector, and with BM25
//! over their windows. Everything but the estimates has the meaning that `familiarity` gives it. Ties are broken by
//! the order of the bank, so the candidates are a function of the set of parts. The work can pause at
//! every step.

use std::ops::Range;

use super::{
    asked::{Asked, AskedWord, add_words},
    best_slots::{BestSlots, NO_SCORE},
    candidate_index::{CandidateIndex, OWN_WORDS},
    codes::Cosines,
    first_estimate::FirstEstimate,
    found_words::FoundWords,
    indexed_part::{PartKey, Slot},
    kernel::SignQuery,
    part_columns::PAIR,
    session_best::SessionBest,
    words::TermKey,
    work::{Allowance, READ_POSTING, REFINED_PART},
};
use crate::model::UnitId;

/// Candidates of each single channel: the best by sentence, by pair and by words.
const OF_A_CHANNEL: usize = 64;
/// Parts of a step.
const PARTS_AT_ONCE: usize = 256;
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
    /// The first estimate of every part.
    First,
    /// The words of the windows of those that are refined.
    FindNear,
    /// BM25 of these windows.
    Windows,
    /// The second estimate of each alone.
    Refine,
    /// The pair of the next part.
    Next,
    /// The shares of the neighbours.
    Around,
    /// The share of the session.
    Rank,
    /// The words of the chosen, and of the parts around them.
    Find,
}

/// Rough scores on their way.
#[derive(Default)]
pub(super) struct RoughScan {
    step: Step,
    /// The next term or part of the step.
    at: usize,
    terms: Vec<(TermKey, f64)>,
    first: FirstEstimate,
    query: Option<Query>,
    /// The slots with a second estimate.
    refined: Vec<Slot>,
    /// BM25 of the window of each of these, and the greatest.
    windows: Vec<f32>,
    most: f32,
    /// The score without the shares of neighbours and session, by slot.
    own: Vec<f32>,
    /// Of the refined the cosine of the pair, then the score with the shares of the neighbours, by slot.
    smooth: Vec<f32>,
    /// The best parts of each session.
    sessions: Vec<SessionBest>,
    /// What each session adds to its parts.
    session_shares: Vec<f32>,
    best: Option<Channels>,
    chosen: Vec<bool>,
    /// The parts that the full score reads.
    parts: Vec<ChosenPart>,
    /// The words of the refined, then of the chosen, with those of the parts around them.
    found: FoundWords,
}

struct Query {
    signs: SignQuery,
    sentences: Cosines,
    pairs: Cosines,
}

struct Channels {
    all: BestSlots,
    meaning: BestSlots,
    pair: BestSlots,
    words: BestSlots,
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
            if self.step == Step::First {
                self.refined = self.first.go_on(asked, index, allowance)?;
            }
            let end = match self.step {
                Step::Start | Step::First => 0,
                Step::FindNear | Step::Find => self.terms.len(),
                Step::Windows | Step::Refine | Step::Next | Step::Around | Step::Rank => self.refined.len(),
            };
            while self.at < end {
                if allowance.is_spent() {
                    return None;
                }
                allowance.spend(self.one(asked, index, end));
            }
            self.at = 0;
            self.step = match self.step {
                Step::Start => {
                    self.terms = asked.words.rated();
                    self.first = FirstEstimate::new(asked, index);
                    Step::First
                }
                Step::First => {
                    self.prepare(asked, index);
                    Step::FindNear
                }
                Step::FindNear => {
                    self.found.group();
                    Step::Windows
                }
                Step::Windows => Step::Refine,
                Step::Refine => Step::Next,
                Step::Next => Step::Around,
                Step::Around => {
                    self.add_unrefined(index);
                    self.session_shares = self.sessions.iter().map(|best| best.share(asked.probe)).collect();
                    Step::Rank
                }
                Step::Rank => {
                    self.choose(asked, index, linked);
                    Step::Find
                }
                Step::Find => return Some(self.finish()),
            };
        }
    }

    /// The rough scores of a session's best parts that are not candidates.
    pub(super) fn rest_of_session(&self, session: u32) -> impl Iterator<Item = f64> {
        let best = self.sessions.get(session as usize).into_iter().flat_map(SessionBest::parts);
        best.filter(|(_, slot)| !self.chosen[*slot as usize]).map(|(score, _)| f64::from(score))
    }

    /// Some of the step; returns the work.
    fn one(&mut self, asked: &Asked<'_>, index: &CandidateIndex, end: usize) -> u64 {
        if matches!(self.step, Step::FindNear | Step::Find) {
            let term = self.terms[self.at].0;
            self.at += 1;
            let (Some(word), Some(stem)) = (asked.words.place_of(term), index.stems().get(term)) else { return 0 };
            self.found.find(word, &stem.parts);
            return READ_POSTING * stem.parts.len() as u64;
        }
        let refined = self.at..end.min(self.at + PARTS_AT_ONCE);
        let work = REFINED_PART * refined.len() as u64;
        self.at = refined.end;
        match self.step {
            Step::Windows => self.windows(asked, index, refined),
            Step::Refine => self.refine(asked, index, refined),
            Step::Next => self.next(asked, index, refined),
            Step::Around => self.around(asked, index, refined),
            _ => self.rank(index, refined),
        }
        work
    }

    fn prepare(&mut self, asked: &Asked<'_>, index: &CandidateIndex) {
        let slots = index.slots();
        let signs = SignQuery::of(&asked.probe.vector);
        let [_, sentences, pairs] = index.scales().map(|scale| scale.cosines([0, 1].map(|sum| signs.product(sum))));
        self.query = Some(Query { signs, sentences, pairs });
        self.own = self.first.take_scores();
        self.smooth = vec![NO_SCORE; slots];
        self.sessions = vec![SessionBest::EMPTY; index.sessions()];
        self.chosen = vec![false; slots];
        self.best = Some(Channels {
            all: BestSlots::new(asked.wanted),
            meaning: BestSlots::new(OF_A_CHANNEL),
            pair: BestSlots::new(OF_A_CHANNEL),
            words: BestSlots::new(OF_A_CHANNEL),
        });
        self.found = FoundWords::new(slots);
        for slot in self.refined.iter().copied() {
            let window = [true, false].into_iter().flat_map(|back| index.side(slot, back));
            window.chain([slot]).for_each(|near| {
                self.found.list(near);
            });
        }
    }

    /// BM25 of the windows.
    fn windows(&mut self, asked: &Asked<'_>, index: &CandidateIndex, refined: Range<usize>) {
        let Some(channels) = &mut self.best else { return };
        let mut counts: Vec<AskedWord> = Vec::new();
        for slot in self.refined[refined].iter().copied() {
            counts.clear();
            let near = [true, false].into_iter().flat_map(|back| index.side(slot, back)).map(|near| (near, 1));
            for (near, times) in near.chain([(slot, OWN_WORDS)]) {
                add_words(&mut counts, 0, self.found.of(near), times);
            }
            let gain = asked.words.window_gain(&counts, index.columns().window()[slot as usize]) as f32;
            self.windows.push(gain);
            if gain > 0.0 {
                channels.words.add(gain, slot);
                self.most = self.most.max(gain);
            }
        }
    }

    /// The second estimate of the score of each part alone, but for the pair of the next one.
    fn refine(&mut self, asked: &Asked<'_>, index: &CandidateIndex, refined: Range<usize>) {
        let (Some(query), Some(channels)) = (&self.query, &mut self.best) else { return };
        let w = &asked.probe.weights;
        let [meaning, pair, trio] = [w.meaning, w.pair, w.trio].map(|weight| weight as f32);
        let words = if self.most > 0.0 { w.words as f32 / self.most } else { 0.0 };
        for (slot, gain) in self.refined[refined.clone()].iter().zip(&self.windows[refined]) {
            let at = *slot as usize;
            let (mut of_pair, mut of_sentence) = (None, None);
            let mut is_pair = index.columns().marks()[at] & PAIR != 0;
            query.signs.scan(index.codes(*slot), &mut |sum| {
                let best = if std::mem::take(&mut is_pair) { &mut of_pair } else { &mut of_sentence };
                *best = (*best).max(Some(sum));
            });
            let sentence = query.sentences.of(of_sentence.unwrap_or_default());
            let of_pair = of_pair.map_or(sentence, |sum| query.pairs.of(sum));
            self.own[at] +=
                meaning * sentence + (pair + trio / 2.0) * of_pair + words * gain - self.first.estimated(*slot);
            self.smooth[at] = of_pair;
            channels.meaning.add(sentence, *slot);
            channels.pair.add(of_pair, *slot);
        }
    }

    /// Adds the share of the pair of the next part.
    fn next(&mut self, asked: &Asked<'_>, index: &CandidateIndex, refined: Range<usize>) {
        let half = asked.probe.weights.trio as f32 / 2.0;
        for slot in &self.refined[refined] {
            let next = self.smooth.get(index.columns().near_slot(*slot).after as usize);
            let next = next.copied().filter(|pair| *pair > NO_SCORE);
            self.own[*slot as usize] += half * next.unwrap_or(self.smooth[*slot as usize]);
        }
    }

    /// Adds the shares of the neighbours.
    fn around(&mut self, asked: &Asked<'_>, index: &CandidateIndex, refined: Range<usize>) {
        let columns = index.columns();
        let shares = [asked.probe.weights.next_turn as f32, asked.probe.weights.second_turn as f32];
        let own = &self.own[..];
        let of = |slot: Slot| own.get(slot as usize).copied().unwrap_or(NO_SCORE);
        let best = |one: Slot, other: Slot| {
            let (one, other) = (of(one), of(other));
            let best = if one > other { one } else { other };
            if best > NO_SCORE { best } else { 0.0 }
        };
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        for slot in &self.refined[refined] {
            let (at, near) = (*slot as usize, columns.near_slot(*slot));
            let smooth = own[at]
                + shares[0] * best(near.before, near.after)
                + shares[1] * best(near.second_before, near.second_after);
            self.smooth[at] = smooth;
            self.sessions[columns.session()[at] as usize].enter(smooth, *slot, key);
        }
    }

    /// The best of each session by the first estimate count in it, too, where they have no better one.
    fn add_unrefined(&mut self, index: &CandidateIndex) {
        let key = |slot: Slot| index.place(slot).map(|place| place.key);
        for (session, first) in self.sessions.iter_mut().zip(self.first.take_sessions()) {
            for (score, slot) in first.parts().filter(|(_, slot)| self.smooth[*slot as usize] == NO_SCORE) {
                session.enter(score, slot, key);
            }
        }
    }

    fn rank(&mut self, index: &CandidateIndex, refined: Range<usize>) {
        let Some(channels) = &mut self.best else { return };
        let sessions = index.columns().session();
        for slot in &self.refined[refined] {
            let at = *slot as usize;
            let share = self.session_shares.get(sessions[at] as usize).copied().unwrap_or_default();
            channels.all.add(self.smooth[at] + share, *slot);
        }
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
        self.found = FoundWords::new(index.slots());
        let mut window = Vec::new();
        for (_, slot) in chosen {
            window.clear();
            window.extend(index.side(slot, true));
            window.reverse();
            window.push(slot);
            window.extend(index.side(slot, false));
            for near in window.iter().copied() {
                let Some(key) = key(near) else { continue };
                if !self.found.list(near) {
                    continue;
                }
                let context = (!self.chosen[near as usize]).then(|| f64::from(self.own[near as usize]));
                let before = index.columns().near_slot(near).before;
                let follows = self.parts.last().is_some_and(|last| last.slot == before);
                self.parts.push(ChosenPart { key, slot: near, follows, context, words_end: 0 });
            }
        }
    }

    /// The chosen parts, each with the words that were found in it.
    fn finish(&mut self) -> Chosen {
        self.found.group();
        let (words, ends) = std::mem::take(&mut self.found).into_words();
        let mut parts = std::mem::take(&mut self.parts);
        // They were listed in their order.
        parts.iter_mut().zip(ends).for_each(|(part, end)| part.words_end = end);
        Chosen { parts, words }
    }
}

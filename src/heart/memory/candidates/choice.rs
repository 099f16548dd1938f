//! The parts of a large bank that deserve the full score.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's candidate index.
//! Out: the candidates, in the order of the bank; the words of the question in them and in the parts around them; and
//! the [first estimate](FirstEstimate) of every other part. Candidates are the best parts by that estimate, the best
//! parts by their words alone, the neighbours of the very best, and the parts that the edges of the best units lead to.
//! Ties are broken by the order of the bank, so the candidates are a function of the set of parts. The work can pause
//! at every step.

use super::{
    asked::{Asked, AskedWord},
    best_slots::NO_SCORE,
    candidate_index::CandidateIndex,
    first_estimate::{Estimates, FirstEstimate},
    found_words::FoundWords,
    indexed_part::{PartKey, Slot},
    part_columns::Near,
    scratch::Scratch,
    session_best::SessionBest,
    slot_set::SlotSet,
};
use crate::memory::{
    lexical::words::TermKey,
    work::{Allowance, CHOSEN_PART, READ_POSTING},
};
use nouns::model::UnitId;

/// The maximum number of parts above the zero of the scale. So at least this many of the best candidates stay when
/// edges add others.
pub const SCALE_PARTS: usize = 1_000;
/// The neighbours of the best eighth of the candidates are candidates, too.
const BEST_TO_VERY_BEST: usize = 8;
/// For every 8 candidates by the estimate, there is one by words alone. The best window by words sets the scale of the
/// term for words.
const BEST_TO_BY_WORDS: usize = 8;
/// How many candidates ahead the parts around a candidate are prefetched, because they are scattered over the memory.
const LISTED_AHEAD: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    #[default]
    Start,
    /// The first estimate of every part.
    Estimate,
    /// The words of the candidates, and of the parts around them.
    Find,
    /// The candidates are chosen.
    Done,
}

/// The candidates, while they are being chosen and afterwards.
#[derive(Default)]
pub(in crate::memory) struct Candidates {
    step: Step,
    terms: Vec<(TermKey, f64)>,
    /// The next of these terms.
    at: usize,
    first: FirstEstimate,
    estimates: Estimates,
    scratch: Scratch,
    is_candidate: SlotSet,
    candidates: Vec<(PartKey, Slot)>,
    found: FoundWords,
}

impl Candidates {
    /// Goes on until the allowance is spent; returns whether the candidates are chosen. `linked` returns the parts of
    /// the units that a unit's edges lead to.
    pub(in crate::memory) fn go_on(
        &mut self,
        asked: &Asked<'_>,
        index: &CandidateIndex,
        linked: &dyn Fn(UnitId) -> Vec<Slot>,
        allowance: &mut Allowance,
    ) -> bool {
        loop {
            match self.step {
                Step::Start => {
                    self.terms = asked.words.rated();
                    self.scratch = index.take_scratch();
                    let by_words = asked.wanted / BEST_TO_BY_WORDS;
                    self.first = FirstEstimate::new(asked, index, &self.terms, by_words, &mut self.scratch);
                    self.step = Step::Estimate;
                }
                Step::Estimate => {
                    let Some(estimates) = self.first.go_on(asked, index, allowance) else { return false };
                    self.estimates = estimates;
                    self.choose(asked, index, linked);
                    allowance.spend(CHOSEN_PART * self.candidates.len() as u64);
                    self.step = Step::Find;
                }
                Step::Find => {
                    while let Some((term, _)) = self.terms.get(self.at) {
                        if allowance.is_spent() {
                            return false;
                        }
                        if let (Some(word), Some(stem)) = (asked.words.place_of(*term), index.stems().get(*term)) {
                            self.found.find(word, &stem.parts);
                            allowance.spend(READ_POSTING * stem.parts.len() as u64);
                        }
                        self.at += 1;
                    }
                    self.found.group();
                    self.step = Step::Done;
                }
                Step::Done => return true,
            }
        }
    }

    /// The buffers for the next question, once this one no longer needs them.
    pub(in crate::memory) fn into_scratch(self) -> Scratch {
        Scratch {
            words: self.first.into_room(),
            scores: self.estimates.scores,
            candidates: self.is_candidate,
            listed: self.found.into_room(),
        }
    }

    /// The candidates, in the order of the bank.
    pub(in crate::memory) fn all(&self) -> &[(PartKey, Slot)] {
        &self.candidates
    }

    /// The words of the question in a candidate, or in a part that counts with a candidate.
    pub(in crate::memory) fn words_of(&self, slot: Slot) -> &[AskedWord] {
        self.found.of(slot)
    }

    /// The first estimate of a part; none for an empty slot.
    pub(in crate::memory) fn estimate(&self, slot: Slot) -> Option<f64> {
        let estimate = self.estimates.scores.get(slot as usize).copied();
        estimate.filter(|estimate| *estimate > NO_SCORE).map(f64::from)
    }

    /// The first estimates of a session's best parts that are not candidates, best first.
    pub(in crate::memory) fn rest_of_session(&self, session: u32) -> impl Iterator<Item = f64> {
        let best = self.estimates.sessions.get(session as usize).into_iter().flat_map(SessionBest::parts);
        best.filter(|(_, slot)| !self.is_candidate.contains(*slot)).map(|(score, _)| f64::from(score))
    }

    fn choose(&mut self, asked: &Asked<'_>, index: &CandidateIndex, linked: &dyn Fn(UnitId) -> Vec<Slot>) {
        let (best, by_words) = (std::mem::take(&mut self.estimates.best), std::mem::take(&mut self.estimates.by_words));
        let near = best.iter().take(asked.wanted / BEST_TO_VERY_BEST).flat_map(|slot| {
            let Near { before, after, second_before, second_after } = index.columns().near_slot(*slot);
            [second_before, before, after, second_after]
        });
        let mut anchors: Vec<UnitId> = Vec::new();
        for PartKey { unit, .. } in best.iter().filter_map(|slot| index.key(*slot)) {
            if anchors.len() == asked.probe.linked_units {
                break;
            }
            if !anchors.contains(&unit) {
                anchors.push(unit);
            }
        }
        self.is_candidate = std::mem::take(&mut self.scratch.candidates);
        self.is_candidate.clear(index.slots());
        for slot in &best {
            self.is_candidate.insert(*slot);
        }
        let linked: Vec<Slot> = anchors.into_iter().flat_map(linked).collect();
        let others = linked.iter().filter(|slot| self.is_candidate.insert(**slot)).count();
        // They replace the last of the best, so that edges add no work. If one of these is itself linked, it stays.
        let most = asked.wanted.saturating_sub(others).max(SCALE_PARTS);
        let mut chosen: Vec<Slot> =
            best.iter().take(most).chain(&by_words).copied().chain(linked).chain(near).collect();
        self.is_candidate.clear(index.slots());
        // Beyond the ends of a session there are no valid slots.
        chosen.retain(|slot| self.is_candidate.insert(*slot));
        self.candidates = index.in_order(&chosen);
        let mut listed = std::mem::take(&mut self.scratch.listed);
        listed.clear(index.slots());
        for (at, (_, slot)) in self.candidates.iter().enumerate() {
            if let Some((_, ahead)) = self.candidates.get(at + LISTED_AHEAD) {
                index.columns().fetch_ahead(*ahead);
            }
            let sides = [true, false].into_iter().flat_map(|back| index.side(*slot, back));
            for near in sides.chain([*slot]) {
                listed.insert(near);
            }
        }
        self.found = FoundWords::new(listed);
    }
}

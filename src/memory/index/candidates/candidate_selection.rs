//! The parts of a large bank that deserve the full score.
//!
//! In: a familiarity probe, its words and speakers with the counts of the whole bank, and the bank's candidate index.
//! Out: the candidates, in the order of the bank; the words of the question in them and in the parts around them; and
//! the [first estimate](FirstEstimate) of every other part. Candidates are the best parts by that estimate, the best
//! parts by their words alone, the neighbours of the very best, and the parts that the edges of the best units lead to.
//! Ties are broken by the order of the bank, so the candidates are a function of the set of parts. The work can pause
//! at every step.

use super::{
    best_slots::NO_SCORE,
    candidate_index::CandidateIndex,
    first_estimate::{FirstEstimate, PartEstimates},
    indexed_part::{PartKey, PartSlot},
    part_columns::SessionNeighbours,
    query_terms::{QueryTerms, QueryWordHit},
    scratch_buffers::ScratchBuffers,
    session_best_slots::SessionBestSlots,
    slot_set::SlotSet,
    slot_words::SlotWords,
};
use crate::index::{
    lexical::term_analyzer::TermKey,
    work_budget::{CHOSEN_PART, READ_POSTING, WorkBudget},
};
use types::model::UnitId;

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
enum SelectionStep {
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
pub(in crate::index) struct CandidateSelection {
    step: SelectionStep,
    terms: Vec<(TermKey, f64)>,
    /// The next of these terms.
    at: usize,
    first: FirstEstimate,
    estimates: PartEstimates,
    scratch: ScratchBuffers,
    is_candidate: SlotSet,
    candidates: Vec<(PartKey, PartSlot)>,
    found: SlotWords,
}

impl CandidateSelection {
    /// Works until the allowance is spent; returns whether the candidates are chosen. `linked` returns the parts of the
    /// units that a unit's edges lead to.
    pub(in crate::index) fn resume(
        &mut self,
        asked: &QueryTerms<'_>,
        index: &CandidateIndex,
        linked: &dyn Fn(UnitId) -> Vec<PartSlot>,
        allowance: &mut WorkBudget,
    ) -> bool {
        loop {
            match self.step {
                SelectionStep::Start => {
                    self.terms = asked.words.terms_by_rarity();
                    self.scratch = index.take_scratch();
                    let by_words = asked.wanted / BEST_TO_BY_WORDS;
                    self.first = FirstEstimate::new(asked, index, &self.terms, by_words, &mut self.scratch);
                    self.step = SelectionStep::Estimate;
                }
                SelectionStep::Estimate => {
                    let Some(estimates) = self.first.resume(asked, index, allowance) else { return false };
                    self.estimates = estimates;
                    self.choose(asked, index, linked);
                    allowance.spend(CHOSEN_PART * self.candidates.len() as u64);
                    self.step = SelectionStep::Find;
                }
                SelectionStep::Find => {
                    while let Some((term, _)) = self.terms.get(self.at) {
                        if allowance.is_spent() {
                            return false;
                        }
                        if let (Some(word), Some(stem)) = (asked.words.word_index(*term), index.stems().get(*term)) {
                            self.found.add_postings(word, &stem.parts);
                            allowance.spend(READ_POSTING * stem.parts.len() as u64);
                        }
                        self.at += 1;
                    }
                    self.found.group();
                    self.step = SelectionStep::Done;
                }
                SelectionStep::Done => return true,
            }
        }
    }

    /// The buffers for the next question, once this one no longer needs them.
    pub(in crate::index) fn into_scratch(self) -> ScratchBuffers {
        ScratchBuffers {
            words: self.first.into_buffer(),
            scores: self.estimates.scores,
            candidates: self.is_candidate,
            listed: self.found.into_buffer(),
        }
    }

    /// The candidates, in the order of the bank.
    pub(in crate::index) fn all(&self) -> &[(PartKey, PartSlot)] {
        &self.candidates
    }

    /// The words of the question in a candidate, or in a part that counts with a candidate.
    pub(in crate::index) fn words_of(&self, slot: PartSlot) -> &[QueryWordHit] {
        self.found.of(slot)
    }

    /// The first estimate of a part; none for an empty slot.
    pub(in crate::index) fn estimate(&self, slot: PartSlot) -> Option<f64> {
        let estimate = self.estimates.scores.get(slot as usize).copied();
        estimate.filter(|estimate| *estimate > NO_SCORE).map(f64::from)
    }

    /// The first estimates of a session's best parts that are not candidates, best first.
    pub(in crate::index) fn rest_of_session(&self, session: u32) -> impl Iterator<Item = f64> {
        let best = self.estimates.sessions.get(session as usize).into_iter().flat_map(SessionBestSlots::parts);
        best.filter(|(_, slot)| !self.is_candidate.contains(*slot)).map(|(score, _)| f64::from(score))
    }

    /// Whether a part lies in the time of the probe.
    pub(in crate::index) fn holds_time(&self) -> bool {
        self.estimates.holds_time
    }

    fn choose(&mut self, asked: &QueryTerms<'_>, index: &CandidateIndex, linked: &dyn Fn(UnitId) -> Vec<PartSlot>) {
        let (best, by_words) = (std::mem::take(&mut self.estimates.best), std::mem::take(&mut self.estimates.by_words));
        let near = best.iter().take(asked.wanted / BEST_TO_VERY_BEST).flat_map(|slot| {
            let SessionNeighbours { before, after, second_before, second_after } = index.columns().near_slot(*slot);
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
        let linked: Vec<PartSlot> = anchors.into_iter().flat_map(linked).filter(|slot| asked.takes(*slot)).collect();
        let others = linked.iter().filter(|slot| self.is_candidate.insert(**slot)).count();
        // Linked parts replace the last of the best, so that edges add no work. A part that is itself linked stays.
        let most = asked.wanted.saturating_sub(others).max(SCALE_PARTS);
        let mut chosen: Vec<PartSlot> =
            best.iter().take(most).chain(&by_words).copied().chain(linked).chain(near).collect();
        self.is_candidate.clear(index.slots());
        // Beyond the ends of a session there are no valid slots.
        chosen.retain(|slot| asked.takes(*slot) && self.is_candidate.insert(*slot));
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
        self.found = SlotWords::new(listed);
    }
}

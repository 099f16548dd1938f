//! A probe of a bank's indexes, answered in slices.
//!
//! In: a bank that does not change during the scan, and how much work may be done. Out: the rows of the answer, once
//! the last slice is done. They do not depend on where a scan pauses.

use std::sync::Arc;

use super::{
    match_scan::MatchScan,
    shard_banks::{BankIndexes, ScanResources, ShardBanks, SharedPostings},
    turn_scan::TurnScan,
};
use crate::index::{
    lexical::term_analyzer::TermAnalyzer,
    matching_parts::MatchingParts,
    probes::{FamiliarityResult, FirstHopHit, FirstHopProbe, IndexProbe},
    ranking::scoring::FamiliarityScan,
    units::{association_score::CueSet, live_unit::LiveUnit, unit_body::UnitBody},
    work_budget::{INDEXED_UNIT, PASSED_PART, SCANNED_VECTOR, WorkBudget},
};
use types::model::{BankKey, Channel, Score, UnitId};

/// How many units are added to the lexical index before the allowance is checked again.
const WORDED_AT_ONCE: usize = 16;

/// One row of the answer to a probe.
#[derive(Debug, Clone)]
pub(in crate::index) enum ProbeResult {
    /// Answers a first-hop probe.
    Hit(FirstHopHit),
    /// Answers a familiarity probe.
    Familiar(Arc<FamiliarityResult>),
    /// Answers a turn probe.
    Unit(Arc<UnitBody>),
    /// Answers a match probe.
    Matching(Arc<MatchingParts>),
    /// The answer is complete.
    Answered,
}

/// A probe that is being answered.
pub(in crate::index) struct IndexScan {
    probe: Arc<IndexProbe>,
    state: IndexScanState,
}

enum IndexScanState {
    FirstHop(FirstHopScan),
    Familiarity(Box<FamiliarityScan>),
    Turn(TurnScan),
    Match(Box<MatchScan>),
}

impl IndexScan {
    /// A scan before its first slice.
    pub(in crate::index) fn new(probe: Arc<IndexProbe>) -> Self {
        let state = match &*probe {
            IndexProbe::FirstHop(_) => IndexScanState::FirstHop(FirstHopScan::default()),
            IndexProbe::Familiarity(_) => IndexScanState::Familiarity(Box::default()),
            IndexProbe::Turn(_) => IndexScanState::Turn(TurnScan::default()),
            IndexProbe::Match(_) => IndexScanState::Match(Box::default()),
        };
        Self { probe, state }
    }

    /// The bank that it reads.
    pub(in crate::index) fn bank(&self) -> BankKey {
        self.probe.bank()
    }

    /// Works until the allowance is spent; returns the rows once the scan is finished.
    pub(in crate::index) fn go_on(
        &mut self,
        banks: &mut ShardBanks,
        allowance: &mut WorkBudget,
    ) -> Option<Vec<ProbeResult>> {
        let (state, means) = banks.bank_with_resources(self.probe.bank());
        match (&*self.probe, &mut self.state) {
            (IndexProbe::FirstHop(probe), IndexScanState::FirstHop(scan)) => {
                let Some(state) = state else { return Some(Vec::new()) };
                scan.go_on(probe, state, means, allowance)
            }
            (IndexProbe::Familiarity(probe), IndexScanState::Familiarity(scan)) => {
                let found = match state {
                    Some(state) => {
                        let linked = |unit| state.linked_slots(unit);
                        scan.resume(probe, &state.parts, &linked, means.words, allowance)?
                    }
                    None => FamiliarityResult::default(),
                };
                Some(vec![ProbeResult::Familiar(Arc::new(found))])
            }
            (IndexProbe::Turn(probe), IndexScanState::Turn(scan)) => {
                let Some(state) = state else { return Some(Vec::new()) };
                let units = scan.resume(probe, &state.parts, allowance)?;
                Some(units.into_iter().map(ProbeResult::Unit).collect())
            }
            (IndexProbe::Match(probe), IndexScanState::Match(scan)) => {
                let Some(state) = state else { return Some(Vec::new()) };
                let found = scan.resume(probe, &state.parts, allowance)?;
                Some(vec![ProbeResult::Matching(Arc::new(found))])
            }
            _ => Some(Vec::new()),
        }
    }
}

/// A first hop by channels.
#[derive(Default)]
struct FirstHopScan {
    /// How many units the lexical index has so far; None once it is complete.
    worded: Option<usize>,
    started: bool,
    tile: usize,
    /// Every unit with the best cosine of the question and one of its parts.
    alignments: Vec<(Arc<LiveUnit>, Score)>,
    cued: Vec<((Score, Score), UnitId, usize)>,
}

impl FirstHopScan {
    fn go_on(
        &mut self,
        probe: &FirstHopProbe,
        state: &mut BankIndexes,
        means: ScanResources<'_>,
        allowance: &mut WorkBudget,
    ) -> Option<Vec<ProbeResult>> {
        let ScanResources { settings, structural, words, postings } = means;
        if !std::mem::replace(&mut self.started, true) && probe.lexical > 0 && state.lexical_is_partial() {
            self.worded = Some(0);
        }
        while let Some(from) = self.worded {
            if allowance.is_spent() {
                return None;
            }
            self.worded = state.index_words(
                probe.bank,
                from,
                WORDED_AT_ONCE,
                ScanResources { settings, structural, words, postings },
            );
            allowance.spend(INDEXED_UNIT / 4 * WORDED_AT_ONCE as u64);
        }
        let cues = CueSet::from(&probe.cues);
        while self.tile < state.semantic.tiles() {
            if allowance.is_spent() {
                return None;
            }
            let first = self.alignments.len();
            let vectors = state.semantic.align(&probe.vector, self.tile, &mut self.alignments);
            self.tile += 1;
            for (at, (unit, alignment)) in self.alignments.iter().enumerate().skip(first) {
                if !takes(probe, unit.id) {
                    continue;
                }
                let score = structural.score(&cues, &unit.cues).filter(|score| *score > Score::ZERO);
                self.cued.extend(score.map(|score| ((score, *alignment), unit.id, at)));
            }
            allowance.spend(vectors * SCANNED_VECTOR + (self.alignments.len() - first) as u64 * PASSED_PART);
        }
        Some(self.rank_hits(probe, state, words, postings))
    }

    fn rank_hits(
        &mut self,
        probe: &FirstHopProbe,
        state: &mut BankIndexes,
        words: &mut TermAnalyzer,
        postings: &SharedPostings,
    ) -> Vec<ProbeResult> {
        let alignments = &self.alignments;
        let mut hits = Vec::new();
        let mut give = |channel, ranked: Vec<(Score, usize)>| {
            for (rank, (score, at)) in ranked.into_iter().enumerate() {
                let (unit, alignment) = &alignments[at];
                let rank = rank as u32 + 1;
                hits.push(ProbeResult::Hit(FirstHopHit {
                    unit: unit.body.clone(),
                    channel,
                    rank,
                    score,
                    alignment: *alignment,
                }));
            }
        };
        let all = alignments.iter().enumerate().map(|(at, (unit, score))| ((*score, Score::ZERO), unit.id, at));
        let nearest = all.filter(|(_, unit, _)| takes(probe, *unit));
        give(Channel::Semantic, best(nearest, probe.semantic));
        if let Some(lexical) = &mut state.lexical {
            let worded = lexical.search(
                probe.bank,
                &words.term_bag(&probe.words, probe.language),
                probe.lexical,
                &|unit| takes(probe, unit),
                &postings.borrow(),
            );
            let placed = worded.into_iter().filter_map(|(score, id)| Some((score, state.semantic.slot_of_unit(id)?)));
            give(Channel::Lexical, placed.collect());
        }
        give(Channel::Structural, best(self.cued.drain(..), probe.cue));
        hits
    }
}

/// Whether a unit is searched.
fn takes(probe: &FirstHopProbe, unit: UnitId) -> bool {
    probe.matching.as_ref().is_none_or(|matching| matching.takes_any(unit))
}

/// The `limit` best by score, then by the second score, then by the least id. Each is returned with its index.
fn best(scored: impl Iterator<Item = ((Score, Score), UnitId, usize)>, limit: usize) -> Vec<(Score, usize)> {
    if limit == 0 {
        return Vec::new();
    }
    let mut ranked: Vec<_> = scored.map(|(score, id, at)| (std::cmp::Reverse(score), id, at)).collect();
    if ranked.len() > limit {
        ranked.select_nth_unstable(limit - 1);
        ranked.truncate(limit);
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(std::cmp::Reverse((score, _)), _, at)| (score, at)).collect()
}

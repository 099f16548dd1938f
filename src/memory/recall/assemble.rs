//! The final order of the evidence (paper, section 3.5; decision 15).
//!
//! In: candidates, possibly several for one unit. Out: one candidate per unit with merged provenance, ordered by ρ, at
//! most `recall.budget`. The order of the input never matters: provenance is sorted before it is summed, and ties of ρ
//! are broken by id.

use std::{cmp::Ordering, collections::BTreeMap};

use super::EvidenceCandidate;
use types::{
    config::{FirstHopMethod, RecallSettings},
    model::{Channel, Provenance, UnitId},
};

/// A candidate with the figure by which it is ranked.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedCandidate {
    /// The candidate.
    pub candidate: EvidenceCandidate,
    /// ρ, the figure by which evidence is ordered.
    pub rho: f64,
}

/// Merges candidates by unit, orders them by ρ and keeps the best `settings.budget`.
#[must_use]
pub fn assemble(candidates: Vec<EvidenceCandidate>, settings: &RecallSettings) -> Vec<RankedCandidate> {
    let mut ranked = rank_candidates(candidates, settings);
    ranked.truncate(settings.budget);
    ranked
}

/// Merges candidates by unit and orders them by ρ.
#[must_use]
pub(super) fn rank_candidates(candidates: Vec<EvidenceCandidate>, settings: &RecallSettings) -> Vec<RankedCandidate> {
    let merged = consolidate(candidates);
    let figures = rho(&merged, settings);
    let mut ranked: Vec<RankedCandidate> =
        merged.into_iter().zip(figures).map(|(candidate, rho)| RankedCandidate { candidate, rho }).collect();
    ranked.sort_by(|a, b| b.rho.total_cmp(&a.rho).then_with(|| a.candidate.unit.id.cmp(&b.candidate.unit.id)));
    ranked
}

/// Merges the candidates of each unit, in the order of ids. The result has the provenance and quoted parts of all, and
/// their best alignment and familiarity. If one of them is an anchor or is quoted whole, so is the result.
#[must_use]
pub fn consolidate(candidates: Vec<EvidenceCandidate>) -> Vec<EvidenceCandidate> {
    let mut by_unit: BTreeMap<UnitId, EvidenceCandidate> = BTreeMap::new();
    for candidate in candidates {
        match by_unit.get_mut(&candidate.unit.id) {
            Some(known) => {
                known.anchor |= candidate.anchor;
                known.alignment = known.alignment.max(candidate.alignment);
                known.familiarity = known.familiarity.max(candidate.familiarity);
                known.excerpt = match (known.excerpt.take(), candidate.excerpt) {
                    (Some(a), Some(b)) => Some(a.union(&b).copied().collect()),
                    _ => None,
                };
                known.provenance.extend(candidate.provenance);
            }
            None => {
                by_unit.insert(candidate.unit.id, candidate);
            }
        }
    }
    let mut merged: Vec<EvidenceCandidate> = by_unit.into_values().collect();
    for candidate in &mut merged {
        candidate.provenance.sort_by(compare);
        candidate.provenance.dedup();
    }
    merged
}

/// ρ of each candidate, in the order of `candidates`:
/// `λq · max(cosine, 0) + λp · π + λa · [it was an anchor]`. If the first hop ranks by
/// familiarity, ρ is the familiarity.
///
/// The candidates must be consolidated, because π is normalised over all of them.
#[must_use]
pub fn rho(candidates: &[EvidenceCandidate], settings: &RecallSettings) -> Vec<f64> {
    let best = best_scores(candidates);
    candidates
        .iter()
        .map(|c| {
            if settings.first_hop == FirstHopMethod::Familiarity {
                return c.familiarity;
            }
            settings.alignment_weight * c.alignment.as_f64().max(0.0)
                + settings.provenance_weight * pi(&c.provenance, &best, settings)
                + settings.anchor_weight * f64::from(u8::from(c.anchor))
        })
        .collect()
}

/// Where a unit came from. Section 3.5 has a weight for each source except `Familiar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EvidenceSource {
    Familiar,
    Semantic,
    Lexical,
    Cue,
    Expansion,
}

/// π, from the ranks and scores of all sources:
/// `Σ w · 1 / (offset + rank) · (1 + n) / 2`, with n = score ÷ best score of the source.
fn pi(provenance: &[Provenance], best: &BTreeMap<EvidenceSource, f64>, settings: &RecallSettings) -> f64 {
    provenance
        .iter()
        .map(|p| {
            let (source, rank, score) = provenance_source(p);
            let weight = match source {
                // ρ is the familiarity instead, see `rho`.
                EvidenceSource::Familiar => 0.0,
                EvidenceSource::Semantic => settings.semantic_source,
                EvidenceSource::Lexical => settings.lexical_source,
                EvidenceSource::Cue => settings.cue_source,
                EvidenceSource::Expansion => settings.expansion_source,
            };
            // If the best score is 0 or less, the quotient means nothing.
            let best = best.get(&source).copied().filter(|b| *b > 0.0);
            let normalised = best.map_or(0.0, |best| (score / best).clamp(0.0, 1.0));
            weight / (settings.rank_offset + f64::from(rank)) * (1.0 + normalised) / 2.0
        })
        .sum()
}

fn best_scores(candidates: &[EvidenceCandidate]) -> BTreeMap<EvidenceSource, f64> {
    let mut best = BTreeMap::new();
    for provenance in candidates.iter().flat_map(|c| &c.provenance) {
        let (source, _, score) = provenance_source(provenance);
        let known = best.entry(source).or_insert(score);
        *known = known.max(score);
    }
    best
}

fn provenance_source(provenance: &Provenance) -> (EvidenceSource, u32, f64) {
    match *provenance {
        Provenance::Familiar { rank, score, .. } => (EvidenceSource::Familiar, rank.max(1), score),
        Provenance::FirstHop { channel, rank, score } => {
            let source = match channel {
                Channel::Semantic => EvidenceSource::Semantic,
                Channel::Lexical => EvidenceSource::Lexical,
                Channel::Structural => EvidenceSource::Cue,
            };
            (source, rank.max(1), score)
        }
        Provenance::Expansion { rank, score, .. } => (EvidenceSource::Expansion, rank.max(1), score),
    }
}

/// A total order of provenances: source, channel, rank, score, then the path.
fn compare(a: &Provenance, b: &Provenance) -> Ordering {
    let path = |p: &Provenance| match p {
        Provenance::Familiar { .. } => (Channel::Semantic, Vec::new()),
        Provenance::FirstHop { channel, .. } => (*channel, Vec::new()),
        Provenance::Expansion { channel, path, .. } => (*channel, path.iter().map(|s| (s.from, s.to)).collect()),
    };
    let ((source_a, rank_a, score_a), (source_b, rank_b, score_b)) = (provenance_source(a), provenance_source(b));
    let ((channel_a, path_a), (channel_b, path_b)) = (path(a), path(b));
    (source_a, channel_a, rank_a)
        .cmp(&(source_b, channel_b, rank_b))
        .then_with(|| score_b.total_cmp(&score_a))
        .then_with(|| path_a.cmp(&path_b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::tests::{candidate, settings};
    use types::model::Score;

    fn hop(channel: Channel, rank: u32, score: f64) -> Provenance {
        Provenance::FirstHop { channel, rank, score }
    }

    fn grown(rank: u32, score: f64) -> Provenance {
        Provenance::Expansion {
            channel: Channel::Semantic,
            rank,
            score,
            familiarity: score,
            target_match: score,
            hops: 1,
            path: Vec::new(),
            path_weight: 1.0,
        }
    }

    fn reached(id: u64, alignment: f64, provenance: Vec<Provenance>) -> EvidenceCandidate {
        EvidenceCandidate {
            alignment: Score::from_f64(alignment),
            provenance,
            ..candidate(id, "said", "2024-01-01T00:00:00Z")
        }
    }

    #[test]
    fn rho_equals_the_figure_worked_out_by_hand() {
        let mut first = reached(1, 0.8, vec![hop(Channel::Semantic, 1, 0.8), hop(Channel::Lexical, 2, 0.3)]);
        first.anchor = true;
        let second = reached(2, 0.4, vec![hop(Channel::Semantic, 3, 0.4), hop(Channel::Structural, 1, 0.9)]);
        let third = reached(3, -0.2, vec![hop(Channel::Lexical, 1, 0.6), grown(2, 0.5)]);
        let figures = rho(&[first, second, third], &settings());
        // λq 1.25, λp 1, λa 0.05; weights 1, 0.75, 0.9, 0.85; offset 5.
        let expected = [
            1.25 * 0.8 + 1.0 / 6.0 * 1.0 + 0.75 / 7.0 * 0.75 + 0.05,
            1.25 * 0.4 + 1.0 / 8.0 * 0.75 + 0.9 / 6.0 * 1.0,
            0.75 / 6.0 * 1.0 + 0.85 / 7.0 * 1.0,
        ];
        for (found, expected) in figures.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
        }
    }

    #[test]
    fn a_best_score_that_is_not_positive_normalises_to_zero() {
        let below = reached(1, 0.0, vec![hop(Channel::Semantic, 1, -0.1)]);
        let zero = reached(2, 0.0, vec![hop(Channel::Lexical, 1, 0.0)]);
        let figures = rho(&[below, zero], &settings());
        assert!((figures[0] - 1.0 / 6.0 / 2.0).abs() < 1e-12);
        assert!((figures[1] - 0.75 / 6.0 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn ties_of_rho_are_broken_by_id_and_the_budget_cuts() {
        let same = |id| reached(id, 0.5, vec![hop(Channel::Semantic, 1, 0.5)]);
        let ranked = assemble(vec![same(9), same(3), same(7)], &RecallSettings { budget: 2, ..settings() });
        assert_eq!(ranked.iter().map(|r| r.candidate.unit.id.0).collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn a_unit_reached_twice_is_one_unit_with_both_provenances() {
        let mut anchor = reached(1, 0.2, vec![hop(Channel::Lexical, 1, 0.5)]);
        anchor.anchor = true;
        let merged = consolidate(vec![reached(1, 0.3, vec![hop(Channel::Semantic, 2, 0.3)]), anchor.clone(), anchor]);
        assert_eq!(merged.len(), 1);
        assert!(merged[0].anchor);
        assert_eq!(merged[0].alignment, Score::from_f64(0.3));
        assert_eq!(merged[0].provenance, [hop(Channel::Semantic, 2, 0.3), hop(Channel::Lexical, 1, 0.5)]);
    }

    fn any_candidate() -> impl Strategy<Value = EvidenceCandidate> {
        let channel = prop_oneof![Just(Channel::Semantic), Just(Channel::Lexical), Just(Channel::Structural)];
        let provenance = prop_oneof![
            (channel, 1u32..9, -0.5f64..1.0).prop_map(|(c, r, s)| hop(c, r, s)),
            (1u32..6, 0.0f64..1.0).prop_map(|(r, s)| grown(r, s)),
        ];
        (0u64..12, -0.3f64..1.0, prop::collection::vec(provenance, 1..4), any::<bool>()).prop_map(
            |(id, alignment, provenance, anchor)| EvidenceCandidate { anchor, ..reached(id, alignment, provenance) },
        )
    }

    proptest! {
        #[test]
        fn evidence_is_within_budget_explained_and_independent_of_order(
            (given, shuffled) in prop::collection::vec(any_candidate(), 0..40)
                .prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
            budget in 1usize..15,
        ) {
            let settings = RecallSettings { budget, ..settings() };
            let ranked = assemble(given.clone(), &settings);
            prop_assert!(ranked.len() <= budget);
            prop_assert!(ranked.iter().all(|r| !r.candidate.provenance.is_empty()));
            prop_assert!(ranked.windows(2).all(|w| w[0].rho >= w[1].rho));
            prop_assert!(ranked.iter().all(|r| given.iter().any(|g| g.unit.id == r.candidate.unit.id)));
            prop_assert_eq!(ranked, assemble(shuffled, &settings));
        }
    }
}

//! The support of a round: which of the reached units enter the evidence (section 3.4).
//!
//! In: units reached from the anchors, the ids already in the evidence, how familiar the
//! bank's parts are. Out: the units whose familiarity reaches the floor, merged by unit, at most
//! `recall.semantic_support` and `recall.structural_support` of the two channels; and all that were
//! considered, for the trace. The order is total and compares integers (decision 14): two values are
//! "nearly equal" if they share a bucket, not if their difference is small. The support may be empty.
//!
//! Units are ranked by familiarity with the question, not by the match with the target. The target's
//! sentence, made by rules, says less than the question, and by cues alone most units of a session tie.
//! The match stays in the trace.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{EvidenceCandidate, PartShares};
use crate::index::Neighbour;
use types::{
    config::{FirstHopMethod, RecallSettings},
    model::{Channel, EdgeStep, Provenance, Score, UnitId},
};

/// The result of a round of expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Support {
    /// Units that were reached and are not in the evidence.
    pub reached: usize,
    /// The units that enter the evidence, in the order of ids. The loop ends if there are none.
    pub candidates: Vec<EvidenceCandidate>,
    /// The best units of each channel in order, including units below the floor.
    pub considered: Vec<ExpansionHit>,
}

/// A unit that one channel of the expansion ranked.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpansionHit {
    /// The unit.
    pub candidate: EvidenceCandidate,
    /// Whether its familiarity reached the floor.
    pub enters: bool,
}

/// Chooses the support of a round.
///
/// A unit enters if its familiarity reaches `floor`. After a first hop by channels it is quoted whole. After
/// a first hop by familiarity, only its parts that reach the floor are quoted.
#[must_use]
pub(super) fn expand(
    neighbours: &[Neighbour],
    evidence: &BTreeSet<UnitId>,
    impressions: &PartShares,
    floor: f64,
    settings: &RecallSettings,
) -> Support {
    let fresh: Vec<&Neighbour> = neighbours.iter().filter(|n| !evidence.contains(&n.unit.id)).collect();
    let quotes = settings.first_hop == FirstHopMethod::Familiarity;
    let channel =
        |channel, most| ChannelRule { channel, most, floor, quotes, bucket: settings.match_bucket, impressions };
    let considered: Vec<ExpansionHit> = [
        channel(Channel::Semantic, settings.semantic_support),
        channel(Channel::Structural, settings.structural_support),
    ]
    .into_iter()
    .flat_map(|c| c.best(&fresh))
    .collect();
    let mut merged: BTreeMap<UnitId, EvidenceCandidate> = BTreeMap::new();
    for found in considered.iter().filter(|c| c.enters) {
        merged
            .entry(found.candidate.unit.id)
            .and_modify(|known| known.provenance.extend(found.candidate.provenance.iter().cloned()))
            .or_insert_with(|| found.candidate.clone());
    }
    Support {
        reached: fresh.iter().map(|n| n.unit.id).collect::<BTreeSet<_>>().len(),
        candidates: merged.into_values().collect(),
        considered,
    }
}

/// One channel's rule of selection.
struct ChannelRule<'i> {
    channel: Channel,
    most: usize,
    floor: f64,
    quotes: bool,
    bucket: f64,
    impressions: &'i PartShares,
}

/// Lower is better: bucket of the familiarity, hops, product of the weights, familiarity, id.
type SupportOrder = (Reverse<i64>, usize, Reverse<Score>, Reverse<Score>, UnitId);

impl ChannelRule<'_> {
    /// The best units of the channel, at most `most`; those below the floor come last.
    fn best(&self, fresh: &[&Neighbour]) -> Vec<ExpansionHit> {
        let mut ranked: Vec<(SupportOrder, &Neighbour)> =
            fresh.iter().filter(|n| n.channel == self.channel).map(|n| (self.key(n), *n)).collect();
        ranked.sort_by_key(|a| a.0);
        let mut seen = BTreeSet::new();
        ranked.retain(|(_, n)| seen.insert(n.unit.id));
        // A bucket may straddle the floor. Units above the floor come first, so that ranks count
        // within the support.
        ranked.sort_by_key(|(_, n)| self.share(n) < self.floor);
        (1u32..).zip(ranked).take(self.most).map(|(rank, (_, n))| self.considered(n, rank)).collect()
    }

    fn considered(&self, n: &Neighbour, rank: u32) -> ExpansionHit {
        let share = self.share(n);
        let parts = self.impressions.parts(n.unit.id).iter().filter(|(_, share)| *share >= self.floor);
        ExpansionHit {
            candidate: EvidenceCandidate {
                unit: n.unit.clone(),
                alignment: n.alignment,
                provenance: vec![provenance(n, rank, share)],
                anchor: false,
                familiarity: share,
                excerpt: self.quotes.then(|| parts.map(|(part, _)| *part).collect()),
            },
            enters: share >= self.floor,
        }
    }

    fn share(&self, n: &Neighbour) -> f64 {
        self.impressions.of_unit(n.unit.id)
    }

    fn key(&self, n: &Neighbour) -> SupportOrder {
        let share = self.share(n);
        let bucket = (share / self.bucket).floor() as i64;
        (Reverse(bucket), n.path.len(), Reverse(n.path_weight), Reverse(Score::from_f64(share)), n.unit.id)
    }
}

fn provenance(n: &Neighbour, rank: u32, familiarity: f64) -> Provenance {
    let target_match = match n.channel {
        Channel::Structural => n.structural_match.unwrap_or_default(),
        _ => n.semantic_match,
    };
    let path_weight = n.path_weight.as_f64();
    Provenance::Expansion {
        channel: n.channel,
        rank,
        score: familiarity * path_weight,
        familiarity,
        target_match: target_match.as_f64(),
        hops: u32::try_from(n.path.len()).unwrap_or(u32::MAX),
        path: n
            .path
            .iter()
            .map(|s| EdgeStep { from: s.from, to: s.to, channel: s.channel, weight: s.weight.as_f64() })
            .collect(),
        path_weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index::PathStep,
        recall::tests::{body, settings},
    };

    fn reached(id: u64, channel: Channel, score: Option<f64>, weights: &[f64]) -> Neighbour {
        let path: Vec<PathStep> = weights
            .iter()
            .enumerate()
            .map(|(i, w)| PathStep {
                from: UnitId(if i == 0 { 900 } else { 800 }),
                to: UnitId(if i + 1 == weights.len() { id } else { 800 }),
                channel,
                weight: Score::from_f64(*w),
            })
            .collect();
        Neighbour {
            unit: body(id, "said", "2024-01-01T00:00:00Z"),
            channel,
            path,
            path_weight: Score::from_f64(weights.iter().product()),
            semantic_match: Score::from_f64(score.unwrap_or(0.0)),
            structural_match: score.map(Score::from_f64),
            alignment: Score::from_f64(0.1),
        }
    }

    /// The support where the floor is 0.30 and each unit is as familiar as its score.
    fn chosen(neighbours: &[Neighbour], evidence: &BTreeSet<UnitId>, settings: &RecallSettings) -> Support {
        let shares: Vec<(UnitId, f64)> =
            neighbours.iter().map(|n| (n.unit.id, n.structural_match.map_or(-0.5, Score::as_f64))).collect();
        let floor = if settings.support_floor == 0.0 { 0.30 } else { settings.support_floor };
        expand(neighbours, evidence, &PartShares::from_shares(&shares), floor, settings)
    }

    fn check(neighbours: &[Neighbour], evidence: &[u64], expected: &[(u64, bool)]) {
        let evidence = evidence.iter().map(|&id| UnitId(id)).collect();
        let mut turned = neighbours.to_vec();
        turned.reverse();
        for given in [neighbours, &turned] {
            let support = chosen(given, &evidence, &settings());
            let found: Vec<(u64, bool)> =
                support.considered.iter().map(|c| (c.candidate.unit.id.0, c.enters)).collect();
            assert_eq!(found, expected);
        }
    }

    use Channel::{Semantic, Structural};

    #[test]
    fn inside_a_bucket_the_better_path_comes_first() {
        // 0.415 and 0.402 share the bucket [0.40, 0.42): the shorter path wins over the score.
        check(
            &[reached(1, Semantic, Some(0.415), &[0.9, 0.9]), reached(2, Semantic, Some(0.402), &[0.8])],
            &[],
            &[(2, true), (1, true)],
        );
        // Equal hops: the heavier path.
        check(
            &[reached(1, Semantic, Some(0.415), &[0.8]), reached(2, Semantic, Some(0.402), &[0.9])],
            &[],
            &[(2, true), (1, true)],
        );
        // Equal paths: the score, then the id.
        check(
            &[
                reached(3, Semantic, Some(0.402), &[0.8]),
                reached(2, Semantic, Some(0.402), &[0.8]),
                reached(1, Semantic, Some(0.401), &[0.8]),
            ],
            &[],
            &[(2, true), (3, true), (1, true)],
        );
    }

    #[test]
    fn nearly_equal_familiarities_give_one_order() {
        // Each neighbour lies within 0.02 of the next, so comparing by difference would
        // prefer 3 to 2, 2 to 1, and 1 to 3: a circle. Buckets give one order.
        check(
            &[
                reached(1, Semantic, Some(0.445), &[0.9, 0.5]),
                reached(2, Semantic, Some(0.430), &[0.9, 0.6]),
                reached(3, Semantic, Some(0.415), &[0.9]),
            ],
            &[],
            &[(1, true), (2, true), (3, true)],
        );
    }

    #[test]
    fn below_the_floor_nothing_enters() {
        check(
            &[
                reached(1, Semantic, Some(0.2999), &[0.9]),
                reached(2, Semantic, Some(0.30), &[0.9]),
                reached(3, Structural, Some(0.29), &[0.9]),
                reached(4, Structural, Some(0.30), &[0.9]),
                reached(5, Structural, None, &[0.9]),
            ],
            &[],
            &[(2, true), (1, false), (4, true), (3, false), (5, false)],
        );
        let none = chosen(&[reached(1, Semantic, Some(0.1), &[0.9])], &BTreeSet::new(), &settings());
        assert!(none.candidates.is_empty());
        assert_eq!((none.reached, none.considered.len()), (1, 1));
    }

    #[test]
    fn units_above_the_floor_come_before_those_below_in_one_bucket() {
        // 0.605 and 0.5990 are neighbours of one bucket when it is wide.
        let wide = RecallSettings { match_bucket: 0.5, structural_support: 1, support_floor: 0.6, ..settings() };
        let near = reached(1, Structural, Some(0.599), &[0.9]);
        let far = reached(2, Structural, Some(0.605), &[0.6, 0.6]);
        let support = chosen(&[near, far], &BTreeSet::new(), &wide);
        assert_eq!(support.candidates.iter().map(|c| c.unit.id.0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn known_units_are_left_out_and_both_channels_merge_in_one_unit() {
        let neighbours = [
            reached(1, Semantic, Some(0.7), &[0.9]),
            reached(2, Semantic, Some(0.8), &[0.9]),
            reached(2, Structural, Some(0.8), &[0.7]),
        ];
        let support = chosen(&neighbours, &BTreeSet::from([UnitId(1)]), &settings());
        assert_eq!(support.reached, 1);
        let [only] = support.candidates.as_slice() else { panic!("{:?}", support.candidates) };
        assert_eq!(only.provenance.len(), 2);
        let Provenance::Expansion { score, target_match, path_weight, hops, .. } = &only.provenance[1] else {
            panic!()
        };
        assert!((score - 0.8 * 0.7).abs() < 1e-8);
        assert!((target_match - 0.8).abs() < 1e-8 && (path_weight - 0.7).abs() < 1e-8);
        assert_eq!(*hops, 1);
    }

    #[test]
    fn at_most_five_units_a_channel_enter() {
        let many: Vec<Neighbour> = (1..=8).map(|i| reached(i, Semantic, Some(0.9 - 0.03 * i as f64), &[0.9])).collect();
        let support = chosen(&many, &BTreeSet::new(), &settings());
        assert_eq!(support.candidates.iter().map(|c| c.unit.id.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(support.reached, 8);
    }
}

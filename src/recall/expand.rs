//! Neighbours to support: which of what was reached enters the evidence (section 3.4).
//!
//! In: units reached from the anchors, the ids already in the evidence, floors. Out: at
//! most five units a channel that match the target at or above its floor, merged by
//! unit, and everything that was looked at for the trace. The order is total and on
//! integers (decision 14): "nearly equal" means the same bucket, never a difference.
//! The support may be empty.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::Candidate;
use crate::{
    config::{ModelSettings, RecallSettings},
    memory::Neighbour,
    model::{Channel, Provenance, Score, Step, UnitId},
};

/// What a round of expansion found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Support {
    /// Units that were reached and not in the evidence yet.
    pub reached: usize,
    /// What enters the evidence, in the order of ids; empty ends the loop.
    pub candidates: Vec<Candidate>,
    /// What was looked at: the best of each channel in order, those below the floor too.
    pub considered: Vec<Considered>,
}

/// A unit as one channel of the expansion ranked it.
#[derive(Debug, Clone, PartialEq)]
pub struct Considered {
    /// The unit.
    pub candidate: Candidate,
    /// Whether its match reached the channel's floor.
    pub enters: bool,
}

/// Chooses the support of a round.
///
/// The semantic channel is scored against the target's sentence with the model's floor,
/// the structural channel against the target's cues with the configured floor; a unit
/// with no cue in common kind has no structural score and is no structural candidate.
#[must_use]
pub fn expand(
    neighbours: &[Neighbour],
    evidence: &BTreeSet<UnitId>,
    settings: &RecallSettings,
    model: &ModelSettings,
) -> Support {
    let fresh: Vec<&Neighbour> = neighbours.iter().filter(|n| !evidence.contains(&n.unit.id)).collect();
    let semantic = Channelled {
        channel: Channel::Semantic,
        floor: Score::from_f64(model.semantic_floor),
        most: settings.semantic_support,
        bucket: settings.match_bucket,
    };
    let structural = Channelled {
        channel: Channel::Structural,
        floor: Score::from_f64(settings.structural_floor),
        most: settings.structural_support,
        bucket: settings.match_bucket,
    };
    let considered: Vec<Considered> = [semantic, structural].into_iter().flat_map(|c| c.best(&fresh)).collect();
    let mut merged: BTreeMap<UnitId, Candidate> = BTreeMap::new();
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
struct Channelled {
    channel: Channel,
    floor: Score,
    most: usize,
    bucket: f64,
}

/// Lower is better: bucket of the match, hops, product of the weights, match, id.
type Key = (Reverse<i32>, usize, Reverse<Score>, Reverse<Score>, UnitId);

impl Channelled {
    /// The best units of the channel, at most `most`, above the floor or not.
    fn best(&self, fresh: &[&Neighbour]) -> Vec<Considered> {
        let mut scored: Vec<(Key, &Neighbour, Score)> = fresh
            .iter()
            .filter(|n| n.channel == self.channel)
            .filter_map(|n| self.target_match(n).map(|score| (self.key(n, score), *n, score)))
            .collect();
        scored.sort_by_key(|a| a.0);
        let mut seen = BTreeSet::new();
        scored.retain(|(_, n, _)| seen.insert(n.unit.id));
        // A bucket may straddle the floor: above it first, so that ranks stay those of the support.
        scored.sort_by_key(|&(_, _, score)| score < self.floor);
        (1u32..)
            .zip(scored)
            .take(self.most)
            .map(|(rank, (_, n, score))| Considered {
                candidate: Candidate {
                    unit: n.unit.clone(),
                    alignment: n.alignment,
                    provenance: vec![provenance(n, rank, score)],
                    anchor: false,
                    familiarity: None,
                    excerpt: None,
                },
                enters: score >= self.floor,
            })
            .collect()
    }

    fn target_match(&self, neighbour: &Neighbour) -> Option<Score> {
        match self.channel {
            Channel::Semantic => Some(neighbour.semantic_match),
            Channel::Structural => neighbour.structural_match,
            Channel::Lexical => None,
        }
    }

    fn key(&self, n: &Neighbour, score: Score) -> Key {
        let width = Score::from_f64(self.bucket).0.max(1);
        (Reverse(score.0.div_euclid(width)), n.path.len(), Reverse(n.path_weight), Reverse(score), n.unit.id)
    }
}

fn provenance(n: &Neighbour, rank: u32, score: Score) -> Provenance {
    let (target_match, path_weight) = (score.as_f64(), n.path_weight.as_f64());
    Provenance::Expansion {
        channel: n.channel,
        rank,
        score: target_match * path_weight,
        target_match,
        hops: u32::try_from(n.path.len()).unwrap_or(u32::MAX),
        path: n
            .path
            .iter()
            .map(|s| Step { from: s.from, to: s.to, channel: s.channel, weight: s.weight.as_f64() })
            .collect(),
        path_weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::PathStep,
        recall::tests::{body, model, settings},
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

    fn check(neighbours: &[Neighbour], evidence: &[u64], expected: &[(u64, bool)]) {
        let evidence = evidence.iter().map(|&id| UnitId(id)).collect();
        let mut turned = neighbours.to_vec();
        turned.reverse();
        for given in [neighbours, &turned] {
            let support = expand(given, &evidence, &settings(), &model());
            let found: Vec<(u64, bool)> =
                support.considered.iter().map(|c| (c.candidate.unit.id.0, c.enters)).collect();
            assert_eq!(found, expected);
        }
    }

    use Channel::{Semantic, Structural};

    #[test]
    fn a_better_path_goes_first_inside_a_bucket_of_matches() {
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
    fn nearness_is_not_chained() {
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
                reached(3, Structural, Some(0.59), &[0.9]),
                reached(4, Structural, Some(0.60), &[0.9]),
                reached(5, Structural, None, &[0.9]),
            ],
            &[],
            &[(2, true), (1, false), (4, true), (3, false)],
        );
        let none = expand(&[reached(1, Semantic, Some(0.1), &[0.9])], &BTreeSet::new(), &settings(), &model());
        assert!(none.candidates.is_empty());
        assert_eq!((none.reached, none.considered.len()), (1, 1));
    }

    #[test]
    fn the_floor_comes_before_the_bucket() {
        // 0.605 and 0.5990 are neighbours of one bucket when it is wide.
        let wide = RecallSettings { match_bucket: 0.5, structural_support: 1, ..settings() };
        let near = reached(1, Structural, Some(0.599), &[0.9]);
        let far = reached(2, Structural, Some(0.605), &[0.6, 0.6]);
        let support = expand(&[near, far], &BTreeSet::new(), &wide, &model());
        assert_eq!(support.candidates.iter().map(|c| c.unit.id.0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn what_is_known_is_left_out_and_both_channels_meet_in_one_unit() {
        let neighbours = [
            reached(1, Semantic, Some(0.7), &[0.9]),
            reached(2, Semantic, Some(0.6), &[0.9]),
            reached(2, Structural, Some(0.8), &[0.7]),
        ];
        let support = expand(&neighbours, &BTreeSet::from([UnitId(1)]), &settings(), &model());
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
    fn five_a_channel() {
        let many: Vec<Neighbour> = (1..=8).map(|i| reached(i, Semantic, Some(0.9 - 0.03 * i as f64), &[0.9])).collect();
        let support = expand(&many, &BTreeSet::new(), &settings(), &model());
        assert_eq!(support.candidates.iter().map(|c| c.unit.id.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(support.reached, 8);
    }
}

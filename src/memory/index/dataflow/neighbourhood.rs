//! The walk from anchors along the edges: at most two hops, separately for each channel.
//!
//! In: neighbourhood probes, the adjacency and the units. Out: every unit that the walk reaches, once for each channel,
//! with its best path and its match with the target; also the anchors, if a probe asks for them. A hop walks at most
//! `fan_out` edges of a unit and channel, in the order of decision 11.

use std::{cmp::Reverse, sync::Arc};

use serde::{Deserialize, Serialize};
use timely::dataflow::{
    Stream,
    channels::pact::Pipeline,
    operators::{
        Concat,
        generic::operator::Operator,
        vec::{Filter, Map},
    },
};

use super::{
    bank_index::{Epoch, PendingProbe, ProbeId},
    lookup::{EpochBuffer, UnitArrangement, lookup},
};
use crate::index::{
    probes::{Neighbour, NeighbourhoodProbe, PathStep},
    units::{
        association_score::{CueSet, Edge, StructuralScorer},
        live_unit::{LiveUnit, UnitKey},
    },
};
use types::model::{Channel, Score, UnitId};

/// A path that is being walked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct WalkPath {
    probe_id: ProbeId,
    channel: Option<Channel>,
    hops: usize,
    weight: Reverse<Score>,
    path: Vec<PathStep>,
    probe: Arc<NeighbourhoodProbe>,
    target_cues: Arc<CueSet>,
}

/// Builds the operators.
pub(in crate::index) fn neighbourhood<'scope>(
    probes: Stream<'scope, Epoch, Vec<PendingProbe<NeighbourhoodProbe>>>,
    adjacency: UnitArrangement<'scope, Edge>,
    units: UnitArrangement<'scope, Arc<LiveUnit>>,
    fan_out: usize,
    structural: StructuralScorer,
) -> Stream<'scope, Epoch, Vec<(ProbeId, Neighbour)>> {
    let anchors = probes.flat_map(|PendingProbe { id, probe }| {
        let target_cues = Arc::new(CueSet::from(&probe.target_cues));
        let weight = Reverse(Score::ONE);
        let walk = WalkPath { probe_id: id, channel: None, hops: 0, weight, path: Vec::new(), probe, target_cues };
        let start = |anchor: &UnitId| (UnitKey { bank: walk.probe.bank, id: *anchor }, walk.clone());
        walk.probe.anchors.iter().map(start).collect::<Vec<_>>()
    });
    let itself = anchors.clone().filter(|(_, walk)| walk.probe.itself);
    let walking = anchors.filter(|(_, walk)| walk.probe.hops > 0);
    let first = best_paths(hop("HopOne", walking, adjacency.clone(), fan_out));
    let on = first.clone().flat_map(|(key, walk)| (walk.probe.hops > 1).then_some((key, walk)));
    let second = hop("HopTwo", on, adjacency, fan_out);
    let reached = best_paths(first.concat(second)).concat(itself);
    lookup("Reached", reached, units, move |_, walk, units, out| {
        for unit in units {
            out.push((walk.probe_id, neighbour(&walk, unit, &structural)));
        }
    })
}

fn hop<'scope>(
    name: &str,
    from: Stream<'scope, Epoch, Vec<(UnitKey, WalkPath)>>,
    adjacency: UnitArrangement<'scope, Edge>,
    fan_out: usize,
) -> Stream<'scope, Epoch, Vec<(UnitKey, WalkPath)>> {
    lookup(name, from, adjacency, move |key, walk: WalkPath, edges: &[Edge], out| {
        for of_channel in edges.chunk_by(|a, b| a.channel() == b.channel()) {
            // What a selector does not take is as if it were not there, so that it uses up no place.
            let taken = |to| walk.probe.matching.as_ref().is_none_or(|matching| matching.takes_any(to));
            for edge in of_channel.iter().filter(|edge| taken(edge.to)).take(fan_out) {
                let (channel, to) = (edge.channel(), edge.to);
                let stays = walk.probe.mixed || walk.channel.is_none_or(|c| c == channel);
                if !stays || walk.probe.anchors.contains(&to) {
                    continue;
                }
                let mut path = walk.path.clone();
                path.push(PathStep { from: key.id, to, channel, weight: edge.weight() });
                let next = WalkPath {
                    probe_id: walk.probe_id,
                    channel: Some(channel),
                    hops: walk.hops + 1,
                    weight: Reverse(product(walk.weight.0, edge.weight())),
                    path,
                    probe: walk.probe.clone(),
                    target_cues: walk.target_cues.clone(),
                };
                out.push((UnitKey { bank: key.bank, id: to }, next));
            }
        }
    })
}

/// Keeps one path for each probe, channel and unit: fewest hops, then greatest product, then least ids.
fn best_paths<'scope>(
    walks: Stream<'scope, Epoch, Vec<(UnitKey, WalkPath)>>,
) -> Stream<'scope, Epoch, Vec<(UnitKey, WalkPath)>> {
    walks.unary_frontier(Pipeline, "BestPaths", |_, _| {
        let mut waiting: EpochBuffer<(UnitKey, WalkPath)> = EpochBuffer::default();
        move |(input, frontier), output| {
            input.for_each(|capability, walks| waiting.add(*capability.time(), || capability.retain(0), walks));
            while let Some((capability, mut walks)) = waiting.complete(|epoch| frontier.less_equal(epoch)) {
                // The order of a walk is probe, channel, then preference.
                walks.sort();
                walks.dedup_by(|b, a| a.0 == b.0 && a.1.probe_id == b.1.probe_id && a.1.channel == b.1.channel);
                output.session(&capability).give_container(&mut walks);
            }
        }
    })
}

fn neighbour(walk: &WalkPath, unit: &LiveUnit, structural: &StructuralScorer) -> Neighbour {
    Neighbour {
        unit: unit.body.clone(),
        channel: walk.channel.unwrap_or(Channel::Semantic),
        path: walk.path.clone(),
        path_weight: walk.weight.0,
        semantic_match: unit.best_cosine(&walk.probe.target).unwrap_or_default(),
        structural_match: structural.score(&walk.target_cues, &unit.cues),
        alignment: unit.best_cosine(&walk.probe.question).unwrap_or_default(),
    }
}

/// The product of two weights, rounded toward zero.
fn product(a: Score, b: Score) -> Score {
    Score((i64::from(a.0) * i64::from(b.0) / i64::from(Score::ONE.0)) as i32)
}

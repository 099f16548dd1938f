//! A census: counts what the arrangements hold as of an epoch.
//!
//! In: census probes and the two arrangements. Out: counts; on request, a sum of hashes that depends only on the set,
//! never on order or batching, and the units and edges themselves. It walks the arrangements, or only the part of one
//! bank if the probe names a bank, and keeps nothing. Hashing takes many times as long as counting, so it is done only
//! on request.

use std::collections::{BTreeMap, BTreeSet};

use differential_dataflow::{
    ExchangeData,
    operators::arrange::Arranged,
    trace::{Cursor, TraceReader},
};
use serde::{Deserialize, Serialize};
use timely::{
    dataflow::{Stream, channels::pact::Pipeline, operators::generic::operator::Operator},
    progress::Antichain,
};

use super::{
    bank_index::{Epoch, PendingProbe, ProbeId},
    lookup::{EpochBuffer, UnitArrangement, compact},
};
use crate::index::units::{
    association_score::Edge,
    live_unit::{LiveUnit, UnitKey},
};
use types::model::{BankKey, Channel, EventTime, Language, Score, UnitId};

/// What to count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CensusProbe {
    /// One bank, or all.
    pub bank: Option<BankKey>,
    /// Whether to hash every unit and edge.
    pub hashing: bool,
    /// Whether to list every unit and edge.
    pub listing: bool,
}

/// An undirected edge of the graph, `a` before `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GraphEdge {
    /// The bank.
    pub bank: BankKey,
    /// The kind of edge.
    pub channel: Channel,
    /// The lesser id.
    pub a: UnitId,
    /// The greater id.
    pub b: UnitId,
    /// Its weight.
    pub weight: Score,
}

/// Counts and a hash of the set of units and edges.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GraphCensus {
    /// The number of units.
    pub units: u64,
    /// The number of semantic edges.
    pub semantic_edges: u64,
    /// The number of structural edges.
    pub structural_edges: u64,
    /// Sum, modulo 2¹²⁸, of 128 bits of BLAKE3 of every unit and edge; 0 if it was not requested.
    pub hash: u128,
    /// The same sum for the units alone.
    pub units_hash: u128,
    /// Units by the language that they are read in.
    pub languages: BTreeMap<Language, u64>,
    /// Every unit and when it was said, if requested, in the order of the units.
    pub unit_list: Vec<(UnitKey, EventTime)>,
    /// Every edge, if requested, in order.
    pub edge_list: Vec<GraphEdge>,
}

impl GraphCensus {
    /// Adds another part of the same census.
    pub fn add(&mut self, part: Self) {
        self.units += part.units;
        self.semantic_edges += part.semantic_edges;
        self.structural_edges += part.structural_edges;
        self.hash = self.hash.wrapping_add(part.hash);
        self.units_hash = self.units_hash.wrapping_add(part.units_hash);
        for (language, units) in part.languages {
            *self.languages.entry(language).or_default() += units;
        }
        self.unit_list.extend(part.unit_list);
        self.edge_list.extend(part.edge_list);
        self.unit_list.sort_unstable();
        self.edge_list.sort_unstable();
    }

    /// Counts one unit.
    pub fn count_unit(&mut self, key: &UnitKey, unit: &LiveUnit, probe: &CensusProbe) {
        self.units += 1;
        *self.languages.entry(unit.body.language()).or_default() += 1;
        if probe.hashing {
            let hash = hash(&(key, unit.hashed_form()));
            self.hash = self.hash.wrapping_add(hash);
            self.units_hash = self.units_hash.wrapping_add(hash);
        }
        if probe.listing {
            self.unit_list.push((*key, unit.body.said_at));
        }
    }

    /// Counts one edge, seen from its end with the lesser id.
    pub fn count_edge(&mut self, edge: GraphEdge, probe: &CensusProbe) {
        match edge.channel {
            Channel::Semantic => self.semantic_edges += 1,
            Channel::Structural | Channel::Lexical => self.structural_edges += 1,
        }
        if probe.hashing {
            self.hash = self.hash.wrapping_add(hash(&edge));
        }
        if probe.listing {
            self.edge_list.push(edge);
        }
    }
}

/// Counts the units of an arrangement.
pub(in crate::index) fn count_units<'scope>(
    probes: Stream<'scope, Epoch, Vec<PendingProbe<CensusProbe>>>,
    units: UnitArrangement<'scope, std::sync::Arc<LiveUnit>>,
) -> Stream<'scope, Epoch, Vec<(ProbeId, GraphCensus)>> {
    scan("CountUnits", probes, units, |census, key, unit, probe| census.count_unit(key, unit, probe))
}

/// Counts the edges of an adjacency that holds both directions.
pub(in crate::index) fn count_edges<'scope>(
    probes: Stream<'scope, Epoch, Vec<PendingProbe<CensusProbe>>>,
    adjacency: UnitArrangement<'scope, Edge>,
) -> Stream<'scope, Epoch, Vec<(ProbeId, GraphCensus)>> {
    scan("CountEdges", probes, adjacency, |census, key, edge, probe| {
        if key.id < edge.to {
            let edge =
                GraphEdge { bank: key.bank, channel: edge.channel(), a: key.id, b: edge.to, weight: edge.weight() };
            census.count_edge(edge, probe);
        }
    })
}

fn scan<'scope, V: ExchangeData>(
    name: &str,
    probes: Stream<'scope, Epoch, Vec<PendingProbe<CensusProbe>>>,
    arranged: UnitArrangement<'scope, V>,
    mut count: impl FnMut(&mut GraphCensus, &UnitKey, &V, &CensusProbe) + 'static,
) -> Stream<'scope, Epoch, Vec<(ProbeId, GraphCensus)>> {
    let Arranged { stream, mut trace } = arranged;
    trace.set_physical_compaction(Antichain::new().borrow());
    let mut trace = Some(trace);
    probes.binary_frontier(stream, Pipeline, Pipeline, name, move |_capability, _info| {
        let mut waiting: EpochBuffer<PendingProbe<CensusProbe>> = EpochBuffer::default();
        move |(probes, probes_frontier), (batches, batches_frontier), output| {
            probes.for_each(|capability, data| waiting.add(*capability.time(), || capability.retain(0), data));
            batches.for_each(|_, _| {});
            while let Some(trace) = trace.as_mut() {
                let open = |epoch: &Epoch| batches_frontier.less_equal(epoch) || probes_frontier.less_equal(epoch);
                let Some((capability, asked)) = waiting.complete(open) else { break };
                let epoch = *capability.time();
                let (mut cursor, storage) = trace.cursor();
                let mut censuses: Vec<(ProbeId, GraphCensus)> =
                    asked.iter().map(|a| (a.id, GraphCensus::default())).collect();
                let all = asked.iter().any(|a| a.probe.bank.is_none());
                let mut banks: BTreeSet<BankKey> = asked.iter().filter_map(|a| a.probe.bank).collect();
                while let Some(key) = cursor.get_key(&storage) {
                    if !all && !banks.contains(&key.bank) {
                        // On to the next bank that is asked for.
                        banks = banks.split_off(&key.bank);
                        let Some(bank) = banks.first() else { break };
                        cursor.seek_key(&storage, &UnitKey { bank: *bank, id: UnitId(0) });
                        continue;
                    }
                    while let Some(value) = cursor.get_val(&storage) {
                        let mut count_at = 0;
                        cursor.map_times(&storage, |time, change| {
                            if *time <= epoch {
                                count_at += *change;
                            }
                        });
                        for (asked, (_, census)) in asked.iter().zip(&mut censuses) {
                            if count_at > 0 && asked.probe.bank.is_none_or(|bank| bank == key.bank) {
                                count(census, key, value, &asked.probe);
                            }
                        }
                        cursor.step_val(&storage);
                    }
                    cursor.step_key(&storage);
                }
                output.session(&capability).give_container(&mut censuses);
            }
            compact(&mut trace, &waiting, probes_frontier);
        }
    })
}

fn hash(value: &impl Serialize) -> u128 {
    let json = serde_json::to_vec(value).unwrap_or_default();
    let mut low = [0u8; 16];
    low.copy_from_slice(&blake3::hash(&json).as_bytes()[..16]);
    u128::from_le_bytes(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_every_part_of_an_edge_and_not_on_order() {
        let edge = GraphEdge {
            bank: BankKey(u128::MAX),
            channel: Channel::Semantic,
            a: UnitId(1),
            b: UnitId(2),
            weight: Score(9),
        };
        let others = [
            GraphEdge { bank: BankKey(u128::MAX - 1), ..edge },
            GraphEdge { channel: Channel::Structural, ..edge },
            GraphEdge { a: UnitId(0), ..edge },
            GraphEdge { b: UnitId(3), ..edge },
            GraphEdge { weight: Score(8), ..edge },
        ];
        let of = |edges: &[GraphEdge]| {
            let mut census = GraphCensus::default();
            let probe = CensusProbe { bank: None, hashing: true, listing: false };
            edges.iter().for_each(|e| census.count_edge(*e, &probe));
            census.hash
        };
        for other in others {
            assert_ne!(of(&[edge]), of(&[other]), "{other:?}");
            assert_eq!(of(&[edge, other]), of(&[other, edge]));
        }
    }
}

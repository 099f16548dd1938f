//! A part of a bank's graph, for a map of it.
//!
//! In: a bank, a number of units, and the unit in the middle, if one is named. Out: units with labels, the edges
//! between them, and how many units and edges the bank has. Each call walks the bank's units and edges in the dataflow
//! once; nothing of them is kept.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    memory_api::MemoryApi,
    problem::{ApiProblem, ProblemCode},
    read_limiters::ReadScope,
    unit_view::unit_id,
};
use crate::access::{AccessRight, Caller};
use memory::index::{DataflowAnswer, GraphCensus, GraphEdge, UnitBody, UnitKey};
use replica::Replica;
use types::model::{Bank, EdgeStep, EventTime, LogPosition, Score, UnitId};

/// Most units of an answer, and their number where the request does not say.
const MAX_UNITS: usize = 2_000;
/// Most edges of an answer.
const MAX_EDGES: usize = 6_000;

/// Which part of a bank's graph is shown.
#[derive(Debug, Clone)]
pub struct GraphRequest {
    /// The bank.
    pub bank: Bank,
    /// The unit in the middle; without it, the units that were said last are shown.
    pub around: Option<String>,
    /// Most units; 2,000 without it.
    pub limit: Option<usize>,
}

/// A part of a bank's graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Graph")]
pub struct GraphView {
    /// The bank.
    pub bank: Bank,
    /// The units: those that were said last, the latest first. Around a unit: that unit, then what lies one edge from
    /// it, then two, and so on; of the same distance the one with the strongest edge first.
    pub units: Vec<GraphUnitView>,
    /// The edges between these units, each once, the strongest first; at most 6,000.
    pub edges: Vec<EdgeStep>,
    /// How many units the bank has.
    pub total_units: u64,
    /// How many edges the bank has, of both kinds.
    pub total_edges: u64,
    /// Whether a limit left out units of the bank, or around a unit such as its edges lead to, or edges between the
    /// units.
    pub truncated: bool,
    /// The offsets that this reflects.
    pub reflects: Vec<LogPosition>,
}

/// A unit of a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GraphUnit")]
pub struct GraphUnitView {
    /// The unit.
    pub id: UnitId,
    /// What it says, cut to 80 characters.
    pub label: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The session that its turns lie in.
    pub session: String,
}

impl MemoryApi {
    /// A part of a bank's graph.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank or unit, or a wrong limit.
    pub async fn graph(&self, who: &Caller, show: GraphRequest) -> Result<GraphView, ApiProblem> {
        let GraphRequest { bank, around, limit } = show;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let limit = limit.unwrap_or(MAX_UNITS);
        if !(1..=MAX_UNITS).contains(&limit) {
            return Err(ApiProblem::invalid(format!("limit: {limit} is out of range; allowed is 1 to {MAX_UNITS}")));
        }
        let around = around.map(|id| unit_id("around", &id)).transpose()?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        self.read(who, &bank, ReadScope::AllOfIt, move |_| graph(memory.replica(), of, around, limit)).await
    }
}

fn graph(replica: &Replica, bank: Bank, around: Option<UnitId>, limit: usize) -> Result<GraphView, ApiProblem> {
    let DataflowAnswer { value: census, reflects, .. } = replica.listing(&bank)?;
    let GraphCensus { units, semantic_edges, structural_edges, mut unit_list, edge_list, .. } = census;
    let (ids, cut_units) = match around {
        None => latest_units(&mut unit_list, limit),
        Some(id) if unit_list.iter().any(|(unit, _)| unit.id == id) => neighbourhood(&edge_list, id, limit),
        Some(id) => {
            let detail = format!("bank {bank}: it has no unit {id}; an edit or a deletion may have replaced it");
            return Err(ApiProblem::new(ProblemCode::UnknownUnit, detail));
        }
    };
    let found = replica.units(&bank, ids.clone())?.value;
    let found: HashMap<UnitId, Arc<UnitBody>> = found.into_iter().map(|unit| (unit.id, unit)).collect();
    // A unit that was replaced since the walk is left out with its edges.
    let shown: Vec<GraphUnitView> = ids.iter().filter_map(|id| found.get(id)).map(|unit| graph_unit(unit)).collect();
    let mut edges: Vec<GraphEdge> = edge_list;
    edges.retain(|edge| found.contains_key(&edge.a) && found.contains_key(&edge.b));
    edges.sort_unstable_by_key(|edge| (Reverse(edge.weight), edge.a, edge.b, edge.channel));
    let truncated = cut_units || edges.len() > MAX_EDGES;
    edges.truncate(MAX_EDGES);
    Ok(GraphView {
        bank,
        units: shown,
        edges: edges.iter().map(edge_step).collect(),
        total_units: units,
        total_edges: semantic_edges + structural_edges,
        truncated,
        reflects,
    })
}

/// The units that were said last, the latest first, and whether there are more.
fn latest_units(units: &mut [(UnitKey, EventTime)], limit: usize) -> (Vec<UnitId>, bool) {
    units.sort_unstable_by_key(|(unit, said_at)| (Reverse(*said_at), unit.id));
    (units.iter().take(limit).map(|(unit, _)| unit.id).collect(), units.len() > limit)
}

/// A unit and those to which edges lead from it, by distance, then by the strongest edge to a nearer one; and whether
/// there are more.
fn neighbourhood(edges: &[GraphEdge], start: UnitId, limit: usize) -> (Vec<UnitId>, bool) {
    let mut linked: HashMap<UnitId, Vec<(UnitId, Score)>> = HashMap::new();
    for edge in edges {
        linked.entry(edge.a).or_default().push((edge.b, edge.weight));
        linked.entry(edge.b).or_default().push((edge.a, edge.weight));
    }
    let (mut ids, mut seen, mut from) = (vec![start], HashSet::from([start]), 0);
    loop {
        let mut strongest: HashMap<UnitId, Score> = HashMap::new();
        let ends = ids[from..].iter().filter_map(|id| linked.get(id)).flatten();
        for (id, weight) in ends.filter(|(id, _)| !seen.contains(id)) {
            let best = strongest.entry(*id).or_insert(*weight);
            *best = (*best).max(*weight);
        }
        if strongest.is_empty() {
            return (ids, false);
        }
        let mut next: Vec<(Reverse<Score>, UnitId)> =
            strongest.into_iter().map(|(id, weight)| (Reverse(weight), id)).collect();
        next.sort_unstable();
        let room = limit - ids.len();
        let is_cut = next.len() > room;
        from = ids.len();
        ids.extend(next.into_iter().take(room).map(|(_, id)| id));
        if is_cut {
            return (ids, true);
        }
        seen.extend(&ids[from..]);
    }
}

/// A unit as a map shows it.
pub(super) fn graph_unit(unit: &UnitBody) -> GraphUnitView {
    GraphUnitView {
        id: unit.id,
        label: unit.label().to_owned(),
        said_at: unit.said_at,
        session: unit.session().to_owned(),
    }
}

/// Converts an edge to a step that starts at the unit with the smaller id.
pub(super) fn edge_step(edge: &GraphEdge) -> EdgeStep {
    EdgeStep { from: edge.a, to: edge.b, channel: edge.channel, weight: edge.weight.as_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{BankKey, Channel};

    const BANK: BankKey = BankKey(1);

    fn edge(a: u64, b: u64, weight: i32) -> GraphEdge {
        GraphEdge { bank: BANK, channel: Channel::Semantic, a: UnitId(a), b: UnitId(b), weight: Score(weight) }
    }

    #[test]
    fn a_neighbourhood_grows_by_hops_and_takes_the_strongest_first() {
        let edges = [edge(1, 2, 5), edge(1, 3, 9), edge(2, 4, 9), edge(3, 4, 1), edge(4, 5, 9), edge(7, 8, 9)];
        let around = |limit| {
            let (ids, is_cut) = neighbourhood(&edges, UnitId(1), limit);
            (ids.iter().map(|id| id.0).collect::<Vec<_>>(), is_cut)
        };
        assert_eq!(around(10), (vec![1, 3, 2, 4, 5], false), "no edge leads to 7");
        assert_eq!(around(5), (vec![1, 3, 2, 4, 5], false));
        assert_eq!(around(3), (vec![1, 3, 2], true));
        assert_eq!(around(2), (vec![1, 3], true));
        assert_eq!(around(1), (vec![1], true));
        assert_eq!(neighbourhood(&edges, UnitId(9), 10), (vec![UnitId(9)], false));
    }

    #[test]
    fn the_latest_units_come_first() {
        let said = |id: u64, ms| (UnitKey { bank: BANK, id: UnitId(id) }, EventTime::new(ms, 0).unwrap());
        let mut units = [said(1, 5_000), said(2, 7_000), said(3, 5_000)];
        assert_eq!(latest_units(&mut units, 2), (vec![UnitId(2), UnitId(1)], true));
        assert_eq!(latest_units(&mut units, 3), (vec![UnitId(2), UnitId(1), UnitId(3)], false));
    }
}

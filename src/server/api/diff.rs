//! What changed in a bank between two points of its past.
//!
//! In: a bank that the caller may read, and two points. Out: the units and edges that were added and removed between
//! them, a bounded number of each, and how many more there are. The comparison is that of `ripplemem diff`.

use std::{cmp::Reverse, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    graph::{GraphUnitView, edge_step, graph_unit},
    memory_api::MemoryApi,
    past_point::past_point,
    problem::ApiProblem,
    read_limiters::ReadScope,
};
use crate::access::{AccessRight, Caller};
use memory::index::{GraphEdge, LiveUnit};
use pipeline::Cancellation;
use snapshots::{AsOf, BankDiff};
use types::model::{Bank, EdgeStep};

/// Most entries of each list.
const MAX_LISTED: usize = 1_000;

/// Which points of a bank's past are compared.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// The bank.
    pub bank: Bank,
    /// The earlier point: an offset of the bank's partition of the memory log, or a time of appending in RFC 3339.
    pub from: String,
    /// The later point, in the same form; without it, now.
    pub to: Option<String>,
}

/// What changed in a bank between two points of its past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Diff")]
pub struct DiffResponse {
    /// The bank.
    pub bank: Bank,
    /// The offset of the earlier point, as `as_of` takes it.
    pub from: String,
    /// The offset of the later point.
    pub to: String,
    /// Units that the bank has at the later point alone, those that were said last first; at most 1,000.
    pub units_added: Vec<GraphUnitView>,
    /// Units that it has at the earlier point alone, in the same order; at most 1,000.
    pub units_removed: Vec<GraphUnitView>,
    /// Edges that it has at the later point alone, the strongest first; at most 1,000. One whose weight changed is also
    /// among `edges_removed`, with the earlier weight.
    pub edges_added: Vec<EdgeStep>,
    /// Edges that it has at the earlier point alone, in the same order; at most 1,000.
    pub edges_removed: Vec<EdgeStep>,
    /// How many of each are not listed.
    pub skipped: UnlistedChangeCounts,
    /// How many turns the bank held at one of the two points, and were forgotten since: neither point shows them.
    /// Absent where none was, and on Kafka.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<u64>,
}

/// How many changes of each kind are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "UnlistedChanges")]
pub struct UnlistedChangeCounts {
    /// Of the units that came.
    pub units_added: u64,
    /// Of the units that went.
    pub units_removed: u64,
    /// Of the edges that came.
    pub edges_added: u64,
    /// Of the edges that went.
    pub edges_removed: u64,
}

impl DiffResponse {
    fn of(bank: Bank, difference: BankDiff) -> Self {
        let BankDiff { from, to, forgotten, units_added, units_removed, edges_added, edges_removed, .. } = difference;
        let (units_added, of_units_added) = units(units_added);
        let (units_removed, of_units_removed) = units(units_removed);
        let (edges_added, of_edges_added) = edges(edges_added);
        let (edges_removed, of_edges_removed) = edges(edges_removed);
        let skipped = UnlistedChangeCounts {
            units_added: of_units_added,
            units_removed: of_units_removed,
            edges_added: of_edges_added,
            edges_removed: of_edges_removed,
        };
        let (from, to) = (from.to_string(), to.to_string());
        let forgotten = Some(forgotten).filter(|forgotten| *forgotten > 0);
        Self { bank, from, to, units_added, units_removed, edges_added, edges_removed, skipped, forgotten }
    }
}

/// The units that were said last, and how many others there are.
fn units(mut all: Vec<Arc<LiveUnit>>) -> (Vec<GraphUnitView>, u64) {
    all.sort_unstable_by_key(|unit| (Reverse(unit.body.said_at), unit.id));
    (all.iter().take(MAX_LISTED).map(|unit| graph_unit(&unit.body)).collect(), unlisted_count(all.len()))
}

/// The strongest edges, and how many others there are.
fn edges(mut all: Vec<GraphEdge>) -> (Vec<EdgeStep>, u64) {
    all.sort_unstable_by_key(|edge| (Reverse(edge.weight), edge.a, edge.b, edge.channel));
    (all.iter().take(MAX_LISTED).map(edge_step).collect(), unlisted_count(all.len()))
}

fn unlisted_count(all: usize) -> u64 {
    all.saturating_sub(MAX_LISTED) as u64
}

impl MemoryApi {
    /// The units and edges that were added and removed between two points of a bank's past.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, a point that is not kept, or an earlier point that lies after the later one.
    pub async fn diff(&self, who: &Caller, show: DiffRequest) -> Result<DiffResponse, ApiProblem> {
        let DiffRequest { bank, from, to } = show;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let from = past_point("from", &from)?;
        let to = to.map_or(Ok(AsOf::Offset(u64::MAX)), |to| past_point("to", &to))?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        // A comparison reads the snapshot tables of a whole shard twice.
        let diff = move |_: &Cancellation| {
            let difference = memory.diff(&of, from, to)?;
            if difference.from > difference.to {
                let (from, to) = (difference.from, difference.to);
                let detail =
                    format!("from: offset {from} lies after offset {to}, that of `to`; name the earlier first");
                return Err(ApiProblem::invalid(detail));
            }
            Ok(DiffResponse::of(of, difference))
        };
        self.read(who, &bank, ReadScope::AllOfIt, diff).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Channel, Score, UnitId};

    #[test]
    fn the_strongest_edges_are_listed_and_the_others_counted() {
        let bank = Bank::parse("b").expect("a name");
        let edge = |n: u64| GraphEdge {
            bank: bank.key(),
            channel: Channel::Semantic,
            a: UnitId(n),
            b: UnitId(n + 1),
            weight: Score::from_f64(n as f64 / 10_000.0),
        };
        let (listed, more) = edges((0..1_005).map(edge).collect());
        assert_eq!((listed.len(), more), (MAX_LISTED, 5));
        assert_eq!((listed[0].from, listed[MAX_LISTED - 1].from), (UnitId(1_004), UnitId(5)));
        let difference = BankDiff {
            from: 3,
            to: 7,
            append_ms: [1, 2],
            forgotten: 2,
            units_added: Vec::new(),
            units_removed: Vec::new(),
            edges_added: vec![edge(1)],
            edges_removed: (0..1_001).map(edge).collect(),
        };
        let DiffResponse { from, to, edges_added, edges_removed, skipped, forgotten, .. } =
            DiffResponse::of(bank.clone(), difference);
        assert_eq!((from.as_str(), to.as_str()), ("3", "7"));
        assert_eq!((edges_added.len(), edges_removed.len()), (1, MAX_LISTED));
        let expected = UnlistedChangeCounts { units_added: 0, units_removed: 0, edges_added: 0, edges_removed: 1 };
        assert_eq!((skipped, forgotten), (expected, Some(2)));
    }
}

//! The dataflow itself: from memory records and probes to answers, on one worker.
//!
//! In: upserts by record key, probes. Out: answers, passed to `sink` on the bank's worker before the
//! probe's epoch is complete. The shape:
//! ```text
//! records ─ upsert ─ hide open ─► Units ─► BankIndex ─► choices ─ both directions ─► Adjacency
//! known choices, index probes ────────────────┘ └─► hits, familiar parts
//! neighbourhood probes ─► Lookup(Adjacency) ─► Lookup(Adjacency) ─► Lookup(Units) ─► neighbours
//! census probes ─► walk of Units and Adjacency ─► counts
//! ```

use std::sync::Arc;

use differential_dataflow::{
    VecCollection,
    operators::arrange::upsert::arrange_from_upsert,
    trace::implementations::{ValBuilder, ValSpine},
};
use timely::{
    dataflow::{
        InputHandle, ProbeHandle,
        operators::{Input, Inspect, Probe, vec::Broadcast},
    },
    worker::Worker,
};

use super::{
    api::{FamiliarParts, Hit, IndexProbe, Neighbour, NeighbourhoodProbe},
    bank_index::{Chosen, Epoch, Known, PendingProbe, ProbeId, ProbeResult, bank_index},
    census::{Census, CensusProbe, GraphEdge, count_edges, count_units},
    live::{Extraction, LiveUnit, RecordKey, UnitKey},
    neighbourhood::{Edge, neighbourhood},
    score::{GraphChoice, Structural},
};
use crate::{
    config::MemorySettings,
    model::{BankKey, Score},
};

/// A record that was added, changed or removed (`None`), with its epoch.
pub(super) type Upsert = (RecordKey, Option<Arc<Extraction>>, Epoch);

/// One row of an answer.
#[derive(Debug, Clone)]
pub(super) enum Row {
    /// Of a first-hop probe.
    Hit(Hit),
    /// Of a familiarity probe.
    Familiar(FamiliarParts),
    /// Of a neighbourhood.
    Neighbour(Neighbour),
    /// Of a census.
    Census(Census),
}

/// The inputs of one worker, and the probe that tells when an epoch is complete.
pub(super) struct Inputs {
    /// Memory records.
    pub records: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<Upsert>>>,
    /// Choices of banks that come as a whole.
    pub known: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<Known>>>,
    /// First-hop and familiarity probes.
    pub indexes: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<IndexProbe>>>>,
    /// Neighbourhood probes.
    pub neighbourhoods:
        InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<NeighbourhoodProbe>>>>,
    /// Census probes.
    pub censuses: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<CensusProbe>>>>,
    /// Passes an epoch when all of its probes are answered.
    pub done: ProbeHandle<Epoch>,
}

impl Inputs {
    /// Moves every input to an epoch.
    pub(super) fn advance_to(&mut self, epoch: Epoch) {
        self.records.advance_to(epoch);
        self.known.advance_to(epoch);
        self.indexes.advance_to(epoch);
        self.neighbourhoods.advance_to(epoch);
        self.censuses.advance_to(epoch);
    }
}

/// Callbacks for additions (+1) and removals (−1), called before the epoch is complete.
pub(super) struct Watchers<E, C> {
    /// For edges.
    pub edges: Option<E>,
    /// For choices.
    pub choices: Option<C>,
}

/// Builds the dataflow on a worker.
pub(super) fn build(
    worker: &mut Worker,
    settings: &MemorySettings,
    semantic_threshold: Score,
    sink: impl Fn(ProbeId, Row) + Clone + 'static,
    watchers: Watchers<impl Fn(GraphEdge, isize) + 'static, impl Fn(BankKey, GraphChoice, isize) + 'static>,
) -> Inputs {
    let done = ProbeHandle::new();
    worker.dataflow(|scope| {
        let (records, record_stream) = scope.new_input::<Vec<Upsert>>();
        let (known, known_stream) = scope.new_input::<Vec<Known>>();
        let (indexes, index_stream) = scope.new_input::<Vec<PendingProbe<IndexProbe>>>();
        let (neighbourhoods, neighbourhood_stream) = scope.new_input::<Vec<PendingProbe<NeighbourhoodProbe>>>();
        let (censuses, census_stream) = scope.new_input::<Vec<PendingProbe<CensusProbe>>>();

        let extractions =
            arrange_from_upsert::<ValBuilder<_, _, _, _>, ValSpine<RecordKey, Arc<Extraction>, Epoch, isize>, _, _>(
                record_stream,
                "Extractions",
            );
        let units = live_units(extractions.as_collection(|key, extraction| (*key, extraction.clone())));
        let by_unit = units.clone().arrange_by_key_named("Units");
        let (choices, hits) = bank_index(units, known_stream, index_stream, settings, semantic_threshold);
        if let Some(chosen) = watchers.choices {
            let choices = choices.clone().inner;
            let each = move |((from, (_, channel, choice)), _, diff): &(Chosen, Epoch, isize)| {
                let known = GraphChoice { channel: *channel, from: from.id, to: choice.id, weight: choice.weight() };
                chosen(from.bank, known, *diff);
            };
            choices.inspect(each).probe_with(&done);
        }
        let adjacency = choices
            .flat_map(|(from, (ordinal, channel, choice))| {
                let to = UnitKey { bank: from.bank, id: choice.id };
                let edge: Edge = (channel, choice);
                [(from, edge), (to, (channel, choice.reversed(ordinal, from.id)))]
            })
            .arrange_by_key_named("Adjacency");
        if let Some(changed) = watchers.edges {
            // Both ends may have chosen the edge; it counts once.
            let edges = adjacency.clone().as_collection(|key, (channel, choice)| (*key, *channel, *choice));
            edges
                .filter(|(key, _, choice)| key.id < choice.id)
                .map(|(key, channel, choice)| GraphEdge {
                    bank: key.bank,
                    channel,
                    a: key.id,
                    b: choice.id,
                    weight: choice.weight(),
                })
                .distinct()
                .inner
                .inspect(move |(edge, _epoch, diff)| changed(*edge, *diff))
                .probe_with(&done);
        }
        let neighbours = neighbourhood(
            neighbourhood_stream,
            adjacency.clone(),
            by_unit.clone(),
            settings.fan_out,
            Structural::new(settings),
        );
        let census_stream = census_stream.broadcast();
        let units_counted = count_units(census_stream.clone(), by_unit);
        let edges_counted = count_edges(census_stream, adjacency);

        let (to_hits, to_neighbours, to_units, to_edges) = (sink.clone(), sink.clone(), sink.clone(), sink);
        hits.inspect(move |(id, found)| {
            let row = match found {
                ProbeResult::Hit(hit) => Row::Hit(hit.clone()),
                ProbeResult::Familiar(familiar) => Row::Familiar(familiar.clone()),
            };
            to_hits(*id, row);
        })
        .probe_with(&done);
        neighbours.inspect(move |(id, found)| to_neighbours(*id, Row::Neighbour(found.clone()))).probe_with(&done);
        units_counted.inspect(move |(id, census)| to_units(*id, Row::Census(census.clone()))).probe_with(&done);
        edges_counted.inspect(move |(id, census)| to_edges(*id, Row::Census(census.clone()))).probe_with(&done);
        Inputs { records, known, indexes, neighbourhoods, censuses, done: done.clone() }
    })
}

/// The units of every window: of its final record if there is one, else of its turns' records.
fn live_units<'scope>(
    extractions: VecCollection<'scope, Epoch, (RecordKey, Arc<Extraction>), isize>,
) -> VecCollection<'scope, Epoch, (UnitKey, Arc<LiveUnit>), isize> {
    extractions
        .map(|(key, extraction)| (key.window, extraction))
        .reduce_named("HideOpen", |_, records, visible| {
            // The parts of a closed window, or the turns of an open one.
            let closed = records.iter().any(|(extraction, _)| extraction.closes);
            let shown = records.iter().filter(|(extraction, _)| extraction.closes == closed);
            visible.extend(shown.map(|(extraction, _)| ((*extraction).clone(), 1)));
        })
        .flat_map(|(window, extraction)| {
            let bank = window.bank;
            extraction.units.clone().into_iter().map(move |unit| (UnitKey { bank, id: unit.id }, unit))
        })
}

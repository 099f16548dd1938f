//! The dataflow itself: from memory records and probes to answers, on a shard's own worker.
//!
//! In: upserts by record key, probes. Out: rows of answers and changes of the graph, in [`ShardOutputs`]. The rows of a
//! walk or a count are there once its epoch is complete. The rows of an index probe are there once its scan is
//! finished, which may be later and holds up no epoch. The shape:
//! ```text
//! records ─ upsert ─ hide open ─► Units ─► BankIndex ─► choices ─ both directions ─► Adjacency
//! known choices, index probes ────────────────┘ └─► hits, familiar parts
//! neighbourhood probes ─► Lookup(Adjacency) ─► Lookup(Adjacency) ─► Lookup(Units) ─► neighbours
//! census probes ─► walk of Units and Adjacency ─► counts
//! records ─ upsert ─ hide open ─► statements ─► Profile; profile probes ─► Lookup(Profile) ─► lines
//! ```

use std::{cell::RefCell, rc::Rc, sync::Arc};

use differential_dataflow::{
    VecCollection,
    operators::arrange::upsert::arrange_from_upsert,
    trace::implementations::{ValBuilder, ValSpine},
};
use timely::{
    dataflow::{
        InputHandle, ProbeHandle,
        operators::{Input, Inspect, Probe},
    },
    worker::Worker,
};

use super::{
    bank_index::{BankStep, Epoch, PendingProbe, ProbeId, ScanProgress, bank_index},
    census::{CensusProbe, GraphEdge, count_edges, count_units},
    index_scan::ProbeResult,
    neighbourhood::neighbourhood,
    profile_view::{ProfileProbe, profile, profile_lines},
    shard_banks::{SharedBanks, UnitChoice},
    shard_command::AnswerRow,
};
use crate::index::{
    probes::{IndexProbe, NeighbourhoodProbe},
    units::{
        association_score::{Edge, GraphChoice, StructuralScorer},
        live_unit::{LiveUnit, RecordKey, RecordUnits, UnitKey, WindowKey},
    },
};
use types::{config::MemorySettings, model::BankKey};

/// A record that was added, changed or removed (`None`), with its epoch.
pub(in crate::index) type RecordUpsert = (RecordKey, Option<Arc<RecordUnits>>, Epoch);

/// What comes out of a shard's dataflow.
#[derive(Default)]
pub(in crate::index) struct ShardOutputs {
    /// Rows of answers.
    pub rows: RefCell<Vec<(ProbeId, AnswerRow)>>,
    /// Probes of the indexes whose rows are all there.
    pub answered: RefCell<Vec<ProbeId>>,
    /// Edges that were added (+1) and removed (−1), if there is a listener.
    pub edges: RefCell<Vec<(GraphEdge, isize)>>,
    /// Choices that were added (+1) and removed (−1), if there is a listener.
    pub choices: RefCell<Vec<((BankKey, GraphChoice), isize)>>,
}

/// The kinds of changes that have a listener.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct ChangeKinds {
    /// Changes of edges.
    pub edges: bool,
    /// Changes of choices.
    pub choices: bool,
}

/// The inputs of a shard, and the probe that shows when an epoch is complete.
pub(in crate::index) struct ShardInputs {
    /// Memory records.
    pub records: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<RecordUpsert>>>,
    /// Choices of banks that are restored as a whole, and repairs.
    pub known: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<BankStep>>>,
    /// First-hop and familiarity probes.
    pub indexes: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<IndexProbe>>>>,
    /// Neighbourhood probes.
    pub neighbourhoods:
        InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<NeighbourhoodProbe>>>>,
    /// Census probes.
    pub censuses: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<CensusProbe>>>>,
    /// Profile probes.
    pub profiles: InputHandle<Epoch, timely::container::CapacityContainerBuilder<Vec<PendingProbe<ProfileProbe>>>>,
    /// Passes an epoch when its changes are applied, and its walks and counts are answered.
    pub done: ProbeHandle<Epoch>,
}

impl ShardInputs {
    /// Moves every input to an epoch.
    pub(in crate::index) fn advance_to(&mut self, epoch: Epoch) {
        self.records.advance_to(epoch);
        self.known.advance_to(epoch);
        self.indexes.advance_to(epoch);
        self.neighbourhoods.advance_to(epoch);
        self.censuses.advance_to(epoch);
        self.profiles.advance_to(epoch);
    }
}

/// Builds the dataflow on a worker.
pub(in crate::index) fn build(
    worker: &mut Worker,
    settings: &MemorySettings,
    banks: SharedBanks,
    turns: Rc<ScanProgress>,
    outputs: &Rc<ShardOutputs>,
    watched: ChangeKinds,
) -> ShardInputs {
    let done = ProbeHandle::new();
    worker.dataflow(|scope| {
        let (records, record_stream) = scope.new_input::<Vec<RecordUpsert>>();
        let (known, known_stream) = scope.new_input::<Vec<BankStep>>();
        let (indexes, index_stream) = scope.new_input::<Vec<PendingProbe<IndexProbe>>>();
        let (neighbourhoods, neighbourhood_stream) = scope.new_input::<Vec<PendingProbe<NeighbourhoodProbe>>>();
        let (censuses, census_stream) = scope.new_input::<Vec<PendingProbe<CensusProbe>>>();
        let (profiles, profile_stream) = scope.new_input::<Vec<PendingProbe<ProfileProbe>>>();

        let extractions =
            arrange_from_upsert::<ValBuilder<_, _, _, _>, ValSpine<RecordKey, Arc<RecordUnits>, Epoch, isize>, _, _>(
                record_stream,
                "Extractions",
            );
        let visible = visible_records(extractions.as_collection(|key, extraction| (*key, extraction.clone())));
        let statements = visible.clone().flat_map(|(window, extraction)| {
            let bank = window.bank;
            extraction.statements.clone().into_iter().map(move |statement| (bank, statement))
        });
        let found_lines = profile_lines(profile_stream, profile(statements));
        let units = live_units(visible);
        let by_unit = units.clone().arrange_by_key_named("Units");
        let (choices, hits) = bank_index(units, known_stream, index_stream, banks, turns);
        if watched.choices {
            let (choices, outputs) = (choices.clone().inner, Rc::clone(outputs));
            let each = move |((from, (_, channel, choice)), _, diff): &(UnitChoice, Epoch, isize)| {
                let known = GraphChoice { channel: *channel, from: from.id, to: choice.id, weight: choice.weight() };
                outputs.choices.borrow_mut().push(((from.bank, known), *diff));
            };
            choices.inspect(each).probe_with(&done);
        }
        let adjacency = choices
            .flat_map(|(from, (ordinal, channel, choice))| {
                let to = UnitKey { bank: from.bank, id: choice.id };
                let back = choice.reversed(ordinal, from.id);
                [(from, Edge::new(channel, ordinal, choice)), (to, Edge::new(channel, choice.ordinal, back))]
            })
            .arrange_by_key_named("Adjacency");
        if watched.edges {
            let outputs = Rc::clone(outputs);
            // Both ends may have chosen the edge; it counts once.
            let edges = adjacency.clone().as_collection(|key, edge| (*key, *edge));
            edges
                .filter(|(key, edge)| key.id < edge.to)
                .map(|(key, edge)| GraphEdge {
                    bank: key.bank,
                    channel: edge.channel(),
                    a: key.id,
                    b: edge.to,
                    weight: edge.weight(),
                })
                .distinct()
                .inner
                .inspect(move |(edge, _epoch, diff)| outputs.edges.borrow_mut().push((*edge, *diff)))
                .probe_with(&done);
        }
        let neighbours = neighbourhood(
            neighbourhood_stream,
            adjacency.clone(),
            by_unit.clone(),
            settings.fan_out,
            StructuralScorer::new(settings),
        );
        let units_counted = count_units(census_stream.clone(), by_unit);
        let edges_counted = count_edges(census_stream, adjacency);

        let to_rows = || {
            let outputs = Rc::clone(outputs);
            move |id: ProbeId, row| outputs.rows.borrow_mut().push((id, row))
        };
        let (row, answered) = (to_rows(), Rc::clone(outputs));
        hits.inspect(move |(id, found)| match found {
            ProbeResult::Hit(hit) => row(*id, AnswerRow::Hit(hit.clone())),
            ProbeResult::Familiar(familiar) => row(*id, AnswerRow::Familiar(Arc::clone(familiar))),
            ProbeResult::Unit(unit) => row(*id, AnswerRow::Unit(Arc::clone(unit))),
            ProbeResult::Matching(matching) => row(*id, AnswerRow::Matching(Arc::clone(matching))),
            ProbeResult::Answered => answered.answered.borrow_mut().push(*id),
        });
        let row = to_rows();
        neighbours.inspect(move |(id, found)| row(*id, AnswerRow::Neighbour(found.clone()))).probe_with(&done);
        let row = to_rows();
        units_counted.inspect(move |(id, census)| row(*id, AnswerRow::Census(census.clone()))).probe_with(&done);
        let row = to_rows();
        edges_counted.inspect(move |(id, census)| row(*id, AnswerRow::Census(census.clone()))).probe_with(&done);
        let row = to_rows();
        found_lines.inspect(move |(id, line)| row(*id, AnswerRow::Profile(Arc::clone(line)))).probe_with(&done);
        ShardInputs { records, known, indexes, neighbourhoods, censuses, profiles, done: done.clone() }
    })
}

/// The records of every window that count: its final record if there is one, otherwise its turns' records.
fn visible_records<'scope>(
    extractions: VecCollection<'scope, Epoch, (RecordKey, Arc<RecordUnits>), isize>,
) -> VecCollection<'scope, Epoch, (WindowKey, Arc<RecordUnits>), isize> {
    extractions.map(|(key, extraction)| (key.window, extraction)).reduce_named("HideOpen", |_, records, visible| {
        // Shows the parts of a closed window, or the turns of an open one.
        let closed = records.iter().any(|(extraction, _)| extraction.closes);
        let shown = records.iter().filter(|(extraction, _)| extraction.closes == closed);
        let shown: Vec<&Arc<RecordUnits>> = shown.map(|(extraction, _)| *extraction).collect();
        match shown.as_slice() {
            [only] => visible.push(((*only).clone(), 1)),
            // The turns of an open window have their units in their own record.
            several if !closed => visible.extend(several.iter().map(|part| ((*part).clone(), 1))),
            parts => visible.extend(RecordUnits::joined(parts).into_iter().map(|part| (part, 1))),
        }
    })
}

/// The units of visible records.
fn live_units<'scope>(
    visible: VecCollection<'scope, Epoch, (WindowKey, Arc<RecordUnits>), isize>,
) -> VecCollection<'scope, Epoch, (UnitKey, Arc<LiveUnit>), isize> {
    visible.flat_map(|(window, extraction)| {
        let bank = window.bank;
        extraction.units.clone().into_iter().map(move |unit| (UnitKey { bank, id: unit.id }, unit))
    })
}

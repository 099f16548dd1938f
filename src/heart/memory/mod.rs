//! The memory dataflow: memory records to units, indexes and edges, and probes to answers.
//!
//! In: the records of the memory log, in order, and probes. Out: recalled units and
//! neighbourhoods, each as of one epoch. Everything here is a pure function of the set of
//! records: the same log gives the same units, edges and scores whatever the batching,
//! the arrival order and the number of shards and threads. No clock, file, socket or model is used.
//!
//! From the bottom up: `vectors`, `units`, `edges`, which units choose, `lexical` for their words, `candidates` and
//! `familiarity` for the first look at a question, `dataflow`, which wires all this, and `shard`, whose handle callers
//! hold. The banks of one shard never meet those of another. `api` is what callers send and get; `work` counts what a
//! step costs; `footprint` counts how much memory the units take.

mod api;
mod candidates;
mod dataflow;
mod edges;
mod familiarity;
mod footprint;
mod lexical;
mod shard;
mod units;
mod vectors;
mod work;

#[cfg(test)]
mod tests;

pub use api::{
    Answered, FamiliarPart, FamiliarParts, FamiliarityProbe, FirstHopProbe, FixedVector, Hit, Neighbour,
    NeighbourhoodProbe, PathStep, Topic, TurnProbe, UnitWithNeighbours,
};
pub use candidates::choice::SCALE_PARTS;
pub use dataflow::census::{Census, CensusProbe, GraphEdge};
pub use dataflow::load::{ChoiceChanges, EdgeChanges, Listeners, Load};
pub use footprint::Footprint;
pub use lexical::words::Words;
pub use shard::handle::{MemoryError, MemoryHandle};
pub use shard::threads::MemoryThreads;
pub use units::live::{Extraction, LiveUnit, PartVectors, RecordHash, RecordKey, UnitKey, WindowKey};
pub use units::score::{Choice, CueSet, GraphChoice, Structural, TimelinePosition, name_key};
pub use units::unit_body::{PartBody, PartFields, UnitBody, UnitFields};
pub use vectors::kernel::{dot_reference, quantise};
pub use vectors::rows::VectorRows;

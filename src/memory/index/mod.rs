//! The memory dataflow: memory records to units, indexes and edges, and probes to answers.
//!
//! In: the records of the memory log, in order, and probes. Out: recalled units and
//! neighbourhoods, each as of one epoch. Everything here is a pure function of the set of
//! records: the same log gives the same units, edges and scores whatever the batching,
//! the arrival order and the number of shards and threads. No clock, file, socket or model is used.
//!
//! From the bottom up: `vectors`; `units`; `edges`, which units choose; `lexical` for their words; `candidates` and
//! `ranking` for the familiarity of parts; `profile` for what holds of persons; `dataflow`, which connects all this; `shard`, whose handle callers hold. The
//! banks of one shard never meet those of another. `probes` is what callers send and get; `matching_parts` is what a
//! selector takes; `id_hasher` has maps by ids; `work_budget` counts what a
//! step costs; `memory_footprint` counts how much memory the units take.

mod candidates;
mod dataflow;
mod edges;
mod id_hasher;
mod lexical;
mod matching_parts;
mod memory_footprint;
mod probes;
mod profile;
mod ranking;
mod shard;
mod units;
mod vectors;
mod work_budget;

#[cfg(test)]
mod tests;

pub use candidates::candidate_selection::SCALE_PARTS;
pub use candidates::time_match::CHOSEN;
pub use dataflow::census::{CensusProbe, GraphCensus, GraphEdge};
pub use dataflow::profile_view::ProfileProbe;
pub use dataflow::record_load::{ChangeListeners, ChoiceChanges, EdgeChanges, RecordLoad};
pub use lexical::term_analyzer::TermAnalyzer;
pub use matching_parts::MatchingParts;
pub use memory_footprint::MemoryFootprint;
pub use probes::{
    DataflowAnswer, FamiliarPart, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, FixedVector,
    MatchProbe, Neighbour, NeighbourhoodProbe, PathStep, ProbedTime, QuestionTopic, TurnProbe, UnitNeighbourhood,
};
pub use profile::live_statement::{LiveStatement, StatementPlace, person_key};
pub use profile::profile_line::{ProfileLine, lines_of_some};
pub use shard::shard_handle::{ShardError, ShardHandle};
pub use shard::shard_thread_pool::ShardThreadPool;
pub use units::association_score::{CueSet, EdgeChoice, GraphChoice, StructuralScorer, TimelinePosition, name_key};
pub use units::live_unit::{LiveUnit, PartVectors, RecordHash, RecordKey, RecordUnits, UnitKey, WindowKey};
pub use units::turn_facts::TurnFactTable;
pub use units::unit_body::{PartBody, PartFields, UnitBody, UnitFields};
pub use vectors::kernel::{dot_reference, quantise};
pub use vectors::unit_vector_rows::VectorRows;

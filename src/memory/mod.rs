//! The memory dataflow: memory records to units, indexes and edges, and probes to answers.
//!
//! In: the records of the memory log, in order, and probes. Out: recalled units and
//! neighbourhoods, each as of one epoch. Everything here is a pure function of the set of
//! records: the same log gives the same units, edges and scores whatever the batching,
//! the arrival order and the number of shards and threads. No clock, file, socket or model is used.
//!
//! `handle` is what callers hold: one shard, whose banks never meet those of another. `api`, `load` and
//! `command` are what they send and get. `threads` steps the shards; a `shard` does what its `schedule`
//! says, in slices of `work`. `dataflow` wires the operators: `bank_index` owns the indexes of each bank
//! in `banks` (`semantic` with `near_rows` and `cue` choose edges, `lexical` with `postings`, `bm25` and `words` finds
//! words, `familiarity` scores `parts`, each an `indexed_part`, by what is `asked`; in a large bank only the `candidates` of
//! a `first_estimate` with `best_slots`, `session_best`, `slot_set` and `found_words` from a `candidate_index` of `part_columns`, `gists` in `codes`, `stem_postings`
//! and `dense_ids`) and works off a `scan` in turns, `neighbourhood` walks the graph
//! with `lookup`, `census` counts. `live` holds units and `rows` the vectors of their parts, `score` compares them, `kernel` multiplies vectors.

mod api;
mod asked;
mod bank_index;
mod banks;
mod best_slots;
mod bm25;
mod candidate_index;
mod candidates;
mod census;
mod codes;
mod command;
mod cue;
mod dataflow;
mod dense_ids;
mod familiarity;
mod first_estimate;
mod footprint;
mod found_words;
mod gists;
mod greetings;
mod handle;
mod indexed_part;
mod kernel;
mod lexical;
mod live;
mod load;
mod lookup;
mod near_rows;
mod neighbourhood;
mod part_columns;
mod parts;
mod postings;
mod rows;
mod scan;
mod schedule;
mod score;
mod scratch;
mod semantic;
mod session_best;
mod shard;
mod slot_set;
mod stem_postings;
mod threads;
mod unit_body;
mod word_window;
mod words;
mod work;

#[cfg(test)]
mod candidate_tests;
#[cfg(test)]
mod tests;

pub use api::{
    Answered, FamiliarPart, FamiliarParts, FamiliarityProbe, FirstHopProbe, FixedVector, Hit, Neighbour,
    NeighbourhoodProbe, PathStep, UnitWithNeighbours,
};
pub use candidates::SCALE_PARTS;
pub use census::{Census, CensusProbe, GraphEdge};
pub use footprint::Footprint;
pub use handle::{MemoryError, MemoryHandle};
pub use kernel::{dot_reference, quantise};
pub use live::{Extraction, LiveUnit, PartVectors, RecordHash, RecordKey, UnitKey, WindowKey};
pub use load::{ChoiceChanges, EdgeChanges, Listeners, Load};
pub use rows::VectorRows;
pub use score::{Choice, CueSet, GraphChoice, Structural, TimelinePosition, name_key};
pub use threads::MemoryThreads;
pub use unit_body::{PartBody, PartFields, UnitBody, UnitFields};
pub use words::Words;

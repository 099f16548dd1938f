//! The memory dataflow: memory records to units, indexes and edges, and probes to answers.
//!
//! In: the records of the memory log, in order, and probes. Out: recalled units and
//! neighbourhoods, each as of one epoch. Everything here is a pure function of the set of
//! records: the same log gives the same units, edges and scores whatever the batching,
//! the arrival order and the number of workers. No clock, file, socket or model is used.
//!
//! `handle` is what callers hold, `api` what they send and get. `dataflow` wires the operators:
//! `bank_index` owns the indexes of each bank (`semantic` and `cue` choose edges, `lexical` with
//! `postings`, `bm25` and `words` finds words, `familiarity` scores parts), `neighbourhood` walks
//! the graph with `lookup`, `census` counts. `live` holds units, `score` compares them, `kernel`
//! multiplies vectors.

mod api;
mod bank_index;
mod bm25;
mod census;
mod cue;
mod dataflow;
mod familiarity;
mod handle;
mod kernel;
mod lexical;
mod live;
mod lookup;
mod neighbourhood;
mod postings;
mod score;
mod semantic;
mod words;

pub use api::{
    Answered, FamiliarPart, FamiliarParts, FamiliarityProbe, FirstHopProbe, FixedVector, Hit, Neighbour,
    NeighbourhoodProbe, PartBody, PathStep, UnitBody,
};
pub use bank_index::best_part;
pub use census::{Census, CensusProbe, GraphEdge};
pub use handle::{ChoiceChanges, EdgeChanges, Listeners, Load, MemoryError, MemoryHandle};
pub use kernel::{dot_reference, quantise};
pub use live::{Extraction, LiveUnit, PartVectors, RecordKey, UnitKey, WindowKey};
pub use score::{Choice, CueSet, GraphChoice, Structural, TimelinePosition};
pub use words::Words;

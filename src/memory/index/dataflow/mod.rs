//! The operators, and how they are connected.
//!
//! In: loads and probes (`record_load`, `shard_command`). Out: answers and changes of edges. `build_dataflow` connects
//! the operators: `bank_index` owns the indexes of each bank (`shard_banks`) and performs each `index_scan` in slices;
//! `neighbourhood` walks the graph with `lookup`; `census` counts; `profile_view` keeps what holds of each person.

pub(super) mod bank_index;
pub(super) mod build_dataflow;
pub(super) mod census;
pub(super) mod index_scan;
pub(super) mod lookup;
mod match_scan;
pub(super) mod neighbourhood;
pub(super) mod profile_view;
pub(super) mod record_load;
pub(super) mod shard_banks;
pub(super) mod shard_command;
mod turn_scan;

//! The operators, and how they are wired.
//!
//! In: loads and probes (`load`, `command`). Out: answers and changes of edges. `build` wires the operators:
//! `bank_index` owns the indexes of each bank (`banks`) and performs each `scan` in turns; `neighbourhood` walks the
//! graph with `lookup`; `census` counts.

pub(super) mod bank_index;
pub(super) mod banks;
pub(super) mod build;
pub(super) mod census;
pub(super) mod command;
pub(super) mod load;
pub(super) mod lookup;
pub(super) mod neighbourhood;
pub(super) mod scan;
mod turn_scan;

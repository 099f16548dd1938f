//! What an evaluation compares recollection with, on the same bench.
//!
//! In: a bench, and recollection's scores. Out: rows. `baselines` are other retrievers,
//! `ablations` the same system without one part (`llm_edges` is one of them), `vectors` other ways
//! to make vectors of a turn, `readings` one model's answers from different contexts, `bank_scaling` one bank of
//! several sizes, fed by `merged_source`. No comparison changes the bench.

pub(super) mod ablations;
pub(super) mod bank_scaling;
pub(super) mod baselines;
mod llm_edges;
mod merged_source;
pub(super) mod readings;
pub(super) mod vectors;

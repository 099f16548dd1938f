//! What an evaluation compares recollection with, on the same bench.
//!
//! In: a bench, and recollection's scores. Out: rows. `baselines` are other retrievers; `ablation_rows` are the same
//! system without one part (`llm_edges` is one of them); `vector_rows` are other ways of embedding a turn;
//! `context_readings` are one model's answers from different contexts; `bank_scaling` is one bank at several sizes, fed
//! by `merged_source`. No comparison changes the bench.

pub(super) mod ablation_rows;
pub(super) mod bank_scaling;
pub(super) mod baselines;
pub(super) mod context_readings;
mod llm_edges;
mod merged_source;
pub(super) mod vector_rows;

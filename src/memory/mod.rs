//! Units to indexes, edges and probes: the memory dataflow.

mod api;
pub use api::*;

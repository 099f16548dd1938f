//! RippleMem: long-term memory for LLM agents as a live dataflow.
//!
//! The rooms, in the data's order. What `memory` holds is a pure function of the memory
//! log; clocks, files and models stay in the rooms before it.

pub mod model;
pub mod schema;
pub mod sync;

pub mod config;
pub mod language;

pub mod embed;
pub mod endpoint;
pub mod extract;
pub mod llm;
pub mod log;
pub mod memory;
pub mod recall;
pub mod snapshot;
pub mod source;
pub mod window;

pub mod pipeline;
pub mod serve;
pub mod telemetry;

pub mod eval;

/// Names a test that cannot run here, past the harness, which hides what a passed test prints.
#[cfg(test)]
fn skipped(what: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "SKIPPED {what}"));
}

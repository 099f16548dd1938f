//! RippleMem: long-term memory for LLM agents as a live dataflow.
//!
//! The rooms, in the data's order. `memory` and everything it needs is a pure function
//! of the memory log; clocks, files, models and sockets stay in the rooms before it.

pub mod model;
pub mod config;
pub mod language;
pub mod source;
pub mod log;
pub mod window;
pub mod extract;
pub mod embed;
pub mod memory;
pub mod recall;
pub mod pipeline;

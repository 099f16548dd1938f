//! RippleMem: long-term memory for LLM agents as a live dataflow.
pub mod model;
pub mod config;
pub mod memory;

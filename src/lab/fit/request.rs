//! What to fit.
//!
//! In: the options of `ripplemem eval fit`, checked. Out: a request.

use std::path::PathBuf;

use crate::{agents::AgentSet, dataset::BenchmarkFormat};
use nouns::config::Pipeline;

/// What to fit.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The development sets of people's dialogues: format and path.
    pub sets: Vec<(BenchmarkFormat, PathBuf)>,
    /// Those of conversations with an assistant.
    pub agent_sets: Vec<(AgentSet, PathBuf)>,
    /// The settings whose weights are the starting point.
    pub pipeline: Pipeline,
    /// How many weights each search draws.
    pub draws: usize,
    /// The seed of the search.
    pub seed: u64,
    /// Most tokens of a context, on average over the questions of each set.
    pub tokens: f64,
}

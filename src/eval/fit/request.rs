//! What to fit.
//!
//! In: the options of `ripplemem-eval fit`, checked. Out: a request.

use std::path::PathBuf;

use crate::{agents::AgentSet, dataset::BenchmarkFormat};
use types::config::Pipeline;

/// What to fit.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The development sets of people's dialogues: format and path.
    pub sets: Vec<(BenchmarkFormat, PathBuf)>,
    /// The development sets of conversations with an assistant.
    pub agent_sets: Vec<(AgentSet, PathBuf)>,
    /// The settings whose weights are the starting point.
    pub pipeline: Pipeline,
    /// How many weights each search draws.
    pub draws: usize,
    /// The seed of the search.
    pub seed: u64,
    /// The maximum mean number of tokens in a context, over the questions of each set.
    pub tokens: f64,
}

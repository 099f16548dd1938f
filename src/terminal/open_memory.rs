//! Opens the memory of a pipeline.
//!
//! In: a pipeline with an embedded log. Out: its service.

use anyhow::Result;
use nouns::config::Pipeline;
use ripplemem::pipeline::Service;

use super::progress_bar::with_progress;

/// Opens the memory and rebuilds it from its log.
pub fn open_memory(pipeline: &Pipeline) -> Result<Service> {
    Ok(with_progress(|progress| Service::open(pipeline, progress))?)
}

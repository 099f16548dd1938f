//! Opens the memory of a pipeline.
//!
//! In: a pipeline with an embedded log. Out: its service.

use anyhow::Result;
use ripplemem::PipelineDriver;
use types::config::Pipeline;

use super::progress_bar::with_progress;

/// Opens the memory and rebuilds it from its log.
pub fn open_memory(pipeline: &Pipeline) -> Result<PipelineDriver> {
    Ok(with_progress(|progress| PipelineDriver::open(pipeline, progress))?)
}

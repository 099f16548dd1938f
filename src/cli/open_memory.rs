//! Opens the memory of a pipeline.
//!
//! In: a pipeline with an embedded log. Out: its service, after the warnings of opening were
//! printed to stderr.

use anyhow::Result;
use nouns::config::Pipeline;
use ripplemem::pipeline::Service;

use super::{output::say, progress_bar::with_progress};

/// Opens the memory and rebuilds it from its log.
pub(crate) fn open_memory(pipeline: &Pipeline) -> Result<Service> {
    let mut service = with_progress(|progress| Service::open(pipeline, progress))?;
    print_warnings(&mut service);
    Ok(service)
}

/// Prints the warnings since the last call.
pub(crate) fn print_warnings(service: &mut Service) {
    service.take_warnings().iter().for_each(|warning| say(warning));
}

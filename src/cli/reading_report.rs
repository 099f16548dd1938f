//! Reports which windows the language model has read.
//!
//! In: the counts of a reading. Out: a line on stdout, and the problem, if any, on stderr.

use anyhow::Result;
use ingest::ModelExtractionReport;
use terminal::{print, say};
use types::config::Pipeline;

/// Prints the counts; `next` says what happens to the windows that are left. Returns false when a response could not be
/// used.
pub(crate) fn print_reading(pipeline: &Pipeline, finished: &ModelExtractionReport, next: &str) -> Result<bool> {
    let ModelExtractionReport { read, refused, left, problem } = finished;
    if *read + *refused + *left > 0 {
        print(&format!("{}: {read} windows read, {refused} not usable, {left} left to read\n", pipeline.llm.model))?;
    }
    // If no window is left, the problem does not concern this reading, and may be over.
    if let Some(problem) = problem.as_ref().filter(|_| *left > 0) {
        say(&format!("{problem}; {next}"));
    }
    Ok(*refused == 0)
}

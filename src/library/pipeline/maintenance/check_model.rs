//! The check of the embedding model before anything is ingested.
//!
//! In: a pipeline's settings. Out: the model's name, width and hash, or what is missing and
//! where it was looked for. Opens no log.

use models::embed::{self, Embedder};
use nouns::config::Pipeline;

use super::PipelineError;

/// Loads the model and its runtime, and returns their description.
///
/// # Errors
/// [`PipelineError::Embed`], which lists where they were looked for.
pub fn check_model(pipeline: &Pipeline) -> Result<String, PipelineError> {
    let embedder: Box<dyn Embedder> = embed::open(&pipeline.embed, &pipeline.model())?;
    let model = embedder.model();
    Ok(format!("{} ({} components, hash {})", model.name, embedder.dimensions(), model.hash))
}

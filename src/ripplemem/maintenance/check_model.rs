//! The check of the models on this machine before anything is ingested.
//!
//! In: a pipeline's settings. Out: the name and hash of the embedding model and of the reranker, or what is missing and
//! where it was looked for. Opens no log.

use models::{
    embed::{self, Embedder},
    rerank::RerankerPool,
};
use types::config::Pipeline;

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

/// Loads the reranker, and returns its description; `None` if the pipeline names none.
///
/// # Errors
/// [`PipelineError::Rerank`], which lists where it was looked for.
pub fn check_reranker(pipeline: &Pipeline) -> Result<Option<String>, PipelineError> {
    let Some(settings) = &pipeline.recall.rerank else { return Ok(None) };
    let pool = RerankerPool::open(&pipeline.embed, &settings.model)?;
    let model = pool.model();
    Ok(Some(format!("{} ({} pairs, hash {})", model.name, settings.pairs, model.hash)))
}

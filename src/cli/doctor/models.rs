//! Checks ONNX Runtime, the embedding model and the language model.
//!
//! In: a pipeline. Out: findings; the embedding model is loaded and embeds a word. Sends nothing to a language model.

use anyhow::Result;
use models::{embed::assets, llm::Llm};
use nouns::config::{Pipeline, Runner};
use ripplemem::pipeline;

use super::finding::Finding;

/// Where the runtime is, and whether the model can be loaded.
pub(super) fn embedding_model(pipeline: &Pipeline) -> Vec<Finding> {
    let mut findings = Vec::new();
    if matches!(pipeline.model().runner, Runner::Onnx | Runner::Catalogue) {
        match assets::library(&pipeline.embed) {
            Ok(path) => findings.push(Finding::ok("runtime", path.display().to_string())),
            // Without it no model can be loaded, and the model's message would have the same words.
            Err(error) => return vec![Finding::mend("runtime", error.to_string())],
        }
        if let Ok(path) = assets::model_directory(&pipeline.embed, &pipeline.embed.model) {
            findings.push(Finding::ok("model's files", path.display().to_string()));
        }
    }
    findings.push(match pipeline::check_model(pipeline) {
        Ok(model) => Finding::ok("model", model),
        Err(error) => Finding::mend("model", error.to_string()),
    });
    findings
}

/// Whether the language model's key is set.
pub(super) fn language_model(pipeline: &Pipeline) -> Option<Finding> {
    const OF: &str = "language model";
    if !pipeline.llm.is_set() {
        return None;
    }
    let opened = || -> Result<String> {
        let llm = Llm::open(&pipeline.llm, None)?;
        llm.check_key()?;
        Ok(format!("{} at {} (not asked)", pipeline.llm.model, llm.url()))
    };
    Some(opened().map_or_else(|error| Finding::mend(OF, format!("{error:#}")), |text| Finding::ok(OF, text)))
}

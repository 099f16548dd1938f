//! Checks ONNX Runtime, the embedding model and the language model.
//!
//! In: a pipeline. Out: findings; the embedding model is loaded and embeds a word. Sends nothing to a language model.

use anyhow::Result;
use models::{embed::asset_paths, llm::LlmClient};
use types::config::{ModelRunner, Pipeline};

use super::finding::DoctorFinding;

/// Where the runtime is, and whether the model can be loaded.
pub(super) fn embedding_model(pipeline: &Pipeline) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if matches!(pipeline.model().runner, ModelRunner::Onnx | ModelRunner::Catalogue) {
        match asset_paths::library(&pipeline.embed) {
            Ok(path) => findings.push(DoctorFinding::ok("runtime", path.display().to_string())),
            // Without it no model can be loaded, and the model's message would have the same words.
            Err(error) => return vec![DoctorFinding::mend("runtime", error.to_string())],
        }
        if let Ok(path) = asset_paths::model_directory(&pipeline.embed, &pipeline.embed.model) {
            findings.push(DoctorFinding::ok("model's files", path.display().to_string()));
        }
    }
    findings.push(match ripplemem::check_model(pipeline) {
        Ok(model) => DoctorFinding::ok("model", model),
        Err(error) => DoctorFinding::mend("model", error.to_string()),
    });
    findings
}

/// Whether the language model's key is set.
pub(super) fn language_model(pipeline: &Pipeline) -> Option<DoctorFinding> {
    const OF: &str = "language model";
    if !pipeline.llm.is_set() {
        return None;
    }
    let opened = || -> Result<String> {
        let llm = LlmClient::open(&pipeline.llm, None)?;
        llm.check_key()?;
        Ok(format!("{} at {} (not asked)", pipeline.llm.model, llm.url()))
    };
    Some(
        opened().map_or_else(|error| DoctorFinding::mend(OF, format!("{error:#}")), |text| DoctorFinding::ok(OF, text)),
    )
}

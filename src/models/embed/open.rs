//! The embedder that the pipeline names.
//!
//! In: settings. Out: a loaded model that has embedded one word, so that a file that does not fit is an error now and
//! not at the first turn.

use super::{EmbedError, Embedder, catalogue, endpoint_embedder, fixed_embedder, onnx};
use types::config::{EmbedSettings, ModelRunner, ModelSettings};

/// Loads the model that the pipeline names.
///
/// `model` is the model's entry ([`types::config::Pipeline::model`]).
///
/// # Errors
/// [`EmbedError`] that names the missing or damaged file and every path that was tried, or the nearest
/// known model names.
pub fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Ok(match model.runner {
        ModelRunner::Onnx => Box::new(onnx::OnnxEmbedder::open(settings, model)?),
        ModelRunner::Catalogue if catalogue::is_qwen3(&settings.model) => qwen3(settings, model)?,
        ModelRunner::Catalogue => Box::new(catalogue::CatalogueEmbedder::open(settings, model)?),
        ModelRunner::Endpoint => Box::new(endpoint_embedder::EndpointEmbedder::open(settings, model)?),
        ModelRunner::Fixed => Box::new(fixed_embedder::FixedEmbedder::open(settings, model)),
    })
}

#[cfg(feature = "qwen3")]
fn qwen3(settings: &EmbedSettings, model: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Ok(Box::new(super::qwen3::Qwen3Embedder::open(settings, model)?))
}

#[cfg(not(feature = "qwen3"))]
fn qwen3(settings: &EmbedSettings, _: &ModelSettings) -> Result<Box<dyn Embedder>, EmbedError> {
    Err(EmbedError::NotInBuild { name: settings.model.clone() })
}

#[cfg(all(test, not(feature = "qwen3")))]
mod tests {
    use super::*;
    use crate::embed::tests::settings;

    #[test]
    fn a_model_outside_this_build_names_the_feature_that_adds_it() {
        for name in ["Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding-8b"] {
            let (settings, model) = settings(name);
            let error = open(&settings, &model).err().expect("not in this build").to_string();
            let expected = [name, "--features qwen3", "runner = \"endpoint\", and served"];
            assert!(expected.iter().all(|words| error.contains(words)), "{error}");
        }
    }
}

//! The identity of a model: a name, and a hash of everything that a vector depends on.
//!
//! In: the runner with its version, hashes of the model's files, and the settings that change a
//! vector. Out: a [`ModelRef`]. It is recorded with every vector, and vectors of different
//! identities are never compared.

use types::{config::ModelSettings, model::ModelRef};

/// The model's identity.
///
/// `runner` names the code that pools, with a version; `weights` are hashes of the model's files.
pub(super) fn model_ref(name: &str, runner: &str, weights: &[&str], model: &ModelSettings) -> ModelRef {
    let pooling = format!("{:?}", model.pooling);
    let limit = format!("{}{}", model.max_tokens, if model.alone { " alone" } else { "" });
    let settings = [runner, &pooling, &limit, &model.text_prefix, &model.query_prefix, &model.turn_template];
    let mut hash = blake3::Hasher::new();
    for field in settings.into_iter().chain(weights.iter().copied()) {
        hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    ModelRef { name: name.to_owned(), hash: hash.finalize().to_hex()[..32].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::tests::settings;
    use types::config::TokenPooling;

    #[test]
    fn every_setting_that_changes_a_vector_changes_the_hash() {
        let (_, base) = settings("fixed");
        let of = |change: fn(&mut ModelSettings)| {
            let mut model = base.clone();
            change(&mut model);
            model_ref("m", "onnx/1", &["weights"], &model).hash
        };
        let same = of(|_| {});
        assert_eq!(same, of(|m| m.semantic_threshold = 0.9));
        let changed = [
            of(|m| m.max_tokens = 128),
            of(|m| m.alone = true),
            of(|m| m.text_prefix = "passage: ".to_owned()),
            of(|m| m.query_prefix = "passage: ".to_owned()),
            of(|m| m.turn_template = "{text}".to_owned()),
            of(|m| m.pooling = TokenPooling::Cls),
            model_ref("m", "onnx/1", &["other"], &base).hash,
            model_ref("m", "onnx/2", &["weights"], &base).hash,
        ];
        let distinct: std::collections::BTreeSet<_> = changed.iter().chain([&same]).collect();
        assert_eq!(distinct.len(), changed.len() + 1);
    }
}

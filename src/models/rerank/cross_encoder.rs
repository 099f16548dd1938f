//! A cross-encoder on ONNX Runtime.
//!
//! In: a question and a passage. Out: their logit. Each pair runs in a pass by itself: in 8 bits, other pairs of a
//! batch would change its logit, and padding costs more than batches save. The question is never cut; a passage that is
//! too long is. The model's files are only read; a damaged file is an error that names it.

use std::path::Path;

use ort::session::Session;
use tokenizers::Tokenizer;

use super::RerankError;
use crate::embed::{
    EmbedError, MODEL_FILE, TOKENIZER_FILE, asset_paths, environment, load_session, read_tokenizer, session_inputs,
    setup, sha256,
};
use types::{config::EmbedSettings, model::ModelRef};

/// The most tokens of a pair, special tokens included.
const MAX_TOKENS: usize = 512;
/// The most tokens of a question: a quarter of the pair is left for the passage and the special tokens.
const QUESTION_TOKENS: usize = 384;

/// A loaded model.
pub(super) struct CrossEncoder {
    model: ModelRef,
    tokenizer: Tokenizer,
    session: Session,
    /// Whether the model has an input for token types.
    token_types: bool,
    output: String,
}

impl CrossEncoder {
    /// Loads the runtime, the model and its tokenizer. A model whose hash `setup` knows must have it.
    pub(super) fn open(settings: &EmbedSettings, name: &str) -> Result<Self, RerankError> {
        let environment = environment(&asset_paths::library(settings)?)?;
        let directory = asset_paths::model_directory(settings, name)?;
        let (file, tokenizer_file) = (directory.join(MODEL_FILE), directory.join(TOKENIZER_FILE));
        for needed in [&file, &tokenizer_file] {
            if !needed.is_file() {
                let what = format!("a file of the model {name:?}");
                return Err(EmbedError::Missing { what, searched: vec![needed.clone()] }.into());
            }
        }
        let damaged = |path: &Path, problem: String| EmbedError::Damaged { path: path.to_owned(), problem };
        let hash = sha256(&file)?;
        if let Some(expected) = setup::reranker_sha256(name).filter(|expected| *expected != hash) {
            return Err(damaged(&file, format!("has SHA-256 {hash}, and {name} has {expected}")).into());
        }
        let session = load_session(environment, &file, 1);
        let session = session.map_err(|e| damaged(&file, format!("is not a model that can be run ({e})")))?;
        let (tokenizer, _, tokenizer_hash) = read_tokenizer(&tokenizer_file)?;

        let named = |name: &str| session.inputs().iter().any(|input| input.name() == name);
        if !named("input_ids") || !named("attention_mask") {
            return Err(damaged(&file, "is not a cross-encoder: no input_ids or attention_mask".to_owned()).into());
        }
        let token_types = named("token_type_ids");
        let output = session.outputs().first().map(|output| output.name().to_owned());
        let output = output.ok_or_else(|| damaged(&file, "has no output".to_owned()))?;
        let hash = blake3::hash(format!("cross-encoder/1 {hash} {tokenizer_hash}").as_bytes()).to_hex();
        let model = ModelRef { name: name.to_owned(), hash: hash[..32].to_owned() };
        let mut opened = Self { model, tokenizer, session, token_types, output };
        // The first run shows that the files fit each other.
        opened.logit("Ready?", "Yes.").map_err(|e| damaged(&file, format!("does not run ({e})")))?;
        Ok(opened)
    }

    /// The model's name, and the hash of its files.
    pub(super) fn model(&self) -> &ModelRef {
        &self.model
    }

    /// How well a passage answers a question.
    pub(super) fn logit(&mut self, question: &str, passage: &str) -> Result<f32, RerankError> {
        let name = &self.model.name;
        let failed = |problem: String| RerankError::Model { model: name.clone(), problem };
        let pair = self.tokenizer.encode((question, passage), true).map_err(|e| failed(e.to_string()))?;
        let (tokens, most) = (pair.get_sequence_ids().iter().filter(|of| **of == Some(0)).count(), QUESTION_TOKENS);
        if tokens > most {
            return Err(RerankError::LongQuestion { tokens, most });
        }
        let (ids, mask, types) = (cut(pair.get_ids()), cut(pair.get_attention_mask()), cut(pair.get_type_ids()));
        let shape = [1, ids.len()];
        let run_failed = |e: ort::Error| failed(e.to_string());
        let types = self.token_types.then_some(types.as_slice());
        let inputs = session_inputs(shape, &ids, &mask, types).map_err(run_failed)?;
        let outputs = self.session.run(inputs).map_err(run_failed)?;
        let logits = outputs.get(&self.output).ok_or_else(|| failed(format!("no output {}", self.output)))?;
        let (shape, logits) = logits.try_extract_tensor::<f32>().map_err(run_failed)?;
        match logits {
            [logit] => Ok(*logit),
            _ => Err(failed(format!("output of shape {shape:?} for one pair; one logit is needed"))),
        }
    }
}

/// Of a pair that is too long, the end of the passage is left out, but not the special token that closes it.
fn cut(pair: &[u32]) -> Vec<i64> {
    let (kept, closing) = match pair {
        [kept @ .., closing] if pair.len() > MAX_TOKENS => (kept.get(..MAX_TOKENS - 1).unwrap_or(kept), Some(closing)),
        _ => (pair, None),
    };
    kept.iter().chain(closing).map(|id| i64::from(*id)).collect()
}

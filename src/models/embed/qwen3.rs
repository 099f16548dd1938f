//! Qwen3-Embedding on this machine, with fastembed and candle.
//!
//! In: texts with spans. Out: their vectors, from one pass for the text and one for each span. A vector is the last
//! layer's state of the token that ends the text, scaled to length one. Every text runs alone: in a batch, even texts
//! of equal length change each other's last digits. The files are those of the published model, read from a directory
//! on this machine; nothing is downloaded. The weights are kept as 32-bit floats, 4 bytes per parameter, whatever type
//! the files use.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use candle_core::safetensors::BufferedSafetensors;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use fastembed::{Qwen3Config, Qwen3Model, Qwen3TextEmbedding};
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

use super::asset_paths::{self, TOKENIZER_FILE};
use super::local_texts::embed_by_text;
use super::model_files::{ModelFiles, last_segment};
use super::model_identity::model_ref;
use super::spans::{embed_separately, question_vector};
use super::truncated_texts::TruncationKind;
use super::{EmbedError, EmbeddedText, Embedder};
use endpoint::SuspectTexts;
use types::config::{EmbedSettings, ModelSettings};
use types::model::{ModelRef, SpannedText, Vector};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// Lists the files of weights that are split among several files.
const SHARDS: &str = "model.safetensors.index.json";

/// A loaded model.
pub(super) struct Qwen3Embedder {
    model: ModelRef,
    settings: ModelSettings,
    dimensions: usize,
    runner: Qwen3TextEmbedding,
    /// The threads of one pass.
    threads: rayon::ThreadPool,
    suspects: SuspectTexts,
}

impl Qwen3Embedder {
    /// Loads the model's files and checks that they fit each other.
    pub(super) fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let name = &settings.model;
        let directory = asset_paths::first_model_directory(settings, &[name, last_segment(name)])?;
        let damaged = |file: &str, problem: String| EmbedError::Damaged { path: directory.join(file), problem };
        let mut read = ModelFiles::new(&directory, name);
        let config = read_config(&read.read(CONFIG)?).map_err(|problem| damaged(CONFIG, problem))?;
        let tokenizer = read_tokenizer(&read.read(TOKENIZER_FILE)?, model.max_tokens, config.vocab_size)
            .map_err(|problem| damaged(TOKENIZER_FILE, problem))?;
        let weights = read_weights(&mut read, &directory, name)?;
        let dimensions = config.hidden_size;
        let unusable = |problem: String| EmbedError::Damaged { path: directory.clone(), problem };
        let network = Qwen3Model::new(config, weights)
            .map_err(|e| unusable(format!("the weights are not those of its {CONFIG} ({})", first_line(&e))))?;
        let failed = |problem: String| EmbedError::Model { model: name.clone(), problem };
        let threads = rayon::ThreadPoolBuilder::new().num_threads(settings.threads);
        let hashes: Vec<&str> = read.hashes.iter().map(String::as_str).collect();
        let mut opened = Self {
            model: model_ref(name, "fastembed/7 qwen3", &hashes, model),
            settings: model.clone(),
            dimensions,
            runner: Qwen3TextEmbedding::new(network, tokenizer),
            threads: threads.build().map_err(|e| failed(format!("its threads do not start ({e})")))?,
            suspects: SuspectTexts::default(),
        };
        let probe = opened.embed_query("ready").map_err(|e| unusable(format!("does not run ({e})")))?;
        if probe.len() != dimensions || probe.floats().iter().any(|x| !x.is_finite()) {
            return Err(unusable(format!("does not return vectors of {dimensions} numbers")));
        }
        Ok(opened)
    }

    /// Vectors in the order of `texts`.
    fn run(&self, texts: &[String]) -> Result<Vec<Vector>, EmbedError> {
        let failed = |problem: String| EmbedError::Model { model: self.model.name.clone(), problem };
        let one = |text: &String| {
            let found = self.runner.embed(&[text]).map_err(|e| failed(first_line(&e)))?.pop();
            found.map(Vector::from).ok_or_else(|| failed("no vector for a text".to_owned()))
        };
        self.threads.install(|| texts.iter().map(one).collect())
    }
}

impl Embedder for Qwen3Embedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError> {
        let (name, prefix) = (&self.model.name, &self.settings.text_prefix);
        embed_separately(texts, prefix, |plain| {
            embed_by_text(name, &self.suspects, plain, prefix.len(), TruncationKind::Beginning, &mut |texts| {
                self.run(texts)
            })
        })
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let (name, prefix) = (&self.model.name, &self.settings.query_prefix);
        let text = [format!("{prefix}{text}")];
        question_vector(
            name,
            embed_by_text(name, &self.suspects, &text, prefix.len(), TruncationKind::Ends, &mut |texts| {
                self.run(texts)
            })?,
        )
    }
}

/// The error's first line, because candle may add a backtrace.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn read_config(bytes: &[u8]) -> Result<Qwen3Config, String> {
    let config: Qwen3Config =
        serde_json::from_slice(bytes).map_err(|e| format!("is not the configuration of a Qwen3 model ({e})"))?;
    // fastembed divides by the number of heads, rotates a head's numbers in pairs, and pools in the last layer.
    let counts = [config.num_attention_heads, config.num_key_value_heads, config.num_hidden_layers];
    if counts.contains(&0) || config.head_dim() == 0 || !config.head_dim().is_multiple_of(2) {
        return Err("has no layers, no heads, or a head_dim that is not even".to_owned());
    }
    Ok(config)
}

/// The tokenizer that cuts at `max_tokens` and ends every text with the token that is pooled.
fn read_tokenizer(bytes: &[u8], max_tokens: usize, rows: usize) -> Result<Tokenizer, String> {
    let mut file: Value = serde_json::from_slice(bytes).map_err(|e| format!("is not a tokenizer ({e})"))?;
    // The larger models have no rows for the last added tokens, such as `<think>`, so these are read as text.
    if let Some(added) = file.get_mut("added_tokens").and_then(Value::as_array_mut) {
        added.retain(|token| token["id"].as_u64().is_some_and(|id| id < rows as u64));
    }
    let mut tokenizer = Tokenizer::from_bytes(file.to_string()).map_err(|e| format!("is not a tokenizer ({e})"))?;
    tokenizer.with_padding(None);
    let cut = TruncationParams { max_length: max_tokens, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(cut)).map_err(|e| format!("cannot cut at {max_tokens} tokens ({e})"))?;
    let end = tokenizer.encode_fast("", true).map_err(|e| e.to_string())?;
    if end.is_empty() {
        return Err("adds no token at the end of a text, but Qwen3-Embedding reads the vector there".to_owned());
    }
    Ok(tokenizer)
}

/// The weights as 32-bit floats, one file in memory at a time.
fn read_weights(read: &mut ModelFiles<'_>, directory: &Path, model: &str) -> Result<VarBuilder<'static>, EmbedError> {
    let damaged = |file: &str, problem: String| EmbedError::Damaged { path: directory.join(file), problem };
    let files = if directory.join(WEIGHTS).is_file() {
        BTreeSet::from([WEIGHTS.to_owned()])
    } else if directory.join(SHARDS).is_file() {
        let index: WeightFileIndex = serde_json::from_slice(&read.read(SHARDS)?)
            .map_err(|e| damaged(SHARDS, format!("names no files of weights ({e})")))?;
        index.weight_map.into_values().collect()
    } else {
        let searched = [WEIGHTS, SHARDS].map(|file| directory.join(file)).to_vec();
        return Err(EmbedError::Missing { what: format!("the weights of the model {model:?}"), searched });
    };
    let mut tensors: HashMap<String, Tensor> = HashMap::new();
    for file in &files {
        let unreadable =
            |e: candle_core::Error| damaged(file, format!("is not a file of weights ({})", first_line(&e)));
        let shard = BufferedSafetensors::new(read.read(file)?).map_err(unreadable)?;
        for (name, _) in shard.tensors() {
            let tensor = shard.load(&name, &Device::Cpu).and_then(|t| t.to_dtype(DType::F32)).map_err(unreadable)?;
            // Files that were saved with the language model's head prefix the network's names with `model.`.
            tensors.insert(name.strip_prefix("model.").unwrap_or(&name).to_owned(), tensor);
        }
    }
    Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
}

#[derive(serde::Deserialize)]
struct WeightFileIndex {
    weight_map: HashMap<String, String>,
}

#[cfg(test)]
#[path = "qwen3_tests.rs"]
mod tests;

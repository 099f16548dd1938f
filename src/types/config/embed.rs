//! `[embed]`: how texts become vectors, and what each model needs (decision 54).

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{familiarity::CosineScale, llm::check_url};
use crate::model::Language;

/// How texts become vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedSettings {
    /// A name in `[embed.models]`, of fastembed's catalogue, or of a Qwen3-Embedding model. Vectors of
    /// different models do not compare: change it with `ripplemem reembed`.
    pub model: String,
    /// Texts in one pass of the model, after sorting by length.
    #[schemars(range(min = 1, max = 1_024))]
    pub batch: usize,
    /// Threads of one pass, or passes at the same time for a model that takes one text at a time.
    #[schemars(range(min = 1, max = 256))]
    pub threads: usize,
    /// Most turns that are embedded together when many are read. More sort better by length and wait
    /// longer for the first result.
    #[schemars(range(min = 1, max = 65_536))]
    pub read_turns: usize,
    /// Neighbouring turns of a unit that share one pass, so that the vector of each depends on the
    /// others. 0: the whole unit in one pass.
    #[schemars(range(min = 0, max = 1_000))]
    pub block_turns: usize,
    /// In a turn of two or more sentences, a sentence of at least this many words gets its own vector
    /// in place of the turn's. Larger values make fewer vectors. 0: no sentence does.
    #[schemars(range(min = 0, max = 1_000))]
    pub sentence_words: usize,
    /// Whether each turn gets a second vector, together with the turn before it.
    pub pairs: bool,
    /// The precision in which vectors are stored.
    pub stored: VectorPrecision,
    /// ONNX Runtime's shared library, relative to the pipeline file; without it the usual places are
    /// searched (`ripplemem validate` prints which one is used).
    #[serde(default)]
    pub onnxruntime: Option<PathBuf>,
    /// Directory with one directory for each model, relative to the pipeline file; without it the
    /// usual places are searched.
    #[serde(default)]
    pub models_directory: Option<PathBuf>,
    /// Settings of one model, by name. Keys are laid over the built-in entry of that name.
    pub models: BTreeMap<String, ModelSettings>,
}

/// The precision in which vectors are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VectorPrecision {
    /// One byte a component, rounded before anything uses the vector.
    Int8,
    /// As the model returned it: four bytes a component.
    F32,
}

/// The settings of one embedding model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// What runs the model.
    pub runner: ModelRunner,
    /// The endpoint, for `runner = "endpoint"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedModelSettings>,
    /// How the vectors of tokens become one.
    #[serde(default)]
    pub pooling: TokenPooling,
    /// Prefix of every text that is remembered.
    #[serde(default)]
    pub text_prefix: String,
    /// Prefix of every question.
    #[serde(default)]
    pub query_prefix: String,
    /// Longest text; the rest is cut off.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: usize,
    /// How a turn is written for the model; `{speaker}` and `{text}` are replaced.
    #[serde(default = "default_turn_template")]
    pub turn_template: String,
    /// Whether each text runs in a pass by itself. Needed for quantised models, where the other texts
    /// of a batch would change its vector.
    #[serde(default)]
    pub alone: bool,
    /// SHA-256 of the model file; a file with another hash is refused.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Least cosine of a semantic edge. A larger value makes fewer, stronger edges; `ripplemem
    /// calibrate` finds it.
    #[schemars(range(min = -1, max = 1))]
    pub semantic_threshold: f64,
    /// What a cosine of 1 counts for in the scores of questions beside one of the default model, which has 1. A model
    /// whose cosines lie closer together needs a larger one; `ripplemem-eval calibrate` finds it.
    #[serde(default = "default_cosine_factor")]
    #[schemars(range(min = 0, max = 100))]
    pub cosine_factor: f64,
    /// What is added to it, so that a unit that tells nothing about a question counts the same by every model.
    #[serde(default)]
    #[schemars(range(min = -100, max = 100))]
    pub cosine_offset: f64,
    /// What a vector's components are multiplied by before they are rounded to bytes, for `stored = "int8"`. A model
    /// with components that a byte would cut off needs one below 1; `ripplemem-eval calibrate` finds it. Cosines do not
    /// depend on a vector's length.
    #[serde(default = "default_byte_factor")]
    #[schemars(range(min = 0.01, max = 100))]
    pub byte_factor: f64,
    /// Languages that the model reads, by their codes of ISO 639-1; empty: every language. A bank that is mostly in
    /// another one gets a notice.
    #[serde(default)]
    pub languages: Vec<Language>,
    /// Cosine at which a unit tells nothing about a question: 0 on the scale of sufficiency.
    #[schemars(range(min = -1, max = 1))]
    pub question_floor: f64,
    /// Cosine at which a unit fully answers a question: 1 on the scale of sufficiency.
    #[schemars(range(min = -1, max = 1))]
    pub question_ceiling: f64,
}

/// The endpoint that serves an embedding model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServedModelSettings {
    /// Base URL of the endpoint, without `/embeddings`, such as `http://127.0.0.1:8000/v1`.
    pub endpoint: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// Name of the environment variable that holds the API key; empty: no key is sent.
    #[serde(default)]
    pub key_env: String,
    /// Timeout of one request.
    #[serde(default = "default_timeout_seconds")]
    #[schemars(range(min = 1, max = 3_600))]
    pub timeout_seconds: u64,
    /// Retries after a failure that may pass, such as a timeout or status 429.
    #[serde(default = "default_retries")]
    #[schemars(range(min = 0, max = 20))]
    pub retries: u32,
}

fn default_timeout_seconds() -> u64 {
    60
}

fn default_retries() -> u32 {
    8
}

fn default_max_tokens() -> usize {
    256
}

fn default_cosine_factor() -> f64 {
    1.0
}

fn default_byte_factor() -> f64 {
    1.0
}

fn default_turn_template() -> String {
    "{speaker} said, \"{text}\"".to_owned()
}

/// What runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Runner")]
pub enum ModelRunner {
    /// ONNX Runtime, directly: one pass gives a vector for every span.
    Onnx,
    /// A model of fastembed's catalogue: one pass a span.
    Catalogue,
    /// An endpoint that speaks OpenAI's embeddings protocol: one text a span.
    Endpoint,
    /// No model: a vector computed from the hashes of the words, for tests.
    Fixed,
}

/// How the vectors of tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Pooling")]
pub enum TokenPooling {
    /// Their mean over the span.
    #[default]
    Mean,
    /// The vector of the first token, for the whole text only.
    Cls,
}

impl EmbedSettings {
    /// The settings of the chosen model. A name without an entry is one of fastembed's catalogue.
    pub(super) fn chosen_model(&self) -> ModelSettings {
        self.models.get(&self.model).cloned().unwrap_or_else(|| ModelSettings {
            runner: ModelRunner::Catalogue,
            served: None,
            pooling: TokenPooling::Mean,
            text_prefix: String::new(),
            query_prefix: String::new(),
            max_tokens: default_max_tokens(),
            turn_template: default_turn_template(),
            alone: false,
            sha256: None,
            semantic_threshold: 0.85,
            cosine_factor: default_cosine_factor(),
            cosine_offset: 0.0,
            byte_factor: default_byte_factor(),
            languages: Vec::new(),
            question_floor: 0.5,
            question_ceiling: 0.85,
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let model = self.chosen_model();
        model.check(&self.model)
    }
}

impl ModelSettings {
    /// Whether it reads a language.
    #[must_use]
    pub fn reads(&self, language: Language) -> bool {
        self.languages.is_empty() || self.languages.contains(&language)
    }

    /// How its cosines count in the scores of questions.
    #[must_use]
    pub fn cosines(&self) -> CosineScale {
        CosineScale { factor: self.cosine_factor, offset: self.cosine_offset }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if self.question_ceiling < self.question_floor {
            return Err(format!(
                "embed.models.{name}.question_ceiling: {} is below question_floor, {}; write a larger number",
                self.question_ceiling, self.question_floor
            ));
        }
        let key = format!("embed.models.{name}.served");
        match (&self.served, self.runner) {
            (None, ModelRunner::Endpoint) => {
                Err(format!("{key}: missing, and runner = \"endpoint\" needs it; write its endpoint and model"))
            }
            (Some(_), ModelRunner::Onnx | ModelRunner::Catalogue | ModelRunner::Fixed) => Err(format!(
                "{key}: only a model with runner = \"endpoint\" is served elsewhere; leave this out, or set that runner"
            )),
            (Some(served), ModelRunner::Endpoint) => {
                check_url(&format!("{key}.endpoint"), &served.endpoint)?;
                if served.model.trim().is_empty() {
                    return Err(format!("{key}.model: missing; write the name that the endpoint uses for the model"));
                }
                if !(1..=3_600).contains(&served.timeout_seconds) || served.retries > 20 {
                    return Err(format!("{key}: timeout_seconds must be within 1 to 3600, and retries within 0 to 20"));
                }
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }
}

//! `[llm]`: the language model, if one is used, and what may be spent on it.
//!
//! Without an endpoint there is no model, and no other setting may ask for one. The key is never in
//! a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of `extractor`, `planner` and `cues_by` that uses no language model.
pub const RULES: &str = "rules";
/// The value that uses one.
pub const LLM: &str = "llm";

/// The language model: an OpenAI-compatible chat endpoint, and what may be spent on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmSettings {
    /// Base URL of the endpoint, without `/chat/completions`, such as `http://127.0.0.1:8000/v1`;
    /// empty: no language model.
    pub endpoint: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// Name of the environment variable that holds the API key; empty: no key is sent.
    pub key_env: String,
    /// Timeout of one request, from connecting to the last byte.
    #[schemars(range(min = 1, max = 3_600))]
    pub timeout_seconds: u64,
    /// Time that one question may wait for the model, over all its requests. After it the rules
    /// answer instead.
    #[schemars(range(min = 1, max = 3_600))]
    pub question_seconds: u64,
    /// Retries after a failure that may pass, such as a timeout or status 429.
    #[schemars(range(min = 0, max = 20))]
    pub retries: u32,
    /// Most requests at the same time. More finish an extraction sooner, up to the endpoint's limit.
    #[schemars(range(min = 1, max = 256))]
    pub in_flight: usize,
    /// Rate limit, prompts and completions together; 0: no limit.
    pub tokens_per_minute: u32,
    /// Most tokens of one completion (`max_tokens` of a request), for each kind of request.
    pub completion_tokens: CompletionTokens,
    /// The model's context in tokens, prompt and completion together; 0: not known. A window that is
    /// longer is sent in several requests; a request that cannot be made to fit is not sent.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub context_tokens: u32,
    /// Whether the schemas that are sent limit the length of strings (`maxLength`). `false` for an
    /// endpoint that refuses such schemas; replies are checked for it all the same.
    pub bounded_strings: bool,
    /// Budget in tokens over the life of the cache of responses. A request that might exceed it is
    /// not sent. 0: no limit.
    pub cap_tokens: u64,
    /// The same budget in the currency of the prices. 0: no limit.
    pub cap_cost: f64,
    /// Price of a million prompt tokens; 0: not known.
    pub prompt_price: f64,
    /// Price of a million completion tokens; 0: not known.
    pub completion_price: f64,
    /// Directory of the cache of responses, relative to the pipeline file; without it a directory
    /// in `log.directory`.
    #[serde(default)]
    pub cache_directory: Option<PathBuf>,
}

/// Most tokens of one completion. A model that thinks before it writes needs more than the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionTokens {
    /// The units of a window. A short window gets less: 512 tokens, and three for each of its turns'.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub extract: u32,
    /// The cues of a question.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub cues: u32,
    /// A plan.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub plan: u32,
    /// An answer with its reasoning.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub answer: u32,
    /// A verdict of an evaluation.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub judge: u32,
    /// The edges of a unit, in an evaluation.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub edges: u32,
}

impl LlmSettings {
    /// Whether there is a model.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.endpoint.is_empty()
    }

    /// The cost of these tokens, in the currency of the prices; 0 if no price is given.
    #[must_use]
    pub fn cost(&self, prompt_tokens: u64, completion_tokens: u64) -> f64 {
        (prompt_tokens as f64 * self.prompt_price + completion_tokens as f64 * self.completion_price) / 1e6
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_set() {
            check_url("llm.endpoint", &self.endpoint)?;
            if self.model.trim().is_empty() {
                return Err("llm.model: missing; write the name that the endpoint uses for the model".to_owned());
            }
        }
        for (key, value) in [
            ("llm.cap_cost", self.cap_cost),
            ("llm.prompt_price", self.prompt_price),
            ("llm.completion_price", self.completion_price),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(format!("{key}: {value} is not an amount; write 0 or more"));
            }
        }
        if self.cap_cost > 0.0 && self.prompt_price + self.completion_price <= 0.0 {
            return Err("llm.cap_cost: cannot be kept without prices; write llm.prompt_price and \
                        llm.completion_price, each of a million tokens, or use llm.cap_tokens"
                .to_owned());
        }
        Ok(())
    }

    /// What is wrong with a setting that chooses between the rules and the model.
    pub(super) fn check_rules_or_model(&self, key: &str, value: &str) -> Result<(), String> {
        if ![RULES, LLM].contains(&value) {
            return Err(format!("{key}: {value:?} is not known; write \"rules\" or \"llm\""));
        }
        if value == LLM && !self.is_set() {
            return Err(format!(
                "llm.endpoint: missing, and {key} = \"llm\" needs it; write the URL without /chat/completions, such \
                 as \"http://127.0.0.1:8000/v1\", or {key} = \"rules\""
            ));
        }
        Ok(())
    }
}

/// What is wrong with the URL of an endpoint.
pub(super) fn check_url(key: &str, url: &str) -> Result<(), String> {
    let host = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let Some(rest) = host.filter(|r| !r.is_empty() && !r.starts_with('/') && !r.contains(char::is_whitespace)) else {
        return Err(format!("{key}: {url:?} is not a URL; write http://HOST:PORT/v1 or https://HOST/v1"));
    };
    if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
        return Err(format!(
            "{key}: holds a user name or a key, which messages would repeat; write the key into an environment \
             variable, and its name into key_env"
        ));
    }
    Ok(())
}

//! The settings of a language model, and of an embedding model that is served elsewhere.
//!
//! In: the table `llm`; an entry of `embed.models`. Out: checked values. Without an endpoint there is no model, and
//! nothing may ask for one; the key itself never stands in a file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{LogKind, ModelSettings, Pipeline, Role, Runner};

/// What extracts, plans and reads cues without a language model.
pub const RULES: &str = "rules";
/// What does so with one.
pub const LLM: &str = "llm";

/// An OpenAI-compatible chat endpoint, and what may be spent on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmSettings {
    /// The URL in front of `/chat/completions`, such as `http://127.0.0.1:8000/v1`; empty: none.
    pub endpoint: String,
    /// The model, as the endpoint names it.
    pub model: String,
    /// The environment variable that holds the key; empty: no key is sent.
    pub key_env: String,
    /// Seconds that one request may take, from connecting to the last byte.
    pub timeout_seconds: u64,
    /// Seconds that a question waits for the model in all, cues and plans together, before the
    /// rules take its place.
    pub question_seconds: u64,
    /// Attempts after the first, where a failure may pass.
    pub retries: u32,
    /// Requests at the same time, at most.
    pub in_flight: usize,
    /// Tokens of prompts and completions that may be asked for in a minute; 0: no limit.
    pub tokens_per_minute: u32,
    /// Tokens of one completion, at most.
    pub most_completion_tokens: u32,
    /// Tokens that may be spent in all, as the cache of responses counts them; 0: no limit.
    pub cap_tokens: u64,
    /// What may be spent in all, in the currency of the prices; 0: no limit.
    pub cap_cost: f64,
    /// The price of a million tokens of prompts; 0: not known.
    pub prompt_price: f64,
    /// The price of a million tokens of completions; 0: not known.
    pub completion_price: f64,
    /// Where responses are kept, relative to the pipeline file; absent: with the vectors,
    /// in the log's directory.
    #[serde(default)]
    pub cache_directory: Option<PathBuf>,
}

impl LlmSettings {
    /// Whether there is a model.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.endpoint.is_empty()
    }

    /// What so many tokens cost, in the currency of the prices; 0 where none is given.
    #[must_use]
    pub fn cost(&self, prompt_tokens: u64, completion_tokens: u64) -> f64 {
        (prompt_tokens as f64 * self.prompt_price + completion_tokens as f64 * self.completion_price) / 1e6
    }
}

impl Pipeline {
    /// Where this process keeps responses of the model: nowhere, unless it extracts.
    #[must_use]
    pub fn responses(&self) -> Option<PathBuf> {
        let extracts = self.log.kind == LogKind::Embedded || self.roles.contains(&Role::Extract);
        extracts.then(|| self.llm_directory())
    }

    /// Where responses of the model are kept.
    #[must_use]
    pub fn llm_directory(&self) -> PathBuf {
        self.llm.cache_directory.clone().unwrap_or_else(|| self.log.directory.join("cache"))
    }
}

/// What is wrong with the model's settings, or with what asks for a model.
pub(super) fn check(pipeline: &Pipeline) -> Result<(), String> {
    let llm = &pipeline.llm;
    for (key, value) in [
        ("extract.extractor", &pipeline.extract.extractor),
        ("recall.planner", &pipeline.recall.planner),
        ("recall.cues_by", &pipeline.recall.cues_by),
    ] {
        if ![RULES, LLM].contains(&value.as_str()) {
            return Err(format!("{key}: {value:?} is not known; write \"rules\" or \"llm\""));
        }
        if value == LLM && !llm.is_set() {
            return Err(format!(
                "llm.endpoint: missing, and {key} = \"llm\" needs it; write the URL in front of /chat/completions, such \
                 as \"http://127.0.0.1:8000/v1\", or {key} = \"rules\""
            ));
        }
    }
    if llm.is_set() {
        check_url("llm.endpoint", &llm.endpoint)?;
        if llm.model.trim().is_empty() {
            return Err("llm.model: missing; write the model's name as the endpoint has it".to_owned());
        }
    }
    for (key, value, low, high) in [
        ("llm.timeout_seconds", llm.timeout_seconds, 1, 3_600),
        ("llm.question_seconds", llm.question_seconds, 1, 3_600),
        ("llm.retries", u64::from(llm.retries), 0, 20),
        ("llm.in_flight", llm.in_flight as u64, 1, 256),
        ("llm.most_completion_tokens", u64::from(llm.most_completion_tokens), 16, 1_000_000),
    ] {
        if !(low..=high).contains(&value) {
            return Err(format!("{key}: {value} is not within {low} to {high}"));
        }
    }
    for (key, value) in [
        ("llm.cap_cost", llm.cap_cost),
        ("llm.prompt_price", llm.prompt_price),
        ("llm.completion_price", llm.completion_price),
    ] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(format!("{key}: {value} is not an amount; write 0 or more"));
        }
    }
    if llm.cap_cost > 0.0 && llm.prompt_price + llm.completion_price <= 0.0 {
        return Err("llm.cap_cost: cannot be kept without prices; write llm.prompt_price and llm.completion_price, \
                    each of a million tokens, or use llm.cap_tokens"
            .to_owned());
    }
    Ok(())
}

/// What is wrong with the URL of an endpoint.
fn check_url(key: &str, url: &str) -> Result<(), String> {
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

/// What is wrong with how a model is served.
pub(super) fn check_served(name: &str, model: &ModelSettings) -> Result<(), String> {
    let key = format!("embed.models.{name}.served");
    match (&model.served, model.runner) {
        (None, Runner::Endpoint) => {
            Err(format!("{key}: missing, and runner = \"endpoint\" needs it; write its endpoint and model"))
        }
        (Some(_), Runner::Onnx | Runner::Catalogue | Runner::Fixed) => {
            Err(format!("{key}: only runner = \"endpoint\" is served elsewhere; leave it out, or set that"))
        }
        (Some(served), Runner::Endpoint) => {
            check_url(&format!("{key}.endpoint"), &served.endpoint)?;
            if served.model.trim().is_empty() {
                return Err(format!("{key}.model: missing; write the model's name as the endpoint has it"));
            }
            if !(1..=3_600).contains(&served.timeout_seconds) || served.retries > 20 {
                return Err(format!("{key}: timeout_seconds is within 1 to 3600, retries within 0 to 20"));
            }
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

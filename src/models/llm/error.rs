//! Why a language model gave no usable reply.
//!
//! Out: one error for each remedy that a user or a caller has. A message names the endpoint or the setting, never the
//! key.

use std::path::PathBuf;

use endpoint::says_too_long;

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// No endpoint is configured.
    #[error("no language model is configured; set llm.endpoint and llm.model in the pipeline file")]
    NotConfigured,
    /// The program was built without the language model.
    #[error("this build has no language model; build with the feature `llm`, as `cargo build` does")]
    NotBuilt,
    /// The environment variable that should hold the key is not set.
    #[error("llm.key_env: the environment variable {variable} is not set; export the endpoint's key in it")]
    MissingKey {
        /// The variable.
        variable: String,
    },
    /// The endpoint refuses every request: a wrong key, a wrong model name, a used-up quota.
    #[error("{url} refuses model {model:?}: {problem}; check llm.endpoint, llm.model and the key")]
    Permanent {
        /// The endpoint.
        url: String,
        /// The model.
        model: String,
        /// The endpoint's message.
        problem: String,
    },
    /// The endpoint rejects this request: too long, or filtered, or it fails on it again and again while it answers
    /// others.
    #[error("{url} rejects this request: {problem}")]
    Rejected {
        /// The endpoint.
        url: String,
        /// The endpoint's message.
        problem: String,
    },
    /// The request would not fit into the model's context; it was not sent.
    #[error(
        "the {contract} request needs {needed} tokens with its reply, and llm.context_tokens is {context}; it was not \
         sent"
    )]
    TooLong {
        /// The contract's name.
        contract: &'static str,
        /// Tokens of the prompt and of the longest reply, as an upper estimate.
        needed: u64,
        /// The model's context.
        context: u32,
    },
    /// The endpoint cannot be reached, or is too busy. A later attempt may succeed.
    #[error(
        "{url}: {problem} ({attempts} attempts); check that it is running, or raise llm.timeout_seconds or llm.retries"
    )]
    Unavailable {
        /// The endpoint.
        url: String,
        /// The problem of the last attempt.
        problem: String,
        /// How many attempts were made.
        attempts: u32,
    },
    /// The reply does not match its contract, and neither does the repaired one.
    #[error("the model's {contract} reply is invalid, even after a repair: {problem}")]
    InvalidReply {
        /// The contract's name.
        contract: &'static str,
        /// What is wrong with the reply.
        problem: String,
        /// The last reply.
        reply: String,
    },
    /// The request could exceed a cap on spending.
    #[error(
        "{key} is reached: {spent} of {cap} have been spent, and the next request may need {next}; raise it to continue, \
         paid responses are cached"
    )]
    CapReached {
        /// The setting that holds the cap.
        key: &'static str,
        /// What was spent.
        spent: String,
        /// The most that the next request may cost.
        next: String,
        /// The cap.
        cap: String,
    },
    /// The deadline passed before there was a reply.
    #[error("the model did not answer in time; raise llm.question_seconds or llm.timeout_seconds")]
    Deadline,
    /// The cache of responses cannot be used.
    #[error("{path}: the cache of responses: {problem}")]
    Cache {
        /// The cache's directory.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
}

impl LlmError {
    /// Whether the request is longer than the model's context, either by the estimate before it was sent, or by the
    /// endpoint's message.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        match self {
            Self::TooLong { .. } => true,
            Self::Rejected { problem, .. } => says_too_long(problem, true),
            _ => false,
        }
    }
}

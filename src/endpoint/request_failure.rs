//! What a failed request means for the next one.
//!
//! Out: whether a retry may succeed, when, whether the endpoint may charge for the attempt, and whether the text of the
//! request may be the cause.

use std::time::Duration;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFailure {
    /// A retry may succeed.
    Transient {
        /// What happened.
        problem: String,
        /// The endpoint's `Retry-After`.
        after: Option<Duration>,
        /// The endpoint may have processed the request, and charge for it.
        charged: bool,
        /// Whether its text may be the cause.
        suspicion: TextSuspicion,
    },
    /// This request never succeeds; others may.
    Rejected(String),
    /// No request succeeds until the configuration or the account changes.
    Permanent(String),
}

/// Whether the text of a request may be the cause of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSuspicion {
    /// No: the endpoint did not take the request, or says that it is busy.
    None,
    /// Yes: the endpoint took the request, and failed.
    Text,
    /// Yes, and the failure took the whole timeout.
    SlowText,
}

impl RequestFailure {
    pub(super) fn transient(problem: impl Into<String>, charged: bool, suspicion: TextSuspicion) -> Self {
        Self::Transient { problem: problem.into(), after: None, charged, suspicion }
    }
}

/// Whether an endpoint's message says that a request is longer than its model reads, worded like those of OpenAI, vLLM,
/// llama.cpp, Ollama and Anthropic. Words that may also mean an overload count only if `where_declined`: the status
/// says that this request is the cause.
#[must_use]
pub fn says_too_long(problem: &str, where_declined: bool) -> bool {
    let problem = problem.to_lowercase();
    let clear = [
        "context length",
        "context_length",
        "context size",
        "context window",
        "too large to process",
        "too many tokens",
        "maximum number of tokens",
        "maximum sequence length",
        "input is too long",
        "prompt is too long",
    ];
    clear.iter().any(|words| problem.contains(words)) || (where_declined && problem.contains("too long"))
}

//! What a failed request means for the next one.
//!
//! Out: whether a retry may succeed, when, and whether the endpoint may charge for the attempt.

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
    },
    /// This request never succeeds; others may.
    Rejected(String),
    /// No request succeeds until the configuration or the account changes.
    Permanent(String),
}

impl RequestFailure {
    pub(super) fn transient(problem: impl Into<String>, charged: bool) -> Self {
        Self::Transient { problem: problem.into(), after: None, charged }
    }

    /// A reply that cannot be read: the endpoint has processed the request.
    pub(super) fn unreadable(problem: String) -> Self {
        Self::transient(problem, true)
    }
}

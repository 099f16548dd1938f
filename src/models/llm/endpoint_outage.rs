//! Fails fast while the endpoint is down.
//!
//! In: the outcome of each request, and of the probe that follows one which may have failed because of its text. Out:
//! for a caller with a deadline, the error of an earlier caller that had at least as much time and found the endpoint
//! down a moment ago. A caller with more time, or without a deadline, still tries. A text on which the endpoint fails,
//! or with which it takes too long, stops no other: what counts is how long the probe took.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use super::error::LlmError;
use types::sync;

/// For how long after a failure callers fail fast.
const FAIL_FAST: Duration = Duration::from_secs(10);

/// What is known of the endpoint.
#[derive(Default)]
pub(super) struct EndpointOutage(Mutex<OutageState>);

#[derive(Default)]
struct OutageState {
    /// The last time that the endpoint was found down.
    failure: Option<LastFailure>,
    /// When the last probe was sent.
    probed: Option<Instant>,
}

struct LastFailure {
    at: Instant,
    /// How much time the caller had that found the endpoint down.
    budget: Duration,
    error: LlmError,
}

impl EndpointOutage {
    /// # Errors
    /// The last caller's error, if that caller failed just now with at least `budget`.
    pub(super) fn check(&self, budget: Duration) -> Result<(), LlmError> {
        match &sync::lock(&self.0).failure {
            Some(failed) if failed.at.elapsed() < FAIL_FAST && budget <= failed.budget => Err(failed.error.clone()),
            _ => Ok(()),
        }
    }

    /// The endpoint has answered a request.
    pub(super) fn note_answer(&self) {
        sync::lock(&self.0).failure = None;
    }

    /// The endpoint was found down by a caller with `budget`.
    pub(super) fn note_failure(&self, budget: Duration, error: &LlmError) {
        sync::lock(&self.0).failure = Some(LastFailure { at: Instant::now(), budget, error: error.clone() });
    }

    /// Whether a probe is to be sent now: at most one in the time for which callers fail fast.
    pub(super) fn may_probe(&self) -> bool {
        let mut known = sync::lock(&self.0);
        let is_due = known.probed.is_none_or(|at| at.elapsed() >= FAIL_FAST);
        if is_due {
            known.probed = Some(Instant::now());
        }
        is_due
    }
}

//! Fails fast while the endpoint is down.
//!
//! In: the outcome of each request. Out: for a caller with a deadline, the error of an earlier caller that had at least
//! as much time and found the endpoint down a moment ago. A caller with more time, or without a deadline, still tries.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use super::error::LlmError;
use nouns::sync;

/// For how long after a failure callers fail fast.
const FAIL_FAST: Duration = Duration::from_secs(10);

/// The last time that the endpoint was found down.
#[derive(Default)]
pub(super) struct Outage(Mutex<Option<LastFailure>>);

struct LastFailure {
    at: Instant,
    /// How much time the caller had that found the endpoint down.
    budget: Duration,
    error: LlmError,
}

impl Outage {
    /// # Errors
    /// The last caller's error, if that caller failed just now with at least `budget`.
    pub(super) fn check(&self, budget: Duration) -> Result<(), LlmError> {
        match &*sync::lock(&self.0) {
            Some(failed) if failed.at.elapsed() < FAIL_FAST && budget <= failed.budget => Err(failed.error.clone()),
            _ => Ok(()),
        }
    }

    /// Records how a request of a caller with `budget` ended.
    pub(super) fn record<T>(&self, budget: Duration, outcome: &Result<T, LlmError>) {
        match outcome {
            Ok(_) => *sync::lock(&self.0) = None,
            Err(error @ (LlmError::Unavailable { .. } | LlmError::Deadline)) => {
                *sync::lock(&self.0) = Some(LastFailure { at: Instant::now(), budget, error: error.clone() });
            }
            Err(_) => {}
        }
    }
}

//! What a reader does while the cluster is unavailable: it says so once, and retries.

use std::time::Duration;

use super::state::State;
use ripplemem::log::LogError;

/// Time between two retries.
const RETRY: Duration = Duration::from_millis(500);

/// Counts and reports failed reads.
pub(super) struct ClusterRetry<'s> {
    state: &'s State,
    say: &'s (dyn Fn(&str) + Sync),
    failing: bool,
}

impl<'s> ClusterRetry<'s> {
    pub(super) fn new(state: &'s State, say: &'s (dyn Fn(&str) + Sync)) -> Self {
        Self { state, say, failing: false }
    }

    /// Waits after a failure; only the first in a row is reported.
    pub(super) fn wait(&mut self, error: &LogError) {
        self.state.metrics.read_failures.inc();
        if !self.failing {
            (self.say)(&format!("{error}; trying again"));
        }
        self.failing = true;
        std::thread::sleep(RETRY);
    }

    /// Notes that a read succeeded.
    pub(super) fn reset(&mut self) {
        self.failing = false;
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }
}

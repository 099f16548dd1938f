//! What a reader does while the cluster is unavailable: it reports that once, and tries again after pauses that grow.

use super::log_events;
use std::time::Duration;

use super::service_state::ServiceState;
use logs::LogError;
use types::backoff::Backoff;

/// The pauses between two attempts. Records that arrive in a pause wait for no longer than the longest one.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// Counts and reports failed reads.
pub(super) struct ClusterRetry<'s> {
    state: &'s ServiceState,
    /// What is read, for the log lines.
    what: &'static str,
    pauses: Backoff,
    failing: bool,
}

impl<'s> ClusterRetry<'s> {
    pub(super) fn new(state: &'s ServiceState, what: &'static str) -> Self {
        Self { state, what, pauses: PAUSES, failing: false }
    }

    /// Waits after a failure; only the first in a row is reported.
    pub(super) fn wait(&mut self, error: &LogError) {
        self.state.metrics.read_failures.inc();
        if !self.failing {
            log_events::cluster_unavailable(self.what, error);
        }
        self.failing = true;
        std::thread::sleep(self.pauses.jittered());
    }

    /// Notes that a read succeeded.
    pub(super) fn reset(&mut self) {
        if std::mem::take(&mut self.failing) {
            log_events::cluster_recovered(self.what);
            self.pauses.reset();
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }
}

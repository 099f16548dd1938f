//! Until when an endpoint asks not to be called.
//!
//! In: the `Retry-After` of any request to it. Out: how long it still lasts, for every request. A later header never
//! shortens an earlier one. Never waits itself.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use types::sync;

/// The end of an endpoint's `Retry-After`.
#[derive(Debug, Default)]
pub struct RetryAfterGate(Mutex<Option<Instant>>);

impl RetryAfterGate {
    /// Takes a `Retry-After` that has just arrived.
    pub fn postpone(&self, after: Duration) {
        let at = Instant::now() + after;
        let mut not_before = sync::lock(&self.0);
        *not_before = (*not_before).max(Some(at));
    }

    /// How long it still lasts; zero if it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let not_before = sync::lock(&self.0);
        not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_end_counts() {
        let not_before = RetryAfterGate::default();
        assert_eq!(not_before.remaining(), Duration::ZERO);
        not_before.postpone(Duration::from_secs(60));
        not_before.postpone(Duration::from_secs(1));
        assert!(not_before.remaining() > Duration::from_secs(50), "{:?}", not_before.remaining());
    }
}

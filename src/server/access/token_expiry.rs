//! Whether a token has expired, also where the clock was set back.
//!
//! In: the time from which a token is refused, and a time that has been. Out: whether that time has come. It has come
//! once the clock says so, once the time until then has run in this process, and for good where it was seen. A process
//! that starts after the clock was set back knows only what the file tells it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use jiff::Timestamp;

/// The end of a token.
#[derive(Debug)]
pub(super) struct TokenExpiry {
    /// None for a token that lasts.
    at: Option<Timestamp>,
    /// When the time until then has run here.
    until: Option<Instant>,
    has_passed: AtomicBool,
}

impl TokenExpiry {
    /// Of a token that is refused from `at` on. It is `now`, or later where the clock was set back.
    pub(super) fn of(at: Option<Timestamp>, now: Timestamp, here: Instant) -> Self {
        let left = at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        Self { at, until: left.and_then(|left| here.checked_add(left)), has_passed: AtomicBool::new(false) }
    }

    /// Whether the token is refused now.
    pub(super) fn has_passed(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// For how long the token is still valid; none for one that lasts.
    pub(super) fn left(&self) -> Option<Duration> {
        self.left_at(Timestamp::now(), Instant::now())
    }

    fn left_at(&self, now: Timestamp, here: Instant) -> Option<Duration> {
        let by_clock = Duration::try_from(self.at?.duration_since(now)).unwrap_or_default();
        let left = self.until.map_or(by_clock, |until| by_clock.min(until.saturating_duration_since(here)));
        if left.is_zero() {
            self.has_passed.store(true, Ordering::Relaxed);
        }
        Some(if self.has_passed.load(Ordering::Relaxed) { Duration::ZERO } else { left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_expires_when_its_time_has_run_although_the_clock_was_set_back() {
        let (here, second) = (Instant::now(), Duration::from_secs(1));
        let expiry = TokenExpiry::of(Some(at(1_000)), at(900), here);
        assert_eq!(expiry.left_at(at(900), here), Some(100 * second));
        assert_eq!(expiry.left_at(at(0), here + 60 * second), Some(40 * second), "the clock was set back");
        assert_eq!(expiry.left_at(at(0), here + 100 * second), Some(Duration::ZERO));
        assert_eq!(expiry.left_at(at(0), here), Some(Duration::ZERO), "for good");
    }

    #[test]
    fn a_token_that_was_seen_as_expired_stays_so() {
        let here = Instant::now();
        let expiry = TokenExpiry::of(Some(at(1_000)), at(900), here);
        assert_eq!(expiry.left_at(at(1_000), here), Some(Duration::ZERO), "the clock says so");
        assert_eq!(expiry.left_at(at(900), here), Some(Duration::ZERO));
        assert_eq!(TokenExpiry::of(Some(at(1_000)), at(2_000), here).left_at(at(0), here), Some(Duration::ZERO));
        assert_eq!(TokenExpiry::of(None, at(0), here).left_at(at(5_000), here), None, "it lasts");
    }
}

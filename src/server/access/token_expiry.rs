//! Whether a token has expired, also if the clock was set back.
//!
//! In: the time from which a token is refused, and the present time. Out: whether the token is refused: because the
//! clock says so, because that much time has run in this process, or because it was refused before. A process that
//! starts after the clock was set back knows only what the file says.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use jiff::Timestamp;

/// When a token expires.
#[derive(Debug)]
pub(super) struct TokenExpiry {
    /// `None` for a token that never expires.
    at: Option<Timestamp>,
    /// When the time until then has run in this process.
    until: Option<Instant>,
    has_passed: AtomicBool,
}

impl TokenExpiry {
    /// The expiry of a token that is refused from `at` on. `now` is the clock's time, or a later time if the clock was
    /// set back.
    pub(super) fn of(at: Option<Timestamp>, now: Timestamp, here: Instant) -> Self {
        let left = at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        Self { at, until: left.and_then(|left| here.checked_add(left)), has_passed: AtomicBool::new(false) }
    }

    /// Whether the token is refused now.
    pub(super) fn has_passed(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// For how long the token is still valid; `None` if it never expires.
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

//! Pauses between attempts, each twice the one before.
//!
//! In: the first pause and the longest. Out: the pause after each failure, shortened at random by up to a half, so that
//! many callers that wait for the same thing do not all try again at once. The caller does the waiting.

use std::time::Duration;

/// The pauses between attempts at one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// For services that recover without help, such as a broker or a disk: from half a second to a minute.
    pub const SERVICE: Self = Self::new(Duration::from_millis(500), Duration::from_secs(60));

    /// Pauses from `first` to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The pause after a failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }

    /// Like [`Self::pause`], but shortened at random by up to a half.
    pub fn jittered(&mut self) -> Duration {
        shortened(self.pause())
    }

    /// Starts again with the first pause, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause after this many failures in a row, counted from 1.
    #[must_use]
    pub fn pause_after(&self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

/// A pause, shortened at random by up to a half.
#[must_use]
pub fn shortened(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(2), seconds(10));
        let pauses = [(); 5].map(|()| backoff.pause());
        assert_eq!(pauses, [2, 4, 8, 10, 10].map(seconds));
        backoff.reset();
        assert_eq!(backoff.pause(), seconds(2));
        assert!((seconds(2)..=seconds(4)).contains(&backoff.jittered()));
        assert_eq!([1, 2, 3, 4, 99].map(|failures| backoff.pause_after(failures)), [2, 4, 8, 10, 10].map(seconds));
    }
}

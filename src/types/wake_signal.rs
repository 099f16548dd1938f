//! Wakes threads that wait until something happens.
//!
//! In: calls that say that something may have happened. Out: threads that wake and check. A thread notes the count,
//! checks, and waits for a higher count, so that anything that happens between its check and its wait wakes it at once.

use std::{
    sync::{Condvar, Mutex},
    time::{Duration, Instant},
};

use crate::sync;

/// Counts how often something may have happened.
#[derive(Debug, Default)]
pub struct WakeSignal {
    count: Mutex<u64>,
    raised: Condvar,
}

impl WakeSignal {
    /// Says that something may have happened.
    pub fn raise(&self) {
        *sync::lock(&self.count) += 1;
        self.raised.notify_all();
    }

    /// How often it was raised.
    #[must_use]
    pub fn count(&self) -> u64 {
        *sync::lock(&self.count)
    }

    /// Waits until it was raised more often than `seen`, at most for `patience`.
    pub fn wait(&self, seen: u64, patience: Duration) {
        let until = Instant::now() + patience;
        let mut count = sync::lock(&self.count);
        while *count <= seen {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            count = sync::wait_timeout(&self.raised, count, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_between_a_look_and_a_wait_wakes_at_once() {
        let signal = WakeSignal::default();
        let seen = signal.count();
        signal.raise();
        // Without the earlier signal, this would wait for a day.
        signal.wait(seen, Duration::from_secs(86_400));
        signal.wait(signal.count(), Duration::ZERO);
        assert_eq!(signal.count(), seen + 1);
    }

    #[test]
    fn a_thread_that_waits_is_woken_by_another() {
        let signal = WakeSignal::default();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| signal.wait(0, Duration::from_secs(86_400)));
            signal.raise();
            waits.join().unwrap();
        });
    }
}

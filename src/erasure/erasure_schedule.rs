//! Erases on schedule, while a memory stays open.
//!
//! In: operations as they settle, and the clock. Out: passes. Everything that waits is erased in one pass, after half
//! of the time that the settings give the oldest of it, because a pass rewrites all turns however little it erases. A
//! pass that fails is tried again after a pause. If the clock was set back, due times follow the time that has passed
//! in this process.

use crate::log_events;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{ErasureReport, ErasureTargets, MemoryProgress, PipelineError, redacted_error};

/// The longest time until a stop is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two checks of what is due.
const SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after a pass that failed.
const PAUSE: Duration = Duration::from_secs(300);

/// Calls its argument with the current progress of the memory.
pub(super) type MemoryProgressProvider<'w> = dyn Fn(&mut dyn FnMut(&MemoryProgress<'_>)) + 'w;

/// Erases what is due until `stopping`, whose thread may be unparked. `tell` receives why a pass failed, and `None`
/// once one succeeds.
pub fn erase_in_time(
    places: &mut ErasureTargets<'_>,
    settled: &MemoryProgressProvider<'_>,
    stopping: &AtomicBool,
    tell: &dyn Fn(Option<String>),
) {
    let (mut next, mut waits) = (Instant::now(), WaitTimes::default());
    while !stopping.load(Ordering::Relaxed) {
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left.min(CHECK_INTERVAL));
            continue;
        }
        next = Instant::now() + SCAN_INTERVAL;
        settled(&mut |settled| {
            let started = Instant::now();
            match places.erase_what_is_due(settled, &mut waits) {
                Ok(None) => {}
                Ok(Some(erased)) => {
                    let seconds = started.elapsed().as_secs_f64();
                    log_events::turns_erased(erased.turns, erased.rewritten_bytes, seconds);
                    tell(None);
                }
                Err(error) => {
                    let problem = redacted_error(&error);
                    log_events::erasure_failed(&problem);
                    tell(Some(format!("deleted turns are not erased: {error}")));
                    next = Instant::now() + PAUSE;
                }
            }
        });
    }
}

/// How long things have waited, as seen by this process.
#[derive(Debug, Default)]
struct WaitTimes {
    /// When each was first seen, and how many milliseconds it had waited by then, by the clock.
    seen: HashMap<String, (Instant, i64)>,
}

impl WaitTimes {
    /// How many milliseconds `what` has waited since a time: by the clock, or by the time that has passed in this
    /// process if that is more, because the clock was set back.
    fn waited_ms(&mut self, what: &str, since_ms: i64, now_ms: i64, here: Instant) -> i64 {
        let by_clock = now_ms.saturating_sub(since_ms);
        let (first, before) = self.seen.entry(what.to_owned()).or_insert((here, by_clock.max(0)));
        let here = i64::try_from(here.saturating_duration_since(*first).as_millis()).unwrap_or(i64::MAX);
        by_clock.max(before.saturating_add(here))
    }

    /// Forgets what no longer waits.
    fn retain(&mut self, waits: impl Fn(&str) -> bool) {
        self.seen.retain(|what, _| waits(what));
    }
}

impl ErasureTargets<'_> {
    /// Erases if an operation has waited long enough. Deletions that a platform sent, and turns that were sent again
    /// after their deletion, belong to no operation that waits, so a scan searches for them as often.
    fn erase_what_is_due(
        &mut self,
        settled: &MemoryProgress<'_>,
        waits: &mut WaitTimes,
    ) -> Result<Option<ErasureReport>, PipelineError> {
        let operations = self.forgets.settle(settled)?;
        let half_ms =
            i64::try_from(self.forgets.settings.erase_within_hours).unwrap_or(i64::MAX).saturating_mul(1_800_000);
        if half_ms == 0 {
            return Ok(None);
        }
        let (here, last) = (Instant::now(), self.forgets.last_scan_ms()?);
        // A later scan, and letters that were emptied later, begin another wait.
        let named = |what: &str, at: Option<i64>| at.map(|at| (format!("{what} at {at}"), at));
        let (look, letters) = (named("the look", last), named("the letters", self.forgets.emptied_letters_since_ms()?));
        waits.retain(|what| {
            [&look, &letters].into_iter().flatten().any(|(name, _)| name == what)
                || operations.iter().any(|of| of.operation == what)
        });
        let mut is_due = |what: &str, since_ms| waits.waited_ms(what, since_ms, settled.now_ms, here) >= half_ms;
        // Every operation is checked, so that its wait is noted.
        let due: Vec<_> = operations.iter().filter(|of| is_due(&of.operation, of.requested_ms)).collect();
        let look_is_due = look.is_none_or(|(look, last)| is_due(&look, last));
        let letters_are_due = letters.is_some_and(|(letters, at)| is_due(&letters, at));
        if !letters_are_due && !due.iter().any(|of| of.hidden_ms.is_some() && of.erased.is_none()) {
            if !look_is_due {
                return Ok(None);
            }
            self.forgets.note_scan(settled.now_ms)?;
            if last.is_none() || !self.are_words_left()? {
                return Ok(None);
            }
        }
        self.erase(settled).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_due_by_the_time_that_has_run_although_the_clock_was_set_back() {
        let (mut waits, begun, second) = (WaitTimes::default(), Instant::now(), Duration::from_secs(1));
        let mut waited = |what: &str, now_ms, seconds| waits.waited_ms(what, 100_000, now_ms, begun + seconds * second);
        assert_eq!(waited("a", 103_000, 0), 3_000);
        assert_eq!(waited("a", 0, 7), 10_000, "set back below its request");
        assert_eq!(waited("a", 104_000, 8), 11_000, "set back by less");
        assert_eq!(waited("a", 500_000, 9), 400_000, "the clock is right again, or was put forward");
        // A start finds a request that lies in the future: its wait begins at 0.
        assert_eq!(waited("b", 40_000, 20), 0);
        assert_eq!(waited("b", 45_000, 25), 5_000);
        waits.retain(|what| what == "b");
        assert_eq!(waits.seen.len(), 1);
    }
}

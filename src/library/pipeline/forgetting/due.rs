//! Erasing in time, while a memory stays open.
//!
//! In: operations as they settle, and the clock. Out: passes. Everything that waits is erased at once, after half of
//! the time that the settings give the oldest of it, because a pass writes all turns again however little it erases. A
//! pass that fails is tried again after a pause.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tracing::{info, warn};

use super::{Erased, PipelineError, Places, Settled, logged::logged};

/// The longest time until a stop is noticed.
const LOOK: Duration = Duration::from_millis(250);
/// The time between two looks at what is due.
const LOOKS_EVERY: Duration = Duration::from_secs(10);
/// The pause after a pass that failed.
const PAUSE: Duration = Duration::from_secs(300);

/// Gives work what of the operations has settled.
pub(in crate::pipeline) type WithSettled<'w> = dyn Fn(&mut dyn FnMut(&Settled<'_>)) + 'w;

/// Erases what is due until `stopping`, whose thread may be unparked. `tell` hears why a pass failed, and `None` once
/// one succeeds.
pub(in crate::pipeline) fn erase_in_time(
    places: &mut Places<'_>,
    settled: &WithSettled<'_>,
    stopping: &AtomicBool,
    tell: &dyn Fn(Option<String>),
) {
    let mut next = Instant::now();
    while !stopping.load(Ordering::Relaxed) {
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left.min(LOOK));
            continue;
        }
        next = Instant::now() + LOOKS_EVERY;
        settled(&mut |settled| {
            let started = Instant::now();
            match places.erase_what_is_due(settled) {
                Ok(None) => {}
                Ok(Some(erased)) => {
                    let seconds = started.elapsed().as_secs_f64();
                    info!(turns = erased.turns, bytes = erased.rewritten_bytes, seconds, "deleted turns are erased");
                    tell(None);
                }
                Err(error) => {
                    let problem = logged(&error);
                    warn!(problem, "deleted turns are not erased; they will be tried again");
                    tell(Some(format!("deleted turns are not erased: {error}")));
                    next = Instant::now() + PAUSE;
                }
            }
        });
    }
}

impl Places<'_> {
    /// Erases if an operation waits for long enough. Deletions that a platform sent, and turns that were sent again
    /// after their deletion, belong to no operation that waits: they are looked for as often.
    fn erase_what_is_due(&mut self, settled: &Settled<'_>) -> Result<Option<Erased>, PipelineError> {
        let operations = self.forgets.settle(settled)?;
        let half_ms =
            i64::try_from(self.forgets.settings.erase_within_hours).unwrap_or(i64::MAX).saturating_mul(1_800_000);
        if half_ms == 0 {
            return Ok(None);
        }
        let is_due = |since_ms: i64| since_ms.saturating_add(half_ms) <= settled.now_ms;
        let waits =
            operations.iter().any(|of| of.hidden_ms.is_some() && of.erased.is_none() && is_due(of.requested_ms));
        if !waits && !self.forgets.letters_ms()?.is_some_and(is_due) {
            let last = self.forgets.looked_ms()?;
            if last.is_some_and(|last| !is_due(last)) {
                return Ok(None);
            }
            self.forgets.note_looked(settled.now_ms)?;
            if last.is_none() || !self.are_words_left()? {
                return Ok(None);
            }
        }
        self.erase(settled).map(Some)
    }
}

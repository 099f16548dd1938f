//! When a question or a bank that is followed must be read again, and whether that is retried.
//!
//! In: who follows, changes, and failures. Out: whether to work now, and after which pause to try again. It never works
//! twice at the same time, and never without followers.

use std::time::{Duration, Instant};

use pipeline::PipelineError;
use replica::refusal;
use types::{backoff::Backoff, model::RefusalCode};

/// The pauses after failures that may be temporary.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// How many failures in a row, other than too much load, it takes until followers get the problem.
const MAX_FAILURES: u32 = 6;

/// Whether work is due.
pub(super) struct RefreshSchedule {
    /// Whether the bank has changed since the work was last begun.
    changed: bool,
    is_going_on: bool,
    followers: usize,
    /// Since when there is no follower.
    idle_since: Option<Instant>,
}

impl RefreshSchedule {
    /// Work that was never done.
    pub(super) fn new() -> Self {
        Self { changed: true, is_going_on: false, followers: 0, idle_since: None }
    }

    pub(super) fn follow(&mut self) {
        self.followers += 1;
        self.idle_since = None;
    }

    /// Notes that a follower has left.
    pub(super) fn unfollow(&mut self) {
        self.followers -= 1;
        self.idle_since = (self.followers == 0).then(Instant::now);
    }

    /// For how long no one has followed; `None` while someone does.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.idle_since.map(|since| since.elapsed())
    }

    /// Notes that the bank has changed, or that what was found does not show what it holds.
    pub(super) fn note_change(&mut self) {
        self.changed = true;
    }

    /// Whether what was found last shows what the bank holds, and no work is going on.
    pub(super) fn is_up_to_date(&self) -> bool {
        !self.changed && !self.is_going_on
    }

    /// Whether it changed while no one followed.
    pub(super) fn was_missed(&self) -> bool {
        self.changed && self.followers == 0
    }

    /// Whether the work must be started now; from then on it is going on.
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.changed && !self.is_going_on && self.followers > 0;
        self.is_going_on |= begins;
        begins
    }

    /// Takes up what has changed. Without a change or a follower the work ends, and this is false.
    pub(super) fn take_change(&mut self) -> bool {
        self.is_going_on = self.changed && self.followers > 0;
        // What changed without a follower is due once one comes.
        self.changed &= !self.is_going_on;
        self.is_going_on
    }
}

/// Failures in a row.
pub(super) struct RefreshAttempts {
    failures: u32,
    retry: Backoff,
}

impl RefreshAttempts {
    pub(super) fn new() -> Self {
        Self { failures: 0, retry: RETRY }
    }

    /// The pause before the next attempt; `None` if the failure stays.
    pub(super) fn pause_after(&mut self, error: &PipelineError) -> Option<Duration> {
        let code = refusal(error).code;
        let passes = matches!(error, PipelineError::Loading { .. })
            || matches!(code, RefusalCode::Busy | RefusalCode::Deadline | RefusalCode::EndpointAway);
        self.failures += u32::from(!passes);
        let stays = !passes && (code != RefusalCode::Failed || self.failures >= MAX_FAILURES);
        (!stays).then(|| self.retry.pause())
    }
}

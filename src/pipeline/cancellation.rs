//! Whether a caller still waits for an answer.
//!
//! In: a deadline, a call to cancel. Out: the reason to stop, which is checked before each costly step, and by a long
//! scan before each record. Nothing is interrupted: a running step completes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A deadline, and a flag that its clones share.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    deadline: Option<Instant>,
    cancelled: Arc<AtomicBool>,
}

/// Why the answer is no longer needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CancellationReason {
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// The caller cancelled.
    #[error("the caller cancelled")]
    Cancelled,
}

impl Cancellation {
    /// Work that ends at a deadline, or earlier if it is cancelled.
    #[must_use]
    pub fn at(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }

    /// The deadline, if any.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Cancels the work when the returned guard is dropped, as happens with the future of a client that leaves.
    #[must_use]
    pub fn on_drop(&self) -> CancellationGuard {
        CancellationGuard(self.clone())
    }

    /// Ends the work before its next step.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when the answer is no longer needed.
    ///
    /// # Errors
    /// [`CancellationReason`] says why.
    pub fn check(&self) -> Result<(), CancellationReason> {
        self.check_at(Instant::now())
    }

    /// As [`Self::check`], at the time `now`.
    pub fn check_at(&self, now: Instant) -> Result<(), CancellationReason> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(CancellationReason::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) { Err(CancellationReason::Deadline) } else { Ok(()) }
    }
}

/// Cancels work when it is dropped.
#[derive(Debug)]
pub struct CancellationGuard(Cancellation);

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

//! Whether a thread waits for an endpoint.
//!
//! In: requests, and threads that should end. Out: whether all of them have ended. A thread that waits for an endpoint
//! is left running until the process exits, so that an unreachable endpoint does not keep a service from stopping.
//! Whatever such a thread was about to write has not been acknowledged, or is in the log already.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long threads may take to end while a request to an endpoint is under way.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two checks whether a thread has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The number of threads that wait for an endpoint, for a reply or during the pause between two attempts.
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Marks a thread as waiting for an endpoint until this is dropped.
pub struct EndpointWaitGuard(());

impl EndpointWaitGuard {
    /// Starts the wait.
    #[must_use]
    pub fn begin() -> Self {
        ASKING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for EndpointWaitGuard {
    fn drop(&mut self) {
        ASKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until threads have ended. Returns false if some are left running, because a request to an endpoint took longer
/// than the time in which all of them may end.
pub fn join_threads(threads: impl IntoIterator<Item = JoinHandle<()>>) -> bool {
    let from = Instant::now();
    let mut all = true;
    for thread in threads {
        while !thread.is_finished() && (ASKING.load(Ordering::Relaxed) == 0 || from.elapsed() < PATIENCE) {
            std::thread::sleep(CHECK_INTERVAL);
        }
        all &= thread.is_finished();
        if thread.is_finished() {
            // A panic was reported where it happened.
            drop(thread.join());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_is_waited_for_unless_it_asks_an_endpoint() {
        assert!(join_threads([std::thread::spawn(|| ()), std::thread::spawn(|| ())]));
        let (release, released) = channel::<()>();
        let (began, begun) = channel();
        let thread = std::thread::spawn(move || {
            let _asking = EndpointWaitGuard::begin();
            began.send(()).expect("somebody waits");
            let _ = released.recv();
        });
        assert!(begun.recv().is_ok());
        assert!(!join_threads([thread, std::thread::spawn(|| ())]), "one waits for its endpoint");
        drop(release);
    }
}

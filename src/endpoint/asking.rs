//! Whether a thread waits for an endpoint.
//!
//! In: requests, and threads that are to end. Out: a thread that ends is waited for; one that waits for an endpoint
//! is left to the end of the process, so that an endpoint that is away keeps no service from stopping. What it was
//! about to write was not acknowledged, or lies in the log already.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long threads may take to end while an endpoint is asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at it.
const LOOK: Duration = Duration::from_millis(10);

/// Threads that wait for an endpoint: requests on their way, and pauses between two attempts.
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// A thread that waits for an endpoint, until this is dropped.
pub struct EndpointWait(());

impl EndpointWait {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        ASKING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for EndpointWait {
    fn drop(&mut self) {
        ASKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until threads have ended. False where some are left alone, because an endpoint is asked for longer than they
/// may take to end together.
pub fn end_threads(threads: impl IntoIterator<Item = JoinHandle<()>>) -> bool {
    let from = Instant::now();
    let mut all = true;
    for thread in threads {
        while !thread.is_finished() && (ASKING.load(Ordering::Relaxed) == 0 || from.elapsed() < PATIENCE) {
            std::thread::sleep(LOOK);
        }
        all &= thread.is_finished();
        if thread.is_finished() {
            // A panic was said where it happened.
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
        assert!(end_threads([std::thread::spawn(|| ()), std::thread::spawn(|| ())]));
        let (release, released) = channel::<()>();
        let (began, begun) = channel();
        let thread = std::thread::spawn(move || {
            let _asking = EndpointWait::begin();
            began.send(()).expect("somebody waits");
            let _ = released.recv();
        });
        assert!(begun.recv().is_ok());
        assert!(!end_threads([thread, std::thread::spawn(|| ())]), "one waits for its endpoint");
        drop(release);
    }
}

//! What the process sets up before it does anything else, and the signals that end it.
//!
//! In: nothing. Out: files that only their owner may read, writes that fail if a file would grow too large, and a flag
//! that a signal sets. `begin` is called once, before any thread begins, so that it applies to all threads.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Files get the mode 600 and directories 700, whatever the user's mask is: what is remembered is private, even in an
/// export or a report. If a file would grow past `ulimit -f`, its write fails with an error that says what to do;
/// without this, the system would end the process without a message.
#[cfg(unix)]
pub fn begin() {
    use nix::sys::{
        signal::{SigSet, Signal},
        stat::{Mode, umask},
    };
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let mut too_large = SigSet::empty();
    too_large.add(Signal::SIGXFSZ);
    // If this fails, the process ends at such a write.
    let _ = too_large.thread_block();
}

/// Other systems have neither of the two.
#[cfg(not(unix))]
pub fn begin() {}

/// A flag that a signal to end sets.
///
/// # Errors
/// If the system refuses to handle signals.
pub fn stop_by_signal() -> Result<&'static AtomicBool> {
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    ctrlc::set_handler(|| stop.store(true, Ordering::Relaxed)).context("signals cannot be handled")?;
    Ok(stop)
}

//! What the process sets up before it does anything else.
//!
//! In: nothing. Out: files that only their owner may read, and writes that fail if a file would grow too large. It is
//! called once, before any thread begins, so that it applies to all threads.

/// Files get the mode 600 and directories 700, whatever the user's mask is: what is remembered is private, even in an
/// export or a report. If a file would grow past `ulimit -f`, its write fails with an error that says what to do;
/// without this, the system would end the process without a message.
#[cfg(unix)]
pub(crate) fn begin() {
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
pub(crate) fn begin() {}

//! What the process asks of the system before it does anything.
//!
//! In: nothing. Out: files that only their owner may read, and writes that fail where a file would grow too
//! large. Called once, before any thread begins, so that all threads have it.

/// Files get the mode 600 and directories 700, whatever the user's mask: what is remembered is nobody else's, also in
/// an export or a report. A file that would grow past `ulimit -f` is an error of its write, which says what to do,
/// where the system would end the process without a word.
#[cfg(unix)]
pub(crate) fn begin() {
    use nix::sys::{
        signal::{SigSet, Signal},
        stat::{Mode, umask},
    };
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let mut too_large = SigSet::empty();
    too_large.add(Signal::SIGXFSZ);
    // Where this fails the process ends at such a write.
    let _ = too_large.thread_block();
}

/// Elsewhere neither is known.
#[cfg(not(unix))]
pub(crate) fn begin() {}

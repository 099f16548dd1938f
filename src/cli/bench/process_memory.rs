//! How much memory this process takes.
//!
//! In: nothing. Out: the bytes that are resident now, and the maximum since a mark. `None` on systems that do not
//! report them, which are all but Linux.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::cli::kilobyte_field::kilobyte_field;

/// The time between two checks of whether the memory still changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How many checks in a row must see no change: together they take longer than the allocator needs to return free
/// memory.
const STILL: usize = 8;
/// The longest wait for the memory to stop changing.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Bytes in memory now.
pub(super) fn resident_bytes() -> Option<u64> {
    field("VmRSS:")
}

/// Bytes in memory, once they have changed by less than one in a hundred for two seconds.
pub(super) fn settled_bytes() -> Option<u64> {
    let until = Instant::now() + MAX_WAIT;
    let (mut before, mut still) = (resident_bytes()?, 0);
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        let now = resident_bytes()?;
        if before.abs_diff(now) < now / 100 {
            still += 1;
        } else {
            (before, still) = (now, 0);
        }
        if still == STILL || Instant::now() > until {
            return Some(now);
        }
    }
}

/// The most bytes that were in memory at once since [`mark_peak`].
pub(super) fn peak_bytes() -> Option<u64> {
    field("VmHWM:")
}

/// Forgets the peak so far; returns whether the system supports that.
pub(super) fn mark_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn field(name: &str) -> Option<u64> {
    kilobyte_field("/proc/self/status", name)
}

//! How far a replica has read the turns that it reflects.
//!
//! In: the offsets that the reads of the memory log cover. Out: the offset of a partition, and the moment when it
//! is reached.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex},
    time::Instant,
};

use nouns::sync;

/// By turns partition: the first offset that the memory does not reflect.
#[derive(Default)]
pub(super) struct ReachedOffsets {
    offsets: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
}

impl ReachedOffsets {
    /// Notes what a read covers.
    pub(super) fn extend(&self, covers: impl IntoIterator<Item = (u32, u64)>) {
        sync::lock(&self.offsets).extend(covers);
        self.moved.notify_all();
    }

    /// Forgets a partition that is no longer held.
    pub(super) fn forget(&self, partition: u32) {
        sync::lock(&self.offsets).remove(&partition);
        self.moved.notify_all();
    }

    /// The offset of a partition, where known.
    pub(super) fn of(&self, partition: u32) -> Option<u64> {
        sync::lock(&self.offsets).get(&partition).copied()
    }

    /// Waits until a partition is reflected up to an offset; false on timeout.
    pub(super) fn wait_for(&self, partition: u32, next_offset: u64, until: Instant) -> bool {
        let mut offsets = sync::lock(&self.offsets);
        loop {
            if offsets.get(&partition).is_some_and(|at| *at >= next_offset) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            offsets = sync::wait_timeout(&self.moved, offsets, left);
        }
    }
}

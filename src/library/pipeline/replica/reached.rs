//! How far a replica has read the turns that it reflects.
//!
//! In: the offsets that the reads of the memory log cover. Out: the offset of a partition, and a notice when an offset
//! is reached.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use tokio::sync::watch;

use nouns::{signal::Signal, sync};

/// By turns partition: the first offset that the memory does not reflect.
#[derive(Default)]
pub(super) struct ReachedOffsets {
    offsets: Mutex<BTreeMap<u32, u64>>,
    /// Raised when they change, for threads.
    news: Arc<Signal>,
    /// The same news, for async tasks.
    moves: watch::Sender<()>,
}

impl ReachedOffsets {
    /// Notes what a read covers.
    pub(super) fn extend(&self, covers: impl IntoIterator<Item = (u32, u64)>) {
        sync::lock(&self.offsets).extend(covers);
        self.tell();
    }

    /// Passes offsets that hold no turn, unless a read has moved the partition meanwhile.
    pub(super) fn pass(&self, partition: u32, from: u64, to: u64) {
        match sync::lock(&self.offsets).get_mut(&partition).filter(|at| **at == from) {
            Some(at) => *at = to,
            None => return,
        }
        self.tell();
    }

    /// Forgets a partition that is no longer held.
    pub(super) fn forget(&self, partition: u32) {
        sync::lock(&self.offsets).remove(&partition);
        self.tell();
    }

    fn tell(&self) {
        self.news.raise();
        self.moves.send_replace(());
    }

    /// A signal that is raised when an offset changes.
    pub(super) fn news(&self) -> &Arc<Signal> {
        &self.news
    }

    /// Changes when an offset does.
    pub(super) fn moves(&self) -> watch::Receiver<()> {
        self.moves.subscribe()
    }

    /// The offset of a partition, where known.
    pub(super) fn of(&self, partition: u32) -> Option<u64> {
        sync::lock(&self.offsets).get(&partition).copied()
    }

    /// Waits until a partition is reflected up to an offset; false on timeout.
    pub(super) fn wait_for(&self, partition: u32, next_offset: u64, until: Instant) -> bool {
        loop {
            let seen = self.news.count();
            if self.of(partition).is_some_and(|at| at >= next_offset) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            self.news.wait(seen, left);
        }
    }
}

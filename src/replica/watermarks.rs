//! How far a replica reflects the turns.
//!
//! In: the offsets that the reads of the memory log cover. Out: the offset of a partition or of one of its banks, and a
//! signal when an offset is reached.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use tokio::sync::watch;

use logs::{ReadProgress, WritePosition};
use types::{model::Bank, sync, wake_signal::WakeSignal};

/// By turns partition: how far the memory reflects it.
#[derive(Default)]
pub(super) struct TurnWatermarks {
    offsets: Mutex<BTreeMap<u32, ReadProgress>>,
    /// Raised when they change, for threads.
    news: Arc<WakeSignal>,
    /// Signals the same changes to async tasks.
    moves: watch::Sender<()>,
}

impl TurnWatermarks {
    /// Notes what a read covers.
    pub(super) fn extend(&self, covers: impl IntoIterator<Item = (u32, ReadProgress)>) {
        sync::lock(&self.offsets).extend(covers);
        self.tell();
    }

    /// Skips offsets that hold no turn, unless a read has moved the partition meanwhile.
    pub(super) fn skip_markers(&self, partition: u32, from: u64, to: u64) {
        match sync::lock(&self.offsets).get_mut(&partition).filter(|at| at.through == from) {
            Some(at) => at.through = to,
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
    pub(super) fn news(&self) -> &Arc<WakeSignal> {
        &self.news
    }

    /// A receiver that changes when an offset does.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.moves.subscribe()
    }

    /// The first offset of a partition that is not reflected, for one bank or for any; `None` if unknown.
    pub(super) fn of(&self, partition: u32, bank: Option<&Bank>) -> Option<u64> {
        let offsets = sync::lock(&self.offsets);
        let progress = offsets.get(&partition)?;
        Some(bank.map_or_else(|| progress.low(), |bank| progress.of(bank)))
    }

    /// How far a partition is reflected, if known.
    pub(super) fn progress(&self, partition: u32) -> Option<ReadProgress> {
        sync::lock(&self.offsets).get(&partition).cloned()
    }

    /// Waits until what was written is reflected; false on timeout.
    pub(super) fn wait_for(&self, written: &WritePosition, until: Instant) -> bool {
        loop {
            let seen = self.news.count();
            if written.is_covered(|partition, bank| self.of(partition, bank)) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            self.news.wait(seen, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_turns_of_a_bank_waits_for_no_other() {
        let [slow, quick] = ["slow", "quick"].map(|name| Bank::parse(name).expect("a name"));
        let reached = TurnWatermarks::default();
        let is_reflected = |written: &WritePosition| reached.wait_for(written, Instant::now());
        let mut written = WritePosition::nothing(1);
        written.extend(0, 8);
        assert!(!is_reflected(&written.clone().of_bank(&quick)), "nothing is known yet");
        reached.extend([(0, ReadProgress { through: 9, behind: [(slow.clone(), 3)].into() })]);
        assert!(is_reflected(&written.clone().of_bank(&quick)));
        assert!(!is_reflected(&written.clone().of_bank(&slow)));
        assert!(!is_reflected(&written), "turns of an unknown bank may be of the slow one");
        let mut of_both = written.clone();
        of_both.name_banks([&slow, &quick]);
        assert!(!is_reflected(&of_both));
        reached.extend([(0, 9.into())]);
        assert!(is_reflected(&of_both) && is_reflected(&written));
        written.extend(0, 10);
        assert!(!is_reflected(&written.of_bank(&quick)), "it was written later");
    }
}

//! Reports which banks changed, to the tasks that watch them.
//!
//! In: each record's bank before its load is passed to a shard, and the end of the load. Out: the watched banks that
//! changed, the partitions of which more was read, and those whose shard was replaced or dropped. Without a watcher,
//! the only cost is reading one number. It never waits for a watcher: news that is not taken yet is merged, and names
//! each bank once.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use super::record_change_buffer::{RecordChange, RecordChangeBuffer, TurnVersionChanges};
use types::{
    model::{Bank, MemoryRecord},
    sync,
};

/// What happened since the news was last taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BankChangeBatch {
    /// Watched banks of which a record changed. Every question from now on reflects the change.
    pub banks: BTreeSet<Bank>,
    /// Partitions of which more was read, whether or not it changed a bank.
    pub read: BTreeSet<u32>,
    /// Partitions whose shard was dropped or rebuilt: what was known about their banks no longer holds.
    pub lost: BTreeSet<u32>,
}

/// The changes of the watched banks. One task takes the news.
#[derive(Debug, Default)]
pub struct BankChangeTracker {
    watching: AtomicUsize,
    state: Mutex<ChangeTrackerState>,
    signal: Notify,
}

#[derive(Debug, Default)]
struct ChangeTrackerState {
    watched: HashMap<Bank, BankWatchState>,
    news: BankChangeBatch,
}

#[derive(Debug, Default)]
struct BankWatchState {
    by: usize,
    /// The offset of the memory partition after the last record of the bank that was read.
    changed_at: u64,
    /// The offset of the memory partition after the last record of the bank that deletes a turn.
    deleted_at: u64,
    /// How many watchers watch its records, too.
    of_records: usize,
    /// The changes from its records, while someone watches them.
    kept: RecordChangeBuffer,
}

/// A bank is watched until this is dropped.
#[derive(Debug)]
pub struct BankWatchGuard {
    changes: Arc<BankChangeTracker>,
    bank: Bank,
    has_records: bool,
}

impl BankChangeTracker {
    /// Watches a bank. Changes from now on are reported.
    #[must_use]
    pub fn watch(self: &Arc<Self>, bank: &Bank) -> BankWatchGuard {
        self.watched(bank, false)
    }

    /// As [`Self::watch`], but also keeps the changes from the bank's records, until [`BankWatchGuard::take_records`].
    #[must_use]
    pub fn watch_records(self: &Arc<Self>, bank: &Bank) -> BankWatchGuard {
        self.watched(bank, true)
    }

    fn watched(self: &Arc<Self>, bank: &Bank, has_records: bool) -> BankWatchGuard {
        {
            let mut state = sync::lock(&self.state);
            let watched = state.watched.entry(bank.clone()).or_default();
            watched.by += 1;
            watched.of_records += usize::from(has_records);
        }
        self.watching.fetch_add(1, Ordering::Release);
        BankWatchGuard { changes: Arc::clone(self), bank: bank.clone(), has_records }
    }

    /// Whether someone watches a bank.
    #[must_use]
    pub fn is_watched(&self, bank: &Bank) -> bool {
        self.watching.load(Ordering::Acquire) > 0 && sync::lock(&self.state).watched.contains_key(bank)
    }

    /// Waits for news, and takes them.
    pub async fn next_batch(&self) -> BankChangeBatch {
        loop {
            let news = std::mem::take(&mut sync::lock(&self.state).news);
            if news != BankChangeBatch::default() {
                return news;
            }
            self.signal.notified().await;
        }
    }

    /// Notes that a record of a bank is about to be loaded, and the offset after it. Returns whether the bank is
    /// watched.
    pub(super) fn note(&self, bank: &Bank, next_offset: u64) -> bool {
        if self.watching.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut state = sync::lock(&self.state);
        let Some(watched) = state.watched.get_mut(bank) else { return false };
        watched.changed_at = next_offset;
        true
    }

    /// Notes whether a record of a watched bank deletes a turn, and keeps its changes, if someone watches the bank's
    /// records. `covered` is the first offset of the turns that no earlier load covers.
    pub(super) fn keep(&self, bank: &Bank, record: &MemoryRecord, next_offset: u64, covered: u64) {
        let mut state = sync::lock(&self.state);
        let Some(watched) = state.watched.get_mut(bank) else { return };
        if record.turns.iter().any(|turn| turn.deleted && turn.source_offset >= covered) {
            watched.deleted_at = next_offset;
        }
        if watched.of_records > 0 {
            watched.kept.note(record, next_offset, covered);
        }
    }

    /// Reports that a load was passed to its shard, with the banks that were noted.
    pub(super) fn note_loaded(&self, partition: u32, banks: BTreeSet<Bank>) {
        if self.watching.load(Ordering::Acquire) > 0 {
            let mut state = sync::lock(&self.state);
            state.news.banks.extend(banks);
            state.news.read.insert(partition);
            drop(state);
            self.signal.notify_one();
        }
    }

    /// Reports that the shard of a partition was replaced or dropped.
    pub fn note_lost(&self, partition: u32) {
        if self.watching.load(Ordering::Acquire) > 0 {
            sync::lock(&self.state).news.lost.insert(partition);
            self.signal.notify_one();
        }
    }
}

impl BankWatchGuard {
    /// The offset of the memory partition after the last record of the bank that was handed to its shard
    /// while it was watched; noted before the shard has it.
    #[must_use]
    pub fn changed_at(&self) -> u64 {
        sync::lock(&self.changes.state).watched.get(&self.bank).map_or(0, |watched| watched.changed_at)
    }

    /// The offset of the memory partition after the last record that deleted a turn of the bank while it was watched;
    /// noted before the shard has it. An answer that reflects less may hold words that are forgotten by now.
    #[must_use]
    pub fn deleted_at(&self) -> u64 {
        sync::lock(&self.changes.state).watched.get(&self.bank).map_or(0, |watched| watched.deleted_at)
    }

    /// Takes the turns that got another version since the last call; they are noted before the shard has them. Empty
    /// unless the bank's records are watched.
    #[must_use]
    pub fn take_versions(&self) -> TurnVersionChanges {
        let mut state = sync::lock(&self.changes.state);
        state.watched.get_mut(&self.bank).map(|watched| watched.kept.take_versions()).unwrap_or_default()
    }

    /// Takes the changes from the records before an offset of the memory partition, in order, and the number of further
    /// changes that were not kept. Empty unless the bank's records are watched.
    #[must_use]
    pub fn take_records(&self, until: u64) -> (Vec<RecordChange>, u64) {
        let mut state = sync::lock(&self.changes.state);
        state.watched.get_mut(&self.bank).map(|watched| watched.kept.take(until)).unwrap_or_default()
    }
}

impl Drop for BankWatchGuard {
    fn drop(&mut self) {
        self.changes.watching.fetch_sub(1, Ordering::Release);
        let mut state = sync::lock(&self.changes.state);
        if let Some(watched) = state.watched.get_mut(&self.bank) {
            watched.by -= 1;
            if self.has_records {
                watched.of_records -= 1;
                if watched.of_records == 0 {
                    watched.kept = RecordChangeBuffer::default();
                }
            }
            if watched.by == 0 {
                state.watched.remove(&self.bank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watched_banks_are_told_and_each_once() {
        let bank = |name: &str| Bank::parse(name).unwrap();
        let changes = Arc::new(BankChangeTracker::default());
        assert!(!changes.note(&bank("a"), 1));
        changes.note_loaded(0, BTreeSet::new());
        let (watched, twice) = (changes.watch(&bank("a")), changes.watch(&bank("a")));
        assert!(changes.note(&bank("a"), 5) && !changes.note(&bank("b"), 6));
        assert_eq!(watched.changed_at(), 5);
        for _ in 0..3 {
            changes.note_loaded(0, BTreeSet::from([bank("a")]));
        }
        changes.note_lost(7);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let expected = BankChangeBatch {
            banks: BTreeSet::from([bank("a")]),
            read: BTreeSet::from([0]),
            lost: BTreeSet::from([7]),
        };
        assert_eq!(runtime.block_on(changes.next_batch()), expected);
        drop(watched);
        assert!(changes.note(&bank("a"), 9), "another still watches it");
        drop(twice);
        assert!(!changes.note(&bank("a"), 10));
    }
}

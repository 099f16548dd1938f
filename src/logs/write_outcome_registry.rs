//! What became of writes for which a caller of this process waits.
//!
//! In: from callers, the requests and turns that they watch; from extraction, every verdict and every write that changed
//! nothing. Out: a verdict to its caller, once; to the others, which of their turns changed nothing. Extraction tells a
//! verdict when it reads the records: it is a function of the log, so it does not change if the process ends before the
//! next transaction. Without a watcher nothing is kept.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::oneshot;

use types::{
    model::{Bank, WriteVerdict},
    sync,
};

/// Receives the verdict on a request.
pub type VerdictReceiver = oneshot::Receiver<WriteVerdict>;

/// The watched requests and turns.
#[derive(Debug, Default)]
pub struct WriteOutcomeRegistry {
    requests: Mutex<HashMap<String, oneshot::Sender<WriteVerdict>>>,
    writes: Arc<WatchedWrites>,
}

#[derive(Debug, Default)]
struct WatchedWrites {
    /// The number of entries, so that nobody waits for the lock if nothing is watched.
    count: AtomicUsize,
    writes: Mutex<HashMap<u128, WatchedWrite>>,
}

/// A version of a turn that callers watch.
#[derive(Debug, Default)]
struct WatchedWrite {
    watchers: usize,
    is_stale: bool,
}

/// Watches writes until it is dropped.
#[derive(Debug)]
pub struct WriteWatch {
    watched: Arc<WatchedWrites>,
    keys: Vec<u128>,
}

impl WriteOutcomeRegistry {
    /// Waits for the verdict of a request. Called before its records are written.
    pub fn await_verdict(&self, request: &str) -> VerdictReceiver {
        let (sender, verdict) = oneshot::channel();
        let mut requests = sync::lock(&self.requests);
        // A caller that left takes its entry along with the next one.
        requests.retain(|_, sender| !sender.is_closed());
        requests.insert(request.to_owned(), sender);
        verdict
    }

    /// Whether a caller waits for the verdict of one of these requests.
    pub fn awaits_any(&self, requests: &[String]) -> bool {
        let waiting = sync::lock(&self.requests);
        requests.iter().any(|request| waiting.get(request).is_some_and(|sender| !sender.is_closed()))
    }

    /// Tells a verdict to its caller, if the caller waits here.
    pub fn tell(&self, verdict: &WriteVerdict) {
        if let Some(sender) = sync::lock(&self.requests).remove(&verdict.request) {
            // The caller may have stopped waiting.
            drop(sender.send(verdict.clone()));
        }
    }

    /// Watches versions of turns: for each, its bank, its id, its version, and whether it is a deletion. Called before
    /// they are written.
    pub fn watch<'a>(&self, writes: impl IntoIterator<Item = (&'a Bank, &'a str, u64, bool)>) -> WriteWatch {
        let keys: Vec<u128> =
            writes.into_iter().map(|(bank, turn, version, is)| key(bank, turn, version, is)).collect();
        let mut watched = sync::lock(&self.writes.writes);
        for key in &keys {
            watched.entry(*key).or_default().watchers += 1;
        }
        self.writes.count.store(watched.len(), Ordering::Release);
        WriteWatch { watched: Arc::clone(&self.writes), keys }
    }

    /// Notes a write that changed nothing because a newer version or a deletion stands.
    pub fn note_stale(&self, bank: &Bank, turn: &str, version: u64, is_deletion: bool) {
        if self.writes.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(write) = sync::lock(&self.writes.writes).get_mut(&key(bank, turn, version, is_deletion)) {
            write.is_stale = true;
        }
    }
}

impl WriteWatch {
    /// For each watched write, in order, whether it changed nothing, as far as it was read.
    #[must_use]
    pub fn stale(&self) -> Vec<bool> {
        let writes = sync::lock(&self.watched.writes);
        self.keys.iter().map(|key| writes.get(key).is_some_and(|write| write.is_stale)).collect()
    }
}

impl Drop for WriteWatch {
    fn drop(&mut self) {
        let mut writes = sync::lock(&self.watched.writes);
        for key in &self.keys {
            let is_last = writes.get_mut(key).is_some_and(|write| {
                write.watchers -= 1;
                write.watchers == 0
            });
            if is_last {
                writes.remove(key);
            }
        }
        self.watched.count.store(writes.len(), Ordering::Release);
    }
}

fn key(bank: &Bank, turn: &str, version: u64, is_deletion: bool) -> u128 {
    let bank = bank.as_str();
    let mut hash = xxhash_rust::xxh3::Xxh3Default::new();
    hash.update(&(bank.len() as u64).to_le_bytes());
    hash.update(bank.as_bytes());
    hash.update(&version.to_le_bytes());
    hash.update(&[u8::from(is_deletion)]);
    hash.update(turn.as_bytes());
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_write_that_changed_nothing_is_known_until_the_watch_ends() {
        let (registry, bank) = (WriteOutcomeRegistry::default(), Bank::parse("b").unwrap());
        registry.note_stale(&bank, "1", 1, false);
        let first = registry.watch([(&bank, "1", 1, false), (&bank, "2", 1, false)]);
        let second = registry.watch([(&bank, "1", 1, false), (&bank, "1", 1, true)]);
        assert_eq!(first.stale(), [false, false], "nobody watched before");
        registry.note_stale(&bank, "1", 1, false);
        registry.note_stale(&bank, "1", 2, false);
        assert_eq!((first.stale(), second.stale()), (vec![true, false], vec![true, false]));
        drop(first);
        assert_eq!(second.stale(), [true, false]);
        drop(second);
        assert!(sync::lock(&registry.writes.writes).is_empty());
        assert_eq!(registry.watch([(&bank, "1", 1, false)]).stale(), [false]);
    }

    #[test]
    fn a_verdict_reaches_the_caller_that_waits_for_it() {
        let registry = WriteOutcomeRegistry::default();
        let verdict = |request: &str| WriteVerdict {
            bank: Bank::parse("b").unwrap(),
            request: request.to_owned(),
            refused: None,
            written: Vec::new(),
        };
        drop(registry.await_verdict("gone"));
        let waits = registry.await_verdict("r");
        registry.tell(&verdict("gone"));
        registry.tell(&verdict("r"));
        assert_eq!(waits.blocking_recv().unwrap(), verdict("r"));
        assert!(sync::lock(&registry.requests).is_empty());
    }
}

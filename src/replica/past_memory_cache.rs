//! Memories of the past.
//!
//! In: points of the past. Out: the memory as of each, restored once and kept for a while. Restores of different
//! memories run in parallel; each holds only the lock of its own memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock},
};

use types::{model::Bank, sync};

/// Memories of the past that are kept; the least recently used is evicted.
const PAST_MEMORIES: usize = 4;
/// A bank as of an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastMemoryKey {
    pub(super) bank: Bank,
    pub(super) partition: u32,
    pub(super) offset: u64,
    /// The last purge of the shard's snapshots: a memory that was restored before that purge still holds what was
    /// deleted.
    pub(super) purged: PurgeVersion,
}

/// The epoch of a shard's newest snapshot, and the number of the last one that removed deleted turns.
pub(super) type PurgeVersion = (u64, u64);

/// How many turns were forgotten since the point of a memory of the past. When one of them is deleted later, that
/// memory is restored again, and counts again.
#[derive(Debug)]
pub(super) struct ForgottenTurnCount {
    at_ms: i64,
    count: OnceLock<u64>,
}

impl ForgottenTurnCount {
    /// Counts from a time on, in milliseconds since 1970.
    pub(super) fn at(at_ms: i64) -> Self {
        Self { at_ms, count: OnceLock::new() }
    }

    /// The number, which the first caller counts.
    pub(super) fn count_once<E>(&self, count: impl FnOnce(i64) -> Result<u64, E>) -> Result<u64, E> {
        if let Some(counted) = self.count.get() {
            return Ok(*counted);
        }
        let counted = count(self.at_ms)?;
        Ok(*self.count.get_or_init(|| counted))
    }
}

/// A memory, which the first caller to lock it restores.
type PastMemorySlot<M> = Arc<Mutex<Option<Arc<M>>>>;

/// Memories of the past.
pub(super) struct PastMemoryCache<M> {
    /// Most recently used first.
    cached: Mutex<VecDeque<(PastMemoryKey, PastMemorySlot<M>)>>,
}

impl<M> Default for PastMemoryCache<M> {
    fn default() -> Self {
        Self { cached: Mutex::default() }
    }
}

impl<M> PastMemoryCache<M> {
    /// The memory as of a point, restored by the first caller that asks for it.
    pub(super) fn memory<E>(
        &self,
        point: &PastMemoryKey,
        restore: impl FnOnce() -> Result<Arc<M>, E>,
    ) -> Result<Arc<M>, E> {
        let slot = {
            let mut cached = sync::lock(&self.cached);
            // A memory from before a deletion must answer nothing.
            cached.retain(|(past, _)| past.partition != point.partition || past.purged == point.purged);
            let at = cached.iter().position(|(past, _)| past == point);
            let (past, slot) =
                at.and_then(|at| cached.remove(at)).unwrap_or_else(|| (point.clone(), PastMemorySlot::default()));
            cached.push_front((past, Arc::clone(&slot)));
            cached.truncate(PAST_MEMORIES);
            slot
        };
        let mut held = sync::lock(&slot);
        if let Some(memory) = &*held {
            return Ok(Arc::clone(memory));
        }
        Ok(Arc::clone(held.insert(restore()?)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn point(bank: &str, purged: u64) -> PastMemoryKey {
        PastMemoryKey { bank: Bank::parse(bank).expect("a good name"), partition: 0, offset: 7, purged: (1, purged) }
    }

    #[test]
    fn a_restore_holds_up_no_other_memory_and_is_done_once() {
        let past = PastMemoryCache::<u32>::default();
        let (entered, wait) = (crossbeam_channel::bounded::<()>(0), crossbeam_channel::bounded::<()>(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let slow = past.memory::<Infallible>(&point("slow", 0), || {
                    entered.0.send(()).expect("the test waits");
                    wait.1.recv().expect("the test goes on");
                    Ok(Arc::new(1))
                });
                assert_eq!(slow, Ok(Arc::new(1)));
            });
            entered.1.recv().expect("the restore begins");
            assert_eq!(past.memory::<Infallible>(&point("fast", 0), || Ok(Arc::new(2))), Ok(Arc::new(2)));
            wait.0.send(()).expect("the restore waits");
        });
        assert_eq!(past.memory(&point("slow", 0), || Err("restored twice")), Ok(Arc::new(1)));
        assert_eq!(past.memory(&point("slow", 1), || Err("before a deletion")), Err("before a deletion"));
        assert_eq!(past.memory(&point("slow", 1), || Ok::<_, &str>(Arc::new(3))), Ok(Arc::new(3)));
    }
}

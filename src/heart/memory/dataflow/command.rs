//! What callers send to a shard.
//!
//! In: loads and probes, each probe with the sender for its answer. Out: the same, in one order. Only a bounded number
//! of loads may be waiting; beyond that, a caller that sends a load is blocked, but never a caller that asks.

use std::sync::{Arc, Condvar, Mutex};

use crossbeam_channel::Sender;

use super::{
    census::{Census, CensusProbe},
    load::PreparedLoad,
};
use crate::memory::{
    api::{Answered, FamiliarParts, Hit, IndexProbe, Neighbour, NeighbourhoodProbe},
    footprint::Footprint,
    units::unit_body::UnitBody,
};
use nouns::{model::BankKey, signal::Signal, sync};

/// Identifies a load in flight; later loads have greater ones.
pub(in crate::memory) type LoadId = u64;

/// One row of an answer.
#[derive(Debug, Clone)]
pub(in crate::memory) enum Row {
    /// Answers a first-hop probe.
    Hit(Hit),
    /// Answers a familiarity probe.
    Familiar(Arc<FamiliarParts>),
    /// Answers a turn probe.
    Unit(Arc<UnitBody>),
    /// Answers a neighbourhood probe.
    Neighbour(Neighbour),
    /// Answers a census probe.
    Census(Census),
    /// Answers a request for the footprint.
    Footprint(Footprint),
}

/// Takes the rows of an answer.
pub(in crate::memory) type Reply = Sender<Answered<Vec<Row>>>;

/// What a caller sends.
pub(in crate::memory) enum Command {
    /// Changes.
    Load(PreparedLoad),
    /// A first hop.
    Index(Box<IndexProbe>, Reply),
    /// A walk.
    Neighbourhood(NeighbourhoodProbe, Reply),
    /// A count.
    Census(CensusProbe, Reply),
    /// How much memory one bank takes, or all banks, once every load before this command is applied.
    Footprint(Option<BankKey>, Reply),
    /// Is answered once every load before it is applied.
    Barrier(Reply),
    /// Panics, for a test.
    Panic,
}

/// The maximum number of loads that wait for a shard or are being applied.
const MOST_LOADS: usize = 4;

/// The loads that wait for a shard or are being applied.
#[derive(Debug, Default)]
pub(in crate::memory) struct Backlog {
    loads: Mutex<LoadCount>,
    changed: Condvar,
    /// Raised when there is room again after there was none.
    room: Option<Arc<Signal>>,
}

#[derive(Debug, Default)]
struct LoadCount {
    loads: usize,
    stopped: bool,
}

impl Backlog {
    /// No loads yet; `room` is raised when there is room again after there was none.
    pub(in crate::memory) fn new(room: Option<Arc<Signal>>) -> Self {
        Self { loads: Mutex::default(), changed: Condvar::new(), room }
    }

    /// Waits until there is room for one more load, and counts it; false if the shard has stopped.
    pub(in crate::memory) fn add(&self) -> bool {
        let mut waiting = sync::lock(&self.loads);
        while waiting.loads >= MOST_LOADS && !waiting.stopped {
            waiting = sync::wait(&self.changed, waiting);
        }
        waiting.loads += 1;
        !waiting.stopped
    }

    /// Whether there is room for one more load without waiting.
    pub(in crate::memory) fn has_room(&self) -> bool {
        let waiting = sync::lock(&self.loads);
        waiting.loads < MOST_LOADS || waiting.stopped
    }

    /// Whether the shard has stopped.
    pub(in crate::memory) fn is_stopped(&self) -> bool {
        sync::lock(&self.loads).stopped
    }

    /// A load was applied.
    pub(in crate::memory) fn remove(&self) {
        let was_full = {
            let mut waiting = sync::lock(&self.loads);
            let was_full = waiting.loads >= MOST_LOADS;
            waiting.loads = waiting.loads.saturating_sub(1);
            was_full
        };
        self.tell(was_full);
    }

    /// The shard has stopped.
    pub(in crate::memory) fn stop(&self) {
        sync::lock(&self.loads).stopped = true;
        self.tell(true);
    }

    fn tell(&self, has_room_again: bool) {
        self.changed.notify_all();
        self.room.iter().filter(|_| has_room_again).for_each(|room| room.raise());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_after_none_is_told_once_and_so_is_the_end() {
        let room = Arc::new(Signal::default());
        let backlog = Backlog::new(Some(Arc::clone(&room)));
        for _ in 0..MOST_LOADS {
            assert!(backlog.has_room() && backlog.add());
        }
        assert!(!backlog.has_room());
        assert_eq!(room.count(), 0);
        for _ in 0..MOST_LOADS {
            backlog.remove();
            assert!(backlog.has_room());
        }
        assert_eq!(room.count(), 1, "nobody waits for room that there is");
        backlog.stop();
        assert_eq!(room.count(), 2);
    }
}

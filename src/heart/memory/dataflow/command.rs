//! What callers send to a shard.
//!
//! In: loads and probes, each probe with the sender of its answer. Out: the same, in one order. A
//! bounded number of loads waits; then who loads waits, never who asks.

use std::sync::{Arc, Condvar, Mutex};

use crossbeam_channel::Sender;

use super::{
    census::{Census, CensusProbe},
    load::PreparedLoad,
};
use crate::memory::{
    api::{Answered, FamiliarParts, Hit, IndexProbe, Neighbour, NeighbourhoodProbe},
    footprint::Footprint,
};
use nouns::{model::BankKey, sync};

/// Identifies a load in flight; later loads have greater ones.
pub(in crate::memory) type LoadId = u64;

/// One row of an answer.
#[derive(Debug, Clone)]
pub(in crate::memory) enum Row {
    /// Of a first-hop probe.
    Hit(Hit),
    /// Of a familiarity probe.
    Familiar(Arc<FamiliarParts>),
    /// Of a neighbourhood.
    Neighbour(Neighbour),
    /// Of a census.
    Census(Census),
    /// Of a footprint.
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
    /// How much room one bank takes, or all of them, once every load before it is applied.
    Footprint(Option<BankKey>, Reply),
    /// Answered once every load before it is applied.
    Barrier(Reply),
    /// Panics, for a test.
    Panic,
}

/// Most loads that wait for a shard or are being applied.
const MOST_LOADS: usize = 4;

/// How many loads a shard has in hand.
#[derive(Debug, Default)]
pub(in crate::memory) struct Backlog {
    loads: Mutex<LoadCount>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LoadCount {
    loads: usize,
    stopped: bool,
}

impl Backlog {
    /// Counts one more, when there is room for it; false if the shard has stopped.
    pub(in crate::memory) fn add(&self) -> bool {
        let mut waiting = sync::lock(&self.loads);
        while waiting.loads >= MOST_LOADS && !waiting.stopped {
            waiting = sync::wait(&self.changed, waiting);
        }
        waiting.loads += 1;
        !waiting.stopped
    }

    /// Whether there is room for one more without waiting.
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
        let mut waiting = sync::lock(&self.loads);
        waiting.loads = waiting.loads.saturating_sub(1);
        self.changed.notify_all();
    }

    /// The shard has stopped.
    pub(in crate::memory) fn stop(&self) {
        sync::lock(&self.loads).stopped = true;
        self.changed.notify_all();
    }
}

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
use nouns::{model::BankKey, sync};

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
}

#[derive(Debug, Default)]
struct LoadCount {
    loads: usize,
    stopped: bool,
}

impl Backlog {
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

//! What callers send to a shard.
//!
//! In: loads and probes, each probe with the sender for its answer. Out: the same, in one order. Only a bounded number
//! of loads may be waiting; beyond that, a caller that sends a load is blocked, but never a caller that asks.

use std::sync::{Arc, Condvar, Mutex};

use crossbeam_channel::Sender;

use super::{
    census::{CensusProbe, GraphCensus},
    profile_view::ProfileProbe,
    record_load::PreparedLoad,
};
use crate::index::{
    matching_parts::MatchingParts,
    memory_footprint::MemoryFootprint,
    probes::{DataflowAnswer, FamiliarityResult, FirstHopHit, IndexProbe, Neighbour, NeighbourhoodProbe},
    profile::profile_line::ProfileLine,
    units::unit_body::UnitBody,
};
use types::{model::BankKey, sync, wake_signal::WakeSignal};

/// Identifies a load in flight; later loads have greater ones.
pub(in crate::index) type LoadId = u64;

/// One row of an answer.
#[derive(Debug, Clone)]
pub(in crate::index) enum AnswerRow {
    /// Answers a first-hop probe.
    Hit(FirstHopHit),
    /// Answers a familiarity probe.
    Familiar(Arc<FamiliarityResult>),
    /// Answers a turn probe.
    Unit(Arc<UnitBody>),
    /// Answers a match probe.
    Matching(Arc<MatchingParts>),
    /// Answers a neighbourhood probe.
    Neighbour(Neighbour),
    /// Answers a census probe.
    Census(GraphCensus),
    /// Answers a profile probe.
    Profile(Arc<ProfileLine>),
    /// Answers a request for the footprint.
    Footprint(MemoryFootprint),
}

/// Takes the rows of an answer.
pub(in crate::index) type AnswerSender = Sender<DataflowAnswer<Vec<AnswerRow>>>;

/// What a caller sends.
pub(in crate::index) enum ShardCommand {
    /// Changes.
    Load(PreparedLoad),
    /// A first hop.
    Index(Box<IndexProbe>, AnswerSender),
    /// A walk.
    Neighbourhood(NeighbourhoodProbe, AnswerSender),
    /// A count.
    Census(CensusProbe, AnswerSender),
    /// What holds of persons.
    Profile(ProfileProbe, AnswerSender),
    /// How much memory one bank takes, or all banks, once every load before this command is applied.
    Footprint(Option<BankKey>, AnswerSender),
    /// Is answered once every load before it is applied.
    Barrier(AnswerSender),
    /// Panics, for a test.
    Panic,
}

/// The maximum number of loads that wait for a shard or are being applied.
const MAX_LOADS: usize = 4;

/// The loads that wait for a shard or are being applied.
#[derive(Debug, Default)]
pub(in crate::index) struct LoadBacklog {
    loads: Mutex<BacklogState>,
    changed: Condvar,
    /// Raised when there is room again after there was none.
    room: Option<Arc<WakeSignal>>,
}

#[derive(Debug, Default)]
struct BacklogState {
    loads: usize,
    stopped: bool,
}

impl LoadBacklog {
    /// No loads yet; `room` is raised when there is room again after there was none.
    pub(in crate::index) fn new(room: Option<Arc<WakeSignal>>) -> Self {
        Self { loads: Mutex::default(), changed: Condvar::new(), room }
    }

    /// Waits until there is room for one more load, and counts it; false if the shard has stopped.
    pub(in crate::index) fn wait_and_add(&self) -> bool {
        let mut waiting = sync::lock(&self.loads);
        while waiting.loads >= MAX_LOADS && !waiting.stopped {
            waiting = sync::wait(&self.changed, waiting);
        }
        waiting.loads += 1;
        !waiting.stopped
    }

    /// Whether there is room for one more load without waiting.
    pub(in crate::index) fn has_room(&self) -> bool {
        let waiting = sync::lock(&self.loads);
        waiting.loads < MAX_LOADS || waiting.stopped
    }

    /// Whether the shard has stopped.
    pub(in crate::index) fn is_stopped(&self) -> bool {
        sync::lock(&self.loads).stopped
    }

    /// A load was applied.
    pub(in crate::index) fn remove(&self) {
        let was_full = {
            let mut waiting = sync::lock(&self.loads);
            let was_full = waiting.loads >= MAX_LOADS;
            waiting.loads = waiting.loads.saturating_sub(1);
            was_full
        };
        self.notify_room(was_full);
    }

    /// The shard has stopped.
    pub(in crate::index) fn stop(&self) {
        sync::lock(&self.loads).stopped = true;
        self.notify_room(true);
    }

    fn notify_room(&self, has_room_again: bool) {
        self.changed.notify_all();
        self.room.iter().filter(|_| has_room_again).for_each(|room| room.raise());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_after_none_is_told_once_and_so_is_the_end() {
        let room = Arc::new(WakeSignal::default());
        let backlog = LoadBacklog::new(Some(Arc::clone(&room)));
        for _ in 0..MAX_LOADS {
            assert!(backlog.has_room() && backlog.wait_and_add());
        }
        assert!(!backlog.has_room());
        assert_eq!(room.count(), 0);
        for _ in 0..MAX_LOADS {
            backlog.remove();
            assert!(backlog.has_room());
        }
        assert_eq!(room.count(), 1, "nobody waits for room that there is");
        backlog.stop();
        assert_eq!(room.count(), 2);
    }
}

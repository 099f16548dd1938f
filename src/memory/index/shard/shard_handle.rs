//! A shard of the memory as its callers use it.
//!
//! In: record changes in log order, probes. Out: answers with the offsets that they reflect. The answer to a probe
//! includes every load that was sent before it. Dropping the handle drops the shard with its dataflow. Any thread may
//! use it.

use std::{sync::Arc, thread::Thread};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{
    shard_thread_pool::{PlacedShard, ShardThreadPool},
    shard_worker::ShardSeed,
};
use crate::index::{
    dataflow::{
        census::{CensusProbe, GraphCensus},
        profile_view::ProfileProbe,
        record_load::{ChangeListeners, RecordLoad},
        shard_command::{AnswerRow, AnswerSender, LoadBacklog, ShardCommand},
    },
    matching_parts::MatchingParts,
    memory_footprint::MemoryFootprint,
    probes::{
        DataflowAnswer, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, FixedVector, IndexProbe,
        MatchProbe, Neighbour, NeighbourhoodProbe, TurnProbe, UnitNeighbourhood,
    },
    profile::profile_line::ProfileLine,
    units::unit_body::UnitBody,
};
use types::{
    config::MemorySettings,
    model::{BankKey, Cues, Score, UnitId},
};

/// Why the memory did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// A shard has ended.
    #[error("the memory has stopped: {0}; restart the program: the log holds everything")]
    Stopped(String),
}

/// A running shard.
#[derive(Debug)]
pub struct ShardHandle {
    commands: Option<Sender<ShardCommand>>,
    thread: Thread,
    gone: Receiver<()>,
    backlog: Arc<LoadBacklog>,
    /// Keeps the threads alive.
    _threads: Arc<ShardThreadPool>,
}

impl ShardHandle {
    /// An empty shard on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        settings: &MemorySettings,
        semantic_threshold: Score,
        listeners: ChangeListeners,
    ) -> Result<Self, ShardError> {
        let threads = ShardThreadPool::start(1).map_err(|e| ShardError::Stopped(e.to_string()))?;
        Self::start_on(&threads, settings, semantic_threshold, listeners)
    }

    /// An empty shard on one of some threads.
    ///
    /// # Errors
    /// When the threads have ended.
    pub fn start_on(
        threads: &Arc<ShardThreadPool>,
        settings: &MemorySettings,
        semantic_threshold: Score,
        listeners: ChangeListeners,
    ) -> Result<Self, ShardError> {
        let (sender, commands) = unbounded();
        let backlog = Arc::new(LoadBacklog::new(listeners.room.clone()));
        let (settings, in_hand) = (settings.clone(), Arc::clone(&backlog));
        let slice = threads.slice();
        let seed = ShardSeed { settings, semantic_threshold, slice, listeners, commands, backlog: in_hand };
        let placed = threads.place_shard(seed).ok_or_else(|| ShardError::Stopped("its thread has ended".to_owned()))?;
        let PlacedShard { thread, gone } = placed;
        Ok(Self { commands: Some(sender), thread, gone, backlog, _threads: Arc::clone(threads) })
    }

    /// Sends changes, in log order. Returns before they are visible; a later probe sees them. Blocks while too many
    /// loads are waiting.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn load(&self, load: RecordLoad) -> Result<(), ShardError> {
        let load = load.prepare();
        if !self.backlog.wait_and_add() {
            return Err(stopped());
        }
        self.send(ShardCommand::Load(load))
    }

    /// Whether [`Self::load`] would not wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.backlog.has_room()
    }

    /// Whether the shard has ended; if so, every other call fails.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.backlog.is_stopped()
    }

    /// Waits until every load that was sent is visible; returns the offsets that the memory reflects.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn wait_for_loads(&self) -> Result<DataflowAnswer<()>, ShardError> {
        let answered = self.ask(ShardCommand::Barrier)?;
        Ok(DataflowAnswer { value: (), epoch: answered.epoch, reflects: answered.reflects })
    }

    /// The first hop: hits by channel, then rank.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn first_hop(&self, probe: FirstHopProbe) -> Result<DataflowAnswer<Vec<FirstHopHit>>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Index(Box::new(IndexProbe::FirstHop(probe)), reply))?;
        let mut hits = rows(answered, |row| if let AnswerRow::Hit(hit) = row { Some(hit) } else { None });
        hits.value.sort_by_key(|hit| (hit.channel.order(), hit.rank));
        Ok(hits)
    }

    /// The most familiar parts of a bank; none for an empty bank.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn familiar_parts(&self, probe: FamiliarityProbe) -> Result<DataflowAnswer<FamiliarityResult>, ShardError> {
        let answered =
            self.ask(|reply| ShardCommand::Index(Box::new(IndexProbe::Familiarity(Box::new(probe))), reply))?;
        let DataflowAnswer { value, epoch, reflects } =
            rows(answered, |row| if let AnswerRow::Familiar(familiar) = row { Some(familiar) } else { None });
        // As a rule, the dataflow no longer holds it, so nothing is copied.
        let value = value.into_iter().next().map(Arc::unwrap_or_clone).unwrap_or_default();
        Ok(DataflowAnswer { value, epoch, reflects })
    }

    /// The neighbourhood of anchors: neighbours by channel, then unit.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<DataflowAnswer<Vec<Neighbour>>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Neighbourhood(probe, reply))?;
        let mut found = rows(answered, |row| if let AnswerRow::Neighbour(found) = row { Some(found) } else { None });
        found.value.sort_by_key(|n| (n.channel, n.unit.id));
        Ok(found)
    }

    /// A unit, and the units that one edge leads to, by channel; none if it is not in the bank. For each channel, only
    /// the `memory.fan_out` strongest edges count.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn unit(&self, bank: BankKey, id: UnitId) -> Result<DataflowAnswer<Option<UnitNeighbourhood>>, ShardError> {
        let DataflowAnswer { value, epoch, reflects } = self.neighbourhood(lookup_probe(bank, vec![id], 1))?;
        let (itself, neighbours): (Vec<Neighbour>, _) = value.into_iter().partition(|found| found.path.is_empty());
        let unit = itself.into_iter().next().map(|found| found.unit);
        Ok(DataflowAnswer { value: unit.map(|unit| UnitNeighbourhood { unit, neighbours }), epoch, reflects })
    }

    /// Units of a bank as of one epoch, by id; those that are not in the bank are left out.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn units(&self, bank: BankKey, ids: Vec<UnitId>) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, ShardError> {
        let DataflowAnswer { value, epoch, reflects } = self.neighbourhood(lookup_probe(bank, ids, 0))?;
        Ok(DataflowAnswer { value: value.into_iter().map(|found| found.unit).collect(), epoch, reflects })
    }

    /// The units of a bank that a turn was made into, in the order of the bank. Reads every part of the bank.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn units_of_turn(&self, probe: TurnProbe) -> Result<DataflowAnswer<Vec<Arc<UnitBody>>>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Index(Box::new(IndexProbe::Turn(probe)), reply))?;
        Ok(rows(answered, |row| if let AnswerRow::Unit(unit) = row { Some(unit) } else { None }))
    }

    /// The parts of a bank that a selector takes; none for an empty bank. Compares every part of the bank.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn matching_parts(&self, probe: MatchProbe) -> Result<DataflowAnswer<Arc<MatchingParts>>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Index(Box::new(IndexProbe::Match(probe)), reply))?;
        let DataflowAnswer { value, epoch, reflects } =
            rows(answered, |row| if let AnswerRow::Matching(found) = row { Some(found) } else { None });
        Ok(DataflowAnswer { value: value.into_iter().next().unwrap_or_default(), epoch, reflects })
    }

    /// A census of one bank or of all banks.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn census(&self, probe: CensusProbe) -> Result<DataflowAnswer<GraphCensus>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Census(probe, reply))?;
        let parts = rows(answered, |row| if let AnswerRow::Census(census) = row { Some(census) } else { None });
        let mut whole = GraphCensus::default();
        parts.value.into_iter().for_each(|part| whole.add(part));
        Ok(DataflowAnswer { value: whole, epoch: parts.epoch, reflects: parts.reflects })
    }

    /// What holds of persons, and what was superseded: lines in the order in which they were last said.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn profile(&self, probe: ProfileProbe) -> Result<DataflowAnswer<Vec<Arc<ProfileLine>>>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Profile(probe, reply))?;
        let mut lines = rows(answered, |row| if let AnswerRow::Profile(line) = row { Some(line) } else { None });
        lines.value.sort();
        Ok(lines)
    }

    /// How much memory one bank takes, or all banks, once every load that was sent is applied.
    ///
    /// # Errors
    /// [`ShardError::Stopped`].
    pub fn footprint(&self, bank: Option<BankKey>) -> Result<DataflowAnswer<MemoryFootprint>, ShardError> {
        let answered = self.ask(|reply| ShardCommand::Footprint(bank, reply))?;
        let DataflowAnswer { value, epoch, reflects } =
            rows(answered, |row| if let AnswerRow::Footprint(footprint) = row { Some(footprint) } else { None });
        Ok(DataflowAnswer { value: value.into_iter().next().unwrap_or_default(), epoch, reflects })
    }

    /// Makes the shard panic, so that it is made again; returns once it is gone. A replica calls it where the shard's state
    /// is not that of its log, and tests call it.
    #[doc(hidden)]
    pub fn panic(&self) {
        drop(self.send(ShardCommand::Panic));
        let _ = self.gone.recv();
    }

    fn ask(
        &self,
        command: impl FnOnce(AnswerSender) -> ShardCommand,
    ) -> Result<DataflowAnswer<Vec<AnswerRow>>, ShardError> {
        let (reply, answer) = bounded(1);
        self.send(command(reply))?;
        answer.recv().map_err(|_| stopped())
    }

    fn send(&self, command: ShardCommand) -> Result<(), ShardError> {
        self.commands.as_ref().ok_or_else(stopped)?.send(command).map_err(|_| stopped())?;
        self.thread.unpark();
        Ok(())
    }
}

impl Drop for ShardHandle {
    /// Waits until the shard is gone.
    fn drop(&mut self) {
        self.commands = None;
        self.thread.unpark();
        let _ = self.gone.recv();
    }
}

/// A walk that shows the units it begins with, and asks for nothing.
fn lookup_probe(bank: BankKey, ids: Vec<UnitId>, hops: u32) -> NeighbourhoodProbe {
    let nothing: FixedVector = Vec::new().into();
    NeighbourhoodProbe {
        bank,
        anchors: ids,
        hops,
        mixed: false,
        question: nothing.clone(),
        target: nothing,
        target_cues: Cues::default(),
        itself: true,
        matching: None,
    }
}

fn stopped() -> ShardError {
    ShardError::Stopped("a shard ended before it answered".to_owned())
}

fn rows<T>(
    answered: DataflowAnswer<Vec<AnswerRow>>,
    pick: impl FnMut(AnswerRow) -> Option<T>,
) -> DataflowAnswer<Vec<T>> {
    let value = answered.value.into_iter().filter_map(pick).collect();
    DataflowAnswer { value, epoch: answered.epoch, reflects: answered.reflects }
}

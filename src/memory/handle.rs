//! The memory as its callers hold it: a running dataflow behind a channel.
//!
//! In: record changes in log order, probes. Out: answers with the offsets that they reflect. One
//! epoch is in flight at a time; a load that was sent before a probe is included in its answer.
//! Dropping the handle stops the workers. No result depends on a clock: a wake-up only makes the
//! workers check for work.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    thread::{JoinHandle, Thread},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use timely::worker::Worker;

use super::{
    api::{Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, IndexProbe, Neighbour, NeighbourhoodProbe},
    bank_index::{Epoch, PendingProbe, ProbeId},
    census::{Census, CensusProbe, GraphEdge},
    dataflow::{Inputs, Row, Watchers, build},
    live::{Extraction, RecordKey},
    score::GraphChoice,
};
use crate::{
    config::MemorySettings,
    model::{BankKey, Position, Score},
};

/// Why the memory gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A worker has ended.
    #[error("the memory has stopped: {0}; start again, the log holds everything")]
    Stopped(String),
}

/// Changes of one read of the log, applied in one epoch.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// Records that were added, changed or removed (`None`); the last one of a key wins.
    pub changes: Vec<(RecordKey, Option<Arc<Extraction>>)>,
    /// How far into the logs the memory reaches with them.
    pub reflects: Vec<Position>,
    /// All choices of banks that are restored as a whole with this load, as they were found before
    /// for the same units under the same settings. They are used instead of searching again.
    pub known: Vec<(BankKey, Arc<Vec<GraphChoice>>)>,
}

/// Choices that one load added (+1) and removed (−1); each at most once.
pub type ChoiceChanges = Vec<((BankKey, GraphChoice), isize)>;

/// Receivers of changes.
#[derive(Debug, Clone, Default)]
pub struct Listeners {
    /// Every change of the graph's edges, epoch by epoch, before any later answer.
    pub edges: Option<Sender<EdgeChanges>>,
    /// The changes of the choices, one message for each load without [`Load::known`].
    pub choices: Option<Sender<ChoiceChanges>>,
}

/// Edges that one epoch added and removed. An edge whose weight changed is removed with the old
/// weight and added with the new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EdgeChanges {
    /// New edges.
    pub added: Vec<GraphEdge>,
    /// Removed edges.
    pub removed: Vec<GraphEdge>,
}

enum Command {
    Load(Load),
    Index(Box<IndexProbe>, Sender<Answered<Vec<Row>>>),
    Neighbourhood(NeighbourhoodProbe, Sender<Answered<Vec<Row>>>),
    Census(CensusProbe, Sender<Answered<Vec<Row>>>),
    Barrier(Sender<Answered<Vec<Row>>>),
}

/// Most commands of one epoch. At most one is a load, so that an epoch ends where a read of the log
/// ended. More would make a question wait for others.
const COMMANDS_AN_EPOCH: usize = 32;
/// Most queued commands; then callers wait.
const QUEUE: usize = 256;
/// A sleeping worker checks for work after this time even if it was not woken.
const NAP: Duration = Duration::from_millis(1);

/// A running memory.
#[derive(Debug)]
pub struct MemoryHandle {
    commands: Option<Sender<Command>>,
    feeder: Thread,
    runner: Option<JoinHandle<Result<(), String>>>,
}

impl MemoryHandle {
    /// Starts the workers with an empty memory.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn start(
        settings: &MemorySettings,
        semantic_threshold: Score,
        listeners: Listeners,
    ) -> Result<Self, MemoryError> {
        let (commands, incoming) = bounded(QUEUE);
        let (ready, started) = bounded(1);
        let settings = settings.clone();
        let runner = std::thread::Builder::new()
            .name("memory".to_owned())
            .spawn(move || run(&settings, semantic_threshold, incoming, &ready, listeners))
            .map_err(|e| MemoryError::Stopped(e.to_string()))?;
        let feeder = started.recv().map_err(|_| MemoryError::Stopped("its workers did not start".to_owned()))?;
        Ok(Self { commands: Some(commands), feeder, runner: Some(runner) })
    }

    /// Sends changes, in log order. Returns before they are visible; a later probe sees them.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn load(&self, load: Load) -> Result<(), MemoryError> {
        self.send(Command::Load(load))
    }

    /// Waits until every load that was sent is visible; returns the offsets that the memory reflects.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn wait_for_loads(&self) -> Result<Answered<()>, MemoryError> {
        let answered = self.ask(Command::Barrier)?;
        Ok(Answered { value: (), epoch: answered.epoch, reflects: answered.reflects })
    }

    /// The first hop: hits by channel, then rank.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, MemoryError> {
        let answered = self.ask(|reply| Command::Index(Box::new(IndexProbe::FirstHop(probe)), reply))?;
        let mut hits = rows(answered, |row| if let Row::Hit(hit) = row { Some(hit) } else { None });
        hits.value.sort_by_key(|hit| (hit.channel.order(), hit.rank));
        Ok(hits)
    }

    /// The most familiar parts of a bank; none for an empty bank.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, MemoryError> {
        let answered = self.ask(|reply| Command::Index(Box::new(IndexProbe::Familiarity(Box::new(probe))), reply))?;
        let Answered { value, epoch, reflects } =
            rows(answered, |row| if let Row::Familiar(familiar) = row { Some(familiar) } else { None });
        Ok(Answered { value: value.into_iter().next().unwrap_or_default(), epoch, reflects })
    }

    /// The neighbourhood of anchors: neighbours by channel, then unit.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, MemoryError> {
        let answered = self.ask(|reply| Command::Neighbourhood(probe, reply))?;
        let mut found = rows(answered, |row| if let Row::Neighbour(found) = row { Some(found) } else { None });
        found.value.sort_by_key(|n| (n.channel, n.unit.id));
        Ok(found)
    }

    /// A census of one bank or of all.
    ///
    /// # Errors
    /// [`MemoryError::Stopped`].
    pub fn census(&self, probe: CensusProbe) -> Result<Answered<Census>, MemoryError> {
        let answered = self.ask(|reply| Command::Census(probe, reply))?;
        let parts = rows(answered, |row| if let Row::Census(census) = row { Some(census) } else { None });
        let mut whole = Census::default();
        parts.value.into_iter().for_each(|part| whole.add(part));
        Ok(Answered { value: whole, epoch: parts.epoch, reflects: parts.reflects })
    }

    fn ask(
        &self,
        command: impl FnOnce(Sender<Answered<Vec<Row>>>) -> Command,
    ) -> Result<Answered<Vec<Row>>, MemoryError> {
        let (reply, answer) = bounded(1);
        self.send(command(reply))?;
        answer.recv().map_err(|_| MemoryError::Stopped("a worker ended before it answered".to_owned()))
    }

    fn send(&self, command: Command) -> Result<(), MemoryError> {
        let stopped = || MemoryError::Stopped("its workers have ended".to_owned());
        self.commands.as_ref().ok_or_else(stopped)?.send(command).map_err(|_| stopped())?;
        self.feeder.unpark();
        Ok(())
    }
}

impl Drop for MemoryHandle {
    fn drop(&mut self) {
        self.commands = None;
        self.feeder.unpark();
        if let Some(runner) = self.runner.take() {
            drop(runner.join());
        }
    }
}

fn rows<T>(answered: Answered<Vec<Row>>, pick: impl FnMut(Row) -> Option<T>) -> Answered<Vec<T>> {
    let value = answered.value.into_iter().filter_map(pick).collect();
    Answered { value, epoch: answered.epoch, reflects: answered.reflects }
}

fn run(
    settings: &MemorySettings,
    semantic_threshold: Score,
    incoming: Receiver<Command>,
    ready: &Sender<Thread>,
    listeners: Listeners,
) -> Result<(), String> {
    let mut config = timely::Config::process(settings.workers);
    // Idle merging would keep the workers busy between epochs without a benefit.
    let idle = differential_dataflow::Config::default().idle_merge_effort(None);
    differential_dataflow::configure(&mut config.worker, &idle);
    let (settings, ready) = (settings.clone(), ready.clone());
    let (rows_out, rows_in) = unbounded();
    // Only the first worker feeds; it takes these receivers once.
    let (edges_out, edges_in) = unbounded();
    let (choices_out, choices_in) = unbounded();
    let (edges_watched, choices_watched) = (listeners.edges.is_some(), listeners.choices.is_some());
    let edges = listeners.edges.map(|listener| (edges_in, listener));
    let choices = listeners.choices.map(|listener| (choices_in, listener));
    let feed = Arc::new(Mutex::new(Some((incoming, rows_in, edges, choices))));
    let guards = timely::execute(config, move |worker| {
        let rows_out = rows_out.clone();
        let edges_out = edges_out.clone();
        let choices_out = choices_out.clone();
        // The feeder outlives its inputs.
        let watchers = Watchers {
            edges: edges_watched.then_some(move |edge, diff| {
                let _ = edges_out.send((edge, diff));
            }),
            choices: choices_watched.then_some(move |bank, choice, diff| {
                let _ = choices_out.send(((bank, choice), diff));
            }),
        };
        let answer = move |id, row| drop(rows_out.send((id, row)));
        let inputs = build(worker, &settings, semantic_threshold, answer, watchers);
        let mine = if worker.index() == 0 { feed.lock().ok().and_then(|mut f| f.take()) } else { None };
        match mine {
            Some((incoming, rows_in, edges, choices)) => {
                // If the caller gave up, the command channel is closed too.
                drop(ready.send(std::thread::current()));
                Feeder { inputs, incoming, rows_in, edges, choices, epoch: 0, reflects: BTreeMap::new() }.run(worker);
            }
            None => drop(inputs),
        }
        while worker.step_or_park(None) {}
    })?;
    guards.join().into_iter().collect()
}

/// Changes as the workers see them, and the listener that gets the sum of an epoch.
type Feed<E, T> = (Receiver<(E, isize)>, Sender<T>);

/// The first worker's loop: commands to inputs, epoch by epoch, and rows to replies.
struct Feeder {
    inputs: Inputs,
    incoming: Receiver<Command>,
    rows_in: Receiver<(ProbeId, Row)>,
    edges: Option<Feed<GraphEdge, EdgeChanges>>,
    choices: Option<Feed<(BankKey, GraphChoice), ChoiceChanges>>,
    epoch: Epoch,
    reflects: BTreeMap<(String, u32), u64>,
}

impl Feeder {
    fn run(mut self, worker: &mut Worker) {
        let mut probes: ProbeId = 0;
        loop {
            let mut replies: HashMap<ProbeId, Sender<Answered<Vec<Row>>>> = HashMap::new();
            let mut changes = HashMap::new();
            let mut commands = 0;
            let mut open = true;
            let mut loaded = None;
            while commands < COMMANDS_AN_EPOCH && loaded.is_none() {
                let command = match self.incoming.try_recv() {
                    Ok(command) => command,
                    Err(error) => {
                        open = !error.is_disconnected();
                        break;
                    }
                };
                commands += 1;
                probes += 1;
                match command {
                    Command::Load(load) => {
                        changes.extend(load.changes);
                        for p in load.reflects {
                            self.reflects.insert((p.topic, p.partition), p.next_offset);
                        }
                        loaded = Some(load.known);
                    }
                    Command::Barrier(reply) => drop(replies.insert(probes, reply)),
                    Command::Index(probe, reply) => {
                        self.inputs.indexes.send(PendingProbe { id: probes, probe: Arc::from(probe) });
                        replies.insert(probes, reply);
                    }
                    Command::Neighbourhood(probe, reply) => {
                        self.inputs.neighbourhoods.send(PendingProbe { id: probes, probe: Arc::new(probe) });
                        replies.insert(probes, reply);
                    }
                    Command::Census(probe, reply) => {
                        self.inputs.censuses.send(PendingProbe { id: probes, probe: Arc::new(probe) });
                        replies.insert(probes, reply);
                    }
                }
            }
            if commands == 0 {
                if !open {
                    return;
                }
                worker.step_or_park(Some(NAP));
                continue;
            }
            for (key, extraction) in changes {
                self.inputs.records.send((key, extraction, self.epoch));
            }
            let restores = loaded.as_ref().is_some_and(|known| !known.is_empty());
            loaded.iter_mut().flat_map(std::mem::take).for_each(|known| self.inputs.known.send(known));
            let epoch = self.epoch;
            self.epoch += 1;
            self.inputs.advance_to(self.epoch);
            while self.inputs.done.less_than(&self.epoch) {
                worker.step_or_park(Some(NAP));
            }
            self.send_edges();
            if loaded.is_some() {
                self.send_choices(restores);
            }
            self.reply(epoch, replies);
        }
    }

    /// Sends the net changes of a complete epoch.
    fn send_edges(&self) {
        let Some((edges_in, listener)) = &self.edges else { return };
        let mut net: BTreeMap<GraphEdge, isize> = BTreeMap::new();
        for (edge, diff) in edges_in.try_iter() {
            *net.entry(edge).or_default() += diff;
        }
        let mut changes = EdgeChanges::default();
        for (edge, diff) in net.into_iter().filter(|(_, diff)| *diff != 0) {
            if diff > 0 { &mut changes.added } else { &mut changes.removed }.push(edge);
        }
        if !changes.added.is_empty() || !changes.removed.is_empty() {
            // A listener that stopped has dropped its end.
            drop(listener.send(changes));
        }
    }

    /// Sends the net changes of a complete load, unless its choices were known.
    fn send_choices(&self, restored: bool) {
        let Some((choices_in, listener)) = &self.choices else { return };
        let mut changes: ChoiceChanges = choices_in.try_iter().collect();
        if restored {
            return;
        }
        differential_dataflow::consolidation::consolidate(&mut changes);
        drop(listener.send(changes));
    }

    /// Every row of a complete epoch was sent before the epoch was complete.
    fn reply(&self, epoch: Epoch, replies: HashMap<ProbeId, Sender<Answered<Vec<Row>>>>) {
        let mut answers: HashMap<ProbeId, Vec<Row>> = HashMap::new();
        for (id, row) in self.rows_in.try_iter() {
            answers.entry(id).or_default().push(row);
        }
        for (id, reply) in replies {
            let reflects = self.reflects.iter().map(|((topic, partition), next_offset)| Position {
                topic: topic.clone(),
                partition: *partition,
                next_offset: *next_offset,
            });
            let value = answers.remove(&id).unwrap_or_default();
            // A caller that no longer waits has dropped its end.
            drop(reply.send(Answered { value, epoch, reflects: reflects.collect() }));
        }
    }
}

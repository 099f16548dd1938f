//! One shard of the memory: a worker with its own dataflow, inputs, epochs and queue of commands (decision 45).
//!
//! In: the commands of its handle. Out: answers, and the changes of its graph to the listeners. One epoch is in flight
//! at a time. An epoch either answers probes or applies pieces of loads; a scan that is longer than its first slice
//! continues between epochs. An answer about a bank shows the memory as of the last load that was sent before the
//! probe: it reflects all of that load, and nothing later. While a bank does not change, it is counted once for all
//! callers.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crossbeam_channel::{Receiver, TryRecvError};
use differential_dataflow::trace::ExertionLogic;
use timely::{
    WorkerConfig,
    communication::allocator::{Allocator, thread::Thread},
    worker::Worker,
};

use super::shard_schedule::{BankProbe, ShardSchedule};
use crate::index::{
    dataflow::{
        bank_index::{BankStep, Epoch, PendingProbe, ProbeId, ScanProgress},
        build_dataflow::{ChangeKinds, ShardInputs, ShardOutputs, build},
        census::{CensusProbe, GraphEdge},
        record_load::{ChangeListeners, ChoiceChanges, EdgeChanges, PreparedLoad},
        shard_banks::{ShardBanks, SharedBanks, SharedPostings},
        shard_command::{AnswerRow, AnswerSender, LoadBacklog, LoadId, ShardCommand},
    },
    probes::DataflowAnswer,
    work_budget::WorkBudget,
};
use types::{
    config::MemorySettings,
    model::{BankKey, LogPosition, Score},
};

/// How many records one step merges in an arrangement that needs merging; this takes well under a millisecond.
const MERGED_AT_ONCE: usize = 1_024;
/// An arrangement is merged while the records outside its largest batch are more than an eighth of that batch and more
/// than [`LOOSE_RECORDS`], below which a merge is not worth its cost.
const LOOSE_SHARE: usize = 8;
const LOOSE_RECORDS: usize = 512;

/// The maximum number of probes in one epoch. With more, a question would wait for others.
const PROBES_AN_EPOCH: usize = 32;

/// The maximum number of probes of one bank in one epoch, so that another bank's question waits for few.
const PROBES_OF_BANK: usize = 8;

/// The maximum number of censuses that are kept until their banks change.
const KEPT_CENSUSES: usize = 4_096;

/// What a thread needs to make a shard.
pub(in crate::index) struct ShardSeed {
    /// The settings.
    pub settings: MemorySettings,
    /// The least score of a semantic edge.
    pub semantic_threshold: Score,
    /// The work of a slice.
    pub slice: u64,
    /// The receivers of changes.
    pub listeners: ChangeListeners,
    /// The commands of its handle.
    pub commands: Receiver<ShardCommand>,
    /// The loads that wait for it or are being applied.
    pub backlog: Arc<LoadBacklog>,
}

/// A shard on its thread.
pub(in crate::index) struct ShardWorker {
    worker: Worker,
    inputs: ShardInputs,
    banks: SharedBanks,
    turns: Rc<ScanProgress>,
    outputs: Rc<ShardOutputs>,
    listeners: ChangeListeners,
    commands: Receiver<ShardCommand>,
    backlog: Arc<LoadBacklog>,
    schedule: ShardSchedule,
    slice: u64,
    /// A census of all banks; no later command is taken before it is answered.
    fence: Option<(CensusProbe, AnswerSender)>,
    barriers: Vec<LoadBarrier>,
    loads: VecDeque<RunningLoad>,
    waiting: HashMap<ProbeId, PendingAnswer>,
    /// Walks and counts of this epoch.
    in_epoch: Vec<ProbeId>,
    /// The censuses of this epoch, each with the probes that it answers; the first of them was sent.
    censuses: HashMap<CensusProbe, Vec<ProbeId>>,
    /// Counts and hashes of banks that have not changed since.
    counted: HashMap<CensusProbe, Vec<AnswerRow>>,
    /// Censuses that were sent into the dataflow.
    #[cfg(test)]
    pub(in crate::index) censuses_made: u64,
    scans_sent: u64,
    scans_answered: u64,
    epoch: Epoch,
    probes: ProbeId,
    last_load: LoadId,
    reflects: BTreeMap<(String, u32), u64>,
    /// `reflects` as answers state it; None after a load.
    positions: Option<Arc<Vec<LogPosition>>>,
    /// Whether the last slice was spent on scans.
    scanned: bool,
    /// Whether the last step found an arrangement that needs further merging.
    merges: Arc<AtomicBool>,
    is_closed: bool,
}

/// An answer that is not complete.
struct PendingAnswer {
    reply: AnswerSender,
    rows: Vec<AnswerRow>,
    /// The bank that a scan reads.
    scans: Option<BankKey>,
    reflects: Arc<Vec<LogPosition>>,
    epoch: Epoch,
}

/// An answer that waits for loads.
struct LoadBarrier {
    /// The last load that it waits for.
    after: LoadId,
    /// Whose footprint is asked for, if any: that of one bank, or of all banks.
    footprint: Option<Option<BankKey>>,
    waiting: PendingAnswer,
}

/// The worker's settings. They say when arrangements are merged besides during their updates. Merging is needed because
/// a removed unit is held until its batch is merged with the batch of its removal. But merging everything into one
/// batch after every change would cost time in proportion to the size of the bank.
fn config(merges: &Arc<AtomicBool>) -> WorkerConfig {
    let (mut config, merges) = (WorkerConfig::default(), Arc::clone(merges));
    let logic: ExertionLogic = Arc::new(move |layers| {
        let (all, largest) = layers
            .iter()
            .fold((0, 0), |(all, largest): (usize, usize), (_, _, records)| (all + records, largest.max(*records)));
        let is_merging = layers.iter().any(|(_, batches, _)| *batches > 1);
        let wanted = is_merging || all - largest > LOOSE_RECORDS.max(largest / LOOSE_SHARE);
        merges.fetch_or(wanted, Ordering::Relaxed);
        wanted.then_some(MERGED_AT_ONCE)
    });
    config.set("differential/default_exert_logic".to_owned(), logic);
    config
}

/// A load that is not finished for every bank.
struct RunningLoad {
    id: LoadId,
    banks_left: usize,
    restores: bool,
    /// Whether its banks only enter memory or leave it.
    moves: bool,
    choices: ChoiceChanges,
}

impl ShardWorker {
    /// An empty shard.
    pub(in crate::index) fn new(seed: ShardSeed, postings: SharedPostings) -> Self {
        let merges = Arc::new(AtomicBool::default());
        let config = config(&merges);
        let mut worker = Worker::new(config, Allocator::Thread(Thread::default()), None);
        let ShardSeed { settings, semantic_threshold, slice, listeners, commands, backlog } = seed;
        let (turns, outputs) = (Rc::new(ScanProgress::default()), Rc::new(ShardOutputs::default()));
        let watched = ChangeKinds { edges: listeners.edges.is_some(), choices: listeners.choices.is_some() };
        let banks = Rc::new(RefCell::new(ShardBanks::new(&settings, semantic_threshold, postings)));
        let inputs = build(&mut worker, &settings, Rc::clone(&banks), Rc::clone(&turns), &outputs, watched);
        Self {
            worker,
            inputs,
            banks,
            turns,
            outputs,
            listeners,
            commands,
            backlog,
            schedule: ShardSchedule::default(),
            slice,
            fence: None,
            barriers: Vec::new(),
            loads: VecDeque::new(),
            waiting: HashMap::new(),
            in_epoch: Vec::new(),
            censuses: HashMap::new(),
            counted: HashMap::new(),
            #[cfg(test)]
            censuses_made: 0,
            scans_sent: 0,
            scans_answered: 0,
            epoch: 0,
            probes: 0,
            last_load: 0,
            reflects: BTreeMap::new(),
            positions: None,
            scanned: false,
            merges,
            is_closed: false,
        }
    }

    /// Whether its handle is gone.
    pub(in crate::index) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes what was sent and answers the probes that can be answered now; of a long scan, it does only the first
    /// slice. Returns whether anything was done.
    pub(in crate::index) fn answer(&mut self) -> bool {
        let took = self.take_commands();
        let probes = self.schedule.probes(PROBES_AN_EPOCH, PROBES_OF_BANK);
        let any = !probes.is_empty();
        if any {
            self.turns.fresh.set(self.slice);
            for (id, probe) in probes {
                self.send(id, probe);
            }
            self.complete_epoch();
        }
        self.pass_fence();
        self.pass_barriers();
        took || any
    }

    /// Does one slice of the loads or of the scans that are under way. Returns whether there was work.
    pub(in crate::index) fn work_slice(&mut self) -> bool {
        let (scans, loads) = (self.turns.running_scans() > 0, self.schedule.has_loads());
        if scans && !(loads && self.scanned) {
            self.scanned = true;
            self.turns.resume(self.slice);
            self.worker.step();
            self.take_rows();
            return true;
        }
        self.scanned = false;
        if loads {
            self.apply();
        }
        loads
    }

    /// Lets the worker clean up after its last epoch. Returns whether there is more to clean up.
    pub(in crate::index) fn merge_arrangements(&mut self) -> bool {
        self.merges.store(false, Ordering::Relaxed);
        self.worker.step();
        self.merges.load(Ordering::Relaxed)
    }

    fn take_commands(&mut self) -> bool {
        let mut any = false;
        while self.fence.is_none() {
            match self.commands.try_recv() {
                Ok(command) => self.command(command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.is_closed = true;
                    break;
                }
            }
            any = true;
        }
        any
    }

    fn command(&mut self, command: ShardCommand) {
        match command {
            ShardCommand::Load(load) => self.load(load),
            ShardCommand::Index(probe, reply) => {
                let bank = probe.bank();
                self.ask(bank, BankProbe::Index(Arc::from(probe)), reply);
            }
            ShardCommand::Neighbourhood(probe, reply) => {
                self.ask(probe.bank, BankProbe::Neighbourhood(Arc::new(probe)), reply);
            }
            ShardCommand::Census(probe, reply) => match probe.bank {
                Some(bank) => self.ask(bank, BankProbe::Census(Arc::new(probe)), reply),
                None => self.fence = Some((probe, reply)),
            },
            ShardCommand::Profile(probe, reply) => self.ask(probe.bank, BankProbe::Profile(Arc::new(probe)), reply),
            ShardCommand::Footprint(bank, reply) => self.wait_for_loads(Some(bank), reply),
            ShardCommand::Barrier(reply) => self.wait_for_loads(None, reply),
            ShardCommand::Panic => panic!("the shard is to be made again"),
        }
    }

    fn wait_for_loads(&mut self, footprint: Option<Option<BankKey>>, reply: AnswerSender) {
        let waiting = self.wait(reply, None);
        self.barriers.push(LoadBarrier { after: self.last_load, footprint, waiting });
    }

    fn load(&mut self, load: PreparedLoad) {
        self.last_load += 1;
        for p in load.reflects {
            self.reflects.insert((p.topic, p.partition), p.next_offset);
        }
        self.positions = None;
        let PreparedLoad { banks, restores, moves, .. } = load;
        let (id, banks_left) = (self.last_load, banks.len());
        self.loads.push_back(RunningLoad { id, banks_left, restores, moves, choices: Vec::new() });
        banks.into_iter().for_each(|of_bank| self.schedule.load(id, of_bank));
        self.finish_loads();
    }

    fn ask(&mut self, bank: BankKey, probe: BankProbe, reply: AnswerSender) {
        self.probes += 1;
        let scans = matches!(probe, BankProbe::Index(_)).then_some(bank);
        let waiting = self.wait(reply, scans);
        self.waiting.insert(self.probes, waiting);
        self.schedule.ask(bank, self.probes, probe);
    }

    fn wait(&mut self, reply: AnswerSender, scans: Option<BankKey>) -> PendingAnswer {
        let reflects = self.positions.get_or_insert_with(|| {
            let position = |((topic, partition), next_offset): (&(String, u32), &u64)| LogPosition {
                topic: topic.clone(),
                partition: *partition,
                next_offset: *next_offset,
            };
            Arc::new(self.reflects.iter().map(position).collect())
        });
        PendingAnswer { reply, rows: Vec::new(), scans, reflects: Arc::clone(reflects), epoch: self.epoch }
    }

    /// Sends a probe into the current epoch.
    fn send(&mut self, id: ProbeId, probe: BankProbe) {
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.epoch = self.epoch;
        }
        match probe {
            BankProbe::Index(probe) => {
                self.scans_sent += 1;
                self.inputs.indexes.send(PendingProbe { id, probe });
                return;
            }
            BankProbe::Neighbourhood(probe) => self.inputs.neighbourhoods.send(PendingProbe { id, probe }),
            BankProbe::Census(probe) => self.count(id, probe),
            BankProbe::Profile(probe) => self.inputs.profiles.send(PendingProbe { id, probe }),
        }
        self.in_epoch.push(id);
    }

    /// Sends a census into the current epoch, unless it is there already or its result is known.
    fn count(&mut self, id: ProbeId, probe: Arc<CensusProbe>) {
        // A hash comes with counts.
        let hashed = || self.counted.get(&CensusProbe { hashing: true, ..(*probe).clone() });
        if let Some(rows) = self.counted.get(&*probe).or_else(hashed) {
            let rows = rows.clone();
            self.waiting.entry(id).and_modify(|waiting| waiting.rows = rows);
            return;
        }
        let answered = self.censuses.entry((*probe).clone()).or_default();
        answered.push(id);
        if answered.len() == 1 {
            #[cfg(test)]
            {
                self.censuses_made += 1;
            }
            self.inputs.censuses.send(PendingProbe { id, probe });
        }
    }

    /// Sends the rows of this epoch's censuses to all who requested them, and keeps those that may be requested again.
    fn answer_censuses(&mut self) {
        for (probe, ids) in std::mem::take(&mut self.censuses) {
            let Some((first, others)) = ids.split_first() else { continue };
            let Some(rows) = self.waiting.get(first).map(|waiting| waiting.rows.clone()) else { continue };
            for other in others {
                self.waiting.entry(*other).and_modify(|waiting| waiting.rows.clone_from(&rows));
            }
            // A list may be as large as its bank.
            if probe.bank.is_some() && !probe.listing {
                if self.counted.len() >= KEPT_CENSUSES {
                    self.counted.clear();
                }
                self.counted.insert(probe, rows);
            }
        }
    }

    /// Applies pieces of loads in one epoch.
    fn apply(&mut self) {
        let turns = &self.turns;
        let size_of = |bank: BankKey| turns.sizes.borrow().get(&bank).copied().unwrap_or_default();
        let mut allowance = WorkBudget::new(self.slice);
        let pieces = self.schedule.pieces(&mut allowance, size_of);
        turns.repairs.set(allowance.left());
        let mut load_of: HashMap<BankKey, LoadId> = HashMap::with_capacity(pieces.len());
        let mut applied = Vec::with_capacity(pieces.len());
        for piece in pieces {
            load_of.insert(piece.bank, piece.load);
            for hashing in [false, true] {
                self.counted.remove(&CensusProbe { bank: Some(piece.bank), hashing, listing: false });
            }
            for (key, extraction) in piece.changes {
                self.inputs.records.send((key, extraction, self.epoch));
            }
            if piece.placed {
                self.inputs.known.send(BankStep::Placed(piece.bank));
            }
            if !piece.chosen.is_empty() {
                self.inputs.known.send(BankStep::Chosen(piece.bank, Arc::new(piece.chosen)));
            }
            if piece.last {
                self.inputs.known.send(BankStep::Repaired(piece.bank));
            }
            applied.push((piece.bank, piece.load, piece.last));
        }
        self.complete_epoch();
        let moving: HashSet<LoadId> = self.loads.iter().filter(|load| load.moves).map(|load| load.id).collect();
        self.send_edges(|bank| load_of.get(&bank).is_none_or(|id| !moving.contains(id)));
        for ((bank, choice), diff) in self.outputs.choices.take() {
            let load = load_of.get(&bank).and_then(|id| self.loads.iter_mut().find(|load| load.id == *id));
            if let Some(load) = load.filter(|load| !load.restores && !load.moves) {
                load.choices.push(((bank, choice), diff));
            }
        }
        for (bank, id, last) in applied {
            let is_done = last && !self.turns.unrepaired.borrow().contains(&bank);
            self.schedule.note_applied(bank, is_done);
            if let Some(load) = self.loads.iter_mut().find(|load| load.id == id).filter(|_| is_done) {
                load.banks_left -= 1;
            }
        }
        self.finish_loads();
    }

    /// Ends the epoch and steps until it is complete.
    fn complete_epoch(&mut self) {
        self.epoch += 1;
        self.inputs.advance_to(self.epoch);
        while self.inputs.done.less_than(&self.epoch) || self.turns.admitted.get() < self.scans_sent {
            self.worker.step();
        }
        self.take_rows();
        self.answer_censuses();
        for id in std::mem::take(&mut self.in_epoch) {
            self.reply(id);
        }
    }

    /// Takes the rows that are there, and sends the answers of the scans that are finished.
    fn take_rows(&mut self) {
        while self.scans_answered + (self.outputs.answered.borrow().len() as u64) < self.turns.answered.get() {
            self.worker.step();
        }
        for (id, row) in self.outputs.rows.take() {
            if let Some(waiting) = self.waiting.get_mut(&id) {
                waiting.rows.push(row);
            }
        }
        for id in self.outputs.answered.take() {
            self.scans_answered += 1;
            self.reply(id);
        }
    }

    fn reply(&mut self, id: ProbeId) {
        let Some(PendingAnswer { reply, rows, scans, reflects, epoch }) = self.waiting.remove(&id) else { return };
        scans.into_iter().for_each(|bank| self.schedule.note_scan_finished(bank));
        // A caller that no longer waits has dropped its end.
        drop(reply.send(DataflowAnswer { value: rows, epoch, reflects: reflects.to_vec() }));
    }

    /// Answers the census of all banks, once every load before it is applied.
    fn pass_fence(&mut self) {
        if !self.loads.is_empty() {
            return;
        }
        let Some((probe, reply)) = self.fence.take() else { return };
        self.probes += 1;
        let waiting = self.wait(reply, None);
        self.waiting.insert(self.probes, waiting);
        self.send(self.probes, BankProbe::Census(Arc::new(probe)));
        self.complete_epoch();
    }

    fn pass_barriers(&mut self) {
        let first = self.loads.front().map_or(LoadId::MAX, |load| load.id);
        let passed = self.barriers.extract_if(.., |barrier| barrier.after < first);
        for LoadBarrier { footprint, waiting: PendingAnswer { reply, mut rows, reflects, .. }, .. } in passed {
            rows.extend(footprint.map(|bank| AnswerRow::Footprint(self.banks.borrow().footprint(bank))));
            drop(reply.send(DataflowAnswer { value: rows, epoch: self.epoch, reflects: reflects.to_vec() }));
        }
    }

    /// Sends the net changes of a complete epoch, of the banks that count.
    fn send_edges(&self, counts: impl Fn(BankKey) -> bool) {
        let Some(listener) = &self.listeners.edges else { return };
        let mut net: BTreeMap<GraphEdge, isize> = BTreeMap::new();
        for (edge, diff) in self.outputs.edges.take().into_iter().filter(|(edge, _)| counts(edge.bank)) {
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

    /// Reports the choice changes of the loads that are applied, and takes the loads off the backlog, in order.
    fn finish_loads(&mut self) {
        while self.loads.front().is_some_and(|load| load.banks_left == 0)
            && let Some(mut load) = self.loads.pop_front()
        {
            if let Some(listener) = self.listeners.choices.as_ref().filter(|_| !load.moves) {
                differential_dataflow::consolidation::consolidate(&mut load.choices);
                drop(listener.send(load.choices));
            }
            self.backlog.remove();
        }
    }
}

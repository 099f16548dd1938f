//! What a shard does next: questions come first, loads are done in pieces, and each bank keeps its own order.
//!
//! In: the probes and loads of each bank, in the order in which callers sent them. Out: the probes of
//! the next epoch, or the pieces of loads of the next epoch. A bank's tasks never overtake one
//! another: a probe waits for the whole of every load of its bank that was sent before it, and a load
//! waits for the scans of the probes before it. No bank waits for another. Nothing is computed here.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::index::{
    dataflow::{
        bank_index::ProbeId,
        census::CensusProbe,
        profile_view::ProfileProbe,
        record_load::{BankLoad, RecordUpdate},
        shard_command::LoadId,
    },
    probes::{IndexProbe, NeighbourhoodProbe},
    units::association_score::GraphChoice,
    work_budget::{COMPARED_UNIT, INDEXED_UNIT, KNOWN_CHOICE, PLACED_UNIT, REMOVED_UNIT, WorkBudget},
};
use types::model::BankKey;

/// A record counts as having held this many units before, because it is not known here how many they were.
const REMOVED_UNITS: u64 = 8;

/// A probe of one bank.
#[derive(Debug, Clone)]
pub(in crate::index) enum BankProbe {
    /// Reads the bank's indexes, which may take long.
    Index(Arc<IndexProbe>),
    /// Walks the bank's edges.
    Neighbourhood(Arc<NeighbourhoodProbe>),
    /// Counts the bank.
    Census(Arc<CensusProbe>),
    /// Lists what holds of persons.
    Profile(Arc<ProfileProbe>),
}

/// The part of one bank's load that one epoch applies.
#[derive(Debug)]
pub(in crate::index) struct LoadPiece {
    /// The bank.
    pub bank: BankKey,
    /// Which load it belongs to.
    pub load: LoadId,
    /// Whole windows.
    pub changes: Vec<RecordUpdate>,
    /// Whether the choices of these units come later and must not be searched for.
    pub placed: bool,
    /// Known choices, grouped by unit.
    pub chosen: Vec<GraphChoice>,
    /// Whether no changes and no choices of the bank's load follow.
    pub last: bool,
}

#[derive(Debug)]
enum BankTask {
    Probe(ProbeId, BankProbe),
    Load(LoadId, BankLoad),
}

#[derive(Debug, Default)]
struct BankTaskQueue {
    tasks: VecDeque<BankTask>,
    /// Scans of the bank that are not finished.
    scans: usize,
}

/// The tasks of every bank of a shard.
#[derive(Debug, Default)]
pub(in crate::index) struct ShardSchedule {
    banks: HashMap<BankKey, BankTaskQueue>,
    /// Banks whose next task is a probe.
    asked: VecDeque<BankKey>,
    /// Banks whose next task is a load and which no scan is reading.
    loading: VecDeque<BankKey>,
}

impl ShardSchedule {
    /// Adds a probe.
    pub(in crate::index) fn ask(&mut self, bank: BankKey, id: ProbeId, probe: BankProbe) {
        self.add(bank, BankTask::Probe(id, probe));
    }

    /// Adds a bank's part of a load.
    pub(in crate::index) fn load(&mut self, id: LoadId, load: BankLoad) {
        self.add(load.bank, BankTask::Load(id, load));
    }

    /// Whether a load can proceed.
    pub(in crate::index) fn has_loads(&self) -> bool {
        !self.loading.is_empty()
    }

    /// At most `limit` probes that can be answered now, and at most `of_bank` of each bank, so that the next probe of a
    /// bank waits for few probes of another one.
    pub(in crate::index) fn probes(&mut self, limit: usize, of_bank: usize) -> Vec<(ProbeId, BankProbe)> {
        let (mut found, mut taken, mut later) = (Vec::new(), HashMap::<BankKey, usize>::new(), Vec::new());
        while found.len() < limit
            && let Some(bank) = self.asked.pop_front()
        {
            let taken = taken.entry(bank).or_default();
            if *taken >= of_bank {
                later.push(bank);
                continue;
            }
            *taken += 1;
            let Some(queue) = self.banks.get_mut(&bank) else { continue };
            // One probe of each bank in turn.
            if let Some(BankTask::Probe(id, probe)) = queue.tasks.pop_front() {
                queue.scans += usize::from(matches!(probe, BankProbe::Index(_)));
                found.push((id, probe));
            }
            self.list_by_task(bank);
        }
        self.asked.extend(later);
        found
    }

    /// A scan of the bank is finished.
    pub(in crate::index) fn note_scan_finished(&mut self, bank: BankKey) {
        let Some(queue) = self.banks.get_mut(&bank) else { return };
        queue.scans = queue.scans.saturating_sub(1);
        if queue.scans == 0 && !matches!(queue.tasks.front(), Some(BankTask::Probe(..))) {
            self.list_by_task(bank);
        }
    }

    /// Pieces of loads that take about `allowance`, with at least one window; `size_of` returns a bank's number of
    /// units. [`Self::note_applied`] follows for each. A bank has at most one piece in an epoch.
    pub(in crate::index) fn pieces(
        &mut self,
        allowance: &mut WorkBudget,
        size_of: impl Fn(BankKey) -> usize,
    ) -> Vec<LoadPiece> {
        let mut pieces = Vec::new();
        while !allowance.is_spent()
            && let Some(bank) = self.loading.pop_front()
        {
            let Some(queue) = self.banks.get_mut(&bank) else { continue };
            let Some(BankTask::Load(id, load)) = queue.tasks.front_mut() else { continue };
            let piece = piece(*id, load, allowance, size_of(bank) as u64);
            // What is left of the slice is for its repairs, so that neither it nor the next bank waits for a rest.
            let only_repairs = piece.changes.is_empty() && piece.chosen.is_empty();
            pieces.push(piece);
            if only_repairs {
                break;
            }
        }
        pieces
    }

    /// A piece of a bank's load was applied. Unless the load is done, more of it follows: pieces with changes, and then
    /// pieces without any, for repairs.
    pub(in crate::index) fn note_applied(&mut self, bank: BankKey, is_done: bool) {
        if let Some(queue) = self.banks.get_mut(&bank).filter(|_| is_done) {
            queue.tasks.pop_front();
        }
        self.list_by_task(bank);
    }

    fn add(&mut self, bank: BankKey, task: BankTask) {
        let queue = self.banks.entry(bank).or_default();
        queue.tasks.push_back(task);
        if queue.tasks.len() == 1 {
            self.list_by_task(bank);
        }
    }

    /// Lists a bank by its next task, if that task can proceed.
    fn list_by_task(&mut self, bank: BankKey) {
        let Some(queue) = self.banks.get(&bank) else { return };
        match queue.tasks.front() {
            Some(BankTask::Probe(..)) => self.asked.push_back(bank),
            Some(BankTask::Load(..)) if queue.scans == 0 => self.loading.push_back(bank),
            Some(BankTask::Load(..)) => {}
            None if queue.scans == 0 => drop(self.banks.remove(&bank)),
            None => {}
        }
    }
}

/// The next windows of a bank's load, then its known choices.
fn piece(id: LoadId, load: &mut BankLoad, allowance: &mut WorkBudget, size: u64) -> LoadPiece {
    if !std::mem::replace(&mut load.started, true) && size > 0 {
        // The bank already has other units, so choices that were found without them may be wrong.
        load.known = None;
    }
    let (mut changes, mut chosen) = (Vec::new(), Vec::new());
    let unit = if load.known.is_some() { PLACED_UNIT } else { INDEXED_UNIT + size * COMPARED_UNIT };
    while !allowance.is_spent()
        && let Some(window) = load.windows.pop_front()
    {
        let work = |(_, extraction): &RecordUpdate| match extraction.as_ref().filter(|e| !e.units.is_empty()) {
            Some(extraction) => unit * extraction.units.len() as u64,
            None => REMOVED_UNIT * REMOVED_UNITS,
        };
        allowance.spend(window.iter().map(work).sum());
        changes.extend(window);
    }
    let placed = load.known.is_some() && !changes.is_empty();
    if let Some(known) = load.known.as_mut().filter(|_| load.windows.is_empty()) {
        while !allowance.is_spent()
            && let Some(from) = known.front().map(|choice| choice.from)
        {
            let of_unit = known.iter().take_while(|choice| choice.from == from).count();
            allowance.spend(KNOWN_CHOICE * of_unit as u64);
            chosen.extend(known.drain(..of_unit));
        }
    }
    let last = load.windows.is_empty() && load.known.as_ref().is_none_or(VecDeque::is_empty);
    LoadPiece { bank: load.bank, load: id, changes, placed, chosen, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{RecordKey, WindowKey};

    const A: BankKey = BankKey(1);
    const B: BankKey = BankKey(2);

    fn load(bank: BankKey, windows: u128) -> BankLoad {
        let change = |window| (RecordKey { window: WindowKey { bank, window }, piece: 0 }, None);
        let windows = (0..windows).map(|window| vec![change(window)]).collect();
        BankLoad { bank, windows, known: None, started: false }
    }

    fn census(bank: BankKey) -> BankProbe {
        BankProbe::Census(Arc::new(CensusProbe { bank: Some(bank), hashing: false, listing: false }))
    }

    fn scan(bank: BankKey) -> BankProbe {
        let probe = crate::index::FirstHopProbe {
            bank,
            vector: Vec::new().into(),
            words: String::new(),
            language: types::model::Language::En,
            cues: types::model::Cues::default(),
            semantic: 1,
            lexical: 1,
            cue: 1,
            matching: None,
        };
        BankProbe::Index(Arc::new(IndexProbe::FirstHop(probe)))
    }

    fn ids(probes: Vec<(ProbeId, BankProbe)>) -> Vec<ProbeId> {
        probes.into_iter().map(|(id, _)| id).collect()
    }

    /// The next pieces, which leave nothing to repair.
    fn applied(schedule: &mut ShardSchedule, work: u64) -> Vec<LoadPiece> {
        let pieces = schedule.pieces(&mut WorkBudget::new(work), |_| 1_000_000);
        pieces.iter().for_each(|piece| schedule.note_applied(piece.bank, piece.last));
        pieces
    }

    /// The last piece of a load comes again until nothing is left to repair, and a probe waits for that too.
    #[test]
    fn a_load_ends_with_its_repairs() {
        let mut schedule = ShardSchedule::default();
        schedule.load(1, load(A, 3));
        schedule.ask(A, 10, census(A));
        for changes in [3, 0, 0] {
            let pieces = schedule.pieces(&mut WorkBudget::new(u64::MAX), |_| 0);
            assert_eq!((pieces.len(), pieces[0].changes.len(), pieces[0].last), (1, changes, true));
            schedule.note_applied(A, false);
            assert!(schedule.probes(9, 9).is_empty());
        }
        assert_eq!(applied(&mut schedule, 1).len(), 1);
        assert_eq!(ids(schedule.probes(9, 9)), [10]);
        assert!(schedule.banks.is_empty());
    }

    #[test]
    fn a_probe_waits_for_its_banks_loads_and_for_no_others() {
        let mut schedule = ShardSchedule::default();
        schedule.load(1, load(A, 40));
        schedule.ask(A, 10, census(A));
        schedule.ask(B, 11, census(B));
        assert_eq!(ids(schedule.probes(9, 9)), [11]);
        // 40 windows of a large bank: each epoch applies one.
        for left in (0..40).rev() {
            assert!(schedule.probes(9, 9).is_empty());
            let pieces = applied(&mut schedule, 100_000);
            assert_eq!((pieces.len(), pieces[0].changes.len(), pieces[0].last), (1, 1, left == 0));
        }
        assert_eq!(ids(schedule.probes(9, 9)), [10]);
        assert!(schedule.banks.is_empty(), "nothing is kept of a bank without tasks");
    }

    #[test]
    fn a_load_waits_for_the_scans_before_it() {
        let mut schedule = ShardSchedule::default();
        schedule.ask(A, 10, scan(A));
        schedule.load(1, load(A, 1));
        assert_eq!(ids(schedule.probes(9, 9)), [10]);
        assert!(!schedule.has_loads());
        schedule.note_scan_finished(A);
        assert!(applied(&mut schedule, 1)[0].last);
    }

    #[test]
    fn a_bank_that_alone_asks_takes_few_probes_of_an_epoch() {
        let mut schedule = ShardSchedule::default();
        (0..9).for_each(|id| schedule.ask(A, id, census(A)));
        assert_eq!(ids(schedule.probes(9, 2)), [0, 1]);
        schedule.ask(B, 10, census(B));
        (11..13).for_each(|id| schedule.ask(B, id, census(B)));
        assert_eq!(ids(schedule.probes(3, 2)), [2, 10, 3]);
        assert_eq!(ids(schedule.probes(9, 9)), [11, 4, 12, 5, 6, 7, 8]);
        assert!(schedule.banks.is_empty() && schedule.probes(9, 9).is_empty());
    }

    #[test]
    fn banks_take_turns() {
        let mut schedule = ShardSchedule::default();
        schedule.load(1, load(A, 2));
        schedule.load(1, load(B, 2));
        let turns: Vec<u128> = (0..4).map(|_| applied(&mut schedule, 1)[0].bank.0).collect();
        assert_eq!(turns, [1, 2, 1, 2]);
        schedule.load(2, load(A, 2));
        schedule.load(2, load(B, 2));
        let all = applied(&mut schedule, u64::MAX);
        assert_eq!(all.iter().map(|piece| (piece.bank.0, piece.last)).collect::<Vec<_>>(), [(1, true), (2, true)]);
    }
}

//! The operator that owns the indexes of a shard's banks.
//!
//! In: the collection of live units, choices restored from a snapshot, and probes. Out: the exact changes to the
//! choices, as a collection, and the results of probes. It holds updates and probes until the frontiers have passed
//! their time, then applies the updates at t before it admits the probes at t: output at t is a function of the set of
//! units at t only. A probe is a scan that may take many slices: [`ScanProgress`] says how much work each may do. A
//! scan holds the output open at its own time and no other; it is finished before its bank is updated.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    rc::Rc,
    sync::Arc,
};

use differential_dataflow::{AsCollection, VecCollection};
use serde::{Deserialize, Serialize};
use timely::{
    container::CapacityContainerBuilder,
    dataflow::{
        Stream,
        channels::pact::Pipeline,
        operators::{
            Capability,
            generic::{OutputBuilder, builder_rc::OperatorBuilder},
        },
    },
    scheduling::Activator,
};

use super::{
    index_scan::{IndexScan, ProbeResult},
    shard_banks::{EpochSteps, ShardBanks, SharedBanks, UnitChoice},
};
use crate::index::{
    probes::IndexProbe,
    units::{
        association_score::GraphChoice,
        live_unit::{LiveUnit, UnitKey},
    },
    work_budget::WorkBudget,
};
use types::model::BankKey;

/// The epoch: the time of the whole dataflow.
pub(in crate::index) type Epoch = u64;

/// Identifies a probe in flight.
pub(in crate::index) type ProbeId = u64;

/// Results, each with the probe that it answers.
pub(in crate::index) type ProbeResultStream<'scope> = Stream<'scope, Epoch, Vec<(ProbeId, ProbeResult)>>;

/// A step of a bank's load besides its changes.
#[derive(Debug, Clone)]
pub(in crate::index) enum BankStep {
    /// The choices of the bank's units at this epoch are known already. They follow as [`Self::Chosen`].
    Placed(BankKey),
    /// Choices of units that have been placed, grouped by unit.
    Chosen(BankKey, Arc<Vec<GraphChoice>>),
    /// The load has no further changes of the bank: what deletions left to do is done now.
    Repaired(BankKey),
}

/// A probe that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::index) struct PendingProbe<P> {
    /// Identifies it.
    pub id: ProbeId,
    /// The probe.
    pub probe: Arc<P>,
}

/// How much the operator may scan, and how far it has got.
#[derive(Debug, Default)]
pub(in crate::index) struct ScanProgress {
    /// Work that a new scan may do at once.
    pub fresh: Cell<u64>,
    /// Work that the scans under way may do now.
    pub resumed: Cell<u64>,
    /// The number of probes that were admitted.
    pub admitted: Cell<u64>,
    /// The number of probes whose last row was emitted.
    pub answered: Cell<u64>,
    /// The number of units of each bank.
    pub sizes: RefCell<HashMap<BankKey, usize>>,
    /// Work that repairs may do in an epoch.
    pub repairs: Cell<u64>,
    /// Banks that are to be repaired further.
    pub unrepaired: RefCell<HashSet<BankKey>>,
    activator: RefCell<Option<Activator>>,
}

impl ScanProgress {
    /// Lets the scans under way do `work` in the next step.
    pub(in crate::index) fn resume(&self, work: u64) {
        self.resumed.set(work);
        self.activator.borrow().iter().for_each(Activator::activate);
    }

    /// How many scans are under way.
    pub(in crate::index) fn running_scans(&self) -> u64 {
        self.admitted.get() - self.answered.get()
    }

    fn note_size(&self, bank: BankKey, units: usize, is_repaired: bool) {
        let mut sizes = self.sizes.borrow_mut();
        let _ = if units > 0 { sizes.insert(bank, units) } else { sizes.remove(&bank) };
        let mut unrepaired = self.unrepaired.borrow_mut();
        let _ = if is_repaired { unrepaired.remove(&bank) } else { unrepaired.insert(bank) };
    }
}

/// Updates and probes of one epoch, with the capabilities to send output at it.
#[derive(Default)]
struct PendingEpoch {
    choices: Option<Capability<Epoch>>,
    hits: Option<Capability<Epoch>>,
    updates: Vec<((UnitKey, Arc<LiveUnit>), isize)>,
    steps: EpochSteps,
    probes: Vec<PendingProbe<IndexProbe>>,
}

/// A scan under way, with the capability to send its result.
struct RunningScan {
    id: ProbeId,
    capability: Capability<Epoch>,
    scan: IndexScan,
}

/// Builds the operator.
pub(in crate::index) fn bank_index<'scope>(
    units: VecCollection<'scope, Epoch, (UnitKey, Arc<LiveUnit>), isize>,
    known: Stream<'scope, Epoch, Vec<BankStep>>,
    probes: Stream<'scope, Epoch, Vec<PendingProbe<IndexProbe>>>,
    banks: SharedBanks,
    turns: Rc<ScanProgress>,
) -> (VecCollection<'scope, Epoch, UnitChoice, isize>, ProbeResultStream<'scope>) {
    let scope = units.scope();
    let mut builder = OperatorBuilder::new("BankIndex".to_owned(), scope);
    let mut units_in = builder.new_input(units.inner, Pipeline);
    let mut known_in = builder.new_input(known, Pipeline);
    let mut probes_in = builder.new_input(probes, Pipeline);
    let (choices_out, choices) = builder.new_output::<Vec<(UnitChoice, Epoch, isize)>>();
    let (hits_out, hits) = builder.new_output::<Vec<(ProbeId, ProbeResult)>>();
    let mut choices_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(choices_out);
    let mut hits_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(hits_out);
    *turns.activator.borrow_mut() = Some(scope.activator_for(builder.operator_info().address));
    // The initial capabilities are dropped here: if they were held, they would stop the frontier.
    builder.build(move |_capabilities| {
        let mut pending: BTreeMap<Epoch, PendingEpoch> = BTreeMap::new();
        let mut scans: VecDeque<RunningScan> = VecDeque::new();
        move |frontiers| {
            let banks = &mut *banks.borrow_mut();
            units_in.for_each(|capability, updates| {
                for (unit, epoch, change) in updates.drain(..) {
                    let entry = pending.entry(epoch).or_default();
                    entry.choices.get_or_insert_with(|| capability.delayed(&epoch, 0));
                    entry.updates.push((unit, change));
                }
            });
            known_in.for_each(|capability, known| {
                let epoch = *capability.time();
                let entry = pending.entry(epoch).or_default();
                entry.choices.get_or_insert_with(|| capability.delayed(&epoch, 0));
                for known in known.drain(..) {
                    match known {
                        BankStep::Placed(bank) => drop(entry.steps.placed.insert(bank)),
                        BankStep::Chosen(bank, choices) => entry.steps.chosen.push((bank, choices)),
                        BankStep::Repaired(bank) => entry.steps.repaired.push(bank),
                    }
                }
            });
            probes_in.for_each(|capability, probes| {
                let epoch = *capability.time();
                let entry = pending.entry(epoch).or_default();
                entry.hits.get_or_insert_with(|| capability.delayed(&epoch, 1));
                entry.probes.append(probes);
            });
            let mut hits = hits_out.activate();
            // Continues a scan within the allowance; false once it is answered.
            let mut go_on = |banks: &mut ShardBanks, under_way: &mut RunningScan, allowance: &mut WorkBudget| {
                let Some(rows) = under_way.scan.go_on(banks, allowance) else { return true };
                let mut session = hits.session(&under_way.capability);
                rows.into_iter().chain([ProbeResult::Answered]).for_each(|row| session.give((under_way.id, row)));
                turns.answered.set(turns.answered.get() + 1);
                false
            };
            while let Some(entry) = pending.first_entry() {
                let epoch = *entry.key();
                if frontiers.iter().any(|frontier| frontier.less_equal(&epoch)) {
                    break;
                }
                let PendingEpoch { choices, hits, updates, steps, probes } = entry.remove();
                if let Some(capability) = choices {
                    scans.retain_mut(|under_way| {
                        let bank = under_way.scan.bank();
                        let touched = updates.iter().any(|((key, _), _)| key.bank == bank);
                        !touched || go_on(banks, under_way, &mut WorkBudget::new(u64::MAX))
                    });
                    let mut output = choices_out.activate();
                    let mut session = output.session(&capability);
                    let emit = |chosen, change| session.give((chosen, epoch, change));
                    let sized = |bank, units, is_repaired| turns.note_size(bank, units, is_repaired);
                    banks.apply(updates, &steps, &mut WorkBudget::new(turns.repairs.take()), emit, sized);
                }
                if let Some(capability) = hits {
                    for PendingProbe { id, probe } in probes {
                        turns.admitted.set(turns.admitted.get() + 1);
                        let mut under_way =
                            RunningScan { id, capability: capability.clone(), scan: IndexScan::new(probe) };
                        let mut allowance = WorkBudget::new(turns.fresh.get());
                        if go_on(banks, &mut under_way, &mut allowance) {
                            scans.push_back(under_way);
                        }
                        turns.fresh.set(allowance.left());
                    }
                }
            }
            // The scans take turns, so that a short one never waits for the end of a long one.
            let mut allowance = WorkBudget::new(turns.resumed.take());
            while !allowance.is_spent()
                && let Some(mut under_way) = scans.pop_front()
            {
                if go_on(banks, &mut under_way, &mut allowance) {
                    scans.push_back(under_way);
                }
            }
        }
    });
    (choices.as_collection(), hits)
}

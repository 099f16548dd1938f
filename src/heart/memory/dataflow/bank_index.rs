//! The operator that owns the indexes of a shard's banks.
//!
//! In: the collection of live units, choices restored from a snapshot, and probes. Out: the exact changes to the
//! choices, as a collection, and the results of probes. It holds updates and probes until the frontiers have passed
//! their time, then applies the updates at t before it admits the probes at t: output at t is a function of the set of
//! units at t only. A probe is a scan that may be spread over many turns: [`Turns`] says how much is done in each. A
//! scan holds the output open at its own time and no other; it is finished before its bank is updated.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, VecDeque},
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
    banks::{Banks, Chosen, Restoring, SharedBanks},
    scan::{ProbeResult, Scan},
};
use crate::memory::{
    api::IndexProbe,
    units::{
        live::{LiveUnit, UnitKey},
        score::GraphChoice,
    },
    work::Allowance,
};
use nouns::model::BankKey;

/// The epoch: the time of the whole dataflow.
pub(in crate::memory) type Epoch = u64;

/// Identifies a probe in flight.
pub(in crate::memory) type ProbeId = u64;

/// Results, each with the probe that it answers.
pub(in crate::memory) type Hits<'scope> = Stream<'scope, Epoch, Vec<(ProbeId, ProbeResult)>>;

/// A step in restoring a bank as a whole, so that no choice has to be searched for.
#[derive(Debug, Clone)]
pub(in crate::memory) enum Known {
    /// The choices of the bank's units at this epoch are known; they follow.
    Placed(BankKey),
    /// Choices of units that have been placed, grouped by unit.
    Chosen(BankKey, Arc<Vec<GraphChoice>>),
}

/// A probe that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::memory) struct PendingProbe<P> {
    /// Identifies it.
    pub id: ProbeId,
    /// The probe.
    pub probe: Arc<P>,
}

/// How much the operator may scan, and how far it has got.
#[derive(Debug, Default)]
pub(in crate::memory) struct Turns {
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
    activator: RefCell<Option<Activator>>,
}

impl Turns {
    /// Lets the scans under way do `work` in the next step.
    pub(in crate::memory) fn resume(&self, work: u64) {
        self.resumed.set(work);
        self.activator.borrow().iter().for_each(Activator::activate);
    }

    /// How many scans are under way.
    pub(in crate::memory) fn under_way(&self) -> u64 {
        self.admitted.get() - self.answered.get()
    }

    fn sized(&self, bank: BankKey, units: usize) {
        let mut sizes = self.sizes.borrow_mut();
        let _ = if units > 0 { sizes.insert(bank, units) } else { sizes.remove(&bank) };
    }
}

/// Updates and probes of one epoch, with the capabilities to send output at it.
#[derive(Default)]
struct Pending {
    choices: Option<Capability<Epoch>>,
    hits: Option<Capability<Epoch>>,
    updates: Vec<((UnitKey, Arc<LiveUnit>), isize)>,
    restoring: Restoring,
    probes: Vec<PendingProbe<IndexProbe>>,
}

/// A scan under way, with the capability to send its result.
struct UnderWay {
    id: ProbeId,
    capability: Capability<Epoch>,
    scan: Scan,
}

/// Builds the operator.
pub(in crate::memory) fn bank_index<'scope>(
    units: VecCollection<'scope, Epoch, (UnitKey, Arc<LiveUnit>), isize>,
    known: Stream<'scope, Epoch, Vec<Known>>,
    probes: Stream<'scope, Epoch, Vec<PendingProbe<IndexProbe>>>,
    banks: SharedBanks,
    turns: Rc<Turns>,
) -> (VecCollection<'scope, Epoch, Chosen, isize>, Hits<'scope>) {
    let scope = units.scope();
    let mut builder = OperatorBuilder::new("BankIndex".to_owned(), scope);
    let mut units_in = builder.new_input(units.inner, Pipeline);
    let mut known_in = builder.new_input(known, Pipeline);
    let mut probes_in = builder.new_input(probes, Pipeline);
    let (choices_out, choices) = builder.new_output::<Vec<(Chosen, Epoch, isize)>>();
    let (hits_out, hits) = builder.new_output::<Vec<(ProbeId, ProbeResult)>>();
    let mut choices_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(choices_out);
    let mut hits_out: OutputBuilder<Epoch, CapacityContainerBuilder<Vec<_>>> = OutputBuilder::from(hits_out);
    *turns.activator.borrow_mut() = Some(scope.activator_for(builder.operator_info().address));
    // The initial capabilities are dropped here: if they were held, they would stop the frontier.
    builder.build(move |_capabilities| {
        let mut pending: BTreeMap<Epoch, Pending> = BTreeMap::new();
        let mut scans: VecDeque<UnderWay> = VecDeque::new();
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
                        Known::Placed(bank) => drop(entry.restoring.placed.insert(bank)),
                        Known::Chosen(bank, choices) => entry.restoring.chosen.push((bank, choices)),
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
            let mut go_on = |banks: &mut Banks, under_way: &mut UnderWay, allowance: &mut Allowance| {
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
                let Pending { choices, hits, updates, restoring, probes } = entry.remove();
                if let Some(capability) = choices {
                    scans.retain_mut(|under_way| {
                        let bank = under_way.scan.bank();
                        let touched = updates.iter().any(|((key, _), _)| key.bank == bank);
                        !touched || go_on(banks, under_way, &mut Allowance::new(u64::MAX))
                    });
                    let mut output = choices_out.activate();
                    let mut session = output.session(&capability);
                    let emit = |chosen, change| session.give((chosen, epoch, change));
                    banks.apply(updates, &restoring, emit, |bank, units| turns.sized(bank, units));
                }
                if let Some(capability) = hits {
                    for PendingProbe { id, probe } in probes {
                        turns.admitted.set(turns.admitted.get() + 1);
                        let mut under_way = UnderWay { id, capability: capability.clone(), scan: Scan::new(probe) };
                        let mut allowance = Allowance::new(turns.fresh.get());
                        if go_on(banks, &mut under_way, &mut allowance) {
                            scans.push_back(under_way);
                        }
                        turns.fresh.set(allowance.left());
                    }
                }
            }
            // The scans take turns, so that a short one never waits for the end of a long one.
            let mut allowance = Allowance::new(turns.resumed.take());
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

//! A half join: probes against an arrangement, as of the probe's epoch, keeping nothing.
//!
//! In: keyed payloads and an arrangement on the same worker. Out: what `join` makes of each payload and the values of
//! its key as of the payload's epoch. A payload waits until its epoch is complete on both sides, is matched once, and
//! is then dropped. The trace may be compacted up to the first epoch that a probe can still ask for.

use std::collections::BTreeMap;

use differential_dataflow::{
    operators::arrange::{Arranged, TraceAgent},
    trace::{Cursor, TraceReader, implementations::ValSpine},
};
use timely::{
    dataflow::{
        Stream,
        channels::pact::Pipeline,
        operators::{Capability, generic::operator::Operator},
    },
    progress::{Antichain, frontier::MutableAntichain},
};

use super::bank_index::Epoch;
use crate::index::units::live_unit::UnitKey;

/// An arrangement by unit.
pub(in crate::index) type UnitArrangement<'scope, V> = Arranged<'scope, UnitTrace<V>>;
/// The trace of an arrangement by unit.
pub(in crate::index) type UnitTrace<V> = TraceAgent<ValSpine<UnitKey, V, Epoch, isize>>;

/// Data of epochs that are not complete yet, with the capability to send output at each.
pub(in crate::index) struct EpochBuffer<D>(BTreeMap<Epoch, (Capability<Epoch>, Vec<D>)>);

impl<D> Default for EpochBuffer<D> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<D> EpochBuffer<D> {
    /// Adds data; `retain` makes the capability if the epoch is new.
    pub(in crate::index) fn add(
        &mut self,
        epoch: Epoch,
        retain: impl FnOnce() -> Capability<Epoch>,
        data: &mut Vec<D>,
    ) {
        self.0.entry(epoch).or_insert_with(|| (retain(), Vec::new())).1.append(data);
    }

    /// Takes the first epoch, once it is no longer open.
    pub(in crate::index) fn complete(&mut self, open: impl Fn(&Epoch) -> bool) -> Option<(Capability<Epoch>, Vec<D>)> {
        self.0.first_entry().filter(|entry| !open(entry.key())).map(|entry| entry.remove())
    }

    /// The first epochs that a probe can still ask for.
    fn needed(&self, frontier: &MutableAntichain<Epoch>) -> Antichain<Epoch> {
        let mut needed = Antichain::new();
        needed.extend(frontier.frontier().iter().copied());
        needed.extend(self.0.keys().next().copied());
        needed
    }
}

/// Allows a trace to compact up to the first epoch that a probe can still ask for, and drops it when
/// there is none.
pub(in crate::index) fn compact<D, T: TraceReader<Time = Epoch>>(
    trace: &mut Option<T>,
    waiting: &EpochBuffer<D>,
    frontier: &MutableAntichain<Epoch>,
) {
    let needed = waiting.needed(frontier);
    if let Some(trace) = trace.as_mut() {
        trace.set_logical_compaction(needed.borrow());
    }
    if needed.is_empty() {
        *trace = None;
    }
}

/// Builds the operator. `join(key, payload, values, outputs)` sees the values in order.
pub(in crate::index) fn lookup<'scope, K, P, V, O>(
    name: &str,
    probes: Stream<'scope, Epoch, Vec<(K, P)>>,
    arranged: Arranged<'scope, TraceAgent<ValSpine<K, V, Epoch, isize>>>,
    mut join: impl FnMut(&K, P, &[V], &mut Vec<O>) + 'static,
) -> Stream<'scope, Epoch, Vec<O>>
where
    K: differential_dataflow::ExchangeData + Copy,
    P: Ord + Clone + 'static,
    V: differential_dataflow::ExchangeData,
    O: Clone + 'static,
{
    let Arranged { stream, mut trace } = arranged;
    trace.set_physical_compaction(Antichain::new().borrow());
    let mut trace = Some(trace);
    probes.binary_frontier(stream, Pipeline, Pipeline, name, move |_capability, _info| {
        let mut waiting: EpochBuffer<(K, P)> = EpochBuffer::default();
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        move |(probes, probes_frontier), (batches, batches_frontier), output| {
            probes.for_each(|capability, data| waiting.add(*capability.time(), || capability.retain(0), data));
            batches.for_each(|_, _| {});
            while let Some(trace) = trace.as_mut() {
                let open = |epoch: &Epoch| batches_frontier.less_equal(epoch) || probes_frontier.less_equal(epoch);
                let Some((capability, mut asked)) = waiting.complete(open) else { break };
                let epoch = *capability.time();
                asked.sort();
                let (mut cursor, storage) = trace.cursor();
                let mut session = output.session(&capability);
                let mut current = None;
                for (key, payload) in asked {
                    if current != Some(key) {
                        current = Some(key);
                        values.clear();
                        cursor.seek_key(&storage, &key);
                        if cursor.get_key(&storage) == Some(&key) {
                            while let Some(value) = cursor.get_val(&storage) {
                                let mut count = 0;
                                cursor.map_times(&storage, |time, change| {
                                    if *time <= epoch {
                                        count += *change;
                                    }
                                });
                                if count > 0 {
                                    values.push(value.clone());
                                }
                                cursor.step_val(&storage);
                            }
                        }
                    }
                    join(&key, payload, &values, &mut outputs);
                    session.give_iterator(outputs.drain(..));
                }
            }
            compact(&mut trace, &waiting, probes_frontier);
        }
    })
}

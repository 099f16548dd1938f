//! A half join: probes against an arrangement, as of the probe's epoch, keeping nothing.
//!
//! In: keyed payloads and an arrangement on the same worker. Out: what `meet` makes of
//! each payload and the values of its key as of the payload's epoch. A payload waits
//! until its epoch is complete on both sides, is matched once, and is forgotten; the
//! trace may compact up to the first epoch that can still be asked.

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
    progress::Antichain,
};

use super::{bank_index::Epoch, live::UnitKey};

/// An arrangement by unit.
pub type ByUnit<'scope, V> = Arranged<'scope, TraceOf<V>>;
/// The trace of an arrangement by unit.
pub type TraceOf<V> = TraceAgent<ValSpine<UnitKey, V, Epoch, isize>>;

/// Builds the operator. `meet(key, payload, values, outputs)` sees the values in order.
pub fn lookup<'scope, P, V, O>(
    name: &str,
    probes: Stream<'scope, Epoch, Vec<(UnitKey, P)>>,
    arranged: ByUnit<'scope, V>,
    mut meet: impl FnMut(&UnitKey, P, &[V], &mut Vec<O>) + 'static,
) -> Stream<'scope, Epoch, Vec<O>>
where
    P: Ord + Clone + 'static,
    V: differential_dataflow::ExchangeData,
    O: Clone + 'static,
{
    let Arranged { stream, mut trace } = arranged;
    trace.set_physical_compaction(Antichain::new().borrow());
    let mut trace = Some(trace);
    probes.binary_frontier(stream, Pipeline, Pipeline, name, move |_capability, _info| {
        let mut waiting: BTreeMap<Epoch, (Capability<Epoch>, Vec<(UnitKey, P)>)> = BTreeMap::new();
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        move |(probes, probes_frontier), (batches, batches_frontier), output| {
            probes.for_each(|capability, data| {
                let epoch = *capability.time();
                waiting.entry(epoch).or_insert_with(|| (capability.retain(0), Vec::new())).1.append(data);
            });
            batches.for_each(|_, _| {});
            while let (Some(entry), Some(trace)) = (waiting.first_entry(), trace.as_mut()) {
                let epoch = *entry.key();
                if batches_frontier.less_equal(&epoch) || probes_frontier.less_equal(&epoch) {
                    break;
                }
                let (capability, mut asked) = entry.remove();
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
                    meet(&key, payload, &values, &mut outputs);
                    session.give_iterator(outputs.drain(..));
                }
            }
            let mut needed = Antichain::new();
            needed.extend(probes_frontier.frontier().iter().copied());
            needed.extend(waiting.keys().next().copied());
            if let Some(trace) = trace.as_mut() {
                trace.set_logical_compaction(needed.borrow());
            }
            if needed.is_empty() {
                trace = None;
            }
        }
    })
}

//! Banks that leave memory and come back at random points: no answer and no edge differs, and no listener gets anything.

use std::collections::{BTreeMap, BTreeSet};

use crossbeam_channel::{Receiver, unbounded};
use memory::index::{ChoiceChanges, EdgeChanges, GraphChoice, GraphEdge};
use types::model::{MemoryKey, MemoryRecord};

use super::*;

/// Moves a bank with these live records into memory, or out of it.
fn move_bank(memory: &Shards, bank: &Bank, live: &BTreeMap<MemoryKey, MemoryRecord>, into: bool) {
    let units = |record| into.then(|| Arc::new(RecordUnits::new(record, DIMENSIONS).unwrap()));
    let of_bank = live.iter().filter(|(key, _)| key.bank == *bank);
    let changes = of_bank.map(|(key, record)| (RecordKey::from(key), units(record))).collect();
    memory.of(bank).load(RecordLoad { changes, moves: true, ..RecordLoad::default() }).unwrap();
}

/// Loads operations in batches; meanwhile banks that a batch does not touch fall asleep, and some wake unasked. At the
/// end all are awake. Returns how often a bank fell asleep.
fn load_with_sleep(memory: &Shards, history: &History, operations: &[Operation], batch: usize, dice: &mut Dice) -> u32 {
    let (mut live, mut asleep, mut slept) = (BTreeMap::new(), BTreeSet::new(), 0);
    for batch in operations.chunks(batch) {
        for bank in &history.banks {
            let (is_touched, moves) = (batch.iter().any(|op| op.key.bank == *bank), dice.below(3) == 0);
            if asleep.contains(bank) && (is_touched || moves) {
                move_bank(memory, bank, &live, true);
                asleep.remove(bank);
            } else if !asleep.contains(bank) && !is_touched && moves {
                move_bank(memory, bank, &live, false);
                asleep.insert(bank.clone());
                slept += 1;
                let probe = CensusProbe { bank: Some(bank.key()), hashing: true, listing: false };
                assert_eq!(memory.of(bank).census(probe).unwrap().value, GraphCensus::default());
            }
        }
        memory.load(batch);
        for op in batch {
            match &op.record {
                Some(record) => drop(live.insert(op.key.clone(), record.clone())),
                None => drop(live.remove(&op.key)),
            }
        }
    }
    asleep.iter().for_each(|bank| move_bank(memory, bank, &live, true));
    slept
}

#[test]
fn sleeping_and_waking_change_no_answer() {
    let mut slept = 0;
    for seed in 0..12 {
        let history = History::new(seed, if seed == 0 { 300 } else { 60 });
        let mut dice = Dice(seed ^ 0x51EE);
        let probes = probes(&history.banks, &mut dice);
        let awake = play(&history, &history.operations, 7, ONE, &probes);
        let layouts = [
            (1, ONE),
            (3, Layout { shards: 1, threads: 1, slice: 1 }),
            (5, Layout { shards: 2, threads: 2, slice: 5_000 }),
        ];
        for (batch, layout) in layouts {
            let memory = Shards::start(layout);
            slept += load_with_sleep(&memory, &history, &history.operations, batch, &mut dice);
            assert_eq!(awake, ask_all(&memory, &history, &probes), "seed {seed}: batches of {batch}, {layout:?}");
        }
    }
    assert!(slept > 100, "{slept}");
}

/// All choices and edges that the listeners were told of, summed.
fn told(
    choices: &Receiver<ChoiceChanges>,
    edges: &Receiver<EdgeChanges>,
) -> (BTreeMap<(BankKey, GraphChoice), isize>, BTreeMap<GraphEdge, isize>) {
    let (mut chosen, mut joined) = (BTreeMap::new(), BTreeMap::new());
    for (choice, diff) in choices.try_iter().flatten() {
        *chosen.entry(choice).or_default() += diff;
    }
    for EdgeChanges { added, removed } in edges.try_iter() {
        added.into_iter().for_each(|edge| *joined.entry(edge).or_default() += 1);
        removed.into_iter().for_each(|edge| *joined.entry(edge).or_default() -= 1);
    }
    chosen.retain(|_, count| *count != 0);
    joined.retain(|_, count| *count != 0);
    (chosen, joined)
}

#[test]
fn nobody_is_told_that_a_bank_sleeps_or_wakes() {
    for seed in 0..6 {
        let history = History::new(seed, 80);
        let play = |sleeps: bool| {
            let ((choices_out, choices), (edges_out, edges)) = (unbounded(), unbounded());
            let listeners = ChangeListeners { edges: Some(edges_out), choices: Some(choices_out), room: None };
            let shard = ShardHandle::start(&pipeline().memory, Score::from_f64(THRESHOLD), listeners).unwrap();
            let memory = Shards(vec![shard]);
            if sleeps {
                load_with_sleep(&memory, &history, &history.operations, 1, &mut Dice(seed));
            } else {
                history.operations.chunks(1).for_each(|batch| memory.load(batch));
            }
            memory.0[0].wait_for_loads().unwrap();
            (choices.len(), told(&choices, &edges))
        };
        let (awake, asleep) = (play(false), play(true));
        // A snapshot takes one message for each read of the log.
        assert_eq!(awake.0, history.operations.len(), "seed {seed}");
        assert_eq!(awake, asleep, "seed {seed}");
    }
}

//! Latency of one change and of one probe in the dataflow: `cargo bench --bench memory`.
//!
//! Prints percentiles, as the goals are percentiles. Units are synthetic.
#![allow(clippy::print_stdout)]

use std::{sync::Arc, time::Instant};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::percentile;
use memory::index::{
    ChangeListeners, FirstHopProbe, NeighbourhoodProbe, RecordKey, RecordLoad, RecordUnits, ShardHandle, quantise,
};
use types::{
    config::Pipeline,
    model::{Bank, Cues, Score, Unit},
};
mod synthetic;
use synthetic::{DIMENSIONS, record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const THRESHOLD: f64 = 0.75;
/// Records of a load.
const BATCH: u32 = 64;
/// Loads that are timed.
const BATCHES: u32 = 40;

fn main() {
    println!("one change at a time, in microseconds: p50 / p99");
    for size in [1_000, 10_000, 100_000] {
        let world = World::new(1, size);
        world.changes(&format!("one bank of {size}"));
        world.probes(&format!("one bank of {size}"), 400);
    }
    World::new(100, 1_000).probes("100 banks of 1000", 2_000);
}

struct World {
    memory: ShardHandle,
    banks: Vec<Bank>,
    size: usize,
}

impl World {
    fn new(banks: usize, size: usize) -> Self {
        let pipeline = Pipeline::parse("version = 1").expect("the defaults are valid");
        let memory = ShardHandle::start(&pipeline.memory, Score::from_f64(THRESHOLD), ChangeListeners::default())
            .expect("threads start");
        let banks: Vec<Bank> = (0..banks).map(|b| Bank::parse(&format!("bank-{b}")).expect("a good name")).collect();
        let started = Instant::now();
        for window in 0..size / 40 {
            let changes = banks.iter().map(|bank| {
                let units = (0..40).map(|i| unit(bank, size, window * 40 + i)).collect();
                change(bank, window as u32, units)
            });
            memory.load(RecordLoad { changes: changes.collect(), ..RecordLoad::default() }).expect("the memory runs");
        }
        memory.wait_for_loads().expect("the memory runs");
        let loaded = banks.len() * size / 40 * 40;
        println!(
            "{} x {size}: loaded {loaded} units in {:.2} s (making the vectors included)",
            banks.len(),
            started.elapsed().as_secs_f64()
        );
        Self { memory, banks, size }
    }

    /// Inserts and deletes a record of one unit, each in its own epoch.
    fn changes(&self, name: &str) {
        let bank = &self.banks[0];
        let (mut inserts, mut deletes) = (Vec::new(), Vec::new());
        for i in 0..300 {
            let at = self.size + i;
            let (key, extraction) = change(bank, 1_000_000 + i as u32, vec![unit(bank, self.size, at)]);
            for (change, times) in [(extraction, &mut inserts), (None, &mut deletes)] {
                let started = Instant::now();
                self.memory
                    .load(RecordLoad { changes: vec![(key, change)], ..RecordLoad::default() })
                    .expect("the memory runs");
                self.memory.wait_for_loads().expect("the memory runs");
                times.push(started.elapsed().as_secs_f64() * 1e6);
            }
        }
        println!("{name}: insert {}, delete {}", percentiles(&inserts), percentiles(&deletes));
        let many: Vec<_> = (0..1_280)
            .map(|i| change(bank, 2_000_000 + i, vec![unit(bank, self.size, self.size + 1_000 + i as usize)]))
            .collect();
        let count = many.len() as f64;
        let started = Instant::now();
        for one in many {
            self.memory.load(RecordLoad { changes: vec![one], ..RecordLoad::default() }).expect("the memory runs");
        }
        self.memory.wait_for_loads().expect("the memory runs");
        println!("{name}: {:.0} us an insert, sustained", started.elapsed().as_secs_f64() * 1e6 / count);
        let whole = self.batches(3_000, 3_000_000, |unit| unit);
        println!("{name}: an insert in a batch of {BATCH}, each a record, {}", percentiles(&whole));
        let bare = self.batches(6_000, 4_000_000, |unit| Unit { cues: Cues::default(), ..unit });
        println!("{name}: the same without people, places and times, {}", percentiles(&bare));
    }

    /// Microseconds of an insert, in batches of new units from a number on.
    fn batches(&self, from: usize, first_window: u32, change_unit: impl Fn(Unit) -> Unit) -> Vec<f64> {
        let bank = &self.banks[0];
        let of_batch = |batch: u32| {
            let one = |i: u32| {
                let unit = unit(bank, self.size, self.size + from + (batch * BATCH + i) as usize);
                change(bank, first_window + batch * BATCH + i, vec![change_unit(unit)])
            };
            let changes = (0..BATCH).map(one).collect();
            let started = Instant::now();
            self.memory.load(RecordLoad { changes, ..RecordLoad::default() }).expect("the memory runs");
            self.memory.wait_for_loads().expect("the memory runs");
            started.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH)
        };
        (0..BATCHES).map(of_batch).collect()
    }

    /// A first hop of 10 semantic, 5 lexical and 5 cue units, then two hops from three anchors. The first probe of a
    /// bank builds its lexical index, so it is counted separately.
    fn probes(&self, name: &str, count: usize) {
        let (mut indexing, mut first, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..self.banks.len() + count {
            let bank = &self.banks[i % self.banks.len()];
            let asked = unit(bank, self.size, (i * 7_919) % self.size);
            let vector = quantise(&asked.vector.floats());
            let probe = FirstHopProbe {
                bank: bank.key(),
                vector: vector.clone(),
                words: asked.restatement,
                language: types::model::Language::En,
                cues: asked.cues.clone(),
                semantic: 10,
                lexical: 5,
                cue: 5,
                matching: None,
            };
            let started = Instant::now();
            let hits = self.memory.first_hop(probe).expect("the memory runs").value;
            let asked_before = i >= self.banks.len();
            if asked_before { &mut first } else { &mut indexing }.push(started.elapsed().as_secs_f64() * 1e6);
            let anchors = hits.iter().take(3).map(|h| h.unit.id).collect();
            let walk = NeighbourhoodProbe {
                bank: bank.key(),
                anchors,
                hops: 2,
                mixed: false,
                question: vector.clone(),
                target: vector,
                target_cues: asked.cues,
                itself: false,
                matching: None,
            };
            self.memory.neighbourhood(walk).expect("the memory runs");
            if asked_before {
                both.push(started.elapsed().as_secs_f64() * 1e6);
            }
        }
        println!(
            "{name}: first hop {}, first hop + two hops {}; the first one of a bank {}",
            percentiles(&first),
            percentiles(&both),
            percentiles(&indexing)
        );
    }
}

fn percentiles(times: &[f64]) -> String {
    format!("{:.0} / {:.0}", percentile(times, 50), percentile(times, 99))
}

type Change = (RecordKey, Option<Arc<RecordUnits>>);

fn change(bank: &Bank, window: u32, units: Vec<Unit>) -> Change {
    let (key, record) = record(bank, window, units);
    let extraction = RecordUnits::new(&record, DIMENSIONS).expect("vectors of one width");
    (RecordKey::from(&key), Some(Arc::new(extraction)))
}

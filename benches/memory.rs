//! What one change and one probe cost in the dataflow: `cargo bench --bench memory`.
//!
//! Prints percentiles, since the goals are percentiles. Units are synthetic: vectors of
//! 384 components around topics so that each unit has some twenty neighbours above the
//! threshold, two participants, some places, times minutes apart.
#![allow(clippy::print_stdout)]

use std::{sync::Arc, time::Instant};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::percentile;
use ripplemem::{
    config::Pipeline,
    memory::{Extraction, FirstHopProbe, Listeners, Load, MemoryHandle, NeighbourhoodProbe, RecordKey, quantise},
    model::{
        Bank, Cues, EventTime, Interval, Marks, MemoryKey, MemoryRecord, ModelRef, Part, SCHEMA_VERSION, Score,
        SessionId, Unit, UnitId, Vector, WindowId, WindowState,
    },
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DIMENSIONS: usize = 384;
const THRESHOLD: f64 = 0.75;

fn main() {
    println!("one change at a time, in microseconds: p50 / p99");
    for size in [1_000, 10_000] {
        let world = World::new(1, size);
        world.changes(&format!("one bank of {size}"));
        world.probes(&format!("one bank of {size}"), 400);
    }
    World::new(100, 1_000).probes("100 banks of 1000", 2_000);
}

struct World {
    memory: MemoryHandle,
    banks: Vec<Bank>,
    size: usize,
}

impl World {
    fn new(banks: usize, size: usize) -> Self {
        let pipeline = Pipeline::parse("version = 1").expect("the defaults are valid");
        let memory = MemoryHandle::start(&pipeline.memory, Score::from_f64(THRESHOLD), Listeners::default())
            .expect("threads start");
        let banks: Vec<Bank> = (0..banks).map(|b| Bank::parse(&format!("bank-{b}")).expect("a good name")).collect();
        let started = Instant::now();
        for window in 0..size / 40 {
            let changes = banks.iter().map(|bank| {
                let units = (0..40).map(|i| unit(bank, size, window * 40 + i)).collect();
                change(bank, window as u32, units)
            });
            memory.load(Load { changes: changes.collect(), ..Load::default() }).expect("the memory runs");
        }
        memory.settle().expect("the memory runs");
        let loaded = banks.len() * size / 40 * 40;
        println!(
            "{} x {size}: loaded {loaded} units in {:.2} s (making the vectors included)",
            banks.len(),
            started.elapsed().as_secs_f64()
        );
        Self { memory, banks, size }
    }

    /// One record of one unit in and out again, each in its own epoch.
    fn changes(&self, name: &str) {
        let bank = &self.banks[0];
        let (mut inserts, mut deletes) = (Vec::new(), Vec::new());
        for i in 0..300 {
            let at = self.size + i;
            let (key, extraction) = change(bank, 1_000_000 + i as u32, vec![unit(bank, self.size, at)]);
            for (change, times) in [(extraction, &mut inserts), (None, &mut deletes)] {
                let started = Instant::now();
                self.memory.load(Load { changes: vec![(key, change)], ..Load::default() }).expect("the memory runs");
                self.memory.settle().expect("the memory runs");
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
            self.memory.load(Load { changes: vec![one], ..Load::default() }).expect("the memory runs");
        }
        self.memory.settle().expect("the memory runs");
        println!("{name}: {:.0} us an insert, sustained", started.elapsed().as_secs_f64() * 1e6 / count);
    }

    /// A first hop of 10/5/5, then two hops from three anchors.
    fn probes(&self, name: &str, count: usize) {
        let (mut first, mut both) = (Vec::new(), Vec::new());
        for i in 0..count {
            let bank = &self.banks[i % self.banks.len()];
            let asked = unit(bank, self.size, (i * 7_919) % self.size);
            let vector = quantise(&asked.vector.0);
            let probe = FirstHopProbe {
                bank: bank.key(),
                vector: vector.clone(),
                words: asked.restatement,
                cues: asked.cues.clone(),
                semantic: 10,
                lexical: 5,
                cue: 5,
            };
            let started = Instant::now();
            let hits = self.memory.first_hop(probe).expect("the memory runs").value;
            first.push(started.elapsed().as_secs_f64() * 1e6);
            let anchors = hits.iter().take(3).map(|h| h.unit.id).collect();
            let walk = NeighbourhoodProbe {
                bank: bank.key(),
                anchors,
                hops: 2,
                mixed: false,
                question: vector.clone(),
                target: vector,
                target_cues: asked.cues,
            };
            self.memory.neighbourhood(walk).expect("the memory runs");
            both.push(started.elapsed().as_secs_f64() * 1e6);
        }
        println!("{name}: first hop {}, first hop + two hops {}", percentiles(&first), percentiles(&both));
    }
}

fn percentiles(times: &[f64]) -> String {
    format!("{:.0} / {:.0}", percentile(times, 50), percentile(times, 99))
}

type Change = (RecordKey, Option<Arc<Extraction>>);

fn change(bank: &Bank, window: u32, units: Vec<Unit>) -> Change {
    let window = WindowId { session: SessionId("bank".into()), start: window };
    let key = MemoryKey { bank: bank.clone(), window: window.clone(), turn: None, part: 0 };
    let record = MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: bank.clone(),
        window,
        state: WindowState::Final,
        turns_hash: String::new(),
        extractor: "bench/1".into(),
        model: ModelRef { name: "bench".into(), hash: "0".into() },
        turns: Vec::new(),
        units,
    };
    let extraction = Extraction::new(&record, DIMENSIONS).expect("vectors of one width");
    (RecordKey::from(&key), Some(Arc::new(extraction)))
}

fn unit(bank: &Bank, size: usize, i: usize) -> Unit {
    let mut dice = Dice((i as u64) << 20 ^ bank.as_str().len() as u64 ^ u64::from(bank.as_str().as_bytes()[5]));
    let topics = (size / 25).max(1) as u64;
    let topic = dice.below(topics);
    let mut center = Dice(topic ^ 0xC0FFEE);
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| center.gauss() + 0.45 * dice.gauss()).collect();
    let words: Vec<String> = (0..12).map(|_| format!("word{}", dice.below(2_000))).collect();
    let said_at = EventTime::new(1_600_000_000_000 + i as i64 * 1_800_000, 0).expect("a time in range");
    let participants = vec![["ann", "bo", "cy"][dice.below(3) as usize].to_owned()];
    let locations = if dice.below(5) == 0 { vec![format!("place {}", dice.below(10))] } else { Vec::new() };
    let cues = Cues { participants, locations, time: Some(Interval::at(said_at)) };
    let sources = vec![format!("t{i}")];
    let restatement = words.join(" ");
    let window = WindowId { session: SessionId("bank".into()), start: i as u32 };
    Unit {
        id: UnitId::of(bank, &window, &sources, &restatement, &cues),
        restatement,
        vector: Vector(vector.into()),
        cues,
        said_at,
        ordinal: i as u32,
        parts: vec![Part {
            turn: sources[0].clone(),
            ordinal: i as u32,
            speaker: "ann".into(),
            said_at,
            text: String::new(),
            marks: Marks::default(),
            vectors: Vec::new(),
            pair: None,
        }],
        sources,
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn gauss(&mut self) -> f32 {
        (0..4).map(|_| self.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5).sum::<f32>() * 1.732
    }
}

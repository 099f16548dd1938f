//! Banks side by side: `cargo bench --bench shards`.
//!
//! Needs nothing. `RIPPLEMEM_BENCH` names one part of `partitions`, `neighbours`; without it both run.
//! `partitions`: ingest and questions on an embedded log with 1, 2, 4 and 8 partitions, in turn.
//! `neighbours`: questions to small banks while nothing else happens, while a bank of 50,000 units is
//! asked, and while it is loaded; in its shard, and in another of the same thread.
#![allow(clippy::print_stdout)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, percentile};
use memory::index::{
    ChangeListeners, FamiliarityProbe, RecordKey, RecordLoad, RecordUnits, ShardHandle, ShardThreadPool, quantise,
};
use replica::QueryRequest;
use ripplemem::PipelineDriver;
use types::{
    config::Pipeline,
    model::{Bank, Question, Score, TurnEvent},
};
mod synthetic;
use synthetic::{DIMENSIONS, record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 5;
const LARGE: usize = 50_000;
const SMALL: usize = 400;

fn main() {
    let only = std::env::var("RIPPLEMEM_BENCH").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("partitions") {
        partitions();
    }
    if wanted("neighbours") {
        neighbours();
    }
}

/// Ingest and questions by number of partitions and threads, in turn, so that a change of the
/// machine meets all of them.
fn partitions() {
    let layouts: Vec<(u32, usize)> = [1, 2, 4, 8].into_iter().flat_map(|p| [(p, 1), (p, 2)]).collect();
    let mut figures: Vec<(Vec<f64>, Vec<f64>)> = layouts.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for round in 0..=ROUNDS {
        for ((partitions, workers), (ingests, questions)) in layouts.iter().zip(&mut figures) {
            let (ingest, question) = ingest_and_ask(*partitions, *workers);
            // The first round only warms caches.
            if round > 0 {
                ingests.push(ingest);
                questions.push(question);
            }
        }
    }
    for ((partitions, workers), (ingests, questions)) in layouts.iter().zip(&figures) {
        println!(
            "{partitions} partition(s), {workers} thread(s): {:.2} s to ingest, {:.2} ms a question of two askers",
            median(ingests),
            median(questions)
        );
    }
}

fn ingest_and_ask(partitions: u32, workers: usize) -> (f64, f64) {
    const BANKS: usize = 48;
    const TURNS: usize = 120;
    let home = tempfile::tempdir().expect("a temporary directory");
    let text = format!("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\nmemory.workers = {workers}");
    let mut pipeline = Pipeline::parse(&text).expect("a good pipeline");
    pipeline.log.partitions = partitions;
    pipeline.log.directory = home.path().join("log");
    pipeline.snapshot.directory = String::new();
    let mut service = PipelineDriver::open(&pipeline, &mut |_| {}).expect("an empty log");
    let events: Vec<TurnEvent> = (0..TURNS)
        .flat_map(|n| (0..BANKS).map(move |bank| turn(bank, n)))
        .map(|line| TurnEvent::from_json(line.as_bytes()).expect("a good turn"))
        .collect();
    let started = Instant::now();
    for some in events.chunks(512) {
        service.log().append_turns(some).expect("room");
        service.catch_up().expect("extracted");
    }
    service.replica().wait_until_visible().expect("visible");
    let ingest = started.elapsed().as_secs_f64();
    let queue = service.query_queue().expect("an embedder");
    let started = Instant::now();
    std::thread::scope(|scope| {
        for asker in 0..2 {
            let queue = &queue;
            scope.spawn(move || {
                for n in 0..200 {
                    let bank = Bank::parse(&format!("bank-{}", (n * 7 + asker) % BANKS)).expect("a good name");
                    let text = format!("Who stored kayak {} in the boathouse?", n % TURNS);
                    let question = Question::new(bank, text);
                    queue.ask_and_wait(QueryRequest::now(question)).expect("an answer");
                }
            });
        }
    });
    (ingest, started.elapsed().as_secs_f64() * 1e3 / 200.0)
}

fn turn(bank: usize, n: usize) -> String {
    let day = 1 + n / 10;
    format!(
        "{{\"type\": \"turn\", \"bank\": \"bank-{bank}\", \"session\": \"s{day}\", \"turn\": \"{n}\", \
         \"speaker\": \"{}\", \"time\": \"2024-05-{day:02}T10:{:02}:00Z\", \
         \"text\": \"I stored kayak {n} in the boathouse of harbour {}, before the choir met.\"}}",
        ["Ann", "Bo"][n % 2],
        n % 10,
        n % 7
    )
}

/// Questions to small banks beside a large one.
fn neighbours() {
    let (large, small) = (named("large"), named("small"));
    for shards in [1, 2] {
        let threads = ShardThreadPool::start(1).expect("a thread");
        let with_large = Arc::new(shard(&threads));
        let with_small = if shards == 1 { Arc::clone(&with_large) } else { Arc::new(shard(&threads)) };
        load(&with_small, &small, SMALL, 0..SMALL);
        load(&with_large, &large, LARGE, 0..LARGE);
        with_large.wait_for_loads().expect("loaded");
        let (quiet_ms, whole) = asked(&with_small, &small, SMALL, 2_000);
        report(&format!("{shards} shard(s), quiet"), &quiet_ms, whole);
        let (alone_ms, whole) = asked(&with_large, &large, LARGE, 20);
        report(&format!("{shards} shard(s), the large bank itself"), &alone_ms, whole);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop(asked(&with_large, &large, LARGE, 1));
                }
            });
            let (beside_ms, whole) = asked(&with_small, &small, SMALL, 2_000);
            report(&format!("{shards} shard(s), while the large bank is asked"), &beside_ms, whole);
            done.store(true, Ordering::Relaxed);
        });
        done.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut from = LARGE;
                while !done.load(Ordering::Relaxed) {
                    load(&with_large, &large, LARGE, from..from + 400);
                    from += 400;
                }
            });
            let (beside_ms, whole) = asked(&with_small, &small, SMALL, 2_000);
            report(&format!("{shards} shard(s), while the large bank is loaded"), &beside_ms, whole);
            done.store(true, Ordering::Relaxed);
        });
    }
}

fn named(name: &str) -> Bank {
    Bank::parse(name).expect("a good name")
}

fn shard(threads: &Arc<ShardThreadPool>) -> ShardHandle {
    let settings = Pipeline::parse("version = 1").expect("the defaults are valid").memory;
    ShardHandle::start_on(threads, &settings, Score::from_f64(0.75), ChangeListeners::default()).expect("a shard")
}

fn load(memory: &ShardHandle, bank: &Bank, size: usize, units: std::ops::Range<usize>) {
    let all: Vec<usize> = units.collect();
    for some in all.chunks(400) {
        let changes = some.chunks(8).map(|window| {
            let units = window.iter().map(|i| unit(bank, size, *i)).collect();
            let (key, record) = record(bank, window[0] as u32, units);
            (RecordKey::from(&key), Some(Arc::new(RecordUnits::new(&record, DIMENSIONS).expect("a good record"))))
        });
        memory.load(RecordLoad { changes: changes.collect(), ..RecordLoad::default() }).expect("the memory runs");
    }
}

/// Milliseconds of each probe, and of all.
fn asked(memory: &ShardHandle, bank: &Bank, size: usize, count: usize) -> (Vec<f64>, f64) {
    let settings = Pipeline::parse("version = 1").expect("the defaults are valid").recall.familiarity;
    let all = Instant::now();
    let mut each = Vec::with_capacity(count);
    for i in 0..count {
        let asked = unit(bank, size, (i * 7_919) % size);
        let probe = FamiliarityProbe {
            bank: bank.key(),
            vector: quantise(&asked.vector.floats()),
            persons: Vec::new(),
            topics: asked.restatement.split_whitespace().map(str::to_owned).collect(),
            words: asked.restatement,
            language: None,
            names: asked.cues.participants,
            subject: None,
            asker: None,
            asks_time: false,
            time: None,
            weights: settings.weights.clone(),
            cosines: settings.cosines,
            greeted_names: settings.greeted_names,
            zero: settings.zero,
            scale_tokens: settings.scale_tokens,
            candidates: 0,
            linked_units: 0,
            limit: 50,
            matching: None,
        };
        let started = Instant::now();
        memory.familiar_parts(probe).expect("the memory runs");
        each.push(started.elapsed().as_secs_f64() * 1e3);
    }
    (each, all.elapsed().as_secs_f64() * 1e3)
}

fn report(what: &str, each: &[f64], whole: f64) {
    println!(
        "{what}: {} questions in {whole:.0} ms, p50 {:.2} ms, p99 {:.2} ms",
        each.len(),
        percentile(each, 50),
        percentile(each, 99)
    );
}

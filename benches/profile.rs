//! What profiles cost: `cargo bench --bench profile`.
//!
//! Needs nothing. `RIPPLEMEM_BENCH` names another number of statements than 10,000. One bank in which each turn states
//! something; a question and profiles of it in turn, so that a change of the machine meets all of them. Then the time in
//! which the rules read a turn, and the bytes of statements in a record and in memory.
#![allow(clippy::print_stdout)]

use std::{sync::Arc, time::Instant};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, percentile};
use memory::{
    index::{ProfileProbe, RecordKey, RecordLoad, RecordUnits, ShardHandle, person_key},
    recall::{ProfileChoice, profile_page},
    statements::{find_statements, record_statements},
};
use types::model::{Bank, EventTime, Language, Turn};
mod asked_shard;
mod synthetic;
use asked_shard::{ask, shard};
use synthetic::{DIMENSIONS, record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const STATEMENTS: usize = 10_000;
const ROUNDS: usize = 60;
/// The tokens of a profile that a request gets which names none.
const MOST_TOKENS: usize = 1_000;

fn main() {
    let size = std::env::var("RIPPLEMEM_BENCH").ok().and_then(|count| count.parse().ok()).unwrap_or(STATEMENTS);
    let bank = Bank::parse("large").expect("a good name");
    let (without, start) = (shard(), resident_bytes());
    load(&without, &bank, size, false);
    let plain = resident_bytes() - start;
    let (memory, start) = (shard(), resident_bytes());
    let bytes = load(&memory, &bank, size, true);
    let stated = resident_bytes() - start;
    let mut times: [Vec<f64>; 3] = Default::default();
    for i in 0..ROUNDS + 3 {
        let found = [
            ask(&memory, &bank, size, i, None),
            show(&memory, &bank, Some("ann"), MOST_TOKENS),
            show(&memory, &bank, None, usize::MAX),
        ];
        // The first rounds only warm caches.
        for (times, (milliseconds, count)) in times.iter_mut().zip(found).filter(|_| i >= 3) {
            assert!(count > 0, "round {i} found nothing");
            times.push(milliseconds);
        }
    }
    let asked = median(&times[0]);
    for (name, times) in ["a question", "a person's profile of 1,000 tokens", "every line"].iter().zip(&times) {
        let (p50, p99) = (median(times), percentile(times, 99));
        println!("{size} statements, {name}: p50 {p50:.2} ms, p99 {p99:.2} ms; {:.2} of a question", p50 / asked);
    }
    println!("a statement: {:.0} bytes of JSON in its record", bytes as f64 / size as f64);
    println!(
        "resident memory a turn: {:.0} bytes without statements, {:.0} with one",
        plain as f64 / size as f64,
        stated as f64 / size as f64
    );
    for (name, text) in [
        ("one that states", "I like hiking in the hills. Always cite the source when I ask about figures."),
        ("talk", "That was a long day, and the boat still leaks a bit. Shall we look at it again on Sunday with Bo?"),
    ] {
        let turn = Turn::new(bank.clone(), "t", "Ann", text, EventTime::new(1_700_000_000_000, 0).expect("a time"));
        let started = Instant::now();
        let found: usize = (0..2_000).map(|_| find_statements(&turn, Language::En, true).len()).sum();
        let microseconds = started.elapsed().as_secs_f64() * 1e6 / 2_000.0;
        println!(
            "the rules read a turn of {} bytes ({name}, {} found): {microseconds:.1} µs",
            text.len(),
            found / 2_000
        );
    }
}

/// Milliseconds of a profile, and how many lines it has.
fn show(memory: &ShardHandle, bank: &Bank, person: Option<&str>, most_tokens: usize) -> (f64, usize) {
    let now = EventTime::new(1_700_000_000_000, 0).expect("a time");
    let choice = ProfileChoice { kinds: Vec::new(), past: false, now, most_tokens };
    let started = Instant::now();
    let probe = ProfileProbe { bank: bank.key(), person: person.map(person_key) };
    let lines = memory.profile(probe).expect("lines").value;
    let page = profile_page(&lines, Vec::new(), &choice);
    (started.elapsed().as_secs_f64() * 1e3, page.lines.len())
}

/// Loads turns that state something each; returns the bytes of their statements in records.
fn load(memory: &ShardHandle, bank: &Bank, size: usize, states: bool) -> usize {
    let (all, mut bytes): (Vec<usize>, usize) = ((0..size).collect(), 0);
    for some in all.chunks(400) {
        let changes = some.chunks(8).map(|window| {
            let (key, mut record) =
                record(bank, window[0] as u32, window.iter().map(|i| unit(bank, size, *i)).collect());
            for (held, i) in record.turns.iter_mut().zip(window) {
                let text = format!("I like thing{i} number{}. {}", i % 7, held.turn.text);
                held.turn = Arc::new(Turn { text, ..(*held.turn).clone() });
            }
            if states {
                let statements = record_statements(&record.turns, &record.turns, |_| Language::En);
                bytes += serde_json::to_vec(&statements.found).expect("JSON").len();
                record.statements = Some(statements);
            }
            (RecordKey::from(&key), Some(Arc::new(RecordUnits::new(&record, DIMENSIONS).expect("a good record"))))
        });
        memory.load(RecordLoad { changes: changes.collect(), ..RecordLoad::default() }).expect("the memory runs");
    }
    memory.wait_for_loads().expect("loaded");
    bytes
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * 4_096
}

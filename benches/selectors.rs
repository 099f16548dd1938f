//! What a selector costs a question: `cargo bench --bench selectors`.
//!
//! Needs nothing. `RIPPLEMEM_BENCH` names another number of units than 50,000. One bank; the same questions
//! without a selector and with conditions on metadata that take 1, 10 and 50 % of its turns, in turn, so that a change
//! of the machine meets all of them. Then the bytes in memory of what conditions read of a turn.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, percentile};
use memory::index::{RecordKey, RecordLoad, RecordUnits, ShardHandle};
use types::model::{Bank, Metadata, Selector, Turn};
mod asked_shard;
mod synthetic;
use asked_shard::{ask, shard};
use synthetic::{DIMENSIONS, record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const UNITS: usize = 50_000;
const QUESTIONS: usize = 60;
const SHARES: [usize; 3] = [1, 10, 50];

fn main() {
    let size = std::env::var("RIPPLEMEM_BENCH").ok().and_then(|units| units.parse().ok()).unwrap_or(UNITS);
    let bank = Bank::parse("large").expect("a good name");
    let memory = shard();
    load(&memory, &bank, size, |i| Metadata::from_json(&format!(r#"{{"n":{},"topic":"some topic"}}"#, i % 100)));
    memory.wait_for_loads().expect("loaded");
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); SHARES.len() + 1];
    for i in 0..QUESTIONS + 3 {
        for (at, times) in times.iter_mut().enumerate() {
            let select = at.checked_sub(1).map(|at| below(SHARES[at]));
            let (milliseconds, quoted) = ask(&memory, &bank, size, i, select);
            assert!(quoted > 0, "question {i} quotes nothing");
            // The first questions only warm caches.
            if i >= 3 {
                times.push(milliseconds);
            }
        }
    }
    let whole = median(&times[0]);
    println!("{size} units, no selector: p50 {whole:.2} ms, p99 {:.2} ms", percentile(&times[0], 99));
    for (share, times) in SHARES.iter().zip(&times[1..]) {
        let (p50, p99) = (median(times), percentile(times, 99));
        println!("{share} % of turns match: p50 {p50:.2} ms, p99 {p99:.2} ms; {:.2} of no selector", p50 / whole);
    }
    drop(memory);
    let bytes = |metadata: &str| {
        let (memory, bank) = (shard(), Bank::parse("small").expect("a good name"));
        load(&memory, &bank, 2_000, |_| Metadata::from_json(metadata));
        memory.wait_for_loads().expect("loaded");
        memory.footprint(Some(bank.key())).expect("counted").value.bytes() as f64 / 2_000.0
    };
    let none = bytes("");
    let short = format!(
        r#"{{"user":"{}","topic":"tax","year":2024,"tags":["a","b"],"note":"{}"}}"#,
        "u".repeat(36),
        "n".repeat(104)
    );
    let text = format!(r#"{{"value":"{}"}}"#, "x".repeat((64 << 10) - 12));
    let numbers = format!(r#"{{"value":[{}]}}"#, vec!["12345"; 10_000].join(","));
    println!("a turn of one unit, as questions see it: {none:.0} bytes without metadata;");
    for (name, json) in [("fields", &short), ("one text", &text), ("an array of numbers", &numbers)] {
        println!("with {} bytes of JSON ({name}): {:.0} more", json.len(), bytes(json) - none);
    }
}

/// Turns whose `n`, below 100, is less than this.
fn below(n: usize) -> Selector {
    let condition = serde_json::from_str(&format!(r#"{{"path":["n"],"lt":{n}}}"#)).expect("a condition");
    Selector { metadata: Some(condition), ..Selector::default() }
}

fn load(memory: &ShardHandle, bank: &Bank, size: usize, metadata: impl Fn(usize) -> Option<Metadata>) {
    let all: Vec<usize> = (0..size).collect();
    for some in all.chunks(400) {
        let changes = some.chunks(8).map(|window| {
            let units = window.iter().map(|i| {
                let mut unit = unit(bank, size, *i);
                unit.parts[0].text.clone_from(&unit.restatement);
                unit.restatement = format!("ann said: {}", unit.restatement);
                unit
            });
            let (key, mut record) = record(bank, window[0] as u32, units.collect());
            record.extractor = "rules/6".to_owned();
            for (held, i) in record.turns.iter_mut().zip(window) {
                held.turn = Arc::new(Turn { metadata: metadata(*i), ..(*held.turn).clone() });
            }
            (RecordKey::from(&key), Some(Arc::new(RecordUnits::new(&record, DIMENSIONS).expect("a good record"))))
        });
        memory.load(RecordLoad { changes: changes.collect(), ..RecordLoad::default() }).expect("the memory runs");
    }
}

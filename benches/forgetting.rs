//! What erasing and verifying cost: `cargo bench --bench forgetting`.
//!
//! For memories of 2,000, 20,000 and 100,000 turns (`RIPPLEMEM_TURNS` sets one size): the seconds and the bytes
//! written to erase one turn, the seconds of a question meanwhile, and MB/s of a verification. The embedder is the
//! deterministic one, whose vectors have 384 components as those of the default model.
#![allow(clippy::print_stdout)]

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use jiff::Timestamp;
use nouns::{
    config::{Fsync, Pipeline},
    model::{Bank, EventTime, Question, Turn},
};
use ripplemem::{
    Memory,
    pipeline::{Asked, Verdict, verify},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{percentile, seconds};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BANKS: usize = 100;

fn main() {
    let asked: Option<usize> = std::env::var("RIPPLEMEM_TURNS").ok().and_then(|n| n.parse().ok());
    for turns in asked.map_or(vec![2_000, 20_000, 100_000], |turns| vec![turns]) {
        measure(turns);
    }
}

fn measure(turns: usize) {
    let home = tempfile::tempdir().expect("a directory");
    let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults are valid");
    pipeline.log.directory = home.path().join("log");
    pipeline.log.fsync = Fsync::System;
    pipeline.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let memory = Memory::open(&pipeline).expect("a memory");
    for first in (0..turns).step_by(1_000) {
        memory.put((first..turns.min(first + 1_000)).map(turn)).expect("durable");
    }
    let end = memory.end().expect("a log");
    assert!(memory.wait_for(&end, Instant::now() + std::time::Duration::from_secs(3_600)), "extracted");
    memory.replica().snapshot().expect("a snapshot");
    let stored = bytes(home.path());

    let deleted = memory.forget(&bank(7), "7").expect("durable");
    assert!(memory.wait_for(&deleted.written, Instant::now() + std::time::Duration::from_secs(600)), "hidden");
    let (done, mut asking) = (AtomicBool::new(false), Vec::new());
    let (mut erased, mut took) = (None, 0.0);
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| {
            let mut asking = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let question = Question::new(bank(asking.len() % BANKS), "Who repaired the roof of the boathouse?");
                asking.push(seconds(|| drop(memory.ask_and_wait(Asked::now(question)).expect("an answer"))));
            }
            asking
        });
        took = seconds(|| erased = Some(memory.erase().expect("erased")));
        done.store(true, Ordering::Relaxed);
        asking = asker.join().expect("questions");
    });
    let written = erased.expect("erased").rewritten_bytes;
    let words = ["sentence number 7 of".to_owned()];
    let started = Instant::now();
    let verified = verify(&pipeline, &words, &[], Timestamp::now()).expect("verified");
    let rate = verified.search.bytes as f64 / 1e6 / started.elapsed().as_secs_f64();
    assert_eq!(verified.verdict, Verdict::Gone);
    println!(
        "{turns} turns, {:.1} MB stored: one turn erased in {took:.1} s, {:.1} MB written; questions meanwhile {:.1} / \
         {:.1} ms (median, 99 %); verified at {rate:.0} MB/s",
        stored as f64 / 1e6,
        written as f64 / 1e6,
        1e3 * percentile(&asking, 50),
        1e3 * percentile(&asking, 99),
    );
}

fn bank(number: usize) -> Bank {
    Bank::parse(&format!("bank-{number}")).expect("a name")
}

fn turn(n: usize) -> Turn {
    let time = EventTime::new(1_700_000_000_000 + 60_000 * n as i64, 0).expect("a time");
    let text = format!("This is sentence number {n} of a talk about the boathouse, its roof and the red kayak in it.");
    Turn::new(bank(n % BANKS), &n.to_string(), ["Ann", "Bo", "Cy"][n % 3], &text, time)
}

/// Bytes of all files below a directory.
fn bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory").filter_map(Result::ok);
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

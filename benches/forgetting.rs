//! What hiding, erasing and verifying cost: `cargo bench --bench forgetting`.
//!
//! For memories of 2,000, 20,000 and 100,000 turns (`RIPPLEMEM_TURNS` sets one size): the seconds and the bytes written
//! to erase one turn, as medians of five from different times and banks, the latency of questions meanwhile, and MB/s
//! of a verification. Then, in a bank of as many turns beside 99 small ones, the time until no answer reflects one
//! turn, at 100 new turns per second; until none reflects one person, who speaks every tenth turn, with questions to
//! the other banks before and meanwhile, and until what others said in the same windows is back; and until none
//! reflects the bank. The embedder is the deterministic one with as many components as the default model, 384, unless
//! `RIPPLEMEM_MODEL` names another; words are drawn, few often and many seldom, and every twenty turns share a subject
//! with words of its own.
#![allow(clippy::print_stdout)]

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use erasure::{DurableDeletion, ErasureVerdict, ForgetStage, verify};
use jiff::Timestamp;
use pipeline::Cancellation;
use replica::QueryRequest;
use ripplemem::Memory;
use types::{
    config::{FsyncPolicy, Pipeline},
    model::{Bank, EventTime, Question, Selector, Turn},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{percentile, seconds};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BANKS: usize = 100;
/// Turns that are erased one after another.
const ERASED: usize = 5;

fn main() {
    let asked: Option<usize> = std::env::var("RIPPLEMEM_TURNS").ok().and_then(|n| n.parse().ok());
    for turns in asked.map_or(vec![2_000, 20_000, 100_000], |turns| vec![turns]) {
        erase(turns);
        hide(turns);
    }
}

fn pipeline(home: &Path) -> Pipeline {
    let model = std::env::var("RIPPLEMEM_MODEL").unwrap_or_else(|_| "fixed".to_owned());
    let settings = format!("version = 1\nembed.model = {model:?}");
    let mut pipeline = Pipeline::parse(&settings).expect("a model of the catalogue");
    pipeline.log.directory = home.join("log");
    pipeline.log.fsync = FsyncPolicy::System;
    pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    pipeline
}

/// Puts turns, a thousand at once, and waits until they are reflected.
fn fill(memory: &Memory, turns: impl Iterator<Item = Turn>) {
    let mut turns = turns.peekable();
    while turns.peek().is_some() {
        memory.put(turns.by_ref().take(1_000).collect::<Vec<_>>()).expect("durable");
    }
    let end = memory.end().expect("a log");
    assert!(memory.wait_for(&end, Instant::now() + Duration::from_secs(3_600)), "extracted");
}

/// Asks the banks in turn until `done`; the seconds of each question.
fn ask(memory: &Memory, banks: std::ops::Range<usize>, done: &AtomicBool) -> Vec<f64> {
    let mut asking = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let asked = bank(banks.start + asking.len() % banks.len());
        let question = QueryRequest::now(Question::new(asked, "Who repaired the roof of the boathouse?"));
        asking.push(seconds(|| drop(memory.ask_and_wait(question).expect("an answer"))));
    }
    asking
}

/// The seconds of `work`, and of each question to the banks meanwhile.
fn asked_meanwhile(memory: &Memory, banks: std::ops::Range<usize>, work: impl FnOnce()) -> (f64, Vec<f64>) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| ask(memory, banks, &done));
        let took = seconds(work);
        done.store(true, Ordering::Relaxed);
        (took, asker.join().expect("questions"))
    })
}

fn hide(turns: usize) {
    let home = tempfile::tempdir().expect("a directory");
    let memory = Memory::open(&pipeline(home.path())).expect("a memory");
    let large = bank(0);
    fill(&memory, (0..turns).map(|n| turn_of(&large, n)));
    fill(&memory, (0..100 * BANKS).filter(|n| n % BANKS > 0).map(turn));
    let hidden = |deleted: DurableDeletion| {
        assert!(memory.wait_for(&deleted.written, Instant::now() + Duration::from_secs(3_600)), "hidden");
    };

    let done = AtomicBool::new(false);
    let one: Vec<f64> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (started, mut sent) = (Instant::now(), 0);
            while !done.load(Ordering::Relaxed) {
                memory.put([turn(100 * BANKS + sent)]).expect("durable");
                sent += 1;
                std::thread::sleep((Duration::from_millis(10) * sent as u32).saturating_sub(started.elapsed()));
            }
        });
        let forget = |n: usize| {
            std::thread::sleep(Duration::from_millis(40));
            seconds(|| hidden(memory.forget(&large, &(7 * n).to_string()).expect("durable")))
        };
        let one = (0..200).map(forget).collect();
        done.store(true, Ordering::Relaxed);
        one
    });

    let (_, before) = asked_meanwhile(&memory, 1..BANKS, || std::thread::sleep(Duration::from_secs(5)));
    let select = |select| {
        memory
            .selected_turns(&large, &select, &Cancellation::default())
            .expect("turns")
            .into_iter()
            .map(|held| held.turn.turn.clone())
    };
    let person: Vec<String> = select(Selector { speakers: vec!["Dee".into()], ..Selector::default() }).collect();
    let (of_person, mut operation) = (person.len(), String::new());
    let (person, meanwhile) = asked_meanwhile(&memory, 1..BANKS, || {
        let deleted = memory.forget_all(&large, person.into_iter()).expect("durable");
        operation.clone_from(&deleted.operation.operation);
        hidden(deleted);
    });
    let rebuilt = seconds(|| {
        let is_rebuilt = || {
            let receipt = memory.receipt(&operation).expect("a log").expect("an operation");
            receipt.stage >= ForgetStage::Rebuilt
        };
        while !is_rebuilt() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let rest: Vec<String> = select(Selector { all: true, ..Selector::default() }).collect();
    let of_rest = rest.len();
    let rest = seconds(|| hidden(memory.forget_all(&large, rest.into_iter()).expect("durable")));
    println!(
        "{turns} turns in a bank: one turn hidden in {:.0} / {:.0} ms (median, 99 %); {of_person} turns of a person in \
         {person:.1} s, questions to other banks before / meanwhile {:.1} / {:.1} ms (99 %), and others' words back \
         {rebuilt:.1} s later; the other {of_rest} in {rest:.1} s",
        1e3 * percentile(&one, 50),
        1e3 * percentile(&one, 99),
        1e3 * percentile(&before, 99),
        1e3 * percentile(&meanwhile, 99),
    );
}

fn erase(turns: usize) {
    let home = tempfile::tempdir().expect("a directory");
    let pipeline = pipeline(home.path());
    let memory = Memory::open(&pipeline).expect("a memory");
    fill(&memory, (0..turns).map(turn));
    memory.replica().snapshot().expect("a snapshot");
    let stored = bytes(home.path());

    let erased: Vec<usize> = (0..ERASED).map(|nth| 7 + nth * (turns / ERASED + 13)).collect();
    let (mut took, mut written, mut asking) = (Vec::new(), Vec::new(), Vec::new());
    for n in &erased {
        let deleted = memory.forget(&bank(n % BANKS), &n.to_string()).expect("durable");
        assert!(memory.wait_for(&deleted.written, Instant::now() + Duration::from_secs(600)), "hidden");
        let (seconds, asked) = asked_meanwhile(&memory, 0..BANKS, || {
            written.push(memory.erase().expect("erased").rewritten_bytes as f64 / 1e6);
        });
        took.push(seconds);
        asking.extend(asked);
    }
    let words: Vec<String> = erased.iter().map(|n| format!("sentence number {n} of")).collect();
    let started = Instant::now();
    let verified = verify(&pipeline, &words, &[], Timestamp::now()).expect("verified");
    let rate = verified.search.bytes as f64 / 1e6 / started.elapsed().as_secs_f64();
    assert_eq!(verified.verdict, ErasureVerdict::Gone);
    println!(
        "{turns} turns, {:.1} MB stored: one turn erased in {:.1} s, {:.1} MB written (median of {ERASED}; {:.1} MB at \
         first); questions meanwhile {:.1} / {:.1} ms (median, 99 %); verified at {rate:.0} MB/s",
        stored as f64 / 1e6,
        percentile(&took, 50),
        percentile(&written, 50),
        written[0],
        1e3 * percentile(&asking, 50),
        1e3 * percentile(&asking, 99),
    );
}

fn bank(number: usize) -> Bank {
    Bank::parse(&format!("bank-{number}")).expect("a name")
}

fn turn(n: usize) -> Turn {
    turn_of(&bank(n % BANKS), n)
}

fn turn_of(bank: &Bank, n: usize) -> Turn {
    let time = EventTime::new(1_700_000_000_000 + 60_000 * n as i64, 0).expect("a time");
    let (mut dice, subject) = (Dice(n as u64), n / 20);
    let mut words: Vec<String> = (0..5).map(|_| format!("s{subject}w{}", dice.below(12))).collect();
    words.extend((0..9).map(|_| format!("word{}", dice.below_often_small(3_000))));
    let text = format!("This is sentence number {n} of a talk about {}.", words.join(" "));
    let speaker = if n % 10 == 5 { "Dee" } else { ["Ann", "Bo", "Cy"][n % 3] };
    Turn::new(bank.clone(), &n.to_string(), speaker, &text, time)
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Half of the values lie in the first fifth.
    fn below_often_small(&mut self, end: u64) -> u64 {
        let end = 1 + self.below(end);
        self.below(end)
    }
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

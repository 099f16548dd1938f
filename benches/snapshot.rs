//! Snapshots of synthetic memories: `cargo bench --bench snapshot`.
//!
//! For a memory of 100 banks of 1,000 units, and for one bank of 100,000 (`RIPPLEMEM_UNITS` sets
//! the total): the time to write their update tables, compared with pyarrow, and the time to start
//! from the snapshot, compared with the log alone. `RIPPLEMEM_BENCH=questions`: latency of
//! questions while turns arrive, without snapshots and while snapshots are written without a pause,
//! also when each of them must search all stored rows for deleted turns.
//! `RIPPLEMEM_BENCH=memory`: peak memory of a process with 1,000 banks of 1,000 units, without
//! snapshots, with the first one, and restored from it.
#![allow(clippy::print_stdout)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use logs::{Log, Transaction};
use memory::index::GraphCensus;
use models::embed::EmbedderPool;
use pipeline::Cancellation;
use replica::{Replica, ReplicaOptions};
use snapshots::{ClaimRule, LogSnapshots, Manifest, MemoryLogRead, UpdateTable};
use types::{
    config::{FsyncPolicy, Pipeline, ShardAssignmentMode},
    model::{Bank, MemoryKey, MemoryRecord, ModelRef, Question},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{percentile, seconds};
mod synthetic;
use synthetic::{record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const WINDOW: usize = 40;
/// Records of one read of the log.
const READ: usize = 25;

fn main() {
    let asked: Option<usize> = std::env::var("RIPPLEMEM_UNITS").ok().and_then(|n| n.parse().ok());
    let units = asked.unwrap_or(100_000);
    match std::env::var("RIPPLEMEM_BENCH").as_deref() {
        Ok("questions") => questions(100, units / 100),
        Ok("memory") => most_memory(1_000, asked.unwrap_or(1_000_000) / 1_000),
        _ => {
            measure("100 banks", 100, units / 100);
            measure("one bank", 1, units);
        }
    }
}

/// A log in `home` with synthetic records, of `model` if one is given, and the bytes of their text.
fn filled(home: &Path, banks: usize, size: usize, model: Option<&ModelRef>) -> (Pipeline, Box<dyn Log>, usize) {
    let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults are valid");
    pipeline.log.directory = home.join("log");
    pipeline.log.fsync = FsyncPolicy::System;
    let log = logs::open(&pipeline.log).expect("a log");
    let mut text_bytes = 0;
    for (key, mut record) in records(banks, size) {
        record.model = model.cloned().unwrap_or(record.model);
        text_bytes += record.units.iter().map(|unit| 2 * unit.restatement.len()).sum::<usize>();
        commit(&*log, &key, &record);
    }
    (pipeline, log, text_bytes)
}

fn commit(log: &dyn Log, key: &MemoryKey, record: &MemoryRecord) {
    let memory = vec![(key.to_bytes(), Some(serde_json::to_vec(record).expect("it has a JSON form")))];
    log.commit(&Transaction { memory, ..Transaction::default() }).expect("a commit");
}

/// Seconds of questions in each setting.
const ASKING_SECONDS: f64 = 20.0;

/// Questions while forty units arrive fifty times a second, without snapshots and with them.
fn questions(banks: usize, size: usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults are valid");
    let embedders = EmbedderPool::open(&pipeline.embed, &pipeline.model()).expect("no file is needed");
    let model = embedders.model().expect("it is open").clone();
    let (mut pipeline, log, _) = filled(home.path(), banks, size, Some(&model));
    let (mut p99, mut window) = (Vec::new(), size.div_ceil(WINDOW));
    for (name, directory, deletes) in [
        ("without snapshots", None, false),
        ("while snapshots are written", Some("snapshots"), false),
        ("while each snapshot searches all rows for deleted turns", Some("snapshots"), true),
    ] {
        pipeline.snapshot.directory =
            directory.map(|of| home.path().join(of).to_string_lossy().into_owned()).unwrap_or_default();
        let (replica, _) = start_with(&pipeline, &*log);
        drop(replica.snapshot().expect("a snapshot"));
        let over = AtomicBool::new(false);
        let (mut took, mut snapshots) = (Vec::new(), 0);
        std::thread::scope(|scope| {
            let first = window;
            let (replica, log, over, model) = (&replica, &*log, &over, &model);
            let ingesting = scope.spawn(move || {
                let mut windows = (first..).flat_map(|window| (0..banks).map(move |bank| (bank, window)));
                let mut last = first;
                while !over.load(Ordering::Relaxed) {
                    let Some((bank, at)) = windows.next() else { break };
                    let (key, mut record) = window_of(bank, size, at);
                    record.turns.iter_mut().take(usize::from(deletes)).for_each(|turn| turn.deleted = true);
                    commit(log, &key, &MemoryRecord { model: model.clone(), ..record });
                    while replica.follow(log, 0, |_, _, _| {}).expect("the memory follows") {}
                    last = at;
                    std::thread::sleep(Duration::from_millis(20));
                }
                last
            });
            let writing = scope.spawn(|| {
                let mut written = 0;
                while directory.is_some() && !over.load(Ordering::Relaxed) {
                    written += usize::from(replica.snapshot().expect("a snapshot").is_some());
                }
                written
            });
            let begun = Instant::now();
            for n in (0..).take_while(|_| begun.elapsed().as_secs_f64() < ASKING_SECONDS) {
                let bank = Bank::parse(&format!("bank-{}", n % banks)).expect("a good name");
                let text = format!("What about word{} and word{}?", n % 97, n % 53);
                let question = Question::new(bank, text);
                let from = Instant::now();
                replica.ask(&question, &embedders, None, &Cancellation::default(), None).expect("evidence");
                took.push(from.elapsed().as_secs_f64() * 1_000.0);
                std::thread::sleep(Duration::from_millis(5));
            }
            over.store(true, Ordering::Relaxed);
            snapshots = writing.join().expect("no panic");
            window = ingesting.join().expect("no panic") + 1;
        });
        println!(
            "{name}: {} questions, p50 {:.2} ms, p99 {:.2} ms; {snapshots} snapshots in {ASKING_SECONDS} s",
            took.len(),
            percentile(&took, 50),
            percentile(&took, 99)
        );
        p99.push(percentile(&took, 99));
    }
    println!("p99 over that without snapshots: {:.2}, and {:.2} with deletions", p99[1] / p99[0], p99[2] / p99[0]);
}

/// Peak memory of this process since the last call, in megabytes.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    kilobytes / 1_000.0
}

fn most_memory(banks: usize, size: usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (mut pipeline, log, _) = filled(home.path(), banks, size, None);
    let units = (banks * size) as f64;
    peak_mb();
    let shown = |name: &str, took: f64| {
        let peak = peak_mb();
        println!("{name}: {took:.1} s, at most {peak:.0} MB, {:.2} KB a unit", peak * 1_000.0 / units);
    };
    let (census, took) = start(&pipeline, &*log);
    shown("from the log, without snapshots", took);
    pipeline.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let begun = Instant::now();
    let (replica, _) = start_with(&pipeline, &*log);
    let taken = replica.snapshot().expect("a snapshot").expect("the first");
    drop(replica);
    shown("from the log, with the first snapshot", begun.elapsed().as_secs_f64());
    let bytes: u64 = taken.manifests.iter().map(Manifest::bytes).sum();
    println!("the snapshot has {:.0} bytes a unit on disk", bytes as f64 / units);
    let (restored, took) = start(&pipeline, &*log);
    assert_eq!(restored, census, "the digest of a full replay");
    shown("restored", took);
}

fn measure(name: &str, banks: usize, size: usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (mut pipeline, log, text_bytes) = filled(home.path(), banks, size, None);
    let units = (banks * size) as f64;

    let (replayed, replaying) = start(&pipeline, &*log);
    pipeline.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let (replica, _) = start_with(&pipeline, &*log);
    let taken = replica.snapshot().expect("a snapshot").expect("the first").manifests.remove(0);
    drop(replica);
    let (restored, restoring) = start(&pipeline, &*log);
    assert_eq!(restored, replayed, "the digest of a full replay");

    let bytes = |table| taken.files(table).map(|file| file.bytes).sum::<u64>() as f64 / units;
    let [turns, of_units, edges] = UpdateTable::ALL.map(bytes);
    println!(
        "{name}, {units} units, {} choices: {:.0} bytes a unit on disk (turns {turns:.0}, units {of_units:.0}, edges \
         {edges:.0}), of text {:.0} before compression",
        taken.live.choices,
        turns + of_units + edges,
        text_bytes as f64 / units
    );
    println!("{name}: started from the snapshot in {restoring:.2} s, from the log alone in {replaying:.2} s");
    write(name, &pipeline, &taken, banks, size, home.path());
}

fn records(banks: usize, size: usize) -> impl Iterator<Item = (MemoryKey, MemoryRecord)> {
    let windows = size.div_ceil(WINDOW);
    (0..windows).flat_map(move |window| (0..banks).map(move |bank| window_of(bank, size, window)))
}

/// A window of a bank; a window past the bank's size holds units that arrive later.
fn window_of(bank: usize, size: usize, window: usize) -> (MemoryKey, MemoryRecord) {
    let bank = Bank::parse(&format!("bank-{bank}")).expect("a good name");
    let end = if window * WINDOW < size { size } else { usize::MAX };
    let of = window * WINDOW..((window + 1) * WINDOW).min(end);
    let mut units: Vec<_> = of.map(|i| unit(&bank, size, i)).collect();
    // A pipeline stores vectors in these steps.
    units.iter_mut().for_each(|unit| unit.vector = unit.vector.in_steps());
    record(&bank, (window * WINDOW) as u32, units)
}

fn start_with(pipeline: &Pipeline, log: &dyn Log) -> (Replica, f64) {
    let started = Instant::now();
    let beginning = ReplicaOptions {
        hold: ShardAssignmentMode::All,
        edges: None,
        record: true,
        asks: None,
        waking_log: None,
        turns: None,
        progress: &mut |_, _| {},
    };
    let replica = Replica::open(pipeline, log, beginning).expect("a memory");
    for partition in 0..log.partitions() {
        while replica.follow(log, partition, |_, _, _| {}).expect("the memory follows") {}
    }
    replica.wait_until_visible().expect("the memory runs");
    (replica, started.elapsed().as_secs_f64())
}

fn start(pipeline: &Pipeline, log: &dyn Log) -> (GraphCensus, f64) {
    let (replica, took) = start_with(pipeline, log);
    (replica.digest(None).expect("the memory runs").value, took)
}

/// Writes the tables of a snapshot again, with RippleMem and with pyarrow.
fn write(name: &str, pipeline: &Pipeline, taken: &Manifest, banks: usize, size: usize, home: &Path) {
    let (log, partitions) = ("an embedded log", taken.partitions);
    let open = |place: &Path| {
        let settings = taken.settings.clone();
        LogSnapshots::open(&place.to_string_lossy(), log, partitions, settings).expect("a place")
    };
    let before = open(Path::new(&pipeline.snapshot.directory));
    let restored = before.newest(0, false, &mut |_| {}, &mut |_, _| {}).expect("a snapshot").expect("there is one");
    let mut updates: Vec<MemoryLogRead> = Vec::new();
    let mut at = 0;
    let all: Vec<_> = records(banks, size).collect();
    for read in all.chunks(READ) {
        at += read.len() as u64;
        let records = read.iter().map(|(key, record)| (key.clone(), Some(record.clone()))).collect();
        updates.push(MemoryLogRead { next_offset: at, offset: at - 1, records, ..MemoryLogRead::default() });
    }
    drop(all);
    let mut choices: Vec<_> =
        restored.choices.iter().flat_map(|(bank, of)| of.iter().map(|choice| ((bank.key(), *choice), 1))).collect();
    drop(restored);
    let each = choices.len().div_ceil(updates.len());
    let ours = home.join("ours");
    let rule = ClaimRule::AtOnce;
    let mut writer = open(&ours).writer(0, None, None, "bench".to_owned(), 0, rule).expect("a place");
    let units = (banks * size) as f64;
    let took = seconds(|| {
        for update in &updates {
            // A bank's edges follow its first record.
            let from = choices.len().saturating_sub(each);
            writer.add(update, &choices.split_off(from)).expect("rows");
        }
        writer.snapshot(1, rule).expect("a snapshot");
    });
    print!("{name}: {:.0} units/s written with edges and checksums", units / took);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python_packages.py");
    let packages = Command::new(script).arg("pyarrow").output().expect("python3");
    if !packages.status.success() {
        println!("; pyarrow cannot be had here");
        return;
    }
    let packages = String::from_utf8_lossy(&packages.stdout).trim().to_owned();
    let rewrite = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/rewrite.py");
    let output = Command::new("python3")
        .arg(rewrite)
        .arg(ours.join("shard-00000"))
        .arg(PathBuf::from(home).join("theirs"))
        .env("PYTHONPATH", packages)
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("seconds");
    println!(", {:.0} by pyarrow from tables in memory: {:.2}", units / theirs, theirs / took);
}

//! Snapshots of synthetic memories: `cargo bench --bench snapshot`.
//!
//! One memory of 100 banks of 1,000 units and one of a single bank of 100,000
//! (`RIPPLEMEM_UNITS` says how many in all): writing their update tables beside pyarrow, which
//! writes the same tables, and a start from the snapshot beside one from the log alone.
#![allow(clippy::print_stdout)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use ripplemem::{
    config::{Fsync, Pipeline},
    log::{self, Log, Transaction},
    memory::Census,
    model::{Bank, MemoryKey, MemoryRecord},
    pipeline::{Answerer, Beginning},
    snapshot::{Manifest, Snapshots, Update, UpdateTable},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::seconds;
mod synthetic;
use synthetic::{record, unit};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WINDOW: usize = 40;
/// Records of one read of the log.
const READ: usize = 25;

fn main() {
    let units = std::env::var("RIPPLEMEM_UNITS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    measure("100 banks", 100, units / 100);
    measure("one bank", 1, units);
}

fn measure(name: &str, banks: usize, size: usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults are valid");
    pipeline.log.directory = home.path().join("log");
    pipeline.log.fsync = Fsync::System;
    let log = log::open(&pipeline.log).expect("a log");
    let mut text_bytes = 0;
    for (key, record) in records(banks, size) {
        text_bytes += record.units.iter().map(|unit| 2 * unit.restatement.len()).sum::<usize>();
        let memory = vec![(key.to_bytes(), Some(serde_json::to_vec(&record).expect("it has a JSON form")))];
        let transaction = Transaction { memory, ..Transaction::default() };
        log.commit(&transaction).expect("a commit");
    }
    let units = (banks * size) as f64;

    let (replayed, replaying) = start(&pipeline, &*log);
    pipeline.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let (answerer, _) = start_with(&pipeline, &*log);
    let taken = answerer.snapshot().expect("a snapshot").expect("the first");
    drop(answerer);
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
    (0..windows).flat_map(move |window| {
        (0..banks).map(move |bank| {
            let bank = Bank::parse(&format!("bank-{bank}")).expect("a good name");
            let of = window * WINDOW..((window + 1) * WINDOW).min(size);
            let mut units: Vec<_> = of.map(|i| unit(&bank, size, i)).collect();
            // As a pipeline stores them.
            units.iter_mut().for_each(|unit| unit.vector = unit.vector.in_steps());
            record(&bank, (window * WINDOW) as u32, units)
        })
    })
}

fn start_with(pipeline: &Pipeline, log: &dyn Log) -> (Answerer, f64) {
    let started = Instant::now();
    let beginning = Beginning { edges: None, record: true, turns: None, say: &mut |_| {}, progress: &mut |_, _| {} };
    let answerer = Answerer::open(pipeline, log, beginning).expect("a memory");
    for partition in 0..log.partitions() {
        while answerer.follow(log, partition, |_, _, _| {}).expect("the memory follows") {}
    }
    answerer.settle().expect("the memory runs");
    (answerer, started.elapsed().as_secs_f64())
}

fn start(pipeline: &Pipeline, log: &dyn Log) -> (Census, f64) {
    let (answerer, took) = start_with(pipeline, log);
    (answerer.digest(None).expect("the memory runs").value, took)
}

/// The tables of a snapshot written once more, by us and by pyarrow.
fn write(name: &str, pipeline: &Pipeline, taken: &Manifest, banks: usize, size: usize, home: &Path) {
    let (log, partitions) = ("an embedded log", taken.partitions);
    let open = |place: &Path| {
        Snapshots::open(&place.to_string_lossy(), log, partitions, taken.settings.clone()).expect("a place")
    };
    let before = open(Path::new(&pipeline.snapshot.directory));
    let restored = before.newest(false, &mut |_| {}, &mut |_, _| {}).expect("a snapshot").expect("there is one");
    let mut updates: Vec<Update> = Vec::new();
    let mut at = 0;
    let all: Vec<_> = records(banks, size).collect();
    for read in all.chunks(READ) {
        at += read.len() as u64;
        let records = read.iter().map(|(key, record)| (key.clone(), Some(record.clone()))).collect();
        updates.push(Update { next_offset: at, offset: at - 1, records, ..Update::default() });
    }
    drop(all);
    let mut choices: Vec<_> =
        restored.choices.iter().flat_map(|(bank, of)| of.iter().map(|choice| ((bank.key(), *choice), 1))).collect();
    drop(restored);
    let each = choices.len().div_ceil(updates.len());
    let ours = home.join("ours");
    let mut writer = open(&ours).writer(None, "bench".to_owned(), 0).expect("a place");
    let units = (banks * size) as f64;
    let took = seconds(|| {
        for update in &updates {
            // A bank is known with its first record.
            let from = choices.len().saturating_sub(each);
            writer.take(update, &choices.split_off(from)).expect("rows");
        }
        writer.snapshot(1).expect("a snapshot");
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
        .arg(&ours)
        .arg(PathBuf::from(home).join("theirs"))
        .env("PYTHONPATH", packages)
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("seconds");
    println!(", {:.0} by pyarrow from tables in memory: {:.2}", units / theirs, theirs / took);
}

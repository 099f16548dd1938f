//! Invariant 3 on the embedded log: after a kill at any moment every acknowledged turn is in the
//! log, none twice, none invented, and the memory equals that of a run that was not killed.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use logs::Topic;
use ripplemem::PipelineDriver;
use types::model::TurnEvent;

use super::{
    oracle::Dice,
    support::{census, data, ingest, kill_rounds, lines, open, pipeline, write},
};

fn turns(service: &PipelineDriver) -> Vec<TurnEvent> {
    let records = service.log().read(Topic::Turns, 0, 0, 100_000).unwrap().records;
    records.iter().map(|r| TurnEvent::from_json(r.value.as_deref().unwrap()).unwrap()).collect()
}

/// In every other round no bank has room in memory, so that each sleeps as soon as nothing is left to do for it.
fn sleep_of(round: u64) -> &'static str {
    if round % 2 == 1 { "memory.most_bytes = 1\n" } else { "" }
}

#[test]
fn a_run_that_is_killed_at_any_moment_loses_no_acknowledged_turn() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let calm = tempfile::tempdir().unwrap();
    let extra = "log.fsync = \"commit\"\nembed.read_turns = 16\n";
    let settings = |home: &std::path::Path| {
        let mut pipeline = pipeline(home, "embed.read_turns = 16");
        pipeline.log.fsync = types::config::FsyncPolicy::Commit;
        pipeline
    };
    let mut service = open(&settings(calm.path()));
    ingest(&mut service, &data("sample.jsonl"));
    let (expected, source) = (census(&service), turns(&service));
    drop(service);

    let (mut partial, mut complete) = (0, 0);
    for round in 0..rounds {
        let home = tempfile::tempdir().unwrap();
        let file = write(
            &home.path().join("p.toml"),
            format!(
                "version = 1\nembed.model = \"fixed\"\n{extra}{}log.directory = \"log\"\n\
                 [source]\nformat = \"jsonl\"\npath = {:?}\n",
                sleep_of(round),
                data("sample.jsonl")
            ),
        );
        let mut dice = Dice(round);
        for _ in 0..1 + dice.below(3) {
            let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
                .args(["run", file.to_str().unwrap()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(5 + dice.below(160)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let pipeline = settings(home.path());
        let mut service = open(&pipeline);
        service.catch_up().unwrap();
        // The log holds the source's turns in order, from the start, once for every run.
        let mut runs = 0;
        let mut at = source.len();
        for event in turns(&service) {
            if Some(&event) != source.get(at) {
                assert_eq!(Some(&event), source.first(), "round {round}: an invented or reordered turn");
                (runs, at) = (runs + 1, 0);
            }
            at += 1;
        }
        assert!(runs <= 3, "round {round}");
        if turns(&service).len() < source.len() {
            partial += 1
        } else {
            complete += 1
        }
        // The memory reflects all turns of the log; reading the source again adds the rest.
        assert_eq!(service.log().read_position(0).unwrap(), service.log().end(Topic::Turns, 0).unwrap());
        ingest(&mut service, &data("sample.jsonl"));
        assert_eq!(census(&service), expected, "round {round}");
        drop(service);
        assert_eq!(census(&open(&pipeline)), expected, "round {round}, replayed");
    }
    println!("killed in {rounds} rounds: {partial} had read a part, {complete} everything at least once");
}

/// One bank writes huge turns, and deletes one; others write a word now and then.
/// In some rounds the process is asked to end, which loses as little.
#[test]
fn a_run_that_is_killed_while_a_bank_is_behind_loses_nothing_and_doubles_nothing() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let sentence = |n: usize| format!("Number {n} of the boats lies behind the mill in Oslo, and Ann painted it red. ");
    let mut all = String::new();
    for n in 0..8 {
        let huge: String = (0..2_000).map(|s| sentence(n * 2_000 + s)).collect();
        all += &lines("huge", "s", &[(&format!("h{n}"), "Ann", &huge)]);
        if n == 4 {
            all += "{\"type\": \"deletion\", \"bank\": \"huge\", \"turn\": \"h1\", \"version\": 3}\n";
        }
        for bank in ["a", "b", "c/d"] {
            let said = [(format!("t{n}"), sentence(n)), (format!("u{n}"), "Where is the kayak now?".to_owned())];
            all += &lines(bank, "s", &said.each_ref().map(|(turn, text)| (turn.as_str(), "Bo", text.as_str())));
        }
    }
    all += "{\"type\": \"session_end\", \"bank\": \"huge\", \"session\": \"s\"}\n";
    let calm = tempfile::tempdir().unwrap();
    let file = write(&calm.path().join("turns.jsonl"), all);
    let mut service = open(&pipeline(calm.path(), ""));
    ingest(&mut service, &file);
    let expected = census(&service);
    drop(service);
    let mut behind = 0;
    for round in 0..rounds {
        let home = tempfile::tempdir().unwrap();
        let settings = write(
            &home.path().join("p.toml"),
            format!(
                "version = 1\nembed.model = \"fixed\"\n{}log.directory = \"log\"\n\
                 [source]\nformat = \"jsonl\"\npath = {file:?}\n",
                sleep_of(round)
            ),
        );
        let mut dice = Dice(1_000 + round);
        let mut pipeline = pipeline(home.path(), "");
        pipeline.log.fsync = types::config::FsyncPolicy::Commit;
        for _ in 0..1 + dice.below(3) {
            let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
                .args(["run", settings.to_str().unwrap()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(50 + dice.below(1_500)));
            if dice.below(3) == 0 {
                // It may have ended by itself.
                Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
            } else {
                child.kill().unwrap();
            }
            child.wait().unwrap();
            if home.path().join("log").exists() {
                let service = open(&pipeline);
                behind += usize::from(!service.log().progress(0).unwrap().behind.is_empty());
            }
        }
        let mut service = open(&pipeline);
        ingest(&mut service, &file);
        let end = service.log().end(Topic::Turns, 0).unwrap();
        assert_eq!(service.log().progress(0).unwrap(), end.into(), "round {round}");
        assert_eq!(census(&service), expected, "round {round}");
        drop(service);
        assert_eq!(census(&open(&pipeline)), expected, "round {round}, replayed");
    }
    println!("in {rounds} rounds, a bank was behind {behind} times");
}

//! Invariant 3 on the embedded log: after a kill at any moment every acknowledged turn is in the
//! log, none twice, none invented, and the memory equals that of a run that was not killed.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use nouns::model::TurnEvent;
use ripplemem::{log::Topic, pipeline::Service};

use super::{
    oracle::Dice,
    support::{census, data, ingest, open, pipeline, write},
};

fn turns(service: &Service) -> Vec<TurnEvent> {
    let records = service.log().read(Topic::Turns, 0, 0, 100_000).unwrap().records;
    records.iter().map(|r| TurnEvent::from_json(r.value.as_deref().unwrap()).unwrap()).collect()
}

#[test]
fn a_run_that_is_killed_at_any_moment_loses_no_acknowledged_turn() {
    let rounds = std::env::var("RIPPLEMEM_KILL_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(8);
    let calm = tempfile::tempdir().unwrap();
    let extra = "log.fsync = \"commit\"\nembed.read_turns = 16\n";
    let settings = |home: &std::path::Path| {
        let mut pipeline = pipeline(home, "embed.read_turns = 16");
        pipeline.log.fsync = nouns::config::Fsync::Commit;
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
                "version = 1\nembed.model = \"fixed\"\n{extra}log.directory = \"log\"\n\
                 [source]\nformat = \"jsonl\"\npath = {:?}\n",
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

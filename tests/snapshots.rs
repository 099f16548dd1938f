//! Snapshots of a whole memory on the embedded log (invariants 2, 3 and 4), and as-of questions.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use logs::Topic;
use memory::index::GraphCensus;
use ripplemem::PipelineDriver;
use snapshots::AsOf;
use types::{
    config::{Pipeline, SnapshotSettings},
    model::{Bank, Question, TurnEvent},
};

use super::{
    oracle::Dice,
    support::{
        Python, ask, census, data, ingest, kill_rounds, lines, open, pipeline, ripplemem, rows, with_warnings, write,
    },
};

/// A pipeline with snapshots beside its log.
fn with_snapshots(home: &Path, extra: &str) -> Pipeline {
    let mut pipeline = pipeline(home, extra);
    pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    pipeline
}

fn append(service: &mut PipelineDriver, jsonl: &str) {
    let events: Vec<TurnEvent> = jsonl.lines().map(|l| TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
}

/// Invariant 2: a restored memory and its answers equal those of a replay, under any number of workers,
/// with and without a tail.
#[test]
fn a_restored_memory_equals_the_replayed_one() {
    let home = tempfile::tempdir().unwrap();
    let question = "Which books has Marta recommended to Elias?";
    let mut service = open(&with_snapshots(home.path(), ""));
    ingest(&mut service, &data("sample.jsonl"));
    assert!(service.replica().snapshot().unwrap().is_some());
    assert!(service.replica().snapshot().unwrap().is_none(), "nothing has changed");
    let (first, evidence) = (census(&service), ask(&service, "sample/harbour", question));
    drop(service);
    for workers in [1, 3] {
        let restored = open(&with_snapshots(home.path(), &format!("memory.workers = {workers}")));
        assert_eq!(census(&restored), first, "{workers} workers");
        assert_eq!(ask(&restored, "sample/harbour", question), evidence, "{workers} workers");
    }
    // Input that changes no record still moves the read position.
    ingest(&mut open(&pipeline(home.path(), "")), &data("sample.jsonl"));
    let replayed = ask(&open(&pipeline(home.path(), "")), "sample/harbour", question);
    let mut restored = open(&with_snapshots(home.path(), ""));
    assert_eq!(ask(&restored, "sample/harbour", question), replayed);
    ingest(&mut restored, &data("sample.jsonl"));
    drop(restored);
    // A tail that no snapshot includes, with a deletion and new turns.
    let mut without = open(&pipeline(home.path(), ""));
    let more = lines("sample/harbour", "later", &[("m1", "Ann", "Marta bought a green kayak"), ("m2", "Bo", "Where?")]);
    let deletion = r#"{"type": "deletion", "bank": "sample/harbour", "turn": "m2"}"#;
    append(&mut without, &format!("{more}{deletion}\n"));
    append(&mut without, r#"{"type": "session_end", "bank": "sample/harbour", "session": "later"}"#);
    let then = census(&without);
    assert_ne!(then, first);
    drop(without);
    let restored = open(&with_snapshots(home.path(), ""));
    assert_eq!(census(&restored), then);
    drop(restored);
    // With other settings the choices differ, and the snapshot's are not used.
    let other = "memory.semantic_edges = 2\nmemory.target_semantic_choices = 1.5\nmemory.structural_edges = 3";
    let expected = census(&open(&pipeline(home.path(), other)));
    assert_ne!(expected, then);
    for _ in 0..2 {
        assert_eq!(census(&open(&with_snapshots(home.path(), other))), expected);
    }
    assert_eq!(census(&open(&with_snapshots(home.path(), ""))), then);
}

/// A restored memory continues like one that never stopped, with the same changes of edges.
#[test]
fn a_restored_memory_continues_as_if_never_stopped() {
    let (without_restart, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut uninterrupted = open(&pipeline(without_restart.path(), ""));
    ingest(&mut uninterrupted, &data("sample.jsonl"));
    ingest(&mut open(&with_snapshots(home.path(), "")), &data("sample.jsonl"));
    let text = fs::read_to_string(data("sample.jsonl")).unwrap();
    let ids: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| match TurnEvent::from_json(line.as_bytes()) {
            Ok(TurnEvent::Turn(turn)) => Some((turn.bank.to_string(), turn.turn)),
            _ => None,
        })
        .collect();
    let mut dice = Dice(3);
    for round in 0..12 {
        let mut events = String::new();
        for _ in 0..4 {
            let (bank, turn) = &ids[dice.below(ids.len() as u64) as usize];
            events.push_str(&format!("{{\"type\": \"deletion\", \"bank\": {bank:?}, \"turn\": {turn:?}}}\n"));
        }
        events.push_str(&lines("sample/harbour", "x", &[(&format!("n{round}"), "Ann", "Marta sings in the harbour")]));
        append(&mut uninterrupted, &events);
        let mut restored = open(&with_snapshots(home.path(), ""));
        append(&mut restored, &events);
        assert_eq!(census(&restored), census(&uninterrupted), "round {round}");
    }
}

/// An as-of question gets the answer of its time. One about a time before the first snapshot is refused,
/// with the oldest possible point.
#[test]
fn an_as_of_question_gets_the_answer_of_its_time() {
    let home = tempfile::tempdir().unwrap();
    let bank = Bank::parse("b").unwrap();
    let mut service = open(&with_snapshots(home.path(), "extract.unit_turns = 1"));
    let mut moments: Vec<(u64, GraphCensus)> = Vec::new();
    let said = [
        "The red kayak is stored in the boathouse",
        "Marta sold the red kayak to her neighbour",
        "The boathouse was painted blue in April",
        "Elias repaired the blue boathouse roof",
    ];
    for (n, text) in said.iter().enumerate() {
        append(&mut service, &lines("b", "s", &[(&n.to_string(), "Ann", text)]));
        let end = service.log().end(Topic::Memory, 0).unwrap();
        moments.push((end - 1, census(&service)));
    }
    append(&mut service, r#"{"type": "session_end", "bank": "b", "session": "s"}"#);
    let (last, now) = (service.log().end(Topic::Memory, 0).unwrap() - 1, census(&service));
    for (offset, then) in moments.iter().chain([&(last, now.clone())]) {
        let past = service.replica().past(&bank, AsOf::Offset(*offset)).unwrap();
        assert_eq!(past.digest(None).unwrap().value, *then, "offset {offset}");
    }
    let question = Question::new(bank.clone(), "Where is the red kayak?");
    let early = service.ask_as_of(&question, AsOf::Offset(moments[0].0)).unwrap();
    assert_eq!(early.reflects[0].next_offset, moments[0].0 + 1);
    assert!(early.context.contains("red kayak") && !early.context.contains("neighbour"), "{}", early.context);
    // A point between two reads means the earlier one, and a future point means now.
    let between = service.ask_as_of(&question, AsOf::Offset(last - 1)).unwrap();
    assert_eq!(between.reflects[0].next_offset, moments[3].0 + 1);
    let later = service.ask_as_of(&question, AsOf::Time(jiff::Timestamp::now().as_millisecond() + 60_000)).unwrap();
    assert_eq!(later.context, service.ask(&question).unwrap().context);
    let error = service.ask_as_of(&question, AsOf::Time(0)).unwrap_err().to_string();
    assert!(error.contains("1970-01-01T00:00:00Z") && error.contains("offset 0"), "{error}");

    let diff = service.replica().diff(&bank, AsOf::Offset(moments[0].0), AsOf::Offset(moments[1].0)).unwrap();
    let text: Vec<&str> = diff.units_added.iter().map(|unit| unit.body.restatement()).collect();
    assert!(text.len() == 1 && text[0].contains("neighbour") && diff.units_removed.is_empty(), "{text:?}");
    assert!(diff.edges_removed.is_empty(), "{:?}", diff.edges_removed);
    drop(service);

    // The command line gives the same answers.
    let told = |arguments: &[&str]| String::from_utf8(ripplemem(arguments).stdout).unwrap();
    let directory = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let file = write(&home.path().join("p.toml"), "version = 1\nembed.model = \"fixed\"\nextract.unit_turns = 1\n");
    let memory =
        ["--pipeline", file.to_str().unwrap(), "--data", &directory("log"), "--snapshots", &directory("snapshots")];
    let from = moments[0].0.to_string();
    let output =
        told(&[&["diff", "--bank", "b", "--from", &from, "--to", &moments[1].0.to_string()], &memory[..]].concat());
    assert!(output.contains("+ unit") && output.contains("neighbour"), "{output}");
    let output = told(&[&["ask", "Where is the red kayak?", "--bank", "b", "--as-of", &from], &memory[..]].concat());
    assert!(output.contains("red kayak") && !output.contains("neighbour"), "{output}");
}

/// A question about a point that the newest snapshot holds writes no other.
#[test]
fn a_question_about_the_past_writes_no_snapshot_that_it_does_not_need() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&with_snapshots(home.path(), "extract.unit_turns = 1"));
    append(&mut service, &lines("b", "s", &[("1", "Ann", "The red kayak is stored in the boathouse")]));
    service.replica().snapshot().unwrap().unwrap();
    let then = service.log().end(Topic::Memory, 0).unwrap() - 1;
    let question = Question::new(Bank::parse("b").unwrap(), "Where is the red kayak?");
    let newest = || {
        let names = fs::read_dir(home.path().join("snapshots/shard-00000/manifests")).unwrap();
        names.map(|entry| entry.unwrap().file_name()).max().unwrap()
    };
    let before = newest();
    for n in 2..5 {
        append(&mut service, &lines("b", "s", &[(&n.to_string(), "Ann", "Another turn is said")]));
        assert!(service.ask_as_of(&question, AsOf::Offset(then)).unwrap().context.contains("boathouse"));
        assert_eq!(newest(), before, "the point is in it");
    }
    let now = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    assert!(service.ask_as_of(&question, now).unwrap().context.contains("boathouse"));
    assert!(newest() > before, "the point was not in it");
}

/// Invariant 4: after a snapshot no stored row has a deleted turn, as read by another library.
#[test]
fn no_snapshot_has_a_deleted_turn() {
    let Some(python) = Python::with("pyarrow", "no_snapshot_has_a_deleted_turn") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&with_snapshots(home.path(), "extract.unit_turns = 1"));
    let said =
        [("1", "Ann", "We met at the harbour"), ("2", "Bo", "My password is xyzzy"), ("3", "Ann", "Never say that")];
    append(&mut service, &lines("b", "s", &said));
    service.replica().snapshot().unwrap().unwrap();
    append(&mut service, r#"{"type": "session_end", "bank": "b", "session": "s"}"#);
    service.replica().snapshot().unwrap().unwrap();
    let everything = |python: &Python| -> String {
        let tables = ["turns", "units"].map(|table| home.path().join("snapshots/shard-00000").join(table));
        tables.iter().flat_map(|table| rows(python, table.to_str().unwrap())).map(|row| row.to_string()).collect()
    };
    let then = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    let question = Question::new(Bank::parse("b").unwrap(), "What is the password?");
    assert!(service.ask_as_of(&question, then).unwrap().context.contains("xyzzy"));
    let before = everything(&python);
    assert!(before.contains("xyzzy") && before.contains("harbour"));
    append(&mut service, r#"{"type": "deletion", "bank": "b", "turn": "2"}"#);
    assert!(!service.ask_as_of(&question, then).unwrap().context.contains("xyzzy"), "nor in an as-of answer");
    assert!(service.replica().snapshot().unwrap().is_none(), "the question caused a snapshot");
    let after = everything(&python);
    assert!(!after.contains("xyzzy") && after.contains("harbour"), "{after}");
    assert_eq!(
        fs::read_dir(home.path().join("snapshots/shard-00000/manifests")).unwrap().count(),
        1,
        "older snapshots would restore it"
    );
    let then = census(&service);
    drop(service);
    assert_eq!(census(&open(&with_snapshots(home.path(), "extract.unit_turns = 1"))), then);
}

/// Snapshots of another log, or of a log that was restored from an older copy, are refused.
#[test]
fn a_snapshot_of_another_log_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&with_snapshots(home.path(), ""));
    append(&mut service, &lines("b", "s", &[("1", "Ann", "The red kayak is stored in the boathouse")]));
    service.replica().snapshot().unwrap().unwrap();
    drop(service);
    fs::remove_dir_all(home.path().join("log")).unwrap();
    let refused = |what: &str| {
        let error = PipelineDriver::open(&with_snapshots(home.path(), ""), &mut |_| {}).err().unwrap().to_string();
        assert!(error.contains("another log") && error.contains(what), "{error}");
    };
    refused("the log ends at 0");
    let mut another = open(&pipeline(home.path(), ""));
    let said = [("1", "Ann", "Elias repaired the roof of the boathouse"), ("2", "Bo", "In April it was painted blue")];
    append(&mut another, &lines("b", "s", &said));
    drop(another);
    refused("another record at offset");
}

/// Invariant 3 with snapshots: killed at any moment, also while it writes or reads one, a process
/// restarts with the memory of an uninterrupted run.
#[test]
fn killed_at_any_moment_with_snapshots() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let without_kills = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(without_kills.path(), "embed.read_turns = 16"));
    ingest(&mut service, &data("sample.jsonl"));
    let expected = census(&service);
    drop(service);
    let mut restored = 0;
    for round in 0..rounds {
        let home = tempfile::tempdir().unwrap();
        let file = write(
            &home.path().join("p.toml"),
            format!(
                "version = 1\nembed.model = \"fixed\"\nembed.read_turns = 16\nlog.directory = \"log\"\n\
                 snapshot.directory = \"snapshots\"\n[source]\nformat = \"jsonl\"\npath = {:?}\n",
                data("sample.jsonl")
            ),
        );
        let mut dice = Dice(1_000 + round);
        for _ in 0..2 + dice.below(4) {
            let command = if dice.below(2) == 0 { ["run", ""] } else { ["snapshot", "--pipeline"] };
            let arguments = command.iter().filter(|argument| !argument.is_empty());
            let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
                .args(arguments)
                .arg(&file)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(5 + dice.below(220)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let manifests = home.path().join("snapshots/shard-00000/manifests");
        restored += usize::from(fs::read_dir(manifests).is_ok_and(|mut found| found.next().is_some()));
        let pipeline = Pipeline::read(&file).unwrap();
        let mut service = open(&pipeline);
        service.catch_up().unwrap();
        ingest(&mut service, &data("sample.jsonl"));
        service.replica().snapshot().unwrap();
        assert_eq!(census(&service), expected, "round {round}");
        drop(service);
        assert_eq!(census(&open(&pipeline)), expected, "round {round}, restored");
        let mut replayed = pipeline.clone();
        replayed.snapshot.directory.clear();
        assert_eq!(census(&open(&replayed)), expected, "round {round}, replayed");
    }
    println!("killed in {rounds} rounds; {restored} had a snapshot to restore");
}

/// Killed while it restores, or while it writes a snapshot of the tail that it read, a process damages no
/// snapshot, and the next start has the same memory.
#[test]
fn a_restore_killed_at_any_moment() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let home = tempfile::tempdir().unwrap();
    let file = write(
        &home.path().join("p.toml"),
        "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\nlog.fsync = \"system\"\n\
         snapshot.directory = \"snapshots\"\n",
    );
    let pipeline = Pipeline::read(&file).unwrap();
    let without = Pipeline {
        snapshot: SnapshotSettings { directory: String::new(), ..pipeline.snapshot.clone() },
        ..pipeline.clone()
    };
    let sample = fs::read_to_string(data("sample.jsonl")).unwrap();
    for copy in 0..8 {
        let text = sample.replace("\"bank\": \"sample/", &format!("\"bank\": \"copy-{copy}/"));
        ingest(&mut open(&pipeline), &write(&home.path().join("more.jsonl"), text));
    }
    let digest =
        || Command::new(env!("CARGO_BIN_EXE_ripplemem")).args(["digest", "--pipeline"]).arg(&file).output().unwrap();
    let begun = std::time::Instant::now();
    assert!(digest().status.success());
    let whole = begun.elapsed();
    let mut dice = Dice(77);
    let mut unfinished = 0;
    for round in 0..rounds {
        // Every other restore has a tail to read and to write.
        if round % 2 == 1 {
            let said =
                lines("copy-0/harbour", "more", &[(&format!("m{round}"), "Ann", &format!("Marta has {round} kayaks"))]);
            append(&mut open(&without), &said);
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["digest", "--pipeline"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(dice.below(whole.as_micros() as u64)));
        unfinished += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let replayed = census(&open(&without));
        let (restored, warnings) = with_warnings(|| PipelineDriver::open(&pipeline, &mut |_| {}).unwrap());
        assert_eq!(census(&restored), replayed, "round {round}");
        assert!(warnings.is_empty(), "round {round}: {warnings:?}");
    }
    println!("{unfinished} of {rounds} restores were killed before their end");
}

/// History begins at the end of a read. An offset inside the first one has no answer, and names the
/// first.
#[test]
fn the_oldest_point_that_is_named_can_be_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&with_snapshots(home.path(), ""));
    let turns =
        [("1", "Ann", "The red kayak is in the boathouse"), ("2", "Bo", "I sold my bicycle"), ("3", "Ann", "Good")];
    append(&mut service, &lines("b", "s", &turns));
    service.replica().snapshot().unwrap();
    let question = Question::new(Bank::parse("b").unwrap(), "Where is the kayak?");
    let as_of = |offset| service.ask_as_of(&question, AsOf::Offset(offset)).map_err(|error| error.to_string());
    let last = service.log().end(Topic::Memory, 0).unwrap() - 1;
    let answered = as_of(last).unwrap();
    let mut refused = 0;
    for offset in 0..last {
        let Err(told) = as_of(offset) else { continue };
        let oldest = told.split("can be asked for is offset ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let oldest: u64 = oldest.parse().unwrap();
        assert!(oldest > offset, "{told}");
        assert_eq!(as_of(oldest).unwrap().units, answered.units, "{told}");
        refused += 1;
    }
    assert!(refused > 0, "the first read has several records");
}

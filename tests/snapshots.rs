//! Snapshots of a whole memory on the embedded log (invariants 2, 3 and 4), and its past.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use ripplemem::{
    config::{Pipeline, SnapshotSettings},
    log::Topic,
    memory::Census,
    model::{Bank, Question, TurnEvent},
    pipeline::Service,
    snapshot::{AsOf, Restored, Snapshots},
};

use super::{
    oracle::Dice,
    support::{Python, ask, census, data, ingest, lines, open, pipeline, ripplemem, rows, write},
};

/// A pipeline with snapshots beside its log.
fn kept(home: &Path, extra: &str) -> Pipeline {
    let mut pipeline = pipeline(home, extra);
    pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    pipeline
}

fn tell(service: &mut Service, jsonl: &str) {
    let events: Vec<TurnEvent> = jsonl.lines().map(|l| TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
}

/// Invariant 2: a restored memory is the one that a replay gives, under any number of workers,
/// with a tail and without, and so are its answers.
#[test]
fn a_restored_memory_is_the_replayed_one() {
    let home = tempfile::tempdir().unwrap();
    let question = "Which books has Marta recommended to Elias?";
    let mut service = open(&kept(home.path(), ""));
    ingest(&mut service, &data("sample.jsonl"));
    assert!(service.snapshot().unwrap().is_some());
    assert!(service.snapshot().unwrap().is_none(), "nothing has changed");
    let (first, evidence) = (census(&service), ask(&service, "sample/harbour", question));
    drop(service);
    for workers in [1, 3] {
        let restored = open(&kept(home.path(), &format!("memory.workers = {workers}")));
        assert_eq!(census(&restored), first, "{workers} workers");
        assert_eq!(ask(&restored, "sample/harbour", question), evidence, "{workers} workers");
    }
    // Input that changes no record is covered all the same.
    ingest(&mut open(&pipeline(home.path(), "")), &data("sample.jsonl"));
    let replayed = ask(&open(&pipeline(home.path(), "")), "sample/harbour", question);
    let mut restored = open(&kept(home.path(), ""));
    assert_eq!(ask(&restored, "sample/harbour", question), replayed);
    ingest(&mut restored, &data("sample.jsonl"));
    drop(restored);
    // A tail that nobody wrote a snapshot of, with a deletion, an edit and new turns.
    let mut without = open(&pipeline(home.path(), ""));
    let more = lines("sample/harbour", "later", &[("m1", "Ann", "Marta bought a green kayak"), ("m2", "Bo", "Where?")]);
    let gone = r#"{"type": "deletion", "bank": "sample/harbour", "turn": "m2"}"#;
    tell(&mut without, &format!("{more}{gone}\n"));
    tell(&mut without, r#"{"type": "session_end", "bank": "sample/harbour", "session": "later"}"#);
    let then = census(&without);
    assert_ne!(then, first);
    drop(without);
    let restored = open(&kept(home.path(), ""));
    assert_eq!(census(&restored), then);
    drop(restored);
    // Other settings make other choices; the snapshot's are not taken for them.
    let other = "memory.semantic_edges = 2\nmemory.target_semantic_choices = 1.5\nmemory.structural_edges = 3";
    let expected = census(&open(&pipeline(home.path(), other)));
    assert_ne!(expected, then);
    for _ in 0..2 {
        assert_eq!(census(&open(&kept(home.path(), other))), expected);
    }
    assert_eq!(census(&open(&kept(home.path(), ""))), then);
}

/// A restored memory goes on as one that was never stopped: the same edges come and go.
#[test]
fn a_restored_memory_goes_on() {
    let (calm, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut at_once = open(&pipeline(calm.path(), ""));
    ingest(&mut at_once, &data("sample.jsonl"));
    ingest(&mut open(&kept(home.path(), "")), &data("sample.jsonl"));
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
        tell(&mut at_once, &events);
        let mut restored = open(&kept(home.path(), ""));
        tell(&mut restored, &events);
        assert_eq!(census(&restored), census(&at_once), "round {round}");
    }
}

/// A point of the past is answered as it was answered then, and what is before the first
/// snapshot is refused with the oldest that is not.
#[test]
fn the_past_is_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let bank = Bank::parse("b").unwrap();
    let mut service = open(&kept(home.path(), "extract.unit_turns = 1"));
    let mut moments: Vec<(u64, Census)> = Vec::new();
    let said = [
        "The red kayak is stored in the boathouse",
        "Marta sold the red kayak to her neighbour",
        "The boathouse was painted blue in April",
        "Elias repaired the blue boathouse roof",
    ];
    for (n, text) in said.iter().enumerate() {
        tell(&mut service, &lines("b", "s", &[(&n.to_string(), "Ann", text)]));
        let end = service.log().end(Topic::Memory, 0).unwrap();
        moments.push((end - 1, census(&service)));
    }
    tell(&mut service, r#"{"type": "session_end", "bank": "b", "session": "s"}"#);
    let (last, now) = (service.log().end(Topic::Memory, 0).unwrap() - 1, census(&service));
    for (offset, then) in moments.iter().chain([&(last, now.clone())]) {
        let past = service.answerer().past(&bank, AsOf::Offset(*offset)).unwrap();
        assert_eq!(past.digest(None).unwrap().value, *then, "offset {offset}");
    }
    let question = Question { bank: bank.clone(), text: "Where is the red kayak?".to_owned(), asked_at: None };
    let early = service.ask_as_of(&question, AsOf::Offset(moments[0].0)).unwrap();
    assert_eq!(early.reflects[0].next_offset, moments[0].0 + 1);
    assert!(early.context.contains("red kayak") && !early.context.contains("neighbour"), "{}", early.context);
    // Between two reads it is rounded down; later than now is now.
    let between = service.ask_as_of(&question, AsOf::Offset(last - 1)).unwrap();
    assert_eq!(between.reflects[0].next_offset, moments[3].0 + 1);
    let later = service.ask_as_of(&question, AsOf::Time(jiff::Timestamp::now().as_millisecond() + 60_000)).unwrap();
    assert_eq!(later.context, service.ask(&question).unwrap().context);
    let error = service.ask_as_of(&question, AsOf::Time(0)).unwrap_err().to_string();
    assert!(error.contains("1970-01-01T00:00:00Z") && error.contains("offset 0"), "{error}");

    let diff = service.answerer().diff(&bank, AsOf::Offset(moments[0].0), AsOf::Offset(moments[1].0)).unwrap();
    let text: Vec<&str> = diff.units_came.iter().map(|unit| unit.body.restatement.as_str()).collect();
    assert!(text.len() == 1 && text[0].contains("neighbour") && diff.units_went.is_empty(), "{text:?}");
    assert!(diff.edges_went.is_empty(), "{:?}", diff.edges_went);
    drop(service);

    // The command line says the same.
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

/// Invariant 4: after a snapshot no stored row holds what was taken back, read independently.
#[test]
fn what_was_taken_back_is_in_no_snapshot() {
    let Some(python) = Python::with("pyarrow", "what_was_taken_back_is_in_no_snapshot") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&kept(home.path(), "extract.unit_turns = 1"));
    let said =
        [("1", "Ann", "We met at the harbour"), ("2", "Bo", "My password is xyzzy"), ("3", "Ann", "Never say that")];
    tell(&mut service, &lines("b", "s", &said));
    service.snapshot().unwrap().unwrap();
    tell(&mut service, r#"{"type": "session_end", "bank": "b", "session": "s"}"#);
    service.snapshot().unwrap().unwrap();
    let everything = |python: &Python| -> String {
        let tables = ["turns", "units"].map(|table| home.path().join("snapshots").join(table));
        tables.iter().flat_map(|table| rows(python, table.to_str().unwrap())).map(|row| row.to_string()).collect()
    };
    let then = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    let question =
        Question { bank: Bank::parse("b").unwrap(), text: "What is the password?".to_owned(), asked_at: None };
    assert!(service.ask_as_of(&question, then).unwrap().context.contains("xyzzy"));
    let before = everything(&python);
    assert!(before.contains("xyzzy") && before.contains("harbour"));
    tell(&mut service, r#"{"type": "deletion", "bank": "b", "turn": "2"}"#);
    assert!(!service.ask_as_of(&question, then).unwrap().context.contains("xyzzy"), "nor in the past");
    assert!(service.snapshot().unwrap().is_none(), "the question had one written");
    let after = everything(&python);
    assert!(!after.contains("xyzzy") && after.contains("harbour"), "{after}");
    assert_eq!(
        fs::read_dir(home.path().join("snapshots/manifests")).unwrap().count(),
        1,
        "older ones would bring it back"
    );
    let then = census(&service);
    drop(service);
    assert_eq!(census(&open(&kept(home.path(), "extract.unit_turns = 1"))), then);
}

/// Another log's snapshots, and a log that was put back from a copy, are refused by name.
#[test]
fn a_snapshot_of_another_log_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&kept(home.path(), ""));
    tell(&mut service, &lines("b", "s", &[("1", "Ann", "The red kayak is stored in the boathouse")]));
    service.snapshot().unwrap().unwrap();
    drop(service);
    fs::remove_dir_all(home.path().join("log")).unwrap();
    let refused = |what: &str| {
        let error = Service::open(&kept(home.path(), ""), &mut |_| {}).err().unwrap().to_string();
        assert!(error.contains("another log") && error.contains(what), "{error}");
    };
    refused("the log ends at 0");
    let mut another = open(&pipeline(home.path(), ""));
    let said = [("1", "Ann", "Elias repaired the roof of the boathouse"), ("2", "Bo", "In April it was painted blue")];
    tell(&mut another, &lines("b", "s", &said));
    drop(another);
    refused("another record at offset");
}

/// Invariant 3 with snapshots: killed anywhere, also while one is written or read, the memory
/// comes back as that of a run that was never killed.
#[test]
fn killed_at_any_moment_with_snapshots() {
    let rounds = std::env::var("RIPPLEMEM_KILL_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(8);
    let calm = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(calm.path(), "embed.read_turns = 16"));
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
        let manifests = home.path().join("snapshots/manifests");
        restored += usize::from(fs::read_dir(manifests).is_ok_and(|mut found| found.next().is_some()));
        let pipeline = Pipeline::read(&file).unwrap();
        let mut service = open(&pipeline);
        service.catch_up().unwrap();
        ingest(&mut service, &data("sample.jsonl"));
        service.snapshot().unwrap();
        assert_eq!(census(&service), expected, "round {round}");
        drop(service);
        assert_eq!(census(&open(&pipeline)), expected, "round {round}, restored");
        let mut replayed = pipeline.clone();
        replayed.snapshot.directory.clear();
        assert_eq!(census(&open(&replayed)), expected, "round {round}, replayed");
    }
    println!("killed in {rounds} rounds; {restored} had a snapshot to come back from");
}

/// Killed while it restores, or while it writes what it read behind that, a memory changes no
/// snapshot that is whole, and comes back as it was.
#[test]
fn a_restore_killed_at_any_moment() {
    let rounds = std::env::var("RIPPLEMEM_KILL_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(8);
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
        // Every other restore has something to read behind the snapshot, and to write.
        if round % 2 == 1 {
            let said =
                lines("copy-0/harbour", "more", &[(&format!("m{round}"), "Ann", &format!("Marta has {round} kayaks"))]);
            tell(&mut open(&without), &said);
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
        let mut said = Vec::new();
        let mut restored = Service::open(&pipeline, &mut |_| {}).unwrap();
        said.append(&mut restored.take_warnings());
        assert_eq!(census(&restored), replayed, "round {round}");
        assert!(said.is_empty(), "round {round}: {said:?}");
    }
    println!("{unfinished} of {rounds} restores were killed before their end");
}

/// What version 1 wrote is read for ever. Run with `REWRITE=1` to make it, once.
#[test]
fn a_frozen_snapshot_of_version_1_loads() {
    let frozen = data("snapshot-v1");
    if std::env::var_os("REWRITE").is_some() && !frozen.exists() {
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = kept(home.path(), "extract.unit_turns = 1");
        pipeline.snapshot.directory = frozen.to_string_lossy().into_owned();
        let mut service = open(&pipeline);
        let said = [
            ("1", "Ann", "We met Elias at the harbour"),
            ("2", "Bo", "Which boat did you take?"),
            ("3", "Ann", "The red kayak"),
        ];
        tell(&mut service, &lines("b", "s", &said));
        service.snapshot().unwrap().unwrap();
        tell(&mut service, r#"{"type": "session_end", "bank": "b", "session": "s"}"#);
        tell(&mut service, r#"{"type": "deletion", "bank": "b", "turn": "2"}"#);
        service.snapshot().unwrap().unwrap();
    }
    let settings = String::new();
    let snapshots = Snapshots::open(frozen.to_str().unwrap(), "an embedded log", 1, settings).unwrap();
    let restored = snapshots.newest(true, &mut |what| panic!("{what}"), &mut |_, _| {}).unwrap().unwrap();
    let texts = |restored: &Restored| -> Vec<String> {
        let units = restored.records.iter().flat_map(|record| &record.extraction.units);
        let mut texts: Vec<String> =
            units.map(|unit| unit.body.parts.iter().map(|part| part.text.as_str()).collect()).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&restored), ["The red kayak", "We met Elias at the harbour"]);
    let turns: Vec<_> = restored.records.iter().flat_map(|record| &record.window_turns).collect();
    assert_eq!(
        turns.iter().map(|held| (held.turn.turn.as_str(), held.deleted)).collect::<Vec<_>>(),
        [("1", false), ("2", true), ("3", false)]
    );
    assert_eq!(turns[0].turn.time.to_string(), "2024-05-01T10:00:00Z");
    assert_eq!(restored.choices.values().flatten().count() as u64, restored.manifest.live.choices);
    assert!(restored.manifest.live.choices > 0);
}

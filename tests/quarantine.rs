//! A record of the memory log that cannot be read stops no more than its own bank.

use std::path::Path;

use logs::{Log, LogRecord, Topic, Transaction, partition_of};
use pipeline::PipelineError;
use replica::{Replica, ReplicaOptions};
use ripplemem::PipelineDriver;
use snapshots::AsOf;
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::{Bank, MemoryKey, Question, RefusalCode, SCHEMA_VERSION, Selector, TurnEvent},
};

use super::{
    reembed::OTHER,
    support::{self, ask, lines, open, with_warnings},
};

const SICK: &str = "sick";
const WELL: &str = "well";

fn banks(directory: &Path, extra: &str) -> Pipeline {
    let mut pipeline = support::pipeline(directory, extra);
    pipeline.snapshot.directory = directory.join("snapshots").to_string_lossy().into_owned();
    let mut service = open(&pipeline);
    for bank in [SICK, WELL] {
        let turns = [("1", "Ann", "The red kayak is stored in the boathouse"), ("2", "Bo", "I sold my bicycle")];
        let end = format!(r#"{{"type": "session_end", "bank": "{bank}", "session": "s"}}"#);
        let text = lines(bank, "s", &turns) + &end;
        let events: Vec<_> = text.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect();
        service.log().append_turns(&events).unwrap();
    }
    service.catch_up().unwrap();
    service.replica().snapshot().unwrap();
    pipeline
}

/// The live record of the bank's closed window.
fn closed(log: &dyn Log, bank: &str) -> LogRecord {
    let partition = partition_of(&Bank::parse(bank).unwrap(), log.partitions());
    let records = log.read(Topic::Memory, partition, 0, 10_000).unwrap().records;
    let of_bank = |record: &LogRecord| {
        let key = MemoryKey::from_bytes(&record.key);
        record.value.is_some() && key.is_ok_and(|key| key.bank.as_str() == bank && key.turn.is_none())
    };
    records.into_iter().rfind(of_bank).unwrap()
}

fn put(log: &dyn Log, bank: &str, key: &[u8], value: Option<Vec<u8>>) {
    let partition = partition_of(&Bank::parse(bank).unwrap(), log.partitions());
    let next_offset = log.read_position(partition).unwrap();
    let memory = vec![(key.to_vec(), value)];
    log.commit(&Transaction { partition, next_offset, memory, ..Transaction::default() }).unwrap();
}

/// Ways to spoil a good record.
fn spoiled(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value: serde_json::Value = serde_json::from_slice(good).unwrap();
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    };
    vec![
        ("not a memory record", b"{\"schema\": 1".to_vec()),
        ("components", with(&|value| value["units"][0]["vector"] = "AACAPwAAgD8=".into())),
        ("vectors of model", with(&|value| value["model"]["hash"] = "other".into())),
        ("under the key of bank", with(&|value| value["bank"] = WELL.into())),
        ("older than", with(&|value| value["schema"] = 0.into())),
    ]
}

fn follow(service: &PipelineDriver) {
    for partition in 0..service.log().partitions() {
        while service.replica().follow(service.log(), partition, |_, _, _| {}).unwrap() {}
    }
}

fn question() -> Question {
    Question::new(Bank::parse(SICK).unwrap(), "Where is the kayak?")
}

fn refused(service: &PipelineDriver) -> String {
    let error = service.ask(&question()).unwrap_err();
    assert!(matches!(error, PipelineError::Quarantined { .. }), "{error}");
    error.to_string()
}

#[test]
fn an_unreadable_record_quarantines_its_bank_until_a_good_one_of_its_key_or_its_removal() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let sound = ask(&open(&settings), SICK, "Where is the kayak?").units;
    let good = closed(open(&settings).log(), SICK);
    let value = good.value.clone().unwrap();
    for (word, bad) in spoiled(&value) {
        let mut service = open(&settings);
        let before = service.log().end(Topic::Memory, 0).unwrap() - 1;
        put(service.log(), SICK, &good.key, Some(bad));
        follow(&service);
        let offset = closed(service.log(), SICK).offset;
        // At once, after a restart that reads the log, and after one from a snapshot that covers it.
        for restart in 0..3 {
            let said = refused(&service);
            assert!(said.contains(word) && said.contains(&format!("offset {offset}")), "restart {restart}: {said}");
            assert_eq!(service.replica().quarantined_banks(), 1);
            assert_eq!(ask(&service, WELL, "Where is the kayak?").units.len(), 1, "{word}, restart {restart}");
            let past = |offset| service.ask_as_of(&question(), AsOf::Offset(offset));
            let refusal = past(offset).unwrap_err().to_string();
            assert!(refusal.contains(word), "as of the record, restart {restart}: {refusal}");
            assert_eq!(past(before).unwrap().units, sound, "{word}: as of before the record");
            if restart == 1 {
                service.replica().snapshot().unwrap();
            }
            drop(service);
            service = open(&settings);
        }
        put(service.log(), SICK, &good.key, Some(value.clone()));
        follow(&service);
        assert_eq!(ask(&service, SICK, "Where is the kayak?").units, sound, "{word}");
        service.replica().snapshot().unwrap();
        drop(service);
        assert_eq!(ask(&open(&settings), SICK, "Where is the kayak?").units, sound, "{word}, restored");
    }
    let service = open(&settings);
    put(service.log(), SICK, &good.key, Some(b"{".to_vec()));
    drop(service);
    let service = open(&settings);
    refused(&service);
    put(service.log(), SICK, &good.key, None);
    follow(&service);
    assert_eq!(service.replica().quarantined_banks(), 0);
}

/// The bank's export mends it, even if the log's record is the only one that differs.
#[test]
fn an_import_of_the_banks_export_ends_its_quarantine() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let file = home.path().join("bank.jsonl");
    let bank = Bank::parse(SICK).unwrap();
    ripplemem::export(&settings, &bank, &file, &mut |_| {}).unwrap();
    let sound = ask(&open(&settings), SICK, "Where is the kayak?").units;
    let good = closed(open(&settings).log(), SICK);
    for (word, bad) in spoiled(good.value.as_deref().unwrap()) {
        let service = open(&settings);
        put(service.log(), SICK, &good.key, Some(bad));
        follow(&service);
        refused(&service);
        drop(service);
        let done = ripplemem::import(&settings, &file, &mut |_| {}).unwrap();
        assert_eq!((done.written, done.already_there), (1, 0), "{word}");
        let units = ask(&open(&settings), SICK, "Where is the kayak?").units;
        assert_eq!(units, sound, "{word}");
    }
}

/// A newer schema, or a key that this build cannot read, is left to another build.
#[test]
fn a_partition_waits_before_a_record_of_a_newer_build_and_is_answered_as_of_before() {
    let newer = format!("{{\"schema\": {}}}", SCHEMA_VERSION + 1);
    for (key, value) in [(None, newer.as_str()), (Some(&b"no key"[..]), "{\"schema\": 1}")] {
        let home = tempfile::tempdir().unwrap();
        let settings = banks(home.path(), "log.partitions = 3");
        let log = logs::open(&settings.log).unwrap();
        let good = closed(&*log, SICK);
        let at = partition_of(&Bank::parse(SICK).unwrap(), 3);
        let elsewhere = partition_of(&Bank::parse(WELL).unwrap(), 3);
        assert_ne!(at, elsewhere);
        let options = ReplicaOptions {
            hold: ShardAssignmentMode::All,
            edges: None,
            record: false,
            asks: None,
            waking_log: None,
            turns: None,
            progress: &mut |_, _| {},
        };
        let mut alone = settings.clone();
        alone.snapshot.directory = String::new();
        let replica = Replica::open(&alone, &*log, options).unwrap();
        let follow = || -> Vec<u32> {
            let waits = |partition| loop {
                match replica.follow(&*log, partition, |_, _, _| {}) {
                    Ok(true) => {}
                    Ok(false) => break false,
                    Err(PipelineError::Waits { .. }) => break true,
                    Err(other) => panic!("{other}"),
                }
            };
            (0..3).filter(|partition| waits(*partition)).collect()
        };
        assert_eq!(follow(), Vec::<u32>::new());
        put(&*log, SICK, key.unwrap_or(&good.key), Some(value.as_bytes().to_vec()));
        assert_eq!((follow(), follow()), (vec![at], vec![at]), "it waits each time");
        let more = closed(&*log, WELL);
        put(&*log, WELL, &more.key, None);
        put(&*log, WELL, &more.key, more.value.clone());
        assert_eq!(follow(), [at], "the other partition goes on");
        for bank in [SICK, WELL] {
            assert_eq!(replica.digest(Some(&Bank::parse(bank).unwrap())).unwrap().value.units, 1, "{bank}");
        }
    }
}

/// The log with an unreadable record in place of the good one; gives its offset.
fn spoil(settings: &Pipeline, key: &[u8], bad: Vec<u8>) -> u64 {
    let log = logs::open(&settings.log).unwrap();
    put(&*log, SICK, key, Some(bad));
    closed(&*log, SICK).offset
}

fn pipeline_file(home: &Path, name: &str, text: &str) -> String {
    let path = home.join(name);
    let log = home.join("log");
    std::fs::write(&path, format!("version = 1\nlog.directory = {:?}\n{text}", log.display().to_string())).unwrap();
    path.to_string_lossy().into_owned()
}

fn command(arguments: &[&str]) -> (i32, String, String) {
    let done = support::ripplemem(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[test]
fn an_export_leaves_out_what_it_cannot_read_and_names_it() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let good = closed(&*logs::open(&settings.log).unwrap(), SICK);
    let more = lines(SICK, "other", &[("3", "Ann", "The spare paddle hangs in the shed")]);
    let mut service = open(&settings);
    let events: Vec<_> = more.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
    drop(service);
    let pipeline = pipeline_file(home.path(), "p.toml", "embed.model = \"fixed\"\n");
    for (number, (word, bad)) in spoiled(good.value.as_deref().unwrap()).into_iter().enumerate() {
        let offset = spoil(&settings, &good.key, bad);
        let file = home.path().join(format!("{number}.jsonl"));
        let file = file.to_str().unwrap();
        let (code, out, err) = command(&["export", "--bank", SICK, "--to", file, "--pipeline", &pipeline]);
        assert_eq!(code, 3, "{word}: {err}");
        assert!(err.contains(&format!("memory, partition 0, offset {offset} (bank sick")), "{word}: {err}");
        assert!(err.contains(word) && out.contains("1 records"), "{word}: {out} {err}");
        assert!(out.contains("1 unreadable records are not in the file"), "{word}: {out}");
        // An existing file is not replaced: it may have the record.
        let (code, _, err) = command(&["export", "--bank", SICK, "--to", file, "--pipeline", &pipeline]);
        assert!(code == 1 && err.contains("exists"), "{word}: {code} {err}");
        let there = tempfile::tempdir().unwrap();
        let elsewhere = pipeline_file(there.path(), "p.toml", "embed.model = \"fixed\"\n");
        let (code, _, err) = command(&["import", file, "--pipeline", &elsewhere]);
        assert_eq!(code, 0, "{word}: {err}");
    }
}

#[test]
fn a_reembedding_copies_what_it_cannot_read_and_names_it() {
    let words = ["not a memory record", "under the key of bank", "older than"];
    for word in words {
        let home = tempfile::tempdir().unwrap();
        let settings = banks(home.path(), "");
        let good = closed(&*logs::open(&settings.log).unwrap(), SICK);
        let (_, bad) = spoiled(good.value.as_deref().unwrap()).into_iter().find(|(name, _)| *name == word).unwrap();
        let offset = spoil(&settings, &good.key, bad.clone());
        let pipeline = pipeline_file(home.path(), "p.toml", OTHER);
        let (code, out, err) = command(&["reembed", "--pipeline", &pipeline]);
        assert_eq!(code, 3, "{word}: {err}");
        assert!(err.contains(&format!("memory, partition 0, offset {offset} (bank sick")), "{word}: {err}");
        assert!(err.contains(word) && out.contains("1 unreadable records were copied"), "{word}: {out} {err}");
        let mut moved = Pipeline::parse(&format!("version = 1\n{OTHER}")).unwrap();
        moved.log = settings.log.clone();
        let service = open(&moved);
        assert!(refused(&service).contains(word));
        assert_eq!(ask(&service, WELL, "Where is the kayak?").units.len(), 1, "{word}");
        let copied = closed(service.log(), SICK);
        assert_eq!((copied.key, copied.value), (good.key, Some(bad)), "{word}");
    }
}

/// The vectors are made again, so a record whose vectors alone were wrong is mended.
#[test]
fn a_reembedding_mends_a_record_of_another_model() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let good = closed(&*logs::open(&settings.log).unwrap(), SICK);
    for word in ["vectors of model", "components"] {
        let (_, bad) = spoiled(good.value.as_deref().unwrap()).into_iter().find(|(name, _)| *name == word).unwrap();
        spoil(&settings, &good.key, bad);
    }
    let mut other = settings.clone();
    other.embed = Pipeline::parse(&format!("version = 1\n{OTHER}")).unwrap().embed;
    let done = ripplemem::reembed(&other, false, &mut |_| {}).unwrap();
    assert_eq!(done.unreadable, []);
    assert_eq!(ask(&open(&other), SICK, "Where is the kayak?").units.len(), 1);
}

fn events(lines: &str) -> Vec<TurnEvent> {
    lines.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect()
}

/// The live record of an open turn.
fn open_turn(log: &dyn Log, bank: &str, turn: &str) -> LogRecord {
    let records = log.read(Topic::Memory, 0, 0, 10_000).unwrap().records;
    let of_turn = |record: &LogRecord| {
        let key = MemoryKey::from_bytes(&record.key);
        record.value.is_some() && key.is_ok_and(|key| key.bank.as_str() == bank && key.turn.as_deref() == Some(turn))
    };
    records.into_iter().rfind(of_turn).unwrap()
}

/// The windows of unreadable records are those of a service that was never stopped: an edit finds its
/// turn, and a further turn its place.
#[test]
fn a_restart_knows_the_turns_of_a_record_that_cannot_be_read() {
    let open_turns = lines(SICK, "later", &[("3", "Ann", "The paddle hangs in the shed")]);
    let edit = lines(SICK, "s", &[("1", "Ann", "The red kayak lies on the beach")])
        .replace("\"turn\"", "\"version\":2,\"turn\"");
    let further = lines(SICK, "s", &[("4", "Bo", "I bought a tandem instead")])
        + &lines(SICK, "later", &[("5", "Bo", "The tandem stands in the garage")])
        + &format!(r#"{{"type": "session_end", "bank": "{SICK}", "session": "later"}}"#);
    let run = |bad: Option<&[u8]>, restarts: bool, snapshot: bool, extra: &str| {
        let home = tempfile::tempdir().unwrap();
        let mut settings = banks(home.path(), extra);
        // Without a place for snapshots a start with banks that sleep reads the log.
        if !snapshot && !extra.is_empty() {
            settings.snapshot.directory.clear();
        }
        let mut service = open(&settings);
        service.log().append_turns(&events(&open_turns)).unwrap();
        service.catch_up().unwrap();
        if let Some(bad) = bad {
            for good in [closed(service.log(), SICK), open_turn(service.log(), SICK, "3")] {
                put(service.log(), SICK, &good.key, Some(bad.to_vec()));
            }
            follow(&service);
            refused(&service);
        }
        if snapshot {
            service.replica().snapshot().unwrap();
        }
        if restarts {
            drop(service);
            let opened = with_warnings(|| open(&settings));
            assert_eq!(opened.1, "");
            service = opened.0;
        }
        service.log().append_turns(&events(&(edit.clone() + &further))).unwrap();
        service.catch_up().unwrap();
        assert_eq!(service.replica().quarantined_banks(), 0, "both windows were written again");
        support::census(&service)
    };
    let expected = run(None, false, false, "");
    for bad in [&b"{"[..], br#"{"schema": 0}"#] {
        for extra in ["", "memory.sleep_after_seconds = 100000\n"] {
            assert_eq!(run(Some(bad), false, false, extra), expected, "{extra}");
            assert_eq!(run(Some(bad), true, false, extra), expected, "from the log, {extra}");
            assert_eq!(run(Some(bad), true, true, extra), expected, "from a snapshot, {extra}");
        }
    }
}

#[test]
fn the_turns_of_a_quarantined_bank_are_refused_by_name_and_a_rule_is_applied_to_the_others() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let good = closed(&*logs::open(&settings.log).unwrap(), SICK);
    let offset = spoil(&settings, &good.key, b"{".to_vec());
    let service = open(&settings);
    let all = pipeline::selected_turns(
        service.log(),
        &Bank::parse(SICK).unwrap(),
        &Selector::default(),
        &pipeline::Cancellation::default(),
    );
    let refused = all.unwrap_err();
    assert!(matches!(&refused, PipelineError::Quarantined { offset: at, .. } if *at == offset), "{refused}");
    assert_eq!(replica::refusal(&refused).code, RefusalCode::Quarantined);
    drop(service);
    let rules = "embed.model = \"fixed\"\n[[retention]]\nbank = \"*\"\nkeep = { turns = 1 }\n";
    let pipeline = pipeline_file(home.path(), "p.toml", rules);
    let (code, out, err) = command(&["retention", "--dry-run", "--pipeline", &pipeline]);
    assert_eq!((code, out.as_str()), (3, "bank well: 1 turns would go by rule 1\n"), "{err}");
    assert!(err.contains("bank sick: quarantined") && err.contains(&format!("offset {offset}")), "{err}");
}

/// Turns that came by an import are in no turns topic.
#[test]
fn a_start_names_the_record_whose_turns_are_lost() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = here.path().join("bank.jsonl");
    ripplemem::export(&banks(here.path(), ""), &Bank::parse(SICK).unwrap(), &file, &mut |_| {}).unwrap();
    let settings = support::pipeline(there.path(), "");
    ripplemem::import(&settings, &file, &mut |_| {}).unwrap();
    let good = closed(&*logs::open(&settings.log).unwrap(), SICK);
    assert_eq!(with_warnings(|| drop(open(&settings))).1, "");
    spoil(&settings, &good.key, b"{".to_vec());
    let (_, warnings) = with_warnings(|| drop(open(&settings)));
    assert!(warnings.contains("bank=#") && warnings.contains("ripplemem import"), "{warnings}");
    assert!(!warnings.contains(SICK), "{warnings}");
}

/// The first record of a bank, alone in its read: it replaces nothing, so no row of a snapshot belongs to it.
#[test]
fn the_unreadable_record_of_a_new_bank_is_a_point_of_the_past() {
    let home = tempfile::tempdir().unwrap();
    let settings = banks(home.path(), "");
    let mut service = open(&settings);
    let key = MemoryKey {
        bank: Bank::parse("new").unwrap(),
        ..MemoryKey::from_bytes(&closed(service.log(), SICK).key).unwrap()
    };
    let before = service.log().end(Topic::Memory, 0).unwrap() - 1;
    put(service.log(), "new", &key.to_bytes(), Some(b"{".to_vec()));
    follow(&service);
    let question = Question::new(key.bank, "Where is the kayak?");
    let code = |error: PipelineError| match error {
        PipelineError::Quarantined { offset, .. } => format!("quarantined at {offset}"),
        PipelineError::UnknownBank { .. } => "unknown".to_owned(),
        other => other.to_string(),
    };
    let offset = before + 1;
    let quarantined = format!("quarantined at {offset}");
    for restart in 0..2 {
        assert_eq!(code(service.ask(&question).unwrap_err()), quarantined, "restart {restart}");
        let past = |at| code(service.ask_as_of(&question, at).unwrap_err());
        assert_eq!(past(AsOf::Offset(offset)), quarantined, "restart {restart}");
        assert_eq!(past(AsOf::Time(jiff::Timestamp::now().as_millisecond())), quarantined, "restart {restart}");
        assert_eq!(past(AsOf::Offset(before)), "unknown", "restart {restart}");
        service.replica().snapshot().unwrap();
        drop(service);
        service = open(&settings);
    }
}

//! What a pass erases: from an imported bank, from dead letters, and from the memory before a re-embedding.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use types::{
    config::{EditPolicy, Pipeline},
    model::{Bank, DeadLetter, EventTime, Turn, TurnDeletion, TurnEvent},
};

use crate::{PipelineDriver, export, import, reembed};
use erasure::{ErasureVerdict, ForgetOperationStore, verify, verify_operations};
use logs::Topic;

/// Text of the imported bank that is forgotten before or after the import.
const DELETED: &str = "the vermilion submarine of Zanzibar";
const EDITED: &str = "an azure balloon above Trieste";
const HELD: &str = "Grüße vom smaragdgrünen Leuchtturm bei Brest";

const FIXED: &str = "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n";
const OTHER: &str = "version = 1\nembed.model = \"other\"\nlog.fsync = \"system\"\n[embed.models.other]\n\
                     runner = \"fixed\"\nturn_template = \"{speaker} told us {text}\"\nsemantic_threshold = 0.55\n\
                     question_floor = 0.1\nquestion_ceiling = 0.55\n";

fn pipeline(home: &Path, toml: &str) -> Pipeline {
    let mut pipeline = Pipeline::parse(toml).unwrap();
    pipeline.log.directory = home.join("log");
    pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    pipeline
}

fn bank() -> Bank {
    Bank::parse("b").unwrap()
}

fn said(id: &str, version: u64, text: &str) -> TurnEvent {
    let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
    TurnEvent::Turn(Turn { version, ..Turn::new(bank(), id, "Ann", text, time) })
}

fn open(pipeline: &Pipeline) -> PipelineDriver {
    PipelineDriver::open(pipeline, &mut |_| {}).unwrap()
}

fn append(service: &mut PipelineDriver, events: &[TurnEvent]) {
    service.log().append_turns(events).unwrap();
    service.catch_up().unwrap();
}

fn forget(service: &mut PipelineDriver, pipeline: &Pipeline, turns: &[&str]) {
    let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
    ForgetOperationStore::of(service.log(), &pipeline.forget).begin(&bank(), turns, 7, None).unwrap();
    service.catch_up().unwrap();
}

/// The payloads of the dead letters.
fn payloads(service: &PipelineDriver) -> Vec<String> {
    let records = service.log().read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    let letter = |value: &[u8]| serde_json::from_slice::<DeadLetter>(value).unwrap();
    records.iter().map(|record| letter(record.value.as_deref().unwrap()).payload).collect()
}

fn look(pipeline: &Pipeline, words: &str) -> ErasureVerdict {
    verify(pipeline, &[words.to_owned()], &[], Timestamp::now()).unwrap().verdict
}

/// A memory that imported a bank in which a turn was deleted and another one edited.
fn imported(home: &Path) -> Pipeline {
    let first = pipeline(&home.join("first"), FIXED);
    let mut service = open(&first);
    append(&mut service, &[said("deleted", 0, DELETED), said("edited", 0, EDITED), said("held", 0, HELD)]);
    let deletion = TurnDeletion { bank: bank(), turn: "deleted".to_owned(), version: 5 };
    append(&mut service, &[TurnEvent::Deletion(deletion), said("edited", 3, "nothing at all")]);
    drop(service);
    let file = home.join("bank.jsonl");
    export(&first, &bank(), &file, &mut |_| {}).unwrap();
    let second = pipeline(&home.join("second"), FIXED);
    assert!(import(&second, &file, &mut |_| {}).unwrap().written > 0);
    second
}

#[test]
fn older_copies_of_what_was_imported_deleted_or_edited_are_erased() {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = imported(home.path());
    pipeline.forget.edits = EditPolicy::Erase;
    let mut service = open(&pipeline);
    append(&mut service, &[said("deleted", 0, DELETED), said("edited", 0, EDITED), said("held", 0, HELD)]);
    assert_eq!([DELETED, EDITED].map(|words| look(&pipeline, words)), [ErasureVerdict::Stored, ErasureVerdict::Stored]);
    assert_eq!(service.erase().unwrap().turns, 2);
    assert_eq!([DELETED, EDITED].map(|words| look(&pipeline, words)), [ErasureVerdict::Gone, ErasureVerdict::Gone]);
    assert_eq!(look(&pipeline, HELD), ErasureVerdict::Stored);
    assert_eq!(service.erase().unwrap().turns, 0, "a second pass finds nothing");
}

#[test]
fn an_imported_turn_has_fingerprints_and_its_words_leave_the_dead_letters() {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = imported(home.path());
    let key_file = home.path().join("key");
    fs::write(&key_file, "a long random secret").unwrap();
    pipeline.forget.key_file = Some(key_file);
    pipeline.forget.fingerprints = Some(home.path().join("prints"));
    let mut service = open(&pipeline);
    let quote = format!("{{\"summary\":\"Ann sends {HELD}\"");
    let letters = [quote.as_str(), "nothing of hers"];
    let letters = letters.map(|text| DeadLetter::new("f:1".to_owned(), "not JSON".to_owned(), text.as_bytes()));
    service.log().append_dead_letters(&letters).unwrap();
    forget(&mut service, &pipeline, &["held"]);
    let looked = |service: &PipelineDriver| {
        let found = verify_operations(&pipeline, &service.receipts().unwrap(), Timestamp::now()).unwrap();
        let [operation] = &found.operations[..] else { panic!("{:?}", found.operations) };
        (operation.without, operation.verdict.clone())
    };
    let (without, before) = looked(&service);
    assert!(without == 0 && before != ErasureVerdict::Gone, "{without} {before:?}");
    service.erase().unwrap();
    assert_eq!(payloads(&service), ["", "nothing of hers"]);
    assert_eq!(looked(&service), (0, ErasureVerdict::Gone));
    assert_eq!(look(&pipeline, HELD), ErasureVerdict::Gone);
}

#[test]
fn dead_letters_that_name_a_forgotten_turn_are_emptied_whenever_they_came() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = pipeline(home.path(), FIXED);
    let mut service = open(&pipeline);
    append(&mut service, &[said("t1", 0, HELD)]);
    let put = |service: &PipelineDriver, payload: &str| {
        let letter = DeadLetter::new("f:1".to_owned(), "time: not RFC 3339".to_owned(), payload.as_bytes());
        service.log().append_dead_letters(&[letter.in_bank(Some(bank()))]).unwrap();
    };
    // Rejected turns: one complete, and one longer than a letter's payload.
    put(&service, &format!(r#"{{"bank":"b","turn":"d1","text":"{DELETED}","time":"x"}}"#));
    put(&service, &format!(r#"{{"turn":"d1","text":"{EDITED} {}"}}"#, "x".repeat(5_000)));
    // Another field, as written by programs that escape all non-ASCII characters.
    let escaped: String =
        HELD.chars().map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04X}", c as u32) }).collect();
    put(&service, &format!(r#"{{"body":"{escaped}"}}"#));
    put(&service, r#"{"turn":"d2","text":"nothing of hers"}"#);
    forget(&mut service, &pipeline, &["d1", "t1"]);
    assert_eq!(look(&pipeline, HELD), ErasureVerdict::Stored);
    assert_eq!(service.erase().unwrap().dead_letters, 3);
    assert_eq!(payloads(&service)[..3], ["", "", ""]);
    assert!(payloads(&service)[3].contains("nothing of hers"));

    // A broken copy comes again.
    put(&service, &format!(r#"{{"turn":"t1","text":"{HELD}","time":7}}"#));
    assert_eq!(service.erase().unwrap().dead_letters, 1);
    assert_eq!(
        [DELETED, EDITED, HELD].map(|words| look(&pipeline, words)),
        [ErasureVerdict::Gone, ErasureVerdict::Gone, ErasureVerdict::Gone]
    );
}

/// The files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn the_snapshots_before_a_reembedding_are_erased() {
    let home = tempfile::tempdir().unwrap();
    let first = pipeline(home.path(), FIXED);
    let mut service = open(&first);
    append(&mut service, &[said("t1", 0, HELD), said("t2", 0, EDITED)]);
    assert!(service.replica().snapshot().unwrap().is_some());
    drop(service);
    let second = pipeline(home.path(), OTHER);
    reembed(&second, false, &mut |_| {}).unwrap();
    let mut service = open(&second);
    forget(&mut service, &second, &["t1"]);
    let snapshots = home.path().join("snapshots");
    assert!(!files(&snapshots.join("shard-00000")).is_empty());
    service.erase().unwrap();
    assert_eq!(files(&snapshots.join("shard-00000")), Vec::<PathBuf>::new());
    assert!(!files(&snapshots.join("memory-2")).is_empty());
    assert_eq!([HELD, EDITED].map(|words| look(&second, words)), [ErasureVerdict::Gone, ErasureVerdict::Stored]);
}

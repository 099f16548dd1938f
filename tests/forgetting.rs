//! Forgetting that is complete (invariant 4): operations survive crashes, each stage is reached, and no stored byte
//! holds the words afterwards.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use erasure::{
    ErasureVerdict, ForgetStage, OperationVerification, Receipt, StorageSearchReport, WordVerification, forget_turns,
    verify, verify_operations,
};
use jiff::Timestamp;
use logs::Topic;
use memory::index::GraphCensus;
use pipeline::{Cancellation, selected_turns, stored_turns};
use replica::QueryRequest;
use ripplemem::{Memory, PipelineDriver};
use serde_json::Value;
use snapshots::AsOf;
use types::{
    config::{EditPolicy, LegalHoldSettings, Pipeline},
    model::{Bank, DeadLetter, MemoryKey, MemoryRecord, Metadata, Question, Selector, Turn, TurnEvent, Vector},
};

use super::{
    oracle::Dice,
    support::{ask, census, fails, kill_rounds, lines, open, pipeline, ripplemem, write},
};

/// Words that are said once, and nowhere else.
const SECRET: &str = "the vermilion submarine of Zanzibar";

/// A pipeline with snapshots and a key file beside its log.
fn settings(home: &Path) -> Pipeline {
    let mut pipeline = pipeline(home, "forget.erase_within_hours = 24");
    pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    pipeline.forget.key_file = Some(write(&home.join("key"), "a long random secret\n"));
    pipeline
}

fn bank() -> Bank {
    Bank::parse("b").unwrap()
}

/// A conversation in which Ann says the secret, and Bo and Cy speak around her.
fn talk() -> Vec<TurnEvent> {
    let long =
        format!("I saw {SECRET} yesterday, near the harbour. {}", "It was loud and slow and very old. ".repeat(40));
    let mut said: Vec<(String, &str, String)> = (0..30)
        .map(|n| (format!("t{n}"), ["Bo", "Cy"][n % 2], format!("Sentence {n} about the boathouse and the red kayak.")))
        .collect();
    said[7] = ("ann1".to_owned(), "Ann", format!("I dreamt of {SECRET}."));
    said[19] = ("ann2".to_owned(), "Ann", long);
    let said: Vec<(&str, &str, &str)> = said.iter().map(|(id, who, text)| (&**id, *who, &**text)).collect();
    let end = r#"{"type":"session_end","bank":"b","session":"s"}"#;
    let text = format!("{}{end}\n", lines("b", "s", &said));
    text.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect()
}

fn edit() -> TurnEvent {
    edited("ann1", &format!("I dreamt of {SECRET}, twice."))
}

fn edited(id: &str, text: &str) -> TurnEvent {
    let line = lines("b", "s", &[(id, "Ann", text)]);
    let mut turn: Value = serde_json::from_str(&line).unwrap();
    turn["version"] = 3.into();
    TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
}

fn append(service: &mut PipelineDriver, events: &[TurnEvent]) {
    service.log().append_turns(events).unwrap();
    service.catch_up().unwrap();
}

/// A memory that knows the secret from everywhere: turns and an edit, a dead letter, a snapshot with history.
fn remembered(pipeline: &Pipeline) -> PipelineDriver {
    let mut service = open(pipeline);
    append(&mut service, &talk());
    service.replica().snapshot().unwrap();
    append(&mut service, &[edit()]);
    let quote = format!("{{\"turn\":\"x\",\"text\":\"I dreamt of {SECRET}");
    let letters = [
        DeadLetter::new("a file, line 3".to_owned(), "not JSON".to_owned(), quote.as_bytes()),
        DeadLetter::new("a file, line 4".to_owned(), "not JSON".to_owned(), b"nothing of hers"),
    ];
    service.log().append_dead_letters(&letters).unwrap();
    service.replica().snapshot().unwrap();
    service
}

fn forget_ann(service: &mut PipelineDriver, pipeline: &Pipeline) -> String {
    let select = Selector { speakers: vec!["Ann".to_owned()], ..Selector::default() };
    let held = selected_turns(service.log(), &bank(), &select, &Cancellation::default()).unwrap();
    assert_eq!(held.len(), 2);
    let ids = held.iter().map(|held| held.turn.turn.clone());
    let deleted = forget_turns(service.log(), &pipeline.forget, &bank(), ids).unwrap();
    service.catch_up().unwrap();
    deleted.operation.operation
}

/// What a memory is that got the same turns and the same deletions, and never erased anything.
fn reference() -> GraphCensus {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    append(&mut service, &talk());
    append(&mut service, &[edit()]);
    let deletion = |turn: &str| {
        let json = format!("{{\"type\":\"deletion\",\"bank\":\"b\",\"turn\":{turn:?}}}");
        TurnEvent::from_json(json.as_bytes()).unwrap()
    };
    append(&mut service, &[deletion("ann1"), deletion("ann2")]);
    census(&service)
}

fn receipt(service: &PipelineDriver) -> Receipt {
    let receipts = service.receipts().unwrap();
    assert_eq!(receipts.len(), 1);
    receipts[0].clone()
}

fn look(pipeline: &Pipeline, words: &str, receipts: &[Receipt]) -> WordVerification {
    let verified = verify(pipeline, &[words.to_owned()], receipts, Timestamp::now()).unwrap();
    assert_eq!(verified.search.unread, []);
    verified
}

/// The files of an embedded store and of snapshots in which something was found.
fn kinds(search: &StorageSearchReport) -> Vec<&'static str> {
    let has = |part: &str| search.found.iter().any(|found| found.file.to_string_lossy().contains(part));
    ["store/", "snapshots/"].into_iter().filter(|part| has(part)).collect()
}

#[test]
fn an_operation_reaches_each_stage_and_erases_every_stored_byte() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = remembered(&pipeline);
    assert!(ask(&service, "b", "Who dreamt of the vermilion submarine of Zanzibar?").context.contains(SECRET));
    let then = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    let forgotten = |service: &PipelineDriver, at: AsOf| {
        service.ask_as_of(&Question::new(bank(), "Which sentence is about the red kayak?"), at).unwrap().forgotten
    };
    assert_eq!(forgotten(&service, then), None);
    let operation = forget_ann(&mut service, &pipeline);

    let after = receipt(&service);
    assert_eq!((after.operation.as_str(), after.turns, after.stage), (operation.as_str(), 2, ForgetStage::Rebuilt));
    assert_eq!(after.due.unwrap().duration_since(after.requested).as_hours(), 24);
    assert!(!ask(&service, "b", "Who dreamt of the vermilion submarine of Zanzibar?").context.contains(SECRET));
    assert!(ask(&service, "b", "Which sentence is about the red kayak?").context.contains("red kayak"));
    // Hidden, and still on the disk.
    let found = look(&pipeline, SECRET, &service.receipts().unwrap());
    assert_eq!(found.verdict, ErasureVerdict::Pending { due: after.due.unwrap() });
    assert_eq!(kinds(&found.search), ["store/", "snapshots/"]);
    let late = verify(&pipeline, &[SECRET.to_owned()], &service.receipts().unwrap(), Timestamp::MAX).unwrap();
    assert_eq!(late.verdict, ErasureVerdict::Stored);
    // An answer about the past causes a snapshot to be written, which no longer has the words.
    assert_eq!(forgotten(&service, then), Some(2), "the answer about the past says that it lacks something");
    assert_eq!(forgotten(&service, AsOf::Offset(u64::MAX)), None, "nothing since");

    let before = census(&service);
    let erased = service.erase().unwrap();
    assert_eq!(forgotten(&service, then), Some(2));
    assert_eq!((erased.turns, erased.dead_letters), (3, 1), "two turns, an edit, and the letter that quotes one");
    let done = receipt(&service);
    assert_eq!((done.stage, done.emptied_turns, done.emptied_dead_letters), (ForgetStage::Erased, Some(3), Some(1)));
    // With the memory open, and closed.
    let gone = look(&pipeline, SECRET, &service.receipts().unwrap());
    assert_eq!((gone.verdict, gone.search.found), (ErasureVerdict::Gone, vec![]));
    assert_eq!(look(&pipeline, "submarine", &[]).verdict, ErasureVerdict::Gone);
    assert_eq!(look(&pipeline, "nothing of hers", &[]).verdict, ErasureVerdict::Stored, "others' words stay");
    assert_eq!(census(&service), before);
    assert_eq!(before, reference());
    drop(service);
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Gone);

    // The same after a restart from the snapshot, after a replay of the log, and made again from the turns log.
    let service = open(&pipeline);
    assert_eq!(census(&service), before);
    let turns = service.log().read(Topic::Turns, 0, 0, 10_000).unwrap().records;
    drop(service);
    assert_eq!(census(&open(&super::support::pipeline(home.path(), ""))), before);
    let again = tempfile::tempdir().unwrap();
    let mut made_again = open(&super::support::pipeline(again.path(), ""));
    let event = |value: &[u8]| TurnEvent::from_json(value).unwrap();
    append(&mut made_again, &turns.iter().map(|record| event(record.value.as_deref().unwrap())).collect::<Vec<_>>());
    assert_eq!(census(&made_again), before);
    assert_eq!(turns.len(), talk().len() + 3, "every offset is still there");
}

/// A line of a profile goes with its turn from the present, the past and every stored byte.
#[test]
fn lines_of_forgotten_turns_are_in_no_profile_and_no_stored_byte() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = open(&pipeline);
    let (secret, kept) = ("I live in Vermilion Harbour.", "I live in Oslo.");
    let said = lines("b", "s", &[("a1", "Ann", kept), ("a2", "Ann", secret), ("b1", "Bo", "I prefer tea.")]);
    let turns: Vec<TurnEvent> = said.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect();
    append(&mut service, &turns);
    service.replica().snapshot().unwrap();
    let stated = |lines: &[std::sync::Arc<memory::index::ProfileLine>]| {
        let mut texts: Vec<String> = lines.iter().map(|line| line.statement().text.clone()).collect();
        texts.sort();
        texts
    };
    let held = stated(&service.replica().profile(&bank(), None).unwrap().value);
    assert_eq!(held, [kept, secret, "I prefer tea."]);
    let then = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    forget_turns(service.log(), &pipeline.forget, &bank(), ["a2".to_owned()]).unwrap();
    service.catch_up().unwrap();
    let expected = [kept, "I prefer tea."];
    let shown = service.replica().profile(&bank(), None).unwrap().value;
    assert_eq!(stated(&shown), expected);
    assert!(shown.iter().all(|line| line.superseded_by.is_none()), "what was superseded holds again");
    assert_eq!(stated(&service.replica().past(&bank(), then).unwrap().profile(&bank(), None).unwrap().value), expected);
    assert_ne!(look(&pipeline, "Vermilion Harbour", &[]).search.found, vec![], "hidden, and still on the disk");
    service.erase().unwrap();
    assert_eq!(look(&pipeline, "Vermilion Harbour", &service.receipts().unwrap()).verdict, ErasureVerdict::Gone);
    assert_eq!(look(&pipeline, "live in Oslo", &[]).verdict, ErasureVerdict::Stored, "other lines stay");
    drop(service);
    assert_eq!(look(&pipeline, "Vermilion Harbour", &[]).verdict, ErasureVerdict::Gone);
    assert_eq!(stated(&open(&pipeline).replica().profile(&bank(), None).unwrap().value), expected);
}

/// Metadata lie beside the words, in every place where these lie.
#[test]
fn metadata_of_forgotten_turns_are_in_no_stored_byte() {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = settings(home.path());
    pipeline.forget.fingerprints = Some(home.path().join("prints"));
    let mut service = open(&pipeline);
    let mut talk = talk();
    for event in &mut talk {
        if let TurnEvent::Turn(turn) = event {
            let note = if turn.turn == "t3" { format!("seen: {SECRET}") } else { "nothing".to_owned() };
            turn.metadata = Metadata::from_json(&serde_json::json!({"note": {"by": note}}).to_string());
            turn.text = turn.text.replace(SECRET, "a boat");
            turn.recall = turn.turn != "t3";
        }
    }
    append(&mut service, &talk);
    service.replica().snapshot().unwrap();
    let words = Some(
        serde_json::from_value(serde_json::json!({"path": ["note", "by"], "eq": format!("seen: {SECRET}")})).unwrap(),
    );
    let select = Selector { metadata: words, ..Selector::default() };
    let held = selected_turns(service.log(), &bank(), &select, &Cancellation::default()).unwrap();
    assert_eq!(held.iter().map(|held| held.turn.turn.as_str()).collect::<Vec<_>>(), ["t3"]);
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Stored);
    assert!(
        !ask(&service, "b", "What of the vermilion submarine of Zanzibar?").context.contains("Sentence 3 "),
        "no recall"
    );
    forget_turns(service.log(), &pipeline.forget, &bank(), ["t3".to_owned()]).unwrap();
    service.catch_up().unwrap();
    let found = verify_operations(&pipeline, &service.receipts().unwrap(), Timestamp::now()).unwrap();
    assert_eq!(kinds(&found.search), ["store/", "snapshots/"], "its fingerprints are those of metadata, too");
    service.erase().unwrap();
    assert_eq!(look(&pipeline, SECRET, &service.receipts().unwrap()).verdict, ErasureVerdict::Gone);
    assert_eq!(look(&pipeline, "nothing", &[]).verdict, ErasureVerdict::Stored, "others' metadata stay");
    let before = census(&service);
    drop(service);
    assert_eq!(census(&open(&pipeline)), before);
}

/// A vector that the memory holds of a turn.
fn vector_of(service: &PipelineDriver, turn: &str) -> Vector {
    let mut found = None;
    let key = MemoryKey::prefix(&bank());
    let listed = service.log().live_records(0, &key, &mut |_, _| true, &mut |record| {
        let record: MemoryRecord = serde_json::from_slice(record.value.as_deref().unwrap()).unwrap();
        for unit in record.units {
            if let Some(part) = unit.parts.iter().find(|part| part.turn == turn) {
                found = Some(part.vectors.first().unwrap_or(&unit.vector).clone());
            }
        }
        ControlFlow::Continue(())
    });
    listed.unwrap();
    found.unwrap()
}

/// Without the words themselves: in the store and the snapshots until the pass, and in any leftover after it.
#[test]
fn what_is_left_of_an_operation_is_found_by_its_fingerprints() {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = settings(home.path());
    let prints = home.path().join("prints");
    pipeline.forget.fingerprints = Some(prints.clone());
    pipeline.forget.ledger = Some(home.path().join("ledger.jsonl"));
    let mut service = remembered(&pipeline);
    let vector = serde_json::to_string(&vector_of(&service, "ann2")).unwrap();
    let operation = forget_ann(&mut service, &pipeline);
    let files = || fs::read_dir(&prints).unwrap().count();
    assert_eq!(files(), 1);
    let look = |service: &PipelineDriver| {
        let found = verify_operations(&pipeline, &service.receipts().unwrap(), Timestamp::now()).unwrap();
        assert_eq!(found.search.unread, []);
        found
    };
    let became = |verdict: ErasureVerdict, removed: bool| {
        [OperationVerification { operation: operation.clone(), verdict, without: 0, removed }]
    };
    let found = look(&service);
    let due = receipt(&service).due.unwrap();
    assert_eq!(found.operations, became(ErasureVerdict::Pending { due }, false));
    assert_eq!(kinds(&found.search), ["store/", "snapshots/"]);

    service.erase().unwrap();
    let quote = format!("{{\"text\":\"\\u00bbI DREAMT of\\n{SECRET}\\u00ab, she said\"}}");
    let snapshots = PathBuf::from(&pipeline.snapshot.directory);
    let places = [
        (pipeline.log.directory.clone(), &quote),
        (pipeline.llm_directory(), &quote),
        (snapshots, &quote),
        (pipeline.log.directory.clone(), &vector),
    ];
    for (place, left) in places {
        let path = place.join("left");
        fs::create_dir_all(&place).unwrap();
        fs::write(&path, left).unwrap();
        let found = look(&service);
        assert_eq!(found.operations, became(ErasureVerdict::Stored, false));
        assert!(found.search.found.iter().all(|found| found.file == path), "{:?}", found.search.found);
        fs::remove_file(path).unwrap();
    }
    fs::write(home.path().join("key"), "another secret").unwrap();
    let refused = verify_operations(&pipeline, &[], Timestamp::now()).unwrap_err().to_string();
    assert!(refused.contains("another key"), "{refused}");
    fs::write(home.path().join("key"), "a long random secret").unwrap();
    assert_eq!((look(&service).operations.as_slice(), files()), (&became(ErasureVerdict::Gone, true)[..], 0));
    assert_eq!(look(&service).operations, [], "once it is verified, nothing is looked for");
}

/// In the past, too; but not without the setting, and not in a bank that is held.
#[test]
fn what_edits_replaced_is_erased_where_the_settings_say_so() {
    let hold = LegalHoldSettings { bank: "b".to_owned(), select: None, reason: None };
    for (edits, holds) in [(EditPolicy::Erase, vec![]), (EditPolicy::Keep, vec![]), (EditPolicy::Erase, vec![hold])] {
        let erases = edits == EditPolicy::Erase && holds.is_empty();
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = settings(home.path());
        (pipeline.forget.edits, pipeline.forget.holds) = (edits, holds);
        let mut service = open(&pipeline);
        append(&mut service, &talk());
        service.replica().snapshot().unwrap();
        let before = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
        append(&mut service, &["ann1", "ann2"].map(|id| edited(id, "I dreamt of nothing at all.")));
        service.replica().snapshot().unwrap();
        let past = |text: &str| service.ask_as_of(&Question::new(bank(), text), before).unwrap().context;
        let shown = past("Who dreamt of the vermilion submarine of Zanzibar?");
        assert_eq!(shown.contains(SECRET), !erases, "{edits:?}: {shown}");
        assert!(past("Which sentence is about the red kayak?").contains("red kayak"));

        let now = census(&service);
        assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Stored);
        assert_eq!(service.erase().unwrap().turns, if erases { 2 } else { 0 });
        let expected = if erases { ErasureVerdict::Gone } else { ErasureVerdict::Stored };
        assert_eq!(look(&pipeline, SECRET, &[]).verdict, expected, "{edits:?}");
        assert_eq!(service.erase().unwrap().turns, 0, "a second pass finds nothing");
        assert_eq!(census(&service), now);
        let turns = service.log().read(Topic::Turns, 0, 0, 10_000).unwrap().records;
        let again = tempfile::tempdir().unwrap();
        let mut made_again = open(&super::support::pipeline(again.path(), ""));
        let event = |value: &[u8]| TurnEvent::from_json(value).unwrap();
        let events: Vec<TurnEvent> = turns.iter().map(|record| event(record.value.as_deref().unwrap())).collect();
        append(&mut made_again, &events);
        assert_eq!(census(&made_again), now);
    }
}

#[test]
fn a_receipt_holds_no_words_and_is_signed() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = remembered(&pipeline);
    forget_ann(&mut service, &pipeline);
    service.erase().unwrap();
    let mut signed = receipt(&service);
    let text = serde_json::to_string(&signed).unwrap();
    assert!(!text.contains("ann1") && !text.contains("submarine") && !text.contains("Ann"), "{text}");
    let tag = signed.hmac_sha256.take().unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"a long random secret");
    let bytes: Vec<u8> = (0..tag.len()).step_by(2).map(|n| u8::from_str_radix(&tag[n..n + 2], 16).unwrap()).collect();
    ring::hmac::verify(&key, serde_json::to_string(&signed).unwrap().as_bytes(), &bytes).unwrap();
}

#[test]
fn repeating_an_operation_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = remembered(&pipeline);
    let operation = forget_ann(&mut service, &pipeline);
    service.erase().unwrap();
    let (end, before) = (service.log().end(Topic::Turns, 0).unwrap(), census(&service));
    for _ in 0..2 {
        let ids = ["ann2", "ann1", "ann2"].map(str::to_owned);
        let again = forget_turns(service.log(), &pipeline.forget, &bank(), ids).unwrap();
        assert_eq!(again.operation.operation, operation);
    }
    assert_eq!(service.log().end(Topic::Turns, 0).unwrap(), end);
    assert_eq!((census(&service), receipt(&service).stage), (before, ForgetStage::Erased));
}

#[test]
fn an_erased_turn_that_is_sent_again_stays_forgotten_and_is_erased_again() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = remembered(&pipeline);
    forget_ann(&mut service, &pipeline);
    service.erase().unwrap();
    let before = census(&service);
    // An older export, and a platform that sends its newest version.
    append(&mut service, &talk());
    append(&mut service, &[edit()]);
    assert_eq!(census(&service), before);
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Stored, "the log took what it was sent");
    drop(service);
    let mut service = open(&pipeline);
    assert_eq!(census(&service), before);
    assert_eq!(service.erase().unwrap().turns, 3);
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Gone);
    assert_eq!(census(&service), before);
}

#[test]
fn a_backup_that_is_put_back_forgets_again_by_the_ledger() {
    let home = tempfile::tempdir().unwrap();
    let mut pipeline = settings(home.path());
    pipeline.forget.ledger = Some(home.path().join("ledger.jsonl"));
    drop(remembered(&pipeline));
    let backup = home.path().join("backup");
    copy(&pipeline.log.directory, &backup);
    copy(&home.path().join("snapshots"), &home.path().join("backup-snapshots"));
    let mut service = open(&pipeline);
    let operation = forget_ann(&mut service, &pipeline);
    service.erase().unwrap();
    let expected = census(&service);
    drop(service);
    assert!(!fs::read_to_string(home.path().join("ledger.jsonl")).unwrap().contains("submarine"));

    for (from, to) in
        [(&backup, &pipeline.log.directory), (&home.path().join("backup-snapshots"), &home.path().join("snapshots"))]
    {
        fs::remove_dir_all(to).unwrap();
        copy(from, to);
    }
    let mut service = open(&pipeline);
    service.catch_up().unwrap();
    assert_eq!(census(&service), expected);
    assert_eq!(receipt(&service).operation, operation);
    service.erase().unwrap();
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Gone);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Questions, turns and snapshots go on while words are erased, and no answer holds them.
#[test]
fn questions_turns_and_snapshots_go_on_while_words_are_erased() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = settings(home.path());
    let mut service = remembered(&pipeline);
    forget_ann(&mut service, &pipeline);
    drop(service);
    let memory = Memory::open(&pipeline).unwrap();
    let (done, asked) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let question = Question::new(bank(), "What did Ann dream of, and where is the red kayak?");
                let evidence = memory.ask_and_wait(QueryRequest::now(question)).unwrap();
                assert!(!evidence.context.contains("submarine"), "{}", evidence.context);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                let line = lines("other", "s", &[(&number.to_string(), "Dee", "The tide comes in at noon.")]);
                memory.put([TurnEvent::from_json(line.trim().as_bytes()).unwrap()]).unwrap();
                memory.replica().snapshot().unwrap();
            }
        });
        let erased = memory.erase();
        done.store(true, Ordering::Relaxed);
        assert_eq!(erased.unwrap().turns, 3);
    });
    assert!(asked.into_inner() > 0);
    assert_eq!(memory.receipts().unwrap()[0].stage, ForgetStage::Erased);
    let end = memory.end().unwrap();
    assert!(memory.wait_for(&end, Instant::now() + Duration::from_secs(60)));
    let ours = memory.replica().digest(Some(&bank())).unwrap().value;
    memory.close().unwrap();
    assert_eq!(look(&pipeline, SECRET, &[]).verdict, ErasureVerdict::Gone);
    assert_eq!(ours, reference());
}

/// Invariant 3 of an operation: killed at any moment from its record to the last byte that is erased, it is done by the
/// next start or was never asked for, what others said is back, and the next pass erases what is left.
#[test]
fn an_operation_that_is_killed_is_done_by_the_next_start_or_was_never_begun() {
    const TURNS: usize = 1_500;
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let home = tempfile::tempdir().unwrap();
    let file = write(
        &home.path().join("p.toml"),
        "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\nembed.read_turns = 256\n",
    );
    let mut pipeline = pipeline(home.path(), "embed.read_turns = 256");
    pipeline.log.fsync = types::config::FsyncPolicy::Commit;
    let mut service = open(&pipeline);
    let time = |n: usize| format!("2024-05-06T{:02}:{:02}:{:02}Z", n / 3_600, n / 60 % 60, n % 60);
    let turn = |n: usize| {
        let time = types::model::EventTime::parse(&time(n)).unwrap();
        let speaker = if n % 10 == 7 { "Dee" } else { "Ann" };
        TurnEvent::Turn(Turn::new(bank(), &n.to_string(), speaker, &format!("Sentence {n}."), time))
    };
    append(&mut service, &(0..TURNS).map(turn).collect::<Vec<_>>());
    drop(service);
    let whole = home.path().join("whole");
    copy(&pipeline.log.directory, &whole);
    let dee = ["forget", "--bank", "b", "--speaker", "Dee", "--yes", "--pipeline", file.to_str().unwrap()];
    ripplemem(&dee);
    let without_dee = census(&open(&pipeline));
    let (mut none, mut done) = (0, 0);
    for round in 0..rounds {
        fs::remove_dir_all(&pipeline.log.directory).unwrap();
        copy(&whole, &pipeline.log.directory);
        let mut dice = Dice(round);
        let of_dee = round / 2 % 2 == 1;
        let all = ["forget", "--bank", "b", "--all", "--yes", "--pipeline", file.to_str().unwrap()];
        let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(if of_dee { &dee[..] } else { &all[..] })
            .arg("--erase-now")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From the first write of the operation on, or at any moment.
        let before = journal_bytes(&whole);
        let begun = Instant::now();
        while round % 2 == 0 && journal_bytes(&pipeline.log.directory) <= before && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(dice.below(if round % 2 == 0 { 40 } else { 1_500 })));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut service = open(&pipeline);
        service.catch_up().unwrap();
        let held = stored_turns(service.log(), &bank(), &|_| true, usize::MAX).unwrap().len();
        let receipts = service.receipts().unwrap();
        let left = if of_dee { TURNS - TURNS / 10 } else { 0 };
        assert!(held == left || held == TURNS, "round {round}: {held} of {TURNS} are left");
        assert_eq!(receipts.len(), usize::from(held == left), "round {round}");
        if held == left {
            done += 1;
            assert!(receipts[0].stage >= ForgetStage::Rebuilt, "round {round}");
            assert!(!of_dee || census(&service) == without_dee, "round {round}");
            service.erase().unwrap();
            assert_eq!(look(&pipeline, "Sentence 7.", &[]).verdict, ErasureVerdict::Gone, "round {round}");
        } else {
            none += 1;
        }
        drop(service);
    }
    println!("killed in {rounds} rounds: {done} forgot what they were to, {none} nothing");
}

/// The bytes of the log's journal that are not empty.
fn journal_bytes(log: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(log.join("store")) else { return 0 };
    let journals =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| p.extension().is_some_and(|e| e == "jnl"));
    journals
        .map(|path| fs::read(path).map_or(0, |bytes| bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at as u64)))
        .sum()
}

#[test]
fn the_command_lists_erases_and_verifies() {
    let home = tempfile::tempdir().unwrap();
    let settings = "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\n\
                    forget = { fingerprints = \"prints\", key_file = \"key\" }\n";
    let file = write(&home.path().join("p.toml"), settings);
    write(&home.path().join("key"), "a long random secret\n");
    let mut service = open(&pipeline(home.path(), ""));
    append(&mut service, &talk());
    drop(service);
    let run = |arguments: &[&str], code: i32| {
        let output = ripplemem(&[arguments, &["--pipeline", file.to_str().unwrap()]].concat());
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
        stdout
    };
    let verify = ["forget", "--verify", "--words", SECRET];
    assert!(run(&verify, 1).contains("still stored"));
    let forgotten = run(&["forget", "--bank", "b", "--speaker", "Ann", "--yes"], 0);
    assert_eq!(forgotten, "bank b: 2 turns deleted\n");
    let listed = run(&["forget", "--list"], 0);
    assert!(
        listed.contains("bank b: 2 turns") && listed.contains("rebuilt at") && listed.contains("to be erased by"),
        "{listed}"
    );
    assert_eq!(run(&["forget", "--list", "--bank", "c"], 0), "");
    assert!(run(&verify, 3).contains("pending"));
    assert!(run(&["forget", "--verify"], 3).contains("  pending, to be erased by"));
    // Nothing of Ann is left to delete, but her words are still to be erased.
    let again = ["forget", "--bank", "b", "--speaker", "Ann", "--yes", "--dry-run", "--erase-now"];
    assert!(!run(&again, 0).contains("erased:"));
    let again = ["forget", "--bank", "b", "--speaker", "Ann", "--yes", "--erase-now"];
    assert!(run(&again, 0).contains("2 records of turns"));
    assert!(run(&verify, 0).starts_with("gone"));
    assert!(run(&["forget", "--verify"], 0).contains("  gone; its fingerprints are removed\n"));
    assert!(run(&["forget", "--verify"], 0).starts_with("nothing to look for"));
    let receipt: Value = serde_json::from_str(run(&["forget", "--list", "--json"], 0).trim()).unwrap();
    assert_eq!((&receipt["stage"], &receipt["turns"]), (&Value::from("erased"), &Value::from(2)));
    assert_eq!(run(&["forget", "--verify", "--words", ""], 1), "");

    for ignored in [["--list", "--speaker"], ["--list", "--session"], ["--verify", "--bank"], ["--verify", "--since"]] {
        assert_eq!(run(&["forget", ignored[0], ignored[1], "x"], 2), "", "{ignored:?}");
    }
    assert_eq!(run(&["forget", "--bank", "b", "t2", "t2"], 0), "bank b: 1 turns deleted\n");
    let receipt: Value =
        serde_json::from_str(run(&["forget", "--bank", "b", "t4", "?", "?", "--json"], 1).trim()).unwrap();
    assert_eq!(receipt["turns"], 2);
    assert_eq!(run(&["forget", "--bank", "b", "--speaker", "Ann", "--yes", "--json"], 0), "");

    write(&home.path().join("key"), "\n");
    run(&["forget", "--bank", "b", "t6"], 1);
    let held = stored_turns(open(&pipeline(home.path(), "")).log(), &bank(), &|turn| turn == "t6", 1).unwrap();
    assert_eq!(held.len(), 1, "without the secret nothing is deleted");
    fails(&ripplemem(&["validate", file.to_str().unwrap()]), 1, &["forget.key_file", "random secret"]);
    let refused = Memory::open(&Pipeline::read(&file).unwrap()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("forget.key_file") && refused.contains("random secret"), "{refused}");
}

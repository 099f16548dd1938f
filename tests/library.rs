//! The memory that stays open, as a program uses it: put, ask, forget, close.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use pipeline::{Cancellation, PipelineError};
use replica::QueryRequest;
use ripplemem::Memory;
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Question, Turn, TurnEvent},
};

use super::{
    model_process::ScriptedModel,
    served_model::settings,
    support::{census, open, pipeline},
};

#[path = "../examples/remember_and_ask.rs"]
#[allow(dead_code)]
mod remember_and_ask;

fn bank() -> Bank {
    Bank::parse("b").unwrap()
}

fn turn(id: &str, text: &str) -> Turn {
    let minute: usize = id.parse().unwrap();
    let time = EventTime::parse(&format!("2024-05-01T{:02}:{:02}:00Z", minute / 60, minute % 60)).unwrap();
    Turn { session: Some("s".to_owned()), ..Turn::new(bank(), id, "Ann", text, time) }
}

fn asked(text: &str) -> QueryRequest {
    let question = Question::new(bank(), text);
    let cancellation = Cancellation::at(Instant::now() + Duration::from_secs(60));
    QueryRequest { cancellation, ..QueryRequest::now(question) }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_example_remembers_and_forgets() {
    let home = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    remember_and_ask::remember_and_ask(&home.path().join("log"), "fixed", &mut |line| lines.push(line)).unwrap();
    let [durable, evidence, forgotten, banks, edges] = &lines[..] else { panic!("{lines:?}") };
    assert!(durable.starts_with("durable: ") && durable.contains(":2"), "{durable}");
    assert!(evidence.contains("arrives in Lisbon on Friday"), "{evidence}");
    assert!(!forgotten.contains("Friday") && !forgotten.contains("sofa"), "{forgotten}");
    assert!(banks.starts_with("banks: acme/support; ") && !banks.contains(" 0 units"), "{banks}");
    assert!(edges.starts_with("edges: "), "{edges}");
}

/// Put again, a turn changes no record; the answer after it waits for it all the same.
#[test]
fn a_turn_that_is_put_again_changes_nothing_and_holds_up_no_answer() {
    let home = tempfile::tempdir().unwrap();
    let memory = Memory::open(&pipeline(home.path(), "")).unwrap();
    let first = memory.put([turn("1", "The red kayak is stored in the boathouse")]).unwrap();
    let evidence = memory.ask_and_wait(asked("Where is the red kayak?").after(&first)).unwrap();
    assert_eq!(evidence.units[0].sources, ["1"]);
    let before = memory.replica().digest(None).unwrap();
    let again = memory.put([turn("1", "The red kayak is stored in the boathouse")]).unwrap();
    assert!(again.of(&bank()) > first.of(&bank()), "{again} after {first}");
    let later = memory.ask_and_wait(asked("Where is the red kayak?").after(&again)).unwrap();
    assert_eq!(later.units, evidence.units);
    let (partition, next) = again.of(&bank()).unwrap();
    let reflects = |found: &[types::model::LogPosition]| {
        found.iter().any(|at| at.topic == "turns" && at.partition == partition && at.next_offset >= next)
    };
    assert!(reflects(&later.reflects), "{:?}", later.reflects);
    assert_eq!(memory.replica().digest(None).unwrap().value, before.value);
    assert_eq!((memory.status().behind, memory.problem()), (0, None));
}

#[test]
fn of_turns_that_are_not_all_valid_none_is_written() {
    let home = tempfile::tempdir().unwrap();
    let memory = Memory::open(&pipeline(home.path(), "")).unwrap();
    let refused = memory.put([turn("1", "The red kayak"), turn("2", "  ")]).unwrap_err();
    assert!(matches!(refused, PipelineError::Turn { index: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("text: empty"), "{refused}");
    assert!(memory.put(Vec::<TurnEvent>::new()).unwrap().to_string().is_empty());
    assert!(memory.banks().is_empty());
}

/// A directory that another memory has open, and a log that it cannot extract from.
#[test]
fn a_memory_that_cannot_be_opened_says_why() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    let memory = Memory::open(&settings).unwrap();
    let refused = Memory::open(&settings).err().unwrap().to_string();
    assert!(refused.contains("in use"), "{refused}");
    memory.close().unwrap();
    drop(Memory::open(&settings).unwrap());
    let kafka = Pipeline::parse("version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"127.0.0.1:1\"").unwrap();
    let refused = Memory::open(&kafka).err().unwrap().to_string();
    assert!(refused.contains("ripplemem run"), "{refused}");
}

/// Closed at any moment, it holds every turn that it acknowledged; the same as one that was never closed.
#[test]
fn what_was_put_before_a_close_is_there_afterwards() {
    let (home, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let snapshots = |home: &Path| format!("snapshot.directory = {:?}", home.join("snapshots"));
    let settings = pipeline(home.path(), &snapshots(home.path()));
    let turns: Vec<Turn> = (0..60).map(|n| turn(&n.to_string(), &format!("Boat {n} lies at pier {}", n % 7))).collect();
    for some in turns.chunks(7) {
        let memory = Memory::open(&settings).unwrap();
        for turn in some {
            memory.put([turn.clone()]).unwrap();
        }
        memory.close().unwrap();
    }
    let memory = Memory::open(&settings).unwrap();
    // Extracted turns are reflected a moment after they are no longer behind.
    assert!(memory.wait_for(&memory.end().unwrap(), Instant::now() + Duration::from_secs(60)));
    let found = memory.replica().digest(None).unwrap().value;
    assert!(memory.replica().snapshot().unwrap().is_some() || home.path().join("snapshots").exists());
    drop(memory);
    let never_closed = Memory::open(&pipeline(whole.path(), "")).unwrap();
    let written = never_closed.put(turns).unwrap();
    assert!(never_closed.wait_for(&written, Instant::now() + Duration::from_secs(60)));
    assert_eq!(found, never_closed.replica().digest(None).unwrap().value);
    assert_eq!(census(&open(&settings)), found);
}

/// The endpoint of the vectors goes away and comes back.
#[test]
fn a_failure_in_the_background_is_visible_and_loses_nothing() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let memory = Memory::open(&settings(&server, home.path(), "scripted", "retries = 0")).unwrap();
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    drop(server);
    let written = memory.put([turn("1", "The ferry leaves at noon")]).unwrap();
    until("the failure is visible", || memory.problem().is_some());
    assert!(memory.problem().unwrap().contains(&address), "{:?}", memory.problem());
    assert!(!memory.wait_for(&written, Instant::now()) && memory.status().behind == 1);
    let _again = ScriptedModel::start(&["--listen", &address]);
    assert!(memory.wait_for(&written, Instant::now() + Duration::from_secs(60)));
    until("the problem is over", || memory.problem().is_none());
    let evidence = memory.ask_and_wait(asked("When does the ferry leave?")).unwrap();
    assert_eq!(evidence.units[0].sources, ["1"]);
}

/// The asynchronous form; dropping the future cancels the question.
#[test]
fn questions_are_answered_on_any_runtime() {
    let home = tempfile::tempdir().unwrap();
    let memory = Memory::open(&pipeline(home.path(), "")).unwrap();
    let written = memory.put([turn("1", "The red kayak is stored in the boathouse")]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let evidence = runtime.block_on(memory.ask(asked("Where is the red kayak?").after(&written))).unwrap();
    assert_eq!(evidence.units[0].sources, ["1"]);
}

//! Writes with conditions, against `ripplemem serve`: who wins is decided where the log is read, also if the process is
//! killed in between.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::Barrier,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use logs::Topic;
use types::model::{FIRST_INEXACT_VERSION, TurnEvent};

use super::{
    http_service::{HttpClient, HttpService, answer, pipeline_file},
    oracle::Dice,
    support::{kill_rounds, open, pipeline},
};

fn turn(id: &str, text: &str) -> Value {
    json!({ "bank": "b", "turn": id, "speaker": "Ann", "text": text, "time": "2024-05-01T10:00:00Z" })
}

fn with(mut record: Value, more: Value) -> Value {
    let fields = record.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    record
}

fn put(service: &HttpClient, body: &Value) -> (u16, Value) {
    let (status, _, answer) = service.send("POST", "/v1/turns", "", body.to_string().as_bytes());
    (status, answer)
}

fn put_one(service: &HttpClient, record: &Value) -> (u16, Value) {
    put(service, &json!({ "turns": [record], "wait_ms": 20_000 }))
}

/// The texts of the bank's turns, by id.
fn held(service: &HttpClient) -> BTreeMap<String, String> {
    let list = service.get("/v1/turns?bank=b&limit=1000");
    let text = |turn: &Value| (turn["turn"].as_str().unwrap().to_owned(), turn["text"].as_str().unwrap().to_owned());
    list["turns"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn a_condition_decides_whether_a_turn_is_written() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let created = with(turn("1", "first"), json!({ "expected_version": 0 }));
    let (status, written) = put_one(&service, &created);
    assert_eq!((status, &written["versions"]), (200, &json!({ "1": 1 })), "{written}");
    // The same request again is refused, and says what stands.
    let (status, refused) = put_one(&service, &created);
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
    assert_eq!((&refused["turn"], &refused["version"]), (&json!("1"), &json!(1)), "{refused}");
    assert_eq!(put_one(&service, &with(turn("1", "x"), json!({ "expected_version": 2 }))).0, 409);
    let (_, written) = put_one(&service, &with(turn("1", "second"), json!({ "expected_version": 1 })));
    assert_eq!(written["versions"], json!({ "1": 2 }), "{written}");
    // The service chooses the version; the same content changes nothing.
    for (text, version) in [("third", 3), ("third", 3), ("fourth", 4)] {
        let (_, written) = put_one(&service, &with(turn("1", text), json!({ "version": "next" })));
        assert_eq!((&written["versions"]["1"], &written["stale"]), (&json!(version), &Value::Null), "{written}");
    }
    assert_eq!(held(&service), [("1".to_owned(), "fourth".to_owned())].into());
    // A version below what stands changes nothing, and says so; so does a repeated deletion.
    let (_, written) = put_one(&service, &with(turn("1", "old"), json!({ "version": 3 })));
    assert_eq!((&written["stale"], &written["reflected"]), (&json!(["1"]), &json!(true)), "{written}");
    let deletion = json!({ "type": "deletion", "bank": "b", "turn": "1", "version": 4, "expected_version": 4 });
    let (status, written) = put_one(&service, &deletion);
    assert_eq!((status, &written["versions"]), (200, &json!({ "1": 4 })), "{written}");
    let (status, refused) = put_one(&service, &deletion);
    assert_eq!((status, &refused["version"]), (409, &json!(0)), "a condition below a deletion that stands: {refused}");
    let (_, written) = put_one(&service, &json!({ "type": "deletion", "bank": "b", "turn": "1", "version": 4 }));
    assert_eq!(written["stale"], json!(["1"]), "{written}");
    let (_, written) = put_one(&service, &with(turn("1", "again"), json!({ "expected_version": 0 })));
    assert_eq!(written["versions"], json!({ "1": 5 }), "{written}");
    // A deletion by its own route.
    let delete = |expected: u64| {
        let path = format!("/v1/turns?bank=b&turn=1&expected_version={expected}");
        let (status, _, answer) = service.send("DELETE", &path, "", b"");
        (status, answer)
    };
    assert_eq!((delete(4).0, delete(5).0, delete(5).0), (409, 200, 409));
    let (_, written) = put_one(&service, &with(turn("1", "no more"), json!({ "version": "next" })));
    assert_eq!((&written["forgotten"], &written["stale"]), (&json!(["1"]), &json!(["1"])), "{written}");
    let (status, refused) = put_one(&service, &with(turn("1", "no more"), json!({ "expected_version": 0 })));
    assert!(status == 409 && refused["detail"].as_str().unwrap().contains("another id"), "{refused}");
    assert_eq!(held(&service), BTreeMap::new());
}

#[test]
fn what_cannot_be_a_condition_is_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let expected = json!({ "expected_version": 0 });
    let other_bank = with(turn("2", "x"), json!({ "bank": "c" }));
    for (body, word) in [
        (json!({ "turns": [with(turn("1", "x"), expected.clone()), turn("2", "x")] }), "together"),
        (json!({ "turns": [turn("1", "x"), other_bank], "together": true }), "another bank"),
        (json!({ "turns": [turn("1", "x"), turn("1", "y")], "together": true }), "twice"),
        (json!({ "turns": [{ "type": "session_end", "bank": "b", "session": "s" }], "together": true }), "together"),
        (json!({ "turns": [with(turn("1", "x"), json!({ "expected_version": "one" }))] }), "expected_version"),
        (json!({ "turns": [with(turn("1", "x"), json!({ "version": "last" }))] }), "invalid type"),
        (json!({ "turns": [{ "type": "verdict", "bank": "b", "request": "r" }] }), "the service alone"),
        (
            json!({ "turns": (0..1_001).map(|n| turn(&n.to_string(), "x")).collect::<Vec<_>>(), "together": true }),
            "1000",
        ),
    ] {
        let (status, refused) = put(&service, &body);
        assert!(status == 400 && refused["detail"].as_str().unwrap().contains(word), "{word}: {refused}");
    }
    assert_eq!(held(&service), BTreeMap::new());
}

/// In each round two writers expect the same version, and a third lets the service choose.
#[test]
fn of_two_writers_that_race_for_a_version_exactly_one_wins() {
    const ROUNDS: u64 = 100;
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    for version in 0..ROUNDS {
        let start = Barrier::new(2);
        let race = |writer: &str| {
            let record = with(turn("1", &format!("{writer} {version}")), json!({ "expected_version": version }));
            start.wait();
            let (status, said) = put_one(&service, &record);
            // A writer that is refused reads what stands, too.
            (status, said, held(&service)["1"].clone())
        };
        let [one, two] = std::thread::scope(|scope| {
            ["one", "two"].map(|writer| scope.spawn(move || race(writer))).map(|thread| thread.join().unwrap())
        });
        let (won, lost) = if one.0 == 200 { (one, two) } else { (two, one) };
        assert_eq!((won.0, lost.0), (200, 409), "version {version}: {won:?} {lost:?}");
        assert_eq!((&won.1["versions"]["1"], &lost.1["version"]), (&json!(version + 1), &json!(version + 1)));
        assert_eq!(won.2, lost.2, "version {version}");
    }
    // All get a version of their own.
    let chosen: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let service = &service;
                scope.spawn(move || {
                    let record = with(turn("1", &format!("writer {writer}")), json!({ "version": "next" }));
                    put(service, &json!({ "turns": [record] })).1["versions"]["1"].as_u64().unwrap()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (ROUNDS + 1..=ROUNDS + 8).collect::<Vec<_>>(), "{chosen:?}");
}

#[test]
fn turns_that_are_written_together_are_all_there_or_none() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let together = |turns: Vec<Value>| put(&service, &json!({ "turns": turns, "together": true, "wait_ms": 20_000 }));
    let next = json!({ "version": "next" });
    let (status, written) = together((0..300).map(|n| with(turn(&n.to_string(), "first"), next.clone())).collect());
    let (count, reflected) = (written["versions"].as_object().unwrap().len(), &written["reflected"]);
    assert_eq!((status, count, reflected), (200, 300, &json!(true)), "{written}");
    // One condition of many does not hold.
    let mut turns: Vec<Value> = (0..300).map(|n| with(turn(&n.to_string(), "second"), next.clone())).collect();
    turns[299] = with(turn("299", "second"), json!({ "expected_version": 7 }));
    let (status, refused) = together(turns.clone());
    assert_eq!((status, &refused["turn"], &refused["version"]), (409, &json!("299"), &json!(1)), "{refused}");
    assert!(held(&service).values().all(|text| text == "first"));
    turns[299] = json!({ "type": "deletion", "bank": "b", "turn": "299", "version": "next", "expected_version": 1 });
    let (status, written) = together(turns);
    assert_eq!((status, &written["versions"]["299"]), (200, &json!(2)), "{written}");
    // The version of a deletion for good is above 2^53, and not told.
    let gone = json!({ "type": "deletion", "bank": "b", "turn": "298", "expected_version": 2 });
    let (status, written) = put(&service, &json!({ "turns": [gone], "wait_ms": 20_000 }));
    assert_eq!((status, written.get("versions")), (200, None), "{written}");
    let after = held(&service);
    assert!(after.len() == 298 && after.values().all(|text| text == "second"));
    // What was refused is in no list after a restart either, and what was written is.
    assert!(service.stop());
    assert_eq!(held(&HttpService::of(home.path())), after);
}

/// Writers replace two turns together, again and again, until the process is killed; then both turns say the same, and
/// nothing that was acknowledged is missing.
#[test]
fn a_kill_leaves_no_part_of_what_is_written_together() {
    for round in 0..kill_rounds("RIPPLEMEM_KILL_ROUNDS") {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), "embed.read_turns = 4\n");
        let (mut dice, mut acknowledged) = (Dice(round), 0_u64);
        for _ in 0..3 {
            let service = HttpService::of(home.path());
            let until = Instant::now() + Duration::from_millis(20 + dice.below(300));
            let body = |number: u64| {
                let record = |id: &str| with(turn(id, &format!("number {number}")), json!({ "version": "next" }));
                let turns: Vec<Value> = ["one", "two", "three"].map(record).into();
                json!({ "turns": turns, "together": true }).to_string()
            };
            let mut number = acknowledged + 1_000;
            while Instant::now() < until {
                number += 1;
                let (status, _, written) = service.send("POST", "/v1/turns", "", body(number).as_bytes());
                assert_eq!(status, 200, "{written}");
                acknowledged = number;
            }
            // One more, whose answer nobody reads.
            let mut last = service.begin("POST", "/v1/turns", "", body(number + 1).as_bytes());
            last.flush().unwrap();
            if dice.below(2) == 0 {
                drop(answer(&mut last));
            }
            service.kill();
            let service = HttpService::of(home.path());
            let end = service.get("/v1/status")["after"].as_str().unwrap().to_owned();
            if !end.is_empty() {
                service.get(&format!("/v1/digest?after={end}&wait_ms=30000"));
            }
            let found = held(&service);
            let texts: std::collections::BTreeSet<&String> = found.values().collect();
            assert!(texts.len() <= 1 && [0, 3].contains(&found.len()), "round {round}: {found:?}");
            if acknowledged > 0 {
                let text = texts.first().expect("what was acknowledged").as_str();
                let said: u64 = text.trim_start_matches("number ").parse().unwrap();
                assert!(said >= acknowledged, "round {round}: {said} of {acknowledged}");
                acknowledged = said;
            }
            assert!(service.stop());
        }
    }
}

/// Versions that are chosen stay exact in JavaScript; larger ones of a caller are kept all the same.
#[test]
fn versions_that_are_chosen_stay_below_two_to_the_53rd() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "[http]\nmem0 = true\n");
    let service = HttpService::of(home.path());
    for id in ["1", "2"] {
        let (_, written) = put_one(&service, &with(turn(id, "x"), json!({ "version": "next" })));
        assert_eq!(written["versions"][id], 1, "{written}");
    }
    let added = service.post(
        "/v3/memories/add/",
        &json!({ "user_id": "ann", "messages": [{ "role": "user", "content": "I like tea." }] }),
    );
    let id = added["results"][0]["id"].as_str().unwrap();
    let body = json!({ "text": "I like coffee." }).to_string();
    let (status, _, updated) = service.send("PUT", &format!("/v1/memories/{id}/"), "", body.as_bytes());
    assert_eq!(status, 200, "{updated}");
    let large = u64::MAX - 5;
    let (_, written) = put_one(&service, &with(turn("1", "large"), json!({ "version": large })));
    assert_eq!(written["stale"], Value::Null, "{written}");
    let (_, written) = put_one(&service, &with(turn("1", "larger"), json!({ "expected_version": large })));
    assert_eq!(written["versions"]["1"], json!(large + 1), "{written}");
    assert_eq!(held(&service)["1"], "larger");
    assert!(service.stop());
    let stored = open(&pipeline(home.path(), ""));
    let records = stored.log().read(Topic::Turns, 0, 0, 100).unwrap().records;
    let events = records.iter().map(|record| TurnEvent::from_log(record.value.as_deref().unwrap()).unwrap());
    let versions: Vec<u64> = events.filter_map(TurnEvent::into_change).map(|change| change.version()).collect();
    let (chosen, larger): (Vec<u64>, Vec<u64>) = versions.into_iter().partition(|version| *version < large);
    assert!(chosen.len() == 4 && chosen.iter().all(|version| *version < FIRST_INEXACT_VERSION), "{chosen:?}");
    assert_eq!(larger, [large, large + 1]);
}

//! Writes with conditions where several instances share a log on Kafka: the instance that
//! extracts the bank decides, and the caller learns it from the instance that took the request.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    broker_process::Broker,
    http_service::HttpClient,
    kafka::{Home, Running, turn, wait},
    kafka_http::http_of,
    kafka_instances::{instance, ready},
    oracle::Dice,
    support::kill_rounds,
};
use logs::{Log, Topic};
use types::model::{Bank, TurnEvent};

const HTTP: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";
const ROUNDS: u64 = 25;

fn record(bank: &str, id: &str, text: &str, more: Value) -> Value {
    let mut record =
        json!({ "bank": bank, "turn": id, "speaker": "Ann", "text": text, "time": "2024-05-01T10:00:00Z" });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn put(http: &HttpClient, turns: &[Value], together: bool) -> (u16, Value) {
    let body = json!({ "turns": turns, "together": together }).to_string();
    let (status, _, answer) = http.send("POST", "/v1/turns", "", body.as_bytes());
    (status, answer)
}

#[test]
fn of_two_instances_that_race_for_a_version_exactly_one_wins() {
    let _turn = turn();
    let name = "kafka_conditions::of_two_instances_that_race_for_a_version_exactly_one_wins";
    let Some(broker) = Broker::shared(name) else { return };
    let homes: Vec<Home> = (0..2).map(|_| instance(&broker, "race", "")).collect();
    homes.iter().for_each(|home| home.change("[log]", &format!("{HTTP}[log]")));
    let running: Vec<_> = homes.iter().map(Home::run).collect();
    homes.iter().for_each(|home| ready(home, 1));
    let http: Vec<HttpClient> = homes.iter().map(|home| http_of(home, 1)).collect();
    for bank in ["amber", "birch", "cedar"] {
        for round in 0..ROUNDS {
            let race = |at: usize| {
                let expected = json!({ "expected_version": round });
                put(&http[at], &[record(bank, "1", &format!("instance {at}, round {round}"), expected)], false)
            };
            let [one, two] = std::thread::scope(|scope| {
                [0, 1].map(|at| scope.spawn(move || race(at))).map(|thread| thread.join().unwrap())
            });
            let (won, lost) = if one.0 == 200 { (one, two) } else { (two, one) };
            let told = || homes.iter().map(Home::told).collect::<String>();
            assert_eq!((won.0, lost.0), (200, 409), "{bank}, round {round}: {won:?} {lost:?}\n{}", told());
            assert_eq!((&won.1["versions"]["1"], &lost.1["version"]), (&json!(round + 1), &json!(round + 1)));
        }
        // All or nothing, through either instance.
        for http in &http {
            let group = |expected: u64| {
                let next = json!({ "version": "next" });
                let last = json!({ "version": "next", "expected_version": expected });
                [record(bank, "2", "together", next), record(bank, "1", "together", last)]
            };
            let standing = put(http, &[record(bank, "1", "next", json!({ "version": "next" }))], false).1;
            let version = standing["versions"]["1"].as_u64().unwrap();
            assert_eq!(put(http, &group(version + 1), true).0, 409);
            let (status, written) = put(http, &group(version), true);
            assert_eq!((status, &written["versions"]["1"]), (200, &json!(version + 1)), "{written}");
        }
    }
    // What lost stands nowhere: the records behind the conditions are those of the winners, version by version.
    homes[0].extracted();
    let log = homes[0].log();
    let bank = Bank::parse("amber").unwrap();
    let partition = logs::partition_of(&bank, log.partitions());
    let versions = || -> Vec<u64> {
        let records = log.read(Topic::Turns, partition, 0, 10_000).unwrap().records;
        let events = records.iter().map(|record| TurnEvent::from_log(record.value.as_deref().unwrap()).unwrap());
        let of_bank = events.filter(|event| *event.bank() == bank);
        let of_turn = of_bank.filter_map(TurnEvent::into_change).filter(|change| change.turn_id() == "1");
        of_turn.map(|change| change.version()).collect()
    };
    wait(&|| format!("{:?}", versions()), || versions().len() >= ROUNDS as usize + 4);
    assert_eq!(versions(), (1..=ROUNDS + 4).collect::<Vec<_>>());
    running.into_iter().for_each(Running::stop);
}

/// Turns are replaced together on a condition, again and again, until the process is killed. Then all of them say the
/// same, nothing that was acknowledged is missing, and a condition on the version that stands decides as before.
#[test]
fn a_kill_leaves_no_part_of_a_group_with_a_condition() {
    let _turn = turn();
    let name = "kafka_conditions::a_kill_leaves_no_part_of_a_group_with_a_condition";
    let Some(broker) = Broker::shared(name) else { return };
    for round in 0..kill_rounds("RIPPLEMEM_KAFKA_KILL_ROUNDS") {
        let home = Home::with(&broker, &format!("killed-groups-{round}"), "", HTTP);
        let (mut dice, mut version, mut starts) = (Dice(round), 0_u64, 0);
        let group = |number: u64, expected: u64| {
            let one = |id: &str, more: Value| record("amber", id, &format!("number {number}"), more);
            let expected = json!({ "version": "next", "expected_version": expected });
            vec![one("1", expected), one("2", json!({ "version": "next" })), one("3", json!({ "version": "next" }))]
        };
        let held = |http: &HttpClient| -> BTreeMap<String, (u64, String)> {
            let listed = http.get("/v1/turns?bank=amber&limit=100");
            let of = |turn: &Value| {
                let text = turn["text"].as_str().unwrap().to_owned();
                (turn["turn"].as_str().unwrap().to_owned(), (turn["version"].as_u64().unwrap(), text))
            };
            listed["turns"].as_array().unwrap().iter().map(of).collect()
        };
        for _ in 0..3 {
            let service = home.run();
            starts += 1;
            let http = http_of(&home, starts);
            let until = Instant::now() + Duration::from_millis(100 + dice.below(1_500));
            let mut number = version;
            loop {
                number += 1;
                let (status, written) = put(&http, &group(number, version), true);
                assert_eq!(status, 200, "round {round}: {written} {}", home.told());
                version = written["versions"]["1"].as_u64().unwrap();
                if Instant::now() >= until {
                    break;
                }
            }
            // One more, whose answer nobody reads.
            let body = json!({ "turns": group(number + 1, version), "together": true }).to_string();
            let mut last = http.begin("POST", "/v1/turns", "", body.as_bytes());
            last.flush().unwrap();
            std::thread::sleep(Duration::from_millis(dice.below(60)));
            service.kill();

            let service = home.run();
            starts += 1;
            let http = http_of(&home, starts);
            // What the killed process left is decided before what comes now: a condition that cannot hold tells so.
            let (status, refused) = put(&http, &group(0, u64::MAX >> 12), true);
            assert_eq!(status, 409, "round {round}: {refused} {}", home.told());
            let standing = refused["version"].as_u64().unwrap();
            assert!([version, version + 1].contains(&standing), "round {round}: {standing} after {version}");
            wait(&|| format!("{:?} {}", held(&http), home.told()), || {
                held(&http).get("1").is_some_and(|(version, _)| *version == standing)
            });
            let found = held(&http);
            let said: BTreeSet<&str> = found.values().map(|(_, text)| text.as_str()).collect();
            assert_eq!((found.len(), said.len()), (3, 1), "round {round}: {found:?}");
            version = standing;
            service.stop();
        }
    }
}

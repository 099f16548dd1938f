//! Banks that sleep on Kafka, where another process extracts: a memory that follows the topics stays the one that never
//! slept, also after a start at which they stay asleep. `kafka_instances` has banks that sleep in instances that are killed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use logs::{KafkaLog, Log, SharedLog, WritePosition};
use replica::{Replica, ReplicaOptions};
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::{Bank, TurnEvent},
};

use serde_json::json;

use super::{
    broker_process::Broker,
    kafka::{Home, load, turn, wait},
    kafka_http::http_of,
    oracle::Dice,
};

const NAMES: [&str; 4] = ["amber", "birch", "cedar", "delta"];
const PATIENCE: Duration = Duration::from_secs(300);

/// A memory that follows the topics, and the log that it reads.
struct Follower {
    log: Arc<KafkaLog>,
    replica: Replica,
}

impl Follower {
    fn open(pipeline: &Pipeline) -> Self {
        let log = Arc::new(KafkaLog::open(&pipeline.log).unwrap());
        let options = ReplicaOptions {
            hold: ShardAssignmentMode::All,
            edges: None,
            record: true,
            asks: None,
            waking_log: Some(Arc::<KafkaLog>::clone(&log)),
            turns: None,
            progress: &mut |_, _| {},
        };
        let replica = Replica::open(pipeline, &*log, options).unwrap();
        let follower = Self { log, replica };
        follower.follow();
        follower
    }

    fn follow(&self) {
        for partition in 0..self.log.partitions() {
            while self.replica.follow(&*self.log, partition, |_, _, _| {}).unwrap() {}
        }
    }

    /// Follows until the memory reflects what was written.
    fn reach(&self, written: &WritePosition) {
        let begun = Instant::now();
        while !self.replica.wait_for(written, Instant::now()) {
            assert!(begun.elapsed() < PATIENCE, "{written:?} is not reflected");
            self.follow();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether a bank falls asleep.
    fn sleep(&self, name: &str) -> bool {
        for partition in 0..self.log.partitions() {
            self.log.places(partition, &[], &mut |_, _, _| {}).unwrap();
            assert!(self.log.has_places(partition));
        }
        self.replica.request_sleep(&bank(name));
        self.replica.sleep_unused(&|_| false).contains(&bank(name))
    }

    fn hash(&self, name: &str) -> Option<u128> {
        self.replica.digest(Some(&bank(name))).ok().map(|digest| digest.value.hash)
    }
}

fn bank(name: &str) -> Bank {
    Bank::parse(name).unwrap()
}

fn turns(bank: &str, numbers: std::ops::Range<u64>) -> Vec<TurnEvent> {
    let event = |number: u64| {
        let turn = serde_json::json!({ "bank": bank, "turn": number.to_string(), "speaker": "Ann", "session": "s",
            "time": format!("2024-05-0{}T10:{:02}:00Z", 1 + number / 60, number % 60),
            "text": format!("I keep the {number}. kayak in Bremen.") });
        TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
    };
    numbers.map(event).collect()
}

/// Another wording of a turn, in place of those with a lower version.
fn edit(bank: &str, number: u64, version: u64) -> TurnEvent {
    let turn = serde_json::json!({ "bank": bank, "turn": number.to_string(), "version": version, "speaker": "Ann",
        "session": "s", "time": format!("2024-05-01T10:{number:02}:00Z"),
        "text": format!("I sold the {number}. kayak, said {version} times.") });
    TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
}

fn deletion(bank: &str, number: u64) -> TurnEvent {
    let line = format!(r#"{{"type": "deletion", "bank": "{bank}", "turn": "{number}", "version": 9}}"#);
    TurnEvent::from_json(line.as_bytes()).unwrap()
}

/// Random turns, edits, deletions, sleeps, snapshots and starts. A bank that wakes before the records of others are followed
/// is as of the offset that the memory has reached.
#[test]
fn random_sleeps_wakes_and_starts_change_nothing() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_sleep::random_sleeps_wakes_and_starts_change_nothing") else { return };
    for seed in 0..2 {
        let prefix = format!("sleep{seed}");
        let home = Home::new(&broker, &prefix, "roles = [\"extract\"]\n");
        let _extracting = home.run();
        wait(&|| home.told(), || home.told().contains("\"starting\""));
        let awake = home.pipeline();
        let mut sleeps = awake.clone();
        sleeps.memory.sleep_after_seconds = 100_000;
        if seed % 2 == 0 {
            sleeps.snapshot.directory = home.directory.path().join("snapshots").to_string_lossy().into_owned();
        }
        let (theirs, mut ours) = (Follower::open(&awake), Follower::open(&sleeps));
        let mut dice = Dice(seed);
        let (mut slept, mut woken_behind, mut began_asleep) = (0, 0, 0);
        for _ in 0..60 {
            let name = NAMES[dice.below(NAMES.len() as u64) as usize];
            let first = dice.below(30);
            match dice.below(12) {
                of @ 0..=4 => {
                    let events = match of {
                        0 => vec![deletion(name, first)],
                        1 | 2 => vec![edit(name, first, 1 + dice.below(8))],
                        _ => turns(name, first..first + 1 + dice.below(9)),
                    };
                    let before = ours.hash(name);
                    let is_asleep = dice.below(2) == 0 && ours.sleep(name);
                    let written = theirs.log.append_turns(&events).unwrap();
                    theirs.reach(&written);
                    if is_asleep && dice.below(2) == 0 {
                        assert_eq!(ours.hash(name), before, "seed {seed}: {name} woke as of another offset");
                        woken_behind += 1;
                    }
                    ours.reach(&written);
                }
                5..=8 => slept += usize::from(ours.sleep(name)),
                9 => drop(ours.replica.snapshot().unwrap()),
                _ => {
                    drop(ours);
                    ours = Follower::open(&sleeps);
                    began_asleep += NAMES.iter().filter(|name| ours.replica.is_asleep(&bank(name))).count();
                }
            }
            assert!(dice.below(3) > 0 || ours.hash(name) == theirs.hash(name), "seed {seed}: {name}");
        }
        let hashes = |of: &Follower| NAMES.map(|name| of.hash(name));
        assert_eq!(hashes(&ours), hashes(&theirs), "seed {seed}");
        assert!(slept > 5 && woken_behind > 0, "seed {seed}: {slept} sleeps, {woken_behind} wakes before a record");
        assert!(began_asleep > 5, "seed {seed}: {began_asleep} banks slept at a start");
        // What was recorded in between restores the same without sleep.
        drop(ours.replica.snapshot().unwrap());
        drop(ours);
        let again = Follower::open(&Pipeline { memory: awake.memory.clone(), ..sleeps.clone() });
        assert_eq!(hashes(&again), hashes(&theirs), "seed {seed}");
    }
}

/// A running service whose banks have no room in memory: each sleeps, and wakes with a question and with a turn.
#[test]
fn banks_of_a_service_sleep_and_wake() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_sleep::banks_of_a_service_sleep_and_wake") else { return };
    let home = Home::with(&broker, "drowsy", "memory.most_bytes = 1\n", "[http]\nlisten = \"127.0.0.1:0\"\n");
    let service = home.run();
    let http = http_of(&home, 1);
    load(&home);
    home.extracted();
    let sleep = || http.get("/v1/status")["sleep"].clone();
    let all_asleep = || sleep()["awake"] == 0 && sleep()["asleep"] == 1;
    wait(&|| format!("{}\n{}", sleep(), home.told()), all_asleep);
    assert_eq!(http.get("/v1/banks")["banks"], json!(["sample/harbour"]));
    assert!(all_asleep(), "a list wakes nothing");
    let ask = |after: &serde_json::Value| {
        let question = json!({"bank": "sample/harbour", "text": "From whom did Elias buy the boat?", "after": after,
            "timeout_ms": 60_000});
        http.post("/v1/ask", &question)["context"].as_str().unwrap().to_owned()
    };
    let wakes = sleep()["wakes"].as_u64().unwrap();
    assert!(ask(&json!(null)).contains("from Herr Brodersen"));
    wait(&|| format!("{}\n{}", sleep(), home.told()), all_asleep);
    let turn = json!({"bank": "sample/harbour", "turn": "later", "speaker": "Elias", "time": "2025-06-01T09:00:00Z",
        "text": "I sold the boat to Herr Petersen."});
    let written = http.post("/v1/turns", &json!({"turns": [turn]}));
    assert!(ask(&written["after"]).contains("Herr Petersen"));
    assert!(sleep()["wakes"].as_u64().unwrap() >= wakes + 2, "{}", sleep());
    let (status, _, gone) = http.send("DELETE", "/v1/turns?bank=sample/harbour&turn=later&wait_ms=60000", "", b"");
    assert_eq!((status, &gone["gone"]), (200, &json!(true)), "{gone}");
    assert!(!ask(&gone["after"]).contains("Petersen"));
    // Of one bank: it may fall asleep while all are counted, and count twice.
    let digest = http.get("/v1/digest?bank=sample/harbour");
    assert_eq!(digest["units"].as_u64(), Some(home.census().units), "{digest}");
    service.stop();
}

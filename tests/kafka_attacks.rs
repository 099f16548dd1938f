//! What an attacker with rights in one bank, or in the topics, tries on a service whose log is on Kafka: junk in each
//! topic, huge turns, thousands of names, storms of reads. Others keep being remembered, answered and forgotten.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use logs::{Log, Topic};
use rdkafka::{
    ClientConfig,
    producer::{BaseProducer, BaseRecord, Producer},
};
use serde_json::{Value, json};
use types::model::{DeadLetter, MemoryKey};

use super::{
    broker_process::Broker,
    http_service::HttpClient,
    kafka::{Home, turn, wait},
    kafka_http::http_of,
    kafka_repair::{ask, bank_in, put},
    question_client::Client,
    support::ripplemem,
};

const HTTP: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";
const PATIENCE: Duration = Duration::from_secs(120);

/// A caller who has rights in the topics, and writes without being the owner.
struct Attacker {
    producer: BaseProducer,
    prefix: String,
}

impl Attacker {
    fn new(broker: &Broker, prefix: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.bootstrap()).set("message.max.bytes", "8388608");
        Self { producer: config.create().unwrap(), prefix: prefix.to_owned() }
    }

    fn write(&self, topic: &str, partition: u32, key: Option<&[u8]>, value: Option<&[u8]>) {
        let topic = format!("{}.{topic}", self.prefix);
        let mut record = BaseRecord::<[u8], [u8]>::to(&topic).partition(partition as i32);
        record.key = key;
        record.payload = value;
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
        self.producer.flush(PATIENCE).unwrap();
    }
}

/// Invalid values: bytes, JSON of other forms, a newer schema, deep, huge.
fn junk_values() -> Vec<Vec<u8>> {
    let texts =
        ["", "junk", "null", "[]", "{}", "42", "{\"schema\": 99}", "{\"bank\": 7, \"text\": [], \"select\": 1}"];
    let mut values: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    values.push((0..=255).collect());
    values.push("[".repeat(100_000).into_bytes());
    values.push(vec![b'x'; 3 << 20]);
    values
}

/// What others do all the time: a turn is remembered, and a question about it is answered.
fn others_go_on(http: &HttpClient, home: &Home, banks: &[&str], id: &str) {
    for bank in banks {
        let after = put(http, bank, id);
        assert_eq!(ask(http, bank, &after, 120_000), 200, "{bank} {id}: {}", home.told());
    }
}

fn forget(http: &HttpClient, bank: &str, id: &str) -> Value {
    http.post("/v1/forget", &json!({"bank": bank, "select": {"turns": [id]}, "wait_ms": 60_000}))
}

#[test]
fn junk_in_any_topic_stops_nothing_else_and_repair_names_what_is_passed_over() {
    let _turn = turn();
    let name = "kafka_attacks::junk_in_any_topic_stops_nothing_else_and_repair_names_what_is_passed_over";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "junk", "[serve]\nedges = true\n", HTTP);
    let mut service = home.run();
    let mut http = http_of(&home, 1);
    let (here, there) = (bank_in(0), bank_in(1));
    others_go_on(&http, &home, &[&here, &there], "first");
    let attacker = Attacker::new(&broker, "junk");
    let mut rejected = 0;
    for (topic, partitions) in [("turns", 2), ("questions", 2), ("forgets", 1), ("dead-letters", 1)] {
        for value in junk_values() {
            for key in [None, Some(&b""[..]), Some(&b"\xff\xfe"[..]), Some(here.as_bytes())] {
                for partition in 0..partitions {
                    attacker.write(topic, partition, key, Some(&value));
                    rejected += usize::from(topic == "turns");
                }
            }
        }
        attacker.write(topic, 0, Some(here.as_bytes()), None);
        rejected += usize::from(topic == "turns");
    }
    // Compacted topics take no record without a key.
    for value in junk_values() {
        for key in [&b""[..], b"\xff\xfe", b"looked for words", here.as_bytes()] {
            attacker.write("forget-operations", 0, Some(key), Some(&value));
            attacker.write("edges", 1, Some(key), Some(&value));
        }
    }
    let operations = ["forget 1f", "forgotten 2f", "forget-turns 3f 00000000"];
    operations.iter().for_each(|key| attacker.write("forget-operations", 0, Some(key.as_bytes()), Some(b"junk")));
    attacker.write("forget-operations", 0, Some(b"forget nobody"), None);
    attacker.write("memory", 1, Some(b"\0\x01zno such window"), None);

    others_go_on(&http, &home, &[&here, &there], "second");
    let letters = || home.log().read(Topic::DeadLetters, 0, 0, usize::MAX).unwrap().records;
    let ours = || {
        let read = letters().into_iter().filter_map(|of| serde_json::from_slice::<DeadLetter>(&of.value?).ok());
        read.filter(|letter| letter.position.is_some()).count()
    };
    wait(&|| home.told(), || ours() >= rejected);
    assert_eq!(ours(), rejected, "each record that is no turn is a dead letter");
    let mut client = Client::new(&broker, "junk");
    let asked = client.ask(&here, "Where is the kayak?", &[("ripplemem_deadline", "99999999999999")]);
    assert!(client.reply(asked, PATIENCE)["context"].as_str().is_some_and(|said| said.contains("kayak")));
    assert_eq!(forget(&http, &there, "first")["gone"], true, "{}", home.told());
    let id = client.forget(&here, &json!({"bank": here, "select": {"turns": ["first"]}}).to_string());
    let forgotten = client.reply(id, PATIENCE);
    assert_eq!(forgotten["turns"], 1, "{forgotten} {}", home.told());
    let problem = |http: &HttpClient| http.get("/v1/status")["problem"].to_string();
    wait(&|| problem(&http), || problem(&http).contains("3 records of operations that forget turns"));

    // A start finds all of it again, and takes it out of the topic of edges.
    service.stop();
    service = home.run();
    http = http_of(&home, 2);
    others_go_on(&http, &home, &[&here, &there], "third");
    assert_eq!(forget(&http, &here, "second")["gone"], true, "{}", home.told());
    let live_junk = || {
        let told = ripplemem(&["tap", "edges", "--pipeline", home.path()]).stdout;
        let mut live = std::collections::BTreeMap::new();
        for line in String::from_utf8(told).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            live.insert(record["key"].to_string(), !record["value"].is_null());
        }
        live.get(&json!(here).to_string()).copied().unwrap_or_default()
    };
    wait(&|| home.told(), || !live_junk());
    let repair = |arguments: &[&str]| {
        let output = ripplemem(&[&["repair", "--pipeline", home.path()], arguments].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr))
    };
    let (code, listed) = repair(&[]);
    assert_eq!((code, listed.matches("junk.forget-operations/0/").count()), (Some(3), 3), "{listed}");
    assert!(listed.contains("an operation that forgets turns") && listed.contains("remove it"), "{listed}");
    for left in (0..operations.len()).rev() {
        let (_, listed) = repair(&[]);
        let name = listed.split(':').next().unwrap().to_owned();
        // What is left is listed again.
        let code = if left == 0 { 0 } else { 3 };
        assert_eq!(repair(&["--record", &name, "--remove"]).0, Some(code), "{listed}");
    }
    assert_eq!(repair(&[]), (Some(0), String::new()));
    wait(&|| problem(&http), || problem(&http) == "null");
    assert!(!home.told().contains("panicked"), "{}", home.told());
    service.stop();
}

/// A record of the memory under the key of a bank that belongs to another partition, and under keys of no bank.
#[test]
fn junk_in_the_memory_of_one_partition_changes_no_bank_of_another() {
    let _turn = turn();
    let name = "kafka_attacks::junk_in_the_memory_of_one_partition_changes_no_bank_of_another";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "misplaced", "", HTTP);
    let service = home.run();
    let mut http = http_of(&home, 1);
    let (here, there) = (bank_in(0), bank_in(1));
    others_go_on(&http, &home, &[&here, &there], "first");
    let context = |http: &HttpClient| {
        let body = json!({"bank": here, "text": "Where is the kayak?", "timeout_ms": 120_000});
        http.post("/v1/ask", &body)["context"].clone()
    };
    let before = context(&http);
    let records = home.log().read(Topic::Memory, 0, 0, 10_000).unwrap().records;
    let is_here = |key: &[u8]| MemoryKey::from_bytes(key).is_ok_and(|key| key.bank.as_str() == here);
    let of_here = records.into_iter().rfind(|of| of.value.is_some() && is_here(&of.key)).unwrap();
    let attacker = Attacker::new(&broker, "misplaced");
    // A record of another partition's bank, as it is and as junk.
    attacker.write("memory", 1, Some(&of_here.key), of_here.value.as_deref());
    attacker.write("memory", 1, Some(&of_here.key), Some(b"junk"));
    others_go_on(&http, &home, &[&here, &there], "second");
    service.stop();
    let service = home.run();
    http = http_of(&home, 2);
    others_go_on(&http, &home, &[&here, &there], "third");
    assert!(context(&http).as_str().unwrap().contains("kayak first"), "{before}");
    let banks = http.get("/v1/banks")["banks"].clone();
    let count = banks.as_array().unwrap().iter().filter(|bank| **bank == json!(here)).count();
    assert_eq!(count, 1, "{banks}");
    // A key of no bank stalls its own partition, and no other.
    attacker.write("memory", 1, Some(b""), Some(b"junk"));
    let ready = || http.send_text("GET", "/ready", "", b"").1;
    wait(&ready, || ready().contains("memory partition 1 stands still"));
    others_go_on(&http, &home, &[&here], "fourth");
    assert_eq!(ask(&http, &there, &Value::Null, 60_000), 200, "the bank beside it answers from what was read");
    assert!(!home.told().contains("panicked"), "{}", home.told());
    drop(service);
}

/// Words that are stored in one Unicode form are found and forgotten in another.
#[test]
fn words_are_forgotten_in_whatever_form_they_were_written() {
    let _turn = turn();
    let name = "kafka_attacks::words_are_forgotten_in_whatever_form_they_were_written";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "forms", "", HTTP);
    let _service = home.run();
    let http = http_of(&home, 1);
    let bank = bank_in(0);
    // "José" and "한국" composed, and decomposed.
    let (composed, decomposed) =
        ("Jos\u{e9} \u{d55c}\u{ad6d}", "Jose\u{301} \u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}");
    let turn = |id: &str, speaker: &str, text: &str| json!({"bank": bank, "turn": id, "speaker": speaker, "text": text, "time": "2026-03-01T09:00:00Z"});
    let turns = [
        turn("1", decomposed, "The ferry leaves at noon."),
        turn("2", "Ann", &format!("I met {decomposed} at the ferry.")),
        turn("3", "Ann", &format!("I met {composed} at the station.")),
        turn("4", "Ann", "The \u{c4}RZTE meet at noon."),
        turn("5", "Ann", "The station is closed."),
    ];
    assert_eq!(http.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}))["reflected"], true);
    let select = |select: Value| {
        let body = json!({"bank": bank, "select": select, "wait_ms": 60_000});
        http.post("/v1/forget", &body)["turns"].clone()
    };
    assert_eq!(select(json!({"speakers": [composed], "mentions": [composed]})), 3, "{}", home.told());
    assert_eq!(select(json!({"mentions": ["\u{e4}rzte"]})), 1);
    let left = http.get(&format!("/v1/turns?bank={bank}"))["turns"].clone();
    let ids: Vec<&str> = left.as_array().unwrap().iter().filter_map(|turn| turn["turn"].as_str()).collect();
    assert_eq!(ids, ["5"]);
}

/// Megabytes of turns in one bank: another bank of the same partition is remembered, answered and forgotten meanwhile,
/// and an orderly end loses nothing.
#[test]
fn huge_turns_of_one_bank_stop_no_other_bank_of_its_partition() {
    let _turn = turn();
    let name = "kafka_attacks::huge_turns_of_one_bank_stop_no_other_bank_of_its_partition";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "huge", "", HTTP);
    let service = home.run();
    let mut http = http_of(&home, 1);
    let banks: Vec<String> = (0..).map(|n| format!("b{n}")).filter(|bank| in_partition_0(bank)).take(2).collect();
    let (huge, small) = (banks[0].as_str(), banks[1].as_str());
    let most = std::env::var("RIPPLEMEM_HUGE_TURNS").map_or(4, |turns| turns.parse().unwrap());
    for n in 0..most {
        let text = format!("Note {n}: the keeper wrote that the gate was shut at dusk. ").repeat(3_000);
        let turn = json!({"bank": huge, "turn": n.to_string(), "speaker": "Bo", "text": text,
            "time": "2026-03-01T09:00:00Z"});
        http.post("/v1/turns", &json!({"turns": [turn]}));
    }
    others_go_on(&http, &home, &[small], "beside");
    assert_eq!(forget(&http, small, "beside")["gone"], true, "{}", home.told());
    service.stop();
    let _service = home.run();
    http = http_of(&home, 2);
    others_go_on(&http, &home, &[small], "after");
    let held = || http.get(&format!("/v1/turns?bank={huge}&limit=100"))["turns"].as_array().map_or(0, Vec::len);
    wait(&|| home.told(), || held() == most);
}

fn in_partition_0(bank: &str) -> bool {
    logs::partition_of(&types::model::Bank::parse(bank).unwrap(), 2) == 0
}

/// A request with thousands of names is refused, over HTTP and by a topic, and storms of reads in one bank do not keep
/// questions of another from their answers.
#[test]
fn thousands_of_names_are_refused_and_storms_of_reads_leave_others_their_answers() {
    let _turn = turn();
    let name = "kafka_attacks::thousands_of_names_are_refused_and_storms_of_reads_leave_others_their_answers";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "storm", "", HTTP);
    let _service = home.run();
    let http = http_of(&home, 1);
    let (here, there) = (bank_in(0), bank_in(1));
    others_go_on(&http, &home, &[&here, &there], "first");
    let names: Vec<String> = (0..200_000).map(|n| format!("name {n}")).collect();
    for field in ["speakers", "mentions"] {
        let body = json!({"bank": here, "select": {field: names}, "dry_run": true}).to_string();
        let (status, _, problem) = http.send("POST", "/v1/forget", "", body.as_bytes());
        assert!((400..500).contains(&status), "{field}: {status} {problem}");
    }
    let mut client = Client::new(&broker, "storm");
    let few: Vec<&String> = names.iter().take(50_000).collect();
    let id = client.forget(&here, &json!({"bank": here, "select": {"mentions": few}}).to_string());
    let refused = client.reply(id, PATIENCE);
    assert_eq!(refused["code"], "invalid", "{refused}");

    let (is_over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for path in ["/v1/bank?bank=", "/v1/digest?bank=", "/v1/graph?bank="].into_iter().cycle().take(24) {
            let (http, here, is_over, reads) = (&http, &here, &is_over, &reads);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // Some are refused while too many wait.
                    http.send("GET", &format!("{path}{here}"), "", b"");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let before = reads.load(Ordering::Relaxed);
        for n in 0..5 {
            others_go_on(&http, &home, &[&there], &format!("beside-{n}"));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(reads.load(Ordering::Relaxed) > before, "no storm");
    });
}

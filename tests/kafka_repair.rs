//! Records of our own topics that cannot be read, on a running service: their partition waits, or their bank is
//! quarantined, and is named; the others go on, and what an operator writes instead ends it.

use std::time::Duration;

use logs::{Log, Topic, partition_of};
use rdkafka::{
    ClientConfig,
    producer::{BaseProducer, BaseRecord, Producer},
};
use serde_json::{Value, json};
use types::model::{Bank, MemoryKey};

use super::{
    broker_process::Broker,
    http_service::HttpClient,
    kafka::{Home, turn, wait},
    kafka_http::http_of,
    support::ripplemem,
};

const HTTP: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";

/// Writes a record without being the owner, as anybody with rights in the topics may.
fn junk(broker: &Broker, topic: &str, partition: u32, key: &[u8], value: Option<&str>) {
    let mut config = ClientConfig::new();
    let producer: BaseProducer = config.set("bootstrap.servers", broker.bootstrap()).create().unwrap();
    let record = BaseRecord::to(topic).partition(partition as i32).key(key);
    let record = value.iter().fold(record, |record, value| record.payload(value.as_bytes()));
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(Duration::from_secs(60)).unwrap();
}

pub(crate) fn bank_in(partition: u32) -> String {
    (0..).map(|n| format!("b{n}")).find(|bank| partition_of(&Bank::parse(bank).unwrap(), 2) == partition).unwrap()
}

pub(crate) fn put(http: &HttpClient, bank: &str, id: &str) -> Value {
    let turn = json!({"bank": bank, "turn": id, "speaker": "Ann", "text": format!("The red kayak {id} is in the boathouse"),
        "time": "2024-05-06T09:00:00Z"});
    http.post("/v1/turns", &json!({"turns": [turn]}))["after"].clone()
}

/// The status of a question whose answer must reflect this turn.
pub(crate) fn ask(http: &HttpClient, bank: &str, after: &Value, timeout_ms: u64) -> u16 {
    let body = json!({"bank": bank, "text": "Where is the kayak?", "after": after, "timeout_ms": timeout_ms});
    http.send("POST", "/v1/ask", "", body.to_string().as_bytes()).0
}

#[test]
fn a_record_that_cannot_be_read_stops_its_partition_until_it_is_repaired() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_repair::a_record_that_cannot_be_read_stops_its_partition") else { return };
    let home = Home::with(&broker, "repair", "", HTTP);
    let mut service = home.run();
    let mut http = http_of(&home, 1);
    let (sick, well) = (bank_in(1), bank_in(0));
    for bank in [&sick, &well] {
        let after = put(&http, bank, "first");
        assert_eq!(ask(&http, bank, &after, 120_000), 200, "{}", home.told());
    }
    let repair = |arguments: &[&str]| {
        let output = ripplemem(&[&["repair", "--pipeline", home.path()], arguments].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(repair(&[]), (Some(0), String::new()));
    let ready = |http: &HttpClient| http.send_text("GET", "/ready", "", b"");
    let keys: [(&[u8], &str); 3] =
        [(b"\xff\xfe", "a record of the memory"), (b"\0\0junk", "turns/"), (b"\0\0\0\0\0\x01", "turns/1")];
    for (round, (key, what)) in keys.into_iter().enumerate() {
        // Nobody writes a position meanwhile: extraction is given up, and goes on from what is written here.
        service.stop();
        junk(&broker, "repair.memory", 1, key, Some("junk"));
        service = home.run();
        http = http_of(&home, round + 2);
        wait(&|| format!("{:?}", ready(&http)), || ready(&http).1.contains("memory partition 1 stands still"));
        assert_eq!(ready(&http).0, 200, "the other partition answers");
        let after = put(&http, &well, &format!("well-{round}"));
        assert_eq!(ask(&http, &well, &after, 120_000), 200, "{}", home.told());
        let metric = || http.send_text("GET", "/metrics", "", b"").1;
        wait(&metric, || metric().contains("ripplemem_shard_waiting{partition=\"1\"} 1"));
        let problem = || http.get("/v1/status")["problem"].to_string();
        wait(&problem, || problem().contains("partition 1"));
        let after = put(&http, &sick, &format!("sick-{round}"));
        assert_eq!(ask(&http, &sick, &after, 1_000), 504, "its new turns wait");
        assert_eq!(ask(&http, &sick, &Value::Null, 60_000), 200, "and its old ones are answered");

        let (code, listed) = repair(&[]);
        let name = listed.split(':').next().unwrap().to_owned();
        assert!(code == Some(3) && name.starts_with("repair.memory/1/") && listed.contains(what), "{listed}");
        let (_, line) = repair(&["--json"]);
        let line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
        assert_eq!((&line["record"], &line["value"]), (&json!(name), &json!("junk")));
        let (code, told) = repair(&["--record", &name]);
        assert!(code == Some(1) && told.contains("--value") && told.contains("--remove"), "{told}");
        let is_position = round == 2;
        if is_position {
            assert_eq!(repair(&["--record", &name, "--remove"]).0, Some(1), "a position is never removed");
            let example = line["remedy"].as_str().unwrap();
            let example = &example[example.find('{').unwrap()..=example.find('}').unwrap()];
            assert_eq!(repair(&["--record", &name, "--value", example]).0, Some(0));
        } else {
            assert_eq!(repair(&["--record", &name, "--remove"]).0, Some(0));
        }
        assert_eq!(repair(&[]), (Some(0), String::new()));
        assert_eq!(ask(&http, &sick, &after, 120_000), 200, "{}", home.told());
        wait(&|| format!("{:?}", ready(&http)), || ready(&http).1 == "ready\n");
    }
    let told = home.told();
    assert!(told.contains("the read position of turns/1 cannot be read") && !told.contains("6 bytes"), "{told}");
    // Values of memory records: one that no build reads, and one of a newer build.
    let records = home.log().read(Topic::Memory, 1, 0, 10_000).unwrap().records;
    let is_of_sick = |key: &[u8]| MemoryKey::from_bytes(key).is_ok_and(|key| key.bank.as_str() == sick);
    let key = records.into_iter().rfind(|of| of.value.is_some() && is_of_sick(&of.key)).unwrap().key;
    junk(&broker, "repair.memory", 1, &key, Some("junk"));
    let asked = || ask(&http, &sick, &Value::Null, 60_000);
    wait(&|| home.told(), || asked() == 409);
    let forget = json!({"bank": sick, "select": {"all": true}, "dry_run": true}).to_string();
    let listing = format!("/v1/turns?bank={sick}");
    for (method, path, body) in [("POST", "/v1/forget", forget.as_str()), ("GET", listing.as_str(), "")] {
        let (status, _, problem) = http.send(method, path, "", body.as_bytes());
        assert_eq!((status, problem["code"].as_str()), (409, Some("quarantined")), "{path}: {problem}");
    }
    let removed = || {
        let (code, listed) = repair(&[]);
        let name = listed.split(':').next().unwrap().to_owned();
        assert!(code == Some(3) && listed.contains(&format!("of bank {sick}")), "{listed}");
        assert_eq!(repair(&["--record", &name, "--remove"]).0, Some(0));
        assert_eq!(repair(&[]), (Some(0), String::new()));
        name
    };
    removed();
    wait(&|| home.told(), || asked() != 409);
    junk(&broker, "repair.memory", 1, &key, Some("{\"schema\": 99}"));
    wait(&|| format!("{:?}", ready(&http)), || ready(&http).1.contains("memory partition 1 stands still"));
    let still = ready(&http).1;
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(ready(&http).1, still, "it goes on standing still");
    }
    assert_eq!(home.told().matches("schema 99 is newer").count(), 1, "{}", home.told());
    let name = removed();
    let offset = name.rsplit('/').next().unwrap();
    assert!(still.contains(&format!("before offset {offset}:")), "{name}: {still}");
    wait(&|| format!("{:?}", ready(&http)), || ready(&http).1 == "ready\n");
    service.stop();
}

/// The turns of a record that cannot be read are applied again from the turns topic, those that were written on a
/// condition at the place where the condition was decided.
#[test]
fn turns_with_conditions_are_known_again_though_their_record_cannot_be_read() {
    let _turn = turn();
    let name = "kafka_repair::turns_with_conditions_are_known_again_though_their_record_cannot_be_read";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "conditions-again", "", HTTP);
    let service = home.run();
    let http = http_of(&home, 1);
    let bank = bank_in(1);
    let turns = |ids: &[&str], more: Value| {
        let one = |id: &&str| {
            let mut one = json!({"bank": bank, "turn": id, "session": "s", "speaker": "Ann",
                "text": format!("The red kayak {id} is in the boathouse"), "time": "2024-05-06T09:00:00Z"});
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            one
        };
        json!({"turns": ids.iter().map(one).collect::<Vec<_>>(), "wait_ms": 60_000})
    };
    http.post("/v1/turns", &turns(&["1"], json!({"expected_version": 0})));
    http.post("/v1/turns", &turns(&["2", "3"], json!({"version": "next"})));
    http.post("/v1/turns", &turns(&["4"], json!({})));
    let listed = |http: &HttpClient| http.get(&format!("/v1/turns?bank={bank}&limit=100"));
    let ids = |listed: &Value| -> Vec<String> {
        listed["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_str().unwrap().to_owned()).collect()
    };
    wait(&|| listed(&http).to_string(), || ids(&listed(&http)).len() == 4);
    let before = ids(&listed(&http));
    service.stop();
    // The record of one open turn that had a condition.
    let records = home.log().read(Topic::Memory, 1, 0, 10_000).unwrap().records;
    let of_turn = |record: &&logs::LogRecord| {
        MemoryKey::from_bytes(&record.key)
            .is_ok_and(|key| key.bank.as_str() == bank && key.turn.as_deref() == Some("2"))
    };
    let key = records.iter().rfind(of_turn).unwrap().key.clone();
    junk(&broker, "conditions-again.memory", 1, &key, Some("{"));
    let service = home.run();
    let http = http_of(&home, 2);
    http.post("/v1/turns", &turns(&["5"], json!({})));
    let end = json!({"turns": [{"type": "session_end", "bank": bank, "session": "s"}]});
    http.post("/v1/turns", &end);
    let known = || http.send_text("GET", &format!("/v1/turns?bank={bank}&limit=100"), "", b"");
    wait(&|| format!("{:?} {}", known(), home.told()), || known().0 == 200 && known().1.contains("kayak 5"));
    let mut after = ids(&listed(&http));
    after.retain(|id| id != "5");
    assert_eq!(after, before, "{}", home.told());
    assert!(!home.told().contains("are lost"), "{}", home.told());
    service.stop();
}

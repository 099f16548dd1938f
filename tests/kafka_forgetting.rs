//! Forgetting on a service whose log is on Kafka: by a selector over HTTP, by a record of the topic of requests, from
//! the command line, after a crash, and by rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use erasure::ForgetOperation;
use logs::{Log, LogRecord, Topic, partition_of};
use serde_json::{Value, json};
use types::model::Bank;

use super::{
    broker_process::Broker,
    http_service::HttpClient,
    kafka::{Home, turn, turns, wait},
    kafka_http::http_of,
    question_client::Client,
    support::{census, open, pipeline, ripplemem},
};

/// Topics with a retention, HTTP, and a bank that is held.
const SETTINGS: &str = "turns_retention_hours = 24\ndead_letters_retention_hours = 48\n\
    [http]\nlisten = \"127.0.0.1:0\"\n[[hold]]\nbank = \"held\"\nreason = \"case 7\"\n";
const HOUR_SECONDS: i64 = 3_600;

/// Turns of a bank as they are said: id, speaker, words.
const SAID: [(&str, &str, &str); 7] = [
    ("1", "Ann Lee", "The red kayak is stored in the boathouse."),
    ("2", "Bo", "The green canoe is stored in the shed."),
    ("3", "Ann Lee", "The kayak needs a new paddle."),
    ("4", "Bo", "The canoe needs paint."),
    ("5", "Ann Lee", "The kayak race is in June."),
    ("6", "Cy", "The ferry leaves at noon."),
    ("7", "Cy", "The ferry is late today."),
];

fn said(bank: &str) -> Value {
    let turn = |(minute, (id, speaker, text)): (usize, &(&str, &str, &str))| {
        json!({"bank": bank, "turn": id, "speaker": speaker, "text": text,
            "time": format!("2024-05-06T09:{minute:02}:00Z"), "session": "s"})
    };
    json!({"turns": SAID.iter().enumerate().map(turn).collect::<Vec<_>>(), "wait_ms": 60_000})
}

/// The ids on a page of turns, and the cursor of the next page.
fn page(http: &HttpClient, query: &str) -> (Vec<String>, Option<String>) {
    let listed = http.get(&format!("/v1/turns?bank=b{query}"));
    let id = |turn: &Value| turn["turn"].as_str().unwrap().to_owned();
    (listed["turns"].as_array().unwrap().iter().map(id).collect(), listed["next"].as_str().map(str::to_owned))
}

fn context(http: &HttpClient, text: &str) -> String {
    let answer = http.post("/v1/ask", &json!({"bank": "b", "text": text, "timeout_ms": 60_000}));
    answer["context"].as_str().unwrap().to_owned()
}

fn seconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

#[test]
fn what_is_selected_is_forgotten_over_http_by_a_topic_and_after_a_kill() {
    let _turn = turn();
    let name = "kafka_forgetting::what_is_selected_is_forgotten_over_http_by_a_topic_and_after_a_kill";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "forgets", "", SETTINGS);
    let service = home.run();
    let http = http_of(&home, 1);
    for bank in ["b", "held"] {
        assert_eq!(http.post("/v1/turns", &said(bank))["reflected"], true, "{}", home.told());
    }

    // Pages of all turns, the latest first, each once; a selector narrows them.
    let (first, next) = page(&http, "&limit=3");
    let (second, after) = page(&http, &format!("&limit=3&before={}", next.unwrap()));
    let (third, end) = page(&http, &format!("&limit=3&before={}", after.unwrap()));
    assert_eq!([first, second, third].concat(), ["7", "6", "5", "4", "3", "2", "1"]);
    assert_eq!(end, None);
    assert_eq!(page(&http, "&speaker=ann+lee").0, ["5", "3", "1"]);
    assert_eq!(page(&http, "&mentions=canoe").0, ["4", "2"]);
    assert_eq!(page(&http, "&speaker=Ann+Lee&until=2024-05-06T09:02:00Z").0, ["1"]);
    let output = ripplemem(&["turns", "--bank", "b", "--speaker", "Bo", "--json", "--pipeline", home.path()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().count() == 2 && text.contains("green canoe"), "{}", String::from_utf8_lossy(&output.stderr));

    // A dry run, and then exactly its turns.
    let mut forget = json!({"bank": "b", "select": {"speakers": ["ANN LEE"]}, "dry_run": true, "wait_ms": 60_000});
    let meant = http.post("/v1/forget", &forget);
    assert_eq!((&meant["turns"], meant["shown"].as_array().unwrap().len()), (&json!(3), 3), "{meant}");
    assert!(context(&http, "Where is the red kayak?").contains("boathouse"));
    forget["dry_run"] = json!(false);
    forget["confirm"] = json!("other");
    assert_eq!(http.send("POST", "/v1/forget", "", forget.to_string().as_bytes()).0, 400);
    forget["confirm"] = meant["confirm"].clone();
    let forgotten = http.post("/v1/forget", &forget);
    assert_eq!((&forgotten["gone"], &forgotten["turns"]), (&json!(true), &json!(3)), "{forgotten} {}", home.told());
    let receipt = &forgotten["receipt"];
    assert_eq!((&receipt["stage"], &receipt["turns"]), (&json!("rebuilt"), &json!(3)), "{receipt}");
    // The longest is the retention of the dead letters and a sixth of it for the segment, and minutes of the broker.
    let hours = (seconds(&receipt["due"]) - seconds(&receipt["hidden"])) / HOUR_SECONDS;
    assert!(receipt["never"].is_null() && (56..57).contains(&hours), "{receipt}");
    assert_eq!(page(&http, "").0, ["7", "6", "4", "2"]);
    assert!(!context(&http, "Where is the red kayak?").contains("kayak is"));
    assert_eq!(http.get("/v1/forgets?bank=b")["forgets"][0]["operation"], receipt["operation"]);
    // What was deleted stays away, and an explanation says that it was deleted.
    http.post("/v1/turns", &said("b"));
    let explain = json!({"bank": "b", "text": "Where is the red kayak?", "turn": "1", "timeout_ms": 60_000});
    let explained = http.post("/v1/explain", &explain);
    assert_eq!((&explained["failed"], &explained["steps"][0]["state"]), (&json!("stored"), &json!("failed")));

    // Somebody who speaks in many windows: what others said there is back in the end.
    let turn = |n: usize| {
        let speaker = if n.is_multiple_of(10) { "Dee" } else { ["Bo", "Cy"][n % 2] };
        let time = format!("2024-05-07T{:02}:{:02}:00Z", n / 60, n % 60);
        json!({"bank": "many", "turn": n.to_string(), "speaker": speaker, "time": time, "session": "s",
            "text": format!("The boat number {n} has a red sail.")})
    };
    http.post("/v1/turns", &json!({"turns": (0..400).map(turn).collect::<Vec<_>>(), "wait_ms": 60_000}));
    let mut forget = json!({"bank": "many", "select": {"speakers": ["Dee"]}, "dry_run": true, "wait_ms": 60_000});
    let confirm = http.post("/v1/forget", &forget)["confirm"].clone();
    (forget["dry_run"], forget["confirm"]) = (json!(false), confirm);
    let forgotten = http.post("/v1/forget", &forget);
    assert_eq!((&forgotten["gone"], &forgotten["turns"]), (&json!(true), &json!(40)), "{forgotten} {}", home.told());
    let stage = || http.get("/v1/forgets?bank=many")["forgets"][0]["stage"].clone();
    wait(&|| home.told(), || stage() == "rebuilt");
    for n in [11, 111, 211, 311] {
        let question =
            json!({"bank": "many", "text": format!("What sail has the boat number {n}?"), "timeout_ms": 60_000});
        let answer = http.post("/v1/ask", &question);
        let context = answer["context"].as_str().unwrap();
        assert!(context.contains(&format!("number {n} has")) && !context.contains("Dee"), "{context}");
    }

    // Records of the topic: a request, the same again, one that cannot be read, and one for a bank that is held.
    let mut client = Client::new(&broker, "forgets");
    let request = r#"{"bank": "b", "select": {"mentions": ["canoe"]}, "wait_ms": 60000}"#;
    let (id, bad) = (client.forget("b", request), client.forget("b", "{"));
    let held = client.forget("held", r#"{"bank": "held", "select": {"all": true}}"#);
    let answer = client.reply(id, Duration::from_secs(120));
    assert_eq!((&answer["turns"], &answer["gone"]), (&json!(2), &json!(true)), "{answer} {}", home.told());
    assert_eq!(answer["receipt"]["stage"], "rebuilt");
    assert_eq!(client.reply(bad, Duration::from_secs(60))["code"], "invalid");
    let refusal = client.reply(held, Duration::from_secs(60));
    assert!(refusal["code"] == "held" && refusal["message"].as_str().unwrap().contains("case 7"), "{refusal}");
    let again = client.forget("b", request);
    assert_eq!(client.reply(again, Duration::from_secs(60))["turns"], 0);
    assert_eq!(page(&http, "").0, ["7", "6"]);

    // A service that is killed once an operation is durable, and before its deletions are.
    service.kill();
    let operation = "0".repeat(32);
    let accepted = ForgetOperation {
        operation: operation.clone(),
        bank: Bank::parse("b").unwrap(),
        turns: 1,
        requested_ms: jiff::Timestamp::now().as_millisecond(),
        due_ms: None,
        after: None,
        hidden_ms: None,
        rebuilt_ms: None,
        erased: None,
        retention: None,
        dead_letters: None,
    };
    let left = (format!("forget-turns {operation} 00000000"), Some(br#"["6"]"#.to_vec()));
    let pending = (format!("forget {operation}"), Some(serde_json::to_vec(&accepted).unwrap()));
    home.log().append_with_entries(&[], vec![left, pending]).unwrap();
    let _service = home.run();
    let http = http_of(&home, 2);
    let of_operation = |receipts: &Value| {
        let receipts = receipts["forgets"].as_array().unwrap();
        receipts.iter().find(|receipt| receipt["operation"] == operation.as_str()).unwrap()["stage"].clone()
    };
    wait(&|| home.told(), || of_operation(&http.get("/v1/forgets")) == "rebuilt");
    assert_eq!(page(&http, "").0, ["7"]);
    // An operation that has reached its last stage is not checked again.
    let entries = |prefix: &str| home.log().entries(prefix).unwrap().len();
    assert_eq!((entries("forget "), entries("forgotten ")), (0, 4));
    let output = ripplemem(&["forget", "--list", "--bank", "b", "--json", "--pipeline", home.path()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3, "{output:?}");
    let output = ripplemem(&["validate", home.path(), "--topics"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("leave the topics within 57 hours"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// What metadata select is out of lists and answers with the answer to the request, and then no live record holds it.
#[test]
fn what_is_selected_by_metadata_is_hidden_at_once_and_in_no_last_record() {
    let _turn = turn();
    let name = "kafka_forgetting::what_is_selected_by_metadata_is_hidden_at_once_and_in_no_last_record";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "forgets-metadata", "", SETTINGS);
    let service = home.run();
    let http = http_of(&home, 1);
    let mut turns = said("b");
    for (at, turn) in turns["turns"].as_array_mut().unwrap().iter_mut().enumerate() {
        // The sessions of the kayak are forgotten whole, the other one is open.
        let topic = ["kayak", "canoe", "kayak", "canoe", "kayak", "ferry", "ferry"][at];
        turn["metadata"] = json!({ "topic": topic, "note": format!("a note on a {topic}") });
        turn["session"] = json!(if topic == "kayak" { "k" } else { "s" });
    }
    assert_eq!(http.post("/v1/turns", &turns)["reflected"], true, "{}", home.told());
    let bank = Bank::parse("b").unwrap();
    // How many keys of the memory topic have ever had a record with a text, and how many have one now: what compaction
    // keeps of each key is its last record.
    let records = |text: &str| {
        let log = home.log();
        let partition = partition_of(&bank, log.partitions());
        let end = log.end(Topic::Memory, partition).unwrap();
        let (mut all, mut next): (Vec<LogRecord>, u64) = (Vec::new(), 0);
        while next < end {
            let read = log.read(Topic::Memory, partition, next, 1_000).unwrap();
            all.extend(read.records);
            // Behind the last record lies the marker of its transaction.
            if read.next == next {
                break;
            }
            next = read.next;
        }
        let holds = |record: &&LogRecord| {
            record.value.as_ref().is_some_and(|value| String::from_utf8_lossy(value).contains(text))
        };
        let ever: BTreeSet<Vec<u8>> = all.iter().filter(holds).map(|record| record.key.clone()).collect();
        let last: BTreeMap<&[u8], &LogRecord> = all.iter().map(|record| (&*record.key, record)).collect();
        let now = last.values().copied().filter(|record| holds(record)).count();
        (ever.len(), now)
    };
    for text in ["a note on a kayak", "boathouse"] {
        let (ever, now) = records(text);
        assert!(ever > 0 && now > 0, "{text}: {ever} {now}");
    }
    // Answers on Kafka have metadata where their questions ask for them.
    let mut client = Client::new(&broker, "forgets-metadata");
    for asks in [true, false] {
        let question = json!({ "bank": "b", "text": "Where is the red kayak?", "metadata": asks });
        let id = client.ask_whole("b", &question);
        let answer = client.reply(id, Duration::from_secs(120)).to_string();
        assert!(answer.contains("boathouse") && answer.contains("a note on a kayak") == asks, "{answer}");
    }
    let which = json!({ "path": ["topic"], "eq": "kayak" });
    let forget = json!({ "bank": "b", "where": { "metadata": which }, "wait_ms": 60_000 });
    let forgotten = http.post("/v1/forget", &forget);
    assert_eq!((&forgotten["turns"], &forgotten["gone"]), (&json!(3), &json!(true)), "{forgotten} {}", home.told());
    // Hidden with this answer: in lists, by the same selector, and in answers.
    assert_eq!(page(&http, "").0, ["7", "6", "4", "2"]);
    let rest = json!({ "bank": "b", "where": { "metadata": { "path": ["topic"], "exists": true } } });
    assert_eq!(http.post("/v1/turns/list", &rest)["turns"].as_array().unwrap().len(), 4);
    assert!(!context(&http, "Where is the red kayak?").contains("boathouse"));
    assert!(context(&http, "Where is the green canoe?").contains("shed"));
    for text in ["a note on a kayak", "boathouse"] {
        let (ever, now) = records(text);
        assert!(ever > 0 && now == 0, "{text}: in {ever} records, still in {now}");
    }
    assert!(records("a note on a ferry").1 > 0);
    service.stop();
}

#[test]
fn a_rule_deletes_what_it_does_not_keep_and_a_replay_gives_the_same() {
    let _turn = turn();
    let name = "kafka_forgetting::a_rule_deletes_what_it_does_not_keep_and_a_replay_gives_the_same";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "retention", "", SETTINGS);
    let command = |arguments: &[&str]| {
        let output = ripplemem(&[&["retention", "--pipeline", home.path()][..], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let service = home.run();
    let http = http_of(&home, 1);
    for bank in ["b", "held"] {
        assert_eq!(http.post("/v1/turns", &said(bank))["reflected"], true, "{}", home.told());
    }
    assert!(http.get("/v1/status")["retention"].is_null());
    service.stop();

    // A count deletes nothing; a service that starts with the rule deletes all but the last three.
    home.change("[[hold]]", "[[retention]]\nbank = \"*\"\nkeep = { turns = 3 }\n[[hold]]");
    assert_eq!(command(&["--dry-run"]), "bank b: 4 turns would go by rule 1\n");
    let service = home.run();
    let http = http_of(&home, 2);
    wait(&|| home.told(), || http.get("/v1/status")["retention"]["deleted_turns"] == 4);
    wait(&|| home.told(), || page(&http, "").0 == ["7", "6", "5"]);
    let receipts = http.get("/v1/forgets")["forgets"].clone();
    let receipt = &receipts[0];
    assert_eq!(receipts.as_array().unwrap().len(), 1, "{receipts}");
    assert_eq!((&receipt["bank"], &receipt["turns"]), (&json!("b"), &json!(4)), "{receipt}");
    assert_eq!(receipt["retention"], json!({"bank": "*", "rule": 1}));
    assert_eq!(http.get("/v1/turns?bank=held")["turns"].as_array().unwrap().len(), SAID.len());

    // The command, beside the service, by a rule that keeps less.
    home.change("turns = 3", "turns = 2");
    let deleted: Value = serde_json::from_str(&command(&["--json"])).unwrap();
    assert_eq!(deleted, json!({"bank": "b", "rule": 1, "turns": 1, "deleted": true}));
    wait(&|| home.told(), || page(&http, "").0 == ["7", "6"]);
    assert_eq!(command(&[]), "every turn is kept\n");
    service.stop();

    // A memory without rules that reads the same log of turns.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut made_again = open(&pipeline(elsewhere.path(), "embed.read_turns = 16"));
    made_again.log().append_turns(&turns(&home.log())).unwrap();
    made_again.catch_up().unwrap();
    assert_eq!(home.census(), census(&made_again), "{}", home.told());
}

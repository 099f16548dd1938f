//! HTTP below `/v1`, against the real listener of a process of its own.

use std::{
    collections::BTreeSet,
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use logs::Topic;
use serde_json::{Value, json};
use types::{
    config::Pipeline,
    model::{Evidence, TurnEvent},
};

use super::{
    http_service::{HttpClient, HttpService, answer, pipeline_file, questions_wait},
    oracle::Dice,
    support::{ask, census, data, fails, ingest, open, pipeline, ripplemem, write},
};

fn turn(bank: &str, id: usize, text: &str) -> Value {
    let time = format!("2024-05-01T{:02}:{:02}:00Z", id / 60 % 24, id % 60);
    json!({"bank": bank, "turn": id.to_string(), "speaker": "Ann", "text": text, "time": time, "session": "s"})
}

fn question(bank: &str, text: &str) -> Value {
    json!({"bank": bank, "text": text})
}

#[test]
fn turns_are_put_asked_for_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 4");
    let service = HttpService::of(home.path());
    let turns = json!({"turns": [
        turn("a/b", 1, "The red kayak is stored in the boathouse"),
        turn("a/b", 2, "My sister plays the bassoon"),
        turn("c", 1, "The ferry leaves at noon"),
    ]});
    let written = service.post("/v1/turns", &turns);
    assert_eq!(written["turns"], 3);
    let mut asked = question("a/b", "Where is the red kayak?");
    asked["after"] = written["after"].clone();
    let evidence: Evidence = serde_json::from_value(service.post("/v1/ask", &asked)).unwrap();
    assert!(evidence.context.contains("boathouse"), "{}", evidence.context);
    assert_eq!(evidence.question.bank.as_str(), "a/b", "the bank that was searched");
    assert!(evidence.reflects.iter().any(|at| at.topic == "turns" && at.next_offset >= 2), "{:?}", evidence.reflects);
    let after = written["after"].as_str().unwrap();
    let digest = service.get(&format!("/v1/digest?bank=a/b&after={after}"));
    assert_eq!((&digest["bank"], digest["units"].as_u64() > Some(0)), (&json!("a/b"), true), "{digest}");
    assert_eq!(service.get("/v1/banks"), json!({"banks": ["a/b", "c"]}));
    let [one, other, all] = ["?bank=a/b", "?bank=c", ""].map(|of| service.get(&format!("/v1/stats{of}")));
    let [one, other, all] = [one, other, all].map(|stats| {
        let parts = stats["parts"].as_object().unwrap();
        let bytes: u64 =
            parts.iter().filter(|(name, _)| name.ends_with("_bytes")).map(|(_, n)| n.as_u64().unwrap()).sum();
        assert_eq!(stats["bytes"].as_u64(), Some(bytes), "{stats}");
        assert!(parts["vector_bytes"].as_u64() > Some(100) && parts["text_bytes"].as_u64() > Some(100), "{stats}");
        (parts["units"].as_u64().unwrap(), bytes)
    });
    assert_eq!((one.0 + other.0, one.1 + other.1), all, "all banks are the sum");
    let whole = service.get("/v1/digest");
    // The same turns again change nothing, and the answer after them comes.
    let again = service.post("/v1/turns", &turns);
    asked["after"] = again["after"].clone();
    let same: Evidence = serde_json::from_value(service.post("/v1/ask", &asked)).unwrap();
    assert_eq!(same.units, evidence.units);
    assert_eq!(service.get("/v1/digest")["hash"], whole["hash"]);

    let (status, _, forgotten) = service.send("DELETE", "/v1/turns?bank=a%2Fb&turn=1", "", b"");
    assert_eq!((status, &forgotten["gone"], &forgotten["turn"]), (200, &json!(true), &json!("1")), "{forgotten}");
    let later: Evidence = serde_json::from_value(service.post("/v1/ask", &asked)).unwrap();
    assert!(!later.context.contains("boathouse"), "{}", later.context);
    // No redelivery brings it back.
    asked["after"] = service.post("/v1/turns", &turns)["after"].clone();
    let later: Evidence = serde_json::from_value(service.post("/v1/ask", &asked)).unwrap();
    assert!(!later.context.contains("boathouse"), "{}", later.context);
    let status = service.get("/v1/status");
    assert_eq!((&status["behind"], &status["problem"]), (&json!(0), &Value::Null), "{status}");
    assert!(service.stop(), "a signal ends it well");
}

#[test]
fn a_wrong_request_gets_a_problem_that_says_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let after =
        service.post("/v1/turns", &json!({"turns": [turn("b", 1, "The ferry leaves at noon")]}))["after"].clone();
    let before = service.get(&format!("/v1/digest?after={}", after.as_str().unwrap()));
    let port = service.address.rsplit(':').next().unwrap();
    let evil = format!("Host: evil.example:{port}\r\n");
    let put = |turn: Value| json!({"turns": [self::turn("b", 2, "Never written"), turn]}).to_string();
    let ask = |with: Value| {
        let mut asked = question("b", "When does the ferry leave?");
        asked.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        asked.to_string()
    };
    let none = String::new;
    let far = "2024-05-06T09:00:00+25:00";
    let far_turn = json!({"bank": "b", "turn": "4", "speaker": "Ann", "text": "x", "time": far});
    let many = json!({"turns": vec![turn("b", 3, "x"); 10_001]}).to_string();
    let cases: Vec<(&str, &str, &str, String, u16, &str, &str)> = vec![
        ("GET", "/nothing", "", none(), 404, "not_found", "openapi.json"),
        ("PUT", "/v1/turns", "", none(), 405, "method", "openapi.json"),
        ("GET", "/v1/turns", "", none(), 400, "invalid", "bank: missing"),
        ("GET", "/v1/turns?bank=b&limit=0", "", none(), 400, "invalid", "allowed is 1 to 1000"),
        ("GET", "/v1/status", &evil, none(), 403, "forbidden", "Host"),
        ("GET", "/v1/status", "Origin: https://evil.example\r\n", none(), 403, "forbidden", "other sites"),
        ("GET", "/v1/status", "Origin: null\r\n", none(), 403, "forbidden", "other sites"),
        ("POST", "/v1/turns", "", "{".to_owned(), 400, "invalid", "the body is not what this path takes"),
        ("POST", "/v1/turns", "", "{\"turn\": []}".to_owned(), 400, "invalid", "unknown field `turn`"),
        ("POST", "/v1/turns", "", put(json!({"bank": "b"})), 400, "invalid", "turns[1]: missing field"),
        ("POST", "/v1/turns", "", put(turn("../b", 1, "x")), 400, "invalid", "turns[1]: bank: segment"),
        ("POST", "/v1/turns", "", put(turn("b", 1, " ")), 400, "invalid", "text: empty"),
        ("POST", "/v1/turns", "", put(far_turn), 400, "invalid", "turns[1]: time: \"2024-05-06T09:00:00+25:00\""),
        ("GET", "/v1/turns?bank=b&since=2024-05-06T09:00:00%2B25:00", "", none(), 400, "invalid", "-23:59 to +23:59"),
        ("POST", "/v1/turns", "", many, 400, "invalid", "more than 10000"),
        ("POST", "/v1/ask", "", question("secret", "?").to_string(), 400, "invalid", "question: empty"),
        ("POST", "/v1/ask", "", question("b", "").to_string(), 400, "invalid", "question"),
        ("POST", "/v1/ask", "", ask(json!({"after": "here"})), 400, "invalid", "not PARTITION:OFFSET"),
        ("POST", "/v1/ask", "", ask(json!({"after": "7:1"})), 400, "invalid", "names no turn of the partition"),
        ("POST", "/v1/ask", "", ask(json!({"as_of": "then"})), 400, "invalid", "neither an offset nor a time"),
        ("POST", "/v1/ask", "", ask(json!({"timeout_ms": 0})), 400, "invalid", "timeout_ms"),
        ("POST", "/v1/ask", "", ask(json!({"most_tokens": 0})), 400, "invalid", "most_tokens: 0"),
        (
            "POST",
            "/v1/ask",
            "",
            ask(json!({"asked_at": far})),
            400,
            "invalid",
            "asked_at: \"2024-05-06T09:00:00+25:00\"",
        ),
        ("POST", "/v1/ask", "", ask(json!({"after": "0:99", "timeout_ms": 50})), 504, "deadline", "offset 99"),
        ("GET", "/v1/digest?bank=secret", "", none(), 404, "unknown_bank", "bank secret: unknown"),
        ("GET", "/v1/stats?bank=secret", "", none(), 404, "unknown_bank", "bank secret: unknown"),
        ("GET", "/v1/digest?bank=b&bank=c", "", none(), 400, "invalid", "is given twice"),
        ("GET", "/v1/digest?bnk=b", "", none(), 400, "invalid", "\"bnk\""),
        ("GET", "/v1/digest?after=0:99&wait_ms=1", "", none(), 504, "deadline", "0:99"),
        ("DELETE", "/v1/turns?bank=b", "", none(), 400, "invalid", "turn: missing"),
        ("DELETE", "/v1/turns?bank=b&turn=", "", none(), 400, "invalid", "turn: empty"),
        ("DELETE", "/v1/turns?turn=1", "", none(), 400, "invalid", "bank: missing"),
    ];
    for (method, path, headers, body, status, code, word) in cases {
        let (found, kind, problem) = service.send(method, path, headers, body.as_bytes());
        let what = format!("{method} {path} {headers}: {problem}");
        assert_eq!((found, kind.as_str()), (status, "application/problem+json"), "{what}");
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{what}");
        assert_eq!(problem["type"], format!("urn:ripplemem:{code}"), "{what}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{word:?}: {what}");
        assert!(code != "unknown_bank" || !detail.contains("known: b"), "no other bank is named: {what}");
    }
    let (status, _, problem) = service.send("POST", "/v1/turns", "", &vec![b' '; (8 << 20) + 1]);
    assert_eq!((status, &problem["code"]), (413, &json!("too_large")), "{problem}");
    assert_eq!(service.get("/v1/digest")["hash"], before["hash"], "nothing was written");
    assert_eq!(service.get("/v1/status")["after"], after);
    let nulls = ask(json!({"said_before": null, "walk": null, "compare": null, "answer": null, "near": null}));
    let (status, _, evidence) = service.send("POST", "/v1/ask", "", nulls.as_bytes());
    assert_eq!(status, 200, "a field that is null is absent: {evidence}");
    // Names of this machine are its own.
    for host in [format!("Host: localhost:{port}\r\n"), format!("Origin: http://{}\r\n", service.address)] {
        assert_eq!(service.send("GET", "/v1/status", &host, b"").0, 200, "{host}");
    }
}

/// Connections that stay silent, send half a head, half a body, or a body without end.
#[test]
fn slow_and_endless_clients_hold_up_no_other() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let mut open = Vec::new();
    for n in 0..200 {
        let mut stream = service.connect();
        let begun = match n % 4 {
            0 => String::new(),
            1 => format!("POST /v1/turns HTTP/1.1\r\nHost: {}\r\nX-Slow: ", service.address),
            2 => format!("POST /v1/turns HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{", service.address),
            _ => format!("POST /v1/ask HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", service.address),
        };
        stream.write_all(begun.as_bytes()).unwrap();
        open.push(stream);
    }
    // A body without end is cut off at the limit.
    let mut endless = open.remove(3);
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    let mut sent = 0;
    while sent < 64 << 20 && endless.write_all(chunk.as_bytes()).is_ok() {
        sent += 0x1_0000;
    }
    assert!(sent < 64 << 20, "it took everything");
    let written = service.post("/v1/turns", &json!({"turns": [turn("b", 1, "The ferry leaves at noon")]}));
    let mut asked = question("b", "When does the ferry leave?");
    asked["after"] = written["after"].clone();
    assert!(service.post("/v1/ask", &asked)["context"].as_str().unwrap().contains("noon"));
    // Half a head is cut off; half a body is answered with a problem.
    assert!(answer(&mut open[1]).is_none_or(|(status, ..)| status == 408), "half a head");
    assert_eq!(answer(&mut open[2]).map(|(status, ..)| status), Some(408), "half a body");
    assert!(service.stop());
}

/// Output without the times at which turns were stored, which differ between two memories.
fn without_stored_times(printed: &str) -> String {
    let mut parts = printed.split("stored_ms\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "stored_ms\":" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The same output and exit codes as on a memory that nobody serves.
#[test]
fn commands_reach_the_process_that_has_the_directory_open() {
    let (served, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = [pipeline_file(served.path(), ""), pipeline_file(alone.path(), "")];
    let service = HttpService::of(served.path());
    let [there, here] = files.each_ref().map(|file| file.to_str().unwrap());
    let rejected = write(&served.path().join("r.jsonl"), "{\"bank\": \"b\"}\n");
    let sample = data("sample.jsonl");
    let both = |arguments: &[&str]| {
        let [there, here] = [there, here].map(|file| ripplemem(&[arguments, &["--pipeline", file]].concat()));
        let said = String::from_utf8_lossy(&there.stderr).into_owned();
        assert!(said.contains(&service.address), "{arguments:?}: {said}");
        assert_eq!(there.status.code(), here.status.code(), "{arguments:?}: {said}");
        let [there, here] =
            [there, here].map(|output| without_stored_times(&String::from_utf8(output.stdout).unwrap()));
        assert_eq!(there, here, "{arguments:?}");
        there
    };
    assert!(both(&["ingest", "jsonl", sample.to_str().unwrap()]).contains("memory: "));
    let asks = ["ask", "Which books has Marta recommended to Elias?", "--bank", "sample/harbour"];
    assert!(both(&asks).contains("book"));
    both(&[&asks[..], &["--trace"]].concat());
    both(&["digest"]);
    both(&["digest", "--bank", "sample/harbour", "--json"]);
    both(&["forget", "m11", "m 6", "--bank", "sample/harbour"]);
    let marta = ["--bank", "sample/harbour", "--speaker", "marta"];
    assert!(both(&[&["turns", "--limit", "3"], &marta[..]].concat()).lines().count() == 3);
    both(&[&["turns", "--json", "--since", "2024-03-01T00:00:00Z"], &marta[..]].concat());
    let meant = both(&[&["forget", "--dry-run"], &marta[..]].concat());
    assert!(meant.contains(" turns, the latest of them:"), "{meant}");
    both(&[&["forget"], &marta[..]].concat());
    assert_ne!(both(&[&["turns"], &marta[..]].concat()), "", "nothing is deleted unless somebody agrees");
    assert!(both(&[&["forget", "--yes"], &marta[..]].concat()).ends_with(" turns deleted\n"));
    assert_eq!(both(&[&["turns"], &marta[..]].concat()), "");
    fails(&ripplemem(&["forget", "--bank", "b", "--pipeline", there]), 1, &["nothing is named", "--speaker"]);
    both(&["digest"]);
    both(&["ingest", "jsonl", rejected.to_str().unwrap()]);
    assert!(both(&["ask", "x", "--bank", "nobody"]).contains("bank nobody holds nothing yet"));
    // What it does not serve is refused by name.
    fails(&ripplemem(&["reembed", "--pipeline", there]), 1, &["in use by process"]);
    // A bank is exported beside it; the digest is that of the exported records.
    let digest_of = |pipeline: &str, to: &str| {
        let exported = ripplemem(&["export", "--bank", "sample/harbour", "--to", to, "--pipeline", pipeline]);
        let said = String::from_utf8_lossy(&exported.stderr).into_owned();
        assert!(exported.status.success() && !said.contains("not extracted"), "{said}");
        String::from_utf8(exported.stdout).unwrap().rsplit_once("MB; ").unwrap().1.to_owned()
    };
    let to = served.path().join("x.jsonl");
    assert_eq!(digest_of(there, to.to_str().unwrap()), digest_of(here, alone.path().join("x").to_str().unwrap()));
    let third = tempfile::tempdir().unwrap();
    let file = pipeline_file(third.path(), "");
    let imported = ripplemem(&["import", to.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&imported.stdout).contains("the same digest"), "{imported:?}");
    let unknown = ["export", "--bank", "nobody", "--to", to.to_str().unwrap(), "--pipeline", there];
    fails(&ripplemem(&unknown), 1, &["bank nobody: the log has no record of it"]);
    // The log is read beside it, record by record as it lies in the directory.
    let topics = ["turns", "memory", "dead-letters"];
    let printed = |arguments: &[&str]| {
        let output = ripplemem(&[arguments, &["--pipeline", there]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tables = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [beside, after] = tables.each_ref().map(|directory| directory.path().to_str().unwrap());
    let replay = |topic: &str, to: &str| printed(&["replay", "--topic", topic, "--to", to]);
    let shown = topics.map(|topic| (printed(&["tap", topic]), printed(&["tap", topic, "--last", "2"])));
    let written = topics.map(|topic| replay(topic, beside));
    assert!(shown.iter().all(|(all, last)| all.ends_with(last.as_str()) && last.lines().count() > 0), "{shown:?}");
    assert!(service.stop());
    assert!(ripplemem(&["digest", "--pipeline", there]).status.success(), "the directory is free");
    assert_eq!(topics.map(|topic| (printed(&["tap", topic]), printed(&["tap", topic, "--last", "2"]))), shown);
    for (topic, written) in topics.iter().zip(written) {
        assert_eq!(replay(topic, after).replace(after, beside), written, "{topic}");
        assert!(
            replay(topic, beside).contains(": 0 records read, 0 files more"),
            "{topic}: what is read goes on there"
        );
    }
}

#[test]
fn a_pipeline_with_a_listener_reads_its_source_and_stays() {
    let home = tempfile::tempdir().unwrap();
    let source =
        format!("[http]\nlisten = \"127.0.0.1:0\"\n[source]\nformat = \"jsonl\"\npath = {:?}\n", data("sample.jsonl"));
    let snapshots = "snapshot.directory = \"snapshots\"\n";
    let file = pipeline_file(home.path(), &format!("{snapshots}{source}"));
    let service = HttpService::start(home.path(), &["run", file.to_str().unwrap()]);
    let other = tempfile::tempdir().unwrap();
    let mut alone = open(&pipeline(other.path(), ""));
    ingest(&mut alone, &data("sample.jsonl"));
    let expected = format!("{:032x}", census(&alone).hash);
    let started = Instant::now();
    while service.get("/v1/digest")["hash"] != expected.as_str() {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", service.get("/v1/status"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = "Which books has Marta recommended to Elias?";
    let evidence: Evidence =
        serde_json::from_value(service.post("/v1/ask", &question("sample/harbour", text))).unwrap();
    assert_eq!(evidence.context, ask(&alone, "sample/harbour", text).context);
    assert!(service.stop());
    let shards = home.path().join("snapshots").read_dir().unwrap().map(|shard| shard.unwrap().path().join("manifests"));
    let manifests = shards.filter_map(|manifests| Some(manifests.read_dir().ok()?.count()));
    assert!(manifests.sum::<usize>() > 0, "a snapshot at the end");
}

/// The record of a deletion stays, so that nothing brings the turn back. Such records alone make no bank: not while the
/// service runs, not after a start from a snapshot or from the log.
#[test]
fn a_bank_whose_turns_are_all_deleted_holds_nothing() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "snapshot.directory = \"snapshots\"\n");
    let closed = |bank: &str| json!({"type": "session_end", "bank": bank, "session": "s"});
    let of_session = |bank: &str| {
        let mut turn = turn(bank, 1, "The red kayak is in the boathouse");
        turn["session"] = json!("s");
        turn
    };
    let put = |service: &HttpService, turns: Value| {
        assert_eq!(service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}))["reflected"], true);
    };
    let delete = |service: &HttpService, bank: &str| {
        let path = format!("/v1/turns?bank={bank}&turn=1&wait_ms=60000");
        let (status, _, gone) = service.send("DELETE", &path, "", b"");
        assert_eq!((status, &gone["gone"]), (200, &json!(true)), "{gone}");
    };
    let holds_one = |service: &HttpService, when: &str| {
        assert_eq!(service.get("/v1/banks")["banks"], json!(["held"]), "{when}");
        for bank in ["never/said", "open", "closed"] {
            let asked = question(bank, "Where is the kayak?").to_string();
            let (status, _, answer) = service.send("POST", "/v1/ask", "", asked.as_bytes());
            assert_eq!((status, &answer["notice"]["code"]), (200, &json!("empty_bank")), "{when}: {bank} {answer}");
            assert_eq!((&answer["units"], &answer["supported"]), (&json!([]), &json!(false)), "{when}: {bank}");
            assert!(!answer.to_string().contains("held"), "no other bank is named: {answer}");
            for path in [format!("/v1/bank?bank={bank}"), format!("/v1/digest?bank={bank}")] {
                let (status, _, problem) = service.send("GET", &path, "", b"");
                assert_eq!(
                    (status, &problem["code"]),
                    (404, &json!("unknown_bank")),
                    "{when}: {bank} {path} {problem}"
                );
            }
        }
    };
    let service = HttpService::of(home.path());
    delete(&service, "never/said");
    put(&service, json!([of_session("held"), of_session("open"), of_session("closed"), closed("closed")]));
    assert_eq!(service.get("/v1/banks")["banks"], json!(["closed", "held", "open"]));
    delete(&service, "open");
    delete(&service, "closed");
    holds_one(&service, "while it runs");
    let hash = service.get("/v1/digest")["hash"].clone();
    assert!(service.stop());
    let service = HttpService::of(home.path());
    holds_one(&service, "from a snapshot");
    put(&service, json!([of_session("never/said"), of_session("open"), of_session("closed")]));
    holds_one(&service, "sent again");
    assert!(service.stop());
    std::fs::remove_dir_all(home.path().join("snapshots")).unwrap();
    let service = HttpService::of(home.path());
    holds_one(&service, "from the log");
    assert_eq!(service.get("/v1/digest")["hash"], hash, "the digest is of units and edges, as before");
    put(&service, json!([turn("open", 2, "The green kayak is on the lake")]));
    assert_eq!(service.get("/v1/banks")["banks"], json!(["held", "open"]));
    assert!(service.stop());
}

/// Each would wait for a minute; the listener waits for ten seconds.
#[test]
fn requests_that_wait_are_answered_when_the_service_is_stopped() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    service.post("/v1/turns", &json!({"turns": [turn("b", 1, "The red kayak is in the boathouse")]}));
    let mut asked = question("b", "Where is the kayak?");
    asked["after"] = json!("0:9999");
    asked["timeout_ms"] = json!(60_000);
    let requests = [
        ("POST", "/v1/ask", asked.to_string()),
        ("GET", "/v1/digest?bank=b&after=0:9999&wait_ms=60000", String::new()),
    ];
    let waiting = requests.map(|(method, path, body)| {
        let client = HttpClient { address: service.address.clone() };
        std::thread::spawn(move || client.send(method, path, "", body.as_bytes()))
    });
    questions_wait(&service, "", 1);
    assert!(waiting.iter().all(|request| !request.is_finished()));
    assert!(service.stop());
    for request in waiting {
        let (status, _, problem) = request.join().unwrap();
        assert_eq!((status, &problem["code"]), (503, &json!("stopping")), "{problem}");
    }
}

/// The command uses the token that only the service's own user can read.
#[test]
fn a_snapshot_beside_a_service_is_written_by_the_service() {
    let home = tempfile::tempdir().unwrap();
    let more = "snapshot.directory = \"snapshots\"\naccess.token_file = \"tokens.json\"\n";
    let file = pipeline_file(home.path(), more);
    let service = HttpService::of(home.path());
    let sample = data("sample.jsonl");
    let beside = |arguments: &[&str]| {
        let output = ripplemem(&[arguments, &["--pipeline", file.to_str().unwrap()]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains(&service.address), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    beside(&["ingest", "jsonl", sample.to_str().unwrap()]);
    let written = beside(&["snapshot"]);
    assert!(written.contains("shard(s): ") && !written.contains(" 0 units"), "{written}");
    assert!(home.path().join("snapshots/shard-00000/manifests").read_dir().unwrap().next().is_some());
    assert_eq!(beside(&["snapshot"]), written, "nothing has changed");
    assert!(service.stop());
}

/// An address that others reach, without tokens; and one of an instance that could not answer.
#[test]
fn an_address_that_cannot_be_served_is_refused() {
    for listen in ["0.0.0.0:8321", "192.168.1.2:8321", "8321", "[::]:1"] {
        let wrong = Pipeline::parse(&format!("version = 1\nhttp.listen = {listen:?}")).unwrap_err();
        assert!(wrong.contains("http.listen"), "{wrong}");
        assert!(wrong.contains("access.token_file") || wrong.contains("not an address"), "{wrong}");
    }
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    let refused = ripplemem(&["serve", "--listen", "0.0.0.0:0", "--data", log.to_str().unwrap()]);
    fails(&refused, 1, &["0.0.0.0:0", "access.token_file"]);
    assert!(!log.exists());
}

/// `kill -9` while several clients write: what was acknowledged is there, once, and nothing is invented.
#[test]
fn killed_under_load_nothing_acknowledged_is_lost() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 2");
    let (acknowledged, next) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(0));
    for round in 0..4 {
        let service = HttpService::of(home.path());
        let (address, mut dice) = (service.address.clone(), Dice(round));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let id = next.fetch_add(1, Ordering::SeqCst);
                        let bank = format!("bank{}", id % 5);
                        let body = json!({"turns": [turn(&bank, id, "The ferry leaves at noon")]}).to_string();
                        let Ok(mut stream) = std::net::TcpStream::connect(&address) else { break };
                        let head = format!(
                            "POST /v1/turns HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                            body.len()
                        );
                        if stream.write_all((head + &body).as_bytes()).is_err() {
                            break;
                        }
                        match answer(&mut stream) {
                            Some((200, ..)) => drop(acknowledged.lock().unwrap().insert(id.to_string())),
                            _ => break,
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(100 + dice.below(300)));
            service.kill();
        });
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let service = HttpService::of(home.path());
    let end = service.get("/v1/status")["after"].as_str().unwrap().to_owned();
    service.get(&format!("/v1/digest?after={end}&wait_ms=60000"));
    assert!(service.stop());
    let service = open(&Pipeline::read(&home.path().join("p.toml")).unwrap());
    let mut found = BTreeSet::new();
    for partition in 0..2 {
        for record in service.log().read(Topic::Turns, partition, 0, 1_000_000).unwrap().records {
            let TurnEvent::Turn(turn) = TurnEvent::from_json(record.value.as_deref().unwrap()).unwrap() else {
                panic!()
            };
            assert!(found.insert(turn.turn.clone()), "turn {} is there twice", turn.turn);
        }
    }
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(found.len() <= next.load(Ordering::SeqCst));
}

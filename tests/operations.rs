//! How a service is, on either log: health, metrics, status, orders, log lines.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
};

use serde_json::{Value, json};

use super::{
    access::{TOKENS, add},
    broker_process::Broker,
    http_limits::bearer,
    http_service::{HttpClient, HttpService, pipeline_file},
    kafka::{Home, turn, wait},
    question_client::Client,
    support::ripplemem,
};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// An address that nobody listens at.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn said(bank: &str, id: &str, text: &str) -> Value {
    json!({"turns": [{"bank": bank, "turn": id, "speaker": "Ann", "text": text, "time": "2024-05-06T09:00:00Z"}],
        "wait_ms": 60_000})
}

fn status_of(client: &HttpClient, method: &str, path: &str, headers: &str) -> u16 {
    client.send_text(method, path, headers, b"").0
}

/// What needs no token, at both addresses, and under no other host's name.
fn answers_without_a_token(service: &HttpClient, monitoring: &HttpClient) {
    for client in [service, monitoring] {
        for path in ["/health", "/ready"] {
            assert_eq!(status_of(client, "GET", path, ""), 200, "{path} at {}", client.address);
            assert_eq!(status_of(client, "GET", path, "Host: evil.example\r\n"), 403, "{path}");
        }
    }
    let (status, metrics) = monitoring.send_text("GET", "/metrics", "", b"");
    assert!(status == 200 && metrics.contains("ripplemem_questions_total"), "{metrics}");
    assert_eq!(status_of(monitoring, "GET", "/metrics", "Host: evil.example\r\n"), 403);
    assert_eq!(status_of(monitoring, "GET", "/v1/status", ""), 404, "only what is open");
}

#[test]
fn an_embedded_service_has_health_metrics_status_and_orders() {
    let home = tempfile::tempdir().unwrap();
    let monitoring = free_address();
    pipeline_file(home.path(), &format!("{TOKENS}[metrics]\nlisten = \"{monitoring}\"\n"));
    let of = |name: &str, bank: &str, rights: &[&str]| bearer(&add(home.path(), name, bank, rights));
    let [all, one] = [of("all", "*", &["read", "write", "admin"]), of("one", "acme", &["read"])];
    let writer = of("writer", "acme", &["write"]);
    let service = HttpService::of(home.path());
    let put = |bank: &str| {
        let body = said(bank, "1", "The red kayak is in the boathouse").to_string();
        assert_eq!(service.send("POST", "/v1/turns", &all, body.as_bytes()).0, 200);
    };
    ["acme/a", "acme/b", "other"].into_iter().for_each(put);
    let question = json!({"bank": "other", "text": "Where is the kayak?"}).to_string();
    assert_eq!(service.send("POST", "/v1/ask", &all, question.as_bytes()).0, 200);
    answers_without_a_token(&service, &HttpClient { address: monitoring.to_string() });

    for (token, expected) in [("", 401), (&one, 403), (&writer, 403), (&all, 200)] {
        assert_eq!(status_of(&service, "GET", "/metrics", token), expected, "{token}");
    }
    let metrics = service.send_text("GET", "/metrics", &all, b"").1;
    for line in [
        "ripplemem_turns_put_total 3",
        "ripplemem_questions_total{outcome=\"answered\"} 1",
        "ripplemem_requests_refused_total{status=\"401\"} 1",
        "ripplemem_answer_tokens_count 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    let status = |token: &str| service.send("GET", "/v1/status", token, b"");
    let whole = status(&all).2;
    assert_eq!((&whole["units"], &whole["banks"]), (&json!(3), &Value::Null), "{whole}");
    let own = status(&one).2;
    let banks: Vec<(&str, u64)> = own["banks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bank| (bank["bank"].as_str().unwrap(), bank["units"].as_u64().unwrap()))
        .collect();
    assert_eq!(banks, [("acme/a", 1), ("acme/b", 1)]);
    assert_eq!((&own["units"], &own["after"]), (&json!(0), &json!("")), "nothing of others: {own}");
    assert_eq!(status(&writer).0, 403, "what may only write does not read");

    let again = json!({"bank": "other"}).to_string();
    let (code, _, problem) = service.send("POST", "/v1/admin/reextract", &all, again.as_bytes());
    assert_eq!((code, &problem["code"]), (422, &json!("no_model")), "{problem}");
    assert_eq!(service.send("POST", "/v1/admin/reextract", &one, again.as_bytes()).0, 403);
    assert!(service.stop());
}

#[test]
fn log_lines_hold_neither_words_nor_banks_and_belong_to_the_clients_trace() {
    for names in [false, true] {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), &format!("logs.banks = {names}\n"));
        let service = HttpService::that_logs(home.path(), "trace");
        service.post("/v1/turns", &said("acme/zoe", "turn-7", "The red kayak is in the boathouse"));
        let question = json!({"bank": "acme/zoe", "text": "Where is the kayak?"}).to_string();
        let trace = format!("traceparent: {TRACE}\r\n");
        assert_eq!(service.send("POST", "/v1/ask", &trace, question.as_bytes()).0, 200);
        let logged_as = service.get("/v1/bank?bank=acme/zoe")["logged_as"].as_str().unwrap().to_owned();
        assert_eq!(logged_as == "acme/zoe", names);
        assert!(service.stop());
        let lines = fs::read_to_string(home.path().join("stderr")).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        for word in ["kayak", "boathouse", "Ann", "turn-7"] {
            assert!(!lines.iter().any(|line| line.to_string().contains(word)), "{word}");
        }
        assert_eq!(lines.iter().any(|line| line.to_string().contains("acme/zoe")), names);
        let answered = lines.iter().find(|line| line["message"] == "question answered").expect("a line");
        let text = answered.to_string();
        assert!(text.contains(TRACE_ID) && text.contains(&logged_as), "{text}");
        let message = |what: &str| lines.iter().any(|line| line["message"] == what);
        assert!(message("starting") && message("listening") && message("stopped"), "{lines:?}");
    }
}

/// The same routes, rights and lines on Kafka; the trace of a question over either transport.
#[test]
fn a_service_on_kafka_has_the_same() {
    let _turn = turn();
    let Some(broker) = Broker::shared("operations::a_service_on_kafka_has_the_same") else { return };
    let monitoring = free_address();
    let tables = format!("[http]\nlisten = \"127.0.0.1:0\"\n[metrics]\nlisten = \"{monitoring}\"\n");
    let home = Home::with(&broker, "operated", "", &tables);
    let running = home.run_that_logs("debug");
    wait(&|| home.told(), || home.told().contains("ready: ") && home.told().contains("\"listening\""));
    let address = server::running_address(&home.pipeline().log.directory).expect("the service says where it listens");
    let service = HttpClient { address: address.address };
    service.post("/v1/turns", &said("acme/zoe", "1", "The red kayak is in the boathouse"));
    let question = json!({"bank": "acme/zoe", "text": "Where is the kayak?"}).to_string();
    let other = TRACE.replace("0af765", "1bf765");
    assert_eq!(service.send("POST", "/v1/ask", &format!("traceparent: {other}\r\n"), question.as_bytes()).0, 200);
    answers_without_a_token(&service, &HttpClient { address: monitoring.to_string() });
    let mut client = Client::new(&broker, "operated");
    let id = client.ask_in(None, "acme/zoe", "Where is the kayak?", &[("traceparent", TRACE)]);
    assert!(client.reply(id, std::time::Duration::from_secs(120))["context"].is_string());
    let status = service.get("/v1/status");
    assert!(status["units"].as_u64() >= Some(1) && status["windows"].is_u64(), "{status}");
    let (code, _, problem) = service.send("POST", "/v1/admin/snapshots", "", b"");
    assert_eq!(code, 400, "{problem}");
    let output = ripplemem(&["reextract", "--bank", "acme/zoe", "--pipeline", home.path()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("extract.extractor"), "{output:?}");
    running.stop();
    let told = home.told();
    let answered: Vec<&str> = told.lines().filter(|line| line.contains("question answered")).collect();
    assert_eq!(answered.len(), 2, "{told}");
    for trace in [TRACE_ID, &other[3..35]] {
        assert_eq!(answered.iter().filter(|line| line.contains(trace)).count(), 1, "{trace}: {answered:?}");
    }
    for span in ["step", "transaction", "shard", "question"] {
        assert!(told.contains(&format!("\"name\":\"{span}\"")), "no line of {span}: {told}");
    }
    assert!(!told.contains("kayak") && !told.contains("acme"), "{told}");
}

/// The board shows nothing that the service does not have.
#[test]
fn the_board_for_grafana_names_metrics_that_there_are() {
    let board = include_str!("../docker/grafana.json");
    let registered = regex::Regex::new("named!\\(\\s*\"([a-z_]+)\"").unwrap();
    let source = include_str!("../src/server/telemetry.rs");
    let names: Vec<String> = registered.captures_iter(source).map(|found| format!("ripplemem_{}", &found[1])).collect();
    let wanted = regex::Regex::new("ripplemem_[a-z_]+").unwrap();
    let mut seen = 0;
    for found in wanted.find_iter(board).map(|found| found.as_str()) {
        let base = ["_total", "_bucket"].iter().fold(found, |name, end| name.trim_end_matches(end));
        assert!(names.iter().any(|name| name == base || name == found), "{found}");
        seen += 1;
    }
    assert!(seen > 25, "{seen}");
}

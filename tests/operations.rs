//! Operating a service on either log: health, metrics, status, orders, log lines.

use std::{
    fs,
    io::Read,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::{Duration, Instant},
};

use logs::{EmbeddedLog, Log, Topic};
use serde_json::{Value, json};
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Turn, TurnEvent},
};

use super::{
    access::{TOKENS, add},
    broker_process::Broker,
    http_limits::bearer,
    http_service::{HttpClient, HttpService, pipeline_file},
    kafka::{Home, turn, wait},
    live_slack::post_signed,
    model_process::ScriptedModel,
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
    let took = &whole["questions"];
    assert_eq!(took["total"], 1, "{whole}");
    assert!(took["p50_ms"].as_f64() > Some(0.0) && took["p50_ms"] == took["p99_ms"], "of one question: {whole}");
    let own = status(&one).2;
    assert_eq!(own["questions"], Value::Null, "what other banks ask is not told: {own}");
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

/// A service with a signed webhook, whose secret is the name of this package.
fn with_webhook(home: &Path, top: &str, tables: &str) {
    let source = "name = \"desk\"\nplatform = \"webhook\"\nbank = \"desk\"\nsecret_env = \"CARGO_PKG_NAME\"\n";
    pipeline_file(home, &format!("{top}{tables}[[source]]\n{source}"));
}

const SECRET: &str = env!("CARGO_PKG_NAME");

/// What was rejected while turns were extracted, what no source could read, and what a webhook brought.
#[test]
fn a_status_counts_what_was_rejected_and_every_dead_letter() {
    let home = tempfile::tempdir().unwrap();
    with_webhook(home.path(), "log.partitions = 1\n", "");
    let file = home.path().join("p.toml");
    // An older program might have stored it.
    let settings = Pipeline::read(&file).unwrap().log;
    let (bank, time) = (Bank::parse("acme").unwrap(), EventTime::parse("2024-05-06T09:00:00Z").unwrap());
    let empty = TurnEvent::Turn(Turn::new(bank, "1", "Ann", " ", time));
    EmbeddedLog::open(&settings).unwrap().append_turns(&[empty]).unwrap();
    let service =
        HttpService::start(home.path(), &["serve", "--listen", "127.0.0.1:0", "--pipeline", file.to_str().unwrap()]);
    let counted = || {
        let mut status = service.get("/v1/status");
        while status["behind"] != 0 {
            std::thread::sleep(Duration::from_millis(10));
            status = service.get("/v1/status");
        }
        assert_eq!(status["problem"], Value::Null, "{status}");
        (status["rejected"].as_u64().unwrap(), status["dead_letters"].as_u64().unwrap())
    };
    service.post("/v1/turns", &said("acme", "2", "The red kayak is in the boathouse"));
    assert_eq!(counted(), (1, 1), "the turn without words");
    let letter = |n: u32| json!({"schema": 1, "origin": format!("file:{n}"), "reason": "unread", "payload": "?"});
    service.post("/v1/turns", &json!({"turns": [], "dead_letters": [letter(1), letter(2)]}));
    assert_eq!(counted(), (1, 3), "records of an export");
    assert_eq!(service.send("POST", "/v1/turns", "", b"{\"turns\": [{\"bank\": \"acme\"}]}").0, 400);
    assert_eq!(counted(), (1, 3), "what is refused is no dead letter");

    let good = json!({"turn": "d1", "speaker": "Bo", "text": "Ticket 1 is open.", "time": "2024-05-06T09:00:00Z"});
    assert_eq!(post_signed(&service, &json!([good, {"turn": 5}, {}]).to_string(), SECRET), 200);
    assert_eq!(counted(), (1, 5), "two of three records of a webhook");
    assert_eq!(post_signed(&service, &json!([{"turn": 6}]).to_string(), "a guess"), 401);
    assert_eq!(post_signed(&service, &"{}\n".repeat(10_001), SECRET), 413);
    assert_eq!(counted(), (1, 5), "nothing of a request that is not taken");
    assert_eq!(post_signed(&service, &"{}\n".repeat(10_000), SECRET), 200);
    assert_eq!(counted(), (1, 10_005), "as many as a request may hold");
    assert!(service.stop());
    let letters = EmbeddedLog::open(&settings).unwrap().end(Topic::DeadLetters, 0).unwrap();
    assert_eq!(letters, 10_005, "what the log holds");
}

/// As many turns in one request as it may have, and no browser takes an answer for anything but JSON.
#[test]
fn a_request_takes_ten_thousand_turns_and_every_answer_says_what_it_is() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.fsync = \"system\"\n");
    let service = HttpService::of(home.path());
    let turn = |n: usize| json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": "Noon.", "time": "2024-05-06T09:00:00Z"});
    let turns = |count: usize| json!({"turns": (0..count).map(turn).collect::<Vec<_>>()});
    let (status, _, refused) = service.send("POST", "/v1/turns", "", turns(10_001).to_string().as_bytes());
    assert_eq!((status, &refused["code"]), (400, &json!("invalid")), "{refused}");
    assert_eq!(service.get("/v1/status")["after"], "", "nothing of it is stored");
    assert_eq!(service.post("/v1/turns", &turns(10_000))["turns"], 10_000);
    for (method, path, status) in [
        ("GET", "/v1/status", 200),
        ("GET", "/v1/openapi.json", 200),
        ("GET", "/v1/nothing", 404),
        ("PUT", "/v1/turns", 405),
        ("POST", "/v1/ask", 400),
    ] {
        let mut stream = service.begin(method, path, "", b"");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
    }
    assert!(service.stop());
}

/// Whatever way words come in, and whatever a language model says of them, no log line holds them.
#[test]
fn no_door_puts_words_into_log_lines_at_any_level() {
    let (home, model) = (tempfile::tempdir().unwrap(), ScriptedModel::start(&[]));
    let extracts = "http.mem0 = true\nextract.extractor = \"llm\"\nwindow.turns = 2\nwindow.overlap = 0\n";
    with_webhook(home.path(), extracts, &model.toml("scripted"));
    let service = HttpService::that_logs(home.path(), "trace");
    let ticket = |n: u32, text: &str| json!({"turn": format!("quux-{n}"), "speaker": "Zebedee", "text": text, "time": format!("2024-05-06T09:0{n}:00Z")});
    let tickets = json!([ticket(1, "The walrus is in the lagoon"), ticket(2, "It eats clams")]);
    assert_eq!(post_signed(&service, &tickets.to_string(), SECRET), 200);
    assert_eq!(post_signed(&service, &json!([{"text": "A narwhal swims"}]).to_string(), SECRET), 200);
    let tool = |name: &str, arguments: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let answer = service.post("/mcp?bank=mcp", &call);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"].to_string()
    };
    let turn = json!({"speaker": "Zebedee", "text": "The ocelot sleeps in the larder", "turn": "quux-3"});
    tool("remember", json!({"turns": [turn], "wait_seconds": 60}));
    let question =
        json!({"question": "Where does the ocelot sleep?", "asker": "Zebedee", "said_before": "that ocelot"});
    assert!(tool("recall", question.clone()).contains("larder"));
    assert!(tool("answer", question).contains("larder"), "the model repeats it");
    tool("forget", json!({"turn": "quux-9"}));
    let address = "ripplemem://banks/aquarium?question=Does%20the%20ocelot%20sleep%3F&asker=Zebedee";
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": address}}).to_string();
    let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    assert!(
        service.send("POST", "/mcp", accepts, read.as_bytes()).2["result"].is_object(),
        "an empty bank is answered"
    );
    let message =
        json!({"messages": [{"role": "user", "content": "The gecko is on the veranda"}], "user_id": "xanthe"});
    let added = service.post("/v3/memories/add/", &message);
    let search = json!({"query": "Where is the gecko?", "filters": {"user_id": "xanthe"}});
    assert!(service.post("/v3/memories/search/", &search).to_string().contains("veranda"));
    let path = format!("/v1/memories/{}/", added["results"][0]["id"].as_str().unwrap());
    assert_eq!(service.send("PUT", &path, "", b"{\"text\": \"The gecko is on the pergola\"}").0, 200);
    // The webhook's window is closed, and the model reads it.
    let begun = Instant::now();
    while service.get("/v1/status")["read_by_model"] == 0 {
        assert!(begun.elapsed() < Duration::from_secs(120), "{}", service.get("/v1/status"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let asked = json!({"bank": "desk", "text": "Where is the walrus?", "answer": true});
    assert!(service.post("/v1/ask", &asked).to_string().contains("lagoon"));
    assert!(service.stop());
    assert!(model.requests().iter().any(|request| request.to_string().contains("walrus")), "it was asked");
    let lines = fs::read_to_string(home.path().join("stderr")).unwrap();
    assert!(lines.contains("\"DEBUG\"") && lines.contains("\"message\":\"question answered\""), "{lines}");
    for word in ["walrus", "lagoon", "clams", "narwhal", "ocelot", "larder", "gecko", "veranda", "pergola"] {
        assert!(!lines.to_lowercase().contains(word), "{word}");
    }
    for name in ["Zebedee", "quux", "xanthe", "aquarium"] {
        assert!(!lines.contains(name), "{name}");
    }
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
    assert!(client.reply(id, Duration::from_secs(120))["context"].is_string());
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

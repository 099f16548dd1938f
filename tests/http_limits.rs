//! What one client can take: of the room for bodies, of the connections, of the dead letters. The service is the
//! real program; another client is always served.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    access::{TOKENS, add},
    event_stream::EventStream,
    http_service::{HttpService, answer, pipeline_file, questions_wait},
    kafka::wait,
    support::ripplemem,
};

/// Largest body.
const MAX_BYTES: usize = 8 << 20;

pub(crate) fn bearer(token: &str) -> String {
    format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    )
}

fn turn(id: usize) -> Value {
    json!({"bank": "b", "turn": id.to_string(), "speaker": "Ann", "text": "The ferry leaves at noon. ".repeat(400),
           "time": "2024-05-01T10:00:00Z"})
}

/// A home with two tokens, and their headers: one reads bank `a`, one reads and writes bank `b`.
fn reader_and_writer() -> (TempDir, String, String) {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let reader = bearer(&add(home.path(), "reader", "a", &["read"]));
    let writer = bearer(&add(home.path(), "writer", "b", &["read", "write"]));
    (home, reader, writer)
}

/// Writes a turn; the status.
fn put(service: &HttpService, headers: &str, id: usize) -> u16 {
    service.send("POST", "/v1/turns", headers, json!({"turns": [turn(id)]}).to_string().as_bytes()).0
}

/// Sends the head of a request and a body, of which the last bytes may be missing.
fn begin(service: &HttpService, path: &str, headers: &str, length: usize, body: &[u8]) -> TcpStream {
    let mut stream = service.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n",
        service.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A body that is refused early is not read to its end.
    let _ = stream.write_all(body);
    stream
}

/// Waits until a request of this kind is refused because there is no room for bodies.
fn refused_soon(send: impl Fn() -> u16) {
    wait(&|| "nothing is refused".to_owned(), || send() == 429);
}

#[test]
fn bodies_of_one_token_leave_room_for_the_others_and_those_that_wait_hold_none() {
    let (home, reader, writer) = reader_and_writer();
    let watcher = format!("Authorization: Bearer {}\r\n", add(home.path(), "watcher", "*", &["read"]));
    let service = HttpService::of(home.path());

    // Eight questions that wait for a turn that nobody writes.
    let waiting: Vec<TcpStream> = (0..8)
        .map(|n| {
            let question =
                json!({"bank": format!("a/{n}"), "text": "x", "after": "0:999999", "timeout_ms": 600_000}).to_string();
            let padded = question + &" ".repeat(MAX_BYTES - 200);
            begin(&service, "/v1/ask", &reader, padded.len(), padded.as_bytes())
        })
        .collect();
    questions_wait(&service, &watcher, 8);
    assert_eq!(put(&service, &writer, 1), 200);
    let ask = json!({"bank": "a", "text": "x"}).to_string();
    assert_eq!(service.send("POST", "/v1/ask", &reader, ask.as_bytes()).0, 200, "nor do they refuse their own");
    drop(waiting);

    // Tool messages that lack only their last byte.
    let half = vec![b' '; MAX_BYTES - 1];
    let messages: Vec<TcpStream> = (0..4).map(|_| begin(&service, "/mcp", &reader, MAX_BYTES, &half)).collect();
    refused_soon(|| service.send("POST", "/v1/ask", &reader, ask.as_bytes()).0);
    assert_eq!(put(&service, &writer, 2), 200);
    let mut statuses: Vec<_> =
        messages.into_iter().map(|mut stream| answer(&mut stream).map(|(status, ..)| status)).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [Some(408), Some(408), Some(429), Some(429)], "half a message ends, or was too much");
    assert_eq!(service.send("POST", "/v1/ask", &reader, ask.as_bytes()).0, 200, "the room is free again");
    assert!(service.stop());
}

#[test]
fn a_body_for_a_source_is_read_where_there_is_one_and_within_its_part() {
    // No byte of the body is sent: only a service that does not read it answers.
    let status = |service: &HttpService, path: &str| {
        let mut stream = begin(service, path, "", 2 << 20, b"");
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        String::from_utf8(first[9..].to_vec()).unwrap()
    };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let service = HttpService::of(home.path());
    assert_eq!(status(&service, "/sources/desk"), "401", "no source: a path as any other");
    drop(service);

    let home = tempfile::tempdir().unwrap();
    let source =
        "[[source]]\nname = \"desk\"\nplatform = \"webhook\"\nbank = \"desk\"\nsecret_env = \"CARGO_PKG_NAME\"\n";
    pipeline_file(home.path(), &format!("{TOKENS}{source}"));
    let writer = bearer(&add(home.path(), "writer", "b", &["read", "write"]));
    let service = HttpService::of(home.path());
    assert_eq!(status(&service, "/sources/nobody"), "404");
    let half = vec![b' '; (2 << 20) - 1];
    let bodies: Vec<TcpStream> = (0..9).map(|_| begin(&service, "/sources/desk", "", 2 << 20, &half)).collect();
    refused_soon(|| service.send("POST", "/sources/desk", "", &[b' '; 1_000]).0);
    assert_eq!(put(&service, &writer, 1), 200);
    drop(bodies);
}

#[test]
fn streams_of_one_token_leave_connections_to_the_others() {
    let (home, reader, writer) = reader_and_writer();
    // 256 connections, so 32 streams per token.
    let service = HttpService::limited(home.path(), 512);
    let open = |headers: &str| EventStream::open(&service, "/v1/subscribe?bank=a&text=Where", headers);
    let streams: Vec<EventStream> = (0..32).map(|_| open(&reader)).collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    assert_eq!(open(&reader).status, 429);
    assert_eq!(put(&service, &writer, 1), 200);
    let said = fs::read_to_string(home.path().join("stderr")).unwrap();
    assert!(said.contains("\"connections\":256") && said.contains("ulimit -n"), "{said}");
    drop(streams);
    assert!(service.stop());
}

#[test]
fn questions_of_one_token_that_wait_leave_connections_to_the_others() {
    let (home, reader, writer) = reader_and_writer();
    // 64 connections, so 32 requests per token.
    let service = HttpService::limited(home.path(), 128);
    // For a turn that nobody writes.
    let ask = json!({"bank": "a", "text": "x", "after": "0:999999", "timeout_ms": 600_000}).to_string();
    let waiting: Vec<TcpStream> =
        (0..32).map(|_| begin(&service, "/v1/ask", &reader, ask.len(), ask.as_bytes())).collect();
    refused_soon(|| service.send("GET", "/v1/status", &reader, b"").0);
    assert_eq!(put(&service, &writer, 1), 200);
    drop(waiting);
    let is_refused = || service.send("GET", "/v1/status", &reader, b"").0 == 429;
    wait(&|| "who left keeps a place".to_owned(), || !is_refused());
    assert!(service.stop());
}

#[test]
fn dead_letters_are_an_administrators_and_as_short_as_our_own() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let writer = add(home.path(), "writer", "*", &["read", "write"]);
    let of_bank = add(home.path(), "of-bank", "b", &["write", "admin"]);
    let administrator = add(home.path(), "administrator", "*", &["write", "admin"]);
    let service = HttpService::of(home.path());
    let letter = json!({"schema": 999, "origin": "o", "reason": "r".repeat(5_000), "payload": "p".repeat(1 << 20)});
    let send = |token: &str, turns: Vec<Value>| {
        let body = json!({"turns": turns, "dead_letters": [letter]}).to_string();
        service.send("POST", "/v1/turns", &bearer(token), body.as_bytes()).0
    };
    for refused in [&writer, &of_bank] {
        assert_eq!(send(refused, Vec::new()), 403);
        assert_eq!(send(refused, vec![turn(1)]), 403);
    }
    assert_eq!(send(&administrator, vec![json!({"bank": "b"})]), 400, "neither the turn nor the letter is written");
    assert_eq!(send(&administrator, vec![turn(1)]), 200);
    assert!(service.stop());
    let letters = tapped(home.path(), "dead-letters");
    assert_eq!(letters.len(), 1, "{letters:?}");
    let text = |field: &str| letters[0]["value"][field].as_str().map(str::len);
    assert_eq!(
        (&letters[0]["value"]["schema"], text("payload"), text("reason")),
        (&json!(1), Some(4_096), Some(4_096))
    );
    assert_eq!(tapped(home.path(), "turns").len(), 1);
}

/// The records of a topic.
fn tapped(home: &Path, topic: &str) -> Vec<Value> {
    let file = home.join("p.toml");
    let output = ripplemem(&["tap", topic, "--pipeline", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A selector's names are bounded where it is read, so every way to list and to forget has the same limits.
#[test]
fn too_many_names_are_refused_by_every_way_with_the_field_the_limit_and_the_number() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    assert_eq!(put(&service, "", 1), 200);
    for (field, most) in [("turns", 10_000), ("speakers", 1_000), ("mentions", 1_000)] {
        for dry_run in [true, false] {
            let names = |count: usize| (0..count).map(|n| format!("名前 {n}")).collect::<Vec<_>>();
            let forget = |count| json!({"bank": "b", "select": {field: names(count)}, "dry_run": dry_run}).to_string();
            let (status, _, problem) = service.send("POST", "/v1/forget", "", forget(most + 1).as_bytes());
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert_eq!(status, 400, "{problem}");
            for said in [field, &most.to_string(), &(most + 1).to_string(), "divide"] {
                assert!(detail.contains(said), "{said}: {detail}");
            }
            assert_eq!(service.send("POST", "/v1/forget", "", forget(most).as_bytes()).0, 200, "{field}");
        }
    }
    let long = "x".repeat(257);
    let too_long = |told: &str| assert!(told.contains("257 bytes") && told.contains("256"), "{told}");
    for field in ["speaker", "mentions"] {
        let (status, _, problem) = service.send("GET", &format!("/v1/turns?bank=b&{field}={long}"), "", b"");
        assert_eq!(status, 400);
        too_long(&problem.to_string());
        let arguments = json!({"bank": "b", field: long});
        for tool in ["list", "forget_turns"] {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                              "params": {"name": tool, "arguments": arguments}});
            too_long(&service.send("POST", "/mcp", &bearer(""), call.to_string().as_bytes()).2.to_string());
        }
    }
    let names: Vec<String> = (0..1_001).map(|n| format!("--mentions=n{n}")).collect();
    let ids: Vec<String> = (0..10_001).map(|n| n.to_string()).collect();
    for (named, field) in [(names, "mentions: 1001"), (ids, "turns: 10001")] {
        let begin = ["forget", "--bank", "b", "--pipeline", file.to_str().unwrap()];
        let arguments: Vec<&str> = begin.into_iter().chain(named.iter().map(String::as_str)).collect();
        let refused = ripplemem(&arguments);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains(field) && told.contains("divide"), "{told}");
    }
    assert!(service.get("/v1/bank?bank=b").get("hash").is_none(), "nothing is hashed for a count");
    assert!(service.stop());
}

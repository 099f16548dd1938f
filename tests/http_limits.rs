//! What one client can take of the room for bodies. The service is the real program; another client is always
//! served.

use std::{
    io::Write,
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    access::{TOKENS, add},
    http_service::{HttpService, pipeline_file},
};

/// Largest body.
const MAX_BYTES: usize = 8 << 20;

fn bearer(token: &str) -> String {
    format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    )
}

fn turn(id: usize) -> Value {
    json!({"bank": "b", "turn": id.to_string(), "speaker": "Ann", "text": "The ferry leaves at noon. ".repeat(400),
           "time": "2024-05-01T10:00:00Z"})
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

#[test]
fn bodies_of_one_token_leave_room_for_the_others_and_those_that_wait_hold_none() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let reader = bearer(&add(home.path(), "reader", "a", &["read"]));
    let writer = bearer(&add(home.path(), "writer", "b", &["read", "write"]));
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
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(put(&service, &writer, 1), 200);
    let ask = json!({"bank": "a", "text": "x"}).to_string();
    assert_eq!(service.send("POST", "/v1/ask", &reader, ask.as_bytes()).0, 404, "nor do they refuse their own");
    drop(waiting);

    assert!(service.stop());
}

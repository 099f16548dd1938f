//! Spans as a collector of OpenTelemetry receives them. Runs in a build with the feature `otlp`: `make soak-otlp`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use serde_json::json;

use super::http_service::{HttpService, pipeline_file};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: [u8; 16] = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
const PARENT_ID: [u8; 8] = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();

/// An address that takes requests over HTTP, answers each with 200, and gives their paths and bodies.
fn collector() -> (String, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (received, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, received) = (stream.unwrap(), received.clone());
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                    let path = line.split(' ').nth(1).unwrap().to_owned();
                    let mut length = 0;
                    loop {
                        line.clear();
                        reader.read_line(&mut line).unwrap();
                        let header = line.trim().to_ascii_lowercase();
                        if header.is_empty() {
                            break;
                        }
                        if let Some(value) = header.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    received.send((path, body)).unwrap();
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                    line.clear();
                }
            });
        }
    });
    (address, requests)
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_collector_gets_the_spans_of_a_clients_trace_and_no_words() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let (address, requests) = collector();
    let service = HttpService::with_variable(home.path(), "OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    let turn = json!({"bank": "acme/zoe", "turn": "turn-7", "speaker": "Ann", "text": "The red kayak is in the boathouse",
        "time": "2024-05-06T09:00:00Z"});
    service.post("/v1/turns", &json!({"turns": [turn], "wait_ms": 60_000}));
    let question = json!({"bank": "acme/zoe", "text": "Where is the kayak?"}).to_string();
    let headers = format!("traceparent: {TRACE}\r\n");
    assert_eq!(service.send("POST", "/v1/ask", &headers, question.as_bytes()).0, 200);
    // What is left is sent before the process ends.
    assert!(service.stop(), "{}", fs::read_to_string(home.path().join("stderr")).unwrap());
    let sent: Vec<(String, Vec<u8>)> = requests.try_iter().collect();
    assert!(!sent.is_empty() && sent.iter().all(|(path, _)| path == "/v1/traces"));
    let spans = sent.into_iter().flat_map(|(_, body)| body).collect::<Vec<u8>>();
    for part in ["ripplemem", "request", "question", "step", "shard", "/v1/ask"].map(str::as_bytes) {
        assert!(holds(&spans, part), "{}", String::from_utf8_lossy(part));
    }
    assert!(holds(&spans, &TRACE_ID) && holds(&spans, &PARENT_ID), "the question is part of the client's trace");
    for word in ["kayak", "boathouse", "Ann", "turn-7", "acme/zoe"] {
        assert!(!holds(&spans, word.as_bytes()), "{word}");
    }
}

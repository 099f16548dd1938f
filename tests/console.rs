//! The console: what is sent without a token, and people's way through the page, in a browser against the real program.
//! If Node, its packages or a browser are missing, the tests of the page are named as skipped.

use std::{
    io::{Read, Write},
    path::Path,
};

use serde_json::{Value, json};

use super::{
    access::{TOKENS, add},
    browser::{browser, has_node, node_test, pictures},
    http_service::{HttpService, pipeline_file},
    support::{has_default_model, write},
};

/// The head of a response, in lower case, and its body.
fn sent(service: &HttpService, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = service.connect();
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", service.address) };
    write!(stream, "GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    (head, bytes.split_off(end + 4))
}

#[test]
fn the_page_needs_no_token_and_may_ask_this_service_alone() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let service = HttpService::of(home.path());
    for path in ["/", "/console"] {
        let (head, _) = sent(&service, path, "");
        assert!(head.starts_with("http/1.1 303") && head.contains("location: /console/"), "{head}");
    }
    for (path, kind) in [
        ("", "text/html"),
        ("console.js", "text/javascript"),
        ("console.css", "text/css"),
        ("NOTICE.txt", "text/plain"),
    ] {
        let path = format!("/console/{path}");
        let (head, plain) = sent(&service, &path, "");
        assert!(head.starts_with("http/1.1 200") && head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        for policy in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
            assert!(head.contains(policy), "{path}: {head}");
        }
        for line in ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-cache"] {
            assert!(head.contains(line), "{path}: {head}");
        }
        let (packed_head, packed) = sent(&service, &path, "Accept-Encoding: br, gzip\r\n");
        assert!(packed_head.contains("content-encoding: gzip") && packed.len() < plain.len(), "{path}: {packed_head}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain, "{path}: packed and plain differ");
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let (known, nothing) = sent(&service, &path, &format!("If-None-Match: {tag}\r\n"));
        assert!(known.starts_with("http/1.1 304") && nothing.is_empty(), "{path}: {known}");
        let (foreign, _) = sent(&service, &path, "Host: evil.example\r\n");
        assert!(foreign.starts_with("http/1.1 403"), "{path}: {foreign}");
    }
    for path in ["/v1/banks", "/console/other"] {
        assert!(sent(&service, path, "").0.starts_with("http/1.1 401"), "{path} is behind the token");
    }
    assert!(service.stop());
}

#[test]
fn the_page_says_what_the_answer_says() {
    if has_node("console::the_page_says_what_the_answer_says") {
        node_test("test/model.test.mjs", &[]);
    }
}

/// The sample, as requests that put it in four reads.
fn sample() -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample.jsonl")).unwrap();
    let turns: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    turns.chunks(turns.len().div_ceil(4)).map(|turns| json!({"turns": turns, "wait_ms": 60_000})).collect()
}

/// A pipeline file with history, and the default model if it is installed: its ripple is that of the README.
fn of_people(home: &Path) {
    let model = if has_default_model() { "" } else { "embed.model = \"fixed\"\n" };
    let file = format!("version = 1\n{model}log.directory = \"log\"\nsnapshot.directory = \"snapshots\"\n");
    write(&home.join("p.toml"), file);
}

#[test]
fn people_find_their_way_through_the_page() {
    let Some(browser) = browser("console::people_find_their_way_through_the_page") else { return };
    let (open, closed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    of_people(open.path());
    pipeline_file(closed.path(), TOKENS);
    let reader = add(closed.path(), "reader", "sample", &["read"]);
    let (open, asking) = (HttpService::of(open.path()), HttpService::of(closed.path()));
    for put in sample() {
        open.post("/v1/turns", &put);
    }
    let revoke = format!(
        "{} token revoke reader --pipeline {}",
        env!("CARGO_BIN_EXE_ripplemem"),
        closed.path().join("p.toml").display()
    );
    let pictures = pictures();
    let (open_url, asking_url) = (format!("http://{}", open.address), format!("http://{}", asking.address));
    let variables = [
        ("CONSOLE", open_url.as_str()),
        ("CONSOLE_TOKENS", &asking_url),
        ("READER", &reader),
        ("REVOKE", &revoke),
        ("CHROMIUM", &browser),
        ("PICTURES", pictures.to_str().unwrap()),
    ];
    node_test("test/page.test.mjs", &variables);
    // The pictures of the README and of docs/console.md are those of the default model.
    if std::env::var_os("REWRITE").is_some() && has_default_model() {
        for (taken, name) in [
            ("ripple-light.png", "ripple-light.png"),
            ("ripple-dark.png", "ripple-dark.png"),
            ("trace-1280-light.png", "trace-light.png"),
            ("trace-1280-dark.png", "trace-dark.png"),
        ] {
            let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(name);
            std::fs::copy(pictures.join(taken), picture).unwrap();
        }
    }
    assert!(open.stop() && asking.stop());
}

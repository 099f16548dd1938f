//! Questions that a client of the tools follows as resources: whom it reaches, when it ends, and what is left of
//! it when the process that has the memory ends. What a client learns of is `follows` in
//! `tests/python/mcp_client.py`.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    event_stream::EventStream,
    http_service::{self, HttpService},
    mcp::{Server, check, raw},
    support::{Python, ripplemem},
};

const ACCEPTS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A token with rights in a bank.
fn token(file: &Path, name: &str, bank: &str, rights: &[&str]) -> String {
    let rights = rights.iter().flat_map(|right| ["--right", right]);
    let arguments = ["token", "add", name, "--pipeline", file.to_str().unwrap(), "--bank", bank];
    let added = ripplemem(&arguments.into_iter().chain(rights).collect::<Vec<_>>());
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    format!("Authorization: Bearer {}\r\n", String::from_utf8(added.stdout).unwrap().trim())
}

/// A client of revision 2025-11-25 over HTTP: its session, and the headers of its requests.
struct Session<'a> {
    service: &'a HttpService,
    headers: String,
}

impl<'a> Session<'a> {
    fn begin(service: &'a HttpService, authorization: &str) -> Self {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let (head, body) = raw(service, &format!("{ACCEPTS}{authorization}"), message.to_string().as_bytes());
        assert!(body.contains("\"subscribe\":true"), "{body}");
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.unwrap_or_else(|| panic!("no session: {head}"));
        let headers = format!("{ACCEPTS}{authorization}Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        Self { service, headers }
    }

    fn send(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).to_string();
        self.service.send("POST", "/mcp", &self.headers, message.as_bytes()).2
    }

    fn subscribe(&self, uri: &str) -> Value {
        self.send("resources/subscribe", json!({"uri": uri}))
    }

    fn listen(&self) -> EventStream {
        EventStream::open(self.service, "/mcp", &self.headers)
    }
}

/// The address of the next notification; none at the end.
fn heard(stream: &mut EventStream) -> Option<String> {
    let event = stream.next()?;
    assert_eq!(event.data["method"], "notifications/resources/updated", "{event:?}");
    Some(event.data["params"]["uri"].as_str().unwrap().to_owned())
}

fn question(bank: &str) -> String {
    format!("ripplemem://banks/{bank}?question=Where%20is%20the%20red%20kayak%3F")
}

fn kayak(bank: &str, id: &str, place: &str) -> Value {
    let text = format!("The red kayak is in the {place}");
    json!({"bank": bank, "turn": id, "speaker": "Ann", "text": text, "time": "2024-05-01T10:00:00Z"})
}

/// Stores a turn with a token.
fn put(service: &HttpService, authorization: &str, turn: Value) {
    let body = json!({"turns": [turn], "wait_ms": 10_000}).to_string();
    let (status, _, answer) = service.send("POST", "/v1/turns", authorization, body.as_bytes());
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_token_follows_what_it_may_read_and_nothing_once_it_is_revoked() {
    let home = tempfile::tempdir().unwrap();
    let extra = "access.token_file = \"tokens.json\"\nhttp.subscriptions_of_token = 3";
    let file = http_service::pipeline_file(home.path(), extra);
    let writer = token(&file, "writer", "*", &["write"]);
    let reader = token(&file, "reader", "team", &["read"]);
    let other = token(&file, "other", "team2", &["read"]);
    let service = HttpService::of(home.path());
    for turn in [kayak("team/a", "1", "boathouse"), kayak("team2", "1", "garage")] {
        put(&service, &writer, turn);
    }
    let (mine, theirs) = (Session::begin(&service, &reader), Session::begin(&service, &other));
    // A caller who shows another token in a session of this one receives nothing of it.
    let intruder = Session { service: &service, headers: mine.headers.replace(&reader, &other) };
    let (mut stream, mut foreign) = (mine.listen(), intruder.listen());
    assert_eq!((stream.status, foreign.status), (200, 200));
    assert!(mine.subscribe(&question("team/a"))["result"].is_object());
    for (session, bank, why) in
        [(&mine, "team2", "does not reach"), (&theirs, "team/a", "does not reach"), (&intruder, "team/a", "reach")]
    {
        let refused = session.subscribe(&question(bank))["error"].to_string();
        assert!(refused.contains(why) && !refused.contains("kayak is"), "{refused}");
    }
    let writes = Session::begin(&service, &writer).subscribe(&question("team/a"))["error"].to_string();
    assert!(writes.contains("lacks the right"), "{writes}");
    // The stream and the question have two places of the token's three.
    assert!(mine.subscribe(&question("team/b"))["result"].is_object());
    let full = mine.subscribe(&question("team/c"))["error"].to_string();
    assert!(full.contains("http.subscriptions_of_token"), "{full}");
    assert_eq!(mine.listen().status, 429);
    assert!(mine.send("resources/unsubscribe", json!({"uri": question("team/b")}))["result"].is_object());
    assert!(intruder.subscribe(&question("team2"))["result"].is_object());
    put(&service, &writer, kayak("team/a", "2", "lake"));
    assert_eq!(heard(&mut stream), Some(question("team/a")));
    put(&service, &writer, kayak("team2", "2", "lake"));
    assert_eq!(heard(&mut foreign), Some(question("team2")), "and nothing before");
    // The same for a client of 2026-07-28, whose request is answered when it ends.
    let listen = |authorization: &str, bank: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"_meta": meta, "notifications": {"resourceSubscriptions": [question(bank)]}});
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params});
        let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
        raw(&service, &format!("{ACCEPTS}{headers}{authorization}"), message.to_string().as_bytes())
    };
    let (head, body) = listen(&other, "team/a");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("does not reach"), "{head} {body}");
    assert!(listen("", "team/a").0.starts_with("HTTP/1.1 401"));
    std::thread::scope(|scope| {
        // Its two places are free again a moment after the subscription ended.
        let listening = scope.spawn(|| listen(&reader, "team/a"));
        let revoked = ripplemem(&["token", "revoke", "reader", "--pipeline", file.to_str().unwrap()]);
        assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
        while heard(&mut stream).is_some() {}
        let (head, body) = listening.join().unwrap();
        assert!(head.starts_with("HTTP/1.1 401") || body.contains("\"result\"") || body.contains("error"), "{body}");
        assert!(!body.contains("kayak is"), "{body}");
    });
    assert_eq!(mine.listen().status, 401);
    put(&service, &writer, kayak("team2", "3", "harbour"));
    assert_eq!(heard(&mut foreign), Some(question("team2")), "others go on");
}

#[test]
fn a_profile_is_a_resource_that_is_read_and_followed() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let session = Session::begin(&service, "");
    let uri = "ripplemem://profiles/me?person=Ann";
    assert!(session.subscribe(uri)["result"].is_object(), "also of a bank that holds nothing yet");
    let mut stream = session.listen();
    let said = |id: &str, speaker: &str, text: &str| {
        json!({"bank": "me", "turn": id, "speaker": speaker, "text": text,
        "time": "2024-05-01T10:00:00Z"})
    };
    put(&service, "", said("1", "Bo", "I live in Rome."));
    put(&service, "", said("2", "Ann", "I live in Oslo."));
    assert_eq!(heard(&mut stream).as_deref(), Some(uri), "what Bo says is no change of it");
    let read = session.send("resources/read", json!({"uri": uri}));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    let shown: Value = serde_json::from_str(text).unwrap();
    assert_eq!(shown["text"], "## Facts\n[1 May 2024] Ann: I live in Oslo.\n");
    assert_eq!(shown["turns"], json!(["2"]));
    assert!(session.subscribe("ripplemem://banks/me")["error"].is_object(), "counts are not followed");
}

#[test]
fn what_a_session_follows_ends_with_it_and_with_the_service_and_its_other_requests_do_not() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let session = Session::begin(&service, "");
    assert!(session.subscribe(&question("me"))["result"].is_object(), "also of a bank that holds nothing yet");
    let mut stream = session.listen();
    put(&service, "", kayak("me", "1", "boathouse"));
    assert_eq!(heard(&mut stream), Some(question("me")));
    drop(stream);
    // Nobody knows whether the last notification arrived: a client who listens again is notified again.
    let mut stream = session.listen();
    assert_eq!(heard(&mut stream), Some(question("me")));
    let without = Session { service: &service, headers: ACCEPTS.to_owned() };
    let refused = without.subscribe(&question("me"))["error"].to_string();
    assert!(refused.contains("no session"), "{refused}");
    assert_eq!(without.listen().status, 405);
    let deleted = EventStream::open(&service, "/mcp", &session.headers).status;
    assert_eq!(deleted, 200);
    let (status, ..) = service.send("DELETE", "/mcp", &session.headers, b"");
    assert_eq!(status, 204);
    assert!(session.subscribe(&question("other"))["result"].is_object());
    let mut stream = session.listen();
    put(&service, "", kayak("me", "2", "lake"));
    put(&service, "", kayak("other", "1", "lake"));
    assert_eq!(heard(&mut stream), Some(question("other")), "the other question ended with the session");
    let headers = session.headers.clone();
    assert!(service.stop(), "a client that listens holds nothing up");
    while heard(&mut stream).is_some() {}
    let service = HttpService::of(home.path());
    let session = Session { service: &service, headers };
    assert_eq!(session.listen().status, 404);
    let refused = session.subscribe(&question("me"))["error"].to_string();
    assert!(refused.contains("initialize again"), "{refused}");
    let asked = json!({"name": "recall", "arguments": {"bank": "me", "question": "Where is the red kayak?"}});
    let found = session.send("tools/call", asked)["result"]["structuredContent"]["context"].to_string();
    assert!(found.contains("lake"), "{found}");
}

#[test]
fn a_client_on_stdio_follows_what_another_process_has_open() {
    let Some(python) = Python::with("mcp", "a_client_on_stdio_follows_what_another_process_has_open") else { return };
    let home = tempfile::tempdir().unwrap();
    let pipeline = http_service::pipeline_file(home.path(), "");
    let _service = HttpService::of(home.path());
    let arguments = ["mcp", "--pipeline", pipeline.to_str().unwrap(), "--bank", "me"];
    let server = json!({"command": env!("CARGO_BIN_EXE_ripplemem"), "args": arguments, "elsewhere": true});
    check(&python, "follows", &server);
}

#[test]
fn a_client_on_stdio_goes_on_to_follow_when_the_process_that_had_the_memory_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    put(&service, "", kayak("me", "1", "boathouse"));
    let mut server = Server::start(&pipeline);
    server.initialize();
    server.request(2, "resources/subscribe", json!({"uri": question("me")}));
    assert!(server.answer(2)["result"].is_object());
    let updated = json!({
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": question("me")},
    });
    put(&service, "", kayak("me", "2", "lake"));
    assert_eq!(server.message(), updated);
    service.kill();
    assert_eq!(server.message(), updated, "what changed meanwhile is not known");
    let stored = json!({"turns": [{"speaker": "Ann", "text": "The red kayak is at home"}]});
    server.request(3, "tools/call", json!({"name": "remember", "arguments": stored}));
    let (mut stored, mut told) = (false, false);
    while !(stored && told) {
        let message = server.message();
        stored |= message["id"] == 3;
        told |= message == updated;
    }
    assert_eq!(server.close().0, Some(0));
}

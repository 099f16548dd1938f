//! The tools for agents, as clients of the Model Context Protocol use them: the official Python client,
//! which checks every result against the tool's schema, and raw messages. A test without that client is
//! named as skipped.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use memory::language::token_count;
use serde_json::{Value, json};

use super::{
    http_service::{self, HttpService},
    model_process::ScriptedModel,
    skipped::skip,
    support::{Python, fails, pipeline, ripplemem, write},
};

/// A pipeline file with its log in a directory.
fn file(home: &Path, extra: &str) -> PathBuf {
    write(&home.join("p.toml"), toml::to_string(&pipeline(home, extra)).unwrap())
}

/// The arguments of a server on a pipeline file.
fn arguments<'a>(pipeline: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["mcp", "--pipeline", pipeline.to_str().unwrap()][..], more].concat()
}

/// Runs a check of `tests/python/mcp_client.py` on a server.
pub(crate) fn check(python: &Python, name: &str, server: &Value) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_client.py");
    python.run(&[script.to_str().unwrap(), name, &server.to_string()]);
}

/// The same for a server on stdin and stdout.
pub(crate) fn check_stdio(python: &Python, name: &str, arguments: &[&str]) {
    check(python, name, &json!({"command": env!("CARGO_BIN_EXE_ripplemem"), "args": arguments}));
}

#[test]
fn an_agent_remembers_recalls_and_forgets_over_stdio() {
    let Some(python) = Python::with("mcp", "an_agent_remembers_recalls_and_forgets_over_stdio") else { return };
    for name in ["each_tool", "descriptions", "errors", "many_at_once", "resources", "follows"] {
        let home = tempfile::tempdir().unwrap();
        check_stdio(&python, name, &arguments(&file(home.path(), ""), &["--bank", "me"]));
    }
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    check_stdio(&python, "without_bank", &arguments(&pipeline, &[]));
    check_stdio(&python, "read_only", &arguments(&pipeline, &["--bank", "me", "--read-only"]));
}

#[test]
fn an_agent_remembers_recalls_and_forgets_over_http() {
    let Some(python) = Python::with("mcp", "an_agent_remembers_recalls_and_forgets_over_http") else { return };
    for (name, asks) in [
        ("each_tool", "?bank=me"),
        ("descriptions", ""),
        ("errors", "?bank=me"),
        ("many_at_once", "?bank=me"),
        ("resources", ""),
        ("follows", ""),
        ("without_bank", ""),
        ("read_only", "?bank=me&read_only"),
    ] {
        let home = tempfile::tempdir().unwrap();
        http_service::pipeline_file(home.path(), "");
        let service = HttpService::of(home.path());
        check(&python, name, &json!({"url": format!("http://{}/mcp{asks}", service.address)}));
    }
}

/// The folder with a package of npm, installed if possible; else the test is named as skipped.
fn node_package(home: &Path, package: &str, test: &str) -> bool {
    let mut npm = Command::new("npm");
    // Without a network it gives up soon, and the test is skipped.
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]);
    npm.args(["--fetch-retries=0", "--fetch-timeout=60000", "--prefix"]).arg(home).arg(package);
    let why = match npm.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("npm: {error}"),
    };
    skip(test, &format!("{package} cannot be installed: {why}"));
    false
}

#[test]
fn the_typescript_client_remembers_recalls_and_forgets() {
    let packages = tempfile::tempdir().unwrap();
    let test = "the_typescript_client_remembers_recalls_and_forgets";
    if !node_package(packages.path(), "@modelcontextprotocol/client@2.4.0", test) {
        return;
    }
    let script = packages.path().join("mcp_client.mjs");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/mcp_client.mjs"), &script).unwrap();
    let run = |server: &Value| {
        let output = Command::new("node").arg(&script).arg(server.to_string()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    let arguments = arguments(&pipeline, &["--bank", "me"]);
    run(&json!({"command": env!("CARGO_BIN_EXE_ripplemem"), "args": arguments}));
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    run(&json!({"url": format!("http://{}/mcp?bank=me", service.address)}));
}

#[test]
fn an_agent_gets_answers_in_words_where_a_language_model_is_set() {
    let Some(python) = Python::with("mcp", "an_agent_gets_answers_in_words_where_a_language_model_is_set") else {
        return;
    };
    let (home, model) = (tempfile::tempdir().unwrap(), ScriptedModel::start(&[]));
    let pipeline = file(home.path(), &model.toml("scripted"));
    check_stdio(&python, "answers", &arguments(&pipeline, &["--bank", "me"]));
}

#[test]
fn each_tool_over_http_asks_for_a_token_with_the_right_in_the_bank() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "access.token_file = \"tokens.json\"");
    let file = home.path().join("p.toml");
    let add = |name: &str, bank: &str, rights: &[&str]| {
        let rights = rights.iter().flat_map(|right| ["--right", right]);
        let arguments = ["token", "add", name, "--pipeline", file.to_str().unwrap(), "--bank", bank];
        let added = ripplemem(&arguments.into_iter().chain(rights).collect::<Vec<_>>());
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        String::from_utf8(added.stdout).unwrap().trim().to_owned()
    };
    let whole = add("whole", "team", &["read", "write", "forget"]);
    let reader = add("reader", "team", &["read"]);
    let other = add("other", "team2", &["read", "write", "forget"]);
    let service = HttpService::of(home.path());
    let send = |token: &str, method: &str, params: Value| {
        let shown = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (status, _, answer) =
            service.send("POST", "/mcp?bank=team/a", &format!("{accepts}{shown}"), message.as_bytes());
        (status, answer)
    };
    let call = |token: &str, name: &str, arguments: &Value| {
        let (status, answer) = send(token, "tools/call", json!({"name": name, "arguments": arguments}));
        (status, answer["result"]["isError"].as_bool(), answer.to_string())
    };
    // The second one stays, so that the bank holds something at the end.
    let turns = json!({"turns": [{"speaker": "Ann", "text": "The red kayak is in the boathouse", "turn": "1"},
        {"speaker": "Bo", "text": "The ferry leaves at noon", "turn": "2"}]});
    let ask = json!({"question": "Where is the red kayak?"});
    let explain = json!({"question": "Where is the red kayak?", "turn": "1"});
    // In this order each succeeds with every right.
    let tools = [
        ("remember", "write", turns),
        ("recall", "read", ask.clone()),
        ("evidence", "read", ask),
        ("explain", "read", explain),
        ("list", "read", json!({})),
        ("show", "read", json!({"turn": "1"})),
        ("profile", "read", json!({})),
        ("status", "read", json!({"bank": "team/a"})),
        ("forget", "forget", json!({"turn": "1"})),
    ];
    for (tool, needed, arguments) in &tools {
        for wrong in ["", "wrong"] {
            assert_eq!(call(wrong, tool, arguments).0, 401, "{tool}");
        }
        let (status, failed, text) = call(&other, tool, arguments);
        assert_eq!((status, failed), (200, Some(true)), "{tool}: {text}");
        assert!(text.contains("does not reach") && !text.contains("kayak is"), "{tool}: {text}");
        let (_, failed, text) = call(&whole, tool, arguments);
        assert_ne!(failed, Some(true), "{tool}: {text}");
        let (_, failed, text) = call(&reader, tool, arguments);
        let refused = failed == Some(true) && text.contains("lacks the right");
        assert_eq!(refused, *needed != "read", "{tool}: {text}");
    }
    let ask = |most: u32| json!({"question": "Where is the red kayak?", "most_tokens": most});
    let list = |limit: u32| json!({"limit": limit});
    for (tool, arguments, word) in [
        ("list", list(0), "limit: 0; allowed is 1 to 100"),
        ("list", list(101), "limit: 101; allowed is 1 to 100"),
        ("recall", ask(0), "most_tokens: 0"),
    ] {
        let (_, failed, text) = call(&whole, tool, &arguments);
        assert!(failed == Some(true) && text.contains(word), "{tool}: {text}");
    }
    for (tool, arguments) in [("list", list(100)), ("recall", ask(1))] {
        let (_, failed, text) = call(&whole, tool, &arguments);
        assert_ne!(failed, Some(true), "{tool}: {text}");
    }
    let resources = |token: &str| send(token, "resources/list", json!({})).1.to_string();
    assert!(resources(&reader).contains("ripplemem://banks/team/a"), "{}", resources(&reader));
    assert!(!resources(&other).contains("team/a"));
    assert_eq!(send("", "resources/list", json!({})).0, 401);
    let read = |token: &str| send(token, "resources/read", json!({"uri": "ripplemem://banks/team/a"})).1;
    assert!(read(&reader)["result"].is_object(), "{}", read(&reader));
    assert!(read(&other)["error"].is_object(), "{}", read(&other));
}

#[test]
fn requests_from_elsewhere_and_messages_that_are_none_are_refused_over_http() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let port = service.address.rsplit_once(':').unwrap().1;
    let ours = format!("Origin: http://localhost:{port}\r\n");
    for (headers, body, expected) in [
        ("", list.as_str(), 200),
        (ours.as_str(), &list, 200),
        ("Host: evil.example\r\n", &list, 403),
        (&format!("Host: evil.example:{port}\r\n"), &list, 403),
        ("Origin: https://evil.example\r\n", &list, 403),
        ("Origin: null\r\n", &list, 403),
        ("MCP-Protocol-Version: 1999-01-01\r\n", &list, 400),
    ] {
        let (status, _, answer) = service.send("POST", "/mcp", &format!("{accepts}{headers}"), body.as_bytes());
        assert_eq!(status, expected, "{headers}: {answer}");
        assert_eq!(status == 200, answer["result"]["tools"].is_array(), "{headers}: {answer}");
    }
    let deep = "[".repeat(100_000);
    for body in
        [&b"garbage"[..], b"", b"\xff\xfe", b"null", b"[]", b"{}", br#"{"jsonrpc":"2.0","id":1}"#, deep.as_bytes()]
    {
        let (head, text) = raw(&service, accepts, body);
        assert!(
            head.starts_with("HTTP/1.1 4"),
            "{}: {head} {text}",
            String::from_utf8_lossy(&body[..body.len().min(40)])
        );
    }
    for method in ["GET", "DELETE", "PUT"] {
        let mut stream = service.connect();
        let host = &service.address;
        write!(stream, "{method} /mcp HTTP/1.1\r\nHost: {host}\r\n{accepts}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
    }
    assert!(service.send("POST", "/mcp", accepts, list.as_bytes()).2["result"]["tools"].is_array());
}

/// The head and the body of the answer to a message.
pub(crate) fn raw(service: &HttpService, headers: &str, body: &[u8]) -> (String, String) {
    let mut stream = service.connect();
    let (host, length) = (&service.address, body.len());
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

#[test]
fn agents_share_a_directory_and_go_on_when_the_one_that_had_it_open_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    let mut first = Server::start(&pipeline);
    first.initialize();
    let said = |n: u64| json!({"turns": [{"speaker": "Ann", "text": format!("Hive {n} stands in garden {n}.")}]});
    let asked = |n: u64| json!({"question": format!("Where does hive {n} stand?")});
    let found = |answer: &Value, n: u64| {
        let context = answer["structuredContent"]["context"].as_str().unwrap_or_default();
        assert!(context.contains(&format!("garden {n}.")), "{answer}");
    };
    assert_eq!(first.call(2, "remember", said(1))["isError"], false);
    let mut second = Server::start(&pipeline);
    second.initialize();
    found(&second.call(2, "recall", asked(1)), 1);
    assert_eq!(second.call(3, "remember", said(2))["isError"], false);
    found(&first.call(3, "recall", asked(2)), 2);
    assert_eq!(second.call(4, "status", json!({"bank": "me"}))["structuredContent"]["counts"]["units"], 2);
    first.child.kill().unwrap();
    drop(first);
    found(&second.call(5, "recall", asked(2)), 2);
    assert_eq!(second.call(6, "remember", said(3))["isError"], false);
    let mut third = Server::start(&pipeline);
    third.initialize();
    found(&third.call(2, "recall", asked(3)), 3);
    // A server that ends in order leaves the directory to the others, too.
    assert_eq!(second.close().0, Some(0));
    let forgotten = third.call(3, "forget", json!({"turn": "nobody said it"}));
    assert_eq!(forgotten["structuredContent"]["included"], true, "{forgotten}");
    assert_eq!(forgotten["structuredContent"]["held"], false, "{forgotten}");
    found(&third.call(4, "recall", asked(3)), 3);
    assert_eq!(third.close().0, Some(0));
}

#[test]
fn an_agent_reaches_the_service_that_has_the_directory_open() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let mut server = Server::start(&pipeline);
    server.initialize();
    let stored = server.call(2, "remember", json!({"turns": [{"speaker": "Ann", "text": "I keep bees."}]}));
    assert_eq!(stored["structuredContent"]["included"], true, "{stored}");
    assert_eq!(service.get("/v1/banks"), json!({"banks": ["me"]}));
    let nothing = server.call(3, "recall", json!({"question": "Bees?", "bank": "nobody"}));
    let (text, recalled) = (nothing["content"][0]["text"].as_str().unwrap(), &nothing["structuredContent"]);
    assert!(nothing["isError"] != true && text.contains("bank nobody holds nothing yet"), "{nothing}");
    assert_eq!((&recalled["supported"], &recalled["units"]), (&json!(false), &json!(0)), "{nothing}");
    assert!(recalled["notice"].as_str().unwrap().contains("check its name"), "{nothing}");
    let (code, said) = server.close();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("has the directory open; it is asked"), "{said}");
}

/// A server on stdin and stdout, killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    messages: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(pipeline: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(arguments(pipeline, &["--bank", "me"]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (messages, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, messages, answers }
    }

    fn send(&mut self, line: &[u8]) {
        let messages = self.messages.as_mut().unwrap();
        messages.write_all(line).unwrap();
        messages.write_all(b"\n").unwrap();
        messages.flush().unwrap();
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
    }

    /// The answer with this id; every line on stdout is a message of the protocol.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The next message, of whatever kind.
    pub(crate) fn message(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.answers.read_line(&mut line).unwrap() > 0, "stdout was closed");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    pub(crate) fn initialize(&mut self) {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.request(1, "initialize", params);
        assert_eq!(self.answer(1)["result"]["protocolVersion"], "2025-11-25");
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}));
        self.answer(id)["result"].clone()
    }

    /// Closes stdin; the exit code, and what stderr had.
    pub(crate) fn close(mut self) -> (Option<i32>, String) {
        drop(self.messages.take());
        let until = Instant::now() + Duration::from_secs(60);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the server goes on although stdin is closed");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn messages_that_are_none_end_no_server_and_put_nothing_else_on_stdout() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Server::start(&file(home.path(), ""));
    server.initialize();
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\"", "x".repeat(1 << 20));
    let deep = "[".repeat(100_000);
    let wrong: [&[u8]; 14] = [
        b"garbage",
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"42",
        b"[]",
        b"{}",
        br#"{"jsonrpc":"2.0","id":null,"method":"tools/call"}"#,
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":["remember"]}}"#,
        br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"recall","arguments":[1]}}"#,
        br#"{"jsonrpc":"1.0","id":9,"method":"nothing/at/all","params":{"a":1e999}}"#,
        br#"{"jsonrpc":"2.0","id":1,"result":{"nobody":"asked"}}"#,
        long.as_bytes(),
        deep.as_bytes(),
    ];
    for line in wrong {
        server.send(line);
    }
    let stored = server.call(100, "remember", json!({"turns": [{"speaker": "Ann", "text": "I keep bees."}]}));
    assert_eq!(stored["structuredContent"]["included"], true, "{stored}");
    let (code, said) = server.close();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_server_ends_with_its_client_whatever_came_before() {
    for line in [&b""[..], b"garbage\n", b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"] {
        let home = tempfile::tempdir().unwrap();
        let mut server = Server::start(&file(home.path(), ""));
        drop(server.messages.as_mut().unwrap().write_all(line));
        let (code, said) = server.close();
        assert!(code.is_some() && !said.contains("panicked"), "{code:?} {said}");
        assert!(code == Some(0) || said.contains("Model Context Protocol"), "{said}");
    }
}

#[test]
fn a_killed_server_loses_nothing_that_it_said_was_stored() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    let mut server = Server::start(&pipeline);
    server.initialize();
    let mut after = Value::Null;
    for n in 0..10 {
        let turn = json!({"speaker": "Ann", "text": format!("Hive {n} stands in garden {n}."), "turn": n.to_string()});
        let stored = server.call(10 + n, "remember", json!({"turns": [turn], "wait_seconds": 0}));
        assert_eq!(stored["isError"], false, "{stored}");
        after = stored["structuredContent"]["after"].clone();
    }
    server.child.kill().unwrap();
    drop(server);
    let mut server = Server::start(&pipeline);
    server.initialize();
    for n in 0..10 {
        let question = json!({"question": format!("Where does hive {n} stand?"), "after": after});
        let found = server.call(10 + n, "recall", question);
        let context = found["structuredContent"]["context"].as_str().unwrap_or_default();
        assert!(context.contains(&format!("garden {n}.")), "{found}");
    }
}

#[test]
fn a_server_that_cannot_open_its_memory_says_why_in_each_call() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    fs::write(home.path().join("log"), "not a directory").unwrap();
    let mut server = Server::start(&pipeline);
    server.initialize();
    let said = server.call(2, "status", json!({}));
    assert_eq!(said["isError"], true, "{said}");
    assert!(said["content"][0]["text"].as_str().unwrap().contains("log"), "{said}");
    fs::remove_file(home.path().join("log")).unwrap();
    assert_eq!(server.call(3, "status", json!({}))["isError"], false, "it is opened at the next call");
    assert_eq!(server.close().0, Some(0));
}

#[test]
fn a_wrong_bank_is_refused_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    fails(&super::support::ripplemem(&arguments(&pipeline, &["--bank", "../other"])), 1, &["--bank", "segment"]);
}

/// What curl and clients of other revisions send: no header, any header, and batches if the revision has them.
#[test]
fn whatever_a_client_says_it_accepts_is_answered_in_json() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let message = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    for headers in [
        "",
        "Accept: */*\r\n",
        "Accept: application/json\r\n",
        "Accept: text/event-stream\r\nContent-Type: application/json\r\n",
        "Accept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\n",
    ] {
        let (status, kind, answer) = service.send("POST", "/mcp", headers, message(1).to_string().as_bytes());
        assert_eq!((status, kind.as_str()), (200, "application/json"), "{headers}: {answer}");
        assert!(answer["result"]["tools"].is_array(), "{headers}: {answer}");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([message(1), note, message(2)]).to_string();
    for headers in ["", "MCP-Protocol-Version: 2025-03-26\r\n"] {
        let (status, _, answers) = service.send("POST", "/mcp", headers, batch.as_bytes());
        let ids: Vec<u64> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!((status, ids), (200, vec![1, 2]), "{headers}: {answers}");
        assert!(answers[1]["result"]["tools"].is_array(), "{answers}");
    }
    let newer = "MCP-Protocol-Version: 2025-11-25\r\n";
    let (status, _, refused) = service.send("POST", "/mcp", newer, batch.as_bytes());
    assert_eq!((status, refused["error"]["code"].as_i64()), (400, Some(-32_600)), "{refused}");
    let (status, kind, refused) = service.send("POST", "/mcp", "", b"{");
    assert_eq!((status, kind.as_str(), refused["error"]["code"].as_i64()), (400, "application/json", Some(-32_700)));
}

#[test]
fn the_tokens_that_recall_may_give_back_count_the_ids_of_turns() {
    let home = tempfile::tempdir().unwrap();
    http_service::pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let answer = service.send("POST", "/mcp?bank=team/a", "", message.as_bytes()).2;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    };
    let turn = |n: usize| json!({"speaker": "Ann", "text": format!("Boat {n} is red."), "turn": format!("{n:0>36}")});
    call("remember", json!({"turns": (0..50).map(turn).collect::<Vec<_>>()}));
    let mut before = 0;
    for most in [60, 100, 300] {
        let recalled = call("recall", json!({"question": "Which boats are red?", "most_tokens": most}));
        let context = recalled["context"].as_str().unwrap();
        let (tokens, quotes) = (token_count::count_tokens(context), context.matches("is red").count());
        assert!(tokens <= most && 3 * tokens > most && quotes > before, "{most}: {tokens} tokens of {context}");
        before = quotes;
    }
}

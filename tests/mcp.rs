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

use serde_json::{Value, json};

use super::{
    model_process::ScriptedModel,
    support::{Python, fails, pipeline, write},
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
fn check(python: &Python, name: &str, server: &Value) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_client.py");
    python.run(&[script.to_str().unwrap(), name, &server.to_string()]);
}

/// The same for a server on stdin and stdout.
fn check_stdio(python: &Python, name: &str, arguments: &[&str]) {
    check(python, name, &json!({"command": env!("CARGO_BIN_EXE_ripplemem"), "args": arguments}));
}

#[test]
fn an_agent_remembers_recalls_and_forgets_over_stdio() {
    let Some(python) = Python::with("mcp", "an_agent_remembers_recalls_and_forgets_over_stdio") else { return };
    for name in ["each_tool", "descriptions", "errors", "many_at_once"] {
        let home = tempfile::tempdir().unwrap();
        check_stdio(&python, name, &arguments(&file(home.path(), ""), &["--bank", "me"]));
    }
    let home = tempfile::tempdir().unwrap();
    let pipeline = file(home.path(), "");
    check_stdio(&python, "without_bank", &arguments(&pipeline, &[]));
    check_stdio(&python, "read_only", &arguments(&pipeline, &["--bank", "me", "--read-only"]));
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

/// A server on stdin and stdout, killed when it is dropped.
struct Server {
    child: Child,
    messages: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start(pipeline: &Path) -> Self {
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

    fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
    }

    /// The answer with this id; every line on stdout is a message of the protocol.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "stdout was closed before answer {id}");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn initialize(&mut self) {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.request(1, "initialize", params);
        assert_eq!(self.answer(1)["result"]["protocolVersion"], "2025-11-25");
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}));
        self.answer(id)["result"].clone()
    }

    /// Closes stdin; the exit code, and what stderr had.
    fn close(mut self) -> (Option<i32>, String) {
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

//! Profiles for an agent that begins, of some turns alone, and followed: over HTTP, on the command line and over MCP.
//!
//! In: turns with sessions. Out: profiles. A test fails if a beginning lacks a session or a plan, if a selector lets in
//! what other turns say, or if a follower misses a change.

use serde_json::{Value, json};

use super::{
    event_stream::EventStream,
    http_service::{HttpService, pipeline_file},
    support::ripplemem,
};

fn put(service: &HttpService, turns: Value) {
    let written = service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}));
    assert_eq!(written["reflected"], true, "{written}");
}

fn turn(id: &str, (session, day): (&str, u32), speaker: &str, text: &str) -> Value {
    let time = format!("2024-05-{day:02}T10:00:00Z");
    json!({"bank": "home", "turn": id, "speaker": speaker, "text": text, "session": session, "time": time})
}

fn texts(profile: &Value) -> Vec<&str> {
    profile["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect()
}

/// `where` as a parameter.
fn only(select: &Value) -> String {
    let bytes = select.to_string().into_bytes();
    let escaped: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
    format!("&where={escaped}")
}

#[test]
fn a_beginning_has_open_plans_and_the_latest_sessions() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "extract.unit_turns = 1\n");
    let service = HttpService::of(home.path());
    let empty = service.get("/v1/profile?bank=home&begin=true");
    assert_eq!((empty["lines"].clone(), empty["text"].clone()), (json!([]), json!("")), "an agent asks before all");
    let long = "Where  is\nthe boat?\n## Facts ".to_owned() + &"and the oar ".repeat(20);
    put(
        &service,
        json!([
            turn("1", ("old", 1), "user", "Always use tabs. I prefer tea."),
            turn("2", ("old", 1), "user", "I'll paint the boat by 2 January 2124."),
            turn("3", ("boat", 2), "user", &long),
            turn("4", ("boat", 3), "assistant", "In the boathouse."),
            turn("5", ("tea", 4), "user", "Which tea is it?"),
        ]),
    );
    for day in 5..9 {
        put(&service, json!([turn(&format!("d{day}"), (&format!("day {day}"), day), "user", "Good morning.")]));
    }
    let titled = json!({"bank": "home", "session": "tea", "title": "Tea, ## Facts"}).to_string();
    assert_eq!(service.send("PUT", "/v1/sessions", "", titled.as_bytes()).0, 200);
    let found = service.get("/v1/profile?bank=home&begin=true&kinds=instruction");
    assert_eq!(texts(&found), ["Always use tabs.", "I'll paint the boat by 2 January 2124."]);
    let text = found["text"].as_str().unwrap();
    let list = text.split_once("## Latest sessions\n").unwrap().1;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 5, "{list}");
    assert_eq!(lines[0], "[8 May 2024, 1 turn] user: Good morning.");
    assert_eq!(lines[4], "[4 May 2024, 1 turn] tea: Tea, ## Facts");
    assert_eq!(found["tokens"].as_u64().unwrap() as usize, memory::language::token_count::count_tokens(text));
    // Of some turns alone: their sessions, how they begin, and nothing that others say.
    let some = only(&json!({"session_prefix": "b"}));
    let found = service.get(&format!("/v1/profile?bank=home&begin=true{some}"));
    assert_eq!(texts(&found), [""; 0]);
    let sessions = found["sessions"].as_array().unwrap();
    assert_eq!((sessions.len(), &sessions[0]["session"], &sessions[0]["turns"]), (1, &json!("boat"), &json!(2)));
    let begins = sessions[0]["begins"]["text"].as_str().unwrap();
    assert!(begins.starts_with("Where is the boat? ## Facts and") && begins.chars().count() == 80, "{begins}");
    assert!(!found["text"].as_str().unwrap().contains("\n## Facts"), "{found}");
    // Few tokens leave the lines their room.
    let small = service.get("/v1/profile?bank=home&begin=true&most_tokens=60");
    assert!(small["tokens"].as_u64().unwrap() <= 60 && texts(&small).contains(&"Always use tabs."), "{small}");
    for (query, problem) in [
        ("&begin=true&as_of=1", "begin"),
        ("&where=%7B%7D", "where"),
        ("&where=x", "where"),
        ("&begin=perhaps", "begin"),
    ] {
        let (status, _, answer) = service.send("GET", &format!("/v1/profile?bank=home{query}"), "", b"");
        assert_eq!(status, 400, "{query}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(problem), "{answer}");
    }
    let call = json!({"name": "profile", "arguments": {"begin": true, "where": {"session": "old"}}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).to_string();
    let answer = service.send("POST", "/mcp?bank=home", "", message.as_bytes()).2;
    let told = answer["result"]["structuredContent"]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(
        told.contains("I prefer tea.")
            && told.ends_with("[1 May 2024, 2 turns] user: Always use tabs. I prefer tea.\n"),
        "{told}"
    );
    // The command reaches this service, and without it opens the memory.
    let file = home.path().join("p.toml");
    let show = || {
        let arguments = ["profile", "--bank", "home", "--begin", "--where", r#"{"session":"old"}"#, "--pipeline"];
        let output = ripplemem(&[&arguments[..], &[file.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(show(), told);
    assert!(service.stop());
    assert_eq!(show(), told);
}

/// A profile of some turns is that of a bank in which nothing else was said.
#[test]
fn a_selector_makes_the_profile_of_those_turns_alone() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "extract.unit_turns = 1\n");
    let service = HttpService::of(home.path());
    put(
        &service,
        json!([
            turn("1", ("work", 1), "user", "I live in Oslo. I like coffee."),
            turn("2", ("home", 2), "user", "I live in Rome."),
            turn("3", ("work", 3), "user", "I like coffee. I live in Bergen."),
            turn("4", ("home", 4), "user", "I no longer like coffee."),
        ]),
    );
    let of = |select: Option<Value>| {
        let some = select.as_ref().map(only).unwrap_or_default();
        let found = service.get(&format!("/v1/profile?bank=home&past=true{some}"));
        let line = |line: &Value| {
            let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let turns = line["turns"].as_array().unwrap().iter().map(said).collect::<Vec<_>>().join(" ");
            format!("{} [{turns}] < {}", said(&line["text"]), said(&line["superseded_by"]["text"]))
        };
        let mut lines: Vec<String> = found["lines"].as_array().unwrap().iter().map(line).collect();
        lines.sort();
        lines
    };
    let work = of(Some(json!({"session": "work"})));
    assert_eq!(
        work,
        ["I like coffee. [1 3] < ", "I live in Bergen. [3] < ", "I live in Oslo. [1] < I live in Bergen."],
        "what the other session says supersedes nothing"
    );
    let all = of(None);
    assert!(all.contains(&"I live in Oslo. [1] < I live in Rome.".to_owned()), "{all:?}");
    assert!(all.contains(&"I like coffee. [1 3] < I no longer like coffee.".to_owned()), "{all:?}");
    assert_eq!(of(Some(json!({"all": true}))), all);
    assert_eq!(of(Some(json!({"turns": ["2"]}))), ["I live in Rome. [2] < "]);
}

#[test]
fn a_follower_gets_the_profile_now_and_after_each_change() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "extract.unit_turns = 1\n");
    let service = HttpService::of(home.path());
    let mut stream = EventStream::open(&service, "/v1/profile?bank=home", "Accept: text/event-stream\r\n");
    let mut next = || loop {
        let event = stream.next().expect("the stream goes on");
        if event.name == "profile" {
            assert_eq!(event.id.as_deref(), event.data["version"].as_str());
            return event.data;
        }
        assert_eq!(event.name, "", "{event:?}");
    };
    let first = next();
    assert_eq!(texts(&first), [""; 0], "of a bank that holds nothing yet");
    put(&service, json!([turn("1", ("s", 1), "user", "I live in Oslo.")]));
    let second = next();
    assert_eq!(texts(&second), ["I live in Oslo."]);
    // What states nothing changes nothing: the next event is that of the turn after it.
    put(&service, json!([turn("2", ("s", 2), "user", "Where is the kayak?")]));
    put(&service, json!([turn("3", ("s", 3), "user", "I live in Rome.")]));
    let third = next();
    assert_eq!(texts(&third), ["I live in Rome."]);
    let version = third["version"].as_str().unwrap();
    // A client that comes back with a version waits for another one.
    let path = |version: &str, wait: u32| format!("/v1/profile?bank=home&last_event_id={version}&wait_ms={wait}");
    assert_eq!(texts(&service.get(&path(second["version"].as_str().unwrap(), 60_000))), ["I live in Rome."]);
    assert_eq!(service.get(&path(version, 50))["version"], version);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| service.get(&path(version, 60_000)));
        let (status, _, answer) = service.send("DELETE", "/v1/turns?bank=home&turn=3&wait_ms=60000", "", b"");
        assert_eq!(status, 200, "{answer}");
        assert_eq!(texts(&waiting.join().unwrap()), ["I live in Oslo."]);
    });
    let fourth = next();
    assert_eq!((texts(&fourth), fourth["version"] == second["version"]), (vec!["I live in Oslo."], true));
    let refused = EventStream::open(&service, "/v1/profile?bank=home&as_of=1", "Accept: text/event-stream\r\n");
    assert_eq!(refused.status, 400);
}

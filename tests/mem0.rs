//! The routes of Mem0's platform: with its published client (`tests/python/mem0_client.py`), and replayed
//! without Python.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    access::expired,
    http_service::{HttpService, pipeline_file},
    skipped::skip,
    support::{Python, data, ripplemem},
};

const MEM0_OF_NPM: &str = "mem0ai@3.3.1";
const MEM0: &str = "http.mem0 = true\n";

/// A token of a pipeline file.
fn token(home: &Path, name: &str, bank: &str, rights: &[&str]) -> String {
    let file = home.join("p.toml");
    let rights = rights.iter().flat_map(|right| ["--right", right]);
    let arguments = ["token", "add", name, "--bank", bank, "--pipeline", file.to_str().unwrap()];
    let added = ripplemem(&arguments.into_iter().chain(rights).collect::<Vec<_>>());
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    String::from_utf8(added.stdout).unwrap().trim().to_owned()
}

fn send(service: &HttpService, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let shown = if token.is_empty() { String::new() } else { format!("Authorization: Token {token}\r\n") };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, kind, answer) = service.send(method, path, &shown, body.as_bytes());
    assert_eq!(kind, "application/json", "{method} {path}: the client reads no other type");
    assert!(status < 300 || answer["detail"].is_string(), "{method} {path}: {answer}");
    (status, answer)
}

#[test]
fn the_published_client_of_mem0_adds_searches_lists_edits_and_deletes() {
    let name = "the_published_client_of_mem0_adds_searches_lists_edits_and_deletes";
    let Some(python) = Python::with("mem0ai", name) else { return };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("{MEM0}access.token_file = \"tokens.json\"\n"));
    let token = token(home.path(), "agent", "mem0", &["read", "write", "forget"]);
    let service = HttpService::of(home.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mem0_client.py");
    let mut command = python.command();
    command.env("MEM0_TELEMETRY", "False").env("MEM0_DIR", home.path().join("mem0")).env("HOME", home.path());
    let output = command.arg(script).arg(format!("http://{}", service.address)).arg(&token).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(service.stop());
}

/// Mem0's package for JavaScript, which npm installs into the tests' directory.
#[test]
fn the_published_client_of_mem0_for_javascript_filters() {
    let name = "the_published_client_of_mem0_for_javascript_filters";
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mem0ai");
    let installed = project.join("installed");
    if fs::read_to_string(&installed).ok().as_deref() != Some(MEM0_OF_NPM) {
        drop(fs::remove_dir_all(&project));
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("package.json"), r#"{ "private": true, "type": "module" }"#).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", "--fetch-retries=1"]);
        npm.args(["--legacy-peer-deps", "--omit=peer", MEM0_OF_NPM]).current_dir(&project).stdin(Stdio::null());
        match npm.output() {
            Ok(output) if output.status.success() => fs::write(&installed, MEM0_OF_NPM).unwrap(),
            Ok(output) => return skip(name, String::from_utf8_lossy(&output.stderr).trim()),
            Err(error) => return skip(name, &format!("npm: {error}")),
        }
    }
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("{MEM0}access.token_file = \"tokens.json\"\n"));
    let token = token(home.path(), "agent", "mem0", &["read", "write", "forget"]);
    let service = HttpService::of(home.path());
    let script = project.join("mem0_client.mjs");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/mem0_client.mjs"), &script).unwrap();
    let mut node = Command::new("node");
    node.env("MEM0_TELEMETRY", "false").env("HOME", home.path()).current_dir(&project);
    let output = node.arg(script).arg(format!("http://{}", service.address)).arg(&token).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(service.stop());
}

/// What mem0ai 2.2.1 sends call by call, as it was recorded; ID stands for the id of the first memory.
#[test]
fn the_recorded_calls_of_mem0s_client_are_answered() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), MEM0);
    let service = HttpService::of(home.path());
    let mut id = String::new();
    for line in fs::read_to_string(data("mem0_requests.jsonl")).unwrap().lines() {
        let call: Value = serde_json::from_str(&line.replace("ID", &id)).unwrap();
        let (method, path) = (call["method"].as_str().unwrap(), call["path"].as_str().unwrap());
        let (status, answer) = send(&service, "any", method, path, &call["body"]);
        assert_eq!(status, call["status"], "{line}: {answer}");
        let expected = call["has"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        expected.for_each(|word| assert!(answer.to_string().contains(word), "{word}: {line}: {answer}"));
        if let Some(added) = answer["results"][0]["id"].as_str().filter(|_| id.is_empty()) {
            added.clone_into(&mut id);
        }
    }
    assert!(service.stop());
}

#[test]
fn each_route_of_mem0_asks_for_a_token_with_its_right_in_the_bank_of_the_ids() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("{MEM0}access.token_file = \"tokens.json\"\naccess.audit_file = \"audit\"\n"));
    let all = ["read", "write", "forget", "admin"];
    let whole = token(home.path(), "whole", "mem0", &all);
    let others = [token(home.path(), "bob", "mem0/user-bob", &all), token(home.path(), "acme", "acme", &all)];
    let expired = expired(home.path());
    let by_right = all.map(|right| (right, token(home.path(), right, "mem0/user-ann", &[right])));
    let service = HttpService::of(home.path());
    let message =
        json!({"messages": [{"role": "user", "content": "The red kayak is in the boathouse"}], "user_id": "ann"});
    let add = || {
        let (status, added) = send(&service, &whole, "POST", "/v3/memories/add/", &message);
        assert_eq!(status, 200, "{added}");
        added["results"][0]["id"].as_str().unwrap().to_owned()
    };
    let id = add();
    let (path, filters) = (format!("/v1/memories/{id}/"), json!({"filters": {"user_id": "ann"}}));
    let batch = json!({"memories": [{"memory_id": id, "text": "The kayak is gone"}]});
    let batch_delete = json!({"memories": [{"memory_id": "user-ann~none"}]});
    let history = format!("{path}history/");
    let routes = [
        ("write", "POST", "/v3/memories/add/", message.clone()),
        (
            "read",
            "POST",
            "/v3/memories/search/",
            json!({"query": "Where is the kayak?", "filters": {"user_id": "ann"}}),
        ),
        ("read", "POST", "/v3/memories/", filters),
        ("read", "GET", &path, Value::Null),
        ("read", "GET", &history, Value::Null),
        ("write", "PUT", &path, json!({"text": "The kayak is on the lake"})),
        ("write", "PUT", "/v1/batch/", batch),
        ("forget", "DELETE", "/v1/batch/", batch_delete),
        ("forget", "DELETE", "/v1/memories/user-ann~none/", Value::Null),
        ("forget", "DELETE", "/v1/memories/?user_id=ann&run_id=none", Value::Null),
        ("forget", "DELETE", "/v1/memories/?user_id=ann", Value::Null),
    ];
    for (needed, method, path, body) in &routes {
        for wrong in ["", "wrong", expired.trim(), &format!("{whole}x")] {
            assert_eq!(send(&service, wrong, method, path, body).0, 401, "{method} {path}");
        }
        for other in &others {
            assert_eq!(send(&service, other, method, path, body).0, 403, "{method} {path}");
        }
        for (right, token) in by_right.iter().filter(|(right, _)| right != needed) {
            assert_eq!(send(&service, token, method, path, body).0, 403, "{right} at {method} {path}");
        }
        let (_, token) = by_right.iter().find(|(right, _)| right == needed).unwrap();
        let (status, answer) = send(&service, token, method, path, body);
        let is_there = !format!("{path}{body}").contains("~none");
        assert_eq!(status, if is_there { 200 } else { 404 }, "{needed} at {method} {path}: {answer}");
    }
    // Requests without an entity: the token must be valid; lists and deletions reach its own banks.
    add();
    for path in ["/v1/ping/", "/v1/entities/", "/v1/summary/", "/v1/nothing/"] {
        assert_eq!(send(&service, "", "GET", path, &Value::Null).0, 401, "{path}");
    }
    assert_eq!(send(&service, &others[1], "GET", "/v1/ping/", &Value::Null).0, 200);
    let users = |token: &str| send(&service, token, "GET", "/v1/entities/", &Value::Null).1["count"].clone();
    assert_eq!((users(&whole), users(&others[0])), (json!(1), json!(0)), "a list shows no other's entities");
    assert_eq!(send(&service, &by_right[2].1, "GET", "/v1/entities/", &Value::Null).0, 403);
    let entity = "/v2/entities/user/ann/";
    assert_eq!(send(&service, &others[0], "DELETE", entity, &Value::Null).0, 403);
    assert_eq!(send(&service, &by_right[0].1, "DELETE", entity, &Value::Null).0, 403);
    assert_eq!(send(&service, &by_right[2].1, "DELETE", entity, &Value::Null).0, 200);
    assert_eq!(users(&whole), json!(0));
    assert_eq!(send(&service, &whole, "GET", "/v1/banks", &Value::Null).1["banks"], json!([]));
    let audit = fs::read_to_string(home.path().join("audit")).unwrap();
    assert!(audit.contains("/v1/memories/{id}/") && !audit.contains(&id) && !audit.contains("kayak"), "no content");
}

#[test]
fn a_token_that_may_only_write_reads_no_memory_and_a_time_that_is_none_is_refused() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("{MEM0}access.token_file = \"tokens.json\"\n"));
    let [reads, writes] =
        [&["read", "write"][..], &["write"]].map(|rights| token(home.path(), rights[0], "mem0", rights));
    let service = HttpService::of(home.path());
    let kayak = "The red kayak is in the boathouse";
    let message = json!({"messages": [{"role": "user", "content": kayak}], "user_id": "ann"});
    let (_, added) = send(&service, &reads, "POST", "/v3/memories/add/", &message);
    let path = format!("/v1/memories/{}/", added["results"][0]["id"].as_str().unwrap());
    let metadata = json!({"metadata": {"seen": true}});
    let (status, answer) = send(&service, &writes, "PUT", &path, &metadata);
    assert_eq!((status, &answer["user_id"]), (200, &json!("ann")));
    assert!(!answer.to_string().contains("kayak"), "{answer}");
    assert_eq!(send(&service, &reads, "PUT", &path, &metadata).1["memory"], kayak);
    for time in [json!("nan"), json!("inf"), json!("-inf"), json!(1e300)] {
        let (status, answer) = send(&service, &writes, "PUT", &path, &json!({"timestamp": time}));
        assert_eq!(status, 400, "{time}: {answer}");
    }
    assert!(service.stop());
}

#[test]
fn a_search_takes_who_asks_and_what_was_said_before() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), MEM0);
    let service = HttpService::of(home.path());
    let said = |scope: Value, name: &str, text: &str| {
        let mut body = json!({"messages": [{"role": "user", "name": name, "content": text}]});
        body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        assert_eq!(send(&service, "", "POST", "/v3/memories/add/", &body).0, 200);
    };
    let trip = json!({"user_id": "team", "run_id": "trip"});
    said(trip.clone(), "Ann", "I keep my kayak in the boathouse.");
    said(trip, "Bo", "I keep my kayak under the bridge.");
    said(json!({"user_id": "team", "run_id": "shop"}), "Cy", "The shop sells paddles and ropes.");
    let search = |more: Value| {
        let mut body = json!({"query": "Where do I keep my kayak?", "filters": {"user_id": "team", "run_id": "trip"}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        send(&service, "", "POST", "/v3/memories/search/", &body)
    };
    let first = |more: Value| {
        let (status, found) = search(more);
        assert_eq!(status, 200, "{found}");
        found["results"][0]["memory"].as_str().unwrap().to_owned()
    };
    assert!(first(json!({"asker": "Ann"})).contains("boathouse"));
    assert!(first(json!({"asker": "Bo"})).contains("bridge"));
    // Bo does not speak in the other scope, which is searched, too.
    let both = json!({"user_id": "team"});
    assert!(first(json!({"asker": "Bo", "filters": both})).contains("bridge"));
    let ropes = json!({"asker": "Bo", "filters": both, "query": "What does the shop sell?"});
    assert!(first(ropes).contains("paddles"));
    for filters in [both.clone(), json!({"user_id": "team", "run_id": "trip"})] {
        let (status, answer) = search(json!({"asker": "Dee", "filters": filters}));
        assert_eq!((status, &answer["results"]), (200, &json!([])), "{answer}");
        assert!(answer["notice"].as_str().unwrap().contains("\"Dee\" does not speak"), "{answer}");
    }
    let (status, answer) = search(json!({"filters": {"user_id": "nobody"}}));
    assert_eq!((status, &answer["results"]), (200, &json!([])), "{answer}");
    assert!(answer["notice"].as_str().unwrap().contains("no memory of these ids"), "{answer}");
    let (_, known) = search(json!({"asker": "Bo", "filters": both}));
    assert!(known.get("notice").is_none(), "{known}");
    let said = |text: &str| json!({"query": "And where?", "said_before": [{"speaker": "Ann", "text": text}]});
    assert!(first(said("Bo has a kayak under the bridge.")).contains("bridge"));
    assert!(first(said("Ann has a kayak in the boathouse.")).contains("boathouse"));
    for wrong in [json!("I have a kayak."), json!([{"speaker": "Ann"}]), json!([{"role": "user", "content": "x"}])] {
        let (status, answer) = search(json!({"said_before": wrong}));
        assert_eq!(status, 400, "{answer}");
        assert!(answer["detail"].as_str().unwrap().starts_with("said_before"), "{answer}");
    }
    assert!(service.stop());
}

#[test]
fn the_routes_of_mem0_are_there_only_where_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    assert_eq!(service.send("GET", "/v1/ping/", "", b"").0, 404);
    let kafka = "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"b:1\"\nhttp.listen = \"127.0.0.1:0\"\nhttp.mem0 = true";
    let refused = types::config::Pipeline::parse(kafka).unwrap_err();
    assert!(refused.contains("http.mem0"), "{refused}");
}

//! Tokens, rights, TLS and the audit log, against the real program.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use server::{RequiredRight, RouteRight, access::AccessRight};

use super::{
    event_stream::EventStream,
    http_service::{HttpService, pipeline_file},
    kafka::wait,
    skipped::skip,
    support::{fails, ripplemem, write},
};

/// Settings that require tokens.
pub(crate) const TOKENS: &str = "access.token_file = \"tokens.json\"\naccess.audit_file = \"audit.jsonl\"\n";

/// Runs `ripplemem token …` on a directory's pipeline file; its output.
fn token(home: &Path, arguments: &[&str]) -> String {
    let file = home.join("p.toml");
    let output = ripplemem(&[&["token"], arguments, &["--pipeline", file.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a token with these rights in a bank.
pub(crate) fn add(home: &Path, name: &str, bank: &str, rights: &[&str]) -> String {
    let rights = rights.iter().flat_map(|right| ["--right", right]);
    token(home, &["add", name, "--bank", bank].into_iter().chain(rights).collect::<Vec<_>>()).trim().to_owned()
}

/// Makes an expired token, which the command cannot make.
pub(crate) fn expired(home: &Path) -> String {
    let old = token(home, &["add", "old", "--bank", "*", "--right", "read", "--expires", "1h"]);
    let file = home.join("tokens.json");
    let mut tokens: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let grants = tokens["tokens"].as_array_mut().unwrap();
    grants.iter_mut().find(|grant| grant["name"] == "old").unwrap()["expires"] = json!("1970-01-02T00:00:00Z");
    fs::write(&file, tokens.to_string()).unwrap();
    old
}

fn turn(bank: &str) -> Value {
    json!({"bank": bank, "turn": "1", "speaker": "Ann", "text": "The red kayak is in the boathouse",
           "time": "2024-05-01T10:00:00Z", "session": "s"})
}

/// A request of a route.
struct Asked {
    needs: RouteRight,
    method: &'static str,
    path: &'static str,
    /// The path with its query.
    target: String,
    body: Vec<u8>,
}

/// A request of every route, about the bank `acme/a`, with each field below that the route takes.
fn every_request() -> Vec<Asked> {
    let examples = json!({
        "bank": "acme/a", "text": "Where is the kayak?", "turns": [turn("acme/a")], "turn": "9", "from": "0",
        "id": "0000000000000000", "ids": ["0000000000000000"], "select": {"speakers": ["Cy"]}, "where": {"speakers": ["Cy"]},
        "topic": "turns",
        "wait_ms": 5_000, "after": "0:0", "session": "s", "title": "A title",
    });
    let document: Value = serde_json::from_str(server::openapi()).unwrap();
    let asked = |RequiredRight { method, path, needs, .. }| {
        let operation = &document["paths"][path][method.to_lowercase()];
        let takes = |name: &str, of: &Value| of["parameters"].as_array().unwrap().iter().any(|p| p["name"] == name);
        let examples = examples.as_object().unwrap();
        let mut target = url::Url::parse("http://localhost").unwrap().join(path).unwrap();
        if operation["parameters"].is_array() {
            let taken = examples.iter().filter(|(name, _)| takes(name, operation));
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            target.query_pairs_mut().extend_pairs(taken.map(|(name, value)| (name, text(value))));
        }
        let of_letters = json!({"words": ["kayak"]});
        let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().map(|schema| {
            let fields = &document.pointer(schema.trim_start_matches('#')).unwrap()["properties"];
            let taken = examples.iter().filter(|(name, _)| fields.get(name).is_some());
            // Rejected records have a selector of their own.
            let taken = taken.map(|(name, value)| match (path, name.as_str()) {
                ("/v1/admin/dead-letters", "select") => (name, &of_letters),
                _ => (name, value),
            });
            json!(taken.collect::<std::collections::BTreeMap<_, _>>()).to_string().into_bytes()
        });
        let query = target.query().map_or_else(String::new, |query| format!("?{query}"));
        Asked { needs, method, path, target: format!("{path}{query}"), body: body.unwrap_or_default() }
    };
    server::required_rights().into_iter().map(asked).collect()
}

/// The status of a permitted request: nothing is stored under this id, and no history is kept.
fn allowed(asked: &Asked) -> u16 {
    match (asked.method, asked.path) {
        ("GET", "/v1/units") => 404,
        ("GET", "/v1/diff") => 400,
        _ => 200,
    }
}

#[test]
fn every_route_asks_for_a_token_with_the_right_in_the_bank() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let all = ["read", "write", "forget", "admin"];
    let whole = add(home.path(), "whole", "acme", &all);
    let other = add(home.path(), "other", "acme2", &all);
    let mut by_right = Vec::new();
    for right in all {
        by_right.push((right, add(home.path(), right, "acme/a", &[right])));
    }
    let expired = expired(home.path());
    let service = HttpService::of(home.path());
    let send = |token: &str, method: &str, path: &str, body: &[u8]| {
        let shown = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        service.send(method, path, &shown, body)
    };
    let requests = every_request();
    let deletion = json!({"turns": [{"type": "deletion", "bank": "acme/a", "turn": "9"}]}).to_string().into_bytes();
    let (path, needs) = ("/v1/turns", RouteRight::InBank(AccessRight::Forget));
    let deleted = Asked { needs, method: "POST", path, target: path.to_owned(), body: deletion };
    for asked in requests.iter().chain([&deleted]) {
        let Asked { needs, method, path, target, body } = asked;
        for wrong in ["", "wrong", expired.trim(), &format!("{whole}x")] {
            let (status, kind, problem) = send(wrong, method, target, body);
            assert_eq!((status, kind.as_str()), (401, "application/problem+json"), "{method} {path}: {problem}");
            assert_eq!(problem["code"], "unauthorised");
        }
        let (needed, is_of_bank) = match needs {
            RouteRight::Token => continue,
            RouteRight::Somewhere(right) => (right, false),
            RouteRight::InBank(right) => (right, true),
            RouteRight::Everywhere(_) => {
                for (right, token) in by_right.iter().map(|(right, token)| (*right, token)).chain([("all", &whole)]) {
                    assert_eq!(send(token, method, target, body).0, 403, "{right} at {method} {path}");
                }
                continue;
            }
        };
        // Events follow without an end.
        let is_endless = *path == "/v1/events";
        for (right, token) in &by_right {
            let may = *right == needed.name();
            if !may || !is_endless {
                let (status, _, answer) = send(token, method, target, body);
                assert_eq!(status, if may { allowed(asked) } else { 403 }, "{right} at {method} {path}: {answer}");
            }
        }
        if is_of_bank {
            let (status, _, problem) = send(&other, method, target, body);
            assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{method} {path}");
        }
        if !is_endless {
            let (status, _, answer) = send(&whole, method, target, body);
            assert_eq!(status, allowed(asked), "{method} {path}: {answer}");
        }
    }
    assert_eq!(send("", "GET", "/v1/nothing", b"").0, 401);
    // A refusal in a later step depends on the right alone, too.
    let by = |name: &str| &by_right.iter().find(|(right, _)| *right == name).unwrap().1;
    let asked = json!({"bank": "acme/a", "text": "Where?", "answer": true}).to_string();
    for (token, answer) in [(by("read"), 422), (by("write"), 403), (&other, 403)] {
        assert_eq!(send(token, "POST", "/v1/ask", asked.as_bytes()).0, answer);
    }
    // Snapshots are of every bank: an administrator of one was refused.
    let administrator = add(home.path(), "administrator", "*", &["admin"]);
    let is_known = || send(&administrator, "POST", "/v1/admin/snapshots", b"").0 != 401;
    wait(&|| "a new token is not taken".to_owned(), is_known);
    // This one may; but the settings name no place for snapshots.
    assert_eq!(send(&administrator, "GET", "/v1/admin/snapshots", b"").0, 400);
    // A put with one bank that the token does not reach writes nothing.
    let both = json!({"turns": [turn("acme/b"), turn("other")]}).to_string();
    assert_eq!(send(&whole, "POST", "/v1/turns", both.as_bytes()).0, 403);
    let banks = send(&whole, "GET", "/v1/banks", b"").2;
    assert_eq!(banks, json!({"banks": ["acme/a"]}));
    assert_eq!(send(&other, "GET", "/v1/banks", b"").2, json!({"banks": []}), "a list shows no other's bank");
    assert_eq!(send(&whole, "GET", "/v1/digest", b"").0, 403, "all banks are more than it reaches");
    // Whether the bank exists makes no difference.
    let ask = |bank: &str| {
        let body = json!({"bank": bank, "text": "Where?"}).to_string();
        let (status, _, problem) = send(&other, "POST", "/v1/ask", body.as_bytes());
        (status, problem["detail"].as_str().unwrap().replace(bank, "BANK"))
    };
    assert_eq!(ask("acme/a"), ask("acme/nothing"));

    let shown = format!("Authorization: Bearer {whole}\r\n");
    let mut followed = EventStream::open(&service, "/v1/subscribe?bank=acme/a&text=Where", &shown);
    assert_eq!(followed.next().map(|event| event.name), Some("snapshot".to_owned()));
    token(home.path(), &["revoke", "whole"]);
    // A stream that is open ends, and says why; nothing else happens in the bank meanwhile.
    let last = std::iter::from_fn(|| followed.next()).last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["code"]), ("problem", &json!("unauthorised")), "{last:?}");
    let is_refused = || send(&whole, "GET", "/v1/banks", b"").0 == 401;
    wait(&|| "a revoked token is taken".to_owned(), is_refused);
    let list = token(home.path(), &["list"]);
    assert!(list.contains("whole: read, write, forget, admin in acme, revoked") && !list.contains(&whole), "{list}");

    // The end of the service waits for the last lines.
    assert!(service.stop());
    let audit = fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    assert!(!audit.contains("kayak") && !audit.contains(&whole) && !audit.contains(&other), "no content, no token");
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = json!({"token": "other", "action": "POST /v1/ask", "right": "read", "bank": "acme/a", "status": 403});
    let without_time = |mut line: Value| {
        line.as_object_mut().unwrap().remove("time");
        line
    };
    assert!(lines.into_iter().map(without_time).any(|line| line == refused), "{audit}");
}

#[test]
fn the_audit_log_has_those_who_left_those_from_elsewhere_and_those_who_were_refused() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let whole = add(home.path(), "whole", "acme", &["read", "write", "forget"]);
    let old = add(home.path(), "old", "acme", &["read"]);
    token(home.path(), &["revoke", "old"]);
    let slow = token(home.path(), &["add", "slow", "--bank", "acme", "--right", "read", "--requests-per-minute", "1"]);
    let service = HttpService::of(home.path());
    let bearer = |token: &str| format!("Authorization: Bearer {}\r\n", token.trim());
    let put = |bank: &str, n: usize| {
        let mut turn = turn(bank);
        turn["turn"] = n.to_string().into();
        turn["session"] = n.to_string().into();
        turn
    };
    let turns: Vec<Value> = (0..10).map(|n| put("acme/a", n)).collect();
    let body = json!({"turns": turns, "wait_ms": 60_000}).to_string();
    assert_eq!(service.send("POST", "/v1/turns", &bearer(&whole), body.as_bytes()).2["reflected"], true);

    // A caller who deletes and closes the connection at once.
    let units = || service.send("GET", "/v1/digest?bank=acme/a", &bearer(&whole), b"").2["units"].as_u64();
    assert_eq!(units(), Some(10));
    for n in 0..10 {
        let mut stream = service.connect();
        let request = format!(
            "DELETE /v1/turns?bank=acme/a&turn={n} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
            service.address,
            bearer(&whole)
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    }
    wait(&|| format!("{:?} units", units()), || units().is_none_or(|units| units == 0));

    for elsewhere in ["Host: evil.example\r\n", "Origin: https://evil.example\r\n"] {
        assert_eq!(service.send("GET", "/v1/status", &format!("{elsewhere}{}", bearer(&whole)), b"").0, 403);
    }
    assert_eq!(service.send("GET", "/v1/status", &bearer(&old), b"").0, 401);
    assert_eq!(service.send("GET", "/v1/banks", &bearer(&slow), b"").0, 200);
    assert_eq!(service.send("GET", "/v1/banks", &bearer(&slow), b"").0, 429);
    // A reader of some banks sees no problem that names another; nothing is refused.
    assert_eq!(service.send("GET", "/v1/status", &bearer(&whole), b"").0, 200);
    let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": "recall", "arguments": {"bank": "other", "question": "Where?"}}});
    let headers = format!("{accepts}{}", bearer(&whole));
    let (status, _, answer) = service.send("POST", "/mcp", &headers, call.to_string().as_bytes());
    assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)), "{answer}");
    assert!(service.stop());

    let audit = fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |expected: Value| {
        let has = |line: &&Value| expected.as_object().unwrap().iter().all(|(key, value)| line[key] == *value);
        lines.iter().filter(has).count()
    };
    let deletions = json!({"token": "whole", "action": "DELETE /v1/turns", "right": "forget", "bank": "acme/a"});
    assert_eq!(count(deletions), 10, "{audit}");
    assert_eq!(count(json!({"action": "GET /v1/status", "status": 403})), 2, "{audit}");
    assert_eq!(count(json!({"action": "GET /v1/status", "token": "old", "status": 401})), 1, "{audit}");
    assert_eq!(count(json!({"action": "GET /v1/banks", "token": "slow", "status": 429})), 1, "{audit}");
    assert_eq!(count(json!({"action": "GET /v1/status", "token": "whole", "status": 200})), 1, "{audit}");
    assert_eq!(count(json!({"action": "POST /mcp", "bank": "other", "status": 403})), 1, "{audit}");
}

/// A question may wait ten minutes for a turn, and its token be revoked meanwhile: then it ends at once.
#[test]
fn an_answer_that_waited_is_for_whoever_may_read_it_then() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let agent = add(home.path(), "agent", "acme", &["read"]);
    let whole = add(home.path(), "whole", "*", &["read", "write"]);
    let service = HttpService::of(home.path());
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let put = |id: &str| {
        let mut turn = turn("acme/a");
        turn["turn"] = id.into();
        let body = json!({"turns": [turn]}).to_string();
        let (status, _, written) = service.send("POST", "/v1/turns", &bearer(&whole), body.as_bytes());
        assert_eq!(status, 200, "{written}");
        written["after"].as_str().unwrap().to_owned()
    };
    let first = put("1");
    let (partition, offset) = first.split_once(':').unwrap();
    let next = format!("{partition}:{}", offset.parse::<u64>().unwrap() + 1);
    let question = json!({"bank": "acme/a", "text": "Where is the kayak?", "after": next, "timeout_ms": 600_000});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall",
        "arguments": {"bank": "acme/a", "question": "Where is the kayak?", "after": next}}});
    let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let asked = [
        ("POST", "/v1/ask".to_owned(), String::new(), question.to_string()),
        ("GET", format!("/v1/digest?bank=acme/a&after={next}&wait_ms=600000"), String::new(), String::new()),
        ("POST", "/mcp".to_owned(), accepts.to_owned(), call.to_string()),
    ];
    std::thread::scope(|scope| {
        let waiting = asked.map(|(method, path, headers, body)| {
            let headers = format!("{headers}{}", bearer(&agent));
            let service = &service;
            scope.spawn(move || (path.clone(), service.send(method, &path, &headers, body.as_bytes())))
        });
        let parked = || service.send_text("GET", "/metrics", &bearer(&whole), b"").1;
        wait(&parked, || parked().contains("ripplemem_questions_waiting{what=\"turn\"} 2"));
        token(home.path(), &["revoke", "agent"]);
        wait(&String::new, || service.send("GET", "/v1/banks", &bearer(&agent), b"").0 == 401);
        wait(&parked, || parked().contains("ripplemem_questions_waiting{what=\"turn\"} 0"));
        for asked in waiting {
            let (path, (status, _, answer)) = asked.join().unwrap();
            let told = answer.to_string();
            assert!(!told.contains("boathouse") && !told.contains("semantic_edges"), "{path}: {told}");
            assert!(status == 401 || told.contains("revoked"), "{path}: {status} {told}");
        }
        put("2");
    });
    assert!(service.stop());
}

#[test]
fn the_commands_of_this_machine_reach_a_service_that_asks_for_tokens() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let service = HttpService::of(home.path());
    let turns = write(&home.path().join("turns.jsonl"), turn("acme/a").to_string());
    let file = home.path().join("p.toml");
    let run = |arguments: &[&str]| {
        let output = ripplemem(&[arguments, &["--pipeline", file.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["ingest", "jsonl", turns.to_str().unwrap()]);
    assert!(run(&["ask", "Where is the kayak?", "--bank", "acme/a"]).contains("boathouse"));
    assert!(run(&["digest"]).contains("units"));
    assert!(run(&["stats"]).contains("vectors"));
    assert!(run(&["stats", "--bank", "acme/a", "--json"]).contains("\"vector_bytes\":"));
    let address = fs::read_to_string(home.path().join("log/http.address")).unwrap();
    assert!(service.stop());
    assert!(!home.path().join("log/http.address").exists());
    // The token of one run is no token of the next.
    let service = HttpService::of(home.path());
    let old = address.lines().nth(2).unwrap();
    assert_eq!(service.send("GET", "/v1/banks", &format!("Authorization: Bearer {old}\r\n"), b"").0, 401);
}

#[test]
fn wrong_tokens_and_files_are_told_with_a_remedy() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let file = home.path().join("p.toml");
    let with =
        |arguments: &[&str]| ripplemem(&[&["token"], arguments, &["--pipeline", file.to_str().unwrap()]].concat());
    add(home.path(), "agent", "acme", &["read"]);
    fails(&with(&["add", "agent", "--bank", "a", "--right", "read"]), 1, &["agent", "another name"]);
    fails(&with(&["add", "a b", "--bank", "a", "--right", "read"]), 1, &["letters"]);
    fails(&with(&["add", "b", "--bank", "a", "--right", "read", "--expires", "soon"]), 1, &["--expires", "90d"]);
    for past in ["0s", "-1d", "1d ago", "1970-01-02T00:00:00Z"] {
        let expires = format!("--expires={past}");
        fails(
            &with(&["add", "b", "--bank", "a", "--right", "read", &expires]),
            1,
            &["--expires", "already have expired", "in the future"],
        );
    }
    assert!(!token(home.path(), &["list"]).contains("b:"), "none was made");
    fails(&with(&["add", "b", "--bank", "a/", "--right", "read"]), 2, &["--bank"]);
    fails(&with(&["add", "b", "--bank", "a", "--right", "all"]), 2, &["--right", "forget"]);
    fails(&with(&["revoke", "nobody"]), 1, &["nobody", "token list"]);
    write(&home.path().join("tokens.json"), "{");
    fails(&with(&["list"]), 1, &["tokens.json"]);
    let served = ripplemem(&["serve", "--listen", "127.0.0.1:0", "--pipeline", file.to_str().unwrap()]);
    fails(&served, 1, &["tokens.json"]);
}

#[test]
fn tls_is_served_with_the_certificate_of_the_settings() {
    let home = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(home.path())
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        return skip("tls_is_served_with_the_certificate_of_the_settings", "openssl makes no certificate");
    }
    let curl = |address: &str, more: &[&str]| {
        let url = format!("https://localhost:{}/v1/banks", address.rsplit(':').next().unwrap());
        let certificate = home.path().join("cert.pem");
        let mut command = Command::new("curl");
        command.args(["-s", "--max-time", "30", "--cacert", certificate.to_str().unwrap(), &url]).args(more);
        command.output().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    if curl("127.0.0.1:1", &[]).is_err() {
        return skip("tls_is_served_with_the_certificate_of_the_settings", "curl is missing");
    }
    pipeline_file(home.path(), &format!("{TOKENS}[http]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n"));
    let token = add(home.path(), "agent", "*", &["read"]);
    let service = HttpService::of(home.path());
    // The address of this machine's commands is known a moment before the listener says its own.
    let told = || fs::read_to_string(home.path().join("stderr")).unwrap();
    wait(&told, || told().contains("https://"));
    let said = told();
    let address =
        said.split("https://").nth(1).and_then(|rest| rest.split('/').next()).expect("it says where").to_owned();
    assert_ne!(address, service.address, "the commands of this machine have a listener of their own");
    // A client that never shakes hands holds up no other.
    let _silent = std::net::TcpStream::connect(&address).unwrap();
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(curl(&address, &["-H", &bearer]).unwrap(), r#"{"banks":[]}"#);
    assert!(curl(&address, &[]).unwrap().contains("unauthorised"));
    let file = home.path().join("p.toml");
    assert!(ripplemem(&["digest", "--pipeline", file.to_str().unwrap()]).status.success());
    drop(service);
    write(&home.path().join("key.pem"), "no key");
    let refused = ripplemem(&["serve", "--listen", "127.0.0.1:0", "--pipeline", file.to_str().unwrap()]);
    fails(&refused, 1, &["key.pem", "private key"]);
}

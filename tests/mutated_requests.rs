//! Requests over HTTP, MCP and Mem0's paths, changed at random, and what became of the turns in them.
//!
//! In: requests of every call, made from its form and mutated: values of other types, missing and empty fields, halves
//! of texts, odd times, bytes that are no JSON, in the body, the query and the path; some bodies are packed in gzip.
//! Seeded; a few thousand, and as many as `RIPPLEMEM_MUTATED` says. Out: no request gets a status of 500 or above but
//! for a deadline, or the code of an internal error, nothing panics, and the log holds exactly the turns of which the
//! answers say that they are stored. A field that no route knows is refused by its name wherever turns come in.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{Read, Write},
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use serde_json::{Value, json};
use types::{config::Pipeline, model::TurnEvent};

use super::{
    http_service::{HttpService, pipeline_file},
    live::events,
    live_slack::post_signed,
    model_process::ScriptedModel,
    mutated::{mutate, scramble, wanted},
    mutated_fields::{FIELD, objects},
    oracle::Dice,
};

/// A call.
struct Call {
    name: &'static str,
    method: &'static str,
    /// Its path; `{id}` stands for what is named in it.
    path: &'static str,
    made: fn(u64, &Known) -> Made,
    /// How many turns an answer says were stored; the body, then the answer.
    stored: fn(&Value, &Value) -> u64,
}

/// The parts of a request; null for those that it lacks.
#[derive(Default)]
struct Made {
    /// The id in the path.
    id: Value,
    /// The parameters of the query, by name.
    query: Value,
    body: Value,
}

impl Made {
    fn with_body(body: Value) -> Self {
        Self { body, ..Self::default() }
    }

    fn with_query(query: Value) -> Self {
        Self { query, ..Self::default() }
    }

    /// Changes one of the parts.
    fn mutate(&mut self, dice: &mut Dice) {
        let mut parts: Vec<&mut Value> =
            [&mut self.id, &mut self.query, &mut self.body].into_iter().filter(|part| !part.is_null()).collect();
        if !parts.is_empty() {
            let at = dice.below(parts.len() as u64) as usize;
            mutate(parts[at], dice);
        }
    }

    /// The path with the id and the query.
    fn target(&self, path: &str) -> String {
        let path = path.replace("{id}", &encoded(&self.id));
        let pairs: Vec<String> = match &self.query {
            Value::Null => return path,
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| format!("{}={}", encoded(&json!(name)), encoded(value))).collect()
            }
            other => vec![encoded(other)],
        };
        format!("{path}?{}", pairs.join("&"))
    }
}

/// A value as a part of a URL.
fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// What earlier answers named.
#[derive(Default)]
struct Known {
    /// Ids of Mem0's memories of `ann`.
    memories: Vec<String>,
}

impl Known {
    fn memory(&self, n: u64) -> &str {
        self.memories.get(n as usize % self.memories.len().max(1)).map_or("user-ann~none", String::as_str)
    }

    fn note(&mut self, name: &str, answer: &Value) {
        if name == "mem0 add" {
            let ids = answer["results"].as_array().into_iter().flatten().filter_map(|result| result["id"].as_str());
            self.memories.extend(ids.filter(|id| id.starts_with("user-ann")).map(str::to_owned));
        }
    }
}

const MCP: &str = "Accept: application/json, text/event-stream\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

fn none(_: &Value, _: &Value) -> u64 {
    0
}

fn length(list: &Value) -> u64 {
    list.as_array().map_or(0, |list| list.len() as u64)
}

/// The turns of an answered tool call.
fn remembered(_: &Value, answer: &Value) -> u64 {
    length(&answer["result"]["structuredContent"]["turns"])
}

fn tool(n: u64, name: &str, arguments: &Value) -> Made {
    let params = json!({"name": name, "arguments": arguments});
    Made::with_body(json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}))
}

fn calls() -> Vec<Call> {
    [of_turns(), of_queries(), of_tools(), of_mem0()].into_iter().flatten().collect()
}

fn call(
    name: &'static str,
    method: &'static str,
    path: &'static str,
    made: fn(u64, &Known) -> Made,
    stored: fn(&Value, &Value) -> u64,
) -> Call {
    Call { name, method, path, made, stored }
}

/// Calls below `/v1` with a body.
fn of_turns() -> Vec<Call> {
    vec![
        call(
            "put",
            "POST",
            "/v1/turns",
            |n, _| {
                Made::with_body(json!({"turns": [
                    {"bank": "a", "turn": format!("v{n}"), "speaker": "Ann", "text": "The red kayak leaks again",
                     "time": "2024-05-06T09:00:00+01:00", "reply_to": format!("v{}", n / 2), "kind": "person",
                     "session": "s", "thread": "t"},
                    {"bank": "b", "turn": format!("w{n}"), "speaker": "Bo", "text": "I moved to Lisbon",
                     "time": "2024-05-07T09:00:00Z", "version": 2, "attachments": [{"kind": "image", "caption": "a pier"}]},
                ], "wait_ms": 0}))
            },
            |body, _| length(&body["turns"]),
        ),
        call(
            "ask",
            "POST",
            "/v1/ask",
            |n, _| {
                Made::with_body(json!({"bank": "a", "text": "Where is the kayak?", "asked_at": "2024-06-01T00:00:00Z",
                       "asker": "Ann", "most_tokens": 200 + n % 900,
                       "said_before": [{"speaker": "Bo", "text": "the kayak?"}], "timeout_ms": 20_000}))
            },
            none,
        ),
        call(
            "explain",
            "POST",
            "/v1/explain",
            |n, _| {
                Made::with_body(json!({"bank": "a", "text": "Where is the kayak?", "asked_at": "2024-06-01T00:00:00Z",
                       "asker": "Ann", "turn": format!("v{n}"), "part": n % 3, "every_part": n % 2 == 0,
                       "timeout_ms": 20_000}))
            },
            none,
        ),
        call(
            "forget turns",
            "POST",
            "/v1/forget",
            |n, _| {
                let select = json!({"speakers": ["Bo"], "since": "2024-01-01T00:00:00Z", "mentions": ["lisbon"],
                                    "turns": [format!("w{}", n / 2)]});
                Made::with_body(json!({"bank": "b", "select": select, "dry_run": n % 2 == 0, "wait_ms": 50}))
            },
            none,
        ),
        call(
            "subscribe",
            "POST",
            "/v1/subscribe",
            |n, _| {
                Made::with_body(json!({"bank": "a", "text": format!("Where is kayak {}?", n % 3), "asker": "Ann",
                       "asked_at": "2024-06-01T00:00:00Z", "most_tokens": 300, "wait_ms": 2,
                       "said_before": [{"speaker": "Bo", "text": "the kayak?"}]}))
            },
            none,
        ),
    ]
}

/// Calls below `/v1` with everything in the query.
fn of_queries() -> Vec<Call> {
    let get = |name, path, made| call(name, "GET", path, made, none);
    vec![
        call(
            "forget a turn",
            "DELETE",
            "/v1/turns",
            |n, _| Made::with_query(json!({"bank": "a", "turn": format!("v{}", n / 3), "wait_ms": "50"})),
            none,
        ),
        get("turns", "/v1/turns", |_, _| {
            Made::with_query(json!({"bank": "a", "speaker": "Ann", "since": "2024-01-01T00:00:00Z",
                "until": "2030-01-01T00:00:00Z", "session": "s", "thread": "t", "limit": "3"}))
        }),
        get("unit", "/v1/units", |n, _| Made::with_query(json!({"bank": "a", "id": format!("{n:016x}")}))),
        get("graph", "/v1/graph", |n, _| {
            let whole = json!({"bank": "a", "limit": "3"});
            let around = json!({"bank": "a", "around": format!("{n:016x}"), "limit": "3"});
            Made::with_query(if n % 2 == 0 { whole } else { around })
        }),
        get("banks", "/v1/banks", |_, _| Made::default()),
        get("bank", "/v1/bank", |_, _| Made::with_query(json!({"bank": "a"}))),
        get("stats", "/v1/stats", |_, _| Made::with_query(json!({"bank": "a"}))),
        get("digest", "/v1/digest", |_, _| Made::with_query(json!({"bank": "a", "after": "0:0", "wait_ms": "5"}))),
        get("subscription", "/v1/subscribe", |_, _| {
            Made::with_query(json!({"bank": "a", "text": "Where is the kayak?", "asked_at": "2024-06-01T00:00:00Z",
                "asker": "Ann", "most_tokens": "300", "wait_ms": "2"}))
        }),
    ]
}

/// The tools.
fn of_tools() -> Vec<Call> {
    let mcp = |name, made, stored| call(name, "POST", "/mcp?bank=a", made, stored);
    vec![
        mcp(
            "remember",
            |n, _| {
                let turn = json!({"speaker": "Ann", "text": "I like tea", "time": "2024-05-06T09:00:00Z",
                                  "turn": format!("m{n}"), "role": "user"});
                let turns = json!([turn, {"speaker": "Bo", "text": "Noted."}]);
                tool(n, "remember", &json!({"turns": turns, "wait_seconds": 0}))
            },
            remembered,
        ),
        mcp("recall", |n, _| tool(n, "recall", &json!({"question": "What does Ann like?", "bank": "a"})), none),
        mcp(
            "evidence",
            |n, _| {
                let asked = json!({"question": "What do I like?", "asker": "Ann", "said_before": "tea?",
                                   "asked_at": "2024-06-01T00:00:00Z", "most_tokens": 300});
                tool(n, "evidence", &asked)
            },
            none,
        ),
        mcp("answer", |n, _| tool(n, "answer", &json!({"question": "What does Ann like?", "most_tokens": 300})), none),
        mcp("list", |n, _| tool(n, "list", &json!({"bank": "a", "limit": 5})), none),
        mcp("show", |n, _| tool(n, "show", &json!({"bank": "a", "turn": format!("m{n}"), "from": 1})), none),
        mcp("status", |n, _| tool(n, "status", &json!({"bank": "a"})), none),
        mcp("forget", |n, _| tool(n, "forget", &json!({"bank": "a", "turn": format!("m{}", n / 3)})), none),
        mcp(
            "forget_turns",
            |n, _| {
                let select = json!({"bank": "a", "speaker": "Ann", "since": "2024-01-01T00:00:00Z",
                                    "until": "2024-01-02T00:00:00+14:00", "mentions": "tea", "wait_seconds": 0});
                tool(n, "forget_turns", &select)
            },
            none,
        ),
    ]
}

/// The paths of Mem0's client.
fn of_mem0() -> Vec<Call> {
    vec![
        call(
            "mem0 add",
            "POST",
            "/v3/memories/add/",
            |n, _| {
                let messages = json!([{"role": "user", "content": "I moved to Lisbon."},
                                      {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}]);
                let user = if n % 4 == 3 { "zoe" } else { "ann" };
                Made::with_body(json!({"messages": messages, "user_id": user, "run_id": format!("r{}", n % 5),
                       "metadata": {"k": n}, "timestamp": 1_795_000_000 + n}))
            },
            |_, answer| length(&answer["results"]),
        ),
        call(
            "mem0 search",
            "POST",
            "/v3/memories/search/",
            |_, _| {
                let filters = json!({"AND": [{"user_id": "ann"}, {"run_id": "r1"}]});
                Made::with_body(json!({"query": "Where does Ann live?", "filters": filters, "top_k": 3}))
            },
            none,
        ),
        call(
            "mem0 list",
            "POST",
            "/v3/memories/",
            |_, _| Made {
                query: json!({"page": "1", "page_size": "2"}),
                ..Made::with_body(json!({"filters": {"user_id": "ann"}}))
            },
            none,
        ),
        call(
            "mem0 update",
            "PUT",
            "/v1/memories/{id}/",
            |n, known| Made {
                id: json!(known.memory(n)),
                ..Made::with_body(
                    json!({"text": "I moved to Porto.", "metadata": {"k": n}, "timestamp": 1_795_000_000}),
                )
            },
            |_, _| 1,
        ),
        call(
            "mem0 batch update",
            "PUT",
            "/v1/batch/",
            |n, known| {
                let memory = |n| json!({"memory_id": known.memory(n), "text": format!("I moved {n} times.")});
                Made::with_body(json!({"memories": [memory(n), memory(n + 1)]}))
            },
            |body, _| length(&body["memories"]),
        ),
        call(
            "mem0 batch deletion",
            "DELETE",
            "/v1/batch/",
            |n, _| Made::with_body(json!({"memories": [{"memory_id": format!("{n:032x}")}, {"memory_id": "none"}]})),
            none,
        ),
        call(
            "mem0 deletion of all",
            "DELETE",
            "/v1/memories/",
            |n, _| Made::with_query(json!({"user_id": "zoe", "run_id": format!("r{}", n % 5)})),
            none,
        ),
    ]
}

/// The status and the JSON of an answer; null of a stream of events, which has no end.
fn answer_of(service: &HttpService, call: &Call, target: &str, body: &[u8]) -> (u16, Value) {
    let mut stream = service.connect();
    let (method, host, length) = (call.method, &service.address, body.len());
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{MCP}{JSON}Content-Length: {length}\r\n");
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    // A body that is refused early is not read to its end.
    let _ = stream.write_all(body);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        if String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).contains("content-type: text/event-stream") {
            return (200, Value::Null);
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{} has no answer", call.name));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A body as the service reads it, if it is JSON.
fn unpacked(bytes: &[u8]) -> Value {
    let mut plain = Vec::new();
    let is_packed = bytes.starts_with(b"\x1f\x8b");
    let bytes = match is_packed.then(|| MultiGzDecoder::new(bytes).read_to_end(&mut plain)) {
        Some(Ok(_)) => &plain,
        Some(Err(_)) => return Value::Null,
        None => bytes,
    };
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[test]
fn no_request_fails_inside_and_each_turn_is_stored_or_refused() {
    let (home, model) = (tempfile::tempdir().unwrap(), ScriptedModel::start(&[]));
    let settings = "log.partitions = 1\nlog.fsync = \"system\"\nhttp.mem0 = true\n";
    let file = pipeline_file(home.path(), &format!("{settings}{}", model.toml("scripted")));
    let service = HttpService::of(home.path());
    let (calls, mut known, mut dice) = (calls(), Known::default(), Dice(11));
    let (mut stored, mut taken) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    let mut packed_and_taken = 0;
    for number in 0..wanted() {
        // Calls of a round share its number, so that turns are put, shown and forgotten.
        let (n, call) = (number / calls.len() as u64, &calls[(number % calls.len() as u64) as usize]);
        let mut made = (call.made)(n, &known);
        for _ in 0..dice.below(3) {
            made.mutate(&mut dice);
        }
        let mut bytes = if made.body.is_null() { Vec::new() } else { made.body.to_string().into_bytes() };
        let is_packed = !bytes.is_empty() && dice.below(6) == 0;
        if is_packed {
            bytes = packed(&bytes);
        }
        if !bytes.is_empty() && dice.below(8) == 0 {
            scramble(&mut bytes, &mut dice);
        }
        let (target, sent) = (made.target(call.path), unpacked(&bytes));
        let (status, answer) = answer_of(&service, call, &target, &bytes);
        let told = || format!("{} {n}: {status} {answer} of {target} {}", call.name, String::from_utf8_lossy(&bytes));
        // Some of Mem0's fields are not offered; what an answer is to reflect may never come.
        let is_answered = status < 500
            || status == 501 && call.name.starts_with("mem0")
            || status == 504 && answer["code"] == "deadline";
        assert!(is_answered && answer["error"]["code"] != json!(-32603), "{}", told());
        if status < 300 && answer["error"].is_null() && answer["result"]["isError"] != json!(true) {
            *taken.entry(call.name).or_default() += 1;
            *stored.entry(call.name).or_default() += (call.stored)(&sent, &answer);
            packed_and_taken += u64::from(is_packed);
            known.note(call.name, &answer);
        }
    }
    println!("taken {taken:?}, turns stored {stored:?}");
    assert!(service.stop());
    let said = std::fs::read_to_string(home.path().join("stderr")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    // A third is sent as it is made. No memory has an id of the batch, and no unit that of the request.
    for call in calls.iter().filter(|call| !["mem0 batch deletion", "unit"].contains(&call.name)) {
        let least = wanted() / calls.len() as u64 / 10;
        assert!(taken.get(call.name) >= Some(&least), "{}: {taken:?}", call.name);
    }
    assert!(packed_and_taken > wanted() / 100, "{packed_and_taken}");
    for name in ["put", "remember", "mem0 add", "mem0 update", "mem0 batch update"] {
        assert!(stored[name] > 0, "{stored:?}");
    }
    let settings = Pipeline::read(&file).unwrap().log;
    let turns = events(&settings).into_iter().filter(|event| matches!(event, TurnEvent::Turn(_))).count() as u64;
    assert_eq!(turns, stored.values().sum::<u64>(), "what is in the log, and what the answers said");
}

/// A later client writes words into a field that we do not know. They are not lost without a word: the request is
/// refused and names the field, and a webhook, which sends no request twice, has a dead letter that does.
#[test]
fn an_unknown_field_with_words_is_told_by_its_name_wherever_turns_come_in() {
    const SECRET: &str = env!("CARGO_PKG_NAME");
    // The envelope of a message of MCP belongs to its protocol; metadata is kept, whatever its names.
    const OTHERS: [(&str, &[&str]); 3] =
        [("remember", &["", "/params"]), ("mem0 add", &["/metadata"]), ("mem0 update", &["/metadata"])];
    // How the routes of Mem0 refuse a field.
    const NOT_OFFERED: u16 = 501;
    let home = tempfile::tempdir().unwrap();
    let desk = "name = \"desk\"\nplatform = \"webhook\"\nbank = \"desk\"\nsecret_env = \"CARGO_PKG_NAME\"\n";
    pipeline_file(home.path(), &format!("log.fsync = \"system\"\nhttp.mem0 = true\n[[source]]\n{desk}"));
    let service = HttpService::of(home.path());
    let (calls, mut known, mut silent) = (calls(), Known::default(), Vec::new());
    let send =
        |call: &Call, made: &Made| answer_of(&service, call, &made.target(call.path), made.body.to_string().as_bytes());
    for name in ["put", "remember", "mem0 add", "mem0 update", "mem0 batch update"] {
        let call = calls.iter().find(|call| call.name == name).unwrap();
        let (status, answer) = send(call, &(call.made)(1, &known));
        assert!(status < 300 && answer["error"].is_null(), "{name}: {status} {answer}");
        known.note(name, &answer);
        let mut places = Vec::new();
        objects(&(call.made)(1, &known).body, "", &mut places);
        let others = OTHERS.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, others)| others);
        for at in places.iter().filter(|at| !others.contains(&at.as_str())) {
            let mut made = (call.made)(1, &known);
            made.body.pointer_mut(at).unwrap()[FIELD] = json!("the lighthouse");
            let (status, answer) = send(call, &made);
            let is_refused =
                (400..500).contains(&status) || status == NOT_OFFERED || answer["result"]["isError"] == json!(true);
            if !((is_refused || !answer["error"].is_null()) && answer.to_string().contains(FIELD)) {
                silent.push(format!("{name} at {at:?}: {status} {answer}"));
            }
        }
    }
    assert!(silent.is_empty(), "{} are silent:\n{}", silent.len(), silent.join("\n"));
    let good =
        json!({"turn": "1", "speaker": "Bo", "text": "Six.", "time": "2024-05-06T09:00:00Z", "attachments": [{}]});
    for at in ["", "/attachments/0"] {
        let mut later = good.clone();
        later.pointer_mut(at).unwrap()[FIELD] = json!("the lighthouse");
        assert_eq!(post_signed(&service, &json!([good, later]).to_string(), SECRET), 200);
    }
    let letters = service.post("/v1/admin/dead-letters", &json!({"select": {"words": ["lighthouse"]}}));
    let letters = letters["shown"].as_array().unwrap();
    let is_named = |letter: &Value| letter["reason"].as_str().unwrap().contains(FIELD);
    assert!(letters.len() == 2 && letters.iter().all(is_named), "{letters:?}");
    assert!(service.stop());
}

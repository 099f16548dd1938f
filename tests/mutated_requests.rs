//! Requests over HTTP, MCP and Mem0's paths, changed at random, and what became of the turns in them.
//!
//! In: requests of every call that takes a body, made from its form and mutated: values of other types, missing and
//! empty fields, halves of texts, bytes that are no JSON. Seeded; a few thousand, and as many as `RIPPLEMEM_MUTATED`
//! says. Out: no request gets a status of 500 or above, or the code of an internal error, nothing panics, and the log
//! holds exactly the turns of which the answers say that they are stored.

use std::collections::BTreeMap;

use nouns::{config::Pipeline, model::TurnEvent};
use serde_json::{Value, json};

use super::{
    http_service::{HttpService, pipeline_file},
    live::events,
    mutated::{mutate, scramble, wanted},
    oracle::Dice,
};

/// A call.
struct Call {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: fn(u64) -> Value,
    /// How many turns an answer says were stored; the body, then the answer.
    stored: fn(&Value, &Value) -> u64,
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

fn tool(n: u64, name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

fn calls() -> Vec<Call> {
    let call = |name, method, path, body, stored| Call { name, method, path, body, stored };
    let mcp = |name, body, stored| call(name, "POST", "/mcp?bank=a", body, stored);
    vec![
        call(
            "put",
            "POST",
            "/v1/turns",
            |n| {
                json!({"turns": [
                    {"bank": "a", "turn": format!("v{n}"), "speaker": "Ann", "text": "The red kayak leaks again",
                     "time": "2024-05-06T09:00:00+01:00", "reply_to": format!("v{}", n / 2), "kind": "person",
                     "session": "s", "thread": "t"},
                    {"bank": "b", "turn": format!("w{n}"), "speaker": "Bo", "text": "I moved to Lisbon",
                     "time": "2024-05-07T09:00:00Z", "version": 2, "attachments": [{"kind": "image", "caption": "a pier"}]},
                ], "wait_ms": 0})
            },
            |body, _| length(&body["turns"]),
        ),
        call(
            "ask",
            "POST",
            "/v1/ask",
            |n| {
                json!({"bank": "a", "text": "Where is the kayak?", "asked_at": "2024-06-01T00:00:00Z", "asker": "Ann",
                       "most_tokens": 200 + n % 900, "said_before": [{"speaker": "Bo", "text": "the kayak?"}],
                       "timeout_ms": 20_000})
            },
            none,
        ),
        call(
            "explain",
            "POST",
            "/v1/explain",
            |n| {
                json!({"bank": "a", "text": "Where is the kayak?", "asked_at": "2024-06-01T00:00:00Z", "asker": "Ann",
                       "turn": format!("v{n}"), "part": n % 3, "every_part": n % 2 == 0, "timeout_ms": 20_000})
            },
            none,
        ),
        mcp(
            "remember",
            |n| {
                let turn = json!({"speaker": "Ann", "text": "I like tea", "time": "2024-05-06T09:00:00Z",
                                  "turn": format!("m{n}"), "role": "user"});
                tool(n, "remember", &json!({"turns": [turn, {"speaker": "Bo", "text": "Noted."}], "wait_seconds": 0}))
            },
            remembered,
        ),
        mcp("recall", |n| tool(n, "recall", &json!({"question": "What does Ann like?", "bank": "a"})), none),
        mcp("list", |n| tool(n, "list", &json!({"bank": "a", "limit": 5})), none),
        mcp("show", |n| tool(n, "show", &json!({"bank": "a", "turn": format!("v{}", n / 2)})), none),
        mcp("forget", |n| tool(n, "forget", &json!({"bank": "a", "turn": format!("m{}", n / 3)})), none),
        call(
            "mem0 add",
            "POST",
            "/v3/memories/add/",
            |n| {
                json!({"messages": [{"role": "user", "content": "I moved to Lisbon."},
                                    {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}],
                       "user_id": "ann", "run_id": format!("r{}", n % 5), "metadata": {"k": n},
                       "timestamp": 1_795_000_000 + n})
            },
            |_, answer| length(&answer["results"]),
        ),
        call(
            "mem0 search",
            "POST",
            "/v3/memories/search/",
            |_| json!({"query": "Where does Ann live?", "filters": {"AND": [{"user_id": "ann"}]}, "top_k": 3}),
            none,
        ),
        call("mem0 list", "POST", "/v3/memories/?page=1&page_size=2", |_| json!({"filters": {"user_id": "ann"}}), none),
        call(
            "mem0 batch",
            "DELETE",
            "/v1/batch/",
            |n| json!({"memories": [{"memory_id": format!("{n:032x}")}, {"memory_id": "none"}]}),
            none,
        ),
    ]
}

#[test]
fn no_request_fails_inside_and_each_turn_is_stored_or_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "log.partitions = 1\nlog.fsync = \"system\"\nhttp.mem0 = true\n");
    let service = HttpService::of(home.path());
    let calls = calls();
    let mut dice = Dice(11);
    let (mut stored, mut taken) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    for number in 0..wanted() {
        // Calls of a round share its number, so that turns are put, shown and forgotten.
        let (n, call) = (number / calls.len() as u64, &calls[(number % calls.len() as u64) as usize]);
        let mut body = (call.body)(n);
        for _ in 0..dice.below(3) {
            mutate(&mut body, &mut dice);
        }
        let mut bytes = body.to_string().into_bytes();
        if dice.below(8) == 0 {
            scramble(&mut bytes, &mut dice);
        }
        let sent = serde_json::from_slice(&bytes).unwrap_or_default();
        let headers = format!("{MCP}{JSON}");
        let (status, _, answer) = service.send(call.method, call.path, &headers, &bytes);
        let told = || format!("{} {n}: {status} {answer} of {}", call.name, String::from_utf8_lossy(&bytes));
        // Of Mem0's fields some are not offered.
        let is_answered = status < 500 || status == 501 && call.name.starts_with("mem0");
        assert!(is_answered && answer["error"]["code"] != json!(-32603), "{}", told());
        if status < 300 && answer["error"].is_null() && answer["result"]["isError"] != json!(true) {
            *taken.entry(call.name).or_default() += 1;
            *stored.entry(call.name).or_default() += (call.stored)(&sent, &answer);
        }
    }
    println!("taken {taken:?}, turns stored {stored:?}");
    assert!(service.stop());
    let said = std::fs::read_to_string(home.path().join("stderr")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    // A third is sent as it is made. No memory has an id of the batch.
    for call in calls.iter().filter(|call| call.name != "mem0 batch") {
        let least = wanted() / calls.len() as u64 / 10;
        assert!(taken.get(call.name) >= Some(&least), "{}: {taken:?}", call.name);
    }
    for name in ["put", "remember", "mem0 add"] {
        assert!(stored[name] > 0, "{stored:?}");
    }
    let settings = Pipeline::read(&file).unwrap().log;
    let turns = events(&settings).into_iter().filter(|event| matches!(event, TurnEvent::Turn(_))).count() as u64;
    assert_eq!(turns, stored.values().sum::<u64>(), "what is in the log, and what the answers said");
}

//! A stand-in for a language model that returns canned replies over OpenAI's protocol: for tests,
//! for `pipelines/llm.toml`, and for trying out the language-model path without a model.
//!
//! In: HTTP requests; the model's name is the script. `scripted` returns a fixed reply for each of
//! the six contracts: it repeats turns as units, plans from the first memory, answers with the
//! first line. Faults follow the name, each with the number of requests that it applies to; without
//! a number it applies to all:
//!
//! | name | what it does |
//! |---|---|
//! | `scripted+malformed=1` | replies with text that is not JSON |
//! | `scripted+truncated=1` | is cut off at the token limit |
//! | `scripted+violating=1` | replies with JSON that breaks the schema |
//! | `scripted+repeating=1` | never ends: writes the same text until the connection is dropped |
//! | `scripted+outside=1` | cites a turn that does not exist |
//! | `scripted+limited=1` | 429 with `Retry-After: 1` |
//! | `scripted+limited_date=1` | the same, as a date |
//! | `scripted+hour=1` | 429 with `Retry-After: 3600` |
//! | `scripted+error=1` | 500 |
//! | `scripted+dropped=1` | breaks the connection halfway |
//! | `scripted+failing=1` | 200, then an error in the stream with code 502 |
//! | `scripted+bare=1` | 200, and a stream that ends without a completion |
//! | `scripted+thinking` | thinks aloud in front of its reply |
//! | `scripted+reasoning` | replies where the thoughts belong |
//! | `scripted+nothing=1` | finds no unit |
//! | `scripted+broke` | 429 because the quota is used up |
//! | `scripted+fewer` | returns one vector too few |
//! | `scripted+narrow=1` | returns vectors of half the width |
//! | `scripted+picky` | 400 for a request that contains "forbidden" |
//! | `scripted+bad=500` | fails on a request that contains "forbidden", with this status |
//! | `scripted+bad=closed` | the same, closing the connection; or `slow` (30 seconds), `fewer` or `zero` (vectors) |
//! | `scripted+burst=200` | 500, without a reason, for a request with a text of more than 200 bytes |
//! | `scripted+flaky` | 500 for three requests in ten, at random but the same ones each time |
//! | `scripted+filtered=1` | an empty reply that a content filter stopped |
//! | `scripted+short=200` | 413 for a request with a text of more than 200 bytes, the system prompt not counted |
//! | `scripted+slow=800` | waits 800 milliseconds before every reply |
//!
//! `/v1/embeddings` returns word counts as vectors. Every other model name is 404. `GET /requests`
//! returns the requests so far. `--replies FILE` takes replies from a file first:
//! `[{"contract": …, "when": part of the text, "reply": {…}}]`.

#![allow(clippy::print_stdout)]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use types::sync;

struct Server {
    key: Option<String>,
    replies: Vec<Value>,
    requests: Mutex<Vec<Value>>,
    applied: Mutex<HashMap<String, u64>>,
    luck: Mutex<u64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut listen, mut key, mut replies) = ("127.0.0.1:0".to_owned(), None, Vec::new());
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        match name.as_str() {
            "--listen" => listen = value,
            "--key" => key = Some(value),
            "--replies" => replies = serde_json::from_slice(&std::fs::read(value)?)?,
            _ => return Err(format!("{name}: unknown option; use --listen, --key or --replies").into()),
        }
    }
    let listener = TcpListener::bind(&listen)?;
    println!("http://{}/v1", listener.local_addr()?);
    let server =
        Arc::new(Server { key, replies, requests: Mutex::default(), applied: Mutex::default(), luck: Mutex::new(7) });
    for stream in listener.incoming().flatten() {
        let server = Arc::clone(&server);
        // A client that disconnects ends only its connection.
        std::thread::spawn(move || drop(server.serve(stream)));
    }
    Ok(())
}

impl Server {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let (mut length, mut key) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap_or(0),
                    "authorization" => key = value.trim().strip_prefix("Bearer ").map(str::to_owned),
                    _ => {}
                }
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let path = first.split(' ').nth(1).unwrap_or_default();
        match path {
            "/requests" => {
                let requests = sync::lock(&self.requests).clone();
                reply(&mut stream, "200 OK", &[], &json!(requests))
            }
            "/v1/models" => {
                let models = json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
                reply(&mut stream, "200 OK", &[], &models)
            }
            "/v1/chat/completions" | "/v1/embeddings" if self.key.is_some() && self.key != key => {
                let message = format!("Incorrect API key provided: {}", key.unwrap_or_default());
                reply(&mut stream, "401 Unauthorized", &[], &error(&message, "invalid_api_key"))
            }
            "/v1/chat/completions" | "/v1/embeddings" => {
                let request: Value = serde_json::from_slice(&body).unwrap_or_default();
                sync::lock(&self.requests).push(request.clone());
                if self.fails(&mut stream, &request)? {
                    return Ok(());
                }
                if path == "/v1/embeddings" {
                    self.embed(&mut stream, &request)
                } else {
                    self.complete(&mut stream, &request)
                }
            }
            _ => reply(&mut stream, "404 Not Found", &[], &error("no such path", "not_found")),
        }
    }

    /// Whether a fault of the script applies to this request.
    fn applies(&self, model: &str, fault: &str) -> bool {
        let Some(script) = model.split('+').skip(1).find(|s| s.split('=').next() == Some(fault)) else { return false };
        let Some(times) = script.split_once('=').and_then(|(_, n)| n.parse::<u64>().ok()) else { return true };
        let mut met = sync::lock(&self.applied);
        let met = met.entry(format!("{model} {fault}")).or_default();
        *met += 1;
        *met <= times
    }

    /// Three requests in ten.
    fn is_unlucky(&self) -> bool {
        let mut state = sync::lock(&self.luck);
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % 10 < 3
    }

    /// Whether the request ended with a fault, which then was sent as the reply.
    fn fails(&self, stream: &mut TcpStream, request: &Value) -> std::io::Result<bool> {
        let model = request["model"].as_str().unwrap_or_default();
        if model != "scripted" && !model.starts_with("scripted+") {
            let message = format!("The model `{model}` does not exist or you do not have access to it.");
            return reply(stream, "404 Not Found", &[], &error(&message, "model_not_found")).map(|()| true);
        }
        if let Some(wait) = model.split('+').find_map(|s| s.strip_prefix("slow=")?.parse().ok()) {
            std::thread::sleep(Duration::from_millis(wait));
        }
        let busy = error("Rate limit reached", "rate_limit_exceeded");
        if self.applies(model, "broke") {
            let body = error("You exceeded your current quota", "insufficient_quota");
            return reply(stream, "429 Too Many Requests", &[], &body).map(|()| true);
        }
        if self.applies(model, "limited") {
            return reply(stream, "429 Too Many Requests", &["Retry-After: 1".to_owned()], &busy).map(|()| true);
        }
        if self.applies(model, "hour") {
            return reply(stream, "429 Too Many Requests", &["Retry-After: 3600".to_owned()], &busy).map(|()| true);
        }
        if self.applies(model, "limited_date") {
            // A date has whole seconds: 1.5 seconds from now is at least one.
            let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_millis(1_500));
            return reply(stream, "429 Too Many Requests", &[format!("Retry-After: {date}")], &busy).map(|()| true);
        }
        let sent = if request["input"].is_null() { &request["messages"] } else { &request["input"] };
        let has_longer_than = |limit: usize| {
            let of_user = |sent: &Value| sent["role"] == "user";
            let text =
                |sent: &Value| sent.as_str().or(sent["content"].as_str().filter(|_| of_user(sent))).map(str::len);
            let long = |sent: &Value| text(sent).is_some_and(|bytes| bytes > limit);
            sent.as_array().is_some_and(|texts| texts.iter().any(long))
        };
        let of_fault = |fault: &str| model.split('+').find_map(|s| s.strip_prefix(fault)?.strip_prefix('='));
        if of_fault("short").and_then(|limit| limit.parse().ok()).is_some_and(has_longer_than) {
            let body = error("The input has too many tokens", "context_length_exceeded");
            return reply(stream, "413 Payload Too Large", &[], &body).map(|()| true);
        }
        let failed = error("Something went wrong", "server_error");
        if of_fault("burst").and_then(|limit| limit.parse().ok()).is_some_and(has_longer_than) {
            return reply(stream, "500 Internal Server Error", &[], &failed).map(|()| true);
        }
        let is_bad = sent.to_string().contains("forbidden");
        match of_fault("bad").filter(|_| is_bad) {
            Some("closed") => return Ok(true),
            Some("slow") => {
                std::thread::sleep(Duration::from_secs(30));
                return Ok(true);
            }
            Some(status) if status.parse::<u16>().is_ok() => {
                return reply(stream, &format!("{status} Bad"), &[], &failed).map(|()| true);
            }
            _ => {}
        }
        if model.contains("+flaky") && self.is_unlucky() {
            return reply(stream, "500 Internal Server Error", &[], &failed).map(|()| true);
        }
        if model.contains("+picky") && sent.to_string().contains("forbidden") {
            let body = error("The response was filtered", "content_filter");
            return reply(stream, "400 Bad Request", &[], &body).map(|()| true);
        }
        if self.applies(model, "error") {
            let body = error("The server had an error", "server_error");
            return reply(stream, "500 Internal Server Error", &[], &body).map(|()| true);
        }
        Ok(false)
    }

    /// One vector for each text: its words counted in 64 buckets by a hash of their letters.
    fn embed(&self, stream: &mut TcpStream, request: &Value) -> std::io::Result<()> {
        let model = request["model"].as_str().unwrap_or_default();
        let texts = request["input"].as_array().cloned().unwrap_or_default();
        let width = if self.applies(model, "narrow") { 32 } else { 64 };
        let vectors = texts.iter().enumerate().map(|(index, text)| {
            let mut vector = [0_u32; 64];
            vector[0] = 1;
            for word in text.as_str().unwrap_or_default().split(|c: char| !c.is_alphanumeric()) {
                let hash = word.bytes().fold(5_381_u32, |h, b| h.wrapping_mul(33) ^ u32::from(b.to_ascii_lowercase()));
                vector[hash as usize % 64] += 4;
            }
            json!({"object": "embedding", "index": index, "embedding": vector[..width]})
        });
        let is_bad = |fault: &str| {
            model.contains(&format!("+bad={fault}")) && request["input"].to_string().contains("forbidden")
        };
        let fewer = usize::from(self.applies(model, "fewer") || is_bad("fewer"));
        let mut vectors: Vec<Value> = vectors.skip(fewer).collect();
        if is_bad("zero") {
            vectors.iter_mut().for_each(|vector| vector["embedding"] = json!(vec![0; width]));
        }
        reply(stream, "200 OK", &[], &json!({"object": "list", "model": model, "data": vectors}))
    }

    fn complete(&self, stream: &mut TcpStream, request: &Value) -> std::io::Result<()> {
        let model = request["model"].as_str().unwrap_or_default();
        let contract = request["response_format"]["json_schema"]["name"].as_str().unwrap_or_default();
        let input = request["messages"][1]["content"].as_str().unwrap_or_default();
        let matches =
            |r: &&Value| r["contract"] == contract && r["when"].as_str().is_none_or(|when| input.contains(when));
        let mut content =
            self.replies.iter().find(matches).map_or_else(|| canned_reply(contract, input), |r| r["reply"].clone());
        if self.applies(model, "outside") {
            content["units"][0]["sources"] = json!([9_999]);
        }
        if self.applies(model, "nothing") {
            content = json!({"units": []});
        }
        if self.applies(model, "violating") {
            content = json!({"units": "none", "label": "perhaps", "decision": "maybe"});
        }
        let mut text = content.to_string();
        if self.applies(model, "malformed") {
            text = "Certainly! Here is what you asked for.".to_owned();
        }
        let mut reason = "stop";
        if self.applies(model, "filtered") {
            (text, reason) = (String::new(), "content_filter");
        }
        if self.applies(model, "truncated") {
            text.truncate((0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default());
            reason = "length";
        }
        let dropped = self.applies(model, "dropped");
        let prompt: usize = request["messages"].to_string().len() / 4;
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": text.len() / 4,
            "total_tokens": prompt + text.len() / 4});
        if self.applies(model, "repeating") {
            return stream_forever(stream, &text);
        }
        if self.applies(model, "failing") {
            let failed = json!({"choices": [], "error": {"code": 502, "message": "worker limit reached"}});
            return stream_events(stream, &[&failed.to_string(), "[DONE]"]);
        }
        if self.applies(model, "bare") {
            return stream_events(stream, &["[DONE]"]);
        }
        if self.applies(model, "thinking") {
            text = format!("<think>\nPerhaps {{\"units\": 1}}?\n</think>\n\n{text}");
        }
        if self.applies(model, "reasoning") {
            let delta = json!({"choices": [{"index": 0, "delta": {"content": null, "reasoning_content": format!("Perhaps {{}}. {text}")},
                "finish_reason": "stop"}]});
            return stream_events(stream, &[&delta.to_string(), "[DONE]"]);
        }
        if request["stream"] == true {
            return stream_reply(stream, model, &text, reason, usage, dropped);
        }
        let whole = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "usage": usage,
            "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}]});
        if dropped {
            let text = whole.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")?;
            write!(stream, "Content-Length: {}\r\n\r\n{}", text.len(), &text[..text.len() / 3])?;
            return stream.flush();
        }
        reply(stream, "200 OK", &[], &whole)
    }
}

fn error(message: &str, code: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}})
}

fn reply(stream: &mut TcpStream, status: &str, headers: &[String], body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n")?;
    headers.iter().try_for_each(|header| write!(stream, "{header}\r\n"))?;
    write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

/// Sends the text as server-sent events of a few letters each.
fn stream_reply(
    stream: &mut TcpStream,
    model: &str,
    text: &str,
    reason: &str,
    usage: Value,
    dropped: bool,
) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")?;
    write!(stream, "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    let mut send = |data: &str| {
        let event = format!("data: {data}\n\n");
        write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
        stream.flush()
    };
    let event = |delta: Value, reason: Value, usage: &Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model, "usage": usage,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        .to_string()
    };
    send(&event(json!({"role": "assistant", "content": ""}), Value::Null, &Value::Null))?;
    let letters: Vec<char> = text.chars().collect();
    for (at, piece) in letters.chunks(5).enumerate() {
        if dropped && at * 5 > letters.len() / 2 {
            return Ok(());
        }
        send(&event(json!({"content": piece.iter().collect::<String>()}), Value::Null, &Value::Null))?;
    }
    send(&event(json!({}), json!(reason), &Value::Null))?;
    send(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}).to_string())?;
    send("[DONE]")?;
    write!(stream, "0\r\n\r\n")?;
    stream.flush()
}

/// Sends these events and ends.
fn stream_events(stream: &mut TcpStream, events: &[&str]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    events.iter().try_for_each(|event| write!(stream, "data: {event}\n\n"))?;
    stream.flush()
}

/// Sends the beginning of the text again and again, until the client drops the connection.
fn stream_forever(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    let piece: String = text.chars().take(40).collect();
    loop {
        let event = json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]});
        write!(stream, "data: {event}\n\n")?;
        stream.flush()?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The canned reply of a contract.
fn canned_reply(contract: &str, input: &str) -> Value {
    let question: Value = serde_json::from_str(input).unwrap_or_default();
    match contract {
        "extract" => {
            let turns = input.split("turns\n").last().unwrap_or_default().lines();
            let units = turns.filter_map(|line| serde_json::from_str::<Value>(line).ok()).map(|turn| {
                let (number, speaker, text) = (&turn[0], turn[2].as_str().unwrap_or_default(), &turn[3]);
                // As much as the schema allows, and the speaker.
                let text: String = text.as_str().unwrap_or_default().chars().take(500).collect();
                json!({"restatement": format!("{speaker} said: {text}"),
                    "sources": [number], "participants": [speaker], "locations": [], "time": null})
            });
            json!({"units": units.collect::<Vec<_>>()})
        }
        "cues" => {
            let text = question["question"].as_str().unwrap_or_default();
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 4);
            json!({"keywords": words.take(6).collect::<Vec<_>>(), "participants": [], "locations": [], "time": null})
        }
        "plan" => match question["evidence"][0][0].as_str() {
            Some(label) => json!({"decision": "continue", "anchors": [label], "target": {"goal": "find_more",
                "sentence": "Somebody said more about the same matter.", "participants": [], "locations": [],
                "time": null}}),
            None => json!({"decision": "hopeless", "anchors": [], "target": null}),
        },
        "answer" => {
            let first = input.lines().find_map(|line| line.strip_prefix("1 "));
            let lines: &[u32] = if first.is_some() { &[1] } else { &[] };
            json!({"reasoning": "The first line says so.", "lines": lines,
                "answer": first.unwrap_or("The memories do not say.")})
        }
        // Links every second candidate.
        "edges" => {
            let labels = question["candidates"].as_array().cloned().unwrap_or_default();
            let links = labels.iter().step_by(2).map(|c| json!({"label": c["label"], "kind": "both"}));
            json!({"links": links.collect::<Vec<_>>()})
        }
        _ => {
            let text = |name: &str| question[name].as_str().unwrap_or_default().to_lowercase();
            json!({"label": if text("answer").contains(&text("reference")) { "correct" } else { "wrong" }})
        }
    }
}

//! Many clients, slow ones, a kill and a long steady load, against the real listener: others are served,
//! nothing that was acknowledged is lost, and memory does not grow with time.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Write},
    net::TcpStream,
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    http_service::{HttpClient, HttpService, answer, pipeline_file},
    oracle::Dice,
    skipped::skip,
    support::{kill_rounds, memory_kib},
};

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Sends a request; `None` if no whole answer comes.
fn attempt(address: &str, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    answer(&mut stream).map(|(status, _, answer)| (status, answer)).filter(|(_, answer)| !answer.is_null())
}

/// Whether the other side has neither closed the connection nor sent anything.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// How many connections this process may open; the service inherits the limit.
fn most_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    files.unwrap_or(1_024_usize).saturating_sub(200)
}

/// More calls of tools at once than there are threads that may block: questions that wait for what is not
/// written yet, and calls that need such a thread themselves.
#[test]
fn more_calls_of_tools_than_threads_end_all_and_hold_up_no_other() {
    const WAITING: usize = 560;
    const READING: usize = 600;
    const BANKS: usize = 8;
    let name = "http_load::more_calls_of_tools_than_threads_end_all_and_hold_up_no_other";
    // The service keeps half of its files for the store.
    if most_connections() < 3 * (WAITING + READING) {
        return skip(name, "too few files may be open");
    }
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "serve.deadline_ms = 5000\nlog.partitions = 1\n");
    let service = HttpService::of(home.path());
    // Fewer questions may wait in one bank.
    let bank = |n: usize| format!("a/{}", n % BANKS);
    let turn = |n| {
        json!({"bank": bank(n), "turn": "1", "speaker": "Ann", "text": "The ferry leaves at noon",
            "time": "2024-05-01T10:00:00Z"})
    };
    let turns: Vec<Value> = (0..BANKS).map(turn).collect();
    service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}));
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let (mut stream, length) = (service.connect(), body.len());
        let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{accepts}Content-Length: {length}", service.address);
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).unwrap();
        stream
    };
    let ahead = |n| json!({"question": "When does the ferry leave?", "bank": bank(n), "after": "0:99999999"});
    let waiting: Vec<_> = (0..WAITING).map(|n| call("recall", ahead(n))).collect();
    let reading: Vec<_> = (0..READING).map(|_| call("status", json!({}))).collect();
    assert!(service.get("/v1/status")["after"].is_string());
    let ends = |stream: &mut TcpStream| answer(stream).expect("an answer").2;
    for mut stream in reading {
        let answer = ends(&mut stream);
        assert_eq!(answer["result"]["structuredContent"]["bank_count"], BANKS, "{answer}");
    }
    for mut stream in waiting {
        let answer = ends(&mut stream);
        let why = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(why.contains("deadline"), "{answer}");
    }
    assert!(service.stop());
}

/// More connections than the listener accepts: silent ones, half a head, half a body.
#[test]
fn thousands_of_idle_and_half_open_connections_hold_up_no_other() {
    let connections = number("RIPPLEMEM_IDLE_CONNECTIONS", 1_500).min(most_connections());
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    // Fewer files than connections: idle ones have to give way.
    let service = HttpService::limited(home.path(), connections);
    let started = Instant::now();
    let mut open = Vec::new();
    for n in 0..connections {
        let mut stream = service.connect();
        let begun = match n % 10 {
            0 => format!("POST /v1/turns HTTP/1.1\r\nHost: {}\r\nX-Slow: ", service.address),
            1 if n < connections / 4 => {
                format!("POST /v1/turns HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{", service.address)
            }
            _ => String::new(),
        };
        // One that had to give way may be closed already.
        let _ = stream.write_all(begun.as_bytes());
        open.push(stream);
    }
    for n in 0..20 {
        let turn = json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": "The ferry leaves at noon",
                          "time": "2024-05-01T10:00:00Z"});
        let after = service.post("/v1/turns", &json!({"turns": [turn]}))["after"].clone();
        let asked =
            service.post("/v1/ask", &json!({"bank": "b", "text": "When does the ferry leave?", "after": after}));
        assert!(asked["context"].as_str().unwrap().contains("noon"));
    }
    let took = started.elapsed();
    let still_open = open.iter().filter(|stream| is_open(stream)).count();
    println!("20 turns and 20 questions beside {still_open} of {connections} connections: {took:?}");
    // The service keeps half of its files for the store.
    assert!(still_open > connections / 4, "only {still_open} connections were held while the requests were answered");
    drop(open);
    assert!(service.stop());
}

/// What clients sent in one run, and what of it was acknowledged.
#[derive(Default)]
struct Sent {
    /// Every text that was sent.
    texts: BTreeSet<String>,
    /// By id: the text of memories that were acknowledged.
    added: BTreeMap<String, String>,
    /// Deletions that were sent, and those that were acknowledged.
    deleting: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

/// Writes and deletes through `/v1` or the routes of Mem0 until the service is gone.
fn write_on(address: &str, round: usize, client: usize, sent: &Mutex<Sent>) {
    let mut mine: Vec<String> = Vec::new();
    for n in 0.. {
        let text = format!("Hive {round}-{client}-{n} stands in the garden");
        sent.lock().unwrap().texts.insert(text.clone());
        let is_mem0 = client.is_multiple_of(2);
        let answer = if is_mem0 {
            let add = json!({"messages": [{"role": "user", "content": text}], "user_id": "ann"});
            attempt(address, "POST", "/v3/memories/add/", &add)
        } else {
            let turn = json!({"bank": "mem0/user-raw", "turn": format!("{round}-{client}-{n}"), "speaker": "Bo",
                              "text": text, "time": "2024-05-01T10:00:00Z"});
            attempt(address, "POST", "/v1/turns", &json!({"turns": [turn]}))
        };
        let Some((status, answer)) = answer else { return };
        assert_eq!(status, 200, "{answer}");
        let id = match answer["results"][0]["id"].as_str() {
            Some(id) => id.to_owned(),
            None => format!("user-raw~{round}-{client}-{n}"),
        };
        sent.lock().unwrap().added.insert(id.clone(), text);
        mine.push(id);
        if n % 3 == 2 {
            let id = mine.swap_remove(0);
            sent.lock().unwrap().deleting.insert(id.clone());
            let path = match id.strip_prefix("user-raw~") {
                Some(turn) => format!("/v1/turns?bank=mem0/user-raw&turn={turn}"),
                None => format!("/v1/memories/{id}/"),
            };
            let Some((status, answer)) = attempt(address, "DELETE", &path, &Value::Null) else { return };
            assert_eq!(status, 200, "{answer}");
            sent.lock().unwrap().deleted.insert(id);
        }
    }
}

/// The memories of a user: id and text.
fn listed(service: &HttpClient, user: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for page in 1.. {
        let body = json!({"filters": {"user_id": user}});
        let found = service.post(&format!("/v3/memories/?page={page}&page_size=200"), &body);
        let text = |memory: &Value, field: &str| memory[field].as_str().unwrap().to_owned();
        all.extend(found["results"].as_array().unwrap().iter().map(|m| (text(m, "id"), text(m, "memory"))));
        if found["next"].is_null() {
            break;
        }
    }
    all
}

#[test]
fn a_service_killed_while_it_writes_keeps_what_it_acknowledged_over_http() {
    let rounds = kill_rounds("RIPPLEMEM_HTTP_KILL_ROUNDS") as usize;
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "http.mem0 = true\nlog.partitions = 3\n");
    let sent = Mutex::new(Sent::default());
    let mut dice = Dice(7);
    for round in 0..rounds {
        let service = HttpService::of(home.path());
        let address = service.address.clone();
        std::thread::scope(|scope| {
            for client in 0..4 {
                let (address, sent) = (&address, &sent);
                scope.spawn(move || write_on(address, round, client, sent));
            }
            std::thread::sleep(Duration::from_millis(50 + dice.below(400)));
            // A busy machine may have got no further than the first turns.
            let begun = Instant::now();
            while sent.lock().unwrap().deleted.is_empty() && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
            service.kill();
        });
        let service = HttpService::of(home.path());
        let after = service.get("/v1/status")["after"].as_str().unwrap().to_owned();
        service.get(&format!("/v1/digest?after={after}&wait_ms=60000"));
        let sent = sent.lock().unwrap();
        let all = [listed(&service, "ann"), listed(&service, "raw")].concat();
        let held: BTreeMap<String, String> = all.iter().cloned().collect();
        assert_eq!(held.len(), all.len(), "round {round}: none twice");
        for (id, text) in sent.added.iter().filter(|(id, _)| !sent.deleting.contains(*id)) {
            assert_eq!(held.get(id), Some(text), "round {round}: acknowledged, and lost");
        }
        assert!(sent.deleted.iter().all(|id| !held.contains_key(id)), "round {round}: deleted, and back");
        let texts: BTreeSet<&String> = held.values().collect();
        assert_eq!(texts.len(), held.len(), "round {round}: none twice");
        assert!(texts.into_iter().all(|text| sent.texts.contains(text)), "round {round}: invented");
        assert!(service.stop());
    }
    let sent = sent.into_inner().unwrap();
    let (added, deleted) = (sent.added.len(), sent.deleted.len());
    assert!(added > rounds && deleted > 0, "{added} added, {deleted} deleted");
    println!("{rounds} kills: {added} turns and {deleted} deletions acknowledged, none lost");
}

/// As many turns are deleted as are inserted, others are edited, and questions are asked all the while.
/// What is left at the end is what was left after the first third: the same number of turns, in at most twice
/// the bytes of every index, while the turns were replaced twice and would take three times as many. (A table
/// that is more than half full doubles when deletions have worn it.) The id of a deleted turn stays, so that nothing
/// brings it back.
#[test]
fn steady_inserts_edits_deletions_and_questions_do_not_grow_a_service() {
    const BANKS: usize = 4;
    /// Turns of a bank that are not deleted.
    const LIVE: usize = 240;
    /// Turns that are inserted in one bank in one round. As many are edited, and as many deleted.
    const ROUND: usize = 8;
    /// Room for what a store has not written yet.
    const GROWTH_MEGABYTES: u64 = 96;
    const DELETED_BYTES: u64 = 1_024;
    let lasting = Duration::from_secs(number("RIPPLEMEM_STEADY_SECONDS", 9) as u64);
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.fsync = \"system\"\nwindow.turns = 12\n");
    let service = HttpService::of(home.path());
    let turn = |bank: usize, n: usize, version: u64| {
        let speaker = ["Ann", "Bo"][n % 2];
        let text = format!("Boat {} of the {} harbour sails at {} in the {}", n % 97, n % 13, n % 24, n % 7);
        let time = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(n as i64);
        json!({"bank": format!("b/{bank}"), "turn": n.to_string(), "version": version, "speaker": speaker,
            "text": format!("{text}{}", ", again".repeat(version as usize)), "time": time.to_string()})
    };
    let insert = |from: usize, count: usize| {
        let turns: Vec<Value> = (0..BANKS).flat_map(|b| (from..from + count).map(move |n| turn(b, n, 0))).collect();
        service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}));
    };
    let resident_megabytes = || memory_kib(service.id(), "VmRSS:") / 1_024;
    let remembered = || {
        let mut stats = service.get("/v1/stats");
        (stats["parts"]["units"].as_u64().unwrap(), stats["parts"].take())
    };
    for from in (0..LIVE).step_by(LIVE / 4) {
        insert(from, LIVE / 4);
    }
    let (mut next, mut asked, mut early) = (LIVE, 0, None);
    let (mut dice, begun) = (Dice(5), Instant::now());
    // However slow the machine is, the turns are replaced twice after the early measurement.
    while begun.elapsed() < lasting || early.as_ref().is_none_or(|(_, _, looked)| next - looked < 2 * LIVE) {
        insert(next, ROUND);
        let edited: Vec<usize> = (0..ROUND).map(|n| next - LIVE / 2 + n).collect();
        let edits: Vec<Value> = edited.iter().flat_map(|n| (0..BANKS).map(|b| turn(b, *n, 1))).collect();
        service.post("/v1/turns", &json!({"turns": edits, "wait_ms": 60_000}));
        next += ROUND;
        for bank in 0..BANKS {
            for n in next - LIVE - ROUND..next - LIVE {
                let gone = service.send("DELETE", &format!("/v1/turns?bank=b/{bank}&turn={n}"), "", b"").2;
                assert_eq!(gone["gone"], true, "{gone}");
            }
            let text = format!("When does boat {} sail?", dice.below(97));
            let answer = service.post("/v1/ask", &json!({"bank": format!("b/{bank}"), "text": text}));
            assert!(answer["context"].as_str().unwrap().contains("harbour"), "{answer}");
            asked += 1;
        }
        if early.is_none() && begun.elapsed() > lasting / 3 {
            early = Some((remembered(), resident_megabytes(), next));
        }
    }
    let (((units, before), megabytes, early_next), (units_after, after)) = (early.unwrap(), remembered());
    let deleted = ((next - early_next) * BANKS) as u64;
    let grown = resident_megabytes();
    println!(
        "{:.0} s: {next} turns and as many edits in each of {BANKS} banks, {asked} questions; {megabytes} MB after a third, \
         {grown} MB at the end, {deleted} turns deleted between; {before} became {after}",
        begun.elapsed().as_secs_f64()
    );
    assert!(units.abs_diff(units_after) <= units / 4, "{units} units became {units_after}");
    for (part, bytes) in after.as_object().unwrap().iter().filter(|(part, _)| part.ends_with("_bytes")) {
        let (bytes, early) = (bytes.as_u64().unwrap(), before[part].as_u64().unwrap());
        assert!(bytes <= 2 * early, "{part}: {early} became {bytes}");
    }
    assert!(
        grown <= megabytes + GROWTH_MEGABYTES + deleted * DELETED_BYTES / 1_048_576,
        "{megabytes} MB became {grown}"
    );
    assert!(service.stop());
}

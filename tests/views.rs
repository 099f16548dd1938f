//! Smaller reads over HTTP: who asks, banks with counts, many units, a graph, what happens in a bank, the times of an
//! answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use super::{
    access::{TOKENS, add},
    event_stream::EventStream,
    http_service::{HttpService, pipeline_file},
    support::{data, ripplemem},
};

/// A response as text, its head in lower case.
fn whole(service: &HttpService, request: &str, body: &str) -> (String, String) {
    use std::io::{Read, Write};
    let mut stream = service.connect();
    let length = body.len();
    let head = format!("{request}Host: {}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n", service.address);
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn put(service: &HttpService, headers: &str, banks: &[&str]) {
    let turn = |bank: &&str| {
        json!({"bank": bank, "turn": "1", "speaker": "Ann", "text": format!("The red kayak of {bank} is here"),
               "time": "2024-05-01T10:00:00Z", "session": "s"})
    };
    let turns: Vec<Value> = banks.iter().map(turn).collect();
    let body = json!({"turns": turns, "wait_ms": 60_000}).to_string();
    let (status, _, written) = service.send("POST", "/v1/turns", headers, body.as_bytes());
    assert_eq!((status, &written["reflected"]), (200, &json!(true)), "{written}");
}

fn names(page: &Value) -> Vec<&str> {
    page["banks"].as_array().unwrap().iter().map(|bank| bank.as_str().unwrap()).collect()
}

#[test]
fn a_token_learns_what_it_gives_and_no_secret() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let reader = add(home.path(), "reader", "acme", &["read"]);
    let file = home.path().join("p.toml");
    let limits = ["--expires", "30d", "--requests-per-minute", "60", "--pipeline", file.to_str().unwrap()];
    let arguments =
        ["token", "add", "limited", "--bank", "acme/a", "--bank", "b", "--right", "write", "--right", "read"];
    let added = ripplemem(&[&arguments[..], &limits].concat());
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let limited = String::from_utf8(added.stdout).unwrap().trim().to_owned();
    let powerless = add(home.path(), "powerless", "acme", &["forget"]);
    let service = HttpService::of(home.path());
    let view = |token: &str| service.send("GET", "/v1/token", &bearer(token), b"");
    assert_eq!(view(&reader).2, json!({"name": "reader", "rights": ["read"], "banks": ["acme"]}));
    let (_, _, first) = view(&limited);
    let expires: jiff::Timestamp = first["expires"].as_str().unwrap().parse().unwrap();
    let days = expires.duration_since(jiff::Timestamp::now()).as_hours() / 24;
    assert!((28..=30).contains(&days), "{first}");
    let (rights, banks) = (json!(["read", "write"]), json!(["acme/a", "b"]));
    assert_eq!((&first["rights"], &first["banks"], &first["requests_per_minute"]), (&rights, &banks, &json!(60)));
    assert_eq!(first["requests_left"], 59, "{first}");
    assert_eq!(view(&limited).2["requests_left"], 58);
    assert_eq!(view(&powerless).2["rights"], json!(["forget"]), "it needs no right");
    for wrong in ["", "rm_wrong"] {
        assert_eq!(view(wrong).0, 401);
    }
    let stored = fs::read_to_string(home.path().join("tokens.json")).unwrap();
    let hashes: Value = serde_json::from_str(&stored).unwrap();
    let (_, body) = whole(&service, &format!("GET /v1/token HTTP/1.1\r\n{}", bearer(&limited)), "");
    assert!(!body.contains(&limited) && !body.contains("reader"), "{body}");
    for grant in hashes["tokens"].as_array().unwrap() {
        assert!(!body.contains(grant["sha256"].as_str().unwrap()), "{body}");
    }
    let revoked = ripplemem(&["token", "revoke", "limited", "--pipeline", file.to_str().unwrap()]);
    assert!(revoked.status.success());
    super::kafka::wait(&String::new, || view(&limited).0 == 401);
    assert!(service.stop());

    // If no token is required, everybody may do everything.
    let open = tempfile::tempdir().unwrap();
    pipeline_file(open.path(), "");
    let service = HttpService::of(open.path());
    assert_eq!(service.get("/v1/token"), json!({"rights": ["read", "write", "forget", "admin"], "banks": ["*"]}));
    assert_eq!(service.send("GET", "/v1/token?name=x", "", b"").0, 400);
    assert!(service.stop());
}

#[test]
fn banks_are_listed_page_by_page_with_counts_and_each_token_sees_its_own() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("log.partitions = 3\nsnapshot.directory = \"snapshots\"\n{TOKENS}"));
    let all = add(home.path(), "all", "*", &["read", "write", "forget"]);
    let acme = add(home.path(), "acme", "acme", &["read"]);
    let service = HttpService::of(home.path());
    let get = |service: &HttpService, token: &str, path: &str| service.send("GET", path, &bearer(token), b"");
    let banks = ["acme", "acme/a", "acme/b", "acme2", "other", "third"];
    put(&service, &bearer(&all), &banks);
    assert_eq!(names(&get(&service, &all, "/v1/banks").2), banks);
    assert_eq!(get(&service, &acme, "/v1/banks").2, json!({"banks": ["acme", "acme/a", "acme/b"]}));

    let mut found = Vec::new();
    let mut from = String::new();
    loop {
        let (status, _, page) = get(&service, &all, &format!("/v1/banks?counts=true&limit=2{from}"));
        assert_eq!((status, names(&page).len()), (200, 2), "{page}");
        for (name, counts) in names(&page).into_iter().zip(page["counts"].as_array().unwrap()) {
            let status = get(&service, &all, &format!("/v1/bank?bank={name}")).2;
            assert_eq!((&counts["bank"], &counts["state"]), (&json!(name), &json!("here")), "{page}");
            for field in ["units", "semantic_edges", "structural_edges", "behind"] {
                assert_eq!(counts[field], status[field], "{name}: {field}");
            }
            let seconds =
                (jiff::Timestamp::now().as_millisecond() - counts["last_append_ms"].as_i64().unwrap()) / 1_000;
            assert!((0..600).contains(&seconds), "{counts}");
            found.push(name.to_owned());
        }
        match page["next"].as_str() {
            Some(next) => from = format!("&from={next}"),
            None => break,
        }
    }
    assert_eq!(found, banks, "each bank once");
    let (_, _, page) = get(&service, &acme, "/v1/banks?counts=1&limit=3");
    assert_eq!((names(&page), &page["next"]), (vec!["acme", "acme/a", "acme/b"], &Value::Null), "no other is named");
    assert_eq!(names(&get(&service, &acme, "/v1/banks?counts=1&from=acme%2Fb").2), ["acme/b"]);
    assert_eq!(names(&get(&service, &acme, "/v1/banks?prefix=ot&counts=1").2), Vec::<&str>::new());
    assert_eq!(names(&get(&service, &all, "/v1/banks?prefix=acme%2F").2), ["acme/a", "acme/b"]);
    for (query, word) in [
        ("limit=0", "allowed is 1 to 1000"),
        ("counts=1&limit=101", "allowed is 1 to 100"),
        ("counts=yes", "write true or false"),
        ("limit=many", "not a whole number"),
        ("bank=acme", "it takes counts"),
    ] {
        let (status, _, problem) = get(&service, &all, &format!("/v1/banks?{query}"));
        assert!(status == 400 && problem["detail"].as_str().unwrap().contains(word), "{query}: {problem}");
    }
    // After a start from a snapshot, the times are still there.
    assert!(service.stop());
    let service = HttpService::of(home.path());
    let (_, _, page) = get(&service, &all, "/v1/banks?counts=1");
    assert!(page["counts"].as_array().unwrap().iter().all(|of| of["last_append_ms"].as_i64() > Some(0)), "{page}");
    assert!(service.stop());
}

/// A service with the sample.
fn with_sample(home: &Path) -> HttpService {
    let file = pipeline_file(home, "");
    let sample = data("sample.jsonl");
    let ingested = ripplemem(&["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    HttpService::of(home)
}

#[test]
fn many_units_are_shown_as_of_one_moment() {
    let home = tempfile::tempdir().unwrap();
    let service = with_sample(home.path());
    let asked = json!({"bank": "sample/harbour", "text": "Which books has Marta recommended to Elias?"});
    let units = service.post("/v1/ask", &asked)["units"].as_array().unwrap().clone();
    let ids: Vec<&str> = units.iter().map(|unit| unit["id"].as_str().unwrap()).rev().collect();
    assert!(ids.len() > 2, "{ids:?}");
    let gone = "00000000000000aa";
    let wanted: Vec<&str> = ids.iter().copied().chain([gone, ids[0]]).collect();
    let shown = service.post("/v1/units", &json!({"bank": "sample/harbour", "ids": wanted}));
    let found: Vec<&str> = shown["units"].as_array().unwrap().iter().map(|unit| unit["id"].as_str().unwrap()).collect();
    assert_eq!((found, &shown["missing"]), (ids.clone(), &json!([gone])), "in the order of the request, each once");
    for unit in shown["units"].as_array().unwrap() {
        let one = service.get(&format!("/v1/units?bank=sample/harbour&id={}", unit["id"].as_str().unwrap()));
        assert_eq!((&one["unit"], &one["reflects"]), (unit, &shown["reflects"]));
    }
    put(&service, "", &["other"]);
    let other = service.post("/v1/units", &json!({"bank": "other", "ids": [ids[0]]}));
    assert_eq!((&other["units"], &other["missing"]), (&json!([]), &json!([ids[0]])), "a unit of another bank is none");
    let many = json!({"bank": "sample/harbour", "ids": vec![gone; 201]});
    for (body, status, word) in [
        (many, 400, "allowed are 1 to 200"),
        (json!({"bank": "sample/harbour", "ids": []}), 400, "allowed are 1 to 200"),
        (json!({"bank": "sample/harbour", "ids": ["x"]}), 400, "16 hexadecimal digits"),
        (json!({"bank": "nobody", "ids": [gone]}), 404, "bank nobody: unknown"),
    ] {
        let (found, _, problem) = service.send("POST", "/v1/units", "", body.to_string().as_bytes());
        assert_eq!(found, status, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    assert!(service.stop());
}

#[test]
fn a_long_answer_comes_packed_to_who_reads_that() {
    let home = tempfile::tempdir().unwrap();
    let service = with_sample(home.path());
    let body = json!({"bank": "sample/harbour", "text": "Which books has Marta recommended to Elias?"}).to_string();
    let ask = |headers: &str| {
        use std::io::{Read, Write};
        let mut stream = service.connect();
        let length = body.len();
        let host = &service.address;
        let head = format!("Host: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(format!("POST /v1/ask HTTP/1.1\r\n{head}{body}").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        (head, bytes.split_off(end + 4))
    };
    let (head, plain) = ask("");
    assert!(plain.len() > 8_192 && head.contains("vary: accept-encoding"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let (head, packed) = ask("Accept-Encoding: br, gzip;q=0.8\r\n");
    assert!(head.contains("content-encoding: gzip") && head.contains("server-timing"), "{head}");
    assert!(head.contains(&format!("content-length: {}", packed.len())) && packed.len() < plain.len() / 2, "{head}");
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
    assert!(unpacked == plain, "packed and plain differ");
    assert!(!ask("Accept-Encoding: gzip;q=0\r\n").0.contains("content-encoding"));
    let (head, _) = whole(&service, "GET /v1/banks HTTP/1.1\r\nAccept-Encoding: gzip\r\n", "");
    assert!(!head.contains("content-encoding"), "a short answer is as it was: {head}");
    assert!(service.stop());
}

/// The times are in a header, so that the same question has the same answer.
#[test]
fn an_answer_says_in_its_header_what_its_stages_took_and_nobody_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let service = with_sample(home.path());
    let body = json!({"bank": "sample/harbour", "text": "Which books has Marta recommended to Elias?"}).to_string();
    let ask = || whole(&service, "POST /v1/ask HTTP/1.1\r\n", &body);
    let (head, answer) = ask();
    assert_eq!(answer, ask().1, "byte by byte");
    let times = head.lines().find_map(|line| line.strip_prefix("server-timing: ")).expect("the header");
    let times: Vec<(&str, f64)> = times
        .split(", ")
        .map(|entry| entry.split_once(";dur=").unwrap())
        .map(|(name, milliseconds)| (name, milliseconds.parse().unwrap()))
        .collect();
    let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
    for stage in ["wait", "cues", "embed", "first_hop", "plan", "assembly", "total"] {
        assert!(names.contains(&stage), "{stage} is not in {times:?}");
    }
    let (_, total) = times.last().unwrap();
    let sum: f64 = times[..times.len() - 1].iter().map(|(_, milliseconds)| milliseconds).sum();
    assert!(sum > 0.0 && sum <= *total + 0.01, "stages do not overlap: {times:?}");

    for request in ["GET /v1/banks", "GET /v1/nothing", "GET /v1/status", "GET /v1/openapi.json", "GET /metrics"] {
        let (head, _) = whole(&service, &format!("{request} HTTP/1.1\r\n"), "");
        assert!(head.contains("cache-control: no-store"), "{request}: {head}");
    }
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert!(service.stop());
}

/// An edge of a graph, or of a unit, whichever end it is seen from.
fn undirected(a: &Value, b: &Value, of: &Value) -> (String, String, String, String) {
    let ends = [a, b].map(|end| end.as_str().unwrap().to_owned());
    let [lesser, greater] = if ends[0] < ends[1] { ends } else { [ends[1].clone(), ends[0].clone()] };
    (lesser, greater, of["channel"].as_str().unwrap().to_owned(), of["weight"].to_string())
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().unwrap()
}

#[test]
fn a_graph_has_the_units_and_edges_of_its_bank_and_says_what_it_leaves_out() {
    let home = tempfile::tempdir().unwrap();
    let service = with_sample(home.path());
    let status = service.get("/v1/bank?bank=sample/harbour");
    let graph = service.get("/v1/graph?bank=sample/harbour");
    let counted = |name: &str| status[name].as_u64().unwrap();
    let edges_total = counted("semantic_edges") + counted("structural_edges");
    assert_eq!((&graph["total_units"], &graph["total_edges"]), (&status["units"], &json!(edges_total)));
    assert_eq!((list(&graph, "units").len() as u64, &graph["truncated"]), (counted("units"), &json!(false)));
    let edges: BTreeSet<_> = list(&graph, "edges").iter().map(|e| undirected(&e["from"], &e["to"], e)).collect();
    assert_eq!(edges.len() as u64, edges_total, "each once");
    let times: Vec<jiff::Timestamp> =
        list(&graph, "units").iter().map(|unit| unit["said_at"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "the latest first");

    // A unit shows its strongest edges; what no unit shows is cut at both ends.
    let (mut shown, mut degrees) = (BTreeSet::new(), BTreeMap::<(String, String), [usize; 2]>::new());
    for unit in list(&graph, "units") {
        let id = unit["id"].as_str().unwrap();
        let view = service.get(&format!("/v1/units?bank=sample/harbour&id={id}"));
        for name in ["id", "said_at", "session"] {
            assert_eq!(unit[name], view["unit"][name], "{id}");
        }
        let label: String = view["unit"]["restatement"].as_str().unwrap().chars().take(80).collect();
        assert_eq!(unit["label"], json!(label));
        for edge in list(&view, "edges") {
            shown.insert(undirected(&unit["id"], &edge["unit"]["id"], edge));
            degrees.entry((id.to_owned(), edge["channel"].as_str().unwrap().to_owned())).or_default()[0] += 1;
        }
    }
    assert!(!shown.is_empty() && shown.is_subset(&edges));
    for (a, b, channel, _) in &edges {
        for end in [a, b] {
            degrees.entry((end.clone(), channel.clone())).or_default()[1] += 1;
        }
    }
    for (a, b, channel, _) in edges.difference(&shown) {
        for end in [a, b] {
            let [seen, all] = degrees[&(end.clone(), channel.clone())];
            assert!(seen < all, "{end} shows all of its {channel} edges, but not that between {a} and {b}");
        }
    }

    let few = service.get("/v1/graph?bank=sample/harbour&limit=3");
    assert_eq!(list(&few, "units"), &list(&graph, "units")[..3]);
    assert_eq!((&few["truncated"], &few["total_edges"]), (&json!(true), &json!(edges_total)));
    let ids: Vec<&Value> = list(&few, "units").iter().map(|unit| &unit["id"]).collect();
    let between = |edge: &&Value| ids.contains(&&edge["from"]) && ids.contains(&&edge["to"]);
    let expected: Vec<&Value> = list(&graph, "edges").iter().filter(between).collect();
    assert_eq!(list(&few, "edges").iter().collect::<Vec<_>>(), expected, "those between the units");

    let (a, ..) = edges.first().unwrap();
    let near: BTreeSet<&str> = edges.iter().filter_map(|(x, y, ..)| other_end(a, x, y)).collect();
    let around = service.get(&format!("/v1/graph?bank=sample/harbour&around={a}"));
    let by_hops: Vec<&str> = list(&around, "units").iter().map(|unit| unit["id"].as_str().unwrap()).collect();
    assert_eq!(by_hops[0], a);
    let first: BTreeSet<&str> = by_hops[1..=near.len()].iter().copied().collect();
    assert_eq!(first, near, "one edge away before two");
    let cut = service.get(&format!("/v1/graph?bank=sample/harbour&around={a}&limit=2"));
    assert_eq!(list(&cut, "units"), &list(&around, "units")[..2]);
    for (query, status, word) in [
        ("bank=sample/harbour&around=00000000000000aa", 404, "has no unit 00000000000000aa"),
        ("bank=sample/harbour&around=x", 400, "16 hexadecimal digits"),
        ("bank=sample/harbour&limit=0", 400, "allowed is 1 to 2000"),
        ("bank=sample/harbour&limit=2001", 400, "allowed is 1 to 2000"),
        ("bank=nobody", 404, "bank nobody: unknown"),
        ("limit=3", 400, "bank: missing"),
    ] {
        let (found, _, problem) = service.send("GET", &format!("/v1/graph?{query}"), "", b"");
        assert_eq!(found, status, "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{query}: {problem}");
    }
    assert!(service.stop());
}

fn other_end<'e>(of: &str, a: &'e str, b: &'e str) -> Option<&'e str> {
    if of == a { Some(b) } else { (of == b).then_some(a) }
}

/// What a stream sends up to the progress with this many units: names and data, and the progress's id.
fn told(stream: &mut EventStream, units: u64) -> (Vec<(String, Value)>, String) {
    let mut events = Vec::new();
    loop {
        let event = stream.next().expect("the stream goes on");
        assert_eq!(event.id.is_some(), event.name == "progress", "only a progress has an id: {event:?}");
        match event.id {
            Some(id) if event.data["units"] == units => return (events, id),
            Some(_) => {}
            None => events.push((event.name, event.data)),
        }
    }
}

#[test]
fn what_happens_in_a_bank_is_told_as_it_happens_and_once_to_who_comes_back() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let open = |since: &str| {
        let header = if since.is_empty() { String::new() } else { format!("Last-Event-ID: {since}\r\n") };
        let stream = EventStream::open(&service, "/v1/events?bank=a", &header);
        assert_eq!(stream.status, 200);
        stream
    };
    let mut stream = open("");
    let (nothing, begin) = told(&mut stream, 0);
    assert!(nothing.is_empty(), "the bank begins with its first turn");
    // What happens in another bank is not sent.
    put(&service, "", &["b"]);
    put(&service, "", &["a"]);
    let (came, with_one) = told(&mut stream, 1);
    let names: Vec<&str> = came.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["turn", "unit_added"]);
    let (turn, unit) = (&came[0].1, &came[1].1);
    assert_eq!((&turn["turn"], &turn["speaker"], &turn["deleted"]), (&json!("1"), &json!("Ann"), &Value::Null));
    assert_eq!(turn["text"], "The red kayak of a is here");
    assert_eq!(unit["turns"], json!(["1"]));
    let shown = service.get(&format!("/v1/units?bank=a&id={}", unit["id"].as_str().unwrap()));
    assert_eq!(unit["session"], shown["unit"]["session"]);
    assert_eq!(told(&mut open(&begin), 1), (came.clone(), with_one.clone()), "what was missed, once");

    let (status, _, gone) = service.send("DELETE", "/v1/turns?bank=a&turn=1", "", b"");
    assert_eq!((status, &gone["gone"]), (200, &json!(true)), "{gone}");
    let (went, _) = told(&mut stream, 0);
    let removed: Vec<&Value> = went.iter().filter(|(name, _)| name == "unit_removed").map(|(_, data)| data).collect();
    assert_eq!(removed, [&json!({"id": unit["id"]})]);
    let deleted = went.iter().find(|(name, _)| name == "turn").map(|(_, data)| data).unwrap();
    assert_eq!((&deleted["turn"], &deleted["text"], &deleted["deleted"]), (&json!("1"), &json!(""), &json!(true)));
    assert_eq!(told(&mut open(&with_one), 0).0, went);
    for unknown in ["0:999999", "7:1", "x"] {
        let mut stream = open(unknown);
        let (events, _) = told(&mut stream, 0);
        assert_eq!(events.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["reset"], "{unknown}");
    }
    assert_eq!(service.send("GET", "/v1/events", "", b"").0, 400);
    assert!(service.stop());
}

/// Readers of a bank learn that a record of it was rejected and why, but not what it said; a record that names no bank
/// is reported to no one.
#[test]
fn a_rejected_record_of_a_bank_is_told_without_its_words() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let open = || EventStream::open(&service, "/v1/events?bank=a", "");
    let (mut stream, mut other) = (open(), EventStream::open(&service, "/v1/events?bank=b", ""));
    told(&mut stream, 0);
    told(&mut other, 0);
    let record = |bank: &str, time: &str| {
        json!({"bank": bank, "turn": "7", "speaker": "Ann", "text": "the vermilion submarine", "time": time})
            .to_string()
    };
    let lines = ["not a record".to_owned(), record("a", "noon"), record("b", "2024-05-01T10:00:00Z")];
    let records = home.path().join("records.jsonl");
    fs::write(&records, lines.join("\n")).unwrap();
    let ingested = ripplemem(&["ingest", "jsonl", records.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    assert_eq!(ingested.status.code(), Some(3), "{}", String::from_utf8_lossy(&ingested.stderr));
    let rejected = stream.next().unwrap();
    assert_eq!((rejected.name.as_str(), &rejected.data["turn"]), ("rejected", &json!("7")), "{rejected:?}");
    let reason = rejected.data["reason"].as_str().unwrap();
    assert!(reason.contains("time: \"noon\" is not a time"), "{reason}");
    assert!(!rejected.data.to_string().contains("vermilion"), "{rejected:?}");
    assert!(told(&mut stream, 0).0.is_empty(), "the line that names no bank is told to nobody");
    let (came, _) = told(&mut other, 1);
    assert!(came.iter().all(|(name, _)| name != "rejected"), "{came:?}");
    assert!(service.stop());
}

/// A bank that its model does not read is reported for as long as it is so.
#[test]
fn a_bank_says_that_its_model_does_not_read_it() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let text = fs::read_to_string(&file).unwrap().replace("\"fixed\"", "\"all-MiniLM-L6-v2-int8\"");
    fs::write(&file, text).unwrap();
    let service = HttpService::of(home.path());
    for (bank, text) in
        [("market", "我昨天和姐姐去了市场。"), ("harbour", "Yesterday I went to the market with my sister.")]
    {
        let turn = |n: u64| {
            json!({"bank": bank, "turn": n.to_string(), "speaker": "Ann", "text": text, "session": n.to_string(),
                   "time": format!("2024-05-06T09:{n:02}:00Z")})
        };
        let turns: Vec<Value> = (0..24).map(turn).collect();
        assert_eq!(service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}))["reflected"], true);
    }
    let notice = |bank: &str| service.get(&format!("/v1/bank?bank={bank}"))["notice"].clone();
    let told = notice("market");
    let told = told.as_str().unwrap();
    assert!(told.starts_with("100 % of the units of bank market are in languages"), "{told}");
    assert!(told.contains("embed.model = \"multilingual-e5-small\""), "{told}");
    assert_eq!(notice("harbour"), Value::Null);
}

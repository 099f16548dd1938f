//! Questions that are followed, against the real listener of a process of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    event_stream::{EventStream, Followed, evidence_of},
    http_service::{HttpClient, HttpService, pipeline_file},
    model_process::ScriptedModel,
    oracle::Dice,
    support::{data, memory_kib, ripplemem},
};

fn turn(bank: &str, id: &str, text: &str, minute: usize) -> Value {
    let time = format!("2024-05-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24, minute % 60);
    json!({"bank": bank, "turn": id, "speaker": "Ann", "text": text, "time": time, "session": "s"})
}

fn path(bank: &str, text: &str) -> String {
    let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    format!("/v1/subscribe?bank={bank}&text={text}")
}

/// The offset after turns that were written to the only partition.
fn next(written: &Value) -> u64 {
    written["after"].as_str().unwrap().split_once(':').map(|(_, offset)| offset.parse::<u64>().unwrap() + 1).unwrap()
}

/// What asking afresh gives; nothing for a bank that holds nothing.
fn asked(client: &HttpClient, bank: &str, text: &str) -> Evidence {
    let ask = json!({"bank": bank, "text": text}).to_string();
    let (status, _, answer) = client.send("POST", "/v1/ask", "", ask.as_bytes());
    assert_eq!(status, 200, "{answer}");
    evidence_of(&answer)
}

/// What asking afresh gives, and the offset of the memory that all of it reflects; `None` if its parts reflect
/// different ones, or the bank holds nothing.
fn asked_as_of(client: &HttpClient, bank: &str, text: &str) -> Option<(u64, Evidence)> {
    let ask = json!({"bank": bank, "text": text}).to_string();
    let (status, _, answer) = client.send("POST", "/v1/ask", "", ask.as_bytes());
    if status != 200 || answer["notice"]["code"] == "empty_bank" {
        return None;
    }
    let offset = |reflects: &Value| {
        let mut at = reflects.as_array().unwrap().iter().filter(|at| at["topic"] == "memory");
        at.find_map(|at| at["next_offset"].as_u64())
    };
    let first = offset(&answer["reflects"])?;
    let mut rounds = answer["trace"]["rounds"].as_array().unwrap().iter();
    let whole = rounds.all(|round| offset(&round["reflects"]).is_none_or(|offset| offset == first));
    whole.then(|| (first, evidence_of(&answer)))
}

/// Ids and excerpts, in order.
type Evidence = Vec<(Value, Value)>;

const QUESTIONS: [&str; 3] = ["Where is the red kayak?", "What does my sister play?", "When does the ferry leave?"];
const THINGS: [&str; 6] = ["red kayak", "bassoon", "ferry", "sister", "boathouse", "harbour"];
const PLACES: [&str; 4] = ["in the boathouse", "at noon", "near the harbour of Bergen", "with Marta"];

/// Random puts, edits and deletions, while questions are followed: at every progress, what a follower has
/// put together is what asking afresh gives as of the progress's offsets.
#[test]
fn at_every_progress_a_follower_has_what_asking_afresh_gives() {
    for seed in [1, 2] {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), "log.partitions = 1\n");
        let service = HttpService::of(home.path());
        let banks: [&'static str; 2] = ["a", "b/c"];
        let all: Vec<(&'static str, &'static str)> =
            banks.iter().flat_map(|bank| QUESTIONS.map(|text| (*bank, text))).collect();
        let (last, done) = (Mutex::new(None::<u64>), AtomicBool::new(false));
        // What both a follower and one who asks afresh have had so far. A busy machine needs more steps for the same.
        let (reached, met) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
        let note = |of: (&'static str, &'static str, u64), is_afresh: bool| {
            let mut reached = reached.lock().unwrap();
            if reached.contains(&(of, !is_afresh)) {
                met.lock().unwrap().insert(of);
            }
            reached.insert((of, is_afresh));
        };
        let (seen, afresh) = std::thread::scope(|scope| {
            let follow = |(bank, text): (&'static str, &'static str)| {
                let (service, last, note) = (&service, &last, &note);
                scope.spawn(move || {
                    let mut stream = EventStream::open(service, &path(bank, text), "");
                    assert_eq!(stream.status, 200);
                    let (mut followed, mut progress) = (Followed::default(), Vec::new());
                    loop {
                        let event = stream.next().expect("the stream goes on");
                        followed.take(&event);
                        if !followed.is_complete() {
                            continue;
                        }
                        note((bank, text, followed.offset("memory")), false);
                        progress.push((followed.offset("memory"), followed.evidence()));
                        if last.lock().unwrap().is_some_and(|last| followed.offset("turns") >= last) {
                            assert!(!followed.seen.contains(&"reset".to_owned()));
                            return progress;
                        }
                    }
                })
            };
            let followers: Vec<_> = all.iter().map(|of| follow(*of)).collect();
            // A caller who asks afresh all the while meets many of the followers' offsets.
            let asker = scope.spawn(|| {
                let mut afresh = BTreeMap::new();
                while !done.load(Ordering::Relaxed) {
                    for (bank, text) in &all {
                        if let Some((offset, evidence)) = asked_as_of(&service, bank, text) {
                            note((*bank, *text, offset), true);
                            afresh.insert((*bank, *text, offset), evidence);
                        }
                    }
                }
                afresh
            });
            let mut dice = Dice(seed);
            let (mut ids, mut version, mut minute) = (Vec::new(), 0, 0);
            let is_enough = |step| step >= 90 && met.lock().unwrap().len() > MET || step >= 1_000;
            for step in (0..).take_while(|step| !is_enough(*step)) {
                let bank = banks[dice.below(2) as usize];
                minute += if dice.below(6) == 0 { 200 } else { 1 };
                let said = |dice: &mut Dice| {
                    let (thing, place) = (THINGS[dice.below(6) as usize], PLACES[dice.below(4) as usize]);
                    format!("The {thing} of number {step} is {place}")
                };
                let known: Vec<&(String, &str)> = ids.iter().filter(|(_, of): &&(String, &str)| *of == bank).collect();
                let some = (!known.is_empty()).then(|| known[dice.below(known.len() as u64) as usize].0.clone());
                match (dice.below(10), some) {
                    (0..2, Some(id)) => {
                        let (status, _, forgotten) =
                            service.send("DELETE", &format!("/v1/turns?bank={bank}&turn={id}&wait_ms=0"), "", b"");
                        assert_eq!(status, 200, "{forgotten}");
                        ids.retain(|(other, of)| (other, *of) != (&id, bank));
                    }
                    (2..4, Some(id)) => {
                        version += 1;
                        let mut edit = turn(bank, &id, &said(&mut dice), minute);
                        edit["version"] = json!(version);
                        service.post("/v1/turns", &json!({"turns": [edit]}));
                    }
                    _ => {
                        let id = format!("t{step}");
                        service.post("/v1/turns", &json!({"turns": [turn(bank, &id, &said(&mut dice), minute)]}));
                        ids.push((id, bank));
                    }
                }
                if dice.below(3) == 0 {
                    std::thread::sleep(Duration::from_millis(dice.below(200)));
                }
            }
            let end = service.post("/v1/turns", &json!({"turns": [turn("a", "end", "The end is near", minute + 1)]}));
            *last.lock().unwrap() = Some(next(&end));
            let seen: Vec<Vec<(u64, Evidence)>> =
                followers.into_iter().map(|follower| follower.join().unwrap()).collect();
            done.store(true, Ordering::Relaxed);
            (seen, asker.join().unwrap())
        });
        let mut compared = 0;
        for ((bank, text), progress) in all.into_iter().zip(seen) {
            let (_, last) = progress.last().unwrap();
            assert_eq!(last, &asked(&service, bank, text), "seed {seed}: {text}: at the end");
            assert!(progress.windows(2).all(|pair| pair[0].0 <= pair[1].0), "offsets never go back");
            for (offset, evidence) in progress {
                if let Some(afresh) = afresh.get(&(bank, text, offset)) {
                    assert_eq!(&evidence, afresh, "seed {seed}: {bank}: {text}: as of {offset}");
                    compared += 1;
                }
            }
        }
        println!("seed {seed}: {compared} progresses compared");
        assert!(compared > MET, "{compared}");
        assert!(service.stop());
    }
}

/// How many answers are compared, at least.
const MET: usize = 30;

/// One who comes back gets what changed, as long as that is known, and all of it otherwise.
#[test]
fn one_who_comes_back_gets_what_changed_since_or_everything_anew() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 1\n");
    let service = HttpService::of(home.path());
    let text = QUESTIONS[0];
    let mut followed = Followed::default();
    let mut stream = EventStream::open(&service, &path("a", text), "");
    let put = |id: &str, text: &str| next(&service.post("/v1/turns", &json!({"turns": [turn("a", id, text, 1)]})));
    // A bank that holds nothing yet can be followed.
    followed.take(&stream.next().unwrap());
    followed.take(&stream.next().unwrap());
    assert_eq!((followed.seen.join(" "), followed.evidence()), ("snapshot progress".to_owned(), Vec::new()));
    followed.reach(&mut stream, put("1", "The red kayak is in the boathouse"));
    assert_eq!(followed.evidence().len(), 1);
    drop(stream);
    let now = put("2", "The red kayak is at the harbour");
    let id = followed.id.clone().unwrap();
    let mut stream = EventStream::open(&service, &path("a", text), &format!("Last-Event-ID: {id}\r\n"));
    followed.seen.clear();
    followed.reach(&mut stream, now);
    assert!(!followed.seen.iter().any(|name| name == "snapshot" || name == "reset"), "{:?}", followed.seen);
    assert_eq!(followed.evidence(), asked(&service, "a", text));
    for unknown in ["0123456789abcdef-3", "x", &format!("{id}9")] {
        let mut stream = EventStream::open(&service, &format!("{}&last_event_id={unknown}", path("a", text)), "");
        let mut rebuilt = Followed::default();
        rebuilt.reach(&mut stream, now);
        assert_eq!(rebuilt.seen[..2], ["reset", "snapshot"], "{unknown}");
        assert_eq!(rebuilt.evidence(), followed.evidence());
    }
    // Without a stream: one answer, at once if something changed, else after the wait.
    let poll = |more: &str| service.get(&format!("{}{more}", path("a", text)));
    let first = poll("&wait_ms=0");
    assert_eq!(first["snapshot"].as_array().unwrap().len(), followed.evidence().len());
    let since = |polled: &Value| format!("&last_event_id={}", polled["id"].as_str().unwrap());
    let same = poll(&format!("{}&wait_ms=1", since(&first)));
    assert_eq!((&same["id"], &same["snapshot"], &same["delta"]), (&first["id"], &Value::Null, &Value::Null));
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| poll(&format!("{}&wait_ms=60000", since(&first))));
        put("3", "Marta borrowed the red kayak");
        waiting.join().unwrap()
    });
    assert_eq!(waiting["delta"]["added"].as_array().map(Vec::len), Some(1), "{waiting}");
    let body = json!({"bank": "a", "text": text, "wait_ms": 0});
    assert_eq!(service.post("/v1/subscribe", &body)["progress"], waiting["progress"], "POST takes the same");
    assert!(service.stop());
}

/// What was deleted is sent to no one any more: neither to one who comes back to its bank or to a question, nor to one
/// who begins to follow the question while others do.
#[test]
fn what_was_deleted_is_not_sent_to_one_who_comes_back() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 1\n");
    let service = HttpService::of(home.path());
    let (question, word) = (path("a", QUESTIONS[0]), "boathouse");
    let put = |id: &str, text: &str| {
        next(&service.post("/v1/turns", &json!({"turns": [turn("a", id, text, 1)], "wait_ms": 60_000})))
    };
    let first = put("1", "The red canoe is in the attic");
    let mut events = EventStream::open(&service, "/v1/events?bank=a", "");
    let begin = events.next().unwrap().id.unwrap();
    let (mut stream, mut followed) = (EventStream::open(&service, &question, ""), Followed::default());
    followed.reach(&mut stream, first);
    followed.reach(&mut stream, put("2", &format!("The red kayak is in the {word}")));
    assert!(format!("{:?}", followed.evidence()).contains(word));
    let id = followed.id.clone().unwrap();
    // What happened since the beginning, up to the progress after a version of the second turn.
    let happened = |is_deleted: bool| {
        let mut again = EventStream::open(&service, &format!("/v1/events?bank=a&last_event_id={begin}"), "");
        let (mut told, mut is_near) = (Vec::new(), false);
        loop {
            let event = again.next().expect("the stream goes on");
            is_near |= event.data["turn"] == "2" && event.data["deleted"].as_bool().unwrap_or_default() == is_deleted;
            if is_near && event.name == "progress" {
                return told;
            }
            told.push((event.name, event.data.to_string()));
        }
    };
    let saying = |told: &[(String, String)]| -> Vec<String> {
        told.iter().filter(|(_, data)| data.contains(word)).map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(saying(&happened(false)), ["turn", "unit_added"]);

    let (status, _, gone) = service.send("DELETE", "/v1/turns?bank=a&turn=2", "", b"");
    assert_eq!((status, &gone["gone"]), (200, &json!(true)), "{gone}");
    let whole = service.get(&format!("{question}&wait_ms=0"));
    assert!(whole["snapshot"].is_array() && !whole.to_string().contains(word), "{whole}");
    let polled = service.get(&format!("{question}&wait_ms=0&last_event_id={id}"));
    assert!(!polled["delta"]["removed"].as_array().unwrap().is_empty(), "{polled}");
    assert!(!polled.to_string().contains(word), "{polled}");
    let mut again = EventStream::open(&service, &format!("{question}&last_event_id={id}"), "");
    followed.seen.clear();
    while followed.seen.last().is_none_or(|name| name != "delta") {
        let event = again.next().expect("the stream goes on");
        assert!(!event.data.to_string().contains(word), "{event:?}");
        followed.take(&event);
    }
    let told = happened(true);
    assert_eq!(saying(&told), [""; 0], "{told:?}");
    let of_second = told.iter().filter(|(name, data)| name == "turn" && data.contains(r#""turn":"2""#));
    assert_eq!(of_second.count(), 2, "that it was said and deleted stays: {told:?}");
    drop((events, stream));
    assert!(service.stop());
}

/// When the service stops, it ends every open stream, each with its last chunk.
#[test]
fn a_service_that_ends_ends_its_streams_first() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let mut streams: Vec<EventStream> =
        QUESTIONS.iter().map(|text| EventStream::open(&service, &path("a", text), "")).collect();
    assert!(service.stop());
    for stream in &mut streams {
        while stream.next().is_some() {}
        assert!(stream.is_complete(), "it was cut off after the time for the last answers");
    }
}

/// How a wrong subscription is refused, before any stream begins.
#[test]
fn a_wrong_subscription_gets_a_problem_and_no_stream() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "[http]\nsubscriptions = 2\n");
    let service = HttpService::of(home.path());
    let cases = [
        ("/v1/subscribe?bank=a", 400, "text: missing"),
        ("/v1/subscribe?text=x", 400, "bank: missing"),
        ("/v1/subscribe?bank=../a&text=x", 400, "bank"),
        ("/v1/subscribe?bank=a&text=", 400, "question"),
        ("/v1/subscribe?bank=a&text=x&asked_at=soon", 400, "asked_at"),
        ("/v1/subscribe?bank=a&text=x&wait_ms=600001", 400, "wait_ms"),
        ("/v1/subscribe?bank=a&text=x&other=1", 400, "other"),
    ];
    for (path, status, word) in cases {
        let (found, kind, problem) = service.send("GET", path, "", b"");
        assert_eq!((found, kind.as_str()), (status, "application/problem+json"), "{path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{path}: {problem}");
    }
    let open: Vec<EventStream> =
        QUESTIONS[..2].iter().map(|text| EventStream::open(&service, &path("a", text), "")).collect();
    let (status, _, problem) = service.send("GET", &path("a", QUESTIONS[2]), "", b"");
    assert_eq!((status, &problem["code"]), (429, &json!("busy")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("http.subscriptions"), "{problem}");
    drop(open);
    let started = Instant::now();
    while service.send("GET", &format!("{}&wait_ms=0", path("a", QUESTIONS[2])), "", b"").0 != 200 {
        // The end of a connection is seen when something is sent on it.
        service.post("/v1/turns", &json!({"turns": [turn("a", &format!("{:?}", started.elapsed()), "kayak", 1)]}));
        assert!(started.elapsed() < Duration::from_secs(60), "places become free");
    }
}

/// A hundred followers who never read: others are served, and what is kept for them does not grow.
#[test]
fn those_who_never_read_hold_up_nobody_and_cost_little() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 1\n");
    let service = HttpService::of(home.path());
    let text = QUESTIONS[0];
    let long =
        |n: usize| format!("The red kayak is in the boathouse, number {n}. {}", "It was said at length. ".repeat(80));
    let put = |from: usize, to: usize| {
        let turns: Vec<Value> = (from..to).map(|n| turn("a", &n.to_string(), &long(n), n)).collect();
        next(&service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000})))
    };
    put(0, 40);
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = service.connect();
        let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path("a", text), service.address);
        stream.write_all(request.as_bytes()).unwrap();
        silent.push(stream);
    }
    let mut reader = EventStream::open(&service, &path("a", text), "");
    let mut followed = Followed::default();
    followed.reach(&mut reader, put(40, 41));
    let before = memory_kib(service.id(), "VmRSS:");
    for n in 41..140 {
        followed.reach(&mut reader, put(n, n + 1));
    }
    assert_eq!(followed.evidence(), asked(&service, "a", text));
    let grown = memory_kib(service.id(), "VmRSS:").saturating_sub(before);
    // Each delta has some 2 KiB of text in each of its units: queues would hold 100 of them for each of the silent.
    assert!(grown < 20 << 10, "it grew by {grown} KiB");
    drop(silent);
    assert!(service.stop());
}

/// A unit with its edges, each with its reasons, and what is not a unit.
#[test]
fn a_unit_is_shown_with_its_neighbours_and_why_they_are_linked() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 1\nmemory.structural_threshold = 0.1\n");
    let service = HttpService::of(home.path());
    let said = [("1", "Marta keeps the red kayak in Bergen", 1), ("2", "Marta sold the boat in Bergen", 500)];
    let turns: Vec<Value> = said.iter().map(|(id, text, minute)| turn("a", id, text, *minute)).collect();
    service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 60_000}));
    let ask = json!({"bank": "a", "text": "Where is the red kayak?"});
    let answer = service.post("/v1/ask", &ask);
    let first = &answer["units"][0];
    let id = first["id"].as_str().unwrap();
    let view = service.get(&format!("/v1/units?bank=a&id={id}"));
    assert_eq!((&view["bank"], &view["unit"]["id"]), (&json!("a"), &first["id"]), "{view}");
    assert_eq!(view["unit"]["restatement"], first["restatement"]);
    assert_eq!(view["unit"]["sources"], first["sources"]);
    assert!(view["unit"]["parts"].as_array().unwrap().iter().any(|part| part["turn"] == "1"), "{view}");
    assert_eq!(view["unit"]["cues"]["participants"], first["participants"]);
    let edges = view["edges"].as_array().unwrap();
    let structural = edges.iter().find(|edge| edge["channel"] == "structural").expect("an edge by names");
    assert_eq!(structural["reasons"]["locations"], json!(["bergen"]), "{structural}");
    assert!(structural["weight"].as_f64().unwrap() > 0.0 && structural["unit"]["sources"] == json!(["2"]), "{view}");
    // The other end shows the same edge.
    let other = structural["unit"]["id"].as_str().unwrap();
    let back = service.get(&format!("/v1/units?bank=a&id={other}"));
    let same = back["edges"].as_array().unwrap().iter().find(|edge| edge["channel"] == "structural").unwrap();
    assert_eq!((&same["unit"]["id"], &same["weight"]), (&first["id"], &structural["weight"]));
    let digest = service.get("/v1/digest?bank=a");
    assert_eq!(digest["reflects"], view["reflects"]);
    for (path, status, code) in [
        ("/v1/units?bank=a&id=0000000000000000".to_owned(), 404, "unknown_unit"),
        (format!("/v1/units?bank=b&id={id}"), 404, "unknown_bank"),
        ("/v1/units?bank=a&id=xyz".to_owned(), 400, "invalid"),
        ("/v1/units?bank=a".to_owned(), 400, "invalid"),
        (format!("/v1/units?id={id}"), 400, "invalid"),
    ] {
        let (found, _, problem) = service.send("GET", &path, "", b"");
        assert_eq!((found, &problem["code"]), (status, &json!(code)), "{path}: {problem}");
    }
}

/// In one piece, as events, and refused with the name of the setting if no model is set.
#[test]
fn a_question_is_answered_in_words_where_a_model_is_set() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let ask = json!({"bank": "sample/harbour", "text": "Which books has Marta recommended to Elias?", "answer": true});
    let (status, _, problem) = service.send("POST", "/v1/ask", "", ask.to_string().as_bytes());
    assert_eq!((status, &problem["code"]), (422, &json!("no_model")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("llm.endpoint"), "{problem}");
    assert!(service.stop());
    let model = ScriptedModel::start(&[]);
    let llm = format!("[llm]\nendpoint = {:?}\nmodel = \"scripted\"\n", model.endpoint);
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), &llm);
    let sample = data("sample.jsonl");
    let ingested = ripplemem(&["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    let service = HttpService::of(home.path());
    let answered = service.post("/v1/ask", &ask);
    let text = answered["answer"]["text"].as_str().unwrap().to_owned();
    assert!(!text.is_empty() && answered["units"].is_array() && answered["context"].is_string(), "{answered}");
    let mut stream = EventStream::post(&service, "/v1/ask", "Accept: text/event-stream\r\n", &ask);
    assert_eq!(stream.status, 200);
    let events: Vec<_> = std::iter::from_fn(|| stream.next()).collect();
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"evidence"), Some(&"answer")), "{names:?}");
    let mut words = String::new();
    for event in &events {
        match event.name.as_str() {
            "text" => words.push_str(event.data["text"].as_str().unwrap()),
            "restart" => words.clear(),
            _ => {}
        }
    }
    assert_eq!(words.trim(), text);
    assert_eq!(events.last().unwrap().data["text"], text);
    assert_eq!(events[0].data["units"], answered["units"]);
}

/// A model that never answers holds up answers in words alone, and only as many as may wait.
#[test]
fn answers_that_no_model_gives_are_bounded_and_delay_nothing_else() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let llm = format!(
        "llm.endpoint = \"http://{}/v1\"\nllm.model = \"silent\"\nllm.in_flight = 2\nllm.timeout_seconds = 3\n",
        silent.local_addr().unwrap()
    );
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &llm);
    let service = HttpService::of(home.path());
    let turns = json!({"turns": [turn("a", "1", "The red kayak is in the boathouse", 1)], "wait_ms": 60_000});
    service.post("/v1/turns", &turns);
    let ask = json!({"bank": "a", "text": "Where is the red kayak?", "answer": true}).to_string();
    let asked = || {
        let mut stream = service.connect();
        let head = format!("POST /v1/ask HTTP/1.1\r\nHost: {}\r\nContent-Length: {}", service.address, ask.len());
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{ask}").as_bytes()).unwrap();
        stream
    };
    // Sixteen may be awaited, by callers who need no token; the others are refused at once.
    let mut waiting: Vec<_> = (0..24).map(|_| asked()).collect();
    let mut refused = 0;
    while refused < 8 {
        waiting.retain_mut(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let mut status = [0; 12];
            let is_answered = stream.read_exact(&mut status).is_ok();
            if is_answered {
                assert_eq!(&status, b"HTTP/1.1 429");
                refused += 1;
            }
            !is_answered
        });
    }
    assert_eq!(waiting.len(), 16);
    // Whatever needs no model is served.
    let more = json!({"turns": [turn("a", "2", "The kayak was painted", 2)], "wait_ms": 60_000});
    assert_eq!(service.post("/v1/turns", &more)["reflected"], true);
    // A caller who leaves gives up the place.
    drop(waiting);
    let mut again = asked();
    let mut text = String::new();
    again.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 500") && text.contains("no answer in words"), "{text}");
}

/// Up to which offset a bank is complete, and snapshots, which only administrators see.
#[test]
fn a_bank_says_how_far_it_reaches_and_snapshots_are_taken_and_listed() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 2\nsnapshot.directory = \"snapshots\"\n");
    let service = HttpService::of(home.path());
    let turns = json!({"turns": [turn("a", "1", "The ferry leaves at noon", 1)], "wait_ms": 60_000});
    let after = service.post("/v1/turns", &turns)["after"].as_str().unwrap().to_owned();
    let (partition, offset) = after.split_once(':').unwrap();
    let bank = service.get("/v1/bank?bank=a");
    assert_eq!((&bank["bank"], &bank["units"], &bank["behind"]), (&json!("a"), &json!(1), &json!(0)), "{bank}");
    let reached = bank["complete_through"].as_array().unwrap().iter().find(|at| at["topic"] == "turns").unwrap();
    let expected = offset.parse::<u64>().unwrap() + 1;
    assert_eq!((reached["partition"].to_string().as_str(), &reached["next_offset"]), (partition, &json!(expected)));
    assert_eq!(service.send("GET", "/v1/bank?bank=b", "", b"").0, 404);
    // The start has written empty ones.
    let units =
        |of: &Value| -> u64 { of["snapshots"].as_array().unwrap().iter().filter_map(|of| of["units"].as_u64()).sum() };
    let before = service.get("/v1/admin/snapshots");
    assert_eq!((before["snapshots"].as_array().map(Vec::len), units(&before)), (Some(2), 0), "{before}");
    let taken = service.post("/v1/admin/snapshots", &Value::Null);
    assert_eq!(units(&taken), 1, "{taken}");
    assert_eq!(service.get("/v1/admin/snapshots"), taken);
    assert!(service.stop());
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let (status, _, problem) = service.send("POST", "/v1/admin/snapshots", "", b"");
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("snapshot.directory"), "{problem}");
}

//! Metadata of turns, and the selector that is `where` everywhere: over HTTP, to a service of its own.

use serde_json::{Value, json};

use super::{
    event_stream::EventStream,
    http_service::{HttpService, pipeline_file},
};

const BANK: &str = "shop";

fn turns() -> Vec<Value> {
    let turn = |n: usize, speaker: &str, text: &str, more: Value| {
        let mut turn = json!({
            "bank": BANK, "turn": format!("t{n}"), "speaker": speaker, "text": text,
            "time": format!("2024-05-06T09:{n:02}:00Z"), "session": format!("order/{}", n % 2),
        });
        turn.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        turn
    };
    vec![
        turn(
            1,
            "Ann",
            "The blue lamp costs forty euros.",
            json!({"metadata": {"price": 40, "tags": ["lamp", "blue"]}}),
        ),
        turn(
            2,
            "Bo",
            "The blue lamp costs fifty euros in Oslo.",
            json!({"metadata": {"price": 50.5, "city": {"name": "Oslo"}}}),
        ),
        turn(
            3,
            "Ann",
            "The blue lamp is sold out in Rome.",
            json!({"kind": "tool", "thread": "stock", "reply_to": "t1"}),
        ),
        turn(
            4,
            "Bo",
            "The blue lamp of the log line was checked by the auditor.",
            json!({"recall": false, "metadata": {"price": 40}}),
        ),
        turn(
            5,
            "Cy",
            "A red chair stands beside the blue lamp.",
            json!({"metadata": {"price": "40", "big": 18_446_744_073_709_551_615_u64, "f": 1.0}}),
        ),
    ]
}

fn serve(home: &std::path::Path) -> HttpService {
    pipeline_file(home, "extract.unit_turns = 3\n");
    let service = HttpService::of(home);
    let written = service.post("/v1/turns", &json!({"turns": turns(), "wait_ms": 30_000}));
    assert_eq!(written["reflected"], true, "{written}");
    service
}

fn quoted(answer: &Value) -> Vec<String> {
    let units = answer["units"].as_array().unwrap().iter();
    let mut turns: Vec<String> = units
        .flat_map(|unit| unit["excerpts"].as_array().unwrap())
        .map(|excerpt| excerpt["turn"].as_str().unwrap().to_owned())
        .collect();
    turns.sort();
    turns.dedup();
    turns
}

fn listed(list: &Value) -> Vec<&str> {
    list["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_str().unwrap()).collect()
}

const QUESTION: &str = "What does the blue lamp cost?";

#[test]
fn a_turn_is_listed_whole_with_its_metadata_as_they_were_sent() {
    let home = tempfile::tempdir().unwrap();
    let service = serve(home.path());
    let list = service.get(&format!("/v1/turns?bank={BANK}&order=oldest"));
    assert_eq!(listed(&list), ["t1", "t2", "t3", "t4", "t5"]);
    for (sent, got) in turns().iter().zip(list["turns"].as_array().unwrap()) {
        for field in ["text", "session", "thread", "reply_to", "metadata", "recall"] {
            assert_eq!(got.get(field), sent.get(field), "{field}: {got}");
        }
        let [stored, first] = ["stored_ms", "first_stored_ms"].map(|field| got[field].as_i64().unwrap());
        assert!(stored == first && stored > 1_700_000_000_000, "{got}");
        assert_eq!(got["version"], 0);
    }
    let text = serde_json::to_string(&list).unwrap();
    assert!(text.contains(r#""big":18446744073709551615,"f":1.0"#), "{text}");

    let mut edit = turns()[0].clone();
    (edit["version"], edit["metadata"]) = (json!(7), json!({"price": 41}));
    service.post("/v1/turns", &json!({"turns": [edit], "wait_ms": 30_000}));
    let list = service.get(&format!("/v1/turns?bank={BANK}&turn=t1&turn=t4&turn=none"));
    assert_eq!(listed(&list), ["t4", "t1"]);
    let edited = &list["turns"][1];
    assert_eq!((&edited["version"], &edited["metadata"]), (&json!(7), &json!({"price": 41})));
    assert!(edited["stored_ms"].as_i64() >= edited["first_stored_ms"].as_i64());

    // Pages, by a selector, while turns arrive.
    let by = |before: Value| json!({"bank": BANK, "where": {"session_prefix": "order/"}, "order": "oldest", "limit": 2, "before": before});
    let first = service.post("/v1/turns/list", &by(Value::Null));
    assert_eq!((listed(&first), &first["more"]), (vec!["t1", "t2"], &json!(3)));
    let early = json!({"bank": BANK, "turn": "t0", "speaker": "Ann", "text": "Good morning.", "time": "2024-05-06T08:00:00Z", "session": "order/9"});
    service.post("/v1/turns", &json!({"turns": [early], "wait_ms": 30_000}));
    let second = service.post("/v1/turns/list", &by(first["next"].clone()));
    assert_eq!(listed(&second), ["t3", "t4"]);
    let third = service.post("/v1/turns/list", &by(second["next"].clone()));
    assert_eq!((listed(&third), third.get("next")), (vec!["t5"], None));
    assert_eq!(listed(&service.get(&format!("/v1/turns?bank={BANK}&session_prefix=order/9"))), ["t0"]);
    let wrong = service.send("GET", &format!("/v1/turns?bank={BANK}&order=newest"), "", b"");
    assert_eq!(wrong.0, 400, "{}", wrong.2);
    assert!(service.stop());
}

#[test]
fn a_question_quotes_only_what_its_selector_takes() {
    let home = tempfile::tempdir().unwrap();
    let service = serve(home.path());
    let ask = |select: Value| {
        service.post(
            "/v1/ask",
            &json!({"bank": BANK, "text": QUESTION, "where": select, "compare": true, "near": 50, "walk": true}),
        )
    };
    let all = service.post("/v1/ask", &json!({"bank": BANK, "text": QUESTION}));
    let everything = quoted(&all);
    assert!(everything.len() >= 3 && !everything.contains(&"t4".to_owned()), "{everything:?}");
    assert!(all["units"][0]["excerpts"][0].get("metadata").is_none(), "only when asked for");
    let price = |test: Value| {
        let mut condition = json!({"path": ["price"]});
        condition.as_object_mut().unwrap().extend(test.as_object().unwrap().clone());
        json!({ "metadata": condition })
    };
    for (select, allowed) in [
        (price(json!({"eq": 40.0})), vec!["t1"]),
        (price(json!({"gte": 40})), vec!["t1", "t2"]),
        (price(json!({"in": ["40", 50.5]})), vec!["t2", "t5"]),
        (price(json!({"exists": false})), vec!["t3"]),
        (json!({"metadata": {"path": ["city", "name"], "eq": "Oslo"}}), vec!["t2"]),
        (json!({"metadata": {"path": ["tags"], "has": "blue"}}), vec!["t1"]),
        (json!({"metadata": {"not": {"path": ["price"], "lt": 50}}}), vec!["t2", "t3", "t5"]),
        (json!({"kinds": ["tool"]}), vec!["t3"]),
        (json!({"thread": "stock"}), vec!["t3"]),
        (json!({"session": "order/0", "speakers": ["Bo"]}), vec!["t2"]),
        (json!({"session_prefix": "order/1", "since": "2024-05-06T09:04:00Z"}), vec!["t5"]),
        (json!({"mentions": ["Rome"]}), vec!["t3"]),
        (json!({"session_prefix": "other"}), vec![]),
    ] {
        let answer = ask(select.clone());
        let found = quoted(&answer);
        assert!(found.iter().all(|turn| allowed.contains(&turn.as_str())), "{select}: {found:?}");
        assert_eq!(found.is_empty(), allowed.is_empty(), "{select}: {answer}");
        // No text of another turn stands anywhere in the answer.
        let text = answer.to_string();
        for turn in turns().iter().filter(|turn| !allowed.contains(&turn["turn"].as_str().unwrap())) {
            let words = turn["text"].as_str().unwrap();
            assert!(!text.contains(words), "{select}: {words} in {text}");
        }
    }
    assert_eq!(quoted(&ask(json!({}))), everything);
    assert_eq!(quoted(&ask(json!({"all": true}))), everything);

    let with = json!({"bank": BANK, "text": QUESTION, "metadata": true, "where": {"turns": ["t1", "t3"]}});
    let answer = service.post("/v1/ask", &with);
    for excerpt in answer["units"].as_array().unwrap().iter().flat_map(|unit| unit["excerpts"].as_array().unwrap()) {
        let expected = (excerpt["turn"] == "t1").then(|| json!({"price": 40, "tags": ["lamp", "blue"]}));
        assert_eq!(excerpt.get("metadata"), expected.as_ref());
    }
    let why = json!({"bank": BANK, "text": QUESTION, "turn": "t1", "where": {"kinds": ["tool"]}});
    let explained = service.post("/v1/explain", &why);
    assert_eq!((&explained["quoted"], &explained["failed"]), (&json!(false), &json!("candidate")), "{explained}");
    assert!(explained["sentence"].as_str().unwrap().contains("where"), "{explained}");

    for (wrong, named) in [
        (json!({"metadata": {"path": ["a"], "contains": 1}}), "contains"),
        (json!({"metadata": {"path": [], "eq": 1}}), "metadata"),
        (json!({"color": "red"}), "color"),
        (json!({"since": "yesterday"}), "yesterday"),
        (json!({"session_prefix": ""}), "session_prefix"),
    ] {
        for path in ["/v1/ask", "/v1/subscribe", "/v1/turns/list"] {
            let mut body = json!({"bank": BANK, "where": wrong});
            if path != "/v1/turns/list" {
                body["text"] = QUESTION.into();
            }
            let (status, _, problem) =
                service.send("POST", path, "Content-Type: application/json\r\n", body.to_string().as_bytes());
            assert!(status == 400 && problem.to_string().contains(named), "{path} {wrong}: {status} {problem}");
        }
    }
    assert!(service.stop());
}

#[test]
fn a_subscription_follows_what_its_selector_takes_and_what_is_forgotten_by_metadata_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let service = serve(home.path());
    let select = json!({"metadata": {"path": ["price"], "exists": true}});
    let follow = json!({"bank": BANK, "text": QUESTION, "where": select, "metadata": true, "wait_ms": 0});
    let polled = service.post("/v1/subscribe", &follow);
    let text = polled.to_string();
    assert!(text.contains("forty euros") && !text.contains("Rome") && text.contains(r#""price":40"#), "{text}");
    let by_query = format!(
        "/v1/subscribe?bank={BANK}&text=What+does+the+blue+lamp+cost&wait_ms=0&where={}",
        "%7B%22thread%22%3A%22stock%22%7D"
    );
    let text = service.get(&by_query).to_string();
    assert!(text.contains("Rome") && !text.contains("forty"), "{text}");

    // Events have the metadata of turns where they are asked for.
    let begin = EventStream::open(&service, &format!("/v1/events?bank={BANK}"), "").next().unwrap().id.unwrap();
    let late = json!({"bank": BANK, "turn": "t6", "speaker": "Cy", "text": "A green desk stands there.",
        "time": "2024-05-06T09:06:00Z", "metadata": {"f": 1.0, "k": [1, "x"]}});
    service.post("/v1/turns", &json!({"turns": [late], "wait_ms": 30_000}));
    for (query, expected) in [("", Value::Null), ("&metadata=true", late["metadata"].clone())] {
        let mut events =
            EventStream::open(&service, &format!("/v1/events?bank={BANK}&last_event_id={begin}{query}"), "");
        let turn = loop {
            let event = events.next().expect("the stream goes on");
            if event.name == "turn" && event.data["turn"] == "t6" {
                break event.data;
            }
        };
        assert_eq!(turn["metadata"], expected, "{turn}");
    }
    service.send("DELETE", &format!("/v1/turns?bank={BANK}&turn=t6&wait_ms=30000"), "", b"");

    let forget = |dry_run: bool, field: &str| {
        let mut body = json!({"bank": BANK, "dry_run": dry_run, "wait_ms": 30_000});
        body[field] = json!({"metadata": {"path": ["price"], "in": [40, 50.5]}});
        service.post("/v1/forget", &body)
    };
    for field in ["where", "select"] {
        assert_eq!(forget(true, field)["turns"], 3, "the silent one, too");
    }
    let forgotten = forget(false, "where");
    assert_eq!((&forgotten["turns"], &forgotten["gone"]), (&json!(3), &json!(true)), "{forgotten}");
    let list = service.get(&format!("/v1/turns?bank={BANK}"));
    assert_eq!(listed(&list), ["t5", "t3"]);
    let answer = service.post("/v1/ask", &json!({"bank": BANK, "text": QUESTION}));
    assert!(quoted(&answer).iter().all(|turn| turn == "t3" || turn == "t5"), "{answer}");
    assert!(service.stop());

    // From the log, once more.
    let service = HttpService::of(home.path());
    let answer = service.post("/v1/ask", &json!({"bank": BANK, "text": QUESTION, "where": select}));
    assert_eq!(quoted(&answer), ["t5"]);
    assert!(service.stop());
}

/// Turns of one millisecond are listed as they arrived, whatever their ids and sessions, also page by page.
#[test]
fn turns_of_one_millisecond_are_listed_as_they_arrived() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let arrived = ["m", "z", "a", "k", "b"];
    for (at, id) in arrived.iter().enumerate() {
        let turn = json!({"bank": BANK, "turn": id, "speaker": "Ann", "text": format!("This is {id}."),
            "time": "2024-05-06T09:00:00Z", "session": format!("s{}", at % 2)});
        assert_eq!(service.post("/v1/turns", &json!({"turns": [turn], "wait_ms": 30_000}))["reflected"], true);
    }
    let oldest = service.get(&format!("/v1/turns?bank={BANK}&order=oldest"));
    assert_eq!(listed(&oldest), arrived);
    let (mut pages, mut before) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/v1/turns?bank={BANK}&limit=2{before}"));
        pages.extend(listed(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        before = format!("&before={next}");
    }
    pages.reverse();
    assert_eq!(pages, arrived);
    assert!(service.stop());
}

/// A hold with `where` keeps only the turns that it takes, from requests and from rules.
#[test]
fn a_hold_keeps_only_the_turns_that_it_takes() {
    let home = tempfile::tempdir().unwrap();
    let held = r#"where = { metadata = { path = ["price"], gte = 45 } }"#;
    let rule = format!("[[retention]]\nbank = \"{BANK}\"\nkeep = {{ days = 30 }}\nby = \"said\"\n");
    let hold = format!("[[hold]]\nbank = \"{BANK}\"\nreason = \"case 7\"\n{held}\n");
    pipeline_file(home.path(), &format!("extract.unit_turns = 3\n{hold}"));
    let service = HttpService::of(home.path());
    let written = service.post("/v1/turns", &json!({"turns": turns(), "wait_ms": 30_000}));
    assert_eq!(written["reflected"], true, "{written}");
    let status = |method: &str, path: &str, body: &Value| {
        let (status, _, answer) = service.send(method, path, "", body.to_string().as_bytes());
        (status, answer)
    };
    // t2 alone is held: a request that names it among others deletes nothing.
    let all = json!({"bank": BANK, "where": {"metadata": {"path": ["price"], "exists": true}}});
    let (code, refused) = status("POST", "/v1/forget", &all);
    let detail = refused["detail"].as_str().unwrap();
    assert!(code == 409 && detail.contains("\"t2\"") && detail.contains("case 7"), "{refused}");
    let deletion = |turn: &str| json!({"turns": [{"type": "deletion", "bank": BANK, "turn": turn}], "wait_ms": 30_000});
    assert_eq!(status("POST", "/v1/turns", &deletion("t2")).0, 409);
    for condition in ["", "&expected_version=0", "&expected_version=1"] {
        let (code, refused) = status("DELETE", &format!("/v1/turns?bank={BANK}&turn=t2{condition}"), &json!({}));
        assert_eq!((code, &refused["code"]), (409, &json!("held")), "{condition}: {refused}");
    }
    assert_eq!(status("POST", "/v1/turns", &deletion("t1")).0, 200);
    let list = || service.get(&format!("/v1/turns?bank={BANK}"));
    assert_eq!(listed(&list()), ["t5", "t4", "t3", "t2"]);
    assert!(service.stop());
    // A rule deletes the others.
    pipeline_file(home.path(), &format!("extract.unit_turns = 3\n{hold}{rule}"));
    let service = HttpService::of(home.path());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let left = || service.get(&format!("/v1/turns?bank={BANK}"));
    while listed(&left()).len() > 1 && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(listed(&left()), ["t2"]);
    assert!(service.stop());
}

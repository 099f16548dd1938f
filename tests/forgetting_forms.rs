//! Forgetting in every form in which words, names and ids come: however a text is typed, in rejected records, by ids
//! that look like short ones, and again after it was forgotten.

use serde_json::{Value, json};
use types::config::Pipeline;
use unicode_normalization::UnicodeNormalization as _;

use super::{
    http_service::{HttpService, pipeline_file},
    support::{fails, lines, ripplemem, write},
};

/// What people say, each in a script that has several forms for the same words.
const SAID: [(&str, &str, &str); 4] = [
    ("김민수", "어제 부산에서 오래된 등대를 보았고 함께 점심을 먹었어요.", "오래된 등대를 보았고"),
    ("Nguyễn Văn Đức", "Hôm qua tôi gặp một người bạn cũ ở gần hồ Hoàn Kiếm.", "người bạn cũ ở gần"),
    ("Jürgen Groß", "Gestern saßen die Ärzte der Größe nach am Übungsplatz.", "Ärzte der Größe nach"),
    ("Γιώργος", "Χθες είδα τον παλιό φάρο δίπλα στη θάλασσα με τους φίλους μου.", "παλιό φάρο δίπλα στη θάλασσα"),
];

fn turn(id: &str, speaker: &str, text: &str) -> Value {
    json!({"bank": "b", "turn": id, "speaker": speaker, "text": text, "time": "2024-05-06T09:00:00Z", "session": "s"})
}

/// A rejected record, as a reader of exports sends it.
fn letter(payload: &str) -> Value {
    json!({"schema": 1, "origin": "a file, line 3", "reason": "time: missing", "payload": payload})
}

/// A text as other programs type it.
fn forms(text: &str) -> Vec<String> {
    vec![text.nfc().collect(), text.nfd().collect(), text.to_uppercase(), text.to_uppercase().nfd().collect()]
}

#[test]
fn words_are_forgotten_and_looked_for_however_they_are_typed() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    for (n, (speaker, text, _)) in SAID.into_iter().enumerate() {
        let letters: Vec<Value> =
            forms(text).iter().map(|text| letter(&json!({"turn": "x", "text": text}).to_string())).collect();
        let turns = [turn(&format!("t{n}"), speaker, text), turn(&format!("o{n}"), "Ann", "The kayak is red.")];
        service.post("/v1/turns", &json!({"turns": turns, "dead_letters": letters, "wait_ms": 600_000}));
    }
    for (speaker, _, _) in SAID {
        let speaker: String = speaker.to_uppercase().nfd().collect();
        let select = json!({"bank": "b", "select": {"speakers": [speaker]}, "wait_ms": 600_000});
        let forgotten = service.post("/v1/forget", &select);
        assert_eq!((&forgotten["turns"], &forgotten["gone"]), (&json!(1), &json!(true)), "{forgotten}");
    }
    let look = |words: &str, code: i32| {
        let output = ripplemem(&["forget", "--verify", "--words", words, "--pipeline", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words}: {said}");
    };
    SAID.iter().flat_map(|(_, _, words)| forms(words)).for_each(|words| look(&words, 3));
    assert_eq!(service.post("/v1/admin/erase", &Value::Null)["dead_letters"], json!(SAID.len() * 4));
    SAID.iter().flat_map(|(_, _, words)| forms(words)).for_each(|words| look(&words, 0));
    look("the kayak is RED", 1);
    assert!(service.stop());
}

#[test]
fn rejected_records_go_with_their_sender_and_by_what_they_have_in_common() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let of = |bank: &str, speaker: &str, text: &str| {
        letter(&json!({"bank": bank, "speaker": speaker, "text": text, "time": 7}).to_string())
    };
    let letters = [
        of("b", "Jose\u{301}", "auf keinen Fall"),
        of("c", "José", "jamais plus"),
        of("b", "Cy", "grüß dich"),
        letter("[06.05.24, 10:00] JOSÉ: nunca jamás"),
        letter("no record"),
    ];
    service.post("/v1/turns", &json!({"turns": [turn("1", "Ann", "Hello.")], "dead_letters": letters}));
    // Only rejected records are his.
    let mut forget = json!({"bank": "b", "select": {"speakers": ["José"]}, "dry_run": true, "wait_ms": 600_000});
    let meant = service.post("/v1/forget", &forget);
    assert_eq!((&meant["turns"], &meant["dead_letters"]), (&json!(0), &json!(2)), "{meant}");
    forget["dry_run"] = json!(false);
    assert_eq!(service.post("/v1/forget", &forget)["dead_letters"], 2);
    assert_eq!(service.post("/v1/forget", &forget).get("dead_letters"), None, "repeated");
    let mut list = json!({"select": {"words": ["GRÜSS Dich"]}});
    let listed = service.post("/v1/admin/dead-letters", &list);
    assert_eq!((&listed["letters"], &listed["shown"][0]["bank"]), (&json!(1), &Value::Null), "{listed}");
    assert!(listed["shown"][0]["payload"].as_str().unwrap().contains("grüß"), "{listed}");
    list["remove"] = json!(true);
    let removed = service.post("/v1/admin/dead-letters", &list);
    assert_eq!((&removed["removed"], removed["erased"].is_object()), (&json!(1), true), "{removed}");
    let (status, _, refused) = service.send("POST", "/v1/admin/dead-letters", "", b"{\"select\":{}}");
    assert!(status == 400 && refused["detail"].as_str().unwrap().contains("nothing is named"), "{refused}");

    // The command says the same beside the service and alone.
    let run = |arguments: &[&str], code: i32| {
        let output = ripplemem(&[&["dead-letters", "--pipeline", file.to_str().unwrap()], arguments].concat());
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
        stdout
    };
    let listed = run(&[], 0);
    assert!(listed.lines().count() == 2 && listed.contains("jamais") && listed.contains("no record"), "{listed}");
    assert_eq!(run(&["--sender", "JOSE\u{301}", "--bank", "c", "--json"], 0).lines().count(), 1);
    run(&["--sender", "José", "--remove"], 1);
    assert_eq!(run(&["--sender", "José", "--remove", "--yes", "--limit", "0"], 0), "1 dead letters removed\n");
    assert!(service.stop());
    assert_eq!(run(&["--reason", "TIME", "--limit", "0", "--remove", "--yes"], 0), "1 dead letters removed\n");
    assert_eq!(run(&[], 0), "");
    for words in ["José", "jamais plus", "auf keinen Fall", "nunca jamás", "grüß dich", "no record"] {
        let verify = ["forget", "--verify", "--words", words, "--pipeline", file.to_str().unwrap()];
        let said = ripplemem(&verify);
        assert!(said.status.success(), "{words}: {}", String::from_utf8_lossy(&said.stdout));
    }
}

/// An id with a phone number has two forms, and whichever is forgotten, the other one is reported too.
#[test]
fn a_forgotten_id_is_told_in_the_hidden_form_and_in_the_plain_one() {
    const PLAIN: [&str; 2] = ["Trip/+49 170 1234567", "Trip/+49 170 7654321"];
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let salt = logs::id_salt(&Pipeline::read(&file).unwrap().log).unwrap();
    let hidden = PLAIN.map(|id| salt.hidden(id));
    let mut service = HttpService::of(home.path());
    let put = |service: &HttpService, ids: &[&str]| {
        let turns: Vec<Value> = ids.iter().map(|id| turn(id, "Ann", "One.")).collect();
        service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 600_000}))
    };
    // A bank with nothing left is unknown.
    put(&service, &[PLAIN[0], &hidden[1], "kept"]);
    let ids = [PLAIN[0], &hidden[1]];
    service.post("/v1/forget", &json!({"bank": "b", "select": {"turns": ids}, "unheld": true, "wait_ms": 600_000}));
    let all = [PLAIN[0], &hidden[0], PLAIN[1], &hidden[1]];
    for _ in 0..2 {
        let written = put(&service, &all);
        assert_eq!((&written["not_kept"], &written["forgotten"]), (&json!(4), &json!(all)), "{written}");
        assert_eq!(service.get("/v1/bank?bank=b")["not_kept"], json!(4));
        // From the memory's records.
        assert!(service.stop());
        service = HttpService::of(home.path());
    }
}

#[test]
fn a_turn_with_a_forgotten_id_is_named_by_every_door() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let put = |turns: Vec<Value>, wait: u64| service.post("/v1/turns", &json!({"turns": turns, "wait_ms": wait}));
    let written = put(vec![turn("1", "Ann", "One."), turn("2", "Ann", "Two.")], 600_000);
    assert_eq!((written.get("forgotten"), written.get("not_kept")), (None, None), "{written}");
    let (status, ..) = service.send("DELETE", "/v1/turns?bank=b&turn=1&wait_ms=600000", "", b"");
    assert_eq!(status, 200);
    let again = turn("1", "Ann", "Another one.");
    for wait in [600_000, 0] {
        let written = put(vec![again.clone(), turn("3", "Ann", "Three.")], wait);
        let said = (&written["turns"], &written["not_kept"], &written["forgotten"]);
        assert_eq!(said, (&json!(2), &json!(1), &json!(["1"])), "{written}");
    }
    // Of many, a hundred are named.
    let ids: Vec<String> = (0..150).map(|n| format!("n{n}")).collect();
    service.post("/v1/forget", &json!({"bank": "b", "select": {"turns": ids}, "unheld": true, "wait_ms": 600_000}));
    let written = put(ids.iter().map(|id| turn(id, "Bo", "New.")).collect(), 600_000);
    let named = written["forgotten"].as_array().unwrap().len();
    assert_eq!((&written["not_kept"], named), (&json!(150), 100), "{written}");
    // A deletion with a version, as platforms send it: a higher one brings the turn back.
    let deletion = json!({"type": "deletion", "bank": "b", "turn": "2", "version": 5});
    let mut two = turn("2", "Ann", "Two.");
    assert_eq!(put(vec![two.clone(), deletion], 600_000).get("forgotten"), None, "the request itself deletes it");
    assert_eq!(put(vec![two.clone()], 600_000)["forgotten"], json!(["2"]));
    two["version"] = json!(6);
    assert_eq!(put(vec![two], 600_000).get("forgotten"), None);
    let turns = service.get("/v1/turns?bank=b")["turns"].as_array().unwrap().len();
    let (status, bank) = (service.get("/v1/status"), service.get("/v1/bank?bank=b"));
    assert_eq!((turns, &status["not_kept"], &bank["not_kept"]), (2, &json!(153), &json!(153)));
    let export = write(&home.path().join("x.jsonl"), lines("b", "s", &[("1", "Ann", "One."), ("4", "Ann", "Four.")]));
    let ingest = || ripplemem(&["ingest", "jsonl", export.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    let said = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
    assert!(said(ingest()).contains("1 turns were not kept"));
    assert!(service.stop());
    // What was forgotten is known after a restart, from the memory's records.
    assert!(said(ingest()).contains("1 turns were not kept"));
    let service = HttpService::of(home.path());
    assert_eq!(service.post("/v1/turns", &json!({"turns": [again]}))["forgotten"], json!(["1"]));
    assert!(service.stop());
}

#[test]
fn an_id_like_a_short_id_takes_nobodys_place() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let put = |id: &str, speaker: &str| {
        service.post("/v1/turns", &json!({"turns": [turn(id, speaker, "Hello.")], "wait_ms": 600_000}));
        let listed = service.get("/v1/turns?bank=b");
        let found = listed["turns"].as_array().unwrap().iter().find(|turn| turn["turn"] == id).unwrap().clone();
        found["short"].as_str().unwrap().to_owned()
    };
    let long = "mcp-0123456789abcdef0123";
    let short = put(long, "Ann");
    let own = put(&short, "Eve");
    assert_ne!(own, short);
    let meant = |turn: &str| {
        let turns = service.get(&format!("/v1/turns?bank=b&turn={turn}"));
        let mut ids: Vec<String> =
            turns["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(meant(&short), [long, short.as_str()]);
    assert_eq!(meant(&own), [short.as_str()]);
    let (status, _, refused) = service.send("DELETE", &format!("/v1/turns?bank=b&turn={short}"), "", b"");
    let detail = refused["detail"].as_str().unwrap();
    assert!(status == 400 && detail.contains(long) && detail.contains(&own), "{refused}");
    let explain = json!({"bank": "b", "text": "Who says hello?", "turn": short});
    let (status, _, refused) = service.send("POST", "/v1/explain", "", explain.to_string().as_bytes());
    assert!(status == 400 && refused["detail"].as_str().unwrap().contains(&own), "{refused}");
    let pipeline = ["--pipeline", file.to_str().unwrap()];
    let forget = |turn: &str| ripplemem(&[&["forget", "--bank", "b", turn], &pipeline[..]].concat());
    fails(&forget(&short), 1, &["means several turns", long, &own]);
    assert!(service.stop());
    fails(&forget(&short), 1, &["means several turns", long, &own]);
    let explain = ["explain", "Who says hello?", "--bank", "b", "--turn", &short];
    fails(&ripplemem(&[&explain[..], &pipeline].concat()), 1, &["means several turns"]);
    assert!(forget(&own).status.success());
    // Now the short id means only one turn.
    assert!(forget(&short).status.success());
    fails(&forget(&short), 1, &["holds no turn"]);
    let listed = ripplemem(&[&["turns", "--bank", "b"], &pipeline[..]].concat());
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "");
}

/// Ids stored by an earlier build are counted in a directory, and by a service that has it open.
#[test]
fn stored_ids_with_a_number_or_an_address_are_counted_by_bank_until_they_are_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let said = |bank: &str, id: &str| {
        let mut turn = turn(id, "Ann", "Hello.");
        turn["bank"] = json!(bank);
        turn
    };
    let ids = [("b", "Trip/+49 170 1234567"), ("b", "inbox/ann@a.example"), ("b", "Trip/Ann"), ("c", "Trip/Bo")];
    let turns: Vec<Value> = ids.iter().map(|(bank, id)| said(bank, id)).collect();
    service.post("/v1/turns", &json!({"turns": turns, "wait_ms": 600_000}));
    assert_eq!(service.get("/v1/stats").get("plain_ids"), None, "they are counted on request");
    for (query, expected) in [
        ("plain_ids=true", json!([{"bank": "b", "turns": 2}])),
        ("bank=b&plain_ids=true", json!([{"bank": "b", "turns": 2}])),
        ("bank=c&plain_ids=true", json!([])),
    ] {
        assert_eq!(service.get(&format!("/v1/stats?{query}"))["plain_ids"], expected, "{query}");
    }
    let stats = || {
        let output = ripplemem(&["stats", "--pipeline", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let check = |told: &str| {
        let expected = ["bank b: the ids of 2 turns hold a phone number or a mail address\n", "ripplemem forget"];
        assert!(expected.iter().all(|words| told.contains(words)) && !told.contains("bank c"), "{told}");
    };
    check(&stats());
    assert!(service.stop());
    check(&stats());
    let service = HttpService::of(home.path());
    service.post("/v1/forget", &json!({"bank": "b", "select": {"speakers": ["Ann"]}, "wait_ms": 600_000}));
    assert_eq!(service.get("/v1/stats?plain_ids=true")["plain_ids"], json!([]));
    assert!(service.stop());
}

//! Sessions of a bank: listed by name, with titles that survive restarts, snapshots and a move to another log, and that
//! go with the last turn.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    http_service::{HttpService, pipeline_file},
    support::ripplemem,
};

fn turn(id: &str, session: &str, minute: u32) -> Value {
    let time = format!("2024-05-01T10:{minute:02}:00Z");
    json!({ "bank": "b", "turn": id, "session": session, "speaker": "Ann", "text": format!("{id} sails"), "time": time })
}

fn name(service: &HttpService, session: &str, title: &str) -> (u16, Value) {
    let body = json!({ "bank": "b", "session": session, "title": title }).to_string();
    let (status, _, named) = service.send("PUT", "/v1/sessions", "", body.as_bytes());
    (status, named)
}

fn run(home: &Path, arguments: &[&str]) -> String {
    let pipeline = home.join("p.toml");
    let output = ripplemem(&[arguments, &["--pipeline", pipeline.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sessions_are_listed_and_named_and_a_title_goes_with_the_last_turn() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let ended = json!({ "type": "session_end", "bank": "b", "session": "chat/1" });
    let turns = [turn("1", "chat/1", 1), turn("2", "chat/1", 5), turn("3", "chat/2", 3), turn("4", "mail", 4), ended];
    service.post("/v1/turns", &json!({ "turns": turns, "wait_ms": 30_000 }));
    let (status, named) = name(&service, "chat/1", "About boats");
    assert_eq!((status, &named["reflected"]), (200, &json!(true)), "{named}");
    assert_eq!(name(&service, "later", "A session to come").0, 200);
    assert_eq!(name(&service, "chat/1", "x".repeat(1_025).as_str()).0, 400);
    let of = |session: &str, turns: u64, minutes: [u32; 2]| {
        let [first, last] = minutes.map(|minute| format!("2024-05-01T10:{minute:02}:00Z"));
        json!({ "session": session, "turns": turns, "first": first, "last": last })
    };
    let mut boats = of("chat/1", 2, [1, 5]);
    boats["title"] = "About boats".into();
    let later = json!({ "session": "later", "title": "A session to come", "turns": 0 });
    let all = json!([boats, of("chat/2", 1, [3, 3]), later, of("mail", 1, [4, 4])]);
    let listed = |service: &HttpService, query: &str| service.get(&format!("/v1/sessions?bank=b{query}"));
    assert_eq!(listed(&service, "")["sessions"], all);
    assert_eq!(listed(&service, "&prefix=chat/")["sessions"], json!([all[0], all[1]]));
    // Page by page.
    let first = listed(&service, "&limit=3");
    assert_eq!((&first["next"], first["sessions"].as_array().unwrap().len()), (&json!("mail"), 3));
    let last = listed(&service, "&limit=3&from=mail");
    assert_eq!((&last["sessions"], last.get("next")), (&json!([all[3]]), None));
    assert_eq!(service.get("/v1/sessions?bank=nobody")["sessions"], json!([]));
    // A restart, and a move to another log.
    assert!(service.stop());
    assert!(run(home.path(), &["sessions", "--bank", "b", "--json"]).contains("About boats"));
    run(home.path(), &["sessions", "--bank", "b", "--name", "mail", "--title", "Letters"]);
    let other = tempfile::tempdir().unwrap();
    pipeline_file(other.path(), "");
    let file = home.path().join("b.zst");
    run(home.path(), &["export", "--bank", "b", "--to", file.to_str().unwrap()]);
    run(other.path(), &["import", file.to_str().unwrap()]);
    for home in [home.path(), other.path()] {
        let service = HttpService::of(home);
        let found = listed(&service, "");
        let titles: Vec<&Value> = found["sessions"].as_array().unwrap().iter().map(|of| &of["title"]).collect();
        assert_eq!(titles, [&json!("About boats"), &Value::Null, &json!("A session to come"), &json!("Letters")]);
        // Forgetting the session takes its turns and its title.
        let forget = json!({ "bank": "b", "select": { "session": "chat/1" }, "wait_ms": 30_000 });
        assert_eq!(service.post("/v1/forget", &forget)["turns"], 2);
        let left: Vec<Value> = listed(&service, "&prefix=chat/")["sessions"].as_array().unwrap().clone();
        assert_eq!(left, [all[1].clone()]);
        assert_eq!(service.get("/v1/turns?bank=b")["turns"].as_array().unwrap().len(), 2);
        assert_eq!(name(&service, "mail", "").0, 200);
        assert_eq!(listed(&service, "&prefix=mail")["sessions"], json!([all[3]]));
        let (status, _, erased) = service.send("POST", "/v1/admin/erase", "", b"");
        assert_eq!(status, 200, "{erased}");
        assert!(service.stop());
        for entry in walk(&home.join("log")) {
            let bytes = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let is_held = text.contains("About boats") || text.contains("Letters");
            assert!(!is_held, "{} holds a forgotten title", entry.display());
        }
    }
}

/// A title is in snapshots as it is in the log, and `--verify` finds it wherever it is; once its session is forgotten,
/// it leaves both.
#[test]
fn a_title_lies_in_snapshots_and_is_verified_to_be_gone() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "snapshot.directory = \"snapshots\"\nforget.erase_within_hours = 24\n");
    let service = HttpService::of(home.path());
    let turns: Vec<Value> = [("1", "chat/1"), ("2", "chat/2")].map(|(id, session)| turn(id, session, 1)).into();
    service.post("/v1/turns", &json!({ "turns": turns, "wait_ms": 30_000 }));
    assert_eq!(name(&service, "chat/1", "Vermilion submarines").0, 200);
    assert_eq!(name(&service, "chat/2", "Letters").0, 200);
    assert!(service.stop());
    let verify = |words: &str| {
        let pipeline = home.path().join("p.toml");
        let output = ripplemem(&["forget", "--verify", "--words", words, "--pipeline", pipeline.to_str().unwrap()]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(home.path(), &["snapshot"]);
    let snapshots = home.path().join("snapshots");
    let of_snapshots = |verified: &str| verified.lines().filter(|line| line.contains("snapshots")).count();
    let before = verify("Vermilion submarines");
    assert!(before.contains("still stored") && of_snapshots(&before) > 0, "{before}");

    let service = HttpService::of(home.path());
    let forget = json!({ "bank": "b", "where": { "session": "chat/1" }, "wait_ms": 30_000 });
    assert_eq!(service.post("/v1/forget", &forget)["turns"], 1);
    let waiting = verify("Vermilion submarines");
    assert!(waiting.contains("pending"), "{waiting}");
    assert!(service.stop());
    run(home.path(), &["snapshot"]);
    run(home.path(), &["forget", "--erase-now"]);
    let after = verify("Vermilion submarines");
    assert!(after.contains("gone"), "{after} {:?}", walk(&snapshots));
    assert!(verify("Letters").contains("still stored"));
}

/// What another title replaced goes with the next pass though nothing was deleted, and one that was set twice stays.
#[test]
fn a_replaced_title_is_erased_and_the_one_that_stands_outlasts_it() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "forget.erase_within_hours = 24\n");
    let service = HttpService::of(home.path());
    service.post("/v1/turns", &json!({ "turns": [turn("1", "chat/1", 1)], "wait_ms": 30_000 }));
    for title in ["Vermilion submarines", "Letters", "Letters"] {
        assert_eq!(name(&service, "chat/1", title).0, 200);
    }
    let title = |service: &HttpService| service.get("/v1/sessions?bank=b")["sessions"][0]["title"].clone();
    for _ in 0..2 {
        let (status, _, erased) = service.send("POST", "/v1/admin/erase", "", b"");
        assert_eq!(status, 200, "{erased}");
        assert_eq!(title(&service), "Letters");
    }
    assert!(service.stop());
    let told = |words: &str| {
        let pipeline = home.path().join("p.toml");
        let output = ripplemem(&["forget", "--verify", "--words", words, "--pipeline", pipeline.to_str().unwrap()]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(told("Vermilion submarines").contains("gone"), "{}", told("Vermilion submarines"));
    assert!(told("Letters").contains("still stored"));
    let events: Vec<String> =
        run(home.path(), &["sessions", "--bank", "b", "--json"]).lines().map(str::to_owned).collect();
    assert!(events.iter().any(|line| line.contains("Letters")), "{events:?}");
}

/// The files below a directory.
fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { files.extend(walk(&entry)) } else { files.push(entry) }
    }
    files
}

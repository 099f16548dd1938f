//! The points of a bank's past over HTTP: they are those that a question with `as_of` answers for, and no others. What
//! changed between two of them is what their graphs differ by.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    http_service::{HttpService, pipeline_file},
    support::ripplemem,
};

const SNAPSHOTS: &str = "log.partitions = 1\nsnapshot.directory = \"snapshots\"\nextract.unit_turns = 1\n";

fn put(service: &HttpService, bank: &str, id: usize, text: &str) {
    let turn = json!({"bank": bank, "turn": id.to_string(), "speaker": "Ann", "text": text, "session": "s",
                      "time": format!("2024-05-01T10:{id:02}:00Z")});
    let written = service.post("/v1/turns", &json!({"turns": [turn], "wait_ms": 60_000}));
    assert_eq!(written["reflected"], true, "{written}");
}

fn history(service: &HttpService, bank: &str) -> Value {
    service.get(&format!("/v1/history?bank={bank}"))
}

/// The offsets of a list of points.
fn offsets(history: &Value) -> Vec<u64> {
    let points = history["points"].as_array().unwrap();
    points.iter().map(|point| point["offset"].as_str().unwrap().parse().unwrap()).collect()
}

/// The status of a question about the past, and its answer.
fn asked(service: &HttpService, bank: &str, as_of: u64) -> (u16, Value) {
    let body = json!({"bank": bank, "text": "Where is the red kayak?", "as_of": as_of.to_string()}).to_string();
    let (status, _, answer) = service.send("POST", "/v1/ask", "", body.as_bytes());
    (status, answer)
}

fn memory_end(service: &HttpService, bank: &str) -> u64 {
    let status = service.get(&format!("/v1/bank?bank={bank}"));
    let mut reached = status["complete_through"].as_array().unwrap().iter();
    reached.find(|at| at["topic"] == "memory").unwrap()["next_offset"].as_u64().unwrap()
}

/// Every offset of the log answers as the last point before it, and none answers before the first.
fn points_are_those_that_answer(service: &HttpService, bank: &str) {
    let found = history(service, bank);
    let points = offsets(&found);
    assert!(points.is_sorted_by(|a, b| a < b), "{found}");
    let (mut refused, mut last) = (0, None);
    for offset in 0..memory_end(service, bank) + 2 {
        let (status, answer) = asked(service, bank, offset);
        if points.contains(&offset) {
            assert_eq!(status, 200, "{bank}: point {offset}: {answer}");
            let reflects = answer["reflects"].as_array().unwrap().iter().find(|at| at["topic"] == "memory").unwrap();
            assert_eq!(reflects["next_offset"], offset + 1, "{bank}: the point itself answers: {answer}");
            assert_ne!(last.as_ref(), Some(&answer["units"]), "{bank}: nothing changed at {offset}");
            last = Some(answer["units"].clone());
        } else if let Some(last) = &last {
            assert_eq!((status, &answer["units"]), (200, last), "{bank}: {offset} lies behind a point: {answer}");
        } else {
            assert!(status == 400 || status == 404, "{bank}: {offset} lies before the first point: {status} {answer}");
            refused += 1;
        }
    }
    assert_eq!(Some(&refused), points.first(), "{bank}: no more and no less: {found}");
    let ends = points.first().zip(points.last()).map(|(first, last)| (first.to_string(), last.to_string()));
    let [oldest, newest] = ["oldest", "newest"].map(|end| found[end]["offset"].as_str().unwrap().to_owned());
    assert_eq!((ends, &found["more"]), (Some((oldest, newest)), &json!(0)), "{found}");
}

/// Two banks of one partition, put by put, while the service runs: none of the reads between is lost, and neither bank
/// shows when the other one changed.
#[test]
fn the_points_of_a_bank_are_those_that_a_question_about_the_past_answers_for() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), SNAPSHOTS);
    let service = HttpService::of(home.path());
    let places = ["boathouse", "garage", "harbour", "attic"];
    for (n, place) in places.iter().enumerate() {
        put(&service, "a", n, &format!("The red kayak is in the {place}"));
        put(&service, "b", n, &format!("The red kayak of {n} friends is in the {place}"));
    }
    let [of_a, of_b] = ["a", "b"].map(|bank| offsets(&history(&service, bank)));
    assert_eq!((of_a.len(), of_b.len()), (places.len(), places.len()), "each put is a point: {of_a:?} {of_b:?}");
    assert!(of_a.iter().all(|offset| !of_b.contains(offset)), "{of_a:?} {of_b:?}");
    ["a", "b"].into_iter().for_each(|bank| points_are_those_that_answer(&service, bank));

    let page = service.get(&format!("/v1/history?bank=a&limit=2&before={}", of_a[3]));
    assert_eq!((offsets(&page), &page["more"]), (of_a[1..3].to_vec(), &json!(1)), "{page}");
    assert_eq!(page["newest"]["offset"], of_a[3].to_string(), "{page}");

    // A deletion is a point; what it deletes is in none of the earlier ones.
    let (status, _, gone) = service.send("DELETE", "/v1/turns?bank=a&turn=3&wait_ms=60000", "", b"");
    assert_eq!((status, &gone["gone"]), (200, &json!(true)), "{gone}");
    let now = offsets(&history(&service, "a"));
    assert!(now.last() > of_a.last(), "{now:?}");
    assert!(!asked(&service, "a", of_a[3]).1.to_string().contains("attic"));
    assert_eq!(offsets(&history(&service, "b")), of_b, "nothing happened in the other bank");
    assert!(service.stop());
    let service = HttpService::of(home.path());
    assert_eq!(offsets(&history(&service, "a")), now, "as before the restart");
    put(&service, "a", 5, "The red kayak is on the lake");
    assert_eq!(offsets(&history(&service, "a"))[..now.len()], now, "and it goes on");
    assert!(service.stop());
}

/// What was appended while no snapshots were written counts as one read, and its end is the first point. The error
/// about an offset inside it names that point.
#[test]
fn an_offset_inside_the_first_read_is_told_the_first_point() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.partitions = 1\nextract.unit_turns = 1\n");
    let service = HttpService::of(home.path());
    for n in 0..3 {
        put(&service, "a", n, "The red kayak is in the boathouse");
    }
    assert_eq!(history(&service, "a"), json!({"bank": "a", "points": [], "more": 0}), "no history is kept");
    assert!(service.stop());
    pipeline_file(home.path(), SNAPSHOTS);
    let service = HttpService::of(home.path());
    let found = history(&service, "a");
    let [first] = offsets(&found)[..] else { panic!("one read: {found}") };
    assert!(first > 0, "{found}");
    for offset in 0..first {
        let (status, problem) = asked(&service, "a", offset);
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{problem}");
        assert!(detail.contains(&format!("the oldest that can be asked for is offset {first}, of 20")), "{detail}");
    }
    points_are_those_that_answer(&service, "a");
    for (path, status, word) in [
        ("/v1/history?bank=nobody", 404, "bank nobody: unknown"),
        ("/v1/history", 400, "bank: missing"),
        ("/v1/history?bank=a&limit=0", 400, "allowed is 1 to 1000"),
        ("/v1/history?bank=a&before=now", 400, "before: \"now\" is not a whole number"),
    ] {
        let (found, _, problem) = service.send("GET", path, "", b"");
        assert_eq!(found, status, "{path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{path}: {problem}");
    }
    assert!(service.stop());
}

/// The entries of a list, as a set.
fn set(of: &Value, list: &str) -> BTreeSet<String> {
    of[list].as_array().unwrap().iter().map(Value::to_string).collect()
}

/// An earlier graph, without the removed and with the added units and edges, is the later graph; the command line lists
/// the same.
#[test]
fn what_came_and_went_between_two_points_makes_the_later_graph_of_the_earlier() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), SNAPSHOTS);
    let service = HttpService::of(home.path());
    let graph = || service.get("/v1/graph?bank=a");
    put(&service, "a", 0, "The red kayak of Clara is in the boathouse");
    put(&service, "a", 1, "Clara paddles the red kayak on Sundays");
    let early = graph();
    for (n, text) in ["The red kayak leaks at the stern", "Clara mended the red kayak"].iter().enumerate() {
        put(&service, "a", n + 2, text);
    }
    put(&service, "b", 0, "The red kayak of others");
    let edit = json!({"bank": "a", "turn": "1", "version": 1, "speaker": "Ann", "session": "s",
                      "text": "Clara sold the red kayak in Lisbon", "time": "2024-05-01T10:01:00Z"});
    let written = service.post("/v1/turns", &json!({"turns": [edit], "wait_ms": 60_000}));
    assert_eq!(written["reflected"], true, "{written}");
    let points = offsets(&history(&service, "a"));
    let (from, last) = (points[1], points[points.len() - 1]);
    let diff = service.get(&format!("/v1/diff?bank=a&from={from}"));
    let later = graph();
    for list in ["units", "edges"] {
        let [came, went] = ["added", "removed"].map(|what| set(&diff, &format!("{list}_{what}")));
        let before = set(&early, list);
        assert!(!came.is_empty() && went.is_subset(&before), "{list}: {diff}");
        let after: BTreeSet<String> = before.difference(&went).chain(&came).cloned().collect();
        assert_eq!(after, set(&later, list), "{list}: {diff}");
    }
    assert!(diff["units_removed"].to_string().contains("Sundays"), "the words before the edit: {diff}");
    let none = json!({"units_added": 0, "units_removed": 0, "edges_added": 0, "edges_removed": 0});
    assert_eq!((&diff["from"], &diff["skipped"]), (&json!(from.to_string()), &none));
    let to_last = service.get(&format!("/v1/diff?bank=a&from={from}&to={last}"));
    assert_eq!(set(&to_last, "units_added"), set(&diff, "units_added"), "nothing came after the last point");
    let nothing = service.get(&format!("/v1/diff?bank=a&from={last}&to={last}"));
    assert_eq!((&nothing["units_added"], &nothing["edges_removed"]), (&json!([]), &json!([])), "{nothing}");
    for (query, status, word) in [
        (format!("bank=a&from={last}&to={from}"), 400, "name the earlier first"),
        (format!("bank=nobody&from={from}"), 404, "bank nobody: unknown"),
        ("bank=a&from=noon".to_owned(), 400, "from: neither an offset nor a time"),
        (format!("bank=a&from={from}&to=noon"), 400, "to: neither an offset nor a time"),
        ("bank=a".to_owned(), 400, "from: missing"),
        ("bank=a&from=1970-01-01T00:00:00Z".to_owned(), 400, "the oldest that can be asked for"),
    ] {
        let (found, _, problem) = service.send("GET", &format!("/v1/diff?{query}"), "", b"");
        assert_eq!(found, status, "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{query}: {problem}");
    }
    assert!(service.stop());
    let (from, file) = (from.to_string(), file.to_str().unwrap());
    let printed = ripplemem(&["diff", "--bank", "a", "--from", &from, "--json", "--pipeline", file]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let ids = |of: &Value| of.as_array().unwrap().iter().map(|unit| unit["id"].to_string()).collect::<BTreeSet<_>>();
    for (shown, printed_as) in [("units_added", "units_came"), ("units_removed", "units_went")] {
        assert_eq!(ids(&diff[shown]), ids(&printed[printed_as]), "{printed}");
    }
}

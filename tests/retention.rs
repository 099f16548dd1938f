//! Retention and holds: a rule deletes exactly what it does not keep, as forgetting does; a hold stops rules and
//! requests, and nothing that a platform sends.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use erasure::{ErasureVerdict, ExpiredTurns, ForgetStage, Receipt, RetentionRunner, forget_turns, verify};
use jiff::Timestamp;
use logs::Topic;
use pipeline::{Cancellation, PipelineError, stored_turns};
use ripplemem::{Memory, PipelineDriver};
use serde_json::{Value, json};
use types::{
    config::Pipeline,
    model::{Bank, EventTime, TurnEvent},
};

use super::{
    http_service::{HttpService, pipeline_file},
    support::{census, fails, open, pipeline, ripplemem, write},
};

const DAY_MS: i64 = 86_400_000;
/// Words of the turns that are deleted.
const OLD: &str = "the vermilion submarine of Zanzibar";

/// `acme` keeps 90 days, `acme/support` also its last two turns; `acme/legal` is held, and `acme2` has no rule.
const RULES: &str = r#"
[[retention]]
bank = "acme"
keep = { days = 90 }
by = "said"
[[retention]]
bank = "acme/support"
keep = { turns = 2 }
by = "said"
[[hold]]
bank = "acme/legal"
reason = "case 7"
"#;

fn bank(name: &str) -> Bank {
    Bank::parse(name).unwrap()
}

fn ms(time: &str) -> i64 {
    EventTime::parse(time).unwrap().unix_ms
}

/// Two turns of winter and three of summer in each bank, in one session.
fn talk() -> Vec<TurnEvent> {
    let said = [("w1", 1, 10), ("w2", 1, 11), ("s1", 6, 20), ("s2", 6, 21), ("s3", 6, 22)];
    let of_bank = |bank: &'static str| {
        said.map(|(turn, month, day)| {
            let words = if month == 1 { OLD } else { "the red kayak of the boathouse" };
            let (speaker, text) = (["Bo", "Cy"][day % 2], format!("On day {day} in {bank} I saw {words}."));
            let time = format!("2024-{month:02}-{day:02}T10:00:00Z");
            let turn = json!({"bank": bank, "turn": turn, "speaker": speaker, "session": "s", "text": text,
                "time": time});
            TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
        })
    };
    ["acme", "acme/support", "acme/legal", "acme2"].into_iter().flat_map(of_bank).collect()
}

fn append(service: &mut PipelineDriver, events: &[TurnEvent]) {
    service.log().append_turns(events).unwrap();
    service.catch_up().unwrap();
}

/// The ids of the turns of a bank, in the order of time.
fn held(service: &PipelineDriver, name: &str) -> Vec<String> {
    let held = stored_turns(service.log(), &bank(name), &|_| true, usize::MAX).unwrap();
    held.iter().map(|held| held.turn.turn.clone()).collect()
}

/// The turns that have expired by a pipeline's rules at a time.
fn outlived(pipeline: &Pipeline, service: &PipelineDriver, now_ms: i64) -> Vec<ExpiredTurns> {
    RetentionRunner::of(pipeline, service.log()).scan(now_ms).unwrap().outlived
}

/// A bank, the number of a rule, and the turns that it names.
type Named<'o> = (&'o str, u64, Vec<&'o str>);

fn named(outlived: &[ExpiredTurns]) -> Vec<Named<'_>> {
    let mut named = Vec::new();
    for ExpiredTurns { bank, by_rule } in outlived {
        for (rule, turns) in by_rule {
            named.push((bank.as_str(), rule.rule, turns.iter().map(String::as_str).collect()));
        }
    }
    named
}

#[test]
fn rules_delete_exactly_what_they_do_not_keep_and_a_replay_gives_the_same() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = pipeline(home.path(), RULES);
    let now = ms("2024-06-30T00:00:00Z");
    let mut service = open(&pipeline);
    append(&mut service, &talk());
    let (before, end) = (census(&service), service.log().end(Topic::Turns, 0).unwrap());

    let gone = outlived(&pipeline, &service, now);
    let expected =
        [("acme", 1, vec!["w1", "w2"]), ("acme/support", 1, vec!["w1", "w2"]), ("acme/support", 2, vec!["s1"])];
    assert_eq!(named(&gone), expected);
    assert_eq!(
        (census(&service), service.log().end(Topic::Turns, 0).unwrap()),
        (before, end),
        "a look changes nothing"
    );

    gone.iter().for_each(|of_bank| RetentionRunner::of(&pipeline, service.log()).delete(of_bank, now).unwrap());
    service.catch_up().unwrap();
    assert_eq!(held(&service, "acme"), ["s1", "s2", "s3"]);
    assert_eq!(held(&service, "acme/support"), ["s2", "s3"]);
    for untouched in ["acme/legal", "acme2"] {
        assert_eq!(held(&service, untouched).len(), 5, "{untouched}");
    }
    assert_eq!(outlived(&pipeline, &service, now), []);
    let receipts = service.receipts().unwrap();
    assert!(receipts.iter().all(|receipt| receipt.stage == ForgetStage::Rebuilt));
    let rule = |receipt: &Receipt| receipt.retention.clone().map(|rule| (rule.bank, rule.rule)).unwrap();
    let mut counted: Vec<_> = receipts.iter().map(|of| (of.bank.as_str(), rule(of), of.turns)).collect();
    counted.sort();
    let (first, second) = (("acme".to_owned(), 1), ("acme/support".to_owned(), 2));
    assert_eq!(counted, [("acme", first.clone(), 2), ("acme/support", first, 2), ("acme/support", second, 1)]);

    // The same after a restart, and for a memory without rules that reads the same log of turns.
    let after = census(&service);
    let turns = service.log().read(Topic::Turns, 0, 0, 10_000).unwrap().records;
    drop(service);
    let mut service = open(&pipeline);
    assert_eq!(census(&service), after);
    let again = tempfile::tempdir().unwrap();
    let mut made_again = open(&super::support::pipeline(again.path(), ""));
    let event = |value: &[u8]| TurnEvent::from_json(value).unwrap();
    append(&mut made_again, &turns.iter().map(|record| event(record.value.as_deref().unwrap())).collect::<Vec<_>>());
    assert_eq!(census(&made_again), after);

    // Their words are erased as those of any operation; another bank keeps its own.
    assert_eq!(service.erase().unwrap().turns, 5);
    for (name, expected) in [("acme", ErasureVerdict::Gone), ("acme2", ErasureVerdict::Stored)] {
        let words = format!("in {name} I saw {OLD}");
        assert_eq!(verify(&pipeline, &[words], &[], Timestamp::now()).unwrap().verdict, expected, "{name}");
    }
    assert!(service.receipts().unwrap().iter().all(|receipt| receipt.stage == ForgetStage::Erased));
}

#[test]
fn the_time_of_storing_counts_unless_a_rule_says_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let rules = "[[retention]]\nbank = \"*\"\nspeakers = [\"Bo\"]\nkeep = { days = 30 }\n";
    let pipeline = pipeline(home.path(), rules);
    let mut service = open(&pipeline);
    append(&mut service, &talk());
    let now = Timestamp::now().as_millisecond();
    assert_eq!(outlived(&pipeline, &service, now + 29 * DAY_MS), [], "said long ago, and stored now");
    let gone = outlived(&pipeline, &service, now + 30 * DAY_MS + 1_000);
    assert_eq!(gone.len(), 4);
    for (name, rule, turns) in named(&gone) {
        assert_eq!((rule, turns), (1, vec!["s1", "s3", "w1"]), "{name}");
    }
}

#[test]
fn an_open_memory_applies_its_rules_by_itself_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    append(&mut service, &talk());
    drop(service);
    let memory = Memory::open(&pipeline(home.path(), RULES)).unwrap();
    let begun = Instant::now();
    let status = loop {
        let status = memory.status().retention.unwrap();
        if status.looked.is_some() {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    // By now, all of them are older than what is kept.
    assert_eq!((status.deleted_turns, status.problem), (10, None));
    let count = |name: &str| memory.turns(&bank(name), &|_| true, &Cancellation::default()).unwrap().len();
    assert_eq!(["acme", "acme/support", "acme/legal", "acme2"].map(count), [0, 0, 5, 5]);
    assert_eq!(memory.receipts().unwrap().len(), 2);
    memory.close().unwrap();
}

#[test]
fn a_hold_refuses_requests_by_name_and_takes_what_a_platform_sends() {
    let home = tempfile::tempdir().unwrap();
    let pipeline = pipeline(home.path(), RULES);
    let mut service = open(&pipeline);
    append(&mut service, &talk());
    let end = service.log().end(Topic::Turns, 0).unwrap();
    let forget = |service: &PipelineDriver, name: &str| {
        forget_turns(service.log(), &pipeline.forget, &bank(name), ["w1".to_owned()]).map(drop)
    };
    let refused = forget(&service, "acme/legal").unwrap_err();
    assert!(matches!(&refused, PipelineError::Held { .. }) && refused.to_string().contains("case 7"), "{refused}");
    assert_eq!(service.log().end(Topic::Turns, 0).unwrap(), end);
    assert_eq!(service.receipts().unwrap(), []);
    forget(&service, "acme2").unwrap();
    // As a source writes it.
    let deletion = TurnEvent::from_json(br#"{"type":"deletion","bank":"acme/legal","turn":"w1"}"#).unwrap();
    append(&mut service, &[deletion]);
    assert_eq!(held(&service, "acme/legal"), ["w2", "s1", "s2", "s3"]);
}

#[test]
fn the_command_counts_and_deletes_and_every_transport_refuses_what_is_held() {
    let home = tempfile::tempdir().unwrap();
    let kept = "[[retention]]\nbank = \"acme\"\nkeep = { turns = 3 }\nby = \"said\"\n[[hold]]\nbank = \"acme/legal\"\n";
    let holds = format!("http.mem0 = true\n{kept}[[hold]]\nbank = \"mem0\"\nreason = \"case 8\"\n");
    let file = pipeline_file(home.path(), &holds);
    let said: String = talk().iter().map(|event| format!("{}\n", serde_json::to_string(event).unwrap())).collect();
    let said = write(&home.path().join("said.jsonl"), said);
    let at = ["--pipeline", file.to_str().unwrap()];
    let run = |arguments: &[&str]| {
        let output = ripplemem(&[arguments, &at].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["ingest", "jsonl", said.to_str().unwrap()]);
    let digest = run(&["digest"]);
    let counted = run(&["retention", "--dry-run"]);
    assert_eq!(counted, "bank acme: 2 turns would go by rule 1\nbank acme/support: 2 turns would go by rule 1\n");
    assert_eq!(run(&["digest"]), digest);
    let held = ["forget", "--bank", "acme/legal", "--all", "--yes"];
    fails(&ripplemem(&[&held[..], &at].concat()), 1, &["bank acme/legal", "[[hold]]"]);

    let service = HttpService::of(home.path());
    fails(&ripplemem(&[&["retention"][..], &at].concat()), 1, &["a service has", "/v1/status"]);
    fails(&ripplemem(&[&held[..], &at].concat()), 1, &["bank acme/legal", "[[hold]]"]);
    let refuses = |method: &str, path: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, answer) = service.send(method, path, "", body.as_bytes());
        assert_eq!(status, 409, "{method} {path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("[[hold]]"), "{answer}");
        answer
    };
    let all = json!({"bank": "acme/legal", "select": {"all": true}});
    assert_eq!(refuses("POST", "/v1/forget", &all)["code"], "held");
    refuses("DELETE", "/v1/turns?bank=acme/legal&turn=w1", &Value::Null);
    let deletion = json!({"turns": [{"type": "deletion", "bank": "acme/legal", "turn": "w1"}]});
    refuses("POST", "/v1/turns", &deletion);
    let message = json!({"messages": [{"role": "user", "content": "The red kayak is here"}], "user_id": "ann"});
    let added = service.post("/v3/memories/add/", &message);
    let id = added["results"][0]["id"].as_str().unwrap();
    let reason = refuses("DELETE", &format!("/v1/memories/{id}/"), &Value::Null);
    assert!(reason["detail"].as_str().unwrap().contains("case 8"), "{reason}");
    assert_eq!(service.get("/v1/turns?bank=acme/legal")["turns"].as_array().unwrap().len(), 5);
    service_has_looked(&service, home.path());
    assert!(service.stop());

    assert_eq!(run(&["retention"]), "every turn is kept\n", "the service has applied the rules");
    assert_eq!(run(&["turns", "--bank", "acme", "--json"]).lines().count(), 3);
}

/// Waits until the service has checked every bank.
fn service_has_looked(service: &HttpService, home: &Path) {
    let begun = Instant::now();
    while service.get("/v1/status")["retention"]["looked"].is_null() {
        let said = || std::fs::read_to_string(home.join("stderr")).unwrap_or_default();
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(service.get("/v1/status")["retention"]["deleted_turns"], 4);
}

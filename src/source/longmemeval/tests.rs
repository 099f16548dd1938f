//! Little files in LongMemEval's format, whole and damaged, and the real samples.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{super::tests::drain, *};

fn settings(path: &Path) -> SourceSettings {
    SourceSettings {
        format: "longmemeval".to_owned(),
        path: path.to_owned(),
        zone: "+00:00".to_owned(),
        only: Vec::new(),
    }
}

/// What a file with these bytes gives; origins without the file's path.
fn read(bytes: &[u8], change: impl Fn(&mut SourceSettings), bank: Option<&str>) -> Result<Batch, SourceError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut settings = settings(file.path());
    change(&mut settings);
    let bank = bank.map(|b| Bank::parse(b).unwrap());
    let mut batch = drain(&mut LongMemEval::open(&settings, bank.as_ref())?, 2);
    for letter in &mut batch.rejects {
        letter.origin = letter.origin.strip_prefix(&format!("{}: ", file.path().display())).unwrap().to_owned();
    }
    Ok(batch)
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content, "has_answer": true})
}

fn sample() -> Value {
    json!([
        {
            "question_id": "q1", "question_type": "multi-session", "question": "Where is my kayak?",
            "answer": "In the shed.", "question_date": "2024/03/02 (Sat) 08:00",
            "haystack_session_ids": ["later", "first", "filler", "filler"],
            "haystack_dates": [
                "2024/03/01 (Fri) 21:15", "2024/02/29 (Thu) 00:05", "2024/02/29 (Thu) 10:00", "2024/03/01 (Fri) 10:00"
            ],
            "haystack_sessions": [
                [said("user", "My kayak is in the shed."), said("assistant", "Noted.")],
                [said("user", "I bought a kayak.")],
                [said("user", "Name a river.")],
                [said("user", "Name a river.")]
            ],
            "answer_session_ids": ["later"]
        },
        {
            "question_id": "q2_abs", "haystack_session_ids": ["only", "none"],
            "haystack_dates": ["2024/05/05 (Sun) 12:00", "2024/05/06 (Mon) 12:00"],
            "haystack_sessions": [[said("assistant", "Welcome.")], []]
        }
    ])
}

fn lines(batch: &Batch) -> Vec<String> {
    batch
        .events
        .iter()
        .map(|e| match e {
            TurnEvent::Turn(t) => {
                format!("{} {} {} {} {}", t.bank, t.session.as_deref().unwrap_or("-"), t.turn, t.speaker, t.time)
            }
            TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
            TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
            TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
        })
        .collect()
}

#[test]
fn histories_come_in_time_order_in_banks_of_their_own_with_names_for_the_roles() {
    let batch = read(sample().to_string().as_bytes(), |_| (), None).unwrap();
    assert_eq!(batch.rejects, []);
    assert_eq!(
        lines(&batch),
        [
            "longmemeval/q1 first first:0 Alice 2024-02-29T00:05:00Z",
            "longmemeval/q1 end first",
            "longmemeval/q1 filler filler:0 Alice 2024-02-29T10:00:00Z",
            "longmemeval/q1 end filler",
            "longmemeval/q1 filler~2 filler~2:0 Alice 2024-03-01T10:00:00Z",
            "longmemeval/q1 end filler~2",
            "longmemeval/q1 later later:0 Alice 2024-03-01T21:15:00Z",
            "longmemeval/q1 later later:1 Bob 2024-03-01T21:15:00Z",
            "longmemeval/q1 end later",
            "longmemeval/q1 idle 2025-03-02T21:15:00Z",
            "longmemeval/q2_abs only only:0 Bob 2024-05-05T12:00:00Z",
            "longmemeval/q2_abs end only",
            "longmemeval/q2_abs idle 2025-05-06T12:00:00Z",
        ]
    );
}

#[test]
fn bank_zone_and_choice_are_taken_from_the_settings() {
    let choose = |s: &mut SourceSettings| {
        s.zone = "-08:00".to_owned();
        s.only = vec!["q2_abs".to_owned()];
    };
    let bytes = sample().to_string();
    let batch = read(bytes.as_bytes(), choose, Some("team/a")).unwrap();
    assert_eq!(lines(&batch)[0], "team/a/q2_abs only only:0 Bob 2024-05-05T12:00:00-08:00");
    assert_eq!(batch.events.len(), 3);
    let error = read(bytes.as_bytes(), |s| s.only = vec!["q9".to_owned()], None).unwrap_err().to_string();
    assert_eq!(error, "source.only: \"q9\" is not in the file, which holds 2 questions; write their ids");
}

#[test]
fn what_is_assumed_and_how_far_it_is_are_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = sample().to_string();
    std::fs::write(file.path(), &bytes).unwrap();
    let mut source = LongMemEval::open(&settings(file.path()), None).unwrap();
    assert!(source.notice().unwrap().contains("no zone and are taken as +00:00"));
    let total = Some(bytes.len() as u64);
    assert_eq!(source.progress(), Progress { done: 0, total, unit: "bytes" });
    source.next(1).unwrap();
    let half = source.progress().done;
    assert!(half > 0 && half < bytes.len() as u64, "{half}");
    drain(&mut source, 9);
    assert_eq!(source.progress(), Progress { done: bytes.len() as u64, total, unit: "bytes" });
}

#[test]
fn a_damaged_item_becomes_a_letter_with_its_place_and_the_rest_goes_on() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = sample();
        change(&mut value);
        value.to_string()
    };
    let turn = |key: &'static str, with: Value| changed(&move |v| v[0]["haystack_sessions"][0][1][key] = with.clone());
    let dated = |with: Value| changed(&move |v| v[0]["haystack_dates"][1] = with.clone());
    let long = "x".repeat(70_000);
    for (text, place, reason, turns) in [
        (turn("role", json!("system")), "q1/haystack_sessions[0][1]", "role: \"system\" is not known; write", 5),
        (turn("role", Value::Null), "q1/haystack_sessions[0][1]", "role: missing; add", 5),
        (turn("content", json!(7)), "q1/haystack_sessions[0][1]", "content: not a string; write", 5),
        (turn("content", json!("  ")), "q1/haystack_sessions[0][1]", "text: empty; write what was said", 5),
        (turn("content", json!(long)), "q1/haystack_sessions[0][1]", "text: 70000 bytes", 5),
        (changed(&|v| v[0]["haystack_sessions"][0][1] = json!(3)), "q1/haystack_sessions[0][1]", "role: missing", 5),
        (dated(Value::Null), "q1/haystack_sessions[1][0]", "haystack_dates[1]: missing; write a date", 5),
        (dated(json!("May 2024")), "q1/haystack_sessions[1][0]", "haystack_dates[1]: \"May 2024\" is not a date", 5),
        (dated(json!("2024/02/30 (Fri) 10:00")), "q1/haystack_sessions[1][0]", "haystack_dates[1]: \"2024/02/30", 5),
        (
            dated(json!("1500/02/01 (Thu) 10:00")),
            "q1/haystack_sessions[1][0]",
            "haystack_dates[1]: \"1500/02/01 (Thu) 10:00\" is out of range",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_dates"] = json!([])),
            "q2_abs/haystack_sessions[0][0]",
            "haystack_dates[0]: missing",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_session_ids"] = json!([])),
            "q2_abs/haystack_sessions[0][0]",
            "haystack_session_ids: only 0 for 2 sessions; add",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_session_ids"][0] = json!(4)),
            "q2_abs/haystack_sessions[0][0]",
            "haystack_session_ids[0]: not a string",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_session_ids"][0] = json!("")),
            "q2_abs/haystack_sessions[0][0]",
            "session: empty; give it a name",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_sessions"][0] = json!("x")),
            "q2_abs/haystack_sessions[0]",
            "not a list; write",
            5,
        ),
        (
            changed(&|v| v[1]["haystack_sessions"] = json!({})),
            "q2_abs",
            "haystack_sessions: missing or not a list; write",
            5,
        ),
        (changed(&|v| v[1]["question_id"] = Value::Null), "[1]", "question_id: missing; add", 5),
        (changed(&|v| v[1]["question_id"] = json!("a b")), "[1]", "question_id: bank: segment \"a b\"", 5),
        (changed(&|v| v[1]["question_id"] = json!("q1")), "[1]", "question_id: \"q1\" comes twice; give", 5),
        (changed(&|v| v[1] = json!([1])), "[1]", "question_id: missing", 5),
        (sample().to_string().replace("Welcome.", "\\ud800"), "[1]", "not JSON: ", 5),
    ] {
        let batch = read(text.as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.rejects.len(), 1, "{reason}");
        assert_eq!(batch.rejects[0].origin, place, "{reason}");
        assert!(batch.rejects[0].reason.starts_with(reason), "{} is not {reason}", batch.rejects[0].reason);
        assert!(batch.rejects[0].reason.contains("; "), "{}", batch.rejects[0].reason);
        let kept = batch.events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count();
        assert_eq!(kept, turns, "{reason}");
    }
}

#[test]
fn a_file_that_is_cut_or_no_list_is_an_error_with_its_place() {
    let whole = serde_json::to_string_pretty(&sample()).unwrap();
    let half: String = whole.lines().take(12).collect::<Vec<_>>().join("\n");
    let last = half.lines().last().unwrap().len() + 1;
    let first_question: &str = &whole[..whole.rfind("  },\n  {").unwrap() + 4];
    let lines = first_question.lines().count();
    for (bytes, place) in [
        (half.as_bytes(), format!(":12:{last}: {CUT}")),
        (first_question.as_bytes(), format!(":{lines}:5: {CUT}")),
        (b"", ":1:1: the file is empty; fetch".to_owned()),
        (b" {}", ":1:2: not a list; fetch the whole".to_owned()),
        (b"[\n{\"a\": nul}]", ":2:10: expected ident".to_owned()),
        (b"[{}\n{}]", ":2:1: neither a comma nor".to_owned()),
        (b"[{}] x", ":1:6: more after".to_owned()),
        (b"[\n\"\xff\"]", ":2:2: not UTF-8".to_owned()),
        (b"version https://git-lfs.example/spec", ":1:1: not a list".to_owned()),
    ] {
        let message = read(bytes, |_| (), None).unwrap_err().to_string();
        assert!(message.contains(&place), "{message} is not {place}");
        assert!(message.ends_with(WHOLE_FILE), "{message}");
    }
    assert_eq!(read(b" [ ] \n", |_| (), None).unwrap(), Batch::default());
}

#[test]
fn the_published_samples_are_read_whole() {
    let data = std::env::var_os("RIPPLEMEM_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    for (name, questions, sessions, turns, evidence) in
        [("longmemeval_single.json", 1, 53, 550, 2), ("sample2.json", 2, 4, 48, 3)]
    {
        let path = data.join("longmemeval").join(name);
        if !path.exists() {
            crate::skipped(&format!(
                "source::longmemeval::the_published_samples_are_read_whole: no {}; set RIPPLEMEM_DATA",
                path.display()
            ));
            return;
        }
        let batch = drain(&mut LongMemEval::open(&settings(&path), None).unwrap(), 100);
        assert_eq!(batch.rejects, []);
        let said: Vec<&Turn> =
            batch.events.iter().filter_map(|e| if let TurnEvent::Turn(t) = e { Some(t) } else { None }).collect();
        let banks: BTreeSet<_> = said.iter().map(|t| t.bank.as_str()).collect();
        let ids: BTreeSet<_> = said.iter().map(|t| (t.bank.as_str(), t.turn.as_str())).collect();
        let ends = batch.events.iter().filter(|e| matches!(e, TurnEvent::SessionEnd(_))).count();
        assert_eq!((banks.len(), ends, said.len(), ids.len()), (questions, sessions, turns, turns));
        // Every turn that is marked as evidence is there under the id that names it.
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mut marked = 0;
        for question in file.as_array().unwrap() {
            let bank = format!("longmemeval/{}", question["question_id"].as_str().unwrap());
            let names =
                session_names(question["haystack_session_ids"].as_array().unwrap().iter().filter_map(Value::as_str));
            for (name, session) in names.iter().zip(question["haystack_sessions"].as_array().unwrap()) {
                for (index, turn) in session.as_array().unwrap().iter().enumerate() {
                    if turn["has_answer"] == json!(true) {
                        marked += 1;
                        let id = turn_id(name, index);
                        let held = said.iter().find(|t| t.bank.as_str() == bank && t.turn == id).unwrap();
                        assert_eq!(held.text, turn["content"].as_str().unwrap());
                    }
                }
            }
        }
        assert_eq!(marked, evidence, "{name}");
    }
}

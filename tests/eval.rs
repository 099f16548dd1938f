//! `ripplemem eval` on a small dialogue of our own, by the real command.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::{fails, ripplemem, write};

fn said(speaker: &str, id: &str, text: &str) -> Value {
    json!({"speaker": speaker, "dia_id": id, "text": text})
}

/// Two conversations in LoCoMo's form, with every kind of damage that is repaired or counted.
fn benchmark() -> Value {
    json!([
        {"sample_id": "harbour", "conversation": {
            "speaker_a": "Iris", "speaker_b": "Tomas",
            "session_1_date_time": "9:05 am on 3 March, 2024",
            "session_1": [
                said("Iris", "D1:1", "I bought a green canoe at the flea market."),
                said("Tomas", "D1:2", "Lovely! My brother Anton repairs accordions in his cellar."),
                {"speaker": "Iris", "dia_id": "D1:3", "text": "Look at this one.", "blip_caption": "a lighthouse in fog"},
                said("Tomas", "D1:4", "I am going to plant walnut trees behind the barn.")
            ],
            "session_2_date_time": "6:40 pm on 9 April, 2024",
            "session_2": [
                said("Iris", "D2:1", "The canoe sank near the old mill."),
                said("Tomas", "D2:2", "Anton sold three accordions to a circus.")
            ],
            "session_3": [said("Iris", "D3:1", "This session has no date.")]
        }, "qa": [
            {"question": "What did Iris buy at the flea market?", "answer": "a green canoe", "category": 4, "evidence": ["D1:1"]},
            {"question": "What happened to the canoe of Iris?", "answer": "it sank", "category": 1, "evidence": ["D1:1; D2:1"]},
            {"question": "When did Anton sell accordions?", "answer": 2024, "category": 2, "evidence": ["D:2:2", "D9:9"]},
            {"question": "Which photo did Iris share?", "answer": "a lighthouse", "category": 3, "evidence": ["D1:03"]},
            {"question": "What did Iris buy at the flea market?", "answer": "a green canoe", "category": 4, "evidence": ["D1:1"]},
            {"question": "Why does Tomas fly kites?", "adversarial_answer": "for fun", "category": 5, "evidence": ["D1:4"]},
            {"question": "Who is without a date?", "answer": "Iris", "category": 4, "evidence": ["D3:1"]},
            {"question": "What is this?", "answer": "new", "category": 9, "evidence": ["D1:2"]}
        ]},
        {"sample_id": "garden", "conversation": {
            "speaker_a": "Uma", "speaker_b": "Pavel",
            "session_1_date_time": "8:00 am on 1 June, 2024",
            "session_1": [said("Uma", "D1:1", "My beehives stand on the roof of the library."), said("Pavel", "D1:2", "I grow saffron in a bathtub.")]
        }, "qa": [
            {"question": "Where are the beehives of Uma?", "answer": "on the roof", "category": 4, "evidence": ["D1:1"]},
            {"question": "What does Pavel grow?", "answer": "saffron", "category": 4, "evidence": ["D1:2"]}
        ]}
    ])
}

struct Home {
    directory: tempfile::TempDir,
    file: PathBuf,
    pipeline: PathBuf,
}

fn home() -> Home {
    let directory = tempfile::tempdir().unwrap();
    let file = write(&directory.path().join("small.json"), benchmark().to_string());
    let pipeline =
        write(&directory.path().join("p.toml"), "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n");
    Home { directory, file, pipeline }
}

fn eval(home: &Home, more: &[&str]) -> std::process::Output {
    let (file, pipeline) = (home.file.to_str().unwrap(), home.pipeline.to_str().unwrap());
    ripplemem(&[&["eval", "locomo", file, "--pipeline", pipeline], more].concat())
}

fn figures(home: &Home, more: &[&str]) -> Value {
    let output = eval(home, &[&["--json"], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every property of an object is in its schema, and every required one is there; references followed.
fn obeys(value: &Value, schema: &Value, root: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return obeys(value, root.pointer(name.trim_start_matches('#')).unwrap(), root, place);
    }
    match value {
        Value::Object(object) => {
            if let Some(properties) = schema["properties"].as_object() {
                for field in schema["required"].as_array().into_iter().flatten() {
                    assert!(object.contains_key(field.as_str().unwrap()), "{place}: {field} is missing");
                }
                for (field, inner) in object {
                    let known =
                        properties.get(field).unwrap_or_else(|| panic!("{place}: {field} is not in the schema"));
                    obeys(inner, known, root, &format!("{place}.{field}"));
                }
            } else if schema["additionalProperties"].is_object() {
                object
                    .iter()
                    .for_each(|(k, v)| obeys(v, &schema["additionalProperties"], root, &format!("{place}.{k}")));
            }
        }
        Value::Array(items) => items.iter().for_each(|v| obeys(v, &schema["items"], root, place)),
        _ => {}
    }
}

#[test]
fn the_figures_have_their_schema_and_count_every_question_once() {
    let home = home();
    let result = figures(&home, &["--rivals", "--ablate", "all"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/eval.v1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    obeys(&result, &schema, &schema, "result");
    for field in [
        "dataset",
        "questions",
        "evidence_recall",
        "full_evidence",
        "context_tokens",
        "units",
        "first_hop_recall",
        "second_round_rate",
        "by_category",
        "build",
        "latency_ms",
        "config",
    ] {
        assert!(!result[field].is_null(), "{field} is promised");
    }
    // Questions of categories 1 to 4 that have evidence left, the duplicate included.
    assert_eq!((result["questions"].as_u64(), result["scored"].as_u64()), (Some(7), Some(7)));
    assert_eq!(result["by_category"]["adversarial"]["questions"], 1);
    assert_eq!(result["by_category"]["category 9"]["questions"], 1);
    assert_eq!((result["build"]["conversations"].as_u64(), result["build"]["turns"].as_u64()), (Some(2), Some(8)));
    assert!(result["config"]["log"].get("directory").is_none(), "the figures do not depend on a place");
    // In so small a memory everything comes to mind.
    assert_eq!(result["evidence_recall"], 1.0, "{result:#}");
    let counts: Vec<(&str, u64)> = result["problems"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(kind, problem)| (kind.as_str(), problem["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        counts,
        [
            ("duplicate_question", 1),
            ("lost_evidence", 2),
            ("no_evidence", 1),
            ("rejected_turns", 1),
            ("repaired_evidence", 3),
            ("unknown_category", 1)
        ]
    );
    let rivals: Vec<&Value> = result["rivals"].as_array().unwrap().iter().collect();
    assert_eq!(rivals.len(), 2 * (6 * 2 + 1));
    let everything = rivals.iter().find(|r| r["name"] == "full-context" && r["over"] == "turns").unwrap();
    assert_eq!((&everything["evidence_recall"], &everything["full_evidence"]), (&json!(1.0), &json!(1.0)));
    let most = result["context_tokens"].as_f64().unwrap().round();
    for rival in rivals.iter().filter(|r| r["budget"]["kind"] == "tokens") {
        assert!(rival["context_tokens"].as_f64().unwrap() <= most, "{rival:#}");
    }
    let ablations: Vec<&str> =
        result["ablations"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(
        ablations,
        [
            "structural-cues",
            "graph-expansion",
            "planned-recollection",
            "second-round",
            "longer-first-hop",
            "open-windows",
            "open-windows-unrecorded"
        ]
    );
    let of = |name: &str| {
        result["ablations"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()["evidence_recall"]
            .as_f64()
            .unwrap()
    };
    // Only the first of harbour's sessions is over: its two pieces, and three of seven questions.
    assert_eq!((of("open-windows"), of("open-windows-unrecorded")), (1.0, 0.5), "two windows of three are open");
}

/// Each way is a memory of its own, asked the same.
#[test]
fn ways_to_make_vectors_are_compared() {
    let result = figures(&home(), &["--vectors"]);
    let rows = result["vectors"].as_array().unwrap();
    let a_turn: Vec<f64> = rows.iter().map(|row| row["vectors_per_turn"].as_f64().unwrap()).collect();
    assert_eq!(rows.len(), 4, "one model, four ways");
    assert!(a_turn[0] <= a_turn[1] && a_turn[1] < a_turn[2] && a_turn[2] <= a_turn[3], "{a_turn:?}");
    for row in rows {
        assert_eq!((&row["model"], &row["questions"]), (&json!("fixed"), &result["questions"]));
        assert_eq!(row["evidence_recall"], 1.0, "{row:#}");
        let [took, ratio] = ["ingest_seconds", "ingest_over_raw"].map(|name| row[name].as_f64().unwrap());
        assert!(took > 0.0 && ratio > 0.0, "{row:#}");
    }
}

#[test]
fn conversations_and_limits_choose_questions() {
    let home = home();
    let chosen = figures(&home, &["--conversations", "garden"]);
    assert_eq!((chosen["questions"].as_u64(), chosen["build"]["turns"].as_u64()), (Some(2), Some(2)));
    assert_eq!(figures(&home, &["--limit", "1"])["questions"], 2);
    let output = eval(&home, &[]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.contains("overall") && table.contains("rejected_turns 1"), "{table}");
}

#[test]
fn what_cannot_be_evaluated_is_said_with_its_place() {
    let home = home();
    fails(&eval(&home, &["--conversations", "desert"]), 1, &["\"desert\" is not in the file"]);
    fails(&eval(&home, &["--ablate", "gravity"]), 1, &["gravity", "structural-cues"]);
    let half = benchmark().to_string();
    let half = write(&home.directory.path().join("half.json"), &half[..half.len() / 2]);
    let pipeline = home.pipeline.to_str().unwrap();
    let run = |format: &str, file: &str| ripplemem(&["eval", format, file, "--pipeline", pipeline]);
    fails(&run("locomo", half.to_str().unwrap()), 1, &["half.json:1:", "whole"]);
    fails(&run("locomo", "no/such.json"), 1, &["no/such.json"]);
    fails(&run("hotpot", home.file.to_str().unwrap()), 1, &["hotpot", "locomo, longmemeval or evermembench"]);
    let empty = write(&home.directory.path().join("empty.json"), "[]");
    fails(&run("locomo", empty.to_str().unwrap()), 1, &["no question that can be asked"]);
}

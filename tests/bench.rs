//! `ripplemem bench`: its figures agree with one another and with the memory that it measured.

use serde_json::Value;

use super::support::{data, fails, ripplemem};

fn bench(arguments: &[&str]) -> Value {
    let output = ripplemem(&[&["bench", "--hashed", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(figures: &Value, pointer: &str) -> f64 {
    figures.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {figures}"))
}

fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-6 * one.abs().max(1.0), "{one} is not {other}");
}

#[test]
fn the_figures_of_a_file_are_those_of_the_memory_that_it_makes() {
    let file = data("sample.jsonl");
    let file = file.to_str().unwrap();
    let figures = bench(&["jsonl", file, "--questions", "5"]);

    let home = tempfile::tempdir().unwrap();
    let (pipeline, log) = (home.path().join("hashed.toml"), home.path().join("log"));
    std::fs::write(&pipeline, "version = 1\nembed.model = \"fixed\"").unwrap();
    let memory = ["--pipeline", pipeline.to_str().unwrap(), "--data", log.to_str().unwrap()];
    assert!(ripplemem(&[&["ingest", "jsonl", file], &memory[..]].concat()).status.success());
    let digest = ripplemem(&[&["digest", "--json"], &memory[..]].concat());
    let digest: Value = serde_json::from_slice(&digest.stdout).unwrap();
    assert_eq!(figures["units"], digest["units"]);
    let turns = std::fs::read_to_string(file).unwrap().lines().filter(|line| line.contains("\"text\"")).count();
    assert_eq!(figures["turns"], turns);
}

#[test]
fn the_figures_of_a_synthetic_dialogue_agree_with_one_another() {
    let arguments = ["--turns", "240", "--banks", "3", "--questions", "12"];
    let figures = bench(&arguments);
    assert_eq!((&figures["turns"], &figures["banks"]), (&Value::from(240), &Value::from(3)));
    let units = number(&figures, "/units");
    assert!(units >= 3.0 && number(&figures, "/texts") >= units, "{figures}");
    let seconds = number(&figures, "/ingest/seconds");
    assert_near(number(&figures, "/ingest/turns_per_second"), 240.0 / seconds);
    let rates = ["/ingest/embedder_alone_texts_per_second", "/ingest/texts_per_second"].map(|at| number(&figures, at));
    assert_near(number(&figures, "/ingest/over_embedder_alone"), rates[0] / rates[1]);
    assert_near(number(&figures, "/restore/units_per_second") * number(&figures, "/restore/seconds"), units);
    for room in ["/disk/log", "/disk/snapshot"] {
        let bytes = number(&figures, &format!("{room}/bytes"));
        assert!(bytes > 0.0, "{room}");
        assert_near(number(&figures, &format!("{room}/bytes_per_unit")), bytes / units);
        assert_near(number(&figures, &format!("{room}/bytes_per_turn")), bytes / 240.0);
    }
    if cfg!(target_os = "linux") {
        assert!(number(&figures, "/memory/empty_bytes") > 1e6, "{figures}");
        let at = |which: &str| number(&figures, &format!("/memory/{which}/bytes"));
        assert!(at("peak") >= at("ingested"), "{figures}");
    }
    assert_eq!(figures["ask"]["questions"], 12);
    assert!(number(&figures, "/ask/p50_ms") <= number(&figures, "/ask/p99_ms"), "{figures}");

    // The same seed gives the same turns, another seed others.
    let of = |figures: &Value| [figures["units"].clone(), figures["texts"].clone(), figures["source"].clone()];
    assert_eq!(of(&bench(&arguments)), of(&figures));
    let other = bench(&[&arguments[..], &["--seed", "2"]].concat());
    assert_ne!(other["source"], figures["source"]);
    assert_ne!(other["texts"], figures["texts"]);
}

#[test]
fn turns_of_a_file_are_limited_and_divided() {
    let file = data("sample.jsonl");
    let figures = bench(&["jsonl", file.to_str().unwrap(), "--turns", "10", "--banks", "2", "--questions", "2"]);
    assert_eq!((&figures["turns"], &figures["banks"]), (&Value::from(10), &Value::from(2)));
}

#[test]
fn a_bench_that_cannot_be_taken_says_why() {
    let file = data("sample.jsonl");
    let divided = ripplemem(&["bench", "jsonl", file.to_str().unwrap(), "--banks", "2"]);
    fails(&divided, 1, &["--banks: needs --turns for a file"]);
    fails(&ripplemem(&["bench", "--turns", "5", "--banks", "9"]), 1, &["more than there are turns"]);
    fails(&ripplemem(&["bench", "jsonl", "nowhere.jsonl", "--hashed"]), 1, &["nowhere.jsonl", "ingest"]);
    let home = tempfile::tempdir().unwrap();
    let pipeline = home.path().join("model.toml");
    std::fs::write(&pipeline, "version = 1\n[llm]\nendpoint = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"").unwrap();
    fails(&ripplemem(&["bench", "--pipeline", pipeline.to_str().unwrap()]), 1, &["[llm]"]);
}

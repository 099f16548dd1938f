//! `ripplemem-eval calibrate` through the command line, on the sample dialogue.

use eval::Calibration;
use types::config::Pipeline;

use super::support::{data, fails, pipeline, ripplemem, write};

#[test]
fn calibrated_thresholds_give_the_target_density() {
    let home = tempfile::tempdir().unwrap();
    let toml = write(&home.path().join("p.toml"), toml::to_string(&pipeline(home.path(), "")).unwrap());
    let sample = data("sample.jsonl");
    let run = |more: &[&str]| {
        let mut arguments = vec!["calibrate", sample.to_str().unwrap(), "--pipeline", toml.to_str().unwrap()];
        arguments.extend(more);
        ripplemem(&arguments)
    };
    let json = run(&["--json", "--target", "2"]);
    assert!(json.status.success(), "{}", String::from_utf8_lossy(&json.stderr));
    let calibration: Calibration = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((calibration.model.as_str(), calibration.target_choices), ("fixed", 2.0));
    assert!((calibration.choices - 2.0).abs() < 0.1, "{calibration:?}");
    assert!(!home.path().join("log").exists(), "the pipeline's log is not touched");

    // Pasted into a pipeline, the printed lines give a memory of the target density.
    let text = run(&["--target", "2"]);
    let lines: String = String::from_utf8(text.stdout).unwrap();
    let entry = &lines[lines.find("[embed.models.fixed]").unwrap()..];
    let pasted = Pipeline::parse(&format!("version = 1\nembed.model = \"fixed\"\n{entry}")).unwrap();
    assert_eq!(pasted.model().semantic_threshold, calibration.semantic_threshold);
    let mut chosen = pipeline(home.path(), "");
    chosen.embed.models = pasted.embed.models;
    let mut service = super::support::open(&chosen);
    super::support::ingest(&mut service, &sample);
    let census = super::support::census(&service);
    assert_eq!(census.units, calibration.units as u64);
    // Two units that choose each other share one edge: there are between half as many edges as choices and as many.
    let choices = calibration.choices * calibration.units as f64;
    let edges = census.semantic_edges as f64;
    assert!(edges <= choices + 0.5 && edges >= choices / 2.0 - 0.5, "{edges} edges of {choices} choices");
}

#[test]
fn what_cannot_be_calibrated_says_why() {
    let home = tempfile::tempdir().unwrap();
    let toml = write(&home.path().join("p.toml"), toml::to_string(&pipeline(home.path(), "")).unwrap());
    let turn =
        r#"{"bank":"b","turn":"1","speaker":"Ann","text":"The ferry leaves at noon","time":"2024-05-01T10:00:00Z"}"#;
    let short = write(&home.path().join("short.jsonl"), turn);
    let run = |path: &str, format: &str| {
        ripplemem(&["calibrate", path, "--format", format, "--pipeline", toml.to_str().unwrap()])
    };
    fails(&run(short.to_str().unwrap(), "jsonl"), 1, &["1 units", "longer dialogue"]);
    fails(&run("none.jsonl", "jsonl"), 1, &["none.jsonl"]);
    fails(&run(short.to_str().unwrap(), "csv"), 1, &["csv", "jsonl"]);
}

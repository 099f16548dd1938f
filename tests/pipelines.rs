//! Every file in `pipelines/` is valid and runs unchanged; wrong files get errors that name the key.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use types::config::{LogKind, Pipeline};

use super::{
    model_process::ScriptedModel,
    support::{fails, ripplemem, write},
};

pub(crate) fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_pipeline_file_is_valid() {
    assert!(files().len() >= 3);
    for file in files() {
        let output = ripplemem(&["validate", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("model: all-MiniLM-L6-v2"));
    }
}

/// With the real model, in a temporary directory. `kafka::every_pipeline_on_kafka_runs` runs those
/// on Kafka.
#[test]
fn every_pipeline_runs() {
    for file in files() {
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = Pipeline::read(&file).unwrap();
        if pipeline.log.kind == LogKind::Kafka {
            continue;
        }
        pipeline.log.directory = home.path().join("log");
        let model = pipeline.llm.is_set().then(|| ScriptedModel::start(&[]));
        if let Some(model) = &model {
            pipeline.llm.endpoint.clone_from(&model.endpoint);
            pipeline.llm.model = "scripted".to_owned();
        }
        let copy = write(&home.path().join("pipeline.toml"), toml::to_string(&pipeline).unwrap());
        let sample = fs::File::open(super::support::data("sample.jsonl")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["run", copy.to_str().unwrap()])
            .stdin(Stdio::from(sample))
            .output()
            .unwrap();
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {errors}", file.display());
        // A file ends with an idle mark, standard input does not.
        let events = if file.ends_with("stdin.toml") { "252 events" } else { "253 events" };
        assert!(out.contains(events) && out.contains("memory: "), "{}: {out}", file.display());
        assert_eq!(model.is_some(), out.contains("scripted: ") && out.contains(" 0 not usable, 0 left"), "{out}");
    }
}

#[test]
fn a_wrong_key_is_named_with_the_nearest_one() {
    let home = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("version = 1\n[recall]\nsemantik = 3\n", &["semantik", "did you mean \"semantic\""][..]),
        ("version = 1\nprofile = \"papers\"\n", &["papers", "\"paper\" or \"paper-longmemeval\""]),
        ("version = 2\n", &["version", "version = 1"]),
        ("name = \"x\"\n", &["version: missing"]),
        ("version = 1\n[window]\noverlap = 40\n", &["window.overlap"]),
        ("version = 1\n[recall]\nbudget = 0\n", &["recall.budget"]),
        ("version = 1\n[log]\nkind = \"kafka2\"\n", &["log.kind"]),
        ("version = 1\n[window\n", &["line 2"]),
        ("version = 1\n[source]\nformat = \"csv\"\npath = \"x\"\n", &["source.format", "\"csv\"", "jsonl, slack"]),
        ("version = 1\n[extract]\nextractor = \"gpt\"\n", &["extract.extractor", "\"gpt\"", "\"llm\""]),
        ("version = 1\n[recall]\nplanner = \"llm\"\n", &["llm.endpoint: missing", "recall.planner"]),
        ("version = 1\n[llm]\nendpoint = \"localhost\"\nmodel = \"m\"\n", &["llm.endpoint", "http://HOST:PORT/v1"]),
        ("version = 1\n[llm]\nendpoint = \"http://x/v1\"\n", &["llm.model: missing"]),
        ("version = 1\n[llm]\ncap_cost = 1.0\n", &["llm.cap_cost", "prompt_price"]),
        ("version = 1\n[llm]\nkey = \"sk-1\"\n", &["unknown key \"key\"", "key_env"]),
        ("version = 1\nsnapshot.directory = \"ftp://a/b\"\n", &["snapshot.directory", "ftp://", "s3://BUCKET/PREFIX"]),
        ("version = 1\nsnapshot.directory = \"s3:///memory\"\n", &["snapshot.directory", "no bucket"]),
        ("version = 1\nsnapshot.directory = \"s3://localhost:9000/b\"\n", &["has a port", "AWS_ENDPOINT"]),
        ("version = 1\nsnapshot.directory = \"file://there/b\"\n", &["no directory on this machine"]),
        ("version = 1\nsnapshot.directory = \"s3://me:secret@bucket\"\n", &["a password", "environment variables"]),
    ] {
        let file = write(&home.path().join("p.toml"), text);
        let output = ripplemem(&["validate", file.to_str().unwrap()]);
        fails(&output, 78, words);
        fails(&output, 78, &["p.toml"]);
    }
    fails(&ripplemem(&["validate", "no/such/file.toml"]), 78, &["no/such/file.toml"]);
    let output = ripplemem(&["snapshot", "--snapshots", "ftp://a/b"]);
    fails(&output, 1, &["--snapshots", "ftp://", "s3://BUCKET/PREFIX"]);
}

/// `profile = "paper"` sets every constant of the paper's tables, whatever the default is.
#[test]
fn the_paper_profile_has_the_papers_constants() {
    let p = Pipeline::parse("version = 1\nprofile = \"paper\"").unwrap();
    assert_eq!((p.window.turns, p.window.overlap, p.window.sessions), (40, 2, false));
    let r = &p.recall;
    assert_eq!((r.semantic, r.lexical, r.cue, r.rounds, r.anchors, r.hops), (10, 5, 5, 1, 3, 2));
    assert_eq!((r.semantic_support, r.structural_support, r.budget, r.mixed_paths), (5, 5, 30, false));
    assert_eq!((r.alignment_weight, r.provenance_weight, r.anchor_weight, r.rank_offset), (1.25, 1.0, 0.05, 5.0));
    assert_eq!((r.semantic_source, r.lexical_source, r.cue_source, r.expansion_source), (1.0, 0.75, 0.9, 0.85));
    let m = &p.memory;
    assert_eq!((m.semantic_pool, m.semantic_edges, m.structural_edges), (20, 6, 6));
    assert_eq!((m.participant_weight, m.location_weight, m.time_weight, m.time_decay_days), (0.5, 0.2, 0.3, 7.0));
    assert_eq!(m.structural_threshold, 0.6);
    // The paper's threshold belongs to its model.
    let qwen =
        Pipeline::parse("version = 1\nprofile = \"paper\"\nembed.model = \"Qwen/Qwen3-Embedding-0.6B\"").unwrap();
    assert_eq!(qwen.model().semantic_threshold, 0.85);
    for (name, window, first_hop) in [("longmemeval", (10, 0), (15, 8, 8)), ("evermembench", (20, 1), (10, 5, 5))] {
        let other = Pipeline::parse(&format!("version = 1\nprofile = \"paper-{name}\"")).unwrap();
        let r = &other.recall;
        assert_eq!((other.window.turns, other.window.overlap), window, "{name}");
        assert_eq!((r.semantic, r.lexical, r.cue), first_hop, "{name}");
        let mut same = Pipeline { window: other.window.clone(), profile: other.profile.clone(), ..p.clone() };
        (same.recall.semantic, same.recall.lexical, same.recall.cue) = first_hop;
        assert_eq!(same, other, "{name}: the rest is the paper's");
    }
}

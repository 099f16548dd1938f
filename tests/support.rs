//! What the tests share: pipelines over a temporary directory, and the binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use ripplemem::{
    config::{Pipeline, SourceSettings},
    memory::Census,
    model::{Bank, Evidence, Question},
    pipeline::{Ingested, Service},
    source,
};

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A pipeline with the deterministic embedder over a directory; `extra` is more TOML.
pub(crate) fn pipeline(directory: &Path, extra: &str) -> Pipeline {
    let mut pipeline =
        Pipeline::parse(&format!("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n{extra}")).unwrap();
    pipeline.log.directory = directory.join("log");
    pipeline
}

pub(crate) fn open(pipeline: &Pipeline) -> Service {
    Service::open(pipeline, &mut |_| {}).unwrap()
}

/// Takes a JSON Lines file to its end.
pub(crate) fn ingest(service: &mut Service, path: &Path) -> Ingested {
    let settings =
        SourceSettings { format: "jsonl".into(), path: path.to_owned(), zone: "+00:00".into(), only: Vec::new() };
    let mut source = source::open(&settings, None).unwrap();
    service.ingest(&mut *source, &mut |_| {}).unwrap()
}

pub(crate) fn census(service: &Service) -> Census {
    service.digest(None).unwrap().value
}

pub(crate) fn ask(service: &Service, bank: &str, text: &str) -> Evidence {
    let question = Question { bank: Bank::parse(bank).unwrap(), text: text.to_owned(), asked_at: None };
    service.ask(&question).unwrap()
}

/// One turn a line, minutes apart: (id, speaker, text).
pub(crate) fn lines(bank: &str, session: &str, turns: &[(&str, &str, &str)]) -> String {
    turns
        .iter()
        .enumerate()
        .map(|(i, (turn, speaker, text))| {
            let time = format!("2024-05-0{}T10:{:02}:00Z", 1 + i / 60, i % 60);
            let turn = serde_json::json!({
                "bank": bank, "turn": turn, "speaker": speaker, "text": text, "time": time, "session": session,
            });
            format!("{turn}\n")
        })
        .collect()
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> PathBuf {
    fs::write(path, text).unwrap();
    path.to_owned()
}

/// Runs the binary to its end.
pub(crate) fn ripplemem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ripplemem")).args(arguments).output().unwrap()
}

/// What a failed run must look like: the code, these words on stderr, and no panic.
pub(crate) fn fails(output: &Output, code: i32, words: &[&str]) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(!told.contains("panicked"), "{told}");
    for word in words {
        assert!(told.contains(word), "{word:?} is not in: {told}");
    }
}

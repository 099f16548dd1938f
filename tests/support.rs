//! What the tests share: pipelines over a temporary directory, and the binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use ingest::IngestReport;
use memory::index::GraphCensus;
use models::embed::{
    asset_paths,
    setup::{DEFAULT_MODEL, RERANKER, find_installed, required_files},
};
use ripplemem::PipelineDriver;
use types::{
    config::{Pipeline, SourceSettings},
    model::{Bank, Evidence, Question},
};

use serde_json::Value;

use super::skipped::skip;

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(super::ROOT).join("tests/data").join(name)
}

/// A pipeline in a directory, with the deterministic embedder; `extra` is more TOML.
pub(crate) fn pipeline(directory: &Path, extra: &str) -> Pipeline {
    let mut pipeline =
        Pipeline::parse(&format!("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n{extra}")).unwrap();
    pipeline.log.directory = directory.join("log");
    pipeline
}

/// How many seeded rounds a kill test makes: a few, or as many as the variable says, as in `make soak`.
pub(crate) fn kill_rounds(variable: &str) -> u64 {
    std::env::var(variable).map_or(3, |rounds| rounds.parse().unwrap())
}

pub(crate) fn open(pipeline: &Pipeline) -> PipelineDriver {
    PipelineDriver::open(pipeline, &mut |_| {}).unwrap()
}

/// Ingests a JSON Lines file to its end.
pub(crate) fn ingest(service: &mut PipelineDriver, path: &Path) -> IngestReport {
    let mut source = sources::open(&SourceSettings::new("jsonl", path)).unwrap();
    service.ingest(&mut *source, &mut |_| {}).unwrap()
}

pub(crate) fn census(service: &PipelineDriver) -> GraphCensus {
    service.replica().digest(None).unwrap().value
}

pub(crate) fn ask(service: &PipelineDriver, bank: &str, text: &str) -> Evidence {
    let question = Question::new(Bank::parse(bank).unwrap(), text);
    service.ask(&question).unwrap()
}

/// One turn per line, minutes apart: (id, speaker, text).
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

/// Runs the program to its end.
pub(crate) fn ripplemem(arguments: &[&str]) -> Output {
    Command::new(super::PROGRAM).args(arguments).output().unwrap()
}

/// Asserts how a run failed: the exit code, these words on stderr, and no panic.
pub(crate) fn fails(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
    }
}

/// A line of the system's report on a process's memory, such as `VmRSS:`, in KiB.
pub(crate) fn memory_kib(process: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Python with a package of `scripts/python_packages.py`.
pub(crate) struct Python {
    packages: String,
}

impl Python {
    /// `None`, with the test reported as skipped, if the package cannot be installed.
    pub(crate) fn with(package: &str, test: &str) -> Option<Self> {
        let script = Path::new(super::ROOT).join("scripts/python_packages.py");
        let output = Command::new(script).arg(package).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(5) {
            skip(test, stderr.trim());
            return None;
        }
        assert!(output.status.success(), "{stderr}");
        Some(Self { packages: String::from_utf8(output.stdout).unwrap().trim().to_owned() })
    }

    /// A command that runs it with the package.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &self.packages);
        command
    }

    /// Runs it and returns its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Every row of a directory of Parquet files, by partition and offset, as pyarrow reads them.
pub(crate) fn rows(python: &Python, directory: &str) -> Vec<serde_json::Value> {
    let script = Path::new(super::ROOT).join("tests/python/rows.py");
    let stdout = python.run(&[script.to_str().unwrap(), directory]);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What `work` returns, and the warnings that it logs on this thread.
pub(crate) fn with_warnings<T>(work: impl FnOnce() -> T) -> (T, String) {
    let lines: Arc<Mutex<Vec<u8>>> = Arc::default();
    let writer = Lines(Arc::clone(&lines));
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let done = tracing::subscriber::with_default(subscriber, work);
    let lines = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
    (done, lines)
}

/// Log lines of a test.
#[derive(Clone)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Every property of an object is in its schema, and every required one is present. Follows references.
pub(crate) fn obeys(value: &Value, schema: &Value, root: &Value, place: &str) {
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

/// Whether this machine has the reranker; if not, the test is named as skipped.
pub(crate) fn has_reranker(test: &str) -> bool {
    let homes = asset_paths::homes();
    let wanted = required_files(std::env::consts::ARCH, &[RERANKER.to_owned()]).unwrap_or_default();
    let is_here = !wanted.is_empty() && wanted.iter().all(|file| find_installed(&homes, file).is_some());
    if !is_here {
        skip(test, "the reranker is not set up; run scripts/setup --reranker");
    }
    is_here
}

/// Whether the default model can be loaded.
pub(crate) fn has_default_model() -> bool {
    let homes = asset_paths::homes();
    let wanted = required_files(std::env::consts::ARCH, &[DEFAULT_MODEL.to_owned()]).unwrap_or_default();
    !wanted.is_empty() && wanted.iter().all(|file| find_installed(&homes, file).is_some())
}

/// Asserts that a file of the repository holds this text; with `REWRITE=1` writes it.
pub(crate) fn check_golden(path: &str, text: &str) {
    let path = Path::new(super::ROOT).join(path);
    if std::env::var_os("REWRITE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        text,
        "{} has drifted; REWRITE=1 writes it",
        path.display()
    );
}

//! What the tests share: pipelines over a temporary directory, and the binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use heart::memory::Census;
use nouns::{
    config::{Pipeline, SourceSettings},
    model::{Bank, Evidence, Question},
};
use ripplemem::pipeline::{Ingested, Service};

use super::broker_process::skip;

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A pipeline in a directory, with the deterministic embedder; `extra` is more TOML.
pub(crate) fn pipeline(directory: &Path, extra: &str) -> Pipeline {
    let mut pipeline =
        Pipeline::parse(&format!("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n{extra}")).unwrap();
    pipeline.log.directory = directory.join("log");
    pipeline
}

pub(crate) fn open(pipeline: &Pipeline) -> Service {
    Service::open(pipeline, &mut |_| {}).unwrap()
}

/// Ingests a JSON Lines file to its end.
pub(crate) fn ingest(service: &mut Service, path: &Path) -> Ingested {
    let mut source = sources::open(&SourceSettings::new("jsonl", path)).unwrap();
    service.ingest(&mut *source, &mut |_| {}).unwrap()
}

pub(crate) fn census(service: &Service) -> Census {
    service.replica().digest(None).unwrap().value
}

pub(crate) fn ask(service: &Service, bank: &str, text: &str) -> Evidence {
    let question = Question::new(Bank::parse(bank).unwrap(), text);
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

/// Asserts how a run failed: the exit code, these words on stderr, and no panic.
pub(crate) fn fails(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
    }
}

/// A line of what the system says of a process's memory, such as `VmRSS:`, in KiB.
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
    /// None, with the test reported as skipped, where the package cannot be installed.
    pub(crate) fn with(package: &str, test: &str) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python_packages.py");
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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/rows.py");
    let stdout = python.run(&[script.to_str().unwrap(), directory]);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What work gives, and the warnings that it logs on this thread.
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

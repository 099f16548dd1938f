//! The first run of a program that nobody configured: what it needs is found or copied, what is missing is named, the
//! sample is shown, a memory is kept in the user's own directory, and the service manager is notified of the start.

#![cfg(unix)]

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use models::embed::{
    asset_paths,
    setup::{DEFAULT_MODEL, find_installed, required_files},
};
use serde_json::Value;
use types::config::Pipeline;

use super::{
    http_service::{HttpService, pipeline_file},
    skipped::skip,
    support::{fails, write},
};

/// The binary, for a user with this home and no other place for files.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
    command.args(arguments).env("HOME", home).env("XDG_DATA_DIRS", home.join("none")).current_dir(home);
    for name in ["RIPPLEMEM_HOME", "XDG_DATA_HOME", "ORT_DYLIB_PATH"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The folder with the default model; if this machine has none, the test is named as skipped.
fn installed(test: &str) -> Option<PathBuf> {
    let wanted = required_files(std::env::consts::ARCH, &[DEFAULT_MODEL.to_owned()]).ok()?;
    let homes = asset_paths::homes();
    let home = find_installed(&homes, wanted.last()?).map(Path::to_owned);
    if home.is_none() {
        skip(test, "the default model is not set up; run scripts/setup");
    }
    home
}

#[test]
fn what_is_missing_is_said_brought_from_a_directory_and_then_found() {
    let Some(from) = installed("first_run::what_is_missing_is_said_brought_from_a_directory_and_then_found") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".local/share/ripplemem");
    let asked = run(home.path(), &["ask", "Who?", "--bank", "b"]);
    fails(&asked, 1, &[own.to_str().unwrap(), "none/ripplemem/lib/libonnxruntime.so", "Run `ripplemem setup`"]);
    let checked = run(home.path(), &["setup", "--check"]);
    fails(&checked, 1, &[]);
    assert_eq!(text(&checked.stdout).matches("MISSING").count(), 7, "{}", text(&checked.stdout));
    let sick = run(home.path(), &["doctor"]);
    fails(&sick, 1, &[]);
    assert!(text(&sick.stdout).contains("MEND  runtime"), "{}", text(&sick.stdout));

    let nothing = home.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let nowhere = run(home.path(), &["setup", "--from", nothing.to_str().unwrap()]);
    fails(&nowhere, 1, &["lib/libonnxruntime.so", "models/all-MiniLM-L6-v2-int8/model.onnx", "make dist"]);

    let brought = run(home.path(), &["setup", "--from", from.to_str().unwrap()]);
    assert!(brought.status.success(), "{}", text(&brought.stderr));
    assert!(own.join("lib/libonnxruntime.so").is_file());
    // What is there stays as it is, and a damaged file is copied again.
    let vocabulary = own.join("models/all-MiniLM-L6-v2-int8/vocab.txt");
    fs::write(&vocabulary, "damaged").unwrap();
    let again = run(home.path(), &["setup", "--from", from.to_str().unwrap()]);
    assert!(again.status.success());
    let said = text(&again.stderr);
    assert_eq!(said.matches("brought").count(), 1, "{said}");
    assert!(said.contains("vocab.txt"), "{said}");
    assert!(run(home.path(), &["setup", "--check"]).status.success());

    let healthy = run(home.path(), &["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_slice(&healthy.stdout).unwrap();
    let state_of = |of: &str| findings.iter().find(|f| f["of"] == of).map(|f| f["state"].as_str().unwrap());
    assert_eq!(state_of("model"), Some("ok"), "{findings:?}");
    assert_eq!(state_of("memory"), Some("ok"), "{findings:?}");

    let shown = run(home.path(), &["demo"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let printed = text(&shown.stdout);
    for words in ["The evidence is quoted (", "turns of evidence are quoted (", "Expected: "] {
        assert!(printed.contains(words), "{words:?} is not in: {printed}");
    }
    assert!(text(&shown.stderr).contains("left out: a question for the paper's profile"));
}

/// The log is in the user's directory, or in the working directory if there is one already.
#[test]
fn a_memory_that_nobody_places_is_in_the_users_directory() {
    let home = tempfile::tempdir().unwrap();
    // No model is loaded to read a log.
    let lag = || run(home.path(), &["lag"]);
    assert!(lag().status.success());
    let own = home.path().join(".local/share/ripplemem/memory");
    assert!(own.is_dir());
    let elsewhere = home.path().join("elsewhere");
    let placed = command(home.path(), &["lag"]).env("XDG_DATA_HOME", &elsewhere).output().unwrap();
    assert!(placed.status.success());
    assert!(elsewhere.join("ripplemem/memory").is_dir());
    // The directory of an earlier version takes precedence.
    fs::remove_dir_all(&own).unwrap();
    fs::create_dir(home.path().join("ripplemem-data")).unwrap();
    assert!(lag().status.success());
    assert!(!own.exists());
    assert!(fs::read_dir(home.path().join("ripplemem-data")).unwrap().count() > 0);
}

#[test]
fn the_manager_of_services_hears_of_the_start() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("notify");
    let hears = UnixDatagram::bind(&socket).unwrap();
    hears.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let file = pipeline_file(home.path(), "http.listen = \"127.0.0.1:0\"\n");
    let mut service = command(home.path(), &["run", file.to_str().unwrap()]);
    let mut service = service.env("NOTIFY_SOCKET", &socket).stderr(Stdio::null()).spawn().unwrap();
    let mut message = [0; 64];
    let heard = hears.recv(&mut message);
    let health = server::address_of(&home.path().join("log"), &format!("process {}", service.id()));
    service.kill().unwrap();
    service.wait().unwrap();
    assert_eq!(&message[..heard.unwrap()], b"READY=1\n");
    assert!(health.is_some(), "it is told once the service listens");
}

#[test]
fn the_doctor_names_what_must_be_mended() {
    let home = tempfile::tempdir().unwrap();
    let blocked = write(&home.path().join("file"), "");
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let file = write(
        &home.path().join("d.toml"),
        format!(
            "version = 1\nembed.model = \"fixed\"\nlog.directory = {:?}\nhttp.listen = {:?}\nmetrics.listen = \"192.0.2.1:1\"\n",
            blocked.join("memory"),
            service.address
        ),
    );
    let output = run(home.path(), &["doctor", "--pipeline", file.to_str().unwrap()]);
    fails(&output, 1, &[]);
    let said = text(&output.stdout);
    let line = |of: &str| said.lines().find(|line| line.split_whitespace().nth(1) == Some(of)).unwrap_or_default();
    assert!(line("memory").starts_with("MEND") && line("memory").contains("--data"), "{said}");
    assert!(line("http").starts_with("note") && line("http").contains("somebody listens"), "{said}");
    assert!(line("metrics").starts_with("MEND") && line("metrics").contains("metrics.listen"), "{said}");
    assert!(line("model").starts_with("ok"), "{said}");
}

/// Every package has the version of the workspace, and the hashes of the model are those of the default pipeline.
#[test]
fn versions_come_from_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("clients/python/pyproject.toml", format!("version = \"{version}\"")),
        ("clients/typescript/package.json", format!("  \"version\": \"{version}\",")),
        ("clients/python/pyproject.toml", format!("server = [\"ripplemem-server=={version}\"]")),
        ("docker/helm/Chart.yaml", format!("version: {version}")),
        ("docker/helm/Chart.yaml", format!("appVersion: \"{version}\"")),
    ] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.lines().any(|other| other == line), "{file} has no line {line}");
    }
    assert!(Pipeline::parse("version = 1").unwrap().embed.model == DEFAULT_MODEL);
}

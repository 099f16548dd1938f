//! The files of a memory: who may read them, and what is reported if they cannot be written or are gone.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::json;

use super::{
    http_service::{HttpService, pipeline_file},
    support::{ripplemem, write},
};

fn turn(id: &str) -> serde_json::Value {
    json!({"bank": "acme", "turn": id, "speaker": "Ann", "text": "The red kayak is in the boathouse",
        "time": "2024-05-01T10:00:00Z"})
}

/// Everything below a directory, with its permissions.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            found.push((path.clone(), metadata.permissions().mode() & 0o777));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn by_shell(before: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ripplemem")]);
    command.args(arguments).output().unwrap()
}

#[test]
fn nobody_but_the_owner_reads_what_is_remembered_whatever_the_mask() {
    let home = tempfile::tempdir().unwrap();
    let file =
        pipeline_file(home.path(), "snapshot.directory = \"snapshots\"\naccess.token_file = \"deep/tokens.json\"\n");
    let file = file.to_str().unwrap();
    let turns = write(&home.path().join("turns.jsonl"), turn("1").to_string());
    let kept = [turns.clone(), home.path().join("p.toml")];
    let out = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    for arguments in [
        vec!["ingest", "jsonl", turns.to_str().unwrap(), "--pipeline", file],
        vec!["snapshot", "--pipeline", file],
        vec!["export", "--bank", "acme", "--to", &out("acme.export"), "--pipeline", file],
        vec!["replay", "--to", &out("tables"), "--by-bank", "--pipeline", file],
        vec!["token", "add", "agent", "--bank", "*", "--right", "read", "--pipeline", file],
    ] {
        let ran = by_shell("umask 000", &arguments);
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let found: Vec<_> = modes(home.path()).into_iter().filter(|(path, _)| !kept.contains(path)).collect();
    for name in ["log/store", "snapshots/", "tables/turns", "deep/tokens.json", "acme.export"] {
        assert!(found.iter().any(|(path, _)| path.to_str().unwrap().contains(name)), "{name}: {found:?}");
    }
    let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}

/// The system ends such a process silently, unless the process asks for an error instead.
#[test]
fn a_file_that_would_grow_past_the_limit_is_told() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let lines: String = (0..20_000).map(|n| format!("{}\n", turn(&n.to_string()))).collect();
    let turns = write(&home.path().join("turns.jsonl"), lines);
    let arguments = ["ingest", "jsonl", turns.to_str().unwrap(), "--pipeline", file.to_str().unwrap()];
    let refused = by_shell("ulimit -f 512", &arguments);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{:?}: {told}", refused.status);
    assert!(told.contains("make room") || told.contains("File too large"), "{told}");
    // Nothing that was acknowledged is lost.
    let again = ripplemem(&arguments);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn an_empty_lock_that_a_copy_left_out_is_no_damage() {
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let turns = write(&home.path().join("turns.jsonl"), turn("1").to_string());
    let with = |arguments: &[&str]| ripplemem(&[arguments, &["--pipeline", file.to_str().unwrap()]].concat());
    assert!(with(&["ingest", "jsonl", turns.to_str().unwrap()]).status.success());
    for lock in ["log/store/lock", "log/writer.lock"] {
        fs::remove_file(home.path().join(lock)).unwrap();
        let asked = with(&["ask", "Where is the kayak?", "--bank", "acme"]);
        let told = String::from_utf8_lossy(&asked.stdout).into_owned() + &String::from_utf8_lossy(&asked.stderr);
        assert!(told.contains("boathouse"), "{lock}: {told}");
    }
}

#[test]
fn a_directory_that_is_gone_acknowledges_nothing() {
    for gone in ["log", "log/store"] {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), "");
        let service = HttpService::of(home.path());
        let put = |id: &str| {
            let body = json!({"turns": [turn(id)]}).to_string();
            service.send("POST", "/v1/turns", "", body.as_bytes())
        };
        assert_eq!(put("1").0, 200);
        // The service may write a file of its own meanwhile.
        while fs::remove_dir_all(home.path().join(gone)).is_err() {}
        // Even if there is another directory now.
        fs::create_dir_all(home.path().join(gone)).unwrap();
        for id in ["2", "3"] {
            let (status, _, problem) = put(id);
            assert_eq!((status, &problem["code"]), (500, &json!("failed")), "{gone}: {problem}");
        }
        let (status, told) = service.send_text("GET", "/ready", "", b"");
        assert_eq!(status, 503, "{told}");
        service.kill();
    }
}

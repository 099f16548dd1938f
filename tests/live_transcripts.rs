//! Coding agents' transcripts, followed as a live source: what was there before, each new message soon after its line,
//! and nothing twice over kills and restarts; and `ripplemem ingest agents`, which asks first.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    live::Home,
    support::{data, fails, ripplemem},
};

/// How soon a message is stored.
const SOON: Duration = Duration::from_secs(2);

/// A line of Claude Code in the session `live`.
fn line(uuid: &str, second: u32, text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"live\",\
         \"timestamp\":\"2026-05-05T10:00:{second:02}.000Z\",\"cwd\":\"/home/odalys/kite\",\"gitBranch\":\"main\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// A home directory with Claude Code's transcripts of the tests' data, and the path of a session that does not exist
/// yet.
fn agents_home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-home-odalys-kite");
    fs::create_dir_all(&folder).unwrap();
    let from = data("transcripts/claude-code/projects/-home-odalys-kite");
    for name in ["kite-a.jsonl", "a-fork.jsonl"] {
        fs::copy(from.join(name), folder.join(name)).unwrap();
    }
    let session = folder.join("live.jsonl");
    (home, session)
}

fn source(home: &Path) -> Home {
    let mut source = Home::new("webhook", "", "bank = \"x\"\nsecret_env = \"CARGO_PKG_NAME\"\n");
    let text = format!(
        "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"x:1\"\nmetrics.listen = \"127.0.0.1:1\"\n\
         [[source]]\nname = \"s\"\nplatform = \"transcripts\"\nhome = {:?}\n",
        home.display().to_string()
    );
    source.settings = types::config::Pipeline::parse(&text).unwrap().live.remove(0);
    sources::live::LiveSource::check(&source.settings).unwrap();
    source
}

#[test]
fn transcripts_tell_what_was_said_and_then_each_message_soon() {
    let (home, session) = agents_home();
    let source = source(home.path());
    let mut slowest = Duration::ZERO;
    source.pull(|wait| {
        // Twelve messages, two of them given up.
        wait(&|log| log.lines().len() >= 12);
        for at in 0..5_u32 {
            append(&session, &line(&format!("live-{at}"), at, &format!("message {at}")));
            let written = Instant::now();
            wait(&|log| log.lines().iter().any(|line| line.contains(&format!("message {at}"))));
            slowest = slowest.max(written.elapsed());
        }
        // Half a line is no message until it is whole.
        let half = line("half", 10, "the second half");
        append(&session, &half[..60]);
        append(
            &home.path().join(".claude/projects/-home-odalys-kite/kite-c.jsonl"),
            &line("other", 11, "another session"),
        );
        wait(&|log| log.lines().iter().any(|line| line.contains("another session")));
        wait(&|log| !log.lines().iter().any(|line| line.contains("second half")));
        append(&session, &half[60..]);
        wait(&|log| log.lines().iter().any(|line| line.contains("second half")));
        // A program that had no transcripts begins to write some.
        let codex = home.path().join(".codex/sessions/2026/05/04");
        fs::create_dir_all(&codex).unwrap();
        let name = "rollout-2026-05-04T12-03-00-th-b.jsonl";
        fs::copy(data("transcripts/codex/sessions/2026/05/04").join(name), codex.join(name)).unwrap();
        wait(&|log| log.lines().iter().any(|line| line.contains("Then it stays down.")));
    });
    assert!(slowest < SOON, "{slowest:?}");
    let said = source.events().len();
    // While nobody reads, one session goes on, one is cut, and one is deleted.
    append(&session, &line("later", 20, "said meanwhile"));
    fs::write(home.path().join(".claude/projects/-home-odalys-kite/kite-c.jsonl"), "").unwrap();
    fs::remove_file(home.path().join(".claude/projects/-home-odalys-kite/a-fork.jsonl")).unwrap();
    source.pull(|wait| wait(&|log| log.lines().iter().any(|line| line.contains("said meanwhile"))));
    let ids = |events: &[types::model::TurnEvent]| -> std::collections::BTreeSet<String> {
        let turns = events.iter().filter_map(|event| match event {
            types::model::TurnEvent::Turn(turn) => Some(turn.turn.clone()),
            _ => None,
        });
        turns.collect()
    };
    let events = source.events();
    assert_eq!(ids(&events).len(), ids(&events[..said]).len() + 1, "only one turn is new");
    let turn = events.iter().find_map(|event| match event {
        types::model::TurnEvent::Turn(turn) if turn.text == "said meanwhile" => Some(turn),
        _ => None,
    });
    let turn = turn.unwrap();
    let metadata = turn.metadata.as_ref().unwrap().to_json();
    assert!(turn.bank.as_str().starts_with("kite-"), "{}", turn.bank);
    for part in [r#""agent":"claude-code""#, r#""branch":"main""#, r#""directory":"/home/odalys/kite""#] {
        assert!(metadata.contains(part), "{metadata}");
    }
    let given_up = events.iter().filter(|event| matches!(event, types::model::TurnEvent::Turn(turn) if !turn.recall));
    assert_eq!(given_up.count(), 2);
}

#[test]
fn agents_are_read_once_the_user_agrees() {
    let (home, session) = agents_home();
    append(&session, &line("k", 1, &format!("the key is {}{}", "gh", "p_q7Xw2Lm9Rt4Bz8Kc1Vn6Hs3Jd5Fg0PyTaEuO")));
    let memory = tempfile::tempdir().unwrap();
    let (place, log) = (home.path().to_str().unwrap(), memory.path().join("log"));
    let log_text = log.to_str().unwrap();
    let ingest =
        |more: &[&str]| ripplemem(&[&["ingest", "agents", "--home", place, "--data", log_text], more].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let counted = ingest(&["--dry-run"]);
    let shown = text(&counted.stdout);
    for expected in
        ["13 turns in 1 bank", "programs      13: 13 claude-code", "1 GitHub token", "bank kite-", "2 claude-code"]
    {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("p_q7Xw2Lm9"), "{shown}");
    let json: Value = serde_json::from_slice(&ingest(&["--dry-run", "--json"]).stdout).unwrap();
    let bank = json["banks"].as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(json["banks"][&bank]["programs"]["claude-code"], 13);
    // Without a terminal nothing is stored unless the user says so beforehand.
    let refused = ingest(&[]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("--yes"), "{refused:?}");
    assert!(!log.exists(), "nothing was opened");
    ripplemem(&["agents", "pause", "--home", place]);
    let paused = ingest(&["--yes"]);
    assert!(!paused.status.success() && text(&paused.stderr).contains("agents resume"), "{paused:?}");
    assert!(text(&ripplemem(&["agents", "status", "--home", place]).stdout).starts_with("paused since"));
    assert!(ripplemem(&["agents", "resume", "--home", place]).status.success());
    let stored = ingest(&["--yes"]);
    assert!(stored.status.success(), "{}", text(&stored.stderr));
    let listed = text(&ripplemem(&["turns", "--bank", &bank, "--data", log_text]).stdout);
    assert!(listed.contains("the key is [key]"), "{listed}");
    // Read again, nothing is new; a project is forgotten by its bank or by its name.
    assert!(ingest(&["--yes"]).status.success());
    assert_eq!(text(&ripplemem(&["turns", "--bank", &bank, "--data", log_text]).stdout), listed);
    let forgotten = ripplemem(&["forget", "--bank", &bank, "--project", &bank, "--yes", "--data", log_text]);
    assert!(text(&forgotten.stdout).contains("13 turns deleted"), "{forgotten:?}");
    assert!(ingest(&["--yes"]).status.success());
    let left = text(&ripplemem(&["turns", "--bank", &bank, "--data", log_text]).stdout);
    assert!(!left.contains("six knots"), "{left}");
    let empty = ["ingest", "agents", "--home", memory.path().to_str().unwrap(), "--data", log_text, "--yes"];
    fails(&ripplemem(&empty), 1, &["no transcript"]);
}

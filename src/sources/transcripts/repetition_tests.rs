//! Transcripts that are read again, in other pieces, in another order, compressed, or under other names.
//!
//! In: the transcripts written by hand. Out: the same turns, once each, with their earliest time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::tests::{FOLDERS, claude_line, copied, is_without_database, of_files, read};
use crate::{AUTO, SourceSummary, tests::drain};
use types::{
    config::SourceSettings,
    model::{Turn, TurnEvent},
};

/// The turns of all files of a folder, each read alone, the last one first: by id, with the earliest time.
fn one_by_one(folder: &Path) -> BTreeMap<(String, String), (i64, String)> {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    let mut paths = Vec::new();
    files(folder, &mut paths);
    paths.sort_by(|a, b| b.cmp(a));
    let mut turns = BTreeMap::new();
    for path in paths {
        // Files that lie beside the transcripts are not recognised.
        for turn in read(AUTO, &path).map(|(turns, _)| turns).unwrap_or_default() {
            keep(&mut turns, turn);
        }
    }
    turns
}

fn keep(turns: &mut BTreeMap<(String, String), (i64, String)>, turn: Turn) {
    let time = turn.time.unix_ms;
    let kept = turns.entry((turn.bank.to_string(), turn.turn)).or_insert((time, turn.text));
    kept.0 = kept.0.min(time);
}

#[test]
fn files_that_are_read_alone_and_in_another_order_add_nothing() {
    for (name, format) in FOLDERS.iter().filter(|(name, _)| !is_without_database(name)) {
        let folder = copied(name);
        let (turns, _) = read(format, folder.path()).unwrap();
        let count = turns.len();
        let mut whole = BTreeMap::new();
        turns.into_iter().for_each(|turn| keep(&mut whole, turn));
        assert_eq!(whole.len(), count, "{name}: an id comes twice");
        assert_eq!(one_by_one(folder.path()), whole, "{name}");
    }
}

#[test]
fn a_compressed_rollout_is_the_same_as_the_plain_one() {
    let folder = copied("codex");
    let (turns, _) = read("codex", folder.path()).unwrap();
    let plain = folder.path().join("sessions/2026/05/04/rollout-2026-05-04T12-00-00-th-a.jsonl");
    let packed = zstd::encode_all(&fs::read(&plain).unwrap()[..], 3).unwrap();
    fs::write(plain.with_extension("jsonl.zst"), packed).unwrap();
    assert_eq!(read("codex", folder.path()).unwrap().0, turns, "both are there");
    fs::remove_file(&plain).unwrap();
    assert_eq!(read("codex", folder.path()).unwrap().0, turns);
    assert_eq!(read(AUTO, &plain.with_extension("jsonl.zst")).unwrap().0.len(), 4);
}

#[test]
fn a_bank_may_be_named_and_the_person_too() {
    let folder = copied("qwen-code");
    let aliases = folder.path().join("aliases.toml");
    fs::write(&aliases, "User = \"Odalys\"\n").unwrap();
    let mut settings = SourceSettings::new("qwen-code", folder.path());
    (settings.bank, settings.aliases) = ("mine/{project}".to_owned(), Some(aliases));
    let batch = drain(&mut *crate::open(&settings).unwrap(), 10);
    let TurnEvent::Turn(turn) = &batch.events[0] else { panic!("{batch:?}") };
    assert!(turn.bank.as_str().starts_with("mine/kite-") && turn.speaker == "Odalys", "{turn:?}");
}

#[test]
fn a_fork_that_began_at_the_same_time_does_not_depend_on_its_name() {
    let original =
        [claude_line("s", "u1", None, 1, "One."), claude_line("s", "u2", Some("u1"), 30, "More.")].join("\n");
    for is_marked in [false, true] {
        // A later version of Claude Code says from which session a line was forked.
        let id = if is_marked { "a" } else { "t" };
        let mark = if is_marked { ",\"forkedFrom\":{\"sessionId\":\"s\"}}" } else { "}" };
        let copy = claude_line(id, "u1", None, 1, "One.");
        let copy = format!("{}{mark}", copy.strip_suffix('}').unwrap());
        let fork = [copy, claude_line(id, "f1", Some("u1"), 9, "Fork.")].join("\n");
        for names in [["a.jsonl", "z.jsonl"], ["z.jsonl", "a.jsonl"]] {
            let (lines, _) = of_files("claude-code", &[(names[0], &original), (names[1], &fork)]);
            let fork = format!("10:00:09 User in {id}: Fork.");
            assert_eq!(lines, ["10:00:01 User in s: One.", &fork, "10:00:30 User in s: More."], "{names:?}");
        }
    }
}

#[test]
fn what_a_fork_keeps_is_not_counted_as_given_up() {
    let said = |session: &str, uuid: &str, parent: &str, second: u32, text: &str| {
        claude_line(session, uuid, Some(parent).filter(|parent| !parent.is_empty()), second, text)
    };
    let original =
        [said("s", "u1", "", 1, "One."), said("s", "u2", "u1", 2, "Metric."), said("s", "u3", "u1", 9, "Feet.")];
    let fork = [said("t", "u1", "", 1, "One."), said("t", "u2", "u1", 2, "Metric."), said("t", "f1", "u2", 20, "Go.")];
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("a.jsonl"), original.join("\n")).unwrap();
    let given_up = || {
        let mut source = crate::open(&SourceSettings::new("claude-code", folder.path())).unwrap();
        let summary = SourceSummary::of(&mut *source, |_| ()).unwrap();
        summary.banks.values().flat_map(|bank| bank.given_up.values()).sum::<u64>()
    };
    assert_eq!(given_up(), 1);
    fs::write(folder.path().join("b.jsonl"), fork.join("\n")).unwrap();
    assert_eq!(given_up(), 0);
}

#[test]
fn a_fork_of_codex_says_the_same_words_as_its_original() {
    let line = |second: u32, kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-05-04T10:00:{second:02}Z","type":"{kind}","payload":{payload}}}"#)
    };
    let meta =
        |second, id: &str| line(second, "session_meta", &format!(r#"{{"id":"{id}","cwd":"/home/odalys/kite"}}"#));
    let said =
        |second, text: &str| line(second, "event_msg", &format!(r#"{{"type":"user_message","message":"{text}"}}"#));
    let original = [meta(0, "le-a"), said(1, "Six knots."), said(10, "yes")].join("\n");
    let fork = [meta(40, "le-b"), meta(40, "le-a"), said(40, "Six knots."), said(50, "yes")].join("\n");
    let (lines, left_out) =
        of_files("codex", &[("rollout-a.jsonl", original.as_str()), ("rollout-b.jsonl", fork.as_str())]);
    let expected = ["10:00:01 User in le-a: Six knots.", "10:00:10 User in le-a: yes", "10:00:50 User in le-b: yes"];
    assert_eq!((lines, left_out.as_str()), (expected.map(str::to_owned).to_vec(), "copy 1, session record 3"));
}

#[test]
fn sessions_of_aider_in_the_same_second_are_different() {
    let session = "# aider chat started at 2026-05-04 12:00:00\n\n#### yes  \n\nok\n\n";
    let twice = format!("{session}{session}");
    let name = ".aider.chat.history.md";
    let (lines, _) = of_files("aider", &[(&format!("kite/{name}"), &twice), (&format!("reel/{name}"), session)]);
    assert_eq!(lines.len(), 6, "{lines:?}");
}

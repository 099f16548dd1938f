//! Transcripts that are damaged, or of a later version of a program.
//!
//! In: the transcripts written by hand, with records that cannot be read, fields that no reader knows, and bytes that
//! are changed at random. Out: dead letters with their place; unknown words are reported by their field; no reader
//! panics.

use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{FOLDERS, copied};
use crate::tests::drain;
use types::config::SourceSettings;

#[test]
fn records_that_cannot_be_read_are_dead_letters_with_their_place() {
    let folder = copied("claude-code-1");
    let path = folder.path().join("projects/-home-odalys-kite/old-a.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let (first, second) = whole.split_once('\n').unwrap();
    let odd = first.replace("\"The spars are of ash.\"", "5");
    let later = first.replace("\"content\":\"The spars are of ash.\"", "\"words\":\"The spars are of ash.\"");
    fs::write(&path, format!("not JSON\n{odd}\n{later}\n{second}")).unwrap();
    let mut source = crate::open(&SourceSettings::new("claude-code", &path)).unwrap();
    let batch = drain(&mut *source, 10);
    let letters: Vec<String> = batch
        .rejects
        .iter()
        .map(|letter| format!("{} {}", letter.origin.rsplit(':').next().unwrap(), letter.reason))
        .collect();
    assert!(
        letters[0].starts_with("1 expected") && letters[1].starts_with("2 message.content: a number"),
        "{letters:?}"
    );
    assert!(letters[2].starts_with("3 unsupported: message.words"), "{letters:?}");
    assert_eq!(batch.events.len(), 2, "the answer, and the end of the bank");
    assert!(batch.rejects[2].payload.contains("spars"));
}

#[cfg(feature = "opencode")]
#[test]
fn a_record_of_a_database_is_withheld_only_where_something_is_left_out() {
    let folder = copied("opencode");
    let path = folder.path().join("opencode.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute("UPDATE message SET data = '{half' WHERE id = (SELECT min(id) FROM message)", []).unwrap();
    let letters = |except: &str| {
        let mut settings = SourceSettings::new("opencode", &path);
        settings.except = Some(except.to_owned()).filter(|word| !word.is_empty()).into_iter().collect();
        drain(&mut *crate::open(&settings).unwrap(), 50).rejects
    };
    let [letter] = &letters("")[..] else { panic!("one letter is expected") };
    assert!(letter.payload.contains("{half") && !letter.reason.contains("withheld"), "{letter:?}");
    assert!(letters("kite").is_empty(), "its session is of a project that is left out");
}

/// The paths of all objects in a value.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(at.to_owned());
            fields.iter().for_each(|(name, inner)| {
                objects(inner, &format!("{at}/{}", name.replace('/', "~1")), found);
            });
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, inner)| objects(inner, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// A program's later version writes words into a field that no reader knows, at any level of a message or around it:
/// they are in a turn, or the field is reported by its name.
#[test]
fn words_of_an_unknown_field_are_stored_or_told_by_its_name() {
    const FIELD: &str = "later_field";
    // A file of each format, the line with a message, and where that line has no words of it.
    let files: [(&str, &str, usize, &[&str]); 16] = [
        ("claude-code", "projects/-home-odalys-kite/kite-a.jsonl", 1, &[]),
        ("claude-code", "projects/-home-odalys-kite/kite-a.jsonl", 7, &["/message/usage"]),
        ("codex", "sessions/2026/05/04/rollout-2026-05-04T12-00-00-th-a.jsonl", 6, &[]),
        ("codex-legacy", "sessions/2026/05/03/rollout-2026-05-03T09-00-00-le-a.jsonl", 3, &[]),
        ("gemini-cli", ".gemini/tmp/kite/chats/session-2026-05-04T10-00-aaaa.jsonl", 2, &["/content/0"]),
        ("copilot-cli", "session-state/co-a/events.jsonl", 2, &[]),
        ("qwen-code", "projects/-home-odalys-kite/chats/qw-a.jsonl", 0, &[]),
        ("pi", "sessions/--home-odalys-kite--/2026-05-04T10-00-00_pi-a.jsonl", 2, &[]),
        ("cline", "sessions/cl-a/cl-a.messages.json", usize::MAX, &["/messages/1", "/messages/2", "/origin", "/input"]),
        (
            "continue",
            "sessions/cn-a.json",
            usize::MAX,
            &[
                "/history/1",
                "/history/2",
                "/history/2/message",
                "/toolCalls/0",
                "/function",
                "/toolCallStates/0",
                "/output/0",
            ],
        ),
        ("chatgpt", "conversations-001.json", usize::MAX, &["/metadata", "/mapping", "/mapping/k1", "/mapping/k2"]),
        ("claude-ai", "conversations.json", usize::MAX, &["/account", "/attachments/0", "/input"]),
        ("open-webui", "chat-export.json", usize::MAX, &["/history", "/history/messages"]),
        ("librechat", "kite.json", usize::MAX, &["/options", "/content/2/tool_call"]),
        ("sillytavern", "chats/Aster/Branch #1.jsonl", 2, &["/extra"]),
        ("cline-extension", "tasks/1777888800000/ui_messages.json", usize::MAX, &["/1", "/2", "/5"]),
    ];
    let mut lost = Vec::new();
    for (name, file, line, without_words) in files {
        let folder = copied(name);
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let record = if line == usize::MAX { text.as_str() } else { lines[line] };
        let whole: Value = serde_json::from_str(record).unwrap();
        let mut places = Vec::new();
        objects(&whole, "", &mut places);
        let is_left_out = |at: &&String| without_words.iter().any(|part| at.ends_with(part));
        for at in places.iter().filter(|at| !is_left_out(at)) {
            let mut later = whole.clone();
            later.pointer_mut(at).unwrap()[FIELD] = json!("the lighthouse");
            let written = if line == usize::MAX {
                later.to_string()
            } else {
                let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
                lines[line] = later.to_string();
                lines.join("\n")
            };
            fs::write(&path, written).unwrap();
            let (_, format) = FOLDERS.iter().find(|(folder, _)| *folder == name).unwrap();
            let mut source = crate::open(&SourceSettings::new(format, &path)).unwrap();
            let shown = format!("{:?}", drain(&mut *source, 50));
            let unread = source.counts().unread;
            if !(shown.contains("lighthouse") || unread.keys().any(|name| name.contains(FIELD))) {
                lost.push(format!("{name} at {at:?}: {unread:?}"));
            }
        }
    }
    assert!(lost.is_empty(), "{} are lost:\n{}", lost.len(), lost.join("\n"));
}

/// All files of the folders with their formats.
fn all_files() -> Vec<(&'static str, String, Vec<u8>)> {
    fn walk(format: &'static str, folder: &Path, found: &mut Vec<(&'static str, String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(format, &path, found);
            } else {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.push((format, name, fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    for (name, format) in FOLDERS {
        walk(format, copied(name).path(), &mut found);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn damaged_files_are_read_or_rejected(seed in 0usize..1_000_000, with in "[\\PC\"{}\\[\\]:,0-9\\\\]{0,6}", cut in 0usize..40) {
        for (format, name, bytes) in all_files() {
            let mut bytes = bytes;
            let at = seed % bytes.len().max(1);
            let end = (at + cut).min(bytes.len());
            bytes.splice(at.min(end)..end, with.bytes());
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let Ok(mut source) = crate::open(&SourceSettings::new(format, path)) else { continue };
            while let Ok(Some(_)) = source.next(50) {}
        }
    }
}

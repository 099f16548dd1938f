//! Transcripts written by hand: what is read of each, and that nothing is read twice.
//!
//! In: `tests/data/transcripts`, a folder for each program or version. The expected lines were counted by hand. Out:
//! who said what, when and in which session; what is no talk, by kind.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{AUTO, SourceBatch, SourceError};
use types::{
    config::SourceSettings,
    model::{Turn, TurnEvent},
};

/// Folders with their formats.
pub(super) const FOLDERS: [(&str, &str); 23] = [
    ("claude-code", "claude-code"),
    ("claude-code-1", "claude-code"),
    ("claude-code-2", "claude-code"),
    ("codex", "codex"),
    ("codex-legacy", "codex"),
    ("gemini-cli", "gemini-cli"),
    ("gemini-cli-0.20", "gemini-cli"),
    ("copilot-cli", "copilot-cli"),
    ("opencode", "opencode"),
    ("qwen-code", "qwen-code"),
    ("pi", "pi"),
    ("cline", "cline"),
    ("cline-extension", "cline"),
    ("continue", "continue"),
    ("aider", "aider"),
    ("chatgpt", "chatgpt"),
    ("claude-ai", "claude-ai"),
    ("open-webui", "open-webui"),
    ("librechat", "librechat"),
    ("sillytavern", "sillytavern"),
    ("goose", "goose"),
    ("cursor", "cursor"),
    ("zed", "zed"),
];

/// A copy of a folder, so that it lies in no repository of git. A database is made of its SQL.
pub(super) fn copied(name: &str) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                copy(&path, &target);
            } else if path.extension().is_some_and(|ending| ending == "sql") {
                #[cfg(feature = "opencode")]
                rusqlite::Connection::open(target.with_extension(if name_of(&path) == "state" {
                    "vscdb"
                } else {
                    "db"
                }))
                .and_then(|database| database.execute_batch(&fs::read_to_string(&path).unwrap()))
                .unwrap();
            } else {
                fs::copy(&path, target).unwrap();
            }
        }
    }
    let folder = tempfile::TempDir::new().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/transcripts").join(name);
    copy(&data, folder.path());
    folder
}

#[cfg(feature = "opencode")]
fn name_of(path: &Path) -> &str {
    path.file_stem().and_then(std::ffi::OsStr::to_str).unwrap_or_default()
}

pub(super) fn is_without_database(name: &str) -> bool {
    ["opencode", "goose", "cursor", "zed"].contains(&name) && cfg!(not(feature = "opencode"))
}

/// The turns of a path, and what was left out.
pub(super) fn read(format: &str, path: &Path) -> Result<(Vec<Turn>, String), SourceError> {
    let mut source = crate::open(&SourceSettings::new(format, path))?;
    let mut batch = SourceBatch::default();
    while let Some(next) = source.next(3)? {
        batch.events.extend(next.events);
        batch.rejects.extend(next.rejects);
    }
    assert!(batch.rejects.is_empty(), "{:?}", batch.rejects);
    let turns = batch.events.into_iter().filter_map(|e| if let TurnEvent::Turn(turn) = e { Some(turn) } else { None });
    let counts = source.counts();
    assert!(counts.unread.is_empty(), "{:?}", counts.unread);
    let skipped: Vec<String> = counts.skipped_by_kind().iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    Ok((turns.collect(), skipped.join(", ")))
}

/// A turn as `HOUR SPEAKER in SESSION: TEXT`.
fn line(turn: &Turn) -> String {
    let time = turn.time.to_string();
    let session = turn.thread.as_deref().and_then(|thread| thread.split_once('/')).map_or("", |(_, session)| session);
    let text = turn.text.replace('\n', " / ");
    let given_up = turn.metadata.as_ref().is_some_and(|metadata| metadata.fields().contains_key("given_up"));
    assert_eq!(turn.recall, !given_up, "{turn:?}");
    let state = if given_up { ", given up" } else { "" };
    format!("{} {} in {session}{state}: {text}", &time[11..time.len() - 1], turn.speaker)
}

/// What is read of these files, as [`line`] has it, and what was left out.
pub(super) fn of_files(format: &str, files: &[(&str, &str)]) -> (Vec<String>, String) {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let (turns, left_out) = read(format, folder.path()).unwrap();
    (turns.iter().map(line).collect(), left_out)
}

/// A line of Claude Code with what a person typed.
pub(super) fn claude_line(session: &str, uuid: &str, parent: Option<&str>, second: u32, text: &str) -> String {
    claude_record(session, "user", uuid, parent, second, json!({ "role": "user", "content": text }))
}

fn claude_record(session: &str, kind: &str, uuid: &str, parent: Option<&str>, second: u32, message: Value) -> String {
    json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
        "timestamp": format!("2026-05-04T10:00:{second:02}.000Z"), "cwd": "/home/odalys/kite", "sessionId": session,
    })
    .to_string()
}

/// The texts of the turns of one file, and what was left out.
fn texts_of(format: &str, name: &str, content: &str) -> (Vec<String>, String) {
    let (lines, left_out) = of_files(format, &[(name, content)]);
    (lines.iter().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect(), left_out)
}

/// Checks what is read of a folder, by its format and as recognised.
fn check(name: &str, bank: &str, expected: &[&str], skipped: &str) {
    if is_without_database(name) {
        return;
    }
    let folder = copied(name);
    let (_, format) = FOLDERS.iter().find(|(folder, _)| *folder == name).unwrap();
    for format in [format, AUTO] {
        let (turns, left_out) = read(format, folder.path()).unwrap();
        assert_eq!(turns.iter().map(line).collect::<Vec<_>>(), expected, "{name} as {format}");
        assert_eq!(left_out, skipped, "{name} as {format}");
        for turn in turns {
            let is_project = turn
                .bank
                .as_str()
                .strip_prefix(bank)
                .is_some_and(|digits| digits.is_empty() || digits.len() == 7 && digits.starts_with('-'));
            assert!(is_project, "{name}: {}", turn.bank);
            let is_person = turn.speaker == "User" || turn.speaker == "Odalys";
            assert_eq!(turn.kind.unwrap().name(), if is_person { "person" } else { "assistant" });
        }
    }
}

#[test]
fn claude_code_of_today_is_read() {
    check(
        "claude-code",
        "kite",
        &[
            "10:00:00.1 User in kite-a: The kite flies at six knots, and Bram sews the tail.",
            "10:00:01.1 Claude Code in kite-a: I look at the wind.",
            "10:00:03 Claude Code in kite-a: Noted: six knots, and Bram sews the tail.",
            "10:06:00.1 User in kite-a: How long is the tail?",
            "10:06:01 User in kite-a: In metres, please.",
            "10:06:02 Claude Code in kite-a: Four metres.",
            "10:07:00 User in kite-a, given up: Take blue silk.",
            "10:07:01 Claude Code in kite-a, given up: Blue silk it is.",
            "10:08:00 User in kite-a: Take red silk.",
            "10:08:01 Claude Code in kite-a: Red silk it is.",
            "11:00:00.1 User in kite-b: Who sews the tail?",
            "11:00:01 Claude Code in kite-b: Bram does.",
        ],
        "copy 3, further part of a turn 2, hook text 1, image or file 1, interrupt 1, program's note 2, session record 4, slash command 1, subagent 2, summary 1, system text 1, thinking 2, tool call 2, tool output 2, unfinished line 1, unsupported: hologram 1",
    );
}

#[test]
fn claude_code_of_versions_1_and_2_is_read() {
    check(
        "claude-code-1",
        "kite",
        &[
            "08:00:00 User in old-a: The spars are of ash.",
            "08:00:01 Claude Code in old-a: Ash, noted.",
            "09:00:05 User in old-b: How many spars?",
            "09:00:06 Claude Code in old-b: Two.",
        ],
        "copy 2, subagent 1, summary 1",
    );
    check(
        "claude-code-2",
        "kite",
        &["07:00:00.1 User in mid-a: The line is of hemp.", "07:00:01 Claude Code in mid-a: Hemp, noted."],
        "session record 1, subagent 1",
    );
}

#[test]
fn codex_paginated_and_legacy_is_read() {
    check(
        "codex",
        "kite",
        &[
            "10:00:00.11 User in th-a: The kite flies at six knots.",
            "10:00:00.3 Codex in th-a: Six knots, noted.",
            "10:02:00 User in th-a: How fast?",
            "10:02:01 Codex in th-a: Six knots.",
            "10:03:01 User in th-b: And in a storm?",
            "10:03:02 Codex in th-b: Then it stays down.",
        ],
        "copy 3, environment 1, session record 5, subagent 2, summary 1, system text 1, thinking 1, tool call 1, tool output 1",
    );
    check(
        "codex-legacy",
        "kite",
        &[
            "07:00:01 User in le-a: The spars are of ash.",
            "07:00:03 Codex in le-a: Ash, noted.",
            "07:01:00 User in le-a, given up: Paint them green.",
            "07:01:01 Codex in le-a, given up: Green.",
            "07:02:00 User in le-a: Leave them bare.",
            "07:02:01 Codex in le-a: Bare they stay.",
            "08:00:10 User in le-b: How many?",
            "08:00:11 Codex in le-b: Two.",
        ],
        "copy 4, environment 1, session record 4, thinking 1",
    );
}

#[test]
fn gemini_cli_in_both_forms_is_read() {
    check(
        "gemini-cli",
        "kite",
        &[
            "10:00:01 User in ge-a: The kite flies at six knots.",
            "10:00:02 Gemini CLI in ge-a: I look at the wind.",
            "10:00:04 Gemini CLI in ge-a: Six knots, noted.",
            "10:01:00 User in ge-a, given up: Take blue silk.",
            "10:01:01 Gemini CLI in ge-a, given up: Blue silk it is.",
            "10:02:00 User in ge-a: Take red silk.",
            "10:02:01 Gemini CLI in ge-a: Red silk it is.",
            "10:11:00 User in ge-a: How fast?",
            "10:11:01 Gemini CLI in ge-a: Six knots.",
        ],
        "copy 4, environment 2, hook text 1, session record 7, subagent 1, system text 1, thinking 1, tool output 1",
    );
    check(
        "gemini-cli-0.20",
        "kite",
        &["09:00:00 User in ge-old: The spars are of ash.", "09:00:01 Gemini CLI in ge-old: Ash, noted."],
        "session record 1, system text 1, thinking 1",
    );
}

#[test]
fn copilot_cli_and_opencode_are_read() {
    check(
        "copilot-cli",
        "kite",
        &[
            "10:00:01 User in co-a: The kite flies at six knots.",
            "10:00:02 Copilot CLI in co-a: I look.",
            "10:00:03 Copilot CLI in co-a: Six knots, noted.",
            "10:10:01 User in co-a: Take red silk.",
            "10:10:03 Copilot CLI in co-a: Red silk it is.",
        ],
        "hook text 1, session record 3, subagent 1, system text 1, tool call 3, tool output 1",
    );
    check(
        "opencode",
        "kite",
        &[
            "10:00:00.1 User in ses_a: The kite flies at six knots.",
            "10:00:01 opencode in ses_a: Six knots, noted.",
            "10:01:40 User in ses_a, given up: Take blue silk.",
            "10:01:41 opencode in ses_a, given up: Blue.",
            "11:00:01 User in ses_b: Take red silk.",
            "11:00:02 opencode in ses_b: Red silk it is.",
        ],
        "copy 2, program's note 1, session record 1, subagent 1, summary 2, thinking 1, tool call 1",
    );
}

#[test]
fn qwen_code_and_pi_are_read() {
    check(
        "qwen-code",
        "kite",
        &[
            "10:00:00 User in qw-a: The kite flies at six knots.",
            "10:00:01 Qwen Code in qw-a: I look.",
            "10:00:03 Qwen Code in qw-a: Six knots, noted.",
            "10:01:00 User in qw-a, given up: Take blue silk.",
            "10:01:01 Qwen Code in qw-a, given up: Blue.",
            "10:02:00 User in qw-a: Take red silk.",
            "10:02:01 Qwen Code in qw-a: Red silk it is.",
        ],
        "session record 1, thinking 1, tool call 1, tool output 1",
    );
    check(
        "pi",
        "kite",
        &[
            "10:00:01 User in pi-a: The kite flies at six knots.",
            "10:00:02 Pi in pi-a: I look.",
            "10:00:04 Pi in pi-a: Six knots, noted.",
            "10:02:00 User in pi-a, given up: Take blue silk.",
            "10:02:01 Pi in pi-a, given up: Blue.",
            "10:03:00 User in pi-a: Take red silk.",
            "10:03:01 Pi in pi-a: Red silk it is.",
            "11:00:01 User in pi-b: How fast?",
            "11:00:02 Pi in pi-b: Six knots.",
        ],
        "copy 3, hook text 1, session record 4, summary 1, thinking 2, tool call 2, tool output 2",
    );
}

#[test]
fn cline_and_its_extension_are_read() {
    check(
        "cline",
        "kite",
        &[
            "10:00:00 User in cl-a: The kite flies at six knots.",
            "10:00:01 Cline in cl-a: I look.",
            "10:00:03 Cline in cl-a: Six knots, noted.",
        ],
        "thinking 1, tool call 1, tool output 1",
    );
    check(
        "cline-extension",
        "cline",
        &[
            "10:00:00 User in 1777888800000: The kite flies at six knots.",
            "10:00:03 Cline in 1777888800000: Which silk?",
            "10:00:04 User in 1777888800000: Red silk.",
            "10:00:06 Cline in 1777888800000: Red silk it is.",
        ],
        "session record 1, thinking 1, tool call 1",
    );
}

#[test]
fn continue_and_aider_are_read() {
    check(
        "continue",
        "kite",
        &[
            "10:00:00 User in cn-a: The kite flies at six knots.",
            "10:00:00.001 Continue in cn-a: I look.",
            "10:00:00.003 Continue in cn-a: Six knots, noted.",
        ],
        "summary 1, thinking 1, tool call 1",
    );
    check(
        "aider",
        "kite",
        &[
            "12:00:00 User in 2026-05-04 12:00:00: The kite flies at six knots. / Bram sews the tail.",
            "12:00:00.001 Aider in 2026-05-04 12:00:00: Six knots, and Bram sews. /  / #### A heading of the answer / > A quotation of the answer",
            "13:00:00 User in 2026-05-04 13:00:00: How fast?",
            "13:00:00.001 Aider in 2026-05-04 13:00:00: Six knots.",
        ],
        "program's note 4, slash command 1",
    );
}

#[test]
fn chatgpt_and_claude_ai_are_read() {
    check(
        "chatgpt",
        "chatgpt",
        &[
            "10:00:00.5 User in gp-a: The kite flies at six knots.",
            "10:00:04.25 ChatGPT in gp-a: Six knots, noted.",
            "10:00:50 User in gp-a, given up: Take blue silk.",
            "10:00:51 ChatGPT in gp-a, given up: Blue.",
            "10:01:40 User in gp-a: Take red silk.",
            "10:01:41 ChatGPT in gp-a: Red silk it is.",
            "11:00:00 User in gp-b: The line is of hemp.",
            "11:00:01 ChatGPT in gp-b: Hemp, noted.",
        ],
        "image or file 1, system text 1, thinking 1, tool call 1, tool output 1",
    );
    check(
        "claude-ai",
        "claude-ai",
        &[
            "10:00:00.1 User in ca-a: The kite flies at six knots.",
            "10:00:05 Claude in ca-a: Six knots, noted.",
            "10:01:00 User in ca-a: Take red silk.",
            "10:01:05 Claude in ca-a: Red silk it is.",
        ],
        "image or file 1, thinking 1, tool call 1, tool output 1",
    );
}

#[test]
fn open_webui_librechat_and_sillytavern_are_read() {
    check(
        "open-webui",
        "open-webui",
        &[
            "10:00:00 User in ow-a: The kite flies at six knots.",
            "10:00:05 Assistant in ow-a: Six knots, noted.",
            "10:00:50 User in ow-a, given up: Take blue silk.",
            "10:01:40 User in ow-a: Take red silk.",
            "10:01:45 Assistant in ow-a: Red silk it is.",
        ],
        "thinking 1",
    );
    check(
        "librechat",
        "librechat",
        &[
            "10:00:00 User in lc-a: The kite flies at six knots.",
            "10:00:05 Assistant in lc-a: Six knots, noted.",
            "10:01:00 User in lc-a, given up: Take blue silk.",
            "10:02:00 User in lc-a: Take red silk.",
            "10:02:05 Assistant in lc-a: Red silk it is.",
        ],
        "thinking 1, tool call 1",
    );
    check(
        "sillytavern",
        "Aster",
        &[
            "10:00:00 Aster in Aster/Aster - 2026-05-04: The wind is up.",
            "10:00:10 Odalys in Aster/Aster - 2026-05-04: The kite flies at six knots.",
            "10:00:20 Aster in Aster/Aster - 2026-05-04: Then let it fly.",
            "10:01:00 Aster in Aster/Branch #1: It is too much wind.",
        ],
        "copy 2, session record 2, system text 1",
    );
}

#[test]
fn goose_cursor_and_zed_are_read_as_they_are_described() {
    check(
        "goose",
        "kite",
        &[
            "10:00:00 User in 20260504_1: The kite flies at six knots.",
            "10:00:01 Goose in 20260504_1: I look.",
            "10:00:04 Goose in 20260504_1: Six knots, noted.",
        ],
        "program's note 1, thinking 1, tool call 1, tool output 1",
    );
    check(
        "cursor",
        "cursor",
        &["10:00:00 User in cu-a: The kite flies at six knots.", "10:00:09 Cursor in cu-a: Six knots, noted."],
        "tool call 1",
    );
    check(
        "zed",
        "kite",
        &[
            "10:00:00 User in ze-a: The kite flies at six knots.",
            "10:00:00.001 Zed in ze-a: Six knots, noted.",
            "11:00:00.5 User in ze-b: Take red silk.",
            "11:00:00.501 Zed in ze-b: Red silk it is.",
        ],
        "environment 2, session record 2, subagent 1, thinking 2, tool call 2",
    );
}

/// The answer of these lines of Claude Code, each with the blocks of a line.
fn answer(lines: &[Value]) -> Vec<String> {
    let record = |(at, blocks): (usize, &Value)| {
        let message = json!({ "id": "m", "role": "assistant", "content": blocks });
        claude_record("s", "assistant", &format!("a{at}"), None, 1, message)
    };
    let lines: Vec<String> = lines.iter().enumerate().map(record).collect();
    texts_of("claude-code", "s.jsonl", &lines.join("\n")).0
}

#[test]
fn an_answer_that_is_streamed_stands_there_once_and_loses_nothing() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": {} });
    let think = json!({ "type": "thinking", "thinking": "Hm." });
    for (lines, expected) in [
        (
            vec![
                json!([text("First paragraph.\n\nSecond par")]),
                json!([text("First paragraph.\n\nSecond paragraph.")]),
            ],
            "First paragraph. /  / Second paragraph.",
        ),
        (
            vec![json!([text("Step one.\n\nNow")]), json!([text("Now the second step.")])],
            "Step one. /  / Now /  / Now the second step.",
        ),
        (
            vec![json!([text("I found 3 pears")]), json!([call]), json!([text("I found 3 pears and 2 plums")])],
            "I found 3 pears /  / I found 3 pears and 2 plums",
        ),
        (
            vec![json!([text("Run it in production")]), json!([call]), json!([text("production")])],
            "Run it in production /  / production",
        ),
        // A line may repeat all blocks so far.
        (vec![json!([think]), json!([think, text("Six")]), json!([think, text("Six knots."), call])], "Six knots."),
        (vec![json!([text("Plums"), text("Plums and pears")])], "Plums /  / Plums and pears"),
    ] {
        assert_eq!(answer(&lines), [expected], "{lines:?}");
    }
}

#[test]
fn blocks_of_one_message_are_joined_whole() {
    let typed = json!({ "role": "user", "content": [{ "type": "text", "text": "Is it port 80?" }, { "type": "text", "text": "80?" }] });
    let line = claude_record("s", "user", "u", None, 1, typed);
    assert_eq!(texts_of("claude-code", "s.jsonl", &line).0, ["Is it port 80? /  / 80?"]);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "tool_use", "name": "s", "input": {} });
    let content = [text("I found 3 pears"), call, text("I found 3 pears and 2 plums"), text("plums")];
    let message = json!({
        "uuid": "1", "text": "", "sender": "assistant", "created_at": "2026-05-04T10:00:01Z", "content": content,
        "attachments": [], "files": [],
    });
    let export =
        json!([{ "uuid": "c", "name": "n", "created_at": "2026-05-04T10:00:00Z", "chat_messages": [message] }]);
    let (texts, _) = texts_of("claude-ai", "conversations.json", &export.to_string());
    assert_eq!(texts, ["I found 3 pears /  / I found 3 pears and 2 plums /  / plums"]);
}

#[test]
fn what_programs_write_in_a_persons_name_is_no_talk() {
    let typed = [
        ("Put <hook_context> in the middle; keep these words.", true),
        ("# AGENTS.md instructions should be shorter, please cut them.", true),
        ("What does <tick> mean?", true),
        ("<teammate-message teammate_id=\"a\">Done.</teammate-message>", false),
        ("<channel source=\"slack\">hi</channel>", false),
        ("<tick>10</tick>", false),
        ("Base directory for this skill: /x\n\n# Skill", false),
    ];
    let lines: Vec<String> = typed
        .iter()
        .enumerate()
        .map(|(at, (text, _))| claude_line("s", &format!("u{at}"), None, at as u32, text))
        .collect();
    let (texts, left_out) = texts_of("claude-code", "s.jsonl", &lines.join("\n"));
    let expected: Vec<&str> = typed.iter().filter(|(_, is_typed)| *is_typed).map(|(text, _)| *text).collect();
    assert_eq!(
        (texts, left_out.as_str()),
        (expected.iter().map(|text| (*text).to_owned()).collect(), "program's note 4")
    );
}

#[test]
fn what_an_editor_puts_before_a_request_is_left_out() {
    let requests = [
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n## My request for Codex:\nExplain this file",
        "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n## My request:\nWhat is wrong?\n",
        "# Context from my IDE setup: how do I turn it off?",
    ];
    let event = |(at, text): (usize, &&str)| {
        let payload = json!({ "type": "user_message", "message": text });
        json!({ "timestamp": format!("2026-05-04T10:00:{at:02}Z"), "type": "event_msg", "payload": payload })
            .to_string()
    };
    let lines: Vec<String> = requests.iter().enumerate().map(event).collect();
    let (texts, left_out) = texts_of("codex", "rollout-a.jsonl", &lines.join("\n"));
    assert_eq!(
        (texts, left_out.as_str()),
        (["Explain this file", "What is wrong?", requests[2]].map(str::to_owned).to_vec(), "environment 2",)
    );
}

#[test]
fn files_that_a_prompt_names_are_left_out() {
    let parts = [
        "See @a.md",
        "\n--- Content from referenced files ---",
        "\nContent from @a.md:\n",
        "BODY",
        "\n--- End of content ---",
    ];
    let list: Vec<Value> = parts.iter().map(|text| json!({ "text": text })).collect();
    let session = json!({ "sessionId": "g", "projectHash": "0f".repeat(32), "messages": [
        { "id": "1", "type": "user", "timestamp": "2026-05-04T10:00:00Z", "content": parts.join("\n") },
        { "id": "2", "type": "user", "timestamp": "2026-05-04T10:00:01Z", "content": list.clone() },
    ]});
    let (texts, left_out) = texts_of("gemini-cli", "chats/session-a.json", &format!("\u{feff}{session}"));
    assert_eq!((texts, left_out.as_str()), (vec!["See @a.md".to_owned(); 2], "image or file 2, session record 1"));
    let line = json!({
        "uuid": "u", "parentUuid": null, "sessionId": "q", "timestamp": "2026-05-04T10:00:00Z", "type": "user",
        "cwd": "/home/odalys/kite", "message": { "role": "user", "parts": list },
    });
    let (texts, left_out) = texts_of("qwen-code", "chats/q.jsonl", &line.to_string());
    assert_eq!((texts, left_out.as_str()), (vec!["See @a.md".to_owned()], "image or file 1"));
}

#[test]
fn small_forms_of_other_programs_are_known() {
    // A skill of Copilot CLI.
    let event = |at: u32, data: Value| {
        json!({ "type": "user.message", "id": format!("e{at}"), "timestamp": format!("2026-05-04T10:00:{at:02}Z"), "data": data })
            .to_string()
    };
    let events = [
        event(1, json!({ "content": "Six knots.", "messageId": "1" })),
        event(2, json!({ "content": "Typed.", "source": "user", "messageId": "2" })),
        event(3, json!({ "content": "A skill.", "source": "skill-x", "messageId": "3" })),
    ];
    let (texts, left_out) = texts_of("copilot-cli", "c/events.jsonl", &events.join("\n"));
    assert_eq!((texts, left_out.as_str()), (["Six knots.", "Typed."].map(str::to_owned).to_vec(), "program's note 1"));
    // Words behind a command of Aider's.
    let history = "# aider chat started at 2026-05-04 12:00:00\n\n#### /ask /etc/hosts has what?  \n\nSix.\n\n#### /ask  \n\nOk.\n\n#### /add a  \n";
    let (texts, left_out) = texts_of("aider", ".aider.chat.history.md", history);
    assert_eq!(
        (texts, left_out.as_str()),
        (["/etc/hosts has what?", "Six.", "Ok."].map(str::to_owned).to_vec(), "slash command 2")
    );
    // An answer of LibreChat's that is an error, and a picture of Continue's.
    let message = |id: &str, is_person: bool, text: &str, error: bool| json!({ "messageId": id, "text": text, "createdAt": "2026-05-04T10:00:00Z", "isCreatedByUser": is_person, "error": error });
    let chat = json!({ "conversationId": "l", "messages": [message("1", true, "Hello?", false), message("2", false, "No key.", true)] });
    let (texts, left_out) = texts_of("librechat", "l.json", &chat.to_string());
    assert_eq!((texts, left_out.as_str()), (vec!["Hello?".to_owned()], "program's note 1"));
    let content = json!([{ "type": "text", "text": "Look" }, { "type": "imageUrl", "imageUrl": { "url": "data:" } }]);
    let session = json!({ "sessionId": "c", "title": "t", "dateCreated": "1777888800000", "history": [
        { "message": { "role": "user", "content": content } },
    ]});
    let (texts, left_out) = texts_of("continue", "c.json", &session.to_string());
    assert_eq!((texts, left_out.as_str()), (vec!["Look".to_owned()], "image or file 1"));
}

#[test]
fn a_key_in_a_call_that_is_cut_is_masked_before() {
    let said = json!({ "id": "m", "role": "assistant", "content": [
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "t", "name": "Bash",
          "input": { "command": format!("psql --quiet {} postgres://ines:Tr33-h0use-Qz81@db/x", "-v a=1 ".repeat(11)) } },
    ]});
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("s.jsonl"), claude_record("s", "assistant", "a", None, 1, said)).unwrap();
    let (turns, _) = read("claude-code", folder.path()).unwrap();
    let metadata = turns[0].metadata.as_ref().unwrap().to_json();
    assert!(metadata.contains("postgres://ines:[key]@") && !metadata.contains("Tr33"), "{metadata}");
}

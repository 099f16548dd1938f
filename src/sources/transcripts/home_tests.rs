//! A home directory with the transcripts of several programs: read at once, and followed while its files change.
//!
//! The files are those of `tests/data/transcripts`, in the places in which the programs keep them.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    time::{Duration, SystemTime},
};

use super::{
    followed_home::FollowedHome,
    tests::{copied, is_without_database, read},
};
use crate::chat::{ChatItem, TranscriptMessage};
use types::{config::SourceSettings, model::EventTime};

/// A folder of the data, and where it lies in a home directory.
const PLACES: [(&str, &str); 12] = [
    ("claude-code", ".claude"),
    ("codex", ".codex"),
    ("codex-legacy", ".codex"),
    ("gemini-cli", ""),
    ("copilot-cli", ".copilot"),
    ("opencode", ".local/share/opencode"),
    ("qwen-code", ".qwen"),
    ("pi", ".pi/agent"),
    ("cline", ".cline/data"),
    ("continue", ".continue"),
    ("aider", "work"),
    ("cline-extension", ".config/Code/User/globalStorage/saoudrizwan.claude-dev"),
];

fn copy_into(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_into(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

/// A home directory with the transcripts of all these programs.
fn home() -> tempfile::TempDir {
    let home = tempfile::TempDir::new().unwrap();
    for (name, place) in PLACES {
        if !is_without_database(name) {
            copy_into(copied(name).path(), &home.path().join(place));
        }
    }
    home
}

/// A home directory that is followed, and every message that it has given.
struct Follower {
    followed: FollowedHome,
    /// The last state of each message, by its key.
    messages: BTreeMap<String, TranscriptMessage>,
}

impl Follower {
    fn new(home: &Path) -> Self {
        Self { followed: FollowedHome::new(home.to_owned(), settings(home), None).unwrap(), messages: BTreeMap::new() }
    }

    /// Reads whatever has changed, a few items at a time. Returns the texts that came.
    fn news(&mut self) -> Vec<String> {
        let later = SystemTime::now() + Duration::from_secs(60);
        let mut texts = Vec::new();
        if !self.followed.scan(later).unwrap() {
            return texts;
        }
        loop {
            let news = self.followed.read_on(3, &|| false).unwrap();
            for item in news.items {
                match item {
                    ChatItem::Transcript { message, .. } => {
                        texts.push(message.text.clone());
                        self.messages.insert(format!("{}/{}", message.agent, message.key()), *message);
                    }
                    ChatItem::Skip(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            if news.is_over {
                return texts;
            }
        }
    }

    /// The same home directory in another process.
    fn again(&mut self, home: &Path) {
        let position = self.followed.position();
        self.followed = FollowedHome::new(home.to_owned(), settings(home), Some(&position)).unwrap();
    }
}

fn settings(home: &Path) -> SourceSettings {
    SourceSettings::new("agents", home)
}

/// A line of Claude Code.
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

#[test]
fn a_home_directory_has_the_turns_of_all_its_programs() {
    let home = home();
    let (turns, _) = read("agents", home.path()).unwrap();
    let mut expected = Vec::new();
    for (name, _) in PLACES {
        if !is_without_database(name) {
            let format = super::tests::FOLDERS.iter().find(|(folder, _)| *folder == name).unwrap().1;
            expected.extend(read(format, copied(name).path()).unwrap().0);
        }
    }
    let ids = |turns: &[types::model::Turn]| {
        // Aider's messages are known by their directory, too, which is another one here.
        let id = |turn: &types::model::Turn| {
            if turn.turn.starts_with("aider/") { "aider".to_owned() } else { turn.turn.clone() }
        };
        let mut ids: Vec<String> = turns.iter().map(|turn| format!("{} {}", id(turn), turn.text)).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&turns), ids(&expected));
    assert!(turns.is_sorted_by_key(|turn| turn.time.unix_ms), "oldest first, whichever program");
    // Programs that worked in one directory share its bank; Aider's directory is where its file lies.
    let kite = turns.iter().find(|turn| turn.turn.starts_with("codex/")).unwrap();
    let of_kite = turns.iter().filter(|turn| turn.bank == kite.bank);
    let programs: std::collections::BTreeSet<&str> = of_kite.filter_map(|turn| turn.turn.split('/').next()).collect();
    assert!(programs.len() >= 7 && !programs.contains("aider"), "{programs:?}");
    let metadata = |turn: &types::model::Turn| turn.metadata.as_ref().unwrap().to_json();
    let called = turns.iter().find(|turn| turn.text == "I look at the wind." && turn.turn.starts_with("claude-code/"));
    let next = turns.iter().find(|turn| turn.text.starts_with("Noted: six knots"));
    let shown = [called, next].map(|turn| metadata(turn.unwrap()));
    assert!(shown.iter().all(|json| json.contains(r#""agent":"claude-code""#) && json.contains("kite-")), "{shown:?}");
    assert!(shown.iter().any(|json| json.contains(r#""calls":"#)), "{shown:?}");
}

#[test]
fn a_followed_home_gives_what_a_reading_gives_and_nothing_twice() {
    let home = home();
    let mut follower = Follower::new(home.path());
    follower.news();
    let (turns, _) = read("agents", home.path()).unwrap();
    let keys = |follower: &Follower| follower.messages.keys().cloned().collect::<Vec<_>>();
    let mut expected: Vec<String> = turns.iter().map(|turn| turn.turn.clone()).collect();
    expected.sort();
    assert_eq!(keys(&follower), expected);
    assert_eq!(follower.news(), [""; 0], "nothing has changed");
    follower.again(home.path());
    assert_eq!(follower.news(), [""; 0], "nor for another process");
    // Every file is written again: nothing in it is new.
    let touched = home.path().join(".claude/projects/-home-odalys-kite/kite-a.jsonl");
    let bytes = fs::read(&touched).unwrap();
    fs::write(&touched, &bytes).unwrap();
    fs::File::open(&touched).unwrap().set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    follower.news();
    assert_eq!(keys(&follower), expected);
    let before = follower.messages.clone();
    fs::File::open(&touched).unwrap().set_modified(SystemTime::now() + Duration::from_secs(9)).unwrap();
    assert_eq!(follower.news(), [""; 0]);
    assert_eq!(follower.messages, before);
}

#[test]
fn a_file_may_be_appended_to_cut_rewritten_moved_compressed_and_deleted() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = home.path().join(".claude/projects/-home-odalys-kite");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("live.jsonl");
    let mut follower = Follower::new(home.path());
    assert_eq!(follower.news(), [""; 0], "there is nothing yet");
    append(&file, &(line("a", 1, "one") + &line("b", 2, "two")));
    assert_eq!(follower.news(), ["one", "two"]);
    // A line that is being written is read once it is whole.
    let third = line("c", 3, "three");
    append(&file, &third[..40]);
    assert_eq!(follower.news(), [""; 0]);
    follower.again(home.path());
    append(&file, &third[40..]);
    let news = follower.news();
    assert!(news.ends_with(&["three".to_owned()]), "{news:?}");
    // A broken line is a dead letter once, and its neighbours are read.
    append(&file, &format!("{{\"broken\": nonsense}}\n{}", line("d", 4, "four")));
    assert!(follower.followed.scan(SystemTime::now()).unwrap());
    let found = follower.followed.read_on(100, &|| false).unwrap();
    assert!(found.is_over);
    let letters = |items: &[ChatItem]| items.iter().filter(|item| matches!(item, ChatItem::Reject { .. })).count();
    assert_eq!((found.items.len(), letters(&found.items)), (2, 1), "{:?}", found.items);
    append(&file, &line("e", 5, "five"));
    assert_eq!(follower.news(), ["five"], "the broken line is told once");
    // Cut, and then written again with other lines.
    fs::write(&file, line("a", 1, "one")).unwrap();
    assert_eq!(follower.news(), [""; 0]);
    fs::write(&file, line("a", 1, "one, put differently") + &line("f", 6, "six")).unwrap();
    assert_eq!(follower.news(), ["one, put differently", "six"]);
    // Moved, deleted, and back under another name.
    let moved = folder.join("moved.jsonl");
    fs::rename(&file, &moved).unwrap();
    assert_eq!(follower.news(), [""; 0]);
    fs::remove_file(&moved).unwrap();
    assert_eq!(follower.news(), [""; 0]);
    append(&file, &(line("a", 1, "one, put differently") + &line("g", 7, "seven")));
    assert_eq!(follower.news(), ["seven"]);

    // Codex moves a thread into its archive and compresses it there.
    let sessions = home.path().join(".codex/sessions/2026/05/04");
    let archive = home.path().join(".codex/archived_sessions");
    copy_into(&copied("codex").path().join("sessions/2026/05/04"), &sessions);
    assert_eq!(follower.news().len(), 6);
    let name = "rollout-2026-05-04T12-00-00-th-a.jsonl";
    fs::create_dir_all(&archive).unwrap();
    fs::rename(sessions.join(name), archive.join(name)).unwrap();
    assert_eq!(follower.news(), [""; 0]);
    let packed = zstd::encode_all(fs::File::open(archive.join(name)).unwrap(), 0).unwrap();
    fs::write(archive.join(format!("{name}.zst")), packed).unwrap();
    assert_eq!(follower.news(), [""; 0], "both are there");
    fs::remove_file(archive.join(name)).unwrap();
    assert_eq!(follower.news(), [""; 0]);
}

#[test]
fn a_fork_after_a_restart_is_known_by_the_files_beside_it() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = home.path().join(".claude/projects/-home-odalys-kite");
    fs::create_dir_all(&folder).unwrap();
    append(&folder.join("live.jsonl"), &(line("a", 1, "one") + &line("b", 2, "two")));
    let mut follower = Follower::new(home.path());
    follower.news();
    follower.again(home.path());
    // As version 1 did: the same ids under new times.
    append(&folder.join("resumed.jsonl"), &(line("a", 31, "one") + &line("b", 32, "two") + &line("c", 33, "three")));
    assert_eq!(follower.news(), ["three"]);
}

#[test]
fn what_is_said_in_a_pause_stays_out() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = home.path().join(".claude/projects/-home-odalys-kite");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("live.jsonl");
    let mut follower = Follower::new(home.path());
    append(&file, &line("a", 1, "before"));
    assert_eq!(follower.news(), ["before"]);
    let at = |second: u32| EventTime::parse(&format!("2026-05-05T10:00:{second:02}Z")).unwrap();
    let pauses = || crate::AgentPauses::of(home.path()).unwrap();
    pauses().pause(at(10)).unwrap();
    append(&file, &line("b", 11, "in the pause"));
    assert_eq!(follower.news(), [""; 0]);
    follower.again(home.path());
    assert_eq!(follower.news(), [""; 0], "it holds for another process, too");
    pauses().resume(at(20), false).unwrap();
    append(&file, &line("c", 21, "after"));
    assert_eq!(follower.news().last().map(String::as_str), Some("after"));
    assert!(!follower.messages.contains_key("claude-code/b"));
    let (turns, skipped) = read("agents", home.path()).unwrap();
    assert_eq!((turns.len(), skipped.as_str()), (2, "said in a pause 1"));
}

#[test]
fn a_project_with_a_mark_or_excepted_stays_out() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = home.path().join(".claude/projects/x");
    fs::create_dir_all(&folder).unwrap();
    let project = |name: &str| home.path().join("work").join(name);
    for (at, name) in ["kite", "reel", "tail"].into_iter().enumerate() {
        fs::create_dir_all(project(name)).unwrap();
        let said = line(name, at as u32, &format!("of the {name}"));
        append(&folder.join("a.jsonl"), &said.replace("/home/odalys/kite", &project(name).display().to_string()));
        // Nothing of such a project gets out, not even a record that cannot be read.
        let broken = line(name, at as u32, "x").replace("\"timestamp\"", "\"time\"");
        append(
            &folder.join(format!("{name}.jsonl")),
            &broken.replace("/home/odalys/kite", &project(name).display().to_string()),
        );
    }
    fs::write(project("reel").join(".ripplemem-ignore"), "").unwrap();
    let mut options = settings(home.path());
    options.except = vec![project("tail").display().to_string()];
    let mut source = crate::open(&options).unwrap();
    let batch = crate::tests::drain(&mut *source, 10);
    let shown = format!("{batch:?}");
    assert!(shown.contains("of the kite") && !shown.contains("reel") && !shown.contains("of the tail"), "{shown}");
    assert_eq!(batch.rejects.len(), 1, "{shown}");
    let skipped = source.counts().skipped_by_kind();
    assert_eq!((skipped["project with .ripplemem-ignore"], skipped["excepted project"]), (2, 2), "{skipped:?}");
    let mut followed = FollowedHome::new(home.path().to_owned(), options, None).unwrap();
    assert!(followed.scan(SystemTime::now()).unwrap());
    let shown = format!("{:?}", followed.read_on(100, &|| false).unwrap().items);
    assert!(
        shown.contains("of the kite") && !shown.contains("of the reel") && !shown.contains("of the tail"),
        "{shown}"
    );
}

#[test]
fn files_that_cannot_be_read_are_told_and_those_of_another_form_are_counted() {
    let home = tempfile::TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let codex = copied("codex");
    let thread = codex.path().join("sessions/2026/05/04/rollout-2026-05-04T12-00-00-th-a.jsonl");
    let packed = zstd::encode_all(fs::File::open(thread).unwrap(), 0).unwrap();
    write(".codex/sessions/rollout-cut.jsonl.zst", &packed[..packed.len() / 2]);
    write(".codex/sessions/rollout-whole.jsonl.zst", &packed);
    write(".claude/projects/x/a.jsonl", line("a", 1, "one").as_bytes());
    write(".claude/projects/x/garbage.jsonl", b"\x00\x01garbage\nnot json\n");
    write(".claude/projects/x/empty.jsonl", b"");
    write(".continue/sessions/b.json", b"{\"sessionId\": \"b\", \"history\": [broken");
    for (format, path, turns, others) in
        [("agents", "", 5, 2), ("codex", ".codex", 4, 0), ("claude-code", ".claude", 1, 1)]
    {
        let mut source = crate::open(&SourceSettings::new(format, home.path().join(path))).unwrap();
        let batch = crate::tests::drain(&mut *source, 50);
        let read = batch.events.iter().filter(|event| matches!(event, types::model::TurnEvent::Turn(_))).count();
        let skipped = source.counts().skipped_by_kind();
        assert_eq!((read, skipped.get("file of another form").copied().unwrap_or(0)), (turns, others), "{format}");
        let origins: Vec<&str> = batch.rejects.iter().map(|letter| letter.origin.as_str()).collect();
        let expected = usize::from(format != "claude-code");
        assert!(
            origins.len() == expected && origins.iter().all(|o| o.ends_with("rollout-cut.jsonl.zst")),
            "{origins:?}"
        );
    }
    let cut = home.path().join(".codex/sessions/rollout-cut.jsonl.zst");
    let read = crate::open(&SourceSettings::new("codex", cut)).and_then(|mut source| source.next(10));
    assert!(read.is_err(), "a single file that the user names is no dead letter");
}

#[test]
fn a_session_is_known_whose_first_line_is_a_picture() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = home.path().join(".claude/projects/x");
    fs::create_dir_all(&folder).unwrap();
    let picture = format!(r#"{{"type":"image","source":{{"type":"base64","data":"{}"}}}}"#, "A".repeat(200_000));
    let said = |session: &str, uuid: &str, second: u32| {
        format!(
            r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"role":"user","content":[{picture},{{"type":"text","text":"What is on it?"}}]}},"uuid":"{uuid}","timestamp":"2026-05-05T10:00:{second:02}Z","cwd":"/home/odalys/kite","sessionId":"{session}"}}"#
        )
    };
    // The fork was begun later, whatever its name is.
    fs::write(folder.join("z.jsonl"), said("first", "a", 1)).unwrap();
    fs::write(folder.join("a.jsonl"), said("second", "a", 9)).unwrap();
    for (format, path) in [("agents", ""), ("claude-code", ".claude"), (crate::AUTO, ".claude")] {
        let (turns, _) = read(format, &home.path().join(path)).unwrap();
        let threads: Vec<_> = turns.iter().filter_map(|turn| turn.thread.as_deref()).collect();
        assert_eq!(threads, ["claude-code/first"], "{format}");
    }
    assert_eq!(Follower::new(home.path()).news(), ["What is on it?"]);
}

//! A dry run counts what would come and stores nothing; the format of a file is recognised.

use std::{fs, path::Path};

use logs::{EmbeddedLog, Log, Topic};
use serde_json::{Value, json};
use types::{
    config::{Pipeline, SourceSettings},
    model::DeadLetter,
};

use super::support::{data, fails, ripplemem, write};

/// An export of Slack with what a dry run distinguishes.
fn slack(home: &Path) -> std::path::PathBuf {
    let root = home.join("export");
    fs::create_dir_all(root.join("general")).unwrap();
    fs::create_dir_all(root.join("board")).unwrap();
    let day = json!([
        {"type": "message", "ts": "1714550400.000100", "user": "U1", "text": "I moved to Lisbon, write to ann@mail.example"},
        {"type": "message", "ts": "1714550460.000100", "user": "U2", "text": "Great!", "edited": {"ts": "1714550470.000000"}},
        {"type": "message", "ts": "1714550470.000100", "user": "U2", "subtype": "channel_join", "text": "joined"},
        {"type": "message", "ts": "1714550480.000100", "user": "USLACKBOT", "subtype": "tombstone", "text": "gone"},
        {"type": "message", "ts": "1714550490.000100", "bot_id": "B1", "username": "ci", "subtype": "bot_message", "text": "built"},
        7
    ]);
    for (name, value) in [
        ("users.json", json!([{"id": "U1", "name": "ann"}, {"id": "U2", "name": "bo"}])),
        ("channels.json", json!([{"id": "C1", "name": "general"}])),
        ("groups.json", json!([{"id": "G1", "name": "board"}])),
        ("general/2024-05-01.json", day),
        (
            "board/2024-05-01.json",
            json!([{"type": "message", "ts": "1714550400.000100", "user": "U1", "text": "secret"}]),
        ),
    ] {
        write(&root.join(name), value.to_string());
    }
    root
}

fn dry_run(arguments: &[&str], home: &Path) -> (i32, String) {
    let log = home.join("log");
    let output = ripplemem(&[&["ingest"], arguments, &["--dry-run", "--data", log.to_str().unwrap()]].concat());
    assert!(!log.exists(), "a log was opened");
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), text)
}

#[test]
fn a_dry_run_says_what_would_come_and_stores_nothing() {
    let home = tempfile::tempdir().unwrap();
    let root = slack(home.path());
    let root = root.to_str().unwrap();
    let (code, text) = dry_run(&["auto", root, "--bank", "acme", "--redact", "secrets"], home.path());
    assert_eq!(code, 3, "{text}");
    for expected in [
        "3 turns in 1 bank from Slack",
        "edits         1",
        "deletions     1",
        "skipped       2: 1 private channel, 1 service message",
        "redacted      1: 1 [address]",
        "rejected      1",
        "general/2024-05-01.json:1",
        "bank acme: 3 turns",
        "from 2024-05-01T08:00:00Z to 2024-05-01T08:01:30",
        "2 speakers: ann (1), bo (1)",
        "1 bots: ci (1)",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(text.starts_with("3 turns"), "{text}");
    let (_, json) =
        dry_run(&["slack", root, "--bank", "acme/{channel}", "--include", "private", "--json"], home.path());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["turns"], &json["banks"]["acme/board"]["turns"]), (&json!(4), &json!(1)));
}

/// Talk in a language that the model does not read: the setting to write is named, before an ingest and after it.
#[test]
fn a_bank_that_the_model_does_not_read_is_told_so() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("turns.jsonl");
    let turn = |n: usize, text: &str| {
        let time = format!("2024-05-06T09:{n:02}:00Z");
        json!({"bank": "acme", "turn": n.to_string(), "speaker": "Ann", "text": text, "time": time}).to_string() + "\n"
    };
    let of = |text: &str| (0..30).map(|n| turn(n, text)).collect::<String>();
    let line = "embed.model = \"multilingual-e5-small\"";
    fs::write(&file, of("我昨天和姐姐去了市场。")).unwrap();
    let file = file.to_str().unwrap();
    let (code, text) = dry_run(&["jsonl", file], home.path());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("100 % of the turns of bank acme") && text.contains(line), "{text}");
    let (_, text) = dry_run(&["jsonl", file, "--json"], home.path());
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert!(summary["notices"][0].as_str().unwrap().contains(line), "{text}");
    fs::write(file, of("Yesterday I went to the market with my sister.")).unwrap();
    let (_, text) = dry_run(&["jsonl", file], home.path());
    assert!(!text.contains(line), "{text}");
}

#[test]
fn a_dry_run_works_for_every_format() {
    let home = tempfile::tempdir().unwrap();
    let sample = data("sample.jsonl");
    let (code, text) = dry_run(&["jsonl", sample.to_str().unwrap()], home.path());
    assert!(code == 0 && text.starts_with("239 turns in 1 bank"), "{text}");
    let chat = "[01/05/2024, 10:00:00] Ann: hello\n[13/05/2024, 10:00:00] Bo: good morning\n";
    let chat = write(&home.path().join("_chat.txt"), chat);
    let (code, text) = dry_run(&["auto", chat.to_str().unwrap(), "--bank", "b"], home.path());
    assert!(code == 0 && text.starts_with("2 turns in 1 bank") && text.contains("read as +00:00"), "{text}");
    // Values may begin with a hyphen; an option in the place of a forgotten value is refused.
    let chat = ["auto", chat.to_str().unwrap(), "--bank", "b"];
    let hyphens = ["--zone", "-05:00", "--only", "-100123,-7", "--except", "-9"];
    let (code, text) = dry_run(&[&chat[..], &hyphens].concat(), home.path());
    assert!(code == 0 && text.starts_with("0 turns") && text.contains("read as -05:00"), "{text}");
    assert!(text.contains("source.only: \"-7\" names no conversation"), "{text}");
    for option in ["--zone", "--only", "--except"] {
        let (code, text) = dry_run(&[&chat[..], &[option]].concat(), home.path());
        assert!(code == 2 && text.contains("--dry-run is an option"), "{text}");
    }
}

#[test]
fn a_wrong_format_names_the_likely_one() {
    let home = tempfile::tempdir().unwrap();
    let root = slack(home.path());
    let sample = data("sample.jsonl");
    let nothing = write(&home.path().join("notes.bin"), "\u{0}\u{1}");
    for (format, path, words) in [
        ("discord", &root, &["is not discord", "looks like slack"][..]),
        ("slack", &sample, &["is not slack", "looks like jsonl"]),
        ("auto", &nothing, &["has no known format", "jsonl, slack"]),
        ("slak", &root, &["\"slak\" is not known", "slack", "auto"]),
    ] {
        fails(&ripplemem(&["ingest", format, path.to_str().unwrap(), "--dry-run"]), 1, words);
    }
    fails(&ripplemem(&["ingest", "auto", "-", "--dry-run"]), 1, &["standard input"]);
    fails(
        &ripplemem(&["ingest", "jsonl", sample.to_str().unwrap(), "--redact", "secrets", "--dry-run"]),
        1,
        &["source.redact", "jsonl is not a chat export"],
    );
}

/// What is ingested is redacted, and a record of a private channel is not even a dead letter.
#[test]
fn an_export_is_ingested_as_its_dry_run_said() {
    let home = tempfile::tempdir().unwrap();
    let root = slack(home.path());
    write(&root.join("board/2024-05-02.json"), "[{\"ts\": \"secret\"}]");
    let toml = "version = 1\n[source]\nformat = \"auto\"\npath = \"export\"\nbank = \"acme/{channel}\"\n\
        aliases = \"aliases.toml\"\nredact = [\"secrets\", \"Lisbon\"]\n[log]\ndirectory = \"log\"\n";
    let file = write(&home.path().join("pipeline.toml"), toml);
    write(&home.path().join("aliases.toml"), "U1 = \"Ann Bell\"\n");
    let output = ripplemem(&["run", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("redacted: 1 [address], 1 [redacted]"), "{said}");
    let pipeline = Pipeline::read(&file).unwrap();
    let service = super::support::open(&pipeline);
    let answer = super::support::ask(&service, "acme/general", "Where did Ann Bell move?");
    assert!(answer.units[0].sources.contains(&"C1/1714550400.000100".to_owned()), "{:?}", answer.units[0].sources);
    assert!(answer.context.contains("Ann Bell") && answer.context.contains("[redacted]"), "{}", answer.context);
    drop(service);
    let log = EmbeddedLog::open(&pipeline.log).unwrap();
    let letters = log.read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    let letters: Vec<DeadLetter> =
        letters.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert!(letters[0].origin.ends_with("general/2024-05-01.json:1"), "{letters:?}");
}

/// Messages' database, ingested twice: the second time changes nothing.
#[test]
fn messages_database_is_ingested_as_its_dry_run_said_and_again_without_effect() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("chat.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let may = 736_250_400_i64 * 1_000_000_000;
    database
        .execute_batch(&format!(
            "CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT);
             CREATE TABLE message (ROWID INTEGER PRIMARY KEY, guid TEXT, text TEXT, handle_id INTEGER, date INTEGER,
                 is_from_me INTEGER, date_edited INTEGER, associated_message_type INTEGER, attributedBody BLOB);
             CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
             INSERT INTO handle VALUES (1, '+15550100');
             INSERT INTO message VALUES (1, 'A', 'I moved to Lisbon', 1, {may}, 0, 0, 0, NULL),
                 (2, 'B', 'Lovely', 0, {may} + 60000000000, 1, {may} + 90000000000, 0, NULL),
                 (3, 'C', 'Loved it', 0, {may} + 61000000000, 1, 0, 2000, NULL),
                 (4, 'D', NULL, 1, {may} + 62000000000, 0, 0, 0, x'00');
             INSERT INTO chat_message_join VALUES (1, 1), (1, 2), (1, 3), (1, 4);"
        ))
        .unwrap();
    let (code, text) = dry_run(&["auto", path.to_str().unwrap(), "--bank", "me"], home.path());
    assert_eq!(code, 3, "{text}");
    for expected in [
        "2 turns in 1 bank from iMessage",
        "edits         1",
        "skipped       1: 1 unsupported",
        "chat.db: message 4)",
        "+15550100 (1)",
        "Me (1)",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let pipeline = super::support::pipeline(home.path(), "");
    let mut service = super::support::open(&pipeline);
    let mut settings = SourceSettings::new("imessage", &path);
    settings.bank = "me".to_owned();
    let mut ingest = || {
        let mut source = sources::open(&settings).unwrap();
        service.ingest(&mut *source, &mut |_| {}).unwrap();
        super::support::census(&service)
    };
    let first = ingest();
    assert_eq!(ingest(), first);
    let answer = super::support::ask(&service, "me", "Where did +15550100 move?");
    assert!(answer.context.contains("Lisbon"), "{}", answer.context);
}

#[test]
fn every_pipeline_of_the_pages_about_sources_is_valid() {
    let pages = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sources")).unwrap();
    let mut found = 0;
    for page in pages.map(|page| page.unwrap().path()) {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            if block.contains("[source]") {
                Pipeline::parse(block).unwrap_or_else(|e| panic!("{}: {e}\n{block}", page.display()));
                found += 1;
            }
        }
    }
    assert!(found >= 2, "{found}");
}

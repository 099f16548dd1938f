//! Every bad input gets an error that names the place and the remedy, rejected records go to the
//! dead-letter topic, and nothing that was acknowledged is lost.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use logs::{EmbeddedLog, Log, Topic};
use models::embed::asset_paths;
use types::model::{DeadLetter, TurnEvent};

use super::support::{ask, census, data, fails, ingest, open, pipeline, ripplemem, write};

fn turn(id: &str, field: &str, value: &str) -> String {
    let mut turn = serde_json::json!({
        "bank": "b", "turn": id, "speaker": "Ann", "text": "The ferry leaves at noon", "time": "2024-05-01T10:00:00Z",
    });
    turn[field] = serde_json::from_str(value).unwrap();
    turn.to_string()
}

#[test]
fn every_rejected_line_is_a_dead_letter_with_its_place() {
    let home = tempfile::tempdir().unwrap();
    let long = format!("\"{}\"", "x".repeat((1 << 20) + 1));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (br#"{"bank": "b", "turn""#.to_vec(), "not JSON"),
        (br#"{"bank":"b","turn":"2","text":"no speaker","time":"2024-05-01T10:00:00Z"}"#.to_vec(), "speaker"),
        (turn("3", "text", "\"\"").into(), "text: empty"),
        (turn("4", "text", &long).into(), "bytes"),
        ([&b"{\"bank\":\"b\",\"turn\":\"5"[..], &[0xff, 0xfe], b"\"}"].concat(), "UTF-8"),
        (turn("6", "time", "\"2024-05-01T10:00:00\"").into(), "zone"),
        (turn("7", "time", "\"1500-05-01T10:00:00Z\"").into(), "1900"),
        (turn("8", "time", "\"9999-05-01T10:00:00Z\"").into(), "1900"),
        (turn("9", "bank", "\"../etc\"").into(), "bank"),
        (turn("10", "time", "\"20240501T100000Z\"").into(), "RFC 3339"),
        (turn("10", "speaker", "\"Ann\"").replacen('{', "{\"bank\":\"c\",", 1).into(), "bank: is given twice"),
        (
            turn("11", "attachments", &format!(r#"[{{"kind": "{}", "caption": "a map"}}]"#, "x".repeat(300))).into(),
            "256",
        ),
        (
            turn("12", "attachments", &format!("[{}]", vec![r#"{"url": "a"}"#; 101].join(","))).into(),
            "101, more than 100",
        ),
        (turn("14", &format!("field {}", "x".repeat(20_000)), "1").into(), "unknown field"),
        (turn("10", "txt", "\"typo\"").into(), "txt"),
        (b"[1, 2]".to_vec(), "object"),
    ];
    let mut file = turn("good", "speaker", "\"Bo\"").into_bytes();
    for (line, _) in &cases {
        file.push(b'\n');
        file.extend_from_slice(line);
    }
    let path = write(&home.path().join("turns.jsonl"), file);
    let settings = pipeline(home.path(), "");
    let toml = write(&home.path().join("p.toml"), toml::to_string(&settings).unwrap());
    let output = ripplemem(&["ingest", "jsonl", path.to_str().unwrap(), "--pipeline", toml.to_str().unwrap()]);
    fails(&output, 3, &["16 records were rejected"]);

    let log = EmbeddedLog::open(&settings.log).unwrap();
    let letters: Vec<DeadLetter> = log
        .read(Topic::DeadLetters, 0, 0, 100)
        .unwrap()
        .records
        .iter()
        .map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap())
        .collect();
    assert_eq!(letters.len(), cases.len());
    for (i, (letter, (_, reason))) in letters.iter().zip(&cases).enumerate() {
        assert!(letter.origin.ends_with(&format!("turns.jsonl:{}", i + 2)), "{}", letter.origin);
        assert!(letter.reason.contains(reason), "{:?} does not say {reason:?}", letter.reason);
    }
    drop(log);
    let service = open(&settings);
    assert_eq!(ask(&service, "b", "When does the ferry leave?").units[0].sources, ["good"]);
}

#[test]
fn questions_that_cannot_be_asked() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    ingest(&mut open(&settings), &data("sample.jsonl"));
    let toml = write(&home.path().join("p.toml"), toml::to_string(&settings).unwrap());
    let asked = |question: &str, bank: &str| {
        ripplemem(&["ask", question, "--bank", bank, "--pipeline", toml.to_str().unwrap()])
    };
    let unknown = asked("Who sings?", "nobody");
    let (shown, said) = (String::from_utf8(unknown.stdout).unwrap(), String::from_utf8(unknown.stderr).unwrap());
    assert!(unknown.status.success(), "{said}");
    assert_eq!(shown, "Nothing in memory supports this question (bank nobody holds nothing yet).\n");
    assert!(said.contains("bank nobody: it holds nothing") && said.contains("check its name"), "{said}");
    fails(&asked("  ", "sample/harbour"), 1, &["question", "empty"]);
    fails(&asked("Who sings?", "a//b"), 1, &["bank", "a//b", "segments"]);
    fails(
        &ripplemem(&["ask", "Who?", "--bank", "b", "--at", "noon", "--pipeline", toml.to_str().unwrap()]),
        1,
        &["noon"],
    );
    let empty = tempfile::tempdir().unwrap();
    let first = ripplemem(&["ask", "Who?", "--bank", "b", "--data", empty.path().to_str().unwrap()]);
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(first.status.success() && said.contains("bank b: it holds nothing"), "{said}");
}

#[test]
fn sources_that_cannot_be_read() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("log");
    let ingest = |format: &str, path: &Path| {
        ripplemem(&["ingest", format, path.to_str().unwrap(), "--data", data.to_str().unwrap()])
    };
    fails(&ingest("jsonl", &home.path().join("none.jsonl")), 1, &["none.jsonl"]);
    fails(&ingest("csv", &home.path().join("none.jsonl")), 1, &["csv", "jsonl", "telegram"]);
    let nothing = write(&home.path().join("nothing.json"), "{\"chats\": 3}");
    fails(&ingest("telegram", &nothing), 1, &["nothing.json:1:1", "telegram", "name such an export"]);
}

#[test]
fn a_second_writer_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    let service = open(&settings);
    let output = ripplemem(&["digest", "--data", settings.log.directory.to_str().unwrap()]);
    fails(&output, 1, &[settings.log.directory.to_str().unwrap(), "process"]);
    drop(service);
    assert!(ripplemem(&["digest", "--data", settings.log.directory.to_str().unwrap()]).status.success());
}

/// A missing model, then a damaged one.
#[test]
fn a_model_that_cannot_be_loaded() {
    let home = tempfile::tempdir().unwrap();
    let name = "all-MiniLM-L6-v2-int8";
    let found = asset_paths::model_directory(&pipeline(home.path(), "").embed, name).unwrap();
    let models = home.path().join("models");
    fs::create_dir_all(models.join(name)).unwrap();
    let sample = data("sample.jsonl");
    let run = |log: &str| {
        let text = format!(
            "version = 1\n[embed]\nmodels_directory = {models:?}\n[log]\ndirectory = \"{log}\"\n[source]\nformat = \"jsonl\"\npath = {sample:?}\n"
        );
        let toml = write(&home.path().join("p.toml"), text);
        (ripplemem(&["validate", toml.to_str().unwrap()]), ripplemem(&["run", toml.to_str().unwrap()]))
    };
    let (checked, ran) = run("log");
    fails(&checked, 1, &["ripplemem setup", models.to_str().unwrap()]);
    fails(&ran, 1, &["ripplemem setup", models.to_str().unwrap()]);
    for file in fs::read_dir(&found).unwrap().map(|f| f.unwrap().path()) {
        fs::copy(&file, models.join(name).join(file.file_name().unwrap())).unwrap();
    }
    let model = models.join(name).join("model.onnx");
    let whole = fs::read(&model).unwrap();
    fs::write(&model, &whole[..whole.len() / 2]).unwrap();
    let (checked, ran) = run("log");
    fails(&checked, 1, &[model.to_str().unwrap(), "ripplemem setup"]);
    fails(&ran, 1, &[model.to_str().unwrap()]);
    // Turns acknowledged before the model failed are extracted once the model is whole again.
    fs::write(&model, &whole).unwrap();
    let (_, ran) = run("log");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A write that the disk refuses. `ulimit -f` makes writes fail as on a full disk.
#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "embed.read_turns = 8");
    let toml = write(&home.path().join("p.toml"), toml::to_string(&settings).unwrap());
    let sample = data("sample.jsonl");
    let limited = |kib: u64| {
        Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &kib.to_string(), env!("CARGO_BIN_EXE_ripplemem")])
            .args(["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", toml.to_str().unwrap()])
            .output()
            .unwrap()
    };
    let mut refused = 0;
    for kib in [64, 256, 512, 1024] {
        let output = limited(kib);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        if !output.status.success() {
            refused += 1;
            fails(&output, 1, &[settings.log.directory.to_str().unwrap()]);
        }
    }
    assert!(refused > 0, "no limit was reached");
    let calm = tempfile::tempdir().unwrap();
    let mut expected = open(&pipeline(calm.path(), ""));
    ingest(&mut expected, &sample);
    let mut service = open(&settings);
    ingest(&mut service, &sample);
    assert_eq!(census(&service), census(&expected));
}

/// A log that lost its tail is refused with the name of its directory, never opened silently.
#[test]
fn a_truncated_log_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let mut settings = pipeline(home.path(), "");
    settings.log.fsync = types::config::FsyncPolicy::Commit;
    ingest(&mut open(&settings), &data("sample.jsonl"));
    let mut files = Vec::new();
    let mut directories = vec![settings.log.directory.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    // Truncate the journal inside its data, not in its preallocated zeros.
    let journal = files.iter().find(|f| f.extension().is_some_and(|e| e == "jnl")).expect("a journal");
    let bytes = fs::read(journal).unwrap();
    let end = bytes.iter().rposition(|b| *b != 0).unwrap();
    fs::write(journal, &bytes[..end - end / 4]).unwrap();
    let output = ripplemem(&["digest", "--data", settings.log.directory.to_str().unwrap()]);
    fails(&output, 1, &[settings.log.directory.to_str().unwrap()]);
}

/// A source reads longer lines than the largest turn: the error is about the turn, at its line.
#[test]
fn a_turn_with_an_attachment_of_five_megabytes_is_refused_at_its_line() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    let large = TurnEvent::from_json(turn("1", "attachments", &large_address(5 << 20)).as_bytes()).unwrap_err();
    assert!(large.contains("attachments.url") && large.contains("8192"), "{large}");
    // Each field fits, but not all of them together.
    let escaped = format!(r#"{{"url": "{}"}}"#, r"\u0001".repeat(8_192));
    let many = format!("[{}]", vec![escaped.as_str(); 90].join(","));
    let large = TurnEvent::from_json(turn("1", "attachments", &many).as_bytes()).unwrap_err();
    assert!(large.contains("bytes of JSON, more than 2097152"), "{large}");
    let file = [turn("2", "speaker", "\"Bo\""), turn("1", "attachments", &large_address(900_000))].join("\n");
    let path = write(&home.path().join("turns.jsonl"), file);
    let mut service = open(&settings);
    assert_eq!(ingest(&mut service, &path).rejects, 1);
    let letter = &letters(service.log())[0];
    assert!(letter.origin.ends_with("turns.jsonl:2") && letter.reason.contains("attachments.url"), "{letter:?}");
}

fn large_address(bytes: usize) -> String {
    format!(r#"[{{"kind": "image", "url": "{}"}}]"#, "x".repeat(bytes))
}

fn letters(log: &dyn Log) -> Vec<DeadLetter> {
    let records = log.read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    records.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect()
}

/// Sixteen large turns of one window become separate units, since no record could hold them as one.
#[test]
fn a_window_of_large_turns_is_stored_in_several_records() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "extract.unit_turns = 16\nwindow.turns = 16\nwindow.overlap = 0");
    let say = |n: usize, text: &str| {
        let turn = serde_json::json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": text,
            "time": format!("2024-05-06T09:{n:02}:00Z"), "session": "s"});
        TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
    };
    let text = format!("The ferry leaves at noon {}", "\u{1}".repeat(60_000));
    let mut events: Vec<_> = (0..16).map(|n| say(n, &text)).collect();
    events.extend((16..32).map(|n| say(n, "The red kayak is stored in the boathouse")));
    let mut service = open(&settings);
    service.log().append_turns(&events).unwrap();
    service.catch_up().unwrap();
    assert!(letters(service.log()).is_empty());
    let records = service.log().read(Topic::Memory, 0, 0, 1_000).unwrap().records;
    assert!(records.iter().all(|record| record.value.as_ref().is_none_or(|value| value.len() <= 8 << 20)));
    for _ in 0..2 {
        assert_eq!(census(&service).units, 17);
        assert_eq!(ask(&service, "b", "Where is the kayak?").units[0].sources[0], "16");
        // The same turns, delivered again, change nothing.
        service.log().append_turns(&events[..16]).unwrap();
        service.catch_up().unwrap();
        assert_eq!(census(&service).units, 17);
        drop(service);
        service = open(&settings);
    }
}

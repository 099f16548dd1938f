//! Replays of an embedded log to Parquet, read back by pyarrow.

use std::path::Path;

use logs::{LogRecord, Topic};
use types::model::{EventTime, MemoryRecord};

use super::support::{Python, data, fails, ingest, lines, open, pipeline, ripplemem, rows, write};

fn replay(home: &Path, more: &[&str]) -> String {
    let (data, to) = (home.join("log"), home.join("tables"));
    let arguments = ["replay", "--data", data.to_str().unwrap(), "--to", to.to_str().unwrap()];
    let output = ripplemem(&[&arguments[..], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pyarrow_reads_a_replayed_log() {
    let Some(python) = Python::with("pyarrow", "replay::pyarrow_reads_a_replayed_log") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "");
    let mut service = open(&settings);
    ingest(&mut service, &data("sample.jsonl"));
    drop(service);
    let told = replay(home.path(), &[]);
    assert!(told.contains("253 records read, 1 files more, 253 rows in 1 files in all; goes on at 0:253"), "{told}");

    let mut service = open(&settings);
    let more = write(&home.path().join("more.jsonl"), lines("a/b", "s", &[("1", "Ann", "I moved to Lisbon.")]));
    ingest(&mut service, &more);
    let turns = service.log().read(Topic::Turns, 0, 0, usize::MAX).unwrap().records;
    let memory = service.log().read(Topic::Memory, 0, 0, usize::MAX).unwrap().records;
    drop(service);
    let told = replay(home.path(), &[]);
    assert!(told.contains("2 records read, 1 files more, 255 rows in 2 files in all"), "{told}");
    let tables = home.path().join("tables");
    let read = rows(&python, tables.join("turns").to_str().unwrap());
    assert_eq!(read.len(), turns.len());
    for (row, record) in read.iter().zip(&turns) {
        let value: serde_json::Value = serde_json::from_slice(record.value.as_deref().unwrap()).unwrap();
        for name in ["type", "bank", "turn", "speaker", "text", "session", "thread", "reply_to"] {
            assert_eq!(row[name], value[name], "{name}");
        }
        let hex: String = record.value.as_deref().unwrap().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!((row["offset"].as_u64(), row["value"].as_str()), (Some(record.offset), Some(hex.as_str())));
        let moment = |text: &serde_json::Value| EventTime::parse(text.as_str().unwrap()).unwrap().unix_ms;
        assert_eq!(moment(&row["timestamp"]), record.append_ms);
        if value["type"] == "turn" {
            assert_eq!(moment(&row["time"]), moment(&value["time"]));
        }
    }

    // A directory for each bank, and the bank in each row: in Hive's layout a reader would take digits for a number.
    let by_bank = home.path().join("by-bank");
    let to = ["--to", by_bank.to_str().unwrap(), "--by-bank", "--data", settings.log.directory.to_str().unwrap()];
    for topic in ["turns", "memory"] {
        assert!(ripplemem(&[&["replay", "--topic", topic], &to[..]].concat()).status.success());
    }
    let banks = |rows: &[serde_json::Value]| rows.iter().filter(|row| row["bank"] == "a/b").count();
    let read = rows(&python, by_bank.join("turns").to_str().unwrap());
    assert_eq!((read.len(), banks(&read)), (255, 2));
    let read = rows(&python, by_bank.join("memory").to_str().unwrap());
    assert_eq!((read.len(), banks(&read)), (memory.len(), 1));
    let units: u64 = read.iter().map(|row| row["units"].as_u64().unwrap_or_default()).sum();
    let of = |record: &LogRecord| serde_json::from_slice::<MemoryRecord>(record.value.as_ref()?).ok();
    assert_eq!(units, memory.iter().filter_map(of).map(|record| record.units.len() as u64).sum::<u64>());
    assert!(units > 0);
}

#[test]
fn a_replay_begins_at_the_requested_point() {
    let home = tempfile::tempdir().unwrap();
    let settings = pipeline(home.path(), "log.partitions = 2");
    let mut service = open(&settings);
    ingest(&mut service, &data("sample.jsonl"));
    std::thread::sleep(std::time::Duration::from_millis(5));
    let now = jiff::Timestamp::now().to_string();
    let more = write(&home.path().join("more.jsonl"), lines("sample/harbour", "s", &[("x", "Ann", "I am in Lisbon.")]));
    ingest(&mut service, &more);
    drop(service);
    let file = write(&home.path().join("p.toml"), "version = 1\nlog.directory = \"log\"\nlog.partitions = 2\n");
    let run = |to: &str, more: &[&str]| {
        let to = home.path().join(to);
        let arguments = ["replay", "--pipeline", file.to_str().unwrap(), "--to", to.to_str().unwrap()];
        ripplemem(&[&arguments[..], more].concat())
    };
    let told = |to: &str, more: &[&str]| {
        let output = run(to, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told("all", &["--from", "earliest"]).contains(" 255 records read"));
    assert!(told("offset", &["--from", "250"]).contains(" 5 records read"));
    assert!(told("time", &["--from", &now]).contains(" 2 records read"));
    assert!(told("time", &[]).contains(" 0 records read"));
    let one = ["0", "1"].map(|p| told(p, &["--partition", p]));
    assert!(one.iter().any(|t| t.contains(" 0 records read")) && one.iter().any(|t| t.contains(" 255 records")));
    fails(&run("all", &["--from", "250"]), 1, &["a replay from earliest", "leave --from out"]);
    fails(&run("new", &["--from", "yesterday"]), 1, &["\"yesterday\"", "earliest, an offset, or a time"]);
    fails(&run("new", &["--partition", "2"]), 1, &["no partition 2", "it has 2"]);
    fails(&run("new", &["--topic", "answers"]), 1, &["answers", "turns, memory, dead-letters"]);
    fails(&run("p.toml", &[]), 1, &["p.toml", "creating the directory"]);
    let memory = run("all", &["--topic", "memory"]);
    assert!(String::from_utf8_lossy(&memory.stderr).contains("earlier versions may be gone"));
}

//! A bank that moves from one log into another answers as it would have in the first.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use erasure::{RetentionRunner, forget_turns};
use logs::{Log, Topic, partition_of};
use memory::index::GraphCensus;
use ripplemem::{ImportReport, PipelineDriver, TransferError};
use snapshots::AsOf;
use types::{
    config::{Pipeline, SourceSettings},
    model::{Bank, Question, TurnEvent},
};

use super::{
    broker_process::Broker,
    kafka::{Home, turn, wait},
    oracle::Dice,
    support::{ask, census, data, fails, kill_rounds, lines, open, pipeline, ripplemem, write},
};

pub(crate) const BANK: &str = "sample/harbour";

/// The events of the sample, in order.
pub(crate) fn sample() -> Vec<TurnEvent> {
    let mut source = sources::open(&SourceSettings::new("jsonl", data("sample.jsonl"))).unwrap();
    std::iter::from_fn(|| source.next(1_000).unwrap()).flat_map(|batch| batch.events).collect()
}

pub(crate) fn events(text: &str) -> Vec<TurnEvent> {
    text.lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect()
}

/// Ingests events in small batches, as a service reads them.
pub(crate) fn feed(service: &mut PipelineDriver, events: &[TurnEvent]) {
    for some in events.chunks(16) {
        service.log().append_turns(some).unwrap();
        service.catch_up().unwrap();
    }
}

fn bank() -> Bank {
    Bank::parse(BANK).unwrap()
}

fn export(from: &Pipeline, to: &Path) {
    ripplemem::export(from, &bank(), to, &mut |_| {}).unwrap();
}

fn import(to: &Pipeline, from: &Path) -> Result<ImportReport, TransferError> {
    ripplemem::import(to, from, &mut |_| {})
}

fn of_bank(service: &PipelineDriver) -> GraphCensus {
    service.replica().digest(Some(&bank())).unwrap().value
}

/// The deletion of a turn.
fn deletion(turn: &str) -> Vec<TurnEvent> {
    events(&format!(r#"{{"type": "deletion", "bank": "{BANK}", "turn": "{turn}"}}"#))
}

/// A history is split at a point, and the rest is ingested on both sides. The second side has
/// another number of partitions, another bank, and restarts from snapshots.
#[test]
fn a_moved_bank_equals_the_original_after_the_same_turns() {
    let all = sample();
    for (round, split) in [7, 40, 133, all.len()].into_iter().enumerate() {
        let (before, after) = all.split_at(split);
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = pipeline(here.path(), "");
        let mut second = pipeline(there.path(), "log.partitions = 3");
        second.snapshot.directory = there.path().join("snapshots").to_string_lossy().into_owned();
        feed(&mut open(&first), before);
        let mut service = open(&second);
        let other = lines("other", "s", &[("1", "Ann", "The red kayak is stored in the boathouse")]);
        feed(&mut service, &events(&other));
        service.replica().snapshot().unwrap().unwrap();
        drop(service);

        let file = here.path().join(if round % 2 == 0 { "bank.jsonl" } else { "bank.jsonl.zst" });
        export(&first, &file);
        let done = import(&second, &file).unwrap();
        assert_eq!(done.digest, done.exported, "split at {split}");
        assert!(done.written > 0 && done.already_there == 0);
        // A second import writes nothing, nor does one into the original log.
        for (place, expected) in [(&second, done.written), (&first, done.written)] {
            let again = import(place, &file).unwrap();
            assert_eq!((again.written, again.already_there), (0, expected), "split at {split}");
        }

        let mut first = open(&first);
        let mut moved = open(&second);
        assert_eq!(of_bank(&moved), of_bank(&first), "split at {split}");
        feed(&mut moved, before);
        assert_eq!(of_bank(&moved), of_bank(&first), "split at {split}, ingested again");
        for some in after.chunks(60) {
            feed(&mut first, some);
            feed(&mut moved, some);
            assert_eq!(of_bank(&moved), of_bank(&first), "split at {split}");
            moved.replica().snapshot().unwrap();
            drop(moved);
            moved = open(&second);
        }
        let deletion = deletion("h1-03");
        let before_deletion = of_bank(&first);
        feed(&mut first, &deletion);
        feed(&mut moved, &deletion);
        assert_ne!(of_bank(&first), before_deletion);
        assert_eq!(of_bank(&moved), of_bank(&first), "split at {split}, a deleted turn");
        assert_eq!(ask(&moved, "other", "Where is the kayak?").units.len(), 1);
        let (whole, restored) = (census(&moved), second.clone());
        moved.replica().snapshot().unwrap();
        drop(moved);
        assert_eq!(census(&open(&restored)), whole, "the snapshots of the target hold it");
    }
}

/// Offsets of another log's turns do not order turns here.
#[test]
fn old_turns_that_arrive_after_the_move_open_windows_that_stay_open() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (pipeline(here.path(), ""), pipeline(there.path(), ""));
    let say = |turn: &str, session: &str, time: &str| {
        format!(
            r#"{{"bank": "{BANK}", "turn": "{turn}", "speaker": "Ann", "text": "Boat {turn} lies in harbour {session}",
            "time": "{time}", "session": "{session}"}}"#
        )
        .replace('\n', " ")
    };
    let mut service = open(&first);
    let others: Vec<(String, String)> =
        (0..40).map(|n| (n.to_string(), format!("Number {n} is a harbour of blue boats"))).collect();
    let others: Vec<_> = others.iter().map(|(turn, text)| (turn.as_str(), "Bo", text.as_str())).collect();
    feed(&mut service, &events(&lines("other", "s", &others)));
    feed(&mut service, &events(&say("1", "new", "2024-05-01T10:00:00Z")));
    drop(service);
    let file = here.path().join("bank.jsonl");
    export(&first, &file);
    import(&second, &file).unwrap();
    let later = [say("2", "old", "2024-04-01T10:00:00Z"), say("3", "old", "2024-04-01T10:05:00Z")];
    let mut first = open(&first);
    for line in &later {
        feed(&mut first, &events(line));
        // Opened again, so that the windows are restored from the records.
        feed(&mut open(&second), &events(line));
    }
    let end = format!(r#"{{"type": "session_end", "bank": "{BANK}", "session": "old"}}"#);
    feed(&mut first, &events(&end));
    let mut second = open(&second);
    feed(&mut second, &events(&end));
    assert_eq!(of_bank(&second), of_bank(&first));
}

/// For rules of retention and for answers about the past.
#[test]
fn what_was_imported_is_older_than_what_the_log_took_and_counts_from_the_import_on() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = pipeline(here.path(), "");
    let mut second = pipeline(there.path(), "[[retention]]\nbank = \"*\"\nkeep = { turns = 1 }\n");
    second.snapshot.directory = there.path().join("snapshots").to_string_lossy().into_owned();
    let said = ["1", "2", "3"].map(|turn| (turn, "Ann", "The red kayak lies in the boathouse."));
    feed(&mut open(&first), &events(&lines(BANK, "s", &said)));
    let file = here.path().join("bank.jsonl");
    export(&first, &file);
    import(&second, &file).unwrap();
    let mut service = open(&second);
    // Said before the others, and stored after them.
    let last = lines(BANK, "t", &[("4", "Bo", "The oars are in the loft.")]).replace("2024-05-", "2024-04-");
    feed(&mut service, &events(&last));
    let gone = RetentionRunner::of(&second, service.log()).scan(0).unwrap();
    let named: Vec<&str> =
        gone.outlived.iter().flat_map(|of| &of.by_rule).flat_map(|(_, turns)| turns).map(|t| &**t).collect();
    assert_eq!(named, ["1", "2", "3"]);

    service.replica().snapshot().unwrap();
    let then = AsOf::Offset(service.log().end(Topic::Memory, 0).unwrap() - 1);
    std::thread::sleep(Duration::from_millis(3));
    forget_turns(service.log(), &second.forget, &bank(), ["1".to_owned()]).unwrap();
    service.catch_up().unwrap();
    let asked = service.ask_as_of(&Question::new(bank(), "Where is the red kayak?"), then).unwrap();
    assert_eq!(asked.forgotten, Some(1));
}

/// The error names the line.
#[test]
fn an_invalid_file_is_refused_before_anything_is_written() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (pipeline(here.path(), ""), pipeline(there.path(), ""));
    feed(&mut open(&first), &sample());
    let file = here.path().join("bank.jsonl");
    export(&first, &file);
    let text = fs::read_to_string(&file).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    let last = rows.len();
    let empty = |pipeline: &Pipeline| assert_eq!(open(pipeline).log().end(Topic::Memory, 0).unwrap(), 0);
    let refused = |text: &str, line: usize, words: &[&str]| {
        let damaged = write(&here.path().join("damaged.jsonl"), text);
        let error = import(&second, &damaged).unwrap_err().to_string();
        assert!(error.contains(&format!("damaged.jsonl, line {line}: ")), "{error}");
        for word in words {
            assert!(error.contains(word), "{word:?} is not in: {error}");
        }
        empty(&second);
    };
    let joined = |rows: &[&str]| rows.join("\n") + "\n";
    refused("", 0, &["not the header"]);
    refused("{\"bank\": \"b\"}\n", 1, &["not the header", "ripplemem export"]);
    refused(&text.replacen("\"version\":1", "\"version\":2", 1), 1, &["version 2", "this build reads 1"]);
    refused(&text.replacen("\"schema\":1", "\"schema\":9", 1), 1, &["schema 9"]);
    refused(&joined(&rows[..last - 1]), last, &["cut off", "export again"]);
    refused(&text[..text.len() / 2], text[..text.len() / 2].lines().count(), &["cut off"]);
    refused(&joined(&[&rows[..2], &rows[3..]].concat()), last - 1, &["have changed since they were written"]);
    refused(&joined(&[&rows[..], &rows[1..2]].concat()), last + 1, &["after the seal"]);
    refused(&text.replacen("Marta", "Marty", 1), last, &["have changed since they were written"]);
    refused(&text.replacen("\"turns\":", "\"turn\":", 1), 2, &["not a line of an export"]);
    refused(&text.replacen("\"window\":", "\"widow\":", 1), 2, &["not a line of an export"]);

    // A sealed file whose records no memory could read.
    let sealed = |at: usize, change: &dyn Fn(&mut serde_json::Value)| {
        let mut rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        let mut line: serde_json::Value = serde_json::from_str(&rows[at]).unwrap();
        change(&mut line);
        rows[at] = line.to_string();
        let mut seal: serde_json::Value = serde_json::from_str(&rows.pop().unwrap()).unwrap();
        let text = rows.join("\n") + "\n";
        seal["blake3"] = blake3::hash(text.as_bytes()).to_hex().as_str().into();
        // Only the seal begins with its number of records.
        let (records, digest, hash) = (&seal["records"], &seal["digest"], &seal["blake3"]);
        format!("{text}{{\"records\":{records},\"digest\":{digest},\"blake3\":{hash}}}\n")
    };
    let with_units = |row: &&str| row.contains("\"restatement\"");
    let at = rows.iter().position(with_units).unwrap();
    type Change<'c> = &'c dyn Fn(&mut serde_json::Value);
    let spoiled: [(usize, Change<'_>, usize, &str); 8] = [
        (at, &|line| line["value"]["units"][0]["vector"] = "AACAPwAAgD8=".into(), at + 1, "a vector of 2 components"),
        (at, &|line| line["value"]["model"]["hash"] = "other".into(), at + 1, "vectors of model fixed (other)"),
        (0, &|line| line["model"] = serde_json::Value::Null, at + 1, "the header names no model"),
        (at, &|line| line["value"]["schema"] = 9.into(), at + 1, "schema 9"),
        (at, &|line| line["value"]["bank"] = "other".into(), at + 1, "a bank other than"),
        (at, &|line| line["value"]["turns"][0]["bank"] = "other".into(), at + 1, "a turn of bank other"),
        (at, &|line| line["key"]["window"]["start"] = 99_999.into(), at + 1, "different windows"),
        (at, &|line| line["key"]["part"] = serde_json::Value::Null, at + 1, "not a line of an export"),
    ];
    for (row, change, line, word) in spoiled {
        refused(&sealed(row, change), line, &[word]);
    }
    let again: serde_json::Value = serde_json::from_str(rows[at]).unwrap();
    refused(&sealed(at + 1, &|line| *line = again.clone()), at + 2, &["a second record of the same key"]);

    // Compressed: a changed byte, and a missing end.
    let zst = here.path().join("bank.jsonl.zst");
    export(&first, &zst);
    let bytes = fs::read(&zst).unwrap();
    assert!(bytes.len() < text.len());
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 0x10;
    for bytes in [&changed[..], &bytes[..bytes.len() / 2]] {
        let damaged = write(&here.path().join("damaged.jsonl.zst"), bytes);
        let error = import(&second, &damaged).unwrap_err().to_string();
        assert!(error.contains("damaged.jsonl.zst, line "), "{error}");
        empty(&second);
    }

    // Another model than the pipeline names.
    let other = "embed.model = \"other\"\n[embed.models.other]\nrunner = \"fixed\"\nturn_template = \"{speaker}: {text}\"\n\
                 semantic_threshold = 0.3\nquestion_floor = 0.1\nquestion_ceiling = 0.3\n";
    let path = write(&there.path().join("other.toml"), format!("version = 1\n{other}"));
    let run = |pipeline: &Path, file: &Path| {
        let directory = there.path().join("log");
        let arguments = ["import", file.to_str().unwrap(), "--pipeline", pipeline.to_str().unwrap(), "--data"];
        ripplemem(&[&arguments[..], &[directory.to_str().unwrap()]].concat())
    };
    fails(&run(&path, &file), 1, &["bank.jsonl, line 1", "fixed (", "the pipeline names other", "ripplemem reembed"]);
    empty(&second);

    // The bank exists with other content.
    let more = lines(BANK, "later", &[("m1", "Ann", "Marta bought a green kayak")]);
    feed(&mut open(&second), &events(&more));
    let before = census(&open(&second));
    let error = import(&second, &file).unwrap_err().to_string();
    assert!(error.contains(BANK) && error.contains("1 of its 1 records are not in the file"), "{error}");
    assert_eq!(census(&open(&second)), before);
    feed(&mut open(&first), &deletion("h1-03"));
    let error = import(&first, &file).unwrap_err().to_string();
    assert!(error.contains("holds it already") && error.contains("differs"), "{error}");
    let error = ripplemem::export(&first, &Bank::parse("nobody").unwrap(), &zst, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("bank nobody") && fs::read(&zst).unwrap() == bytes, "{error}");
}

/// If settings differ, only edges may, and the report names the settings.
#[test]
fn an_import_under_other_settings_reports_them() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = pipeline(here.path(), "");
    feed(&mut open(&first), &sample());
    let file = here.path().join("bank.jsonl");
    let (file_text, log) =
        (file.to_string_lossy().into_owned(), here.path().join("log").to_string_lossy().into_owned());
    let toml = write(&here.path().join("p.toml"), "version = 1\nembed.model = \"fixed\"\n");
    let exported = ripplemem(&[
        "export",
        "--bank",
        BANK,
        "--to",
        &file_text,
        "--pipeline",
        toml.to_str().unwrap(),
        "--data",
        &log,
    ]);
    let told = String::from_utf8(exported.stdout).unwrap();
    let hash = format!("{:032x}", of_bank(&open(&first)).hash);
    assert!(told.contains(&hash) && exported.stderr.is_empty(), "{told}");
    let run = |extra: &str, directory: &str| {
        let toml = write(&there.path().join("p.toml"), format!("version = 1\nembed.model = \"fixed\"\n{extra}"));
        let directory = there.path().join(directory);
        let data = directory.to_str().unwrap();
        String::from_utf8(
            ripplemem(&["import", &file_text, "--pipeline", toml.to_str().unwrap(), "--data", data]).stdout,
        )
        .unwrap()
    };
    let same = run("", "same");
    assert!(same.contains(&hash) && same.contains("the same digest"), "{same}");
    let other = run("memory.semantic_edges = 2\nmemory.target_semantic_choices = 1.5", "other");
    assert!(
        other.contains("the same units") && other.contains("semantic_edges (") && other.contains(", 2 here)"),
        "{other}"
    );
}

/// A bank so large that an import takes several transactions.
pub(crate) fn large(service: &mut PipelineDriver) {
    let text = "Harbour report number N counts some blue boats and a lighthouse keeper who sings in the evening. ";
    let turns: String = (0..1_200)
        .map(|n| {
            let turn = serde_json::json!({
                "bank": BANK, "turn": n.to_string(), "speaker": "Ann", "text": text.replace('N', &n.to_string()),
                "time": format!("2024-05-{:02}T{:02}:{:02}:00Z", 1 + n / 600, n / 60 % 10, n % 60), "session": "s",
            });
            format!("{turn}\n")
        })
        .collect();
    let turns = events(&turns);
    for some in turns.chunks(400) {
        service.log().append_turns(some).unwrap();
        service.catch_up().unwrap();
    }
}

/// A killed import is continued when it is run again.
#[test]
fn a_killed_import_is_continued() {
    let rounds = kill_rounds("RIPPLEMEM_KILL_ROUNDS");
    let here = tempfile::tempdir().unwrap();
    let mut first = pipeline(here.path(), "");
    first.embed.read_turns = 400;
    large(&mut open(&first));
    let file = here.path().join("bank.jsonl");
    export(&first, &file);
    let expected = of_bank(&open(&first));
    let start = |there: &Path| {
        let toml = write(&there.join("p.toml"), "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\n");
        let child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["import", file.to_str().unwrap(), "--pipeline", toml.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.unwrap()
    };
    // Duration of an undisturbed import, so that the kills fall inside.
    let (started, undisturbed) = (Instant::now(), tempfile::tempdir().unwrap());
    assert!(start(undisturbed.path()).wait().unwrap().success());
    let takes = started.elapsed().as_millis() as u64;
    let mut partial = 0;
    for round in 0..rounds {
        let there = tempfile::tempdir().unwrap();
        let mut dice = Dice(round);
        for _ in 0..1 + dice.below(3) {
            let mut child = start(there.path());
            std::thread::sleep(Duration::from_millis(dice.below(takes + 1)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let toml = there.path().join("p.toml");
        let second = Pipeline::read(&toml).unwrap();
        let done = import(&second, &file).unwrap();
        partial += u64::from(done.already_there > 0 && done.written > 0);
        assert_eq!(of_bank(&open(&second)), expected, "round {round}");
    }
    let megabytes = fs::metadata(&file).unwrap().len() as f64 / 1e6;
    println!(
        "an import of {megabytes:.1} MB in {takes} ms, killed in {rounds} rounds; {partial} were continued in the middle"
    );
}

/// From an embedded log to Kafka, where a service runs, and back. Turns of other banks of the
/// partition arrive meanwhile, and none is lost.
#[test]
fn a_bank_moves_to_kafka_beside_a_running_service_and_back() {
    let _turn = turn();
    let test = "transfer::a_bank_moves_to_kafka_beside_a_running_service_and_back";
    let Some(broker) = Broker::shared(test) else { return };
    let all = sample();
    let (before, after) = all.split_at(150);
    let here = tempfile::tempdir().unwrap();
    let first = pipeline(here.path(), "embed.read_turns = 16");
    feed(&mut open(&first), before);
    let file = here.path().join("bank.jsonl");
    export(&first, &file);

    let home = Home::new(&broker, "moved-bank", "");
    let service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    let partition = partition_of(&bank(), 2);
    let beside: Vec<Bank> = (0..)
        .map(|n| Bank::parse(&format!("beside/{n}")).unwrap())
        .filter(|bank| partition_of(bank, 2) == partition)
        .take(2)
        .collect();
    let log = home.log();
    let mut sent: BTreeMap<&Bank, Vec<(String, String)>> = BTreeMap::new();
    let mut say = |n: usize| {
        let bank = &beside[n % 2];
        let text = format!("Boat number {n} is painted in the colour of harbour {}", n * 7);
        let line = serde_json::json!({"bank": bank, "turn": n.to_string(), "speaker": "Bo", "text": text,
            "time": format!("2024-05-06T09:{:02}:{:02}Z", n / 60, n % 60), "session": "s"});
        log.append_turns(&events(&line.to_string())).unwrap();
        sent.entry(bank).or_default().push((n.to_string(), text));
    };
    (0..5).for_each(&mut say);
    let importing = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
        .args(["import", file.to_str().unwrap(), "--pipeline", home.path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for n in 5..60 {
        say(n);
        std::thread::sleep(Duration::from_millis(30));
    }
    let output = importing.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("the same digest"), "{told}{}{}", String::from_utf8_lossy(&output.stderr), home.told());
    let read = || (0..2).all(|p| log.lag(p, home.log().read_position(p).unwrap()).unwrap() == 0);
    wait(&|| home.told(), read);
    // The service, which never stopped, extracts the bank's later turns.
    log.append_turns(after).unwrap();
    log.append_turns(&deletion("h1-03")).unwrap();
    home.extracted();
    let mut original = open(&first);
    feed(&mut original, after);
    feed(&mut original, &deletion("h1-03"));
    let expected = of_bank(&original);
    let there = PipelineDriver::open(&home.pipeline(), &mut |_| {}).unwrap();
    assert_eq!(of_bank(&there), expected, "{}", home.told());
    for (bank, turns) in &sent {
        let records = there.log().read(Topic::Memory, partition, 0, 100_000).unwrap().records;
        let text: String =
            records.iter().map(|r| String::from_utf8_lossy(r.value.as_deref().unwrap_or_default())).collect();
        assert!(turns.iter().all(|(_, turn)| text.contains(turn.as_str())), "a turn of {bank} is missing");
    }
    // The running service answers from the imported bank.
    let end = log.end(Topic::Turns, partition).unwrap();
    let after = format!("{partition}:{}", end - 1);
    let asked =
        ["ask", "Which books has Marta recommended?", "--bank", BANK, "--after", &after, "--pipeline", home.path()];
    let answered = ripplemem(&asked);
    assert!(answered.status.success() && !answered.stdout.is_empty(), "{}", String::from_utf8_lossy(&answered.stderr));
    assert!(home.told().contains("another instance extracts the partition"), "the service was fenced: {}", home.told());

    let back = here.path().join("back.jsonl.zst");
    export(&home.pipeline(), &back);
    let third = tempfile::tempdir().unwrap();
    let second = pipeline(third.path(), "log.partitions = 5");
    assert_eq!(import(&second, &back).unwrap().digest.hash, format!("{:032x}", expected.hash));
    assert_eq!(of_bank(&open(&second)), expected);
    service.stop();
}

/// A chat with phone numbers is read, moved, and read again where it moved to.
#[test]
fn a_moved_bank_recognises_an_export_with_phone_numbers_unless_the_log_has_another_salt() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let chat = |name: &str, words: &str| {
        let line = |minute: u32| format!("[01.05.24, 10:{minute:02}:00] +49 170 1234567: {words} {minute}\n");
        write(&home.path().join(name), (10..14).map(line).collect::<String>())
    };
    let (chat, other) = (chat("chat.txt", "Six at the quay"), chat("other.txt", "Seven at the pier"));
    let run = |arguments: &[&str]| {
        let output = ripplemem(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let ingest = |file: &Path, into: &str| {
        run(&["ingest", "whatsapp", file.to_str().unwrap(), "--zone", "UTC", "--bank", "b", "--pipeline", &at(into)])
    };
    for name in ["here", "there", "elsewhere"] {
        write(
            &home.path().join(name),
            "version = 1\nembed.model = \"fixed\"\nlog.directory = \"NAME-log\"\n".replace("NAME", name),
        );
    }
    let digest = |of: &str| run(&["digest", "--bank", "b", "--pipeline", &at(of)]).0;
    ingest(&chat, "here");
    run(&["export", "--bank", "b", "--to", &at("b.jsonl"), "--pipeline", &at("here")]);
    let imported = run(&["import", &at("b.jsonl"), "--pipeline", &at("there")]);
    assert!(!imported.1.contains("another salt"), "{imported:?}");
    let before = digest("there");
    ingest(&chat, "there");
    assert_eq!(digest("there"), before, "nothing is stored a second time");
    // A log that has hidden ids of its own keeps its salt.
    run(&[
        "ingest",
        "whatsapp",
        other.to_str().unwrap(),
        "--zone",
        "UTC",
        "--bank",
        "c",
        "--pipeline",
        &at("elsewhere"),
    ]);
    let imported = run(&["import", &at("b.jsonl"), "--pipeline", &at("elsewhere")]);
    assert!(imported.1.contains("another salt"), "{imported:?}");
}

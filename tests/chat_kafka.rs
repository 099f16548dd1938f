//! Real chat through Kafka while questions are answered.
//!
//! In: logs of Ubuntu's IRC channel and an export of Slack below the folder that `RIPPLEMEM_DATA`
//! names; a few thousand turns, and with `RIPPLEMEM_CHAT=all` all 196,000. Skipped by name if the folder is absent.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use logs::{Log, Topic};
use serde_json::Value;
use sources::SourceSummary;
use types::config::SourceSettings;

use super::{
    broker_process::Broker,
    kafka::{self, Home},
    skipped::skip,
    support::{census, open, pipeline, ripplemem},
};

const TEST: &str = "chat_kafka::real_chat_is_remembered_while_questions_are_answered";
/// Banks that the logs are divided into.
const BANKS: usize = 8;

/// An export, and the bank that it goes into.
struct Export {
    format: &'static str,
    path: PathBuf,
    bank: String,
}

impl Export {
    fn settings(&self) -> SourceSettings {
        let mut settings = SourceSettings::new(self.format, &self.path);
        settings.bank.clone_from(&self.bank);
        settings
    }

    fn turns(&self) -> u64 {
        SourceSummary::of(&mut *sources::open(&self.settings()).unwrap(), |_| {}).unwrap().turns
    }
}

/// The daily logs, distributed among the banks, and the export of Slack.
fn exports(data: &Path, home: &Path) -> Vec<Export> {
    let all = std::env::var("RIPPLEMEM_CHAT").is_ok_and(|chat| chat == "all");
    let mut from = data.join("chat/irc/dev");
    if all {
        from = home.join("train");
        fs::create_dir(&from).unwrap();
        let archive = data.join("chat/irc/train-raw.tar.gz");
        assert!(Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(&from).status().unwrap().success());
    }
    let mut logs: Vec<PathBuf> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.to_string_lossy().ends_with(".raw.txt"));
    logs.sort();
    logs.truncate(if all { usize::MAX } else { 3 });
    let mut exports = Vec::new();
    for (n, log) in logs.iter().enumerate() {
        let path = home.join(format!("irc-{}", n % BANKS));
        if n < BANKS {
            fs::create_dir(&path).unwrap();
            exports.push(Export { format: "irc", path: path.clone(), bank: format!("irc/{n}") });
        }
        fs::copy(log, path.join(log.file_name().unwrap())).unwrap();
    }
    let path = data.join("chat/slack/slack-export.zip");
    exports.push(Export { format: "slack", path, bank: "slack".to_owned() });
    exports
}

/// Sets the flag that ends the questions, even after a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn real_chat_is_remembered_while_questions_are_answered() {
    let data = std::env::var_os("RIPPLEMEM_DATA").map(PathBuf::from);
    let Some(data) = data.filter(|data| data.join("chat/irc").is_dir()) else {
        return skip(TEST, "RIPPLEMEM_DATA names no folder with chat/irc");
    };
    let _turn = kafka::turn();
    let Some(broker) = Broker::shared(TEST) else { return };
    let home = Home::new(&broker, "chat", "");
    home.change("read_turns = 16", "read_turns = 512");
    let exports = exports(&data, home.directory.path());
    let turns: u64 = exports.iter().map(Export::turns).sum();
    let _service = home.run();
    kafka::wait(&|| home.told(), || home.told().contains("ready"));

    let begun = Instant::now();
    let done = AtomicBool::new(false);
    let (mut answered, mut evidence) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ended = SetOnDrop(&done);
            for Export { format, path, bank } in &exports {
                let output =
                    ripplemem(&["ingest", format, path.to_str().unwrap(), "--bank", bank, "--pipeline", home.path()]);
                // With 3 a few records of the files were rejected; the memory is compared below.
                let is_read = matches!(output.status.code(), Some(0 | 3));
                assert!(is_read, "{}", String::from_utf8_lossy(&output.stderr));
            }
            home.extracted();
        });
        // A caller gets an answer, or learns that the bank is not there yet.
        for Export { bank, .. } in exports.iter().cycle() {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let question = "Who had a problem with the network card, and what helped?";
            let output = ripplemem(&["ask", question, "--bank", bank, "--json", "--pipeline", home.path()]);
            if output.status.success() {
                let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
                answered += 1;
                evidence += usize::from(!answer["units"].as_array().unwrap().is_empty());
            } else {
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(told.contains(&format!("bank {bank}")), "{told}{}", home.told());
            }
        }
    });
    println!(
        "{turns} turns in {:.0} s; meanwhile {answered} questions answered, {evidence} with evidence",
        begun.elapsed().as_secs_f64()
    );
    assert!(evidence > 0, "no question was answered meanwhile");
    let log = home.log();
    let stored = |partition| log.end(Topic::Turns, partition).unwrap();
    // Each bank's end mark is stored, too.
    assert!((0..2).map(stored).sum::<u64>() >= turns + exports.len() as u64);
    let found = home.census();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(elsewhere.path(), ""));
    for export in &exports {
        service.ingest(&mut *sources::open(&export.settings()).unwrap(), &mut |_| {}).unwrap();
    }
    assert_eq!(census(&service), found);
    assert!(found.units > turns / 8, "{found:?}");
}

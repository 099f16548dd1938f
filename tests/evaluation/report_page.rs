//! The report of an evaluation in a browser: `ripplemem-eval console`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use types::model::EventTime;

use super::{
    browser::{browser, node_test, pictures},
    support::{data, fails, has_default_model, ripplemem, write},
};

/// The sample with its questions, as a file of LoCoMo.
fn sample_as_benchmark() -> Value {
    let data = |name: &str| std::fs::read_to_string(data(name)).unwrap();
    let mut conversation: BTreeMap<String, Value> = BTreeMap::new();
    for turn in data("sample.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if turn["type"] != "turn" {
            continue;
        }
        let session = format!("session_{}", turn["session"].as_str().unwrap().trim_start_matches('h'));
        let time = EventTime::parse(turn["time"].as_str().unwrap()).unwrap().local();
        let date = time.strftime("%-I:%M %P on %-d %B, %Y").to_string();
        conversation.entry(format!("{session}_date_time")).or_insert_with(|| json!(date));
        let said = json!({"speaker": turn["speaker"], "dia_id": turn["turn"], "text": turn["text"]});
        conversation.entry(session).or_insert_with(|| json!([])).as_array_mut().unwrap().push(said);
    }
    let questions: Value = serde_json::from_str(&data("sample_questions.json")).unwrap();
    let questions = questions["questions"].as_array().unwrap().iter().map(|asked| {
        let category = match asked["kind"].as_str().unwrap() {
            "list" | "multi" => 1,
            "temporal" => 2,
            "inference" => 3,
            "single" => 4,
            _ => 5,
        };
        let has_evidence = asked["evidence"].as_array().is_some_and(|turns| !turns.is_empty());
        // LoCoMo names a turn for questions without an answer, too.
        let evidence = if has_evidence { asked["evidence"].clone() } else { json!(["h1-01"]) };
        json!({"question": asked["question"], "answer": asked["answer"], "category": category, "evidence": evidence})
    });
    json!([{"sample_id": "harbour", "conversation": conversation, "qa": questions.collect::<Vec<_>>()}])
}

/// The report of an evaluation of the sample by the paper's profile, whose first hop is narrow: it misses evidence.
fn report_of_sample(home: &Path) -> PathBuf {
    let file = write(&home.join("harbour.json"), sample_as_benchmark().to_string());
    let pipeline = home.join("paper.toml");
    let paper = "version = 1\nprofile = \"paper\"\nlog.fsync = \"system\"\n";
    write(&pipeline, paper);
    if !has_default_model() {
        write(&pipeline, format!("{paper}embed.model = \"fixed\"\n"));
    }
    let report = home.join("report");
    let arguments = ["locomo", file.to_str().unwrap(), "--pipeline", pipeline.to_str().unwrap()];
    let more = ["--baselines", "--ablate", "graph-expansion", "--report", report.to_str().unwrap()];
    let output = ripplemem(&[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    report
}

/// A running `ripplemem-eval console`, and its address as it prints it; killed when this is dropped.
struct ReportConsole {
    child: Child,
    url: String,
}

impl ReportConsole {
    fn start(report: &Path) -> Self {
        let mut command = Command::new(super::PROGRAM);
        command.args(["console", "--listen", "127.0.0.1:0", "--report"]).arg(report);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("Open ").map(|rest| rest.trim_end().trim_end_matches('/').to_owned());
        Self { child, url: url.unwrap_or_else(|| panic!("{line}")) }
    }

    /// Asks it to end, and waits; returns whether it ended well.
    fn stop(mut self) -> bool {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().success()
    }
}

impl Drop for ReportConsole {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_report_opens_without_a_memory() {
    let Some(browser) = browser("report_page::a_report_opens_without_a_memory") else { return };
    let home = tempfile::tempdir().unwrap();
    let console = ReportConsole::start(&report_of_sample(home.path()));
    let pictures = pictures();
    let variables =
        [("REPORT", console.url.as_str()), ("CHROMIUM", &browser), ("PICTURES", pictures.to_str().unwrap())];
    node_test("test/report.test.mjs", &variables);
    assert!(console.stop());
}

#[test]
fn a_console_without_a_report_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let nothing = ["console", "--report", home.path().to_str().unwrap()];
    fails(&ripplemem(&nothing), 1, &["report.json", "ripplemem-eval FORMAT FILE --report"]);
    write(&home.path().join("report.json"), "{}");
    let elsewhere = [&nothing[..], &["--listen", "0.0.0.0:0"]].concat();
    fails(&ripplemem(&elsewhere), 1, &["0.0.0.0:0", "asks for no token", "127.0.0.1:8321"]);
}

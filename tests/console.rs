//! The console: what is sent without a token, and people's way through the page, in a browser against the real
//! program. Where Node, its packages or a browser are missing, the tests of the page are named as skipped.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nouns::model::EventTime;
use serde_json::{Value, json};

use super::{
    access::{TOKENS, add},
    broker_process::skip,
    http_service::{HttpService, pipeline_file},
    support::{ripplemem, write},
};

/// The folder of the page's sources.
fn console() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/console")
}

/// The head of a response, in lower case, and its body.
fn sent(service: &HttpService, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = service.connect();
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", service.address) };
    write!(stream, "GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    (head, bytes.split_off(end + 4))
}

#[test]
fn the_page_needs_no_token_and_may_ask_this_service_alone() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), TOKENS);
    let service = HttpService::of(home.path());
    for path in ["/", "/console"] {
        let (head, _) = sent(&service, path, "");
        assert!(head.starts_with("http/1.1 303") && head.contains("location: /console/"), "{head}");
    }
    for (path, kind) in [
        ("", "text/html"),
        ("console.js", "text/javascript"),
        ("console.css", "text/css"),
        ("NOTICE.txt", "text/plain"),
    ] {
        let path = format!("/console/{path}");
        let (head, plain) = sent(&service, &path, "");
        assert!(head.starts_with("http/1.1 200") && head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        for policy in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
            assert!(head.contains(policy), "{path}: {head}");
        }
        for line in ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-cache"] {
            assert!(head.contains(line), "{path}: {head}");
        }
        let (packed_head, packed) = sent(&service, &path, "Accept-Encoding: br, gzip\r\n");
        assert!(packed_head.contains("content-encoding: gzip") && packed.len() < plain.len(), "{path}: {packed_head}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain, "{path}: packed and plain differ");
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let (known, nothing) = sent(&service, &path, &format!("If-None-Match: {tag}\r\n"));
        assert!(known.starts_with("http/1.1 304") && nothing.is_empty(), "{path}: {known}");
        let (foreign, _) = sent(&service, &path, "Host: evil.example\r\n");
        assert!(foreign.starts_with("http/1.1 403"), "{path}: {foreign}");
    }
    for path in ["/v1/banks", "/console/other"] {
        assert!(sent(&service, path, "").0.starts_with("http/1.1 401"), "{path} is behind the token");
    }
    assert!(service.stop());
}

/// The first of these programs that is there.
fn program(names: &[&str]) -> Option<String> {
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    names.iter().find(runs).map(|name| (*name).to_owned())
}

/// Whether Node and the packages of the page's tests are there; else the test is named as skipped.
fn has_node(test: &str) -> bool {
    let has_packages = console().join("node_modules/.package-lock.json").exists();
    let missing = match (program(&["node"]), has_packages) {
        (None, _) => "Node is missing",
        (_, false) => "the packages of src/server/console are missing",
        (Some(_), true) => return true,
    };
    skip(test, &format!("{missing}; scripts/setup --browser installs it"));
    false
}

/// Runs a file of tests with Node, to its end.
fn node_test(file: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new("node");
    command.args(["--test", file]).current_dir(console()).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_page_says_what_the_answer_says() {
    if has_node("console::the_page_says_what_the_answer_says") {
        node_test("test/model.test.mjs", &[]);
    }
}

/// The sample, as requests that put it in four reads.
fn sample() -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample.jsonl")).unwrap();
    let turns: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    turns.chunks(turns.len().div_ceil(4)).map(|turns| json!({"turns": turns, "wait_ms": 60_000})).collect()
}

/// Whether the default model can be loaded.
fn has_model() -> bool {
    ripplemem(&["validate", "pipelines/embedded.toml"]).status.success()
}

/// A pipeline file with history, and the default model where it is here: its ripple is that of the README.
fn of_people(home: &Path) {
    let model = if has_model() { "" } else { "embed.model = \"fixed\"\n" };
    let file = format!("version = 1\n{model}log.directory = \"log\"\nsnapshot.directory = \"snapshots\"\n");
    write(&home.join("p.toml"), file);
}

/// The browser, where Node and the packages of the page's tests are there as well; else the test is named as skipped.
fn browser(test: &str) -> Option<String> {
    if !has_node(test) {
        return None;
    }
    let browser = program(&["chromium", "chromium-browser", "google-chrome"]);
    if browser.is_none() {
        skip(test, "a browser is missing; scripts/setup --browser installs Chromium");
    }
    browser
}

/// Where the tests leave what the page looks like.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console")
}

#[test]
fn people_find_their_way_through_the_page() {
    let Some(browser) = browser("console::people_find_their_way_through_the_page") else { return };
    let (open, closed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    of_people(open.path());
    pipeline_file(closed.path(), TOKENS);
    let reader = add(closed.path(), "reader", "sample", &["read"]);
    let (open, asking) = (HttpService::of(open.path()), HttpService::of(closed.path()));
    for put in sample() {
        open.post("/v1/turns", &put);
    }
    let revoke = format!(
        "{} token revoke reader --pipeline {}",
        env!("CARGO_BIN_EXE_ripplemem"),
        closed.path().join("p.toml").display()
    );
    let pictures = pictures();
    let (open_url, asking_url) = (format!("http://{}", open.address), format!("http://{}", asking.address));
    let variables = [
        ("CONSOLE", open_url.as_str()),
        ("CONSOLE_TOKENS", &asking_url),
        ("READER", &reader),
        ("REVOKE", &revoke),
        ("CHROMIUM", &browser),
        ("PICTURES", pictures.to_str().unwrap()),
    ];
    node_test("test/page.test.mjs", &variables);
    // The pictures of the README and of docs/console.md are those of the default model.
    if std::env::var_os("REWRITE").is_some() && has_model() {
        for (taken, name) in [
            ("ripple-light.png", "ripple-light.png"),
            ("ripple-dark.png", "ripple-dark.png"),
            ("trace-1280-light.png", "trace-light.png"),
            ("trace-1280-dark.png", "trace-dark.png"),
        ] {
            let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(name);
            std::fs::copy(pictures.join(taken), picture).unwrap();
        }
    }
    assert!(open.stop() && asking.stop());
}

/// The sample with its questions, as a file of LoCoMo.
fn sample_as_benchmark() -> Value {
    let data = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
    };
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
    if !ripplemem(&["validate", pipeline.to_str().unwrap()]).status.success() {
        write(&pipeline, format!("{paper}embed.model = \"fixed\"\n"));
    }
    let report = home.join("report");
    let arguments = ["eval", "locomo", file.to_str().unwrap(), "--pipeline", pipeline.to_str().unwrap()];
    let more = ["--baselines", "--ablate", "graph-expansion", "--report", report.to_str().unwrap()];
    let output = ripplemem(&[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    report
}

/// A running `ripplemem console`, and its address as it prints it; killed when this is dropped.
struct ReportConsole {
    child: Child,
    url: String,
}

impl ReportConsole {
    fn start(report: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.args(["console", "--listen", "127.0.0.1:0", "--report"]).arg(report);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("Open ").map(|rest| rest.trim_end().trim_end_matches('/').to_owned());
        Self { child, url: url.unwrap_or_else(|| panic!("{line}")) }
    }

    /// Asks it to end, and waits; whether it ended well.
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
    let Some(browser) = browser("console::a_report_opens_without_a_memory") else { return };
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
    super::support::fails(&ripplemem(&nothing), 1, &["report.json", "eval FORMAT FILE --report"]);
    write(&home.path().join("report.json"), "{}");
    let elsewhere = [&nothing[..], &["--listen", "0.0.0.0:0"]].concat();
    super::support::fails(&ripplemem(&elsewhere), 1, &["0.0.0.0:0", "asks for no token", "127.0.0.1:8321"]);
}

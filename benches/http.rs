//! Questions over HTTP, by `oha`, beside the same questions asked of the query queue in this process, and beside Mem0's
//! own library on the same dialogue; puts over HTTP, one client and many: `cargo bench --bench http`.
//!
//! `oha` is not built here: `cargo install oha --version 1.16.0`. `RIPPLEMEM_BENCH` names one
//! part of `front`, `paper`, `puts`, `mem0`; without it all parts run. `RIPPLEMEM_BENCH_UNITS` (100,000) is how many
//! units the memory has, in 100 banks, `RIPPLEMEM_BENCH_SECONDS` (10) how long each measurement lasts. Vectors are
//! those of the deterministic embedder, which costs nothing: what is measured is the memory and the transport. The part
//! `mem0` needs Python, and packages of PyPI.
#![allow(clippy::print_stdout)]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use pipeline::Cancellation;
use replica::QueryRequest;
use ripplemem::Memory;
use serde_json::{Value, json};
use server::address_of;
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Question, Turn},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, percentile};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BANKS: usize = 100;
/// Questions asked at the same time.
const AT_ONCE: usize = 16;
/// Different questions.
const QUESTIONS: usize = 2_000;
const ROUNDS: usize = 3;
/// Turns written at once.
const WRITTEN: usize = 10_000;

fn main() {
    let only = std::env::var("RIPPLEMEM_BENCH").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("front") || wanted("paper") {
        let found = Command::new("oha").arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("oha is missing: cargo install oha --version 1.16.0");
            return;
        }
    }
    for profile in ["default", "paper"] {
        if wanted(if profile == "paper" { "paper" } else { "front" }) {
            transport(profile);
        }
    }
    if wanted("puts") {
        puts();
    }
    if wanted("mem0") {
        beside_mem0();
    }
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

fn seconds() -> u64 {
    number("RIPPLEMEM_BENCH_SECONDS", 10) as u64
}

/// Questions per second, and the median and the 99th percentile of their milliseconds.
struct Rate {
    a_second: f64,
    p50: f64,
    p99: f64,
}

/// The query queue in this process and HTTP, alternating on one memory.
fn transport(profile: &str) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("p.toml");
    let text = format!(
        "version = 1\nprofile = \"{profile}\"\nembed.model = \"fixed\"\nlog.directory = \"log\"\nlog.fsync = \"system\"\n\
         log.partitions = 8\nmemory.workers = 2\nsnapshot.directory = \"snapshots\"\n"
    );
    fs::write(&file, text).expect("a file");
    let pipeline = Pipeline::read(&file).expect("the settings are valid");
    let units = build(&pipeline, number("RIPPLEMEM_BENCH_UNITS", 100_000));
    println!("profile {profile}: {units} units in {BANKS} banks, {AT_ONCE} questions at once, {} s each", seconds());
    let questions: Vec<Question> = (0..QUESTIONS).map(question).collect();
    let bodies = home.path().join("bodies");
    let body = |question: &Question| json!({"bank": question.bank, "text": question.text}).to_string();
    fs::write(&bodies, questions.iter().map(body).collect::<Vec<_>>().join("\n")).expect("a file");
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let memory = Memory::open(&pipeline).expect("the memory opens");
        let front = in_process(&memory, &questions);
        memory.close().expect("a snapshot");
        let service = Served::start(home.path(), &file);
        let http = over_http(&service.address, &bodies);
        drop(service);
        for (name, Rate { a_second, p50, p99 }) in [("front", &front), ("HTTP", &http)] {
            println!("  round {round}, {name:5} {a_second:7.0}/s, p50 {p50:.2} ms, p99 {p99:.2} ms");
        }
        ratios.push(http.a_second / front.a_second);
        rates.push(http.a_second);
    }
    println!("  HTTP {:.0}/s, HTTP over the front: {:.3} (medians of {ROUNDS})", median(&rates), median(&ratios));
}

/// Fills the memory until it has that many units; returns their number.
fn build(pipeline: &Pipeline, units: usize) -> u64 {
    let memory = Memory::open(pipeline).expect("the memory opens");
    let count = |memory: &Memory| memory.replica().digest(None).map_or(0, |counted| counted.value.units);
    let mut n = 0;
    while count(&memory) < units as u64 {
        let turns: Vec<Turn> = (n..n + WRITTEN).map(turn).collect();
        n += WRITTEN;
        let written = memory.put(turns).expect("the log takes them");
        assert!(memory.wait_for(&written, Instant::now() + Duration::from_secs(600)), "{:?}", memory.problem());
    }
    let units = count(&memory);
    memory.close().expect("a snapshot");
    units
}

fn bank(n: usize) -> Bank {
    Bank::parse(&format!("acme/customer-{}", n % BANKS)).expect("a bank")
}

fn words(seed: usize, count: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let rank = (state >> 33) % 4_000;
        format!("w{}", rank * rank / 4_000)
    };
    (0..count).map(|_| word()).collect::<Vec<_>>().join(" ")
}

fn turn(n: usize) -> Turn {
    let at = n / BANKS;
    let time = EventTime::new(1_600_000_000_000 + at as i64 * 60_000, 0).expect("a time");
    let speaker = ["Ann", "Bo", "Cy"][at % 3];
    let turn = Turn::new(bank(n), &n.to_string(), speaker, &words(n, 14), time);
    Turn { session: Some(format!("s{}", at / 24)), ..turn }
}

fn question(n: usize) -> Question {
    Question::new(bank(n * 37), format!("Where did Ann see {}?", words(n * 91, 5)))
}

/// The query queue, asked by threads of this process.
fn in_process(memory: &Memory, questions: &[Question]) -> Rate {
    let (stop, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let started = Instant::now();
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let ask = || {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let question = questions[next.fetch_add(1, Ordering::Relaxed) % questions.len()].clone();
                let cancellation = Cancellation::at(Instant::now() + Duration::from_secs(30));
                let asked = Instant::now();
                let answer = memory.ask_and_wait(QueryRequest { cancellation, ..QueryRequest::now(question) });
                drop(answer.expect("an answer"));
                times.push(asked.elapsed().as_secs_f64() * 1_000.0);
            }
            times
        };
        let askers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(ask)).collect();
        std::thread::sleep(Duration::from_secs(seconds()));
        stop.store(true, Ordering::Relaxed);
        askers.into_iter().flat_map(|asker| asker.join().expect("no panic")).collect()
    });
    let a_second = times.len() as f64 / started.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    Rate { a_second, p50: median(&times), p99: percentile(&times, 99) }
}

/// HTTP, asked by `oha`.
fn over_http(address: &str, bodies: &Path) -> Rate {
    let output = Command::new("oha")
        .args(["--no-tui", "--output-format", "json", "-z", &format!("{}s", seconds()), "-c", &AT_ONCE.to_string()])
        .args(["-m", "POST", "-T", "application/json", "-Z"])
        .arg(bodies)
        .arg(format!("http://{address}/v1/ask"))
        .output()
        .expect("oha runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    let statuses = found["statusCodeDistribution"].as_object().expect("statuses");
    assert!(statuses.keys().all(|status| status == "200"), "{statuses:?}");
    let latency = |which: &str| found["latencyPercentiles"][which].as_f64().unwrap_or(f64::NAN) * 1_000.0;
    let a_second = found["summary"]["requestsPerSec"].as_f64().unwrap_or(f64::NAN);
    Rate { a_second, p50: latency("p50"), p99: latency("p99") }
}

/// Puts of one turn each, answered once it is on the disk: clients that write at the same time share a sync.
fn puts() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("p.toml");
    let settings = "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\nlog.fsync = \"commit\"\n";
    fs::write(&file, settings).expect("a file");
    let service = Served::start(home.path(), &file);
    let next = AtomicUsize::new(0);
    let mut rates = Vec::new();
    for clients in [1, AT_ONCE] {
        let (stop, started) = (AtomicBool::new(false), Instant::now());
        let mut times: Vec<f64> = std::thread::scope(|scope| {
            let put = || {
                let mut client = TcpStream::connect(&service.address).expect("it listens");
                client.set_nodelay(true).expect("a socket");
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let body = json!({"turns": [turn(next.fetch_add(1, Ordering::Relaxed))]}).to_string();
                    let put = Instant::now();
                    post(&mut client, &service.address, &body);
                    times.push(put.elapsed().as_secs_f64() * 1_000.0);
                }
                times
            };
            let putting: Vec<_> = (0..clients).map(|_| scope.spawn(put)).collect();
            std::thread::sleep(Duration::from_secs(seconds()));
            stop.store(true, Ordering::Relaxed);
            putting.into_iter().flat_map(|putting| putting.join().expect("no panic")).collect()
        });
        let a_second = times.len() as f64 / started.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let (p50, p99) = (median(&times), percentile(&times, 99));
        println!("puts, {clients:2} at once: {a_second:5.0}/s, p50 {p50:.2} ms, p99 {p99:.2} ms");
        rates.push(a_second);
    }
    println!("  {AT_ONCE} at once over one at a time: {:.1}", rates[1] / rates[0]);
}

/// Puts turns on a connection that stays, and waits for the answer.
fn post(client: &mut TcpStream, address: &str, body: &str) {
    let length = body.len();
    let request = format!("POST /v1/turns HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}");
    client.write_all(request.as_bytes()).expect("it reads");
    let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
    // The answer is an object without another one inside.
    while !answer.ends_with(b"}") {
        let read = client.read(&mut piece).expect("it answers");
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// A running service; ended when it is dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(home: &Path, file: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["serve", "--listen", "127.0.0.1:0", "--pipeline"])
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let holder = format!("process {}", child.id());
        // From here on, its drop ends the process.
        let mut served = Self { child, address: String::new() };
        let started = Instant::now();
        loop {
            if let Some(address) = address_of(&home.join("log"), &holder) {
                served.address = address.address;
                return served;
            }
            assert!(started.elapsed() < Duration::from_secs(120), "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let ended = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        if ended.is_err() {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

/// Mem0's client against this memory, and Mem0's library on the same dialogue with the same model.
fn beside_mem0() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = |package: &str| {
        let output = Command::new(root.join("scripts/python_packages.py")).arg(package).output().ok()?;
        print!("{}", String::from_utf8_lossy(&output.stderr));
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let packages: Option<Vec<String>> = ["mem0ai", "onnxruntime", "tokenizers"].into_iter().map(installed).collect();
    let Some(packages) = packages else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("p.toml");
    let settings = "version = 1\nlog.directory = \"log\"\nhttp.mem0 = true\n";
    fs::write(&file, settings).expect("a file");
    let service = Served::start(home.path(), &file);
    let ran = Command::new("python3")
        .env("PYTHONPATH", packages.join(":"))
        .env("MEM0_TELEMETRY", "False")
        .env("MEM0_DIR", home.path().join("mem0"))
        .env("OPENAI_API_KEY", "unused")
        .arg(root.join("benches/mem0_beside.py"))
        .arg(format!("http://{}", service.address))
        .status();
    assert!(ran.is_ok_and(|status| status.success()), "the script failed");
}

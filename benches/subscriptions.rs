//! A thousand followed questions on a service that this bench starts: `cargo bench --bench subscriptions`.
//!
//! A hundred banks; twenty of them receive 100 turns per second together, and have one follower each; the other 980
//! followers are in the other banks. Printed: the time from a turn's acknowledgement to the progress that reflects it,
//! with its delta, at the follower of its bank; and the resident memory of the service. Vectors are those of the
//! deterministic embedder, so that a model's time is not in the figure.
#![allow(clippy::print_stdout)]

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use server::address_of;

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::percentile;

/// Banks, and those of them that receive turns.
const BANKS: usize = 100;
const HOT: usize = 20;
/// Turns of each bank before.
const TURNS: usize = 60;
const FOLLOWERS: usize = 1_000;
/// Writers, and the pause between the writes of each.
const WRITERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(40);
const RUN: Duration = Duration::from_secs(30);
/// Writes within this time are not measured.
const WARM: Duration = Duration::from_secs(5);

/// How long after the end of the run the last turn of each bank is written, which ends its reader.
const LAST: Duration = Duration::from_secs(1);

fn main() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let service = Service::start(home.path());
    for bank in 0..BANKS {
        let turns: Vec<Value> = (0..TURNS).map(|n| turn(bank, &format!("t{n}"), n)).collect();
        service.put(&json!({"turns": turns, "wait_ms": 600_000}));
    }
    let before = service.resident_mib();
    let mut held = Vec::new();
    for n in 0..FOLLOWERS - HOT {
        let bank = HOT + n % (BANKS - HOT);
        let mut follower = service.follow(bank, &format!("What is number {n} on the list of bank {bank}?"));
        progress(&mut follower);
        held.push(follower);
    }
    let hot: Vec<_> = (0..HOT)
        .map(|bank| {
            let mut follower = service.follow(bank, &format!("What is on the list of bank {bank}?"));
            progress(&mut follower);
            follower
        })
        .collect();
    let following = service.resident_mib();
    // By partition and offset, when the turn was acknowledged.
    let acknowledged: Mutex<HashMap<(usize, u64), Instant>> = Mutex::default();
    let (written, deltas) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let times: Vec<f64> = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (service, acknowledged, written) = (&service, &acknowledged, &written);
            scope.spawn(move || {
                let mut next = Instant::now();
                for n in 0.. {
                    if started.elapsed() > RUN {
                        return;
                    }
                    let bank = (writer + n * WRITERS) % HOT;
                    let id = format!("w{writer}-{n}");
                    let after = service.put(&json!({"turns": [turn(bank, &id, TURNS + n)]}));
                    let offset = after.split_once(':').and_then(|(_, offset)| offset.parse().ok()).expect("an offset");
                    acknowledged.lock().expect("no panic").insert((bank, offset), Instant::now());
                    written.fetch_add(1, Ordering::Relaxed);
                    next += PAUSE;
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            });
        }
        let readers: Vec<_> = hot
            .into_iter()
            .enumerate()
            .map(|(bank, mut follower)| {
                let (acknowledged, deltas) = (&acknowledged, &deltas);
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while started.elapsed() < RUN {
                        let (reflects, changed) = progress(&mut follower);
                        let now = Instant::now();
                        deltas.fetch_add(u64::from(changed), Ordering::Relaxed);
                        let mut acknowledged = acknowledged.lock().expect("no panic");
                        let seen: Vec<_> = acknowledged
                            .keys()
                            .filter(|(of, offset)| *of == bank && *offset < reflects)
                            .copied()
                            .collect();
                        for key in seen {
                            let at = acknowledged.remove(&key).expect("it was there");
                            if at.duration_since(started) > WARM {
                                times.push(now.saturating_duration_since(at).as_secs_f64() * 1e3);
                            }
                        }
                    }
                    times
                })
            })
            .collect();
        // A reader whose last progress came before the end waits for one more.
        scope.spawn(|| {
            std::thread::sleep(RUN + LAST);
            (0..HOT).for_each(|bank| drop(service.put(&json!({"turns": [turn(bank, "last", TURNS)]}))));
        });
        readers.into_iter().flat_map(|reader| reader.join().expect("no panic")).collect()
    });
    let rate = written.load(Ordering::Relaxed) as f64 / RUN.as_secs_f64();
    println!(
        "{FOLLOWERS} followers, {HOT} of them in banks that receive {rate:.0} turns/s together: acknowledged to received \
         p50 {:.0} ms, p99 {:.0} ms, {} turns, {} deltas",
        percentile(&times, 50),
        percentile(&times, 99),
        times.len(),
        deltas.load(Ordering::Relaxed)
    );
    println!(
        "resident: {before} MiB with {} turns, {following} MiB with the followers, {} MiB at the end",
        BANKS * TURNS,
        service.resident_mib()
    );
    drop(held);
}

fn turn(bank: usize, id: &str, n: usize) -> Value {
    let time = format!("2024-{:02}-{:02}T{:02}:{:02}:00Z", 1 + n / 40_320, 1 + n / 1_440 % 28, n / 60 % 24, n % 60);
    json!({"bank": format!("bank/{bank}"), "turn": id, "speaker": "Ann", "time": time, "session": "s",
           "text": format!("Number {n} on the list of bank {bank} is a kayak from harbour {}", n % 7)})
}

/// Reads to the next progress: the offset of the turns that it reflects, and whether a delta came before.
fn progress(follower: &mut BufReader<TcpStream>) -> (u64, bool) {
    let (mut name, mut changed, mut line) = (String::new(), false, String::new());
    loop {
        line.clear();
        assert!(follower.read_line(&mut line).expect("the stream goes on") > 0, "the stream ended");
        if let Some(event) = line.strip_prefix("event: ") {
            event.trim().clone_into(&mut name);
            changed |= name == "delta";
        }
        if let Some(data) = line.strip_prefix("data: ").filter(|_| name == "progress") {
            let data: Value = serde_json::from_str(data.trim()).expect("JSON");
            let reflects = data["reflects"].as_array().into_iter().flatten();
            let turns = reflects.filter(|at| at["topic"] == "turns").find_map(|at| at["next_offset"].as_u64());
            return (turns.unwrap_or_default(), changed);
        }
    }
}

struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(home: &Path) -> Self {
        let file = home.join("p.toml");
        fs::write(&file, "version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\n").expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["serve", "--listen", "127.0.0.1:0", "--pipeline", file.to_str().expect("a path in UTF-8")])
            .stderr(Stdio::null())
            .spawn()
            .expect("the service");
        let holder = format!("process {}", child.id());
        let address = loop {
            if let Some(address) = address_of(&home.join("log"), &holder) {
                break address.address;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Self { child, address }
    }

    /// Puts turns; returns their partition and offset.
    fn put(&self, turns: &Value) -> String {
        let url = format!("http://{}/v1/turns", self.address);
        let mut answer = ureq::post(url).send(turns.to_string()).expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a body");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["after"].as_str().expect("it was written").to_owned()
    }

    fn follow(&self, bank: usize, text: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let path = format!("/v1/subscribe?bank=bank/{bank}&text={text}");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("it is sent");
        BufReader::new(stream)
    }

    fn resident_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default() / 1_024
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

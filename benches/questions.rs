//! Questions over Kafka, with a broker and a service that this bench starts: `cargo bench --bench questions`.
//!
//! Fifty banks in the default profile; every question is embedded with the default model. Needs Java 17
//! and Maven for the broker, and the set-up's model. `RIPPLEMEM_BENCH` names one part of `alone`,
//! `waiting`, `hostile`; without it all parts run. `RIPPLEMEM_BEFORE` names the binary of another build:
//! then both builds answer over the same memory, in turns, and their figures compare.
#![allow(clippy::print_stdout)]

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use logs::{KafkaLog, Log, partition_of};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    message::{Header, Headers, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};
use types::{
    config::Pipeline,
    model::{Bank, Question, TurnEvent},
};

#[path = "../tests/broker_process.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the tests use all of it")]
mod broker_process;
#[path = "../tests/skipped.rs"]
mod skipped;
use broker_process::Broker;
#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, percentile};

const PARTITIONS: u32 = 6;
const BANKS: usize = 50;
const TURNS: usize = 120;
/// Rounds of each build.
const ROUNDS: usize = 3;
/// Questions asked one at a time.
const ALONE: usize = 300;
/// Questions that wait at the same time.
const WAITING: usize = 1_000;
/// Questions of the hostile asker.
const HOSTILE: usize = 1_000;
/// Timeout of a good question.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let only = std::env::var("RIPPLEMEM_BENCH").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let Some(broker) = Broker::start("questions", &[]) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut builds = vec![("this build", PathBuf::from(env!("CARGO_BIN_EXE_ripplemem")))];
    if let Some(before) = std::env::var_os("RIPPLEMEM_BEFORE") {
        builds.insert(0, ("the build before", PathBuf::from(before)));
    }
    let bench = Bench::load(&broker, home.path());
    let mut figures: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        for (n, (name, binary)) in builds.iter().enumerate() {
            println!("{name}, round {}", round + 1);
            let mut note = |what: &'static str, value: f64| figures.entry((n, what)).or_default().push(value);
            let service = bench.serve(binary);
            let mut asker = Asker::new(&bench);
            if wanted("alone") {
                bench.alone(&mut asker, &mut note);
            }
            if wanted("waiting") {
                bench.waiting(&mut asker, &mut note);
            }
            if let Some(embeddings) = bench.embeddings_a_question() {
                note("embeddings a question", embeddings);
            }
            if wanted("hostile") {
                bench.hostile(&mut asker, &mut note);
            }
            drop(service);
            bench.forget_questions();
        }
    }
    for ((n, what), values) in figures {
        let all: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
        println!("{}: {what}: median {:.1} of {}", builds[n].0, median(&values), all.join(", "));
    }
}

/// A loaded memory, and how to serve it.
struct Bench<'b> {
    broker: &'b Broker,
    home: &'b Path,
    /// The pipeline file without its roles: only what every build knows.
    settings: String,
    pipeline: Pipeline,
}

impl<'b> Bench<'b> {
    /// Has this build extract the banks.
    fn load(broker: &'b Broker, home: &'b Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let settings = format!(
            "version = 1\n[log]\nkind = \"kafka\"\ndirectory = \"cache\"\npartitions = {PARTITIONS}\n[log.kafka]\nbrokers = \"{}\"\n\
             prefix = \"questions\"\nsession_seconds = 2\n[serve]\ndeadline_ms = 600000\n[metrics]\n\
             listen = \"127.0.0.1:{port}\"\n",
            broker.bootstrap()
        );
        let mut pipeline = Pipeline::parse(&settings).expect("the settings are valid");
        pipeline.log.directory = home.join("cache");
        let bench = Self { broker, home, settings, pipeline };
        let log = KafkaLog::open(&bench.pipeline.log).expect("a log");
        let service = bench.run(Path::new(env!("CARGO_BIN_EXE_ripplemem")), "extract.toml", &["extract", "serve"]);
        let mut last: BTreeMap<u32, (u64, String)> = BTreeMap::new();
        for bank in banks() {
            let events: Vec<TurnEvent> = (0..TURNS).map(|n| turn(&bank, n)).collect();
            log.append_turns(&events).expect("an append");
            let partition = partition_of(&Bank::parse(&bank).expect("a good name"), PARTITIONS);
            let (end, of) = last.entry(partition).or_default();
            *end += TURNS as u64;
            *of = bank;
        }
        for (partition, (end, bank)) in last {
            let question = Question::new(Bank::parse(&bank).expect("a good name"), "What did Ann buy?");
            server::ask(&bench.pipeline, &question, Some((partition, end - 1)), None).expect("an answer");
        }
        drop(service);
        bench.forget_questions();
        bench
    }

    fn run(&self, binary: &Path, file: &str, roles: &[&str]) -> Running {
        let file = self.home.join(file);
        fs::write(&file, format!("roles = {roles:?}\n{}", self.settings)).expect("a write");
        let mut command = Command::new(binary);
        command.arg("run").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the binary starts"))
    }

    /// Starts a build that only serves; returns when it answers.
    fn serve(&self, binary: &Path) -> Running {
        let running = self.run(binary, "serve.toml", &["serve"]);
        let mut asker = Asker::new(self);
        // The first questions open connections.
        for bank in banks() {
            let id = asker.ask(&bank, &question(0), &[]);
            asker.answer_to(id, Duration::from_secs(120)).expect("the service answers");
        }
        running
    }

    /// Marks every question as answered, for the next service.
    fn forget_questions(&self) {
        // The group ends when the session of its last member does.
        std::thread::sleep(Duration::from_secs(4));
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.broker.bootstrap())
            .set("group.id", "questions.questions")
            .create()
            .expect("a client");
        let mut ends = TopicPartitionList::new();
        for partition in 0..PARTITIONS as i32 {
            let Ok((_, end)) = consumer.fetch_watermarks("questions.questions", partition, PATIENCE) else { continue };
            ends.add_partition_offset("questions.questions", partition, Offset::Offset(end)).expect("an offset");
        }
        consumer.commit(&ends, CommitMode::Sync).expect("an empty group takes offsets");
    }

    /// Latency of questions that are asked one at a time.
    fn alone(&self, asker: &mut Asker, note: &mut impl FnMut(&'static str, f64)) {
        let times = asker.one_at_a_time(&banks(), ALONE);
        println!("  one at a time: {}", percentiles(&times));
        note("one at a time, p50 in ms", percentile(&times, 50));
        note("one at a time, p99 in ms", percentile(&times, 99));
    }

    /// Rate of answers while many questions wait, and whether each bank's come in their order.
    fn waiting(&self, asker: &mut Asker, note: &mut impl FnMut(&'static str, f64)) {
        let banks = banks();
        let begun = Instant::now();
        let mut order: HashMap<u64, usize> = HashMap::new();
        for n in 0..WAITING {
            order.insert(asker.ask(&banks[n % BANKS], &question(n), &[]), n);
        }
        let mut last: HashMap<usize, usize> = HashMap::new();
        let (mut answered, mut disordered, mut refused) = (0, 0, 0);
        while answered < WAITING {
            let Some((id, evidence)) = asker.next_answer(PATIENCE) else { break };
            let Some(n) = order.get(&id).copied() else { continue };
            answered += 1;
            refused += usize::from(!evidence);
            if let Some(before) = last.insert(n % BANKS, n) {
                disordered += usize::from(before > n);
            }
        }
        let rate = answered as f64 / begun.elapsed().as_secs_f64();
        println!(
            "  {WAITING} waiting: {rate:.0} answers/s; {answered} answered, {refused} of them refused, {disordered} out \
             of their bank's order"
        );
        note("answers a second, many waiting", rate);
        note("answers out of their bank's order", disordered as f64);
    }

    /// Latency of other banks' questions beside a hostile asker.
    fn hostile(&self, asker: &mut Asker, note: &mut impl FnMut(&'static str, f64)) {
        let (hostile, others) = (banks().remove(0), banks().split_off(1));
        let quiet = asker.one_at_a_time(&others, ALONE);
        let far = (now_ms() + 3_600_000).to_string();
        let partition = partition_of(&Bank::parse(&hostile).expect("a good name"), PARTITIONS);
        let never = format!("{partition}:{}", u32::MAX);
        let long = "Where did everybody put the blue bicycle of the neighbour? ".repeat(1_100);
        for n in 0..HOSTILE / 4 {
            let lost = format!("questions.answers.lost-{}", n % 16);
            let far = ("ripplemem_deadline", far.as_str());
            asker.ask(&hostile, &question(n), &[far, ("ripplemem_after", &never)]);
            asker.ask(&hostile, &question(n), &[far, ("kafka_replyTopic", &lost)]);
            asker.ask(&hostile, &long, &[far]);
            asker.ask(&format!("nobody/{n}"), &question(n), &[far]);
        }
        let beside = asker.one_at_a_time(&others, ALONE);
        let (before, during) = (percentile(&quiet, 99), percentile(&beside, 99));
        println!(
            "  beside a hostile asker: {} of {ALONE} answered, {}; quiet: {}",
            beside.len(),
            percentiles(&beside),
            percentiles(&quiet)
        );
        note("beside a hostile asker, answered", beside.len() as f64);
        note("beside a hostile asker, p99 in ms", during);
        note("beside a hostile asker, p99 over its quiet value", during / before);
    }

    /// Texts that the service embedded for each question, if the build counts them.
    fn embeddings_a_question(&self) -> Option<f64> {
        let text = self.metrics()?;
        let sum = |name: &str| -> Option<f64> {
            let lines = text.lines().filter(|line| line.starts_with(name));
            let values: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        let embeddings = sum("ripplemem_question_embeddings_total")?;
        let mean = embeddings / sum("ripplemem_questions_total{outcome=\"answered\"}")?;
        println!("  embeddings a question: {mean:.2}");
        Some(mean)
    }

    fn metrics(&self) -> Option<String> {
        let mut stream = TcpStream::connect(&self.pipeline.metrics.listen).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// A client that asks over the topics.
struct Asker {
    producer: BaseProducer,
    consumer: BaseConsumer,
    next: u64,
}

impl Asker {
    fn new(bench: &Bench<'_>) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", bench.broker.bootstrap());
        let producer = config.clone().set("linger.ms", "0").set("partitioner", "murmur2_random").create();
        let consumer: BaseConsumer = config
            .set("group.id", "questions.bench")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "50")
            .create()
            .expect("a client");
        let topic = "questions.answers";
        let found = consumer.fetch_metadata(Some(topic), PATIENCE).expect("a broker");
        let mut list = TopicPartitionList::new();
        for partition in found.topics().iter().flat_map(|topic| topic.partitions()) {
            let (_, end) = consumer.fetch_watermarks(topic, partition.id(), PATIENCE).expect("an end");
            list.add_partition_offset(topic, partition.id(), Offset::Offset(end)).expect("an offset");
        }
        consumer.assign(&list).expect("partitions");
        // Answers to an earlier client must not count.
        let first = (now_ms() as u64) << 20;
        Self { producer: producer.expect("a client"), consumer, next: first }
    }

    /// Sends a question; returns its correlation id.
    fn ask(&mut self, bank: &str, text: &str, headers: &[(&str, &str)]) -> u64 {
        self.next += 1;
        let value = serde_json::json!({"bank": bank, "text": text}).to_string();
        let id = self.next.to_be_bytes();
        let mut all = OwnedHeaders::new().insert(Header { key: "kafka_correlationId", value: Some(&id) });
        for (key, value) in headers {
            all = all.insert(Header { key, value: Some(*value) });
        }
        let record = BaseRecord::to("questions.questions").key(bank).payload(&value).headers(all);
        self.producer.send(record).map_err(|(error, _)| error).expect("a question is sent");
        self.producer.poll(Duration::ZERO);
        self.next
    }

    /// The next answer's correlation id, and whether it holds evidence.
    fn next_answer(&mut self, timeout: Duration) -> Option<(u64, bool)> {
        let until = Instant::now() + timeout;
        while Instant::now() < until {
            self.producer.poll(Duration::ZERO);
            let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(100)) else { continue };
            let header = |name: &str| -> Option<Vec<u8>> {
                let headers = message.headers()?;
                headers.iter().find(|header| header.key == name)?.value.map(<[u8]>::to_vec)
            };
            let Some(id) = header("kafka_correlationId").and_then(|id| Some(u64::from_be_bytes(id.try_into().ok()?)))
            else {
                continue;
            };
            return Some((id, header("ce_type").is_some_and(|kind| kind == b"ripplemem.answer.v1")));
        }
        None
    }

    /// Waits for the answer to a question, and skips others.
    fn answer_to(&mut self, wanted: u64, timeout: Duration) -> Option<bool> {
        let until = Instant::now() + timeout;
        loop {
            let (id, evidence) = self.next_answer(until.saturating_duration_since(Instant::now()))?;
            if id == wanted {
                return Some(evidence);
            }
        }
    }

    /// Asks these banks in rotation; gives the milliseconds of each answer, and gives up after three timeouts.
    fn one_at_a_time(&mut self, banks: &[String], questions: usize) -> Vec<f64> {
        let (mut times, mut lost) = (Vec::new(), 0);
        for n in 0..questions {
            let begun = Instant::now();
            let id = self.ask(&banks[n % banks.len()], &question(n), &[]);
            if self.answer_to(id, PATIENCE) == Some(true) {
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            } else {
                lost += 1;
            }
            if lost == 3 {
                break;
            }
        }
        times
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        drop(self.producer.flush(Duration::from_secs(1)));
    }
}

/// A running service process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn banks() -> Vec<String> {
    (0..BANKS).map(|n| format!("team/{n:02}")).collect()
}

const NAMES: [&str; 5] = ["Ann", "Bo", "Carla", "Dimitri", "Elif"];
const THINGS: [&str; 12] = [
    "bicycle",
    "guitar",
    "telescope",
    "recipe book",
    "pottery wheel",
    "tent",
    "camera",
    "sailing boat",
    "piano",
    "chess set",
    "sewing machine",
    "canoe",
];
const PLACES: [&str; 7] = ["Lisbon", "Oslo", "Kyoto", "Lima", "Dakar", "Toronto", "Porto"];

/// A turn of a bank's dialogue: the same in every run.
fn turn(bank: &str, n: usize) -> TurnEvent {
    let of_bank = bank.bytes().map(usize::from).sum::<usize>();
    let pick = |from: &[&'static str], step: usize| from[(n * step + of_bank + n * n / 7) % from.len()];
    let (thing, place, other) = (pick(&THINGS, 5), pick(&PLACES, 3), pick(&NAMES, 3));
    let text = match n % 6 {
        0 => format!("I bought a {thing} in {place} last week, and it was cheaper than I had feared."),
        1 => format!("That sounds great! Did {other} come along, or were you in {place} alone?"),
        2 => format!("{other} came too. We spent two days with the {thing} and then visited my sister in {place}."),
        3 => format!("My brother once had a {thing}. He sold it when he moved to {place}, which he still regrets."),
        4 => format!("Next month I want to learn more about it. {other} knows a teacher in {place}."),
        _ => format!("Tell {other} that I would like to join, if there is room for one more {thing}."),
    };
    let turn = serde_json::json!({
        "bank": bank, "turn": n.to_string(), "speaker": NAMES[n % NAMES.len()], "text": text,
        "time": format!("2024-05-{:02}T{:02}:{:02}:00Z", 1 + n / 40, 9 + n / 10 % 4, n % 60),
    });
    TurnEvent::from_json(turn.to_string().as_bytes()).expect("a turn")
}

/// Questions of different kinds; no two in a row are the same.
fn question(n: usize) -> String {
    let (name, thing, place) = (NAMES[n % NAMES.len()], THINGS[n % THINGS.len()], PLACES[n % PLACES.len()]);
    match n % 5 {
        0 => format!("What did {name} buy in {place}?"),
        1 => format!("Who sold a {thing} before moving to {place}?"),
        2 => format!("When did {name} visit {place}?"),
        3 => format!("Which things has {name} learned about the {thing}?"),
        _ => format!("Where does the teacher live whom {name} knows?"),
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

fn percentiles(ms: &[f64]) -> String {
    format!("p50 {:.1} ms, p99 {:.1} ms", percentile(ms, 50), percentile(ms, 99))
}

//! The log on Kafka, with a broker that this bench starts: `cargo bench --bench kafka`.
//!
//! Needs Java 17 and Maven for the broker, the set-up's model, and real chat in
//! `RIPPLEMEM_IRC`: an archive of `*.raw.txt` files named by their dates, with lines
//! `[HH:MM] <nick> text` (the Ubuntu channel's logs as published with "A Large-Scale Corpus for
//! Conversation Disentanglement"). `RIPPLEMEM_BENCH` names one part of `commit`, `fresh`,
//! `sustained`, `day`, `single`, `replay`; without it all parts run.
#![allow(clippy::print_stdout)]

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ingest::{ExtractionEvent, ExtractionOrderSender, extract_in_group};
use logs::{
    KafkaLog, Log, PartitionAssignment, Topic, Transaction, WritePosition,
    kafka::group_member::{ConsumerGroup, GroupMember},
    partition_of,
};
use pipeline::PipelineError;
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};
use replica::{Replica, ReplicaOptions};
use ripplemem::{PipelineDriver, ReplayRequest, TopicReplay};
use snapshots::ArchiveTable;
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::{Bank, Question, TurnEvent},
};

#[path = "../tests/broker_process.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the tests use all of it")]
mod broker_process;
#[path = "../tests/skipped.rs"]
mod skipped;
use broker_process::Broker;
mod figures;
use figures::{median, percentile, seconds};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const DEFAULT: &str = "";
const FIXED: &str = "embed.model = \"fixed\"\n";
const PARTITIONS: u32 = 6;
const ROUNDS: usize = 3;

fn main() {
    let only = std::env::var("RIPPLEMEM_BENCH").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let Some(broker) = Broker::start("kafka", &[]) else { return };
    if wanted("commit") {
        commit(&broker);
    }
    let Some(archive) = std::env::var_os("RIPPLEMEM_IRC") else {
        println!("SKIPPED fresh, sustained, day, single, replay: RIPPLEMEM_IRC names no archive of chat");
        return;
    };
    let chat = Chat::read(Path::new(&archive));
    println!("chat: {} turns in {} files", chat.turns().count(), chat.files.len());
    if wanted("fresh") {
        let live = chat.live(20, 3_000);
        fresh(&broker, "as-said", &live);
        fresh(&broker, "in-step", &in_step(&live));
    }
    if wanted("sustained") {
        sustained(&broker, &chat, "default embedder", DEFAULT, 1_500);
        sustained(&broker, &chat, "deterministic embedder", FIXED, 20_000);
    }
    if wanted("day") {
        volume(&broker, "day", &chat.files);
    }
    if wanted("single") {
        volume(&broker, "single", &[("irc".to_owned(), chat.as_one("irc"))]);
    }
    if wanted("replay") {
        replay(&broker, &chat);
    }
}

/// Real chat: the events of each file, in order.
struct Chat {
    files: Vec<(String, Vec<TurnEvent>)>,
}

impl Chat {
    fn read(archive: &Path) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let status = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(home.path()).status();
        assert!(status.is_ok_and(|s| s.success()), "{}: not an archive", archive.display());
        let mut paths: Vec<_> = fs::read_dir(home.path()).expect("a directory").flatten().map(|e| e.path()).collect();
        paths.sort();
        let files = paths.iter().map(|path| {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let name = name.trim_end_matches(".raw.txt");
            let bank = format!("irc/{name}");
            let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
            let events = text.lines().enumerate().filter_map(|(n, line)| turn(&bank, &n.to_string(), name, line));
            (bank.clone(), events.collect())
        });
        Self { files: files.collect() }
    }

    fn turns(&self) -> impl Iterator<Item = &TurnEvent> {
        self.files.iter().flat_map(|(_, events)| events)
    }

    /// All files as one bank.
    fn as_one(&self, bank: &str) -> Vec<TurnEvent> {
        let bank = Bank::parse(bank).expect("a good name");
        let one = |(n, event): (usize, &TurnEvent)| match event {
            TurnEvent::Turn(turn) => {
                let mut turn = turn.clone();
                (turn.bank, turn.turn) = (bank.clone(), n.to_string());
                TurnEvent::Turn(turn)
            }
            other => other.clone(),
        };
        self.turns().enumerate().map(one).collect()
    }

    /// This number of turns from several files, interleaved by their time of day.
    fn live(&self, files: usize, turns: usize) -> Vec<TurnEvent> {
        let clock = |event: &TurnEvent| match event {
            TurnEvent::Turn(turn) => turn.time.to_string().split_once('T').map(|(_, clock)| clock.to_owned()),
            _ => None,
        };
        let mut live: Vec<_> =
            self.files.iter().take(files).flat_map(|(_, events)| events).map(|event| (clock(event), event)).collect();
        live.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(live.len() >= turns, "too little chat for {turns} turns");
        live.into_iter().take(turns).map(|(_, event)| event.clone()).collect()
    }
}

/// The same turns, one from each channel in rotation: all channels close their windows at once.
fn in_step(live: &[TurnEvent]) -> Vec<TurnEvent> {
    let mut channels: BTreeMap<&Bank, VecDeque<&TurnEvent>> = BTreeMap::new();
    live.iter().for_each(|event| channels.entry(event.bank()).or_default().push_back(event));
    let mut stepped = Vec::with_capacity(live.len());
    while stepped.len() < live.len() {
        stepped.extend(channels.values_mut().filter_map(|channel| channel.pop_front().cloned()));
    }
    stepped
}

/// The turn of a line; `None` for a message of the server.
fn turn(bank: &str, id: &str, file: &str, line: &str) -> Option<TurnEvent> {
    let (clock, rest) = line.strip_prefix('[')?.split_once("] <")?;
    let (speaker, text) = rest.split_once("> ")?;
    let date = file.get(..10)?;
    let turn = serde_json::json!({
        "bank": bank, "turn": id, "speaker": speaker, "text": text, "time": format!("{date}T{clock}:00Z"),
    });
    TurnEvent::from_json(turn.to_string().as_bytes()).ok()
}

/// Settings with their own topics and their own cache of vectors.
fn pipeline(broker: &Broker, home: &Path, prefix: &str, extra: &str) -> Pipeline {
    let text = format!(
        "version = 1\n{extra}\n[log]\nkind = \"kafka\"\npartitions = {PARTITIONS}\n[log.kafka]\nbrokers = \"{}\"\n\
         prefix = \"{prefix}\"\n[serve]\ndeadline_ms = 3600000\n",
        broker.bootstrap()
    );
    let mut pipeline = Pipeline::parse(&text).expect("the settings are valid");
    pipeline.log.directory = home.join("cache");
    pipeline
}

/// Latency of transactions of one record.
fn commit(broker: &Broker) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let log = KafkaLog::open(&pipeline(broker, home.path(), "commit", FIXED).log).expect("a log");
    let value = vec![b'x'; 8_000];
    let mut times = Vec::new();
    for n in 0..520u32 {
        let memory = vec![(n.to_be_bytes().to_vec(), Some(value.clone()))];
        let transaction = Transaction { memory, ..Transaction::default() };
        let ms = seconds(|| log.commit(&transaction).expect("a commit")) * 1e3;
        // The first transactions open connections.
        if n >= 20 {
            times.push(ms);
        }
    }
    println!("commit of a record of 8 KB: {}", percentiles(&times));
}

/// Runs extraction and memory while `work` runs, which starts when all partitions are assigned;
/// calls `each` whenever the memory has followed the log.
fn at_work(pipeline: &Pipeline, each: impl Fn(&Replica) + Sync, work: impl FnOnce(&KafkaLog, &Replica)) {
    let log = KafkaLog::open(&pipeline.log).expect("a log");
    let beginning = ReplicaOptions {
        hold: ShardAssignmentMode::All,
        edges: None,
        record: false,
        asks: None,
        waking_log: None,
        turns: None,
        progress: &mut |_, _| {},
    };
    let replica = Replica::open(pipeline, &log, beginning).expect("threads start");
    let (stop, owned) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (_orders, arriving) = ExtractionOrderSender::new(&log);
            let join = || -> Result<Box<dyn PartitionAssignment>, PipelineError> {
                Ok(Box::new(GroupMember::join(&log, ConsumerGroup::Extractors)?))
            };
            let result = extract_in_group(pipeline, &log, join, &arriving, &stop, &mut |told| {
                owned.fetch_add(usize::from(matches!(told, ExtractionEvent::TakenOver { .. })), Ordering::Relaxed);
            });
            result.expect("extraction runs");
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let follow = |p| replica.follow(&log, p, |_, _, _| {}).expect("the memory follows");
                if (0..log.partitions()).map(follow).fold(false, |any, some| any | some) {
                    each(&replica);
                } else {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        while owned.load(Ordering::Relaxed) < PARTITIONS as usize {
            std::thread::sleep(Duration::from_millis(10));
        }
        work(&log, &replica);
        stop.store(true, Ordering::Relaxed);
    });
}

/// For each event its partition and the offset after it; `from` holds the partitions' next offsets.
fn ends(events: &[TurnEvent], from: &mut BTreeMap<u32, u64>) -> Vec<(u32, u64)> {
    let mut places = Vec::with_capacity(events.len());
    for event in events {
        let partition = partition_of(event.bank(), PARTITIONS);
        let end = from.entry(partition).or_default();
        *end += 1;
        places.push((partition, *end));
    }
    places
}

/// Time from appending a turn until a question can be answered with it, at 100 turns/s.
fn fresh(broker: &Broker, name: &str, events: &[TurnEvent]) {
    const TURNS_A_SECOND: f64 = 100.0;
    let home = tempfile::tempdir().expect("a temporary directory");
    let pipeline = pipeline(broker, home.path(), &format!("fresh-{name}"), DEFAULT);
    let waiting: Mutex<BTreeMap<u32, VecDeque<(u64, Instant)>>> = Mutex::default();
    let times = Mutex::new(Vec::new());
    let arrived = |replica: &Replica| {
        // Records that were followed are not yet indexed.
        replica.wait_until_visible().expect("the memory runs");
        let now = Instant::now();
        for (partition, turns) in waiting.lock().expect("no panic").iter_mut() {
            let reached = replica.position(*partition).unwrap_or_default();
            while turns.front().is_some_and(|(next, _)| *next <= reached) {
                let Some((_, sent)) = turns.pop_front() else { break };
                times.lock().expect("no panic").push((now - sent).as_secs_f64() * 1e3);
            }
        }
    };
    at_work(&pipeline, arrived, |log, _| {
        let begun = Instant::now();
        let mut from = BTreeMap::new();
        for (n, event) in events.iter().enumerate() {
            let due = begun + Duration::from_secs_f64(n as f64 / TURNS_A_SECOND);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let sent = Instant::now();
            for (partition, next) in ends(std::slice::from_ref(event), &mut from) {
                waiting.lock().expect("no panic").entry(partition).or_default().push_back((next, sent));
            }
            log.append_turns(std::slice::from_ref(event)).expect("an append");
        }
        let rate = events.len() as f64 / begun.elapsed().as_secs_f64();
        while times.lock().expect("no panic").len() < events.len() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut times = times.lock().expect("no panic").clone();
        // The first seconds open connections and warm caches.
        times.drain(..500);
        println!("turn to recallable at {rate:.0} turns/s, default embedder, {name}: {}", percentiles(&times));
    });
}

/// Throughput of the same turns through the embedded log and through Kafka.
fn sustained(broker: &Broker, chat: &Chat, name: &str, extra: &str, turns: usize) {
    let events = chat.live(20, turns);
    let (mut embedded, mut kafka) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut here = Pipeline::parse(&format!("version = 1\n{extra}")).expect("the settings are valid");
        here.log.directory = home.path().join("log");
        let mut service = PipelineDriver::open(&here, &mut |_| {}).expect("a log");
        // The first turn loads the model.
        service.log().append_turns(&[warm()]).expect("an append");
        service.catch_up().expect("the path runs");
        let t_embedded = seconds(|| {
            for batch in events.chunks(here.embed.read_turns) {
                service.log().append_turns(batch).expect("an append");
                service.catch_up().expect("the path runs");
            }
        });
        drop(service);
        let there = pipeline(broker, home.path(), &format!("sustained-{turns}-{round}"), extra);
        let mut t_kafka = 0.0;
        at_work(
            &there,
            |_| {},
            |log, replica| {
                // A log's client needs half a second for its first record.
                let mut from = BTreeMap::new();
                ends(&[warm()], &mut from);
                log.append_turns(&[warm()]).expect("an append");
                let all = |from: &BTreeMap<u32, u64>| {
                    let mut written = WritePosition::nothing(log.partitions());
                    from.iter().for_each(|(partition, end)| written.extend(*partition, *end));
                    replica.wait_for(&written, Instant::now() + Duration::from_secs(3_600));
                };
                all(&from);
                t_kafka = seconds(|| {
                    for batch in events.chunks(there.embed.read_turns) {
                        ends(batch, &mut from);
                        log.append_turns(batch).expect("an append");
                    }
                    all(&from);
                    replica.wait_until_visible().expect("the memory runs");
                });
            },
        );
        // The first round warms caches.
        if round > 0 {
            embedded.push(turns as f64 / t_embedded);
            kafka.push(turns as f64 / t_kafka);
        }
    }
    let ratios: Vec<f64> = kafka.iter().zip(&embedded).map(|(k, e)| k / e).collect();
    println!(
        "sustained, {name}: {:.0} turns/s through Kafka, {:.0} through the embedded log, ratio {:.2}",
        median(&kafka),
        median(&embedded),
        median(&ratios)
    );
}

fn warm() -> TurnEvent {
    turn("warm", "1", "2024-05-06", "[09:00] <Ann> A first turn opens the model").expect("a turn")
}

/// A running service process; killed when dropped.
struct Running(Child);

impl Running {
    fn start(file: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.arg("run").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the binary starts"))
    }

    /// Memory now (`VmRSS:`) or at its peak (`VmHWM:`), in megabytes.
    fn megabytes(&self, line: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let value = status.lines().find_map(|other| other.strip_prefix(line)).unwrap_or_default();
        let kibibytes = value.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok());
        kibibytes.unwrap_or(f64::NAN) * 1_024.0 / 1e6
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A service with the deterministic embedder ingests these banks, is killed and starts again.
fn volume(broker: &Broker, name: &str, banks: &[(String, Vec<TurnEvent>)]) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut pipeline = pipeline(broker, home.path(), &format!("volume-{name}"), FIXED);
    pipeline.metrics.listen = "127.0.0.1:0".to_owned();
    let file = home.path().join("pipeline.toml");
    fs::write(&file, toml::to_string(&pipeline).expect("it has a TOML form")).expect("a write");
    let log = KafkaLog::open(&pipeline.log).expect("a log");
    let service = Running::start(&file);
    let question =
        |bank: &str| Question::new(Bank::parse(bank).expect("a good name"), "Which sound card works with ALSA?");
    log.append_turns(&[warm()]).expect("an append");
    let started = Instant::now();
    // Until the service has made its topics.
    while let Err(error) = server::ask(&pipeline, &question("warm"), None, None) {
        assert!(started.elapsed() < Duration::from_secs(60), "the service does not answer: {error}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let empty = service.megabytes("VmRSS:");
    let begun = Instant::now();
    let (mut from, mut asked, mut turns) = (BTreeMap::new(), BTreeMap::new(), 0);
    for (bank, events) in banks {
        for batch in events.chunks(pipeline.embed.read_turns) {
            ends(batch, &mut from);
            log.append_turns(batch).expect("an append");
            turns += batch.len();
        }
        asked.insert(partition_of(&Bank::parse(bank).expect("a good name"), PARTITIONS), bank);
    }
    let loaded = begun.elapsed().as_secs_f64();
    for (partition, bank) in &asked {
        let last = from.get(partition).copied().unwrap_or_default() - 1;
        server::ask(&pipeline, &question(bank), Some((*partition, last)), None).expect("an answer");
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{name}: {turns} turns as {} bank(s), deterministic embedder: in the topic after {loaded:.0} s, all recallable \
         after {took:.0} s ({:.0} turns/s), at most {:.0} MB, {empty:.0} MB before the first turn",
        banks.len(),
        turns as f64 / took,
        service.megabytes("VmHWM:")
    );
    let bank = asked.values().next().expect("a bank");
    let restarted = |pipeline: &Pipeline, service: Running| {
        drop(service);
        let killed = Instant::now();
        let service = Running::start(&file);
        server::ask(pipeline, &question(bank), None, None).expect("an answer");
        (killed.elapsed().as_secs_f64(), service)
    };
    let (answered, service) = restarted(&pipeline, service);
    let peak = service.megabytes("VmHWM:");
    // With a fixed instance name the group need not wait for the old member's session timeout.
    pipeline.log.kafka.client.insert("group.instance.id".to_owned(), "one".to_owned());
    fs::write(&file, toml::to_string(&pipeline).expect("it has a TOML form")).expect("a write");
    let (_, service) = restarted(&pipeline, service);
    let (named, _service) = restarted(&pipeline, service);
    let records = (0..PARTITIONS).map(|p| log.end(Topic::Memory, p).expect("an end")).sum::<u64>();
    let census =
        PipelineDriver::open(&pipeline, &mut |_| {}).expect("a memory").replica().digest(None).expect("a memory").value;
    println!(
        "{name}: first answer {answered:.1} s after kill -9 of a memory of {} units and {} edges, {named:.1} s with a \
         group.instance.id ({:.1} s a 100,000 units; {records} offsets in the log, at most {peak:.0} MB)",
        census.units,
        census.semantic_edges + census.structural_edges,
        named * 1e5 / census.units as f64,
    );
}

/// Replay of turns into Parquet, compared with a consumer that only reads the topic.
fn replay(broker: &Broker, chat: &Chat) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let pipeline = pipeline(broker, home.path(), "replay", FIXED);
    let log = KafkaLog::open(&pipeline.log).expect("a log");
    let mut turns = 0;
    for (_, events) in &chat.files {
        for batch in events.chunks(pipeline.embed.read_turns) {
            log.append_turns(batch).expect("an append");
            turns += batch.len();
        }
    }
    let (mut bare, mut ours, mut bytes) = (Vec::new(), Vec::new(), 0);
    for round in 0..=ROUNDS {
        let t_bare = seconds(|| assert_eq!(consumed(broker, "replay.turns"), turns));
        let to = home.path().join(round.to_string());
        let request =
            ReplayRequest { table: ArchiveTable::Turns, to: &to, partition: None, from: None, by_bank: false };
        let t_ours = seconds(|| {
            let mut replay = TopicReplay::open(&pipeline.log, &request).expect("a log and a directory");
            while replay.step(false).expect("a read and a write") > 0 {}
            replay.finish().expect("a write");
            let files = &replay.index().files;
            assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), turns as u64);
            bytes = files.iter().map(|file| file.bytes).sum::<u64>();
        });
        if round > 0 {
            bare.push(turns as f64 / t_bare);
            ours.push(turns as f64 / t_ours);
        }
    }
    let ratios: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
    println!(
        "replay of {turns} turns: {:.0} turns/s into Parquet ({:.0} bytes a turn), a bare consumer {:.0}, ratio {:.2}",
        median(&ours),
        bytes as f64 / turns as f64,
        median(&bare),
        median(&ratios)
    );
}

/// Reads a topic from beginning to end and counts its records.
fn consumed(broker: &Broker, topic: &str) -> usize {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap())
        .set("group.id", "bare")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()
        .expect("a client");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition as i32, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&list).expect("partitions");
    let (mut records, mut left) = (0, PARTITIONS);
    while left > 0 {
        match consumer.poll(Duration::from_secs(60)).expect("a message") {
            Ok(_) => records += 1,
            Err(KafkaError::PartitionEOF(_)) => left -= 1,
            Err(error) => panic!("{error}"),
        }
    }
    records
}

fn percentiles(ms: &[f64]) -> String {
    format!("p50 {:.1} ms, p99 {:.1} ms", percentile(ms, 50), percentile(ms, 99))
}

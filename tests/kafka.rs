//! The service on a real broker: killed, divided among instances, and given invalid input. `kafka_outages` has lost
//! brokers and floods, `kafka_forwarded` turns in other partitions.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, MutexGuard,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use logs::{KafkaLog, Log, Topic};
use memory::index::GraphCensus;
use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};
use ripplemem::PipelineDriver;
use types::{
    config::{LogKind, Pipeline, ServiceRole, SourceSettings},
    model::{DeadLetter, TurnEvent},
    sync,
};

use super::{
    broker_process::Broker,
    oracle::Dice,
    pipelines,
    support::{Python, census, data, fails, ingest, kill_rounds, open, pipeline, ripplemem, rows, write},
};

const SNAPSHOTS: &str = "[snapshot]\ndirectory = \"snapshots\"\ninterval_seconds = 1\n";

/// The directory and pipeline file of a test, with the deterministic embedder.
pub(crate) struct Home {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) file: PathBuf,
}

impl Home {
    pub(crate) fn new(broker: &Broker, prefix: &str, extra: &str) -> Self {
        Self::with(broker, prefix, extra, "")
    }

    /// `extra` is inserted before the tables of the pipeline file, `tables` after them.
    pub(crate) fn with(broker: &Broker, prefix: &str, extra: &str, tables: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "version = 1\nembed.model = \"fixed\"\nembed.read_turns = 16\n{extra}\n[log]\nkind = \"kafka\"\n\
             directory = \"local\"\npartitions = 2\n[log.kafka]\nbrokers = \"{}\"\nprefix = \"{prefix}\"\n\
             session_seconds = 2\ntimeout_seconds = 120\n{tables}",
            broker.bootstrap()
        );
        let file = write(&directory.path().join("p.toml"), text);
        Self { directory, file }
    }

    pub(crate) fn change(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.file).unwrap();
        assert!(text.contains(from));
        fs::write(&self.file, text.replace(from, to)).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }

    pub(crate) fn pipeline(&self) -> Pipeline {
        Pipeline::read(&self.file).unwrap()
    }

    pub(crate) fn log(&self) -> KafkaLog {
        KafkaLog::open(&self.pipeline().log).unwrap()
    }

    pub(crate) fn run(&self) -> Running {
        self.run_build(env!("CARGO_BIN_EXE_ripplemem"))
    }

    /// Runs it, and logs what `lines` says, as `RUST_LOG`.
    pub(crate) fn run_that_logs(&self, lines: &str) -> Running {
        self.start(Command::new(env!("CARGO_BIN_EXE_ripplemem")).env("RUST_LOG", lines))
    }

    /// Runs another build.
    pub(crate) fn run_build(&self, binary: &str) -> Running {
        self.start(&mut Command::new(binary))
    }

    fn start(&self, command: &mut Command) -> Running {
        let told = fs::File::options().create(true).append(true).open(self.directory.path().join("told")).unwrap();
        let child =
            command.args(["run", self.path()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(told).spawn().unwrap();
        Running(child)
    }

    pub(crate) fn told(&self) -> String {
        fs::read_to_string(self.directory.path().join("told")).unwrap_or_default()
    }

    /// Waits until all turns are extracted.
    pub(crate) fn extracted(&self) {
        let log = self.log();
        let all = 0..log.partitions();
        wait(&|| self.told(), || all.clone().all(|p| log.lag(p, log.read_position(p).unwrap()).unwrap() == 0));
    }

    /// Waits until the memory is this. The cluster says that a transaction is committed before each partition shows its
    /// end, and the partitions of a broker that was lost show it once another broker leads them.
    pub(crate) fn reaches(&self, expected: &GraphCensus) {
        let told = || format!("{:?} is not {expected:?}\n{}", self.census(), self.told());
        wait(&told, || self.census() == *expected);
    }

    pub(crate) fn census(&self) -> GraphCensus {
        census(&PipelineDriver::open(&self.pipeline(), &mut |_| {}).unwrap())
    }
}

/// A service that is killed when the test ends.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Sends SIGTERM, as a supervisor does, and waits for an orderly end.
    pub(crate) fn stop(mut self) {
        assert!(Command::new("kill").arg(self.0.id().to_string()).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn wait(told: &dyn Fn() -> String, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(300), "timed out: {}", told());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Lets one test run at a time: on two cores, several would delay each other beyond their timeouts.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    sync::lock(&TURN)
}

/// The memory of the sample after an uninterrupted run on the embedded log.
pub(crate) fn uninterrupted() -> GraphCensus {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), "embed.read_turns = 16"));
    ingest(&mut service, &data("sample.jsonl"));
    census(&service)
}

/// The events of the sample, as `ingest` appends them.
pub(crate) fn sample() -> Vec<TurnEvent> {
    let mut source = sources::open(&SourceSettings::new("jsonl", data("sample.jsonl"))).unwrap();
    std::iter::from_fn(|| source.next(1_000).unwrap()).flat_map(|batch| batch.events).collect()
}

/// Runs an administrator's work on the cluster.
pub(crate) fn administer(broker: &Broker, work: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, &AdminOptions)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().unwrap();
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
    runtime.block_on(work(&admin, &options));
}

pub(crate) fn load(home: &Home) {
    let output = ripplemem(&["ingest", "jsonl", data("sample.jsonl").to_str().unwrap(), "--pipeline", home.path()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn turns(log: &dyn Log) -> Vec<TurnEvent> {
    let records = (0..2).flat_map(|p| log.read(Topic::Turns, p, 0, usize::MAX).unwrap().records);
    records.map(|r| TurnEvent::from_json(r.value.as_deref().unwrap()).unwrap()).collect()
}

#[test]
fn turns_arrive_and_a_question_is_answered_as_of_its_turn() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka::turns_arrive_and_a_question_is_answered_as_of_its_turn") else { return };
    let home = Home::new(&broker, "answered", &format!("{SNAPSHOTS}[serve]\nedges = true\n"));
    let service = home.run();
    load(&home);
    // A question waits for 10 s, and a machine under load starts a service in more than that.
    wait(&|| home.told(), || home.told().contains("ready: "));
    let ends: BTreeMap<u32, u64> = (0..2).map(|p| (p, home.log().end(Topic::Turns, p).unwrap())).collect();
    let (partition, end) = ends.into_iter().find(|(_, end)| *end > 0).unwrap();
    let after = format!("{partition}:{}", end - 1);
    let ask = |bank: &str, after: &str| {
        ripplemem(&["ask", "Which books?", "--bank", bank, "--after", after, "--json", "--pipeline", home.path()])
    };
    let answered = ask("sample/harbour", &after);
    assert!(answered.status.success(), "{}{}", String::from_utf8_lossy(&answered.stderr), home.told());
    let answer: serde_json::Value = serde_json::from_slice(&answered.stdout).unwrap();
    let reflects = answer["reflects"].as_array().unwrap();
    let reached = reflects.iter().find(|p| p["topic"] == "turns" && p["partition"] == partition).unwrap();
    assert_eq!(reached["next_offset"], end);
    assert!(!answer["units"].as_array().unwrap().is_empty());
    fails(&ask("sample/harbour", "9:0"), 1, &["ripplemem_after", "partition 9", "murmur2_random"]);
    let as_of =
        |at| ripplemem(&["ask", "Which books?", "--bank", "sample/harbour", "--as-of", at, "--pipeline", home.path()]);
    let now = as_of("2100-01-01T00:00:00Z");
    assert_eq!(String::from_utf8_lossy(&now.stdout), answer["context"].as_str().unwrap(), "{}", home.told());
    fails(&as_of("1999-01-01T00:00:00Z"), 1, &["1999-01-01T00:00:00Z", "the oldest that can be asked for"]);
    // The memory equals that of the embedded log, and the edges topic holds the edges of the graph.
    let expected = uninterrupted();
    assert_eq!(home.census(), expected);
    let edges = || {
        let output = ripplemem(&["tap", "edges", "--pipeline", home.path()]);
        let mut live = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            live.insert(record["key"].to_string(), !record["value"].is_null());
        }
        live.values().filter(|is_live| **is_live).count() as u64
    };
    wait(&|| home.told(), || edges() == expected.semantic_edges + expected.structural_edges);
    service.kill();
}

/// The reader of docs/kafka.md in Python, and a question with the headers of Spring and CloudEvents.
#[test]
fn another_client_reads_the_topics_and_asks() {
    let _turn = turn();
    let test = "kafka::another_client_reads_the_topics_and_asks";
    let Some(broker) = Broker::shared(test) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = Python::with("confluent-kafka", test) else { return };
    let home = Home::new(&broker, "elsewhere", "[serve]\nedges = true\n");
    let _service = home.run();
    load(&home);
    home.extracted();
    let expected = uninterrupted();

    let reader = fs::read_to_string(root.join("scripts/read_topics.py")).unwrap();
    let page = fs::read_to_string(root.join("docs/kafka.md")).unwrap();
    assert!(page.contains(&reader), "docs/kafka.md shows the script as it is");
    let reader = reader.replace("127.0.0.1:9092", broker.bootstrap()).replace("ripplemem.", "elsewhere.");
    let edges = format!("elsewhere.edges {} records", expected.semantic_edges + expected.structural_edges);
    let mut told = String::new();
    wait(&|| home.told(), || {
        told = python.run(&["-c", &reader]);
        told.contains(&edges)
    });
    assert!(told.contains(&format!(" {} units\n", expected.units)), "{told}");

    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let ask = |reply: &str, more: &[(&str, &[u8])], question: &str| -> serde_json::Value {
        let mut headers: BTreeMap<&str, String> = more.iter().map(|(name, value)| (*name, hex(value))).collect();
        // Bytes that are not UTF-8.
        headers.insert("kafka_correlationId", "00ff10".to_owned());
        headers.insert("kafka_replyTopic", hex(reply.as_bytes()));
        let script = root.join("tests/python/ask.py");
        let headers = serde_json::to_string(&headers).unwrap();
        let told = python.run(&[script.to_str().unwrap(), broker.bootstrap(), "elsewhere", &headers, question]);
        serde_json::from_str(&told).unwrap()
    };
    let question = r#"{"bank": "sample/harbour", "text": "Which books has Marta recommended to Elias?"}"#;
    let parent = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer =
        ask("elsewhere.answers", &[("kafka_replyPartition", &1u32.to_be_bytes()), ("traceparent", parent)], question);
    assert_eq!(answer["partition"], 1);
    assert_eq!(answer["headers"]["traceparent"], hex(parent));
    assert_eq!(answer["headers"]["ce_type"], hex(b"ripplemem.answer.v1"));
    assert_eq!(answer["headers"]["ce_specversion"], hex(b"1.0"));
    assert!(answer["value"]["units"].as_array().unwrap().len() > 1);
    let refused = |more: &[(&str, &[u8])], question: &str| {
        let refused = ask("elsewhere.answers", more, question);
        assert_eq!(refused["headers"]["ce_type"], hex(b"ripplemem.refusal.v1"), "{refused}");
        refused["value"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&[("ripplemem_deadline", b"1000")], question), "deadline");
    let nothing = ask("elsewhere.answers", &[], r#"{"bank": "nobody", "text": "Who?"}"#);
    assert_eq!(nothing["headers"]["ce_type"], hex(b"ripplemem.answer.v1"), "{nothing}");
    assert_eq!(nothing["value"]["notice"]["code"], "empty_bank", "{nothing}");
    assert_eq!(refused(&[], "{"), "invalid");
    assert_eq!(refused(&[("ripplemem_after", b"soon")], question), "invalid");
}

/// The service is killed in every round, and the loader in every other one.
#[test]
fn killed_at_any_moment_on_kafka() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka::killed_at_any_moment_on_kafka") else { return };
    let rounds = kill_rounds("RIPPLEMEM_KAFKA_KILL_ROUNDS");
    let (expected, events) = (uninterrupted(), sample());
    let (mut kills, mut partial, mut loaders, mut duplicates) = (0, 0, 0, 0);
    for round in 0..rounds {
        let mut dice = Dice(round);
        // Every third service restores from snapshots, which it writes every second.
        let home = Home::new(&broker, &format!("killed-{round}"), if round % 3 == 2 { SNAPSHOTS } else { "" });
        if round % 2 == 1 {
            let sample = data("sample.jsonl");
            let mut loader = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
                .args(["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", home.path()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(dice.below(1_200)));
            loaders += u64::from(loader.try_wait().unwrap().is_none());
            drop(loader.kill());
            loader.wait().unwrap();
        }
        // A user whose load failed loads the file again.
        load(&home);
        for _ in 0..1 + dice.below(3) {
            let service = home.run();
            std::thread::sleep(Duration::from_millis(300 + dice.below(1_500)));
            service.kill();
            kills += 1;
        }
        let log = home.log();
        let said = turns(&log);
        let position: u64 = (0..2).map(|p| log.read_position(p).unwrap()).sum();
        partial += u64::from(position > 0 && position < said.len() as u64);
        let service = home.run();
        home.extracted();
        // Every acknowledged turn is there, and no other.
        duplicates += said.len() - events.len();
        assert!(said.iter().all(|turn| events.contains(turn)), "round {round}: an unknown turn");
        assert!(events.iter().all(|turn| said.contains(turn)), "round {round}: a turn is missing");
        assert_eq!(turns(&log), said, "round {round}");
        // The memory equals that of an uninterrupted run.
        home.reaches(&expected);
        // A redelivery changes nothing, and new turns are extracted.
        load(&home);
        let fresh = serde_json::json!({"bank": "fresh", "turn": "1", "speaker": "Ann", "text": "I moved to Lisbon.",
            "time": "2024-05-06T09:00:00Z"});
        log.append_turns(&[TurnEvent::from_json(fresh.to_string().as_bytes()).unwrap()]).unwrap();
        home.extracted();
        let after = home.census();
        assert_eq!(after.units, expected.units + 1, "round {round}: {}", home.told());
        assert_eq!(after.semantic_edges, expected.semantic_edges, "round {round}, read again");
        service.kill();
    }
    println!(
        "{kills} kills of the service in {rounds} rounds on Kafka, {partial} rounds in the middle of the turns; \
         {loaders} kills of the loader, {duplicates} turns twice in the topic"
    );
}

#[test]
fn invalid_records_go_to_the_dead_letters() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka::invalid_records_go_to_the_dead_letters") else { return };
    let home = Home::new(&broker, "poison", "");
    drop(home.log());
    let turn =
        r#"{"bank": "b", "turn": "1", "speaker": "Ann", "text": "I moved to Lisbon.", "time": "2024-05-06T09:00:00Z"}"#;
    let long = turn.replace("I moved to Lisbon.", &"long ".repeat(210_000));
    let newer = turn.replace("{\"bank\"", "{\"schema\": 2, \"bank\"");
    let lines: String = [("b", "{"), ("b", long.as_str()), ("b", newer.as_str()), ("", turn), ("b", turn)]
        .iter()
        .map(|(key, value)| format!("{key}\t{value}\n"))
        .collect();
    let output = produce(&broker, "poison.turns", &lines);
    assert!(output.contains('\t'), "{output}");
    let _service = home.run();
    home.extracted();
    let letters = home.log().read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    let letters: Vec<DeadLetter> =
        letters.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect();
    for word in ["not JSON", "1048576", "schema: 2", "no key"] {
        assert!(letters.iter().any(|l| l.reason.contains(word) && l.position.is_some()), "{word}: {letters:?}");
    }
    assert_eq!(letters.len(), 4);
    let tapped = ripplemem(&["tap", "dead-letters", "--pipeline", home.path()]);
    let tapped = String::from_utf8(tapped.stdout).unwrap();
    for header in ["__connect.errors.topic", "__connect.errors.offset", "__connect.errors.exception.message"] {
        assert_eq!(tapped.matches(header).count(), 4, "{header}");
    }
    assert_eq!(home.census().units, 1, "the valid turn was extracted");
}

/// The command completes the replay of a killed service, and another reader finds the topic's records.
#[test]
fn a_replay_is_complete_although_it_is_killed_while_the_topics_grow() {
    let _turn = turn();
    let test = "kafka::a_replay_is_complete_although_it_is_killed_while_the_topics_grow";
    let Some(broker) = Broker::shared(test) else { return };
    let Some(python) = Python::with("pyarrow", test) else { return };
    let home = Home::with(&broker, "replayed", "", "[replay]\ndirectory = \"tables\"\nfinish_seconds = 1\n");
    let (log, events, mut dice) = (home.log(), sample(), Dice(7));
    let extracting = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    home.change("version = 1", "version = 1\nroles = [\"replay\"]");
    for some in events.chunks(events.len() / 4) {
        let running = home.run();
        let about = |told: &str| told.matches("\"topic\":\"memory\"").count();
        let before = about(&home.told());
        wait(&|| home.told(), || about(&home.told()) > before);
        for event in some {
            log.append_turns(std::slice::from_ref(event)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(dice.below(2_500)));
        running.kill();
    }
    let unread = r#"{"bank": "b", "turn": 1}"#;
    produce(&broker, "replayed.turns", &format!("b\t{unread}\n"));
    home.extracted();
    extracting.kill();
    let tables = home.directory.path().join("tables");
    let tables = tables.to_str().unwrap();
    for topic in ["turns", "memory", "dead-letters"] {
        let arguments = ["replay", "--to", tables, "--topic", topic, "--pipeline", home.path()];
        let output = ripplemem(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let again = String::from_utf8(ripplemem(&arguments).stdout).unwrap();
        assert!(again.contains(" 0 files more"), "{again}");
    }
    let replayed = rows(&python, &format!("{tables}/turns"));
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let stored = |topic: Topic| -> Vec<(u64, u64, String)> {
        let partitions = if topic == Topic::DeadLetters { 0..1 } else { 0..2u32 };
        let of = |p: u32| log.read(topic, p, 0, usize::MAX).unwrap().records.into_iter().map(move |r| (p, r));
        let all = partitions.flat_map(of);
        all.map(|(p, r)| (p.into(), r.offset, hex(&r.value.unwrap_or_default()))).collect()
    };
    let position = |row: &serde_json::Value| {
        let number = |name: &str| row[name].as_u64().unwrap();
        (number("partition"), number("offset"), row["value"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(replayed.iter().map(position).collect::<Vec<_>>(), stored(Topic::Turns));
    let problems: Vec<&str> = replayed.iter().filter_map(|row| row["problem"].as_str()).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let letters = rows(&python, &format!("{tables}/dead-letters"));
    assert_eq!(letters.iter().map(position).collect::<Vec<_>>(), stored(Topic::DeadLetters));
    assert!(letters[0]["headers"].as_array().unwrap().iter().any(|h| h["key"] == "__connect.errors.topic"));
    // A replay contains read positions, which a read of the log leaves out.
    let memory = rows(&python, &format!("{tables}/memory"));
    let records: Vec<_> = memory.iter().filter(|row| !row["bank"].is_null()).map(position).collect();
    assert_eq!(records, stored(Topic::Memory));
    assert!(records.len() < memory.len());
}

/// Writes `key<TAB>value` lines with Kafka's Java client.
pub(crate) fn produce(broker: &Broker, topic: &str, lines: &str) -> String {
    use std::io::Write;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = Command::new(root.join("scripts/broker")).arg("fetch").output().unwrap().stdout;
    let libraries = format!("{}/*", String::from_utf8(libraries).unwrap().trim());
    let mut java = Command::new("java")
        .args(["-cp", &libraries])
        .arg(root.join("tests/java/Produce.java"))
        .args([broker.bootstrap(), topic])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    java.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    String::from_utf8(java.wait_with_output().unwrap().stdout).unwrap()
}

/// Turns keep arriving while instances start, stop and are killed.
#[test]
fn services_share_the_partitions_and_take_over_under_load() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka::services_share_the_partitions_and_take_over_under_load") else { return };
    let home = || Home::new(&broker, "shared", "");
    let (one, two, three) = (home(), home(), home());
    let assigned = |home: &Home| home.told().matches("the partition is extracted here").count();
    let first = one.run();
    wait(&|| one.told(), || assigned(&one) == 2);
    let events = sample();
    std::thread::scope(|scope| {
        // The loader repeats the sample until all changes of instances are done, however slow they are.
        let (stop_loader, stopped) = mpsc::channel::<()>();
        let (log, events) = (one.log(), &events);
        let loader = scope.spawn(move || {
            for (sent, event) in events.iter().cycle().enumerate() {
                let over = stopped.recv_timeout(Duration::from_millis(20)) != Err(RecvTimeoutError::Timeout);
                if over && sent >= events.len() {
                    break;
                }
                log.append_turns(std::slice::from_ref(event)).unwrap();
            }
        });
        let second = two.run();
        wait(&|| two.told(), || assigned(&two) > 0);
        first.stop();
        wait(&|| two.told(), || assigned(&two) > 1);
        let _third = three.run();
        wait(&|| three.told(), || assigned(&three) > 0);
        second.kill();
        wait(&|| three.told(), || assigned(&three) > 1);
        drop(stop_loader);
        loader.join().unwrap();
        three.extracted();
    });
    three.reaches(&uninterrupted());
}

#[test]
fn a_secure_listener_accepts_only_known_users_with_rights() {
    let _turn = turn();
    let test = "kafka::a_secure_listener_accepts_only_known_users_with_rights";
    let Some(broker) = Broker::start(test, &["--secure"]) else { return };
    let secure = |user: &str, variable: &str| {
        let mut log = Pipeline::parse("version = 1").unwrap().log;
        log.kind = LogKind::Kafka;
        log.kafka.brokers = broker.text("secure_bootstrap").to_owned();
        log.kafka.timeout_seconds = 5;
        log.kafka.security = Some(types::config::KafkaSecuritySettings {
            protocol: "sasl_ssl".to_owned(),
            ca_file: Some(PathBuf::from(broker.text("ca_pem"))),
            mechanism: Some("SCRAM-SHA-512".to_owned()),
            username: Some(user.to_owned()),
            password_env: Some(variable.to_owned()),
        });
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").unwrap();
        pipeline.log = log;
        pipeline.log.directory = home.path().join("local");
        let file = write(&home.path().join("p.toml"), toml::to_string(&pipeline).unwrap());
        Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["lag", "--pipeline", file.to_str().unwrap()])
            .env("RIGHT", broker.text("password"))
            .env("GUEST", broker.text("guest_password"))
            .env("WRONG", "wrong")
            .output()
            .unwrap()
    };
    let known = secure(broker.text("username"), "RIGHT");
    assert!(known.status.success(), "{}", String::from_utf8_lossy(&known.stderr));
    fails(&secure(broker.text("username"), "WRONG"), 1, &["log.kafka.security"]);
    fails(&secure(broker.text("guest_username"), "GUEST"), 1, &["rights"]);
    fails(&secure(broker.text("username"), "NOT_SET_AT_ALL"), 1, &["NOT_SET_AT_ALL", "not set"]);
}

/// With the real model, and a topic prefix for each file.
#[test]
fn every_pipeline_on_kafka_runs() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka::every_pipeline_on_kafka_runs") else { return };
    for file in pipelines::files() {
        let mut pipeline = Pipeline::read(&file).unwrap();
        if pipeline.log.kind != LogKind::Kafka {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        pipeline.log.directory = directory.path().join("local");
        pipeline.replay.directory = directory.path().join("replay");
        pipeline.log.kafka.brokers = broker.bootstrap().to_owned();
        pipeline.log.kafka.prefix = format!("file-{}", file.file_stem().unwrap().to_str().unwrap());
        for listen in [&mut pipeline.metrics.listen, &mut pipeline.http.listen] {
            "127.0.0.1:0".clone_into(listen);
        }
        let copy = write(&directory.path().join("p.toml"), toml::to_string(&pipeline).unwrap());
        let home = Home { directory, file: copy };
        let _service = home.run();

        let word = match pipeline.roles[0] {
            ServiceRole::Extract => "the partition is extracted here",
            ServiceRole::Serve => "ready",
            ServiceRole::Replay => "written as Parquet",
        };
        wait(&|| home.told(), || home.told().contains(word));
    }
}

//! A shard that moves, because its holder was killed: `cargo bench --bench moved`.
//!
//! Two instances with `serve.hold = "assigned"` on a memory of one partition, with 100 banks of 1,000
//! synthetic units (`RIPPLEMEM_UNITS` sets the total), the deterministic embedder and the default session
//! timeout. The holder is killed with `kill -9`. Measures the time from then to the first answer to a question that was
//! asked afterwards, with and without snapshots, beside its parts: the session timeout, and the time in which this
//! process loads the memory from the same snapshot or log. Needs Java 17 and Maven for the broker.
#![allow(clippy::print_stdout)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use logs::{KafkaLog, Log, Transaction};
use models::embed::EmbedderPool;
use replica::{Replica, ReplicaOptions};
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::Bank,
};

#[path = "../tests/broker_process.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the tests use all of it")]
mod broker_process;
#[path = "../tests/skipped.rs"]
mod skipped;
use broker_process::Broker;
#[path = "../tests/question_client.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the tests use all of it")]
mod question_client;
use question_client::Client;
#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::median;
#[allow(dead_code, reason = "the other benches use the rest")]
mod synthetic;
use synthetic::{record, unit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BANKS: usize = 100;
const WINDOW: usize = 40;
/// Records of a transaction.
const COMMIT: usize = 25;
const ROUNDS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    let units = std::env::var("RIPPLEMEM_UNITS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let Some(broker) = Broker::start("moved", &[]) else { return };
    for (name, snapshots) in [("with snapshots", true), ("from the log alone", false)] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let place = if snapshots { "[snapshot]\ndirectory = \"snapshots\"\ninterval_seconds = 1\n" } else { "" };
        let prefix = if snapshots { "snapshots" } else { "log" };
        let setting = Setting { broker: &broker, home: home.path(), prefix, place };
        setting.fill(units);
        setting.measure(name);
    }
}

struct Setting<'b> {
    broker: &'b Broker,
    home: &'b Path,
    prefix: &'b str,
    place: &'b str,
}

/// An instance, and the file with its stderr.
struct Instance {
    child: Child,
    told: PathBuf,
}

impl Setting<'_> {
    /// The pipeline file of an instance.
    fn file(&self, instance: &str) -> PathBuf {
        let Self { broker, home, prefix, place } = self;
        let text = format!(
            "version = 1\nembed.model = \"fixed\"\n[log]\nkind = \"kafka\"\ndirectory = \"{instance}\"\npartitions = 1\n\
             [log.kafka]\nbrokers = \"{}\"\nprefix = \"{prefix}\"\n[serve]\nhold = \"assigned\"\n{place}",
            broker.bootstrap()
        );
        let file = home.join(format!("{instance}.toml"));
        fs::write(&file, text).expect("a file");
        file
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::read(&self.file("bench")).expect("the settings are valid")
    }

    /// Writes the banks into the memory topic, as if they had been extracted.
    fn fill(&self, units: usize) {
        let pipeline = self.pipeline();
        let embedders = EmbedderPool::open(&pipeline.embed, &pipeline.model()).expect("the deterministic embedder");
        let log = KafkaLog::open(&pipeline.log).expect("a log");
        log.own(0).expect("the partition");
        let size = units / BANKS;
        let mut memory = Vec::new();
        let commit = |memory| log.commit(&Transaction { memory, ..Transaction::default() }).expect("a commit");
        for window in 0..size.div_ceil(WINDOW) {
            for bank in 0..BANKS {
                let bank = Bank::parse(&format!("bank-{bank}")).expect("a good name");
                let of = window * WINDOW..((window + 1) * WINDOW).min(size);
                let mut units: Vec<_> = of.map(|i| unit(&bank, size, i)).collect();
                units.iter_mut().for_each(|unit| unit.vector = unit.vector.in_steps());
                let (key, mut record) = record(&bank, (window * WINDOW) as u32, units);
                record.model = embedders.model().expect("it is open").clone();
                memory.push((key.to_bytes(), Some(serde_json::to_vec(&record).expect("it has a JSON form"))));
                if memory.len() == COMMIT {
                    commit(std::mem::take(&mut memory));
                }
            }
        }
        commit(memory);
    }

    fn run(&self, instance: &str) -> Instance {
        let told = self.home.join(format!("{instance}.told"));
        let stderr = fs::File::options().create(true).append(true).open(&told).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.arg("run").arg(self.file(instance)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        Instance { child: command.spawn().expect("an instance"), told }
    }

    fn measure(&self, name: &str) {
        let session = self.pipeline().log.kafka.session_seconds;
        let (mut holder, mut next) = (self.run("a"), self.run("b"));
        let mut client = Client::new(self.broker, self.prefix);
        self.answer(&mut client);
        let (mut moves, mut makes) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            if self.place.is_empty() {
                std::thread::sleep(Duration::from_secs(5));
            } else {
                // One is written each second if something changed; the first takes longer.
                wait(|| has_snapshot(self.home));
            }
            if holder.assigned() < next.assigned() {
                std::mem::swap(&mut holder, &mut next);
            }
            let before = next.assigned();
            holder.child.kill().expect("it runs");
            let killed = Instant::now();
            self.answer(&mut client);
            moves.push(killed.elapsed().as_secs_f64());
            assert!(next.assigned() > before, "the other instance has the shard now");
            holder.child.wait().expect("it has ended");
            makes.push(self.make());
            let again = holder.told.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            // From here on, the restarted instance is on standby.
            holder = std::mem::replace(&mut next, self.run(&again));
            next.ready();
            self.answer(&mut client);
        }
        let (moved, made) = (median(&moves), median(&makes));
        println!(
            "{name}: the first answer {moved:.1} s after the holder was killed (each round: {}); the session timeout is \
             {session} s, and the memory is made in {made:.1} s: {} their sum",
            each(&moves),
            if moved <= session as f64 + made { "within" } else { "MORE THAN" }
        );
    }

    /// Asks until there is an answer to a question that was asked from now on.
    fn answer(&self, client: &mut Client) {
        let far = (jiff::Timestamp::now().as_millisecond() + 600_000).to_string();
        let id = client.ask("bank-0", "Where did Ann walk yesterday?", &[("ripplemem_deadline", &far)]);
        let answer = client.reply(id, PATIENCE);
        assert!(answer["context"].is_string(), "{answer}");
    }

    /// Loads the memory in this process as an instance does; returns the seconds.
    fn make(&self) -> f64 {
        let pipeline = self.pipeline();
        let log = KafkaLog::open(&pipeline.log).expect("a log");
        let started = Instant::now();
        let beginning = ReplicaOptions {
            hold: ShardAssignmentMode::All,
            edges: None,
            record: false,
            asks: None,
            waking_log: None,
            turns: None,
            progress: &mut |_, _| {},
        };
        let replica = Replica::open(&pipeline, &log, beginning).expect("a memory");
        while replica.follow(&log, 0, |_, _, _| {}).expect("the memory follows") {}
        replica.wait_until_visible().expect("the memory runs");
        started.elapsed().as_secs_f64()
    }
}

impl Instance {
    fn told(&self) -> String {
        fs::read_to_string(&self.told).unwrap_or_default()
    }

    /// How often it was assigned the shard.
    fn assigned(&self) -> usize {
        self.told().matches("shard 0: assigned to this instance").count()
    }

    fn ready(&self) {
        let starts = self.told().matches("ready: ").count();
        wait(|| self.told().matches("ready: ").count() > starts);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn has_snapshot(home: &Path) -> bool {
    fs::read_dir(home.join("snapshots/shard-00000/manifests")).is_ok_and(|mut found| found.next().is_some())
}

fn wait(mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn each(seconds: &[f64]) -> String {
    seconds.iter().map(|s| format!("{s:.1}")).collect::<Vec<_>>().join(", ")
}

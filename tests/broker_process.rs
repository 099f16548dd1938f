//! A real Kafka broker for a test, or a skipped test with the reason.
//!
//! The unit tests of the log and the integration tests share this file. Each cluster has its own directory and free
//! ports. A test that kills or configures brokers starts its own cluster, which stops when the test drops it. The others
//! share one: the one of `RIPPLEMEM_TEST_BROKER`, which `scripts/test` starts for the whole run, otherwise one of this
//! process. Its topics are deleted when no test uses it, because a small broker with a thousand partitions answers late.

use std::{
    mem,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};

use super::skipped::{print, skip};

/// The variable with the directory of the cluster that all tests of a run share.
const DIRECTORY: &str = "RIPPLEMEM_TEST_BROKER";
/// How long the deletion of topics may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many tests use the shared broker now.
static USERS: Mutex<usize> = Mutex::new(0);

/// A running cluster of one or more brokers.
pub(crate) struct Broker {
    directory: PathBuf,
    /// The start script's output.
    pub started: serde_json::Value,
}

/// The shared broker; shows its last log lines when the test fails. The last of those that use it deletes all topics.
pub(crate) struct SharedBroker(&'static Broker);

impl Broker {
    /// Starts a broker; without Java or Kafka's jars it reports the test as skipped and returns `None`.
    pub(crate) fn start(test: &str, options: &[&str]) -> Option<Self> {
        let fetched = script().arg("fetch").output().unwrap();
        if matches!(fetched.status.code(), Some(4 | 5)) {
            let why = String::from_utf8_lossy(&fetched.stderr);
            skip(test, why.lines().last().unwrap_or("no broker"));
            return None;
        }
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
        let home = tempfile::Builder::new().prefix("ripplemem-broker-").tempdir().unwrap();
        let directory = home.keep().join("kafka");
        let started = run(script().arg("start").arg(&directory).args(options));
        Some(Self { directory, started })
    }

    /// The broker shared by the tests that do not kill or reconfigure it.
    pub(crate) fn shared(test: &str) -> Option<SharedBroker> {
        static SHARED: Mutex<Option<&'static Broker>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            *shared = Some(Box::leak(Box::new(Self::of_this_run(test)?)));
        }
        *USERS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        (*shared).map(SharedBroker)
    }

    /// The broker of the whole run, or one that stops when this process has ended, however it ends.
    fn of_this_run(test: &str) -> Option<Self> {
        if let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) {
            let started = run(script().arg("status").arg(&directory));
            return Some(Self { directory, started });
        }
        let broker = Self::start(test, &[])?;
        let mut stop = Command::new("sh");
        stop.args(["-c", "cat > /dev/null; \"$0\" stop \"$1\" > /dev/null; rm -rf \"$2\""]);
        stop.arg(script().get_program()).arg(&broker.directory).arg(broker.home());
        // The end of this process closes the pipe, which `cat` waits for.
        mem::forget(stop.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        Some(broker)
    }

    /// `host:port` of every broker.
    pub(crate) fn bootstrap(&self) -> &str {
        self.text("bootstrap")
    }

    /// A text in the start script's output.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.started[key].as_str().unwrap_or_else(|| panic!("{key} is not in {}", self.started))
    }

    /// Runs `kill`, `restart`, `pause`, `resume` or `stop` on one broker, or on all.
    pub(crate) fn act(&self, command: &str, id: Option<u32>) {
        let mut script = script();
        script.arg(command).arg(self.directory());
        if let Some(id) = id {
            script.args(["--id", &id.to_string()]);
        }
        let output = script.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Kills the broker once these partitions hold the ends of their last transactions, and takes these ends out, as if it
    /// had been killed just before it wrote them; the cluster knows that the transactions have ended, and the partitions
    /// do not. The broker is left down.
    pub(crate) fn kill_without_markers(&self, partitions: &[String]) {
        // A commit returns before the cluster has written the ends.
        let until = Instant::now() + Duration::from_secs(60);
        for partition in partitions {
            while self.last_marker(partition).is_none() {
                assert!(Instant::now() < until, "the last record of {partition} is no marker");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.act("kill", None);
        for partition in partitions {
            let (segment, at) = self.last_marker(partition).unwrap();
            std::fs::File::options().write(true).open(&segment).unwrap().set_len(at).unwrap();
        }
    }

    /// The first segment of a partition, and where its last batch begins if that is the end of a transaction.
    fn last_marker(&self, partition: &str) -> Option<(PathBuf, u64)> {
        let segment = self.directory().join("broker-1/data").join(partition).join("00000000000000000000.log");
        let stored = std::fs::read(&segment).unwrap();
        let (mut last, mut next) = (0, 0);
        while next < stored.len() {
            // A batch is its first offset, its length, and its length in bytes. The last one may be half written.
            let length = u32::from_be_bytes(stored.get(next + 8..next + 12)?.try_into().unwrap()) as usize;
            (last, next) = (next, next + 12 + length);
        }
        let attributes = u16::from_be_bytes(stored.get(last + 21..last + 23)?.try_into().unwrap());
        (next == stored.len() && attributes & 0x20 != 0).then_some((segment, last as u64))
    }

    /// Prints the brokers' last log lines, when a test fails.
    fn print_logs(&self) {
        for entry in std::fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            let Ok(log) = std::fs::read_to_string(entry.path().join("server.log")) else { continue };
            let words = ["ERROR", "FATAL", "OutOfMemory", "encing broker", "handleBrokerUnfenced", "shut"];
            let lines: Vec<&str> = log.lines().filter(|line| words.iter().any(|word| line.contains(word))).collect();
            let last = lines.iter().skip(lines.len().saturating_sub(10));
            let end = log.lines().last().unwrap_or_default();
            let shown: String = last.chain([&end]).map(|line| format!("  {line:.300}\n")).collect();
            print(&format!("{}, now {:?}:\n{shown}", entry.path().display(), std::time::SystemTime::now()));
        }
    }

    /// Deletes every topic that is not the brokers' own.
    fn delete_topics(&self) -> Result<(), Box<dyn std::error::Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", self.bootstrap()).create()?;
        let topics = admin.inner().fetch_metadata(None, PATIENCE)?;
        let names: Vec<&str> =
            topics.topics().iter().map(|topic| topic.name()).filter(|name| !name.starts_with("__")).collect();
        if names.is_empty() {
            return Ok(());
        }
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        for deleted in runtime.block_on(admin.delete_topics(&names, &options))? {
            deleted.map_err(|(topic, problem)| format!("{topic}: {problem}"))?;
        }
        Ok(())
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn home(&self) -> &Path {
        self.directory.parent().unwrap()
    }
}

impl Deref for SharedBroker {
    type Target = Broker;

    fn deref(&self) -> &Broker {
        self.0
    }
}

impl Drop for SharedBroker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_logs();
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0
            && let Err(problem) = self.delete_topics()
        {
            print(&format!("the topics of the shared broker are not deleted: {problem}"));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_logs();
        }
        drop(script().arg("stop").arg(self.directory()).output());
        drop(std::fs::remove_dir_all(self.home()));
    }
}

fn script() -> Command {
    // The tests of a crate below `src` start brokers, too.
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("scripts/broker"));
    let mut command = Command::new(scripts.into_iter().find(|script| script.exists()).unwrap());
    command.stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> serde_json::Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

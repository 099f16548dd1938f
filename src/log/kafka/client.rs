//! Settings to clients of a Kafka cluster, and what a client says to errors.
//!
//! In: [`KafkaSettings`]. Out: client configurations with the defaults that this project
//! relies on, and a context that keeps the client's last complaint: a wrong password or an
//! unknown authority shows in a request only as a time-out.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, ClientContext,
    config::RDKafkaLogLevel,
    consumer::ConsumerContext,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{DeliveryResult, ProducerContext},
};
use serde::Deserialize;

use super::super::LogError;
use crate::config::KafkaSettings;
use crate::sync;

/// Largest record, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 8 << 20;

/// How long a complaint explains what fails.
const RECENT: Duration = Duration::from_secs(60);

/// How long one client is given where another might be luckier: one that asked while the
/// cluster came back may wait for ever.
pub(crate) const TRYING: Duration = Duration::from_secs(5);

/// What a client complained of last, and which of its records were refused.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    complaint: Arc<Mutex<Option<(Instant, String)>>>,
    deliveries: Arc<Mutex<Deliveries>>,
    stranded: Arc<AtomicBool>,
}

/// What became of the records of one write.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    /// The first failure.
    pub failed: Option<KafkaError>,
    /// The last offset of each (topic, partition).
    pub last: HashMap<(String, i32), i64>,
}

impl Watch {
    /// That all brokers are down follows every complaint and explains none.
    fn note(&self, said: &str) {
        let mut complaint = sync::lock(&self.complaint);
        if complaint.is_none() || !said.ends_with("brokers are down") {
            *complaint = Some((Instant::now(), said.to_owned()));
        }
    }

    /// What was said long ago explains nothing now.
    fn complaint(&self) -> Option<String> {
        let complaint = sync::lock(&self.complaint).clone();
        complaint.filter(|(at, _)| at.elapsed() < RECENT).map(|(_, said)| said)
    }

    /// Whether the client knows of no broker any more. It stays so: told once that no broker is
    /// there, it forgets those that it began with (librdkafka's issue 5301). Only a new one helps.
    pub(crate) fn stranded(&self) -> bool {
        self.stranded.load(Ordering::Relaxed)
    }

    /// What became of the records since the last call.
    pub(crate) fn take_deliveries(&self) -> Deliveries {
        std::mem::take(&mut *sync::lock(&self.deliveries))
    }
}

impl ClientContext for Watch {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, message: &str) {
        if matches!(
            level,
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error
        ) {
            self.note(message);
        }
    }

    fn error(&self, _error: KafkaError, reason: &str) {
        self.note(reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        #[derive(Deserialize)]
        struct Known {
            brokers: HashMap<String, Broker>,
        }
        #[derive(Deserialize)]
        struct Broker {
            source: String,
        }
        if let Ok(Known { brokers }) = serde_json::from_slice(statistics) {
            let some = brokers.values().any(|broker| matches!(broker.source.as_str(), "configured" | "learned"));
            self.stranded.store(!some, Ordering::Relaxed);
        }
    }
}

impl ConsumerContext for Watch {}

/// Lets a client go that another one has replaced: its farewell may take long.
pub(crate) fn let_go(client: impl Send + 'static) {
    // Without a thread it is dropped here.
    drop(std::thread::Builder::new().name("farewell".to_owned()).spawn(move || drop(client)));
}

impl ProducerContext for Watch {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        use rdkafka::Message;
        let mut deliveries = sync::lock(&self.deliveries);
        match result {
            Ok(message) => {
                let place = (message.topic().to_owned(), message.partition());
                let last = deliveries.last.entry(place).or_insert(-1);
                *last = (*last).max(message.offset());
            }
            Err((error, _)) => drop(deliveries.failed.get_or_insert_with(|| error.clone())),
        }
    }
}

/// A cluster as its clients reach it.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// How it is reached.
    pub settings: KafkaSettings,
    base: ClientConfig,
}

impl Cluster {
    /// Reads the secrets; connects to nothing.
    ///
    /// # Errors
    /// [`LogError::Cluster`] when a secret's variable is not set.
    pub(crate) fn new(settings: &KafkaSettings) -> Result<Self, LogError> {
        let mut base = ClientConfig::new();
        base.set("bootstrap.servers", &settings.brokers)
            .set("client.id", "ripplemem")
            .set("socket.keepalive.enable", "true")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("topic.metadata.refresh.interval.ms", "10000")
            .set("message.max.bytes", MAX_RECORD_BYTES.to_string())
            // Shows when a client is stranded.
            .set("statistics.interval.ms", "5000")
            .set_log_level(RDKafkaLogLevel::Error);
        if let Some(security) = &settings.security {
            base.set("security.protocol", &security.protocol);
            if let Some(file) = &security.ca_file {
                base.set("ssl.ca.location", file.to_string_lossy());
            }
            if let Some(mechanism) = &security.mechanism {
                base.set("sasl.mechanism", mechanism);
            }
            if let Some(username) = &security.username {
                base.set("sasl.username", username);
            }
            if let Some(variable) = &security.password_env {
                let password = std::env::var(variable).map_err(|_| LogError::Cluster {
                    brokers: settings.brokers.clone(),
                    doing: "reading the password".to_owned(),
                    problem: format!("the environment variable {variable} is not set"),
                    remedy: "set it; log.kafka.security.password_env names it",
                    passing: false,
                })?;
                base.set("sasl.password", password);
            }
        }
        for (key, value) in &settings.client {
            base.set(key, value);
        }
        Ok(Self { settings: settings.clone(), base })
    }

    /// How long a request may take.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.settings.timeout_seconds)
    }

    /// The name of a topic.
    pub(crate) fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.settings.prefix)
    }

    /// A plain client's configuration.
    pub(crate) fn client(&self) -> ClientConfig {
        self.base.clone()
    }

    /// A consumer that is told what to read, sees committed records only and says where a
    /// partition ends. Without a group nothing waits for it to poll: what it has not been
    /// asked for stays at the broker, but for `queued_kilobytes` of a partition.
    pub(crate) fn reader(&self, queued_kilobytes: usize) -> ClientConfig {
        let mut config = self.base.clone();
        config
            .set("group.id", format!("{}.readers", self.settings.prefix))
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "100")
            .set("fetch.error.backoff.ms", "50")
            .set("fetch.message.max.bytes", "262144")
            .set("receive.message.max.bytes", "134217728")
            // A full queue is looked at again after this long instead of a second.
            .set("fetch.queue.backoff.ms", "10")
            .set("queued.max.messages.kbytes", queued_kilobytes.to_string());
        config
    }

    /// A member of a consumer group, which keeps its own record of what it has done.
    pub(crate) fn member(&self, group: &str) -> ClientConfig {
        let mut config = self.reader(1_024);
        let session_ms = self.settings.session_seconds * 1_000;
        config
            .set("group.id", format!("{}.{group}", self.settings.prefix))
            .set("enable.partition.eof", "false")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", session_ms.to_string())
            .set("heartbeat.interval.ms", (session_ms / 4).max(250).to_string())
            .set("partition.assignment.strategy", "cooperative-sticky");
        config
    }

    /// A producer that writes a record once and in order, where Java clients would put it.
    pub(crate) fn producer(&self) -> ClientConfig {
        let mut config = self.base.clone();
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("partitioner", "murmur2_random")
            .set("compression.type", "zstd")
            .set("linger.ms", "1")
            .set("message.timeout.ms", (self.settings.timeout_seconds * 1_000).to_string());
        config
    }

    /// A producer of transactions: the newest of an id fences the ones before.
    pub(crate) fn transactional(&self, id: &str) -> ClientConfig {
        let mut config = self.producer();
        let timeout_ms = (self.settings.timeout_seconds * 1_000).max(10_000);
        config
            .set("transactional.id", id)
            .set("transaction.timeout.ms", timeout_ms.to_string())
            .set("message.timeout.ms", timeout_ms.to_string());
        config
    }

    /// What a failed request comes to, with what the client complained of.
    pub(crate) fn failed(&self, watch: &Watch, doing: impl Into<String>, error: &KafkaError) -> LogError {
        let problem = match watch.complaint() {
            Some(complaint) => format!("{error} (the client last said: {complaint})"),
            None => error.to_string(),
        };
        self.error(doing, problem, error.rdkafka_error_code())
    }

    /// What a problem comes to, by its code.
    pub(crate) fn error(&self, doing: impl Into<String>, problem: String, code: Option<RDKafkaErrorCode>) -> LogError {
        use RDKafkaErrorCode as E;
        let said = problem.to_lowercase();
        let (remedy, passing) = match code {
            // A transaction that may not be only says that its records were purged.
            _ if said.contains("authorization failed") => {
                ("give this user the rights (ACLs) on the topics, groups and transactional ids of the prefix", false)
            }
            Some(E::FencedInstanceId) => {
                ("another process has the same group.instance.id in log.kafka.client; give each its own", false)
            }
            Some(E::UnknownTopicOrPartition | E::UnknownTopic | E::UnknownPartition) => {
                // It has no leader for a while, or is gone: the client tells the one from the other late.
                ("check that the cluster is up; if the topic is gone, start again to make it", true)
            }
            _ if said.contains("authentication") || said.contains("sasl") => {
                ("check log.kafka.security: user, password and mechanism", false)
            }
            _ if said.contains("certificate") || said.contains("ssl") => {
                ("check log.kafka.security: protocol and ca_file", false)
            }
            _ => ("check log.kafka.brokers, and that the cluster is up", true),
        };
        LogError::Cluster { brokers: self.settings.brokers.clone(), doing: doing.into(), problem, remedy, passing }
    }
}

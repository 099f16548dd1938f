//! Client configurations for a Kafka cluster, and errors that include what the client logged last.
//!
//! In: [`KafkaSettings`]. Out: client configurations with the defaults that this project
//! relies on, and a client context that keeps the last logged error: without it, a wrong
//! password or an unknown certificate authority shows only as a timeout of the request.

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

use crate::{LogError, MAX_RECORD_BYTES};
use types::{config::KafkaSettings, sync};

/// A logged error counts as the cause of a failure for this long.
const LOGGED_ERROR_AGE: Duration = Duration::from_secs(60);

/// Timeout of one client's attempt, after which a new client tries: a client that sent its request
/// while the cluster came back may wait forever.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a client: its last logged error, the outcome of its deliveries, and whether it is
/// stranded.
#[derive(Debug, Clone, Default)]
pub struct KafkaClientState {
    logged_error: Arc<Mutex<Option<(Instant, String)>>>,
    deliveries: Arc<Mutex<DeliveryReports>>,
    stranded: Arc<AtomicBool>,
}

/// Delivery reports of one write.
#[derive(Debug, Default)]
pub struct DeliveryReports {
    /// The first failed delivery.
    pub failed: Option<KafkaError>,
    /// The last offset of each (topic, partition).
    pub last: HashMap<(String, i32), i64>,
}

impl KafkaClientState {
    /// Keeps the reason: librdkafka logs "brokers are down" after every other error.
    fn keep_error(&self, message: &str) {
        let mut logged = sync::lock(&self.logged_error);
        if logged.is_none() || !message.ends_with("brokers are down") {
            *logged = Some((Instant::now(), message.to_owned()));
        }
    }

    fn recent_error(&self) -> Option<String> {
        let logged = sync::lock(&self.logged_error).clone();
        logged.filter(|(at, _)| at.elapsed() < LOGGED_ERROR_AGE).map(|(_, message)| message)
    }

    /// Whether the client has lost all its brokers. It never recovers: after a metadata response
    /// without brokers it drops even the bootstrap brokers (librdkafka issue 5301). Replace it.
    pub fn stranded(&self) -> bool {
        self.stranded.load(Ordering::Relaxed)
    }

    /// Delivery reports since the last call.
    pub fn take_deliveries(&self) -> DeliveryReports {
        std::mem::take(&mut *sync::lock(&self.deliveries))
    }
}

impl ClientContext for KafkaClientState {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, message: &str) {
        if matches!(
            level,
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error
        ) {
            self.keep_error(message);
        }
    }

    fn error(&self, _error: KafkaError, reason: &str) {
        self.keep_error(reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        #[derive(Deserialize)]
        struct ClientStatistics {
            brokers: HashMap<String, BrokerStatistics>,
        }
        #[derive(Deserialize)]
        struct BrokerStatistics {
            source: String,
        }
        if let Ok(ClientStatistics { brokers }) = serde_json::from_slice(statistics) {
            let any = brokers.values().any(|broker| matches!(broker.source.as_str(), "configured" | "learned"));
            self.stranded.store(!any, Ordering::Relaxed);
        }
    }
}

impl ConsumerContext for KafkaClientState {}

/// Drops a replaced client on a thread of its own, because closing may block for long.
pub fn drop_in_background(client: impl Send + 'static) {
    // If no thread starts, `spawn` drops the client here.
    drop(std::thread::Builder::new().name("closing-client".to_owned()).spawn(move || drop(client)));
}

impl ProducerContext for KafkaClientState {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        use rdkafka::Message;
        let mut deliveries = sync::lock(&self.deliveries);
        match result {
            Ok(message) => {
                let written_to = (message.topic().to_owned(), message.partition());
                let last = deliveries.last.entry(written_to).or_insert(-1);
                *last = (*last).max(message.offset());
            }
            Err((error, _)) => drop(deliveries.failed.get_or_insert_with(|| error.clone())),
        }
    }
}

/// How clients reach a cluster.
#[derive(Debug, Clone)]
pub struct KafkaCluster {
    /// The settings.
    pub settings: KafkaSettings,
    base: ClientConfig,
}

impl KafkaCluster {
    /// Reads the secrets; does not connect.
    ///
    /// # Errors
    /// [`LogError::Cluster`] when a secret's variable is not set.
    pub fn new(settings: &KafkaSettings) -> Result<Self, LogError> {
        let mut base = ClientConfig::new();
        base.set("bootstrap.servers", &settings.brokers)
            .set("client.id", "ripplemem")
            .set("socket.keepalive.enable", "true")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("topic.metadata.refresh.interval.ms", "10000")
            .set("message.max.bytes", MAX_RECORD_BYTES.to_string())
            // The statistics show when a client is stranded.
            .set("statistics.interval.ms", "5000")
            .set_log_level(RDKafkaLogLevel::Error);
        if let Some(security) = &settings.security {
            base.set("security.protocol", &security.protocol);
            // An OpenSSL that is compiled into the program looks for authorities in the directories of the machine that
            // built it; "probe" makes the client look where this system keeps them.
            let authorities = security.ca_file.as_ref().map_or("probe".into(), |file| file.to_string_lossy());
            base.set("ssl.ca.location", authorities);
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
                    retriable: false,
                })?;
                base.set("sasl.password", password);
            }
        }
        for (key, value) in &settings.client {
            base.set(key, value);
        }
        Ok(Self { settings: settings.clone(), base })
    }

    /// Timeout of a request.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.settings.timeout_seconds)
    }

    /// The full name of a topic: the prefix and `name`.
    pub fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.settings.prefix)
    }

    /// The configuration of a client that neither reads nor writes.
    pub fn client(&self) -> ClientConfig {
        self.base.clone()
    }

    /// A consumer with manual assignment that reads committed records only and reports the end of
    /// a partition. Outside a group nothing depends on its polling. It prefetches at most
    /// `queued_kilobytes` of a partition.
    pub fn reader(&self, queued_kilobytes: usize) -> ClientConfig {
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
            // The default is a second, which would stall a reader that has just emptied its queue.
            .set("fetch.queue.backoff.ms", "10")
            .set("queued.max.messages.kbytes", queued_kilobytes.to_string());
        config
    }

    /// A member of a consumer group that commits no offsets by itself.
    pub fn member(&self, group: &str) -> ClientConfig {
        let mut config = self.reader(1_024);
        let session_ms = self.settings.session_seconds * 1_000;
        config
            .set("group.id", format!("{}.{group}", self.settings.prefix))
            .set("enable.partition.eof", "false")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", session_ms.to_string())
            // A member learns of a rebalance with its next heartbeat: until then, a shard has no holder.
            .set("heartbeat.interval.ms", (session_ms / 10).max(250).to_string())
            .set("partition.assignment.strategy", "cooperative-sticky");
        config
    }

    /// An idempotent producer, which chooses partitions as Java clients do.
    pub fn producer(&self) -> ClientConfig {
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

    /// A transactional producer: the newest one with an id fences the earlier ones.
    pub fn transactional(&self, id: &str) -> ClientConfig {
        let mut config = self.producer();
        let timeout_ms = (self.settings.timeout_seconds * 1_000).max(10_000);
        config
            .set("transactional.id", id)
            .set("transaction.timeout.ms", timeout_ms.to_string())
            .set("message.timeout.ms", timeout_ms.to_string());
        config
    }

    /// The error of a failed request, with what the client logged.
    pub fn failed(&self, watch: &KafkaClientState, doing: impl Into<String>, error: &KafkaError) -> LogError {
        let problem = match watch.recent_error() {
            Some(logged) => format!("{error} (the client last logged: {logged})"),
            None => error.to_string(),
        };
        self.error(doing, problem, error.rdkafka_error_code())
    }

    /// The error for a problem, with the remedy for its code.
    pub fn error(&self, doing: impl Into<String>, problem: String, code: Option<RDKafkaErrorCode>) -> LogError {
        use RDKafkaErrorCode as E;
        let message = problem.to_lowercase();
        let (remedy, retriable) = match code {
            // A transaction without rights fails with a code that only says that its records were purged.
            _ if message.contains("authorization failed") => {
                ("give this user the rights (ACLs) on the topics, groups and transactional ids of the prefix", false)
            }
            Some(E::FencedInstanceId) => {
                ("another process has the same group.instance.id in log.kafka.client; give each its own", false)
            }
            Some(E::MessageSizeTooLarge | E::InvalidMessageSize) => {
                ("raise max.message.bytes of the topic and message.max.bytes of the brokers to 8388608", false)
            }
            Some(E::UnknownTopicOrPartition | E::UnknownTopic | E::UnknownPartition) => {
                // The client learns late whether the topic was deleted, or only has no leader at the moment.
                ("check that the cluster is up; if the topic was deleted, start again to create it", true)
            }
            _ if message.contains("authentication") || message.contains("sasl") => {
                ("check log.kafka.security: user, password and mechanism", false)
            }
            _ if message.contains("certificate") || message.contains("ssl") => {
                ("check log.kafka.security: protocol and ca_file", false)
            }
            _ => ("check log.kafka.brokers, and that the cluster is up", true),
        };
        LogError::Cluster { brokers: self.settings.brokers.clone(), doing: doing.into(), problem, remedy, retriable }
    }
}

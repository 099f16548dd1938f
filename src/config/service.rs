//! The settings of a running service: its logs, a Kafka cluster, questions, metrics.
//!
//! In: the tables `log`, `serve` and `metrics`, and `roles`. Out: checked values.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Fsync, Pipeline};

/// A part of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Turns to memory records.
    Extract,
    /// Memory records to the event graph, and questions to answers.
    Serve,
    /// Topics to Parquet.
    Replay,
}

/// Which kind of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A directory on this machine, for one process at a time.
    Embedded,
    /// Topics of a Kafka cluster.
    Kafka,
}

/// The durable logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Where the logs are.
    pub kind: LogKind,
    /// The directory: of the embedded log, and of the cache of vectors in either case.
    /// Relative to the pipeline file.
    pub directory: PathBuf,
    /// Partitions of the turns and memory topics; fixed when the log is made.
    pub partitions: u32,
    /// `commit`: every acknowledged write is on the disk. `system`: the operating
    /// system decides, and a power cut may lose the last seconds.
    pub fsync: Fsync,
    /// The cluster, for `kind = "kafka"`.
    pub kafka: KafkaSettings,
}

/// A Kafka cluster and the topics on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaSettings {
    /// Addresses to begin with: `host:port,host:port`.
    pub brokers: String,
    /// What stands in front of every topic, group and transactional id: `PREFIX.turns`,
    /// `PREFIX.memory` and so on. Two pipelines on one cluster need two.
    pub prefix: String,
    /// Copies of each topic that is made.
    pub replication: i32,
    /// Hours that turns are kept where the topic is made here; 0: for ever.
    pub turns_retention_hours: u64,
    /// Minutes during which compaction of the memory topic leaves every version alone; where
    /// snapshots are written, the topic is made with two of their intervals at least.
    pub compaction_lag_minutes: u64,
    /// Milliseconds that two intervals of snapshots take; 0: none are written. Of `[snapshot]`.
    #[serde(skip)]
    pub snapshot_lag_ms: u64,
    /// When turns that were never extracted have expired: `stop`, or go on from the
    /// `earliest` that is left.
    pub expired: ExpiredPolicy,
    /// Seconds that a request may take before the cluster counts as unreachable.
    pub timeout_seconds: u64,
    /// Seconds without a sign of life after which another instance takes over.
    pub session_seconds: u64,
    /// How to prove who we are.
    #[serde(default)]
    pub security: Option<SecuritySettings>,
    /// More properties of librdkafka, as they are.
    #[serde(default)]
    pub client: std::collections::BTreeMap<String, String>,
}

/// What to do when turns that were never extracted have expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiredPolicy {
    /// Refuse to start.
    Stop,
    /// Go on from what is left; what is gone is gone.
    Earliest,
}

/// How to prove who we are to a Kafka cluster. Secrets stand in environment variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecuritySettings {
    /// `ssl`, `sasl_ssl` or `sasl_plaintext`.
    pub protocol: String,
    /// The authority that signed the brokers' certificates, as PEM; the system's without it.
    /// Relative to the pipeline file.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// `SCRAM-SHA-512`, `SCRAM-SHA-256` or `PLAIN`, for the protocols with sasl.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// The user, for the protocols with sasl.
    #[serde(default)]
    pub username: Option<String>,
    /// The environment variable that holds the password.
    #[serde(default)]
    pub password_env: Option<String>,
}

/// Questions and edges over Kafka.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSettings {
    /// Topics that a question may name for its answer begin with this; empty: the prefix
    /// of the log and `.answers`.
    pub reply_prefix: String,
    /// Milliseconds that a question without a deadline may wait.
    pub deadline_ms: u64,
    /// Questions answered side by side.
    pub threads: usize,
    /// Whether the graph's edges are written to `PREFIX.edges`.
    pub edges: bool,
}

/// Topics written as Parquet while they grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySettings {
    /// Where the tables go. Relative to the pipeline file.
    pub directory: PathBuf,
    /// Of `turns`, `memory` and `dead-letters`.
    pub topics: Vec<String>,
    /// Whether to make a directory for each bank.
    pub by_bank: bool,
    /// Seconds after which files are finished, however small they are.
    pub finish_seconds: u64,
}

/// Snapshots of the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSettings {
    /// A directory, relative to the pipeline file, or the URL of a bucket ([`Self::check`]);
    /// empty: none are written or read.
    pub directory: String,
    /// Seconds between two while a service runs.
    pub interval_seconds: u64,
    /// Days of history that are kept: further back nothing can be asked; 0: for ever.
    pub history_days: u64,
}

impl SnapshotSettings {
    /// Checks a place: a directory, or `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX` or `file:///DIRECTORY`. Who we are and where the store is stands
    /// in environment variables.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead.
    pub fn check(place: &str) -> Result<(), String> {
        let Some((scheme, _)) = place.split_once("://") else { return Ok(()) };
        let refused = |problem: &str| {
            let forms = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY";
            Err(format!("{problem}; write {forms}, or a directory"))
        };
        let url = match url::Url::parse(place) {
            Ok(url) => url,
            // It may hold a password.
            Err(e) => return refused(&format!("a URL that cannot be read ({e})")),
        };
        let secret = !url.username().is_empty() || url.password().is_some();
        if secret || url.query().is_some() || url.fragment().is_some() {
            return refused("a URL with a user, a password, ? or #, which stand in environment variables or nowhere");
        }
        let host = url.host_str().unwrap_or_default();
        match scheme {
            "s3" | "gs" | "az" if host.is_empty() => refused(&format!("{place:?} names no bucket")),
            "s3" | "gs" | "az" if url.port().is_some() => refused(&format!(
                "{place:?} has a port, but the bucket stands there; another store is named in the environment, \
                 such as AWS_ENDPOINT"
            )),
            "s3" | "gs" | "az" => Ok(()),
            "file" if url.to_file_path().is_ok() => Ok(()),
            "file" => refused(&format!("{place:?} names no directory of this machine")),
            other => refused(&format!("{other}:// is no place for snapshots")),
        }
    }
}

/// Where a running service tells how it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address and port of `/health`, `/ready`, `/snapshot` and `/metrics`; empty: none.
    pub listen: String,
}

/// Names the key where the kind of log is not known; the typed form could not.
pub(super) fn check_kind(table: &toml::Table) -> Result<(), String> {
    let kind = table.get("log").and_then(|log| log.get("kind"));
    match kind.and_then(toml::Value::as_str) {
        Some("embedded" | "kafka") => Ok(()),
        _ => Err(format!(
            "log.kind: {} is not known; write \"embedded\" or \"kafka\"",
            kind.map_or_else(String::new, ToString::to_string)
        )),
    }
}

/// What is wrong with the parts that a running service has.
pub(super) fn check(pipeline: &Pipeline) -> Result<(), String> {
    let kafka = &pipeline.log.kafka;
    let named = |key: &str, name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > 200 || !name.chars().all(fits) {
            return Err(format!("{key}: {name:?} cannot begin a topic's name; use 1 to 200 of [A-Za-z0-9._-]"));
        }
        Ok(())
    };
    named("log.kafka.prefix", &kafka.prefix)?;
    if !pipeline.serve.reply_prefix.is_empty() {
        named("serve.reply_prefix", &pipeline.serve.reply_prefix)?;
    }
    if pipeline.roles.is_empty() {
        return Err("roles: empty; write [\"extract\", \"serve\"], or one of them".to_owned());
    }
    if pipeline.roles.contains(&Role::Replay) {
        if pipeline.log.kind == LogKind::Embedded {
            return Err(
                "roles: \"replay\" follows topics of Kafka; for an embedded log use `ripplemem replay`".to_owned()
            );
        }
        if pipeline.replay.topics.is_empty() {
            return Err("replay.topics: empty; write [\"turns\", \"memory\"], or one of them".to_owned());
        }
    }
    for topic in &pipeline.replay.topics {
        if !["turns", "memory", "dead-letters"].contains(&topic.as_str()) {
            return Err(format!("replay.topics: {topic:?} is not known; write turns, memory or dead-letters"));
        }
    }
    for (key, value, low, high) in [
        ("log.kafka.replication", kafka.replication as u64, 1, 100),
        ("log.kafka.timeout_seconds", kafka.timeout_seconds, 1, 3_600),
        ("log.kafka.session_seconds", kafka.session_seconds, 1, 1_800),
        ("log.kafka.turns_retention_hours", kafka.turns_retention_hours, 0, 1_000_000),
        ("log.kafka.compaction_lag_minutes", kafka.compaction_lag_minutes, 0, 10_000_000),
        ("serve.deadline_ms", pipeline.serve.deadline_ms, 1, 3_600_000),
        ("serve.threads", pipeline.serve.threads as u64, 1, 256),
        ("snapshot.interval_seconds", pipeline.snapshot.interval_seconds, 1, 1_000_000),
        ("snapshot.history_days", pipeline.snapshot.history_days, 0, 100_000),
        ("replay.finish_seconds", pipeline.replay.finish_seconds, 1, 1_000_000),
    ] {
        if !(low..=high).contains(&value) {
            return Err(format!("{key}: {value} is not within {low} to {high}"));
        }
    }
    SnapshotSettings::check(&pipeline.snapshot.directory)
        .map_err(|problem| format!("snapshot.directory: {problem}"))?;
    if pipeline.log.kind == LogKind::Kafka && kafka.brokers.trim().is_empty() {
        return Err("log.kafka.brokers: missing; write host:port of one or more brokers".to_owned());
    }
    if pipeline.log.kind == LogKind::Kafka && pipeline.source.is_some() {
        return Err("source: a log on Kafka has the turns topic as its source; remove [source], and load files \
                        with `ripplemem ingest FORMAT FILE --pipeline THIS`"
            .to_owned());
    }
    if !pipeline.metrics.listen.is_empty() && pipeline.metrics.listen.parse::<std::net::SocketAddr>().is_err() {
        return Err(format!("metrics.listen: {:?} is not address:port", pipeline.metrics.listen));
    }
    kafka.security.as_ref().map_or(Ok(()), SecuritySettings::check)
}

impl SecuritySettings {
    fn check(&self) -> Result<(), String> {
        let sasl = match self.protocol.as_str() {
            "ssl" => false,
            "sasl_ssl" | "sasl_plaintext" => true,
            other => {
                let problem = format!("{other:?} is not known; write ssl, sasl_ssl or sasl_plaintext");
                return Err(format!("log.kafka.security.protocol: {problem}"));
            }
        };
        for (key, value) in
            [("mechanism", &self.mechanism), ("username", &self.username), ("password_env", &self.password_env)]
        {
            if sasl != value.is_some() {
                let problem = if sasl { "missing" } else { "has no use" };
                return Err(format!("log.kafka.security.{key}: {problem} with protocol {:?}", self.protocol));
            }
        }
        match self.mechanism.as_deref() {
            None | Some("SCRAM-SHA-512" | "SCRAM-SHA-256" | "PLAIN") => Ok(()),
            Some(other) => Err(format!(
                "log.kafka.security.mechanism: {other:?} is not known; write SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN"
            )),
        }
    }
}

//! `[log]`: where turns and memory records are stored durably, in a directory or in Kafka.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which kind of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A directory on this machine, used by one process at a time.
    Embedded,
    /// Topics of a Kafka cluster.
    Kafka,
}

/// When a write reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Fsync")]
pub enum FsyncPolicy {
    /// Before it is acknowledged.
    Commit,
    /// When the operating system flushes: faster, but a power cut may lose the last seconds.
    System,
}

/// Where turns and memory records are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// A directory, or Kafka.
    pub kind: LogKind,
    /// Directory of the embedded log and, for both kinds, of the caches of vectors and model
    /// responses. Relative to the pipeline file. Every instance on a machine needs its own.
    pub directory: PathBuf,
    /// Partitions of the turns and memory topics, fixed when the log is created. More partitions
    /// let more instances extract at once.
    #[schemars(range(min = 1, max = 1_024))]
    pub partitions: u32,
    /// When a write to the embedded log is on disk.
    pub fsync: FsyncPolicy,
    /// The Kafka cluster, for `kind = "kafka"`.
    pub kafka: KafkaSettings,
}

/// The Kafka cluster and the topics on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KafkaSettings {
    /// Bootstrap servers: `host:port,host:port`.
    pub brokers: String,
    /// Prefix of every topic, consumer group and transactional id: `PREFIX.turns`, `PREFIX.memory`
    /// and so on. Two pipelines on one cluster need two prefixes.
    pub prefix: String,
    /// Replication factor of the topics that are created.
    #[schemars(range(min = 1, max = 100))]
    pub replication: i32,
    /// Copies that must have a record before it is acknowledged, in the topics that are created. 0: two
    /// where a topic has three copies or more, else one.
    #[schemars(range(min = 0, max = 100))]
    pub min_insync_replicas: i32,
    /// Topic, after the prefix, in which instances that divide the memory say where each partition's banks
    /// are asked over HTTP.
    pub instances_topic: String,
    /// Topic, after the prefix, whose records ask to forget turns, as `POST /v1/forget` does. Who may write
    /// to it may forget.
    pub forgets_topic: String,
    /// Retention of the turns topic when it is created; 0: no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub turns_retention_hours: u64,
    /// Retention of the dead letters' topic when it is created; 0: no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub dead_letters_retention_hours: u64,
    /// Compaction lag of the memory topic when it is created. With snapshots it is at least twice
    /// their interval, so that a snapshot sees every version of a record.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub compaction_lag_minutes: u64,
    /// Twice the interval of snapshots in milliseconds, from `[snapshot]`; 0 when none are written.
    #[serde(skip)]
    pub snapshot_lag_ms: u64,
    /// What to do when turns expired before they were extracted.
    pub expired: ExpiredTurnPolicy,
    /// Timeout of a request to the cluster, after which the cluster counts as unreachable.
    #[schemars(range(min = 1, max = 3_600))]
    pub timeout_seconds: u64,
    /// Session timeout of the consumer groups. A smaller value hands partitions of a dead instance
    /// over sooner, and mistakes a slow instance for a dead one more often.
    #[schemars(range(min = 1, max = 1_800))]
    pub session_seconds: u64,
    /// How to authenticate; without it connections are plain text.
    #[serde(default)]
    pub security: Option<KafkaSecuritySettings>,
    /// More properties of librdkafka, passed on unchanged.
    #[serde(default)]
    pub client: BTreeMap<String, String>,
}

/// What to do when turns expired before they were extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ExpiredPolicy")]
pub enum ExpiredTurnPolicy {
    /// Refuse to start.
    Stop,
    /// Continue at the earliest turn that is left. The expired turns are lost.
    Earliest,
}

/// How to authenticate to the Kafka cluster. The password is read from an environment variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SecuritySettings")]
pub struct KafkaSecuritySettings {
    /// `ssl`, `sasl_ssl` or `sasl_plaintext`.
    pub protocol: String,
    /// PEM file of the authority that signed the brokers' certificates, relative to the pipeline
    /// file; without it the system's authorities.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// `SCRAM-SHA-512`, `SCRAM-SHA-256` or `PLAIN`; needed with SASL.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// The user; needed with SASL.
    #[serde(default)]
    pub username: Option<String>,
    /// Name of the environment variable that holds the password; needed with SASL.
    #[serde(default)]
    pub password_env: Option<String>,
}

/// Names the key if the kind of log is not known, because serde's error would not.
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

/// Whether topic names may begin with `name`.
pub(super) fn check_topic_name(key: &str, name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 200 || !name.chars().all(fits) {
        return Err(format!("{key}: {name:?} cannot begin a topic's name; use 1 to 200 of [A-Za-z0-9._-]"));
    }
    Ok(())
}

impl LogSettings {
    /// A warning for each topic that would keep the words of deleted turns for good if it were created with these
    /// settings, with the setting to change. Empty for a log in a directory, which erases such words itself.
    #[must_use]
    pub fn unbounded_topic_warnings(&self) -> Vec<String> {
        let KafkaSettings { turns_retention_hours, dead_letters_retention_hours, .. } = self.kafka;
        let topics = [
            ("turns", "turns_retention_hours", turns_retention_hours),
            ("dead-letters", "dead_letters_retention_hours", dead_letters_retention_hours),
        ];
        let without_limit = topics.into_iter().filter(|(_, _, hours)| self.kind == LogKind::Kafka && *hours == 0);
        let sentence = |(topic, setting, _): (&str, &str, u64)| {
            format!(
                "log.kafka.{setting} is 0: where it creates topic {}.{topic}, words of deleted turns never leave it; \
                 set the hours after which they go, and retention.ms of a topic that exists",
                self.kafka.prefix
            )
        };
        without_limit.map(sentence).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_topic_name("log.kafka.prefix", &self.kafka.prefix)?;
        check_topic_name("log.kafka.instances_topic", &self.kafka.instances_topic)?;
        check_topic_name("log.kafka.forgets_topic", &self.kafka.forgets_topic)?;
        if self.kind == LogKind::Kafka && self.kafka.brokers.trim().is_empty() {
            return Err("log.kafka.brokers: missing; write host:port of one or more brokers".to_owned());
        }
        let KafkaSettings { replication, min_insync_replicas, .. } = self.kafka;
        if min_insync_replicas > replication {
            return Err(format!(
                "log.kafka.min_insync_replicas: {min_insync_replicas} is more than log.kafka.replication, {replication}, so \
                 no record would ever be acknowledged; write at most that number"
            ));
        }
        self.kafka.security.as_ref().map_or(Ok(()), KafkaSecuritySettings::check)
    }
}

impl KafkaSecuritySettings {
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
                let problem = if sasl { "missing" } else { "not used" };
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

#[cfg(test)]
mod tests {
    use crate::config::Pipeline;

    #[test]
    fn settings_under_which_words_never_leave_are_named() {
        let unbounded = |more: &str| {
            let text = format!("version = 1\n[log]\nkind = \"kafka\"\n[log.kafka]\nbrokers = \"x:1\"\n{more}");
            Pipeline::parse(&text).expect("a good pipeline").log.unbounded_topic_warnings()
        };
        let both = unbounded("");
        assert!(both.len() == 2 && both[0].contains("turns_retention_hours") && both[0].contains("ripplemem.turns"));
        let letters = unbounded("turns_retention_hours = 24\n");
        assert!(letters.len() == 1 && letters[0].contains("ripplemem.dead-letters"), "{letters:?}");
        let none = unbounded("turns_retention_hours = 24\ndead_letters_retention_hours = 24\n");
        assert_eq!(none, Vec::<String>::new());
        assert_eq!(
            Pipeline::parse("version = 1").expect("the defaults").log.unbounded_topic_warnings(),
            Vec::<String>::new()
        );
    }
}

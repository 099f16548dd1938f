//! `[serve]`: how a running service takes questions and publishes edges over Kafka.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::log::check_topic_name;

/// Which shards of the memory an instance holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Hold")]
pub enum ShardAssignmentMode {
    /// All of them, so that any instance answers any question.
    All,
    /// Those of the partitions of `questions` that the consumer group assigns to it.
    Assigned,
}

/// Questions and edges over Kafka.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServeSettings {
    /// Which partitions of the memory an instance on Kafka holds: `all`, so that every instance answers
    /// every question, or `assigned`, so that the instances divide the memory.
    pub hold: ShardAssignmentMode,
    /// A question may name a reply topic only if the topic begins with this; empty: `PREFIX.answers`.
    pub reply_prefix: String,
    /// Timeout of a question that names no deadline; after it the answer is a refusal.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub deadline_ms: u64,
    /// Questions that are answered at once; they share the `embed.threads` sessions of the model. From
    /// four on, a bank gets at most three quarters of them.
    #[schemars(range(min = 1, max = 256))]
    pub threads: usize,
    /// Whether this instance writes the graph's edges to `PREFIX.edges`. Set it in one instance only.
    pub edges: bool,
}

impl ServeSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.reply_prefix.is_empty() { Ok(()) } else { check_topic_name("serve.reply_prefix", &self.reply_prefix) }
    }
}

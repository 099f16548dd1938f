//! The topics of a pipeline: missing ones are created, existing ones are checked (decision 29).
//!
//! | topic | partitions | retention |
//! |---|---|---|
//! | `turns` | at least the memory topic's | by time |
//! | `memory` | fixed at creation | compacted within a day, deletions for a week |
//! | `dead-letters` | 1 | by time |
//! | `questions`, `answers` | as memory | an hour |
//! | `forgets`, or as `log.kafka.forgets_topic` says | as memory | an hour |
//! | `forget-operations` | 1 | compacted |
//! | `edges` | as memory | compacted, deletions for a week |
//! | `memory-2` and so on | as memory | as memory |
//! | `generations` | 1 | compacted |
//! | `sources` | 16 | compacted |
//! | `instances`, or as `log.kafka.instances_topic` says | 1 | compacted |
//!
//! `memory-2` and `generations` exist once the memory was re-embedded with another model, `sources` if the pipeline
//! names live sources, and `instances` if instances divide the memory and serve HTTP. An existing topic is never
//! changed. A property without which it does not work is an error, any other that it lacks a notice; each names the
//! command that sets it.

use rdkafka::{
    admin::{AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    error::RDKafkaErrorCode,
    metadata::Metadata,
    producer::{BaseProducer, Producer},
};

use super::{
    client::{KafkaClientState, KafkaCluster},
    control_records::{GENERATION_KEY, GenerationSwitch},
    partition_reader::PartitionReader,
};
use crate::{LogError, MAX_RECORD_BYTES, REMOVALS_KEPT_MS, memory_name};

/// The topic that holds the number of the current generation of the memory.
pub(super) const GENERATIONS: &str = "generations";

/// The topic of the operations that forget turns.
pub(super) const OPERATIONS: &str = "forget-operations";

/// The topic of live sources, and its partitions, which never change.
pub(super) const SOURCES: &str = "sources";
pub(super) const SOURCES_PARTITIONS: u32 = 16;

/// The required configuration of a topic.
struct TopicSpec {
    name: String,
    partitions: u32,
    /// Whether it may have more partitions.
    may_grow: bool,
    /// The properties with which it is created.
    created_with: Vec<(&'static str, String)>,
    /// The properties that an existing topic must have, too: a number must be at least as large, a text must be equal.
    required: &'static [&'static str],
    /// Smaller values that an existing topic may have, with a notice.
    tolerated: Vec<(&'static str, String)>,
    /// The properties that an existing topic should have, too.
    advised: Vec<AdvisedProperty>,
}

/// A property without which a topic works, and what it is for.
struct AdvisedProperty {
    key: &'static str,
    bound: PropertyBound,
    purpose: &'static str,
}

/// The values of a property that are acceptable.
enum PropertyBound {
    AtLeast(i64),
    AtMost(i64),
}

impl PropertyBound {
    fn admits(&self, value: i64) -> bool {
        match self {
            Self::AtLeast(least) => value >= *least,
            Self::AtMost(most) => value <= *most,
        }
    }

    fn value(&self) -> i64 {
        match self {
            Self::AtLeast(value) | Self::AtMost(value) => *value,
        }
    }
}

const HOUR_MS: u64 = 3_600_000;
/// How long a replaced record may stay uncompacted; no less than the compaction lag.
const COMPACTED_WITHIN_MS: u64 = 24 * HOUR_MS;
/// The age at which a broker closes a segment by default. Retention deletes only closed segments.
const SEGMENT_MS: u64 = 7 * 24 * HOUR_MS;
const MIN_SEGMENT_MS: u64 = HOUR_MS / 6;
/// How many copies must have a record if the settings do not say so.
pub(super) fn min_insync(configured: i32, copies: i32) -> i32 {
    match configured {
        0 if copies >= 3 => 2,
        0 => 1,
        configured => configured,
    }
}

/// The property that delays the compaction of new records.
const COMPACTION_LAG: &str = "min.compaction.lag.ms";

/// The property that bounds the time until a replaced record is compacted.
const MAX_COMPACTION_LAG: &str = "max.compaction.lag.ms";

/// Topics that only some pipelines need.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OptionalTopics {
    /// The topic of edges, for `serve.edges`.
    pub edges: bool,
    /// The next generation of the memory, and the topic of generations.
    pub next: bool,
    /// The topic of live sources.
    pub sources: bool,
    /// The topic of instances.
    pub instances: bool,
}

fn topic_specs(cluster: &KafkaCluster, partitions: u32, generation: u32, optional: OptionalTopics) -> Vec<TopicSpec> {
    let settings = &cluster.settings;
    let topic = |name: &str, partitions, may_grow, created_with: &[(&'static str, String)], required| {
        let common = [
            ("max.message.bytes", MAX_RECORD_BYTES.to_string()),
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("min.insync.replicas", min_insync(settings.min_insync_replicas, settings.replication).to_string()),
        ];
        let created_with: Vec<_> = common.into_iter().chain(created_with.iter().cloned()).collect();
        let mut advised = Vec::new();
        for (key, purpose) in [
            ("segment.ms", "so that retention deletes what it should: the newest segment is never deleted"),
            (MAX_COMPACTION_LAG, "so that deleted text leaves the topic in a stated time"),
        ] {
            let wanted = created_with.iter().find(|(name, _)| *name == key).and_then(|(_, value)| value.parse().ok());
            advised.extend(wanted.map(|most| AdvisedProperty { key, bound: PropertyBound::AtMost(most), purpose }));
        }
        let (name, tolerated) = (cluster.topic(name), Vec::new());
        TopicSpec { name, partitions, may_grow, created_with, required, tolerated, advised }
    };
    let kept = |ms: u64| {
        let mut properties = vec![("cleanup.policy", "delete".to_owned())];
        if ms == 0 {
            properties.push(("retention.ms", "-1".to_owned()));
        } else {
            properties.push(("retention.ms", ms.to_string()));
            properties.push(("segment.ms", (ms / 6).clamp(MIN_SEGMENT_MS, SEGMENT_MS).to_string()));
        }
        properties
    };
    let configured_ms = settings.compaction_lag_minutes * 60_000;
    let by_key = |lag_ms: u64| {
        [
            ("cleanup.policy", "compact".to_owned()),
            ("delete.retention.ms", REMOVALS_KEPT_MS.to_string()),
            (COMPACTION_LAG, lag_ms.to_string()),
            (MAX_COMPACTION_LAG, COMPACTED_WITHIN_MS.max(lag_ms).to_string()),
        ]
    };
    // A version that is compacted before a snapshot reads it is lost to as-of questions.
    let memory_ms = configured_ms.max(settings.snapshot_lag_ms);
    let sized: &[&str] = &["cleanup.policy", "max.message.bytes"];
    let lagging: &[&str] = &["cleanup.policy", "max.message.bytes", COMPACTION_LAG, "delete.retention.ms"];
    let mut topics = vec![
        topic("turns", partitions, true, &kept(settings.turns_retention_hours * HOUR_MS), sized),
        TopicSpec {
            tolerated: vec![(COMPACTION_LAG, configured_ms.to_string())],
            ..topic(&memory_name(generation), partitions, false, &by_key(memory_ms), lagging)
        },
        topic("dead-letters", 1, false, &kept(settings.dead_letters_retention_hours * HOUR_MS), sized),
        topic("questions", partitions, true, &kept(HOUR_MS), &["cleanup.policy"]),
        topic("answers", partitions, true, &kept(HOUR_MS), &["cleanup.policy"]),
        topic(&settings.forgets_topic, partitions, true, &kept(HOUR_MS), &["cleanup.policy"]),
        topic(OPERATIONS, 1, false, &by_key(0), &["cleanup.policy"]),
    ];
    if optional.edges {
        topics.push(topic("edges", partitions, false, &by_key(configured_ms), &["cleanup.policy"]));
    }
    if optional.next {
        topics.push(topic(&memory_name(generation + 1), partitions, false, &by_key(memory_ms), lagging));
        topics.push(topic(GENERATIONS, 1, false, &by_key(0), &["cleanup.policy"]));
    }
    if optional.sources {
        topics.push(topic(SOURCES, SOURCES_PARTITIONS, false, &by_key(0), &["cleanup.policy"]));
    }
    if optional.instances {
        topics.push(topic(&settings.instances_topic, 1, false, &by_key(0), &["cleanup.policy"]));
    }
    topics
}

/// Creates missing topics and checks the others. Returns the current generation of the memory, and
/// notices about properties that could be better.
///
/// # Errors
/// [`LogError::Topics`] with every difference; [`LogError::Cluster`].
pub(super) fn ensure(
    cluster: &KafkaCluster,
    partitions: u32,
    optional: OptionalTopics,
) -> Result<(u32, Vec<String>), LogError> {
    let admin = TopicAdmin::new(cluster)?;
    let metadata = admin.metadata()?;
    let generation = read_generation(cluster, &metadata)?;
    let specs = topic_specs(cluster, partitions, generation, optional);
    let (missing, mut existing): (Vec<&TopicSpec>, Vec<&TopicSpec>) =
        specs.iter().partition(|spec| count(&metadata, &spec.name).is_none());
    // Another process may have created them after the cluster's metadata was read.
    existing.extend(admin.create(&missing)?);
    let metadata = if missing.is_empty() { metadata } else { admin.metadata_with(&missing)? };
    let mut differences = Vec::new();
    for topic in &specs {
        let found = count(&metadata, &topic.name).unwrap_or_default();
        if found != topic.partitions && !(topic.may_grow && found > topic.partitions) {
            let remedy = if topic.may_grow {
                format!("kafka-topics.sh --alter --topic {} --partitions {}", topic.name, topic.partitions)
            } else {
                "set log.partitions to the topic's partition count, or choose another log.kafka.prefix".to_owned()
            };
            let TopicSpec { name, partitions, .. } = topic;
            differences.push(format!("topic {name}: it has {found} partition(s), {partitions} are needed; {remedy}"));
        }
    }
    let (lacking, notices) = admin.check(&existing, &metadata)?;
    differences.extend(lacking);
    if differences.is_empty() {
        Ok((generation, notices))
    } else {
        Err(LogError::Topics { brokers: cluster.settings.brokers.clone(), differences })
    }
}

/// The current generation of the memory.
pub(super) fn current_generation(cluster: &KafkaCluster) -> Result<u32, LogError> {
    read_generation(cluster, &TopicAdmin::new(cluster)?.metadata()?)
}

/// The generation in the topic of generations; 1 when the topic does not exist.
fn read_generation(cluster: &KafkaCluster, metadata: &Metadata) -> Result<u32, LogError> {
    let topic = cluster.topic(GENERATIONS);
    if count(metadata, &topic).is_none() {
        return Ok(1);
    }
    let mut reader = PartitionReader::open(cluster, &topic, 0, false)?;
    let (mut from, mut last) = (reader.span(cluster)?.0, None);
    loop {
        let raw = reader.read(cluster, from, 64)?;
        let Some(end) = raw.last() else { break };
        from = end.record.offset + 1;
        last = raw.into_iter().map(|raw| raw.record).rfind(|record| record.key == GENERATION_KEY).or(last);
    }
    let Some(record) = last else { return Ok(1) };
    let unreadable = |problem: String| LogError::Unreadable {
        topic: topic.clone(),
        partition: 0,
        offset: record.offset,
        what: "the number of the memory's generation".to_owned(),
        problem,
    };
    match record.value.as_deref().map(GenerationSwitch::parse) {
        Some(Ok(moved)) => Ok(moved.generation),
        Some(Err(problem)) => Err(unreadable(problem)),
        // Removing the record states that there was no switch, but if the first generation is gone, there was one.
        None if count(metadata, &cluster.topic(&memory_name(1))).is_some() => Ok(1),
        None => Err(unreadable("it was deleted, and the topic of the first generation is gone".to_owned())),
    }
}

/// Deletes the generations of the memory before this one; returns their names.
pub(super) fn drop_old(cluster: &KafkaCluster, generation: u32) -> Result<Vec<String>, LogError> {
    let admin = TopicAdmin::new(cluster)?;
    let metadata = admin.metadata()?;
    let old: Vec<String> = (1..generation)
        .map(|old| cluster.topic(&memory_name(old)))
        .filter(|name| count(&metadata, name).is_some())
        .collect();
    let names: Vec<&str> = old.iter().map(String::as_str).collect();
    if !names.is_empty() {
        let options = AdminOptions::new().operation_timeout(Some(cluster.timeout()));
        let deleted = admin
            .runtime
            .block_on(admin.client.delete_topics(&names, &options))
            .map_err(|e| cluster.failed(&admin.watch, "deleting topics", &e))?;
        for result in deleted {
            result.map_err(|(name, code)| {
                cluster.error(format!("deleting topic {name}"), code.to_string(), Some(code))
            })?;
        }
    }
    Ok(old)
}

/// The full name of the current memory topic.
///
/// # Errors
/// [`LogError::Cluster`].
pub fn memory_topic(cluster: &KafkaCluster) -> Result<String, LogError> {
    Ok(cluster.topic(&memory_name(current_generation(cluster)?)))
}

/// The partition count of a topic, by its full name; 0 when it does not exist.
///
/// # Errors
/// [`LogError::Cluster`].
pub fn partitions_of(cluster: &KafkaCluster, topic: &str) -> Result<u32, LogError> {
    let watch = KafkaClientState::default();
    let failed = |e: &_| cluster.failed(&watch, "asking for the topics", e);
    let client: BaseProducer<KafkaClientState> =
        cluster.client().create_with_context(watch.clone()).map_err(|e| failed(&e))?;
    let metadata = client.client().fetch_metadata(Some(topic), cluster.timeout()).map_err(|e| failed(&e))?;
    Ok(count(&metadata, topic).unwrap_or_default())
}

/// The properties of those topics that exist, by their full names.
pub(super) fn properties(
    cluster: &KafkaCluster,
    names: Vec<String>,
) -> Result<Vec<(String, ConfigResource)>, LogError> {
    let admin = TopicAdmin::new(cluster)?;
    let metadata = admin.metadata()?;
    let names: Vec<String> = names.into_iter().filter(|name| count(&metadata, name).is_some()).collect();
    let described = admin.describe(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(names.into_iter().zip(described).collect())
}

/// The partition count of a topic, if it exists.
pub(super) fn count(metadata: &Metadata, name: &str) -> Option<u32> {
    let topic = metadata.topics().iter().find(|t| t.name() == name)?;
    let partitions = topic.partitions().len() as u32;
    (topic.error().is_none() && partitions > 0).then_some(partitions)
}

/// The number of copies that each partition of a topic has; the smallest number if they differ.
fn copies(metadata: &Metadata, name: &str) -> i32 {
    let topic = metadata.topics().iter().find(|topic| topic.name() == name);
    let copies = topic.into_iter().flat_map(|topic| topic.partitions()).map(|partition| partition.replicas().len());
    copies.min().map_or(1, |copies| i32::try_from(copies).unwrap_or(i32::MAX))
}

/// An admin client. Its calls return futures, which this file waits for.
struct TopicAdmin<'a> {
    cluster: &'a KafkaCluster,
    client: AdminClient<DefaultClientContext>,
    watch: KafkaClientState,
    /// Fetches metadata; unlike the admin client, it reports its logged errors to `watch`.
    metadata_client: BaseProducer<KafkaClientState>,
    runtime: tokio::runtime::Runtime,
}

impl<'a> TopicAdmin<'a> {
    fn new(cluster: &'a KafkaCluster) -> Result<Self, LogError> {
        let watch = KafkaClientState::default();
        let config = cluster.client();
        let failed = |e: &_| cluster.failed(&watch, "making a client", e);
        let client = AdminClient::from_config(&config).map_err(|e| failed(&e))?;
        let metadata_client = config.create_with_context(watch.clone()).map_err(|e| failed(&e))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| cluster.error("starting a runtime", e.to_string(), None))?;
        Ok(Self { cluster, client, watch, metadata_client, runtime })
    }

    fn metadata(&self) -> Result<Metadata, LogError> {
        // Logged errors are events, which only a poll delivers.
        let deadline = std::time::Instant::now() + self.cluster.timeout();
        loop {
            self.metadata_client.poll(std::time::Duration::from_millis(10));
            let timeout = self.cluster.timeout().min(std::time::Duration::from_secs(2));
            match self.metadata_client.client().fetch_metadata(None, timeout) {
                Ok(metadata) => return Ok(metadata),
                Err(error) => {
                    self.metadata_client.poll(std::time::Duration::from_millis(10));
                    let failed = self.cluster.failed(&self.watch, "asking for the topics", &error);
                    let retriable = matches!(&failed, LogError::Cluster { retriable: true, .. });
                    if !retriable || std::time::Instant::now() > deadline {
                        return Err(failed);
                    }
                }
            }
        }
    }

    /// Waits until every partition of the new topics has a leader.
    fn metadata_with(&self, created: &[&TopicSpec]) -> Result<Metadata, LogError> {
        let deadline = std::time::Instant::now() + self.cluster.timeout();
        loop {
            let metadata = self.metadata()?;
            let has_leaders = |spec: &&TopicSpec| {
                let topic = metadata.topics().iter().find(|t| t.name() == spec.name);
                topic.is_some_and(|t| {
                    t.partitions().len() as u32 >= spec.partitions && t.partitions().iter().all(|p| p.leader() >= 0)
                })
            };
            let Some(leaderless) = created.iter().find(|spec| !has_leaders(spec)) else { return Ok(metadata) };
            if std::time::Instant::now() > deadline {
                return Err(LogError::Cluster {
                    brokers: self.cluster.settings.brokers.clone(),
                    doing: format!("creating topic {}", leaderless.name),
                    problem: "its partitions have no leader yet".to_owned(),
                    remedy: "try again, and look at the brokers' logs if this lasts",
                    retriable: true,
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Creates topics; returns those that already exist.
    fn create<'t>(&self, topics: &[&'t TopicSpec]) -> Result<Vec<&'t TopicSpec>, LogError> {
        let mut existing = Vec::new();
        if topics.is_empty() {
            return Ok(existing);
        }
        let new: Vec<NewTopic<'_>> = topics
            .iter()
            .map(|w| {
                let copies = TopicReplication::Fixed(self.cluster.settings.replication);
                let topic = NewTopic::new(&w.name, w.partitions as i32, copies);
                w.created_with.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let options = AdminOptions::new().operation_timeout(Some(self.cluster.timeout()));
        let created = self
            .runtime
            .block_on(self.client.create_topics(&new, &options))
            .map_err(|e| self.cluster.failed(&self.watch, "creating topics", &e))?;
        for result in created {
            match result {
                Ok(_) => {}
                Err((name, RDKafkaErrorCode::TopicAlreadyExists)) => {
                    existing.extend(topics.iter().copied().filter(|topic| topic.name == name));
                }
                Err((name, code)) => {
                    return Err(self.cluster.error(format!("creating topic {name}"), code.to_string(), Some(code)));
                }
            }
        }
        Ok(existing)
    }

    /// The properties of topics, in their order.
    fn describe(&self, names: &[&str]) -> Result<Vec<ConfigResource>, LogError> {
        let resources: Vec<ResourceSpecifier<'_>> = names.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
        let options = AdminOptions::new().request_timeout(Some(self.cluster.timeout()));
        let described = self
            .runtime
            .block_on(self.client.describe_configs(&resources, &options))
            .map_err(|e| self.cluster.failed(&self.watch, "asking for the topics' properties", &e))?;
        let named = names.iter().zip(described).map(|(name, found)| {
            found.map_err(|code| {
                let doing = format!("asking for the properties of topic {name}");
                self.cluster.error(doing, code.to_string(), Some(code))
            })
        });
        named.collect()
    }

    /// Differences in required properties, and notices about tolerated ones.
    fn check(&self, topics: &[&TopicSpec], metadata: &Metadata) -> Result<(Vec<String>, Vec<String>), LogError> {
        if topics.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let described = self.describe(&topics.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>())?;
        let (mut differences, mut notices) = (Vec::new(), Vec::new());
        for (topic, found) in topics.iter().zip(described) {
            for (key, wanted) in topic.created_with.iter().filter(|(key, _)| topic.required.contains(key)) {
                let value = found.get(key).and_then(|entry| entry.value.clone()).unwrap_or_default();
                let reaches = |wanted: &str| match (value.parse::<i64>(), wanted.parse::<i64>()) {
                    (Ok(value), Ok(wanted)) => value >= wanted,
                    _ => value == wanted,
                };
                if reaches(wanted) {
                    continue;
                }
                let name = &topic.name;
                let message = |verdict: &str| {
                    format!(
                        "topic {name}: {key} is {value:?}, {wanted:?} is {verdict}; \
                         kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config {key}={wanted}"
                    )
                };
                match topic.tolerated.iter().find(|(tolerated, _)| tolerated == key) {
                    Some((_, tolerated)) if reaches(tolerated) => {
                        notices.push(message("better, so that snapshots see every version"));
                    }
                    _ => differences.push(message("needed")),
                }
            }
            let copies = copies(metadata, &topic.name);
            let in_sync = i64::from(min_insync(self.cluster.settings.min_insync_replicas, copies)).min(copies.into());
            let in_sync = AdvisedProperty {
                key: "min.insync.replicas",
                bound: PropertyBound::AtLeast(in_sync),
                purpose: "so that no acknowledged record is lost with one broker",
            };
            for AdvisedProperty { key, bound, purpose } in topic.advised.iter().chain([&in_sync]) {
                let value = found.get(key).and_then(|entry| entry.value.as_ref()?.parse::<i64>().ok());
                if !value.is_some_and(|value| bound.admits(value)) {
                    let (name, wanted) = (&topic.name, bound.value());
                    let found = value.map_or("unknown".to_owned(), |value| value.to_string());
                    notices.push(format!(
                        "topic {name}: {key} is {found}, {wanted} is better, {purpose}; kafka-configs.sh --alter --entity-type \
                         topics --entity-name {name} --add-config {key}={wanted}"
                    ));
                }
            }
        }
        Ok((differences, notices))
    }
}

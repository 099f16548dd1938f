//! The topics of a pipeline: made as stated, or compared with what is there.
//!
//! | topic | partitions | kept |
//! |---|---|---|
//! | `turns` | at least the memory topic's | by time |
//! | `memory` | fixed when it is made | by key, removals for a week |
//! | `dead-letters` | 1 | for ever |
//! | `questions`, `answers` | as memory | an hour |
//! | `edges` | as memory | by key, removals for a week |
//! | `memory-2` and so on | as memory | as memory |
//! | `generations` | 1 | by key |
//!
//! The last two are there once the memory was made again with another model.

use rdkafka::{
    admin::{AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    config::FromClientConfig,
    error::RDKafkaErrorCode,
    metadata::Metadata,
};

use super::{
    super::{LogError, REMOVALS_KEPT_MS, memory_name},
    client::{Cluster, MAX_RECORD_BYTES, Watch},
    lane::Lane,
    position::{GENERATION_KEY, Moved},
};

/// The topic that says which generation of the memory counts.
pub(super) const GENERATIONS: &str = "generations";

/// What a topic must be like.
struct Wanted {
    name: String,
    partitions: u32,
    /// More will do.
    may_grow: bool,
    /// Properties that it is made with.
    made_with: Vec<(&'static str, String)>,
    /// Of them, those without which it cannot be used: at least so much, or exactly this.
    needed: &'static [&'static str],
    /// What it is made with, but needs no more than this of; less than it is made with is told.
    enough: Vec<(&'static str, String)>,
}

const HOUR_MS: u64 = 3_600_000;
/// For how long compaction leaves every version alone.
const LAG: &str = "min.compaction.lag.ms";

/// What is made beside the topics of every pipeline.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside {
    /// The topic of edges.
    pub edges: bool,
    /// The next generation of the memory, and the topic that says which one counts.
    pub next: bool,
}

fn wanted(cluster: &Cluster, partitions: u32, generation: u32, beside: Beside) -> Vec<Wanted> {
    let settings = &cluster.settings;
    let topic = |name: &str, partitions, may_grow, made_with: &[(&'static str, String)], needed| {
        let common = [
            ("max.message.bytes", MAX_RECORD_BYTES.to_string()),
            ("message.timestamp.type", "LogAppendTime".to_owned()),
        ];
        let made_with = common.into_iter().chain(made_with.iter().cloned()).collect();
        Wanted { name: cluster.topic(name), partitions, may_grow, made_with, needed, enough: Vec::new() }
    };
    let for_ms = |ms: u64| if ms == 0 { "-1".to_owned() } else { ms.to_string() };
    let kept = |ms: u64| [("cleanup.policy", "delete".to_owned()), ("retention.ms", for_ms(ms))];
    let asked_ms = settings.compaction_lag_minutes * 60_000;
    let by_key = |lag_ms: u64| {
        [
            ("cleanup.policy", "compact".to_owned()),
            ("delete.retention.ms", REMOVALS_KEPT_MS.to_string()),
            (LAG, lag_ms.to_string()),
        ]
    };
    // What is compacted before a snapshot has read it is in no history.
    let memory_ms = asked_ms.max(settings.snapshot_lag_ms);
    let sized: &[&str] = &["cleanup.policy", "max.message.bytes"];
    let lagging: &[&str] = &["cleanup.policy", "max.message.bytes", LAG, "delete.retention.ms"];
    let mut topics = vec![
        topic("turns", partitions, true, &kept(settings.turns_retention_hours * HOUR_MS), sized),
        Wanted {
            enough: vec![(LAG, asked_ms.to_string())],
            ..topic(&memory_name(generation), partitions, false, &by_key(memory_ms), lagging)
        },
        topic("dead-letters", 1, false, &kept(0), sized),
        topic("questions", partitions, true, &kept(HOUR_MS), &["cleanup.policy"]),
        topic("answers", partitions, true, &kept(HOUR_MS), &["cleanup.policy"]),
    ];
    if beside.edges {
        topics.push(topic("edges", partitions, false, &by_key(asked_ms), &["cleanup.policy"]));
    }
    if beside.next {
        topics.push(topic(&memory_name(generation + 1), partitions, false, &by_key(memory_ms), lagging));
        topics.push(topic(GENERATIONS, 1, false, &by_key(0), &["cleanup.policy"]));
    }
    topics
}

/// Makes what is missing and compares what is there. Gives the generation of the memory that
/// counts, and what could be better.
///
/// # Errors
/// [`LogError::Topics`] that lists every difference; [`LogError::Cluster`].
pub(super) fn ensure(cluster: &Cluster, partitions: u32, beside: Beside) -> Result<(u32, Vec<String>), LogError> {
    let admin = Admin::new(cluster)?;
    let there = admin.metadata()?;
    let generation = generation(cluster, &there)?;
    let wanted = wanted(cluster, partitions, generation, beside);
    let missing: Vec<&Wanted> = wanted.iter().filter(|w| count(&there, &w.name).is_none()).collect();
    admin.make(&missing)?;
    let there = if missing.is_empty() { there } else { admin.metadata_with(&missing)? };
    let mut differences = Vec::new();
    for topic in &wanted {
        let found = count(&there, &topic.name).unwrap_or_default();
        if found != topic.partitions && !(topic.may_grow && found > topic.partitions) {
            let remedy = if topic.may_grow {
                "add partitions to it"
            } else {
                "set log.partitions to what the topic was made with, or choose another log.kafka.prefix"
            };
            let Wanted { name, partitions, .. } = topic;
            differences.push(format!("topic {name}: it has {found} partition(s), {partitions} are needed; {remedy}"));
        }
    }
    let existing: Vec<&Wanted> = wanted.iter().filter(|w| !missing.iter().any(|m| m.name == w.name)).collect();
    let (lacking, notices) = admin.compare(&existing)?;
    differences.extend(lacking);
    if differences.is_empty() {
        Ok((generation, notices))
    } else {
        Err(LogError::Topics { brokers: cluster.settings.brokers.clone(), differences })
    }
}

/// The generation of the memory that counts.
pub(super) fn generation_now(cluster: &Cluster) -> Result<u32, LogError> {
    generation(cluster, &Admin::new(cluster)?.metadata()?)
}

/// The generation of the memory that counts; the first where nothing says otherwise.
fn generation(cluster: &Cluster, there: &Metadata) -> Result<u32, LogError> {
    let topic = cluster.topic(GENERATIONS);
    if count(there, &topic).is_none() {
        return Ok(1);
    }
    let mut lane = Lane::open(cluster, &topic, 0, true)?;
    let (mut from, mut generation) = (lane.span(cluster)?.0, 1);
    loop {
        let raw = lane.read(cluster, from, 64)?;
        let Some(last) = raw.last() else { return Ok(generation) };
        from = last.record.offset + 1;
        for raw in raw.iter().filter(|raw| raw.record.key == GENERATION_KEY) {
            let read = Moved::parse(raw.record.value.as_deref().unwrap_or_default());
            let moved = read.map_err(|problem| cluster.error(format!("reading {topic}"), problem, None))?;
            generation = generation.max(moved.generation);
        }
    }
}

/// Removes the generations of the memory before this one; gives their names.
pub(super) fn drop_old(cluster: &Cluster, generation: u32) -> Result<Vec<String>, LogError> {
    let admin = Admin::new(cluster)?;
    let there = admin.metadata()?;
    let old: Vec<String> = (1..generation)
        .map(|old| cluster.topic(&memory_name(old)))
        .filter(|name| count(&there, name).is_some())
        .collect();
    let names: Vec<&str> = old.iter().map(String::as_str).collect();
    if !names.is_empty() {
        let options = AdminOptions::new().operation_timeout(Some(cluster.timeout()));
        let gone = admin
            .runtime
            .block_on(admin.client.delete_topics(&names, &options))
            .map_err(|e| cluster.failed(&admin.watch, "removing topics", &e))?;
        for result in gone {
            result.map_err(|(name, code)| {
                cluster.error(format!("removing topic {name}"), code.to_string(), Some(code))
            })?;
        }
    }
    Ok(old)
}

/// The partitions of a topic, if it is there.
pub(super) fn count(there: &Metadata, name: &str) -> Option<u32> {
    let topic = there.topics().iter().find(|t| t.name() == name)?;
    let partitions = topic.partitions().len() as u32;
    (topic.error().is_none() && partitions > 0).then_some(partitions)
}

/// An administrator's client; its answers are futures, waited for here.
struct Admin<'a> {
    cluster: &'a Cluster,
    client: AdminClient<DefaultClientContext>,
    watch: Watch,
    /// Asks what the administrator's client cannot: its complaints are kept.
    asking: rdkafka::producer::BaseProducer<Watch>,
    runtime: tokio::runtime::Runtime,
}

impl<'a> Admin<'a> {
    fn new(cluster: &'a Cluster) -> Result<Self, LogError> {
        let watch = Watch::default();
        let config = cluster.client();
        let failed = |e: &_| cluster.failed(&watch, "making a client", e);
        let client = AdminClient::from_config(&config).map_err(|e| failed(&e))?;
        let asking = config.create_with_context(watch.clone()).map_err(|e| failed(&e))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| cluster.error("starting a runtime", e.to_string(), None))?;
        Ok(Self { cluster, client, watch, asking, runtime })
    }

    fn metadata(&self) -> Result<Metadata, LogError> {
        use rdkafka::producer::Producer;
        // Complaints are events of the queue, which somebody has to look at meanwhile.
        let deadline = std::time::Instant::now() + self.cluster.timeout();
        loop {
            self.asking.poll(std::time::Duration::from_millis(10));
            let patience = self.cluster.timeout().min(std::time::Duration::from_secs(2));
            match self.asking.client().fetch_metadata(None, patience) {
                Ok(metadata) => return Ok(metadata),
                Err(error) => {
                    self.asking.poll(std::time::Duration::from_millis(10));
                    let failed = self.cluster.failed(&self.watch, "asking for the topics", &error);
                    let passing = matches!(&failed, LogError::Cluster { passing: true, .. });
                    if !passing || std::time::Instant::now() > deadline {
                        return Err(failed);
                    }
                }
            }
        }
    }

    /// Asks until the topics that were just made are known everywhere.
    fn metadata_with(&self, made: &[&Wanted]) -> Result<Metadata, LogError> {
        let deadline = std::time::Instant::now() + self.cluster.timeout();
        loop {
            let there = self.metadata()?;
            let led = |w: &&Wanted| {
                let topic = there.topics().iter().find(|t| t.name() == w.name);
                topic.is_some_and(|t| {
                    t.partitions().len() as u32 >= w.partitions && t.partitions().iter().all(|p| p.leader() >= 0)
                })
            };
            if made.iter().all(led) || std::time::Instant::now() > deadline {
                return Ok(there);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn make(&self, topics: &[&Wanted]) -> Result<(), LogError> {
        if topics.is_empty() {
            return Ok(());
        }
        let new: Vec<NewTopic<'_>> = topics
            .iter()
            .map(|w| {
                let copies = TopicReplication::Fixed(self.cluster.settings.replication);
                let topic = NewTopic::new(&w.name, w.partitions as i32, copies);
                w.made_with.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let options = AdminOptions::new().operation_timeout(Some(self.cluster.timeout()));
        let made = self
            .runtime
            .block_on(self.client.create_topics(&new, &options))
            .map_err(|e| self.cluster.failed(&self.watch, "making topics", &e))?;
        for result in made {
            match result {
                // Another instance was faster.
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((name, code)) => {
                    return Err(self.cluster.error(format!("making topic {name}"), code.to_string(), Some(code)));
                }
            }
        }
        Ok(())
    }

    /// What is too little, or different, of the properties that are needed; and what will do,
    /// and is less than a topic is made with.
    fn compare(&self, topics: &[&Wanted]) -> Result<(Vec<String>, Vec<String>), LogError> {
        if topics.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let resources: Vec<ResourceSpecifier<'_>> = topics.iter().map(|w| ResourceSpecifier::Topic(&w.name)).collect();
        let options = AdminOptions::new().request_timeout(Some(self.cluster.timeout()));
        let described = self
            .runtime
            .block_on(self.client.describe_configs(&resources, &options))
            .map_err(|e| self.cluster.failed(&self.watch, "asking for the topics' properties", &e))?;
        let (mut differences, mut notices) = (Vec::new(), Vec::new());
        for (topic, found) in topics.iter().zip(described) {
            let found: ConfigResource = found.map_err(|code| {
                let doing = format!("asking for the properties of topic {}", topic.name);
                self.cluster.error(doing, code.to_string(), Some(code))
            })?;
            for (key, needed) in topic.made_with.iter().filter(|(key, _)| topic.needed.contains(key)) {
                let value = found.get(key).and_then(|entry| entry.value.clone()).unwrap_or_default();
                let reaches = |needed: &str| match (value.parse::<i64>(), needed.parse::<i64>()) {
                    (Ok(value), Ok(needed)) => value >= needed,
                    _ => value == needed,
                };
                if reaches(needed) {
                    continue;
                }
                let name = &topic.name;
                let told = |what: &str| {
                    format!(
                        "topic {name}: {key} is {value:?}, {needed:?} is {what}; \
                         kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config {key}={needed}"
                    )
                };
                match topic.enough.iter().find(|(enough, _)| enough == key) {
                    Some((_, enough)) if reaches(enough) => {
                        notices.push(told("better, so that snapshots know every version"));
                    }
                    _ => differences.push(told("needed")),
                }
            }
        }
        Ok((differences, notices))
    }
}

//! Finds the records of the pipeline's own topics that cannot be read, and writes what an operator decides instead.
//!
//! In: the cluster, checks for the values that the log cannot judge, and the operator's decisions. Out: each unreadable
//! record, with what is wrong with it and what may be written instead; then the new record of its key, in a separate
//! transaction. For each key, only the last record counts, so a record that another one follows is not reported. This
//! file never chooses a value, and never replaces a readable record. A running service continues by itself once it
//! reads the new record.

use std::collections::BTreeMap;

use sources::live::check_stored;

use super::{
    client::KafkaCluster,
    control_records::{self, GENERATION_KEY, GenerationSwitch, MOVED_KEY},
    partition_reader::PartitionReader,
    topic_setup::{self, GENERATIONS, OPERATIONS, SOURCES},
    transactional_producer::{OutgoingRecord, TransactionalProducer},
};
use crate::{LogError, LogRecord, ReadProgress, memory_name};
use types::{config::LogSettings, model::MemoryKey};

/// Records read at once.
const READ_AT_ONCE: usize = 256;

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableKafkaRecord {
    /// Its topic, with the prefix.
    pub topic: String,
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; `None` if it was deleted.
    pub value: Option<Vec<u8>>,
    /// What the record describes: `the read position of turns/3`.
    pub what: String,
    /// Why it cannot be read.
    pub problem: String,
    /// What may be written instead.
    pub remedy: String,
}

/// What is wrong with a record.
pub struct RecordProblem {
    /// What the record describes.
    pub what: String,
    /// Why it cannot be read.
    pub problem: String,
    /// What may be written instead.
    pub remedy: String,
}

/// Says what is wrong with the value of a memory record, if anything.
pub type ValueCheck<'c> = dyn Fn(&MemoryKey, &[u8]) -> Option<RecordProblem> + 'c;

/// Says what is wrong with an entry that is kept beside the records, by its name, if anything.
pub type EntryCheck<'c> = dyn Fn(&str, &[u8]) -> Option<RecordProblem> + 'c;

/// Checks of the contents that the log itself cannot judge.
#[derive(Clone, Copy)]
pub struct RepairChecks<'c> {
    /// For memory records.
    pub value: &'c ValueCheck<'c>,
    /// For entries.
    pub entry: &'c EntryCheck<'c>,
}

/// Checks a record, given the last readable read position of its key.
type ReadabilityCheck<'c> = dyn Fn(Option<&ReadProgress>, &LogRecord) -> Option<RecordProblem> + 'c;

/// Every record that cannot be read and is the last one of its key.
///
/// # Errors
/// [`LogError::Cluster`].
pub fn unreadable_records(
    settings: &LogSettings,
    checks: RepairChecks<'_>,
) -> Result<Vec<UnreadableKafkaRecord>, LogError> {
    let cluster = KafkaCluster::new(&settings.kafka)?;
    let mut found = Vec::new();
    let generation = match topic_setup::current_generation(&cluster) {
        Ok(generation) => Some(generation),
        // In that case it is unknown which topic holds the memory.
        Err(LogError::Unreadable { .. }) => None,
        Err(error) => return Err(error),
    };
    let turns = topic_setup::partitions_of(&cluster, &cluster.topic("turns"))?;
    scan(
        &cluster,
        GENERATIONS,
        &|_, record| {
            let problem =
                record.value.as_deref().map_or_else(|| Err("it was deleted".to_owned()), GenerationSwitch::parse).err();
            // A deleted record means that there was no switch, which is a valid answer while the first generation
            // exists.
            problem.filter(|_| record.key == GENERATION_KEY && (record.value.is_some() || generation.is_none())).map(
                |problem| {
                    let what = "the number of the memory's generation".to_owned();
                    RecordProblem { what, problem, remedy: generation_remedy() }
                },
            )
        },
        &mut found,
    )?;
    if let Some(generation) = generation {
        let check = |before: Option<&ReadProgress>, record: &LogRecord| of_memory(turns, checks.value, before, record);
        scan(&cluster, &memory_name(generation), &check, &mut found)?;
    }
    scan(
        &cluster,
        SOURCES,
        &|_, record| {
            let problem = check_stored(record.value.as_deref()?).err()?;
            let what = format!("of the source {}", String::from_utf8_lossy(&record.key).replace('\0', " "));
            let remedy =
                "remove it, and the source starts from the beginning; or write the last value that could be read"
                    .to_owned();
            Some(RecordProblem { what, problem, remedy })
        },
        &mut found,
    )?;
    let check = |_: Option<&ReadProgress>, record: &LogRecord| {
        (checks.entry)(&String::from_utf8_lossy(&record.key), record.value.as_deref()?)
    };
    scan(&cluster, OPERATIONS, &check, &mut found)?;
    Ok(found)
}

/// What is wrong with a record of the memory topic, if anything; `before` is the last readable read position of its
/// key.
fn of_memory(
    turns: u32,
    check_value: &ValueCheck<'_>,
    before: Option<&ReadProgress>,
    record: &LogRecord,
) -> Option<RecordProblem> {
    let value = record.value.as_deref();
    if let Some(of) = control_records::partition_of_key(&record.key) {
        let problem = control_records::read(value).err()?;
        // No one reads the position of a partition that does not exist.
        if of >= turns {
            let remedy = format!("remove it: turns has {turns} partitions, and this position belongs to none of them");
            let what = control_records::describe_key(&record.key).unwrap_or_default();
            return value.is_some().then_some(RecordProblem { what, problem, remedy });
        }
        let example =
            String::from_utf8_lossy(&control_records::value(&before.cloned().unwrap_or_default())).into_owned();
        let known = before.map_or_else(
            || "no earlier one is stored; turns from there on are read again".to_owned(),
            |before| format!("the last one that can be read says {}", before.low()),
        );
        let remedy = format!("write the first offset of turns/{of} that is not extracted, such as {example} ({known})");
        return Some(RecordProblem {
            what: control_records::describe_key(&record.key).unwrap_or_default(),
            problem,
            remedy,
        });
    }
    let value = value?;
    if record.key == MOVED_KEY {
        let problem = GenerationSwitch::parse(value).err()?;
        let what = control_records::describe_key(MOVED_KEY).unwrap_or_default();
        return Some(RecordProblem { what, problem, remedy: generation_remedy() });
    }
    let problem = match MemoryKey::from_bytes(&record.key) {
        Ok(key) => return check_value(&key, value),
        Err(error) => error.to_string(),
    };
    let remedy = "remove it, unless a newer build wrote it: then run that build".to_owned();
    Some(RecordProblem { what: "a record of the memory".to_owned(), problem, remedy })
}

fn generation_remedy() -> String {
    "remove it if the memory was never re-embedded; otherwise write the last value that could be read".to_owned()
}

/// Reads a topic to its end, and adds the records that are the last of their key and for which `check` returns a
/// finding.
fn scan(
    cluster: &KafkaCluster,
    topic: &str,
    check: &ReadabilityCheck<'_>,
    found: &mut Vec<UnreadableKafkaRecord>,
) -> Result<(), LogError> {
    let topic = cluster.topic(topic);
    for partition in 0..topic_setup::partitions_of(cluster, &topic)? {
        let mut reader = PartitionReader::open(cluster, &topic, partition, false)?;
        let mut from = reader.span(cluster)?.0;
        let mut last: BTreeMap<Vec<u8>, UnreadableKafkaRecord> = BTreeMap::new();
        let mut positions: BTreeMap<Vec<u8>, ReadProgress> = BTreeMap::new();
        loop {
            let raw = reader.read(cluster, from, READ_AT_ONCE)?;
            let Some(end) = raw.last() else { break };
            from = end.record.offset + 1;
            for record in raw.into_iter().map(|raw| raw.record) {
                if control_records::partition_of_key(&record.key).is_some()
                    && let Ok(position) = control_records::read(record.value.as_deref())
                {
                    positions.insert(record.key.clone(), position);
                }
                last.remove(&record.key);
                let before = positions.get(&record.key);
                if let Some(RecordProblem { what, problem, remedy }) = check(before, &record) {
                    let LogRecord { offset, key, value, .. } = record;
                    let topic = topic.clone();
                    let unread = UnreadableKafkaRecord {
                        topic,
                        partition,
                        offset,
                        key: key.clone(),
                        value,
                        what,
                        problem,
                        remedy,
                    };
                    last.insert(key, unread);
                }
            }
        }
        found.extend(last.into_values());
    }
    Ok(())
}

/// Writes a record that replaces one that cannot be read, under the same key; `None` removes that record.
///
/// # Errors
/// [`LogError::Record`] for a value that could not be read either; [`LogError::Cluster`].
pub fn replace(
    settings: &LogSettings,
    found: &UnreadableKafkaRecord,
    value: Option<&[u8]>,
    checks: RepairChecks<'_>,
) -> Result<(), LogError> {
    let cluster = KafkaCluster::new(&settings.kafka)?;
    let UnreadableKafkaRecord { topic, partition, key, what, remedy, offset, .. } = found;
    let turns = topic_setup::partitions_of(&cluster, &cluster.topic("turns"))?;
    let record = LogRecord { offset: *offset, append_ms: 0, key: key.clone(), value: value.map(<[u8]>::to_vec) };
    let problem = if *topic == cluster.topic(GENERATIONS) {
        value.and_then(|value| GenerationSwitch::parse(value).err())
    } else if *topic == cluster.topic(SOURCES) {
        value.and_then(|value| check_stored(value).err())
    } else if *topic == cluster.topic(OPERATIONS) {
        value.and_then(|value| Some((checks.entry)(&String::from_utf8_lossy(key), value)?.problem))
    } else {
        of_memory(turns, checks.value, None, &record).map(|found| found.problem)
    };
    if let Some(problem) = problem {
        let what = format!("{what} at offset {offset}");
        return Err(LogError::Unreadable {
            topic: topic.clone(),
            partition: *partition,
            offset: *offset,
            what,
            problem: format!("the new value cannot be read either ({problem}); {remedy}"),
        });
    }
    // An owner in a separate role, so no running service is fenced.
    let owner = TransactionalProducer::take(&cluster, "repair", 0)?;
    let record = OutgoingRecord { topic, partition: Some(*partition), key: Some(key), value, headers: None };
    owner.commit(&cluster, std::iter::once(record)).map(drop)
}

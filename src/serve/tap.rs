//! A look into a topic, and how far behind extraction is; for people.
//!
//! In: a log and a topic's name. Out: records as JSON, without their vectors; positions and
//! ends by partition. Writes nothing, owns nothing.

use serde::Serialize;
use serde_json::Value;

use crate::{
    config::{LogKind, Pipeline},
    log::{
        self, EmbeddedLog, Log, LogError, Record, Topic,
        kafka::{client::Cluster, lane::Lane},
    },
    model::MemoryKey,
};

/// Topics that can be looked into.
pub const TOPICS: [&str; 6] = ["turns", "memory", "dead-letters", "questions", "answers", "edges"];

/// A record, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tapped {
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key, in words where it is text.
    pub key: String,
    /// Its headers, in words where they are text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Its value without vectors; null where it removes its key.
    pub value: Value,
}

/// How far a partition of the turns topic is extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lag {
    /// The partition.
    pub partition: u32,
    /// The first offset that is not extracted.
    pub position: u64,
    /// The offset that the next turn will get.
    pub end: u64,
}

/// Shows the last `last` records of every partition of a topic (all without it), then goes
/// on with `follow` until `each` says no.
///
/// # Errors
/// [`LogError`].
pub fn tap(
    pipeline: &Pipeline,
    topic: &str,
    last: Option<u64>,
    follow: bool,
    each: &mut dyn FnMut(&Tapped) -> bool,
) -> Result<(), LogError> {
    match pipeline.log.kind {
        LogKind::Kafka => tap_kafka(pipeline, topic, last, follow, each),
        LogKind::Embedded => tap_embedded(&EmbeddedLog::open(&pipeline.log)?, topic, last, each),
    }
}

fn tap_embedded(
    log: &EmbeddedLog,
    topic: &str,
    last: Option<u64>,
    each: &mut dyn FnMut(&Tapped) -> bool,
) -> Result<(), LogError> {
    let kind = match topic {
        "turns" => Topic::Turns,
        "memory" => Topic::Memory,
        _ => Topic::DeadLetters,
    };
    let partitions = if kind == Topic::DeadLetters { 1 } else { log.partitions() };
    for partition in 0..partitions {
        let mut from = last.map_or(0, |last| log.end(kind, partition).unwrap_or_default().saturating_sub(last));
        loop {
            let batch = log.read(kind, partition, from, 64)?;
            if batch.records.is_empty() {
                break;
            }
            from = batch.next;
            for record in batch.records {
                if !each(&tapped(topic, partition, record, &[])) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn tap_kafka(
    pipeline: &Pipeline,
    topic: &str,
    last: Option<u64>,
    follow: bool,
    each: &mut dyn FnMut(&Tapped) -> bool,
) -> Result<(), LogError> {
    let cluster = Cluster::new(&pipeline.log.kafka)?;
    let name = cluster.topic(topic);
    let mut lanes = Vec::new();
    for partition in 0..log::kafka::partitions_of(&cluster, &name)? {
        let lane = Lane::open(&cluster, &name, partition, false)?;
        let (low, end) = lane.span(&cluster)?;
        let from = last.map_or(low, |last| end.saturating_sub(last).max(low));
        lanes.push((partition, lane, from));
    }
    loop {
        let mut any = false;
        for (partition, lane, from) in &mut lanes {
            for raw in lane.read(&cluster, *from, 64)? {
                any = true;
                *from = raw.record.offset + 1;
                if !each(&tapped(topic, *partition, raw.record, &raw.headers)) {
                    return Ok(());
                }
            }
        }
        if !any {
            if !follow {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn tapped(topic: &str, partition: u32, record: Record, headers: &[(String, Option<Vec<u8>>)]) -> Tapped {
    let key = match (topic, MemoryKey::from_bytes(&record.key)) {
        ("memory", Ok(MemoryKey { bank, window, turn, part })) => {
            let turn = turn.map_or_else(String::new, |turn| format!(" turn {turn}"));
            let part = if part == 0 { String::new() } else { format!(" part {part}") };
            format!("{bank} {} {}{turn}{part}", window.session.0, window.start)
        }
        _ => readable(&record.key),
    };
    let mut value = match record.value.as_deref().map(serde_json::from_slice) {
        None => Value::Null,
        Some(Ok(value)) => value,
        Some(Err(_)) => Value::String(readable(record.value.as_deref().unwrap_or_default())),
    };
    drop_vectors(&mut value);
    let headers = headers.iter().map(|(k, v)| (k.clone(), readable(v.as_deref().unwrap_or_default()))).collect();
    Tapped { partition, offset: record.offset, append_ms: record.append_ms, key, headers, value }
}

/// Text as it is, anything else in hexadecimal digits.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.iter().map(|b| format!("{b:02x}")).collect(),
    }
}

fn drop_vectors(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !matches!(key.as_str(), "vector" | "vectors" | "pair"));
            fields.values_mut().for_each(drop_vectors);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_vectors),
        _ => {}
    }
}

/// How far each partition is extracted.
///
/// # Errors
/// [`LogError`].
pub fn lag(pipeline: &Pipeline) -> Result<Vec<Lag>, LogError> {
    let log = log::open(&pipeline.log)?;
    let partitions = match pipeline.log.kind {
        LogKind::Embedded => log.partitions(),
        LogKind::Kafka => {
            let cluster = Cluster::new(&pipeline.log.kafka)?;
            log::kafka::partitions_of(&cluster, &cluster.topic("turns"))?
        }
    };
    let of = |partition| {
        let (position, end) = (log.read_position(partition)?, log.end(Topic::Turns, partition)?);
        Ok(Lag { partition, position, end })
    };
    (0..partitions).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_shown_in_words_and_without_vectors() {
        let value = br#"{"units": [{"vector": "AAAA", "parts": [{"pair": "x", "text": "Hello"}]}]}"#;
        let record = Record { offset: 3, append_ms: 1, key: vec![0, 1, 0xff], value: Some(value.to_vec()) };
        let shown = tapped("memory", 2, record, &[("h".to_owned(), Some(vec![0xff]))]);
        assert_eq!(shown.value, serde_json::json!({"units": [{"parts": [{"text": "Hello"}]}]}));
        assert_eq!((shown.key.as_str(), shown.headers[0].1.as_str()), ("0001ff", "ff"));
    }
}

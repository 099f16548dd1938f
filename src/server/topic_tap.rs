//! Shows records of a topic, and the lag of the extraction, to people.
//!
//! In: a view of a topic, or a log. Out: records as JSON, without their vectors; positions and
//! ends by partition. It writes nothing and joins no consumer group.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use serde_json::Value;

use logs::{LogError, LogRecord, Topic, TopicView};
use types::{config::Pipeline, model::MemoryKey};

/// Topics that can be shown.
pub const TOPICS: [&str; 6] = ["turns", "memory", "dead-letters", "questions", "answers", "edges"];

/// Records read at once.
const READ_AT_ONCE: usize = 64;
/// Time between two reads when there is nothing new.
const PAUSE: Duration = Duration::from_millis(100);

/// A record in readable form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TappedRecord {
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key; hexadecimal if it is not text.
    pub key: String,
    /// Its headers; hexadecimal if they are not text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Its value without vectors; null if it deletes its key.
    pub value: Value,
}

/// How far a partition of the turns topic is extracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtractionLag {
    /// The partition.
    pub partition: u32,
    /// The first offset that is not extracted; `None` if the record that states it cannot be read.
    pub position: Option<u64>,
    /// The offset that the next turn will get.
    pub end: u64,
    /// Turns that are not extracted; `None` without a position. Offsets that hold no turn may be counted if there are
    /// many.
    pub lag: Option<u64>,
    /// Why there is no position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Shows the last `last` records of every partition of `view`, which is a view of `topic` (all without `last`). With
/// `follow` it continues with new records. Ends when `each` returns false.
///
/// # Errors
/// [`LogError`].
pub fn tap(
    mut view: TopicView,
    topic: &str,
    last: Option<usize>,
    follow: bool,
    each: &mut dyn FnMut(&TappedRecord) -> bool,
) -> Result<(), LogError> {
    let mut next = (0..view.partitions()).map(|p| start(&mut view, p, last)).collect::<Result<Vec<u64>, _>>()?;
    loop {
        let mut any = false;
        for (partition, from) in (0..).zip(&mut next) {
            for raw in view.read(partition, *from, READ_AT_ONCE)? {
                any = true;
                *from = raw.record.offset + 1;
                if !each(&readable_record(topic, partition, raw.record, &raw.headers)) {
                    return Ok(());
                }
            }
        }
        if !any {
            if !follow {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The offset of the first of the last `last` records. Not every offset has a record: keys are written again, and
/// transactions leave marks.
fn start(view: &mut TopicView, partition: u32, last: Option<usize>) -> Result<u64, LogError> {
    let (low, end) = view.span(partition)?;
    let Some(last) = last else { return Ok(low) };
    let mut back = last as u64;
    loop {
        let begin = end.saturating_sub(back).max(low);
        let (mut from, mut offsets) = (begin, VecDeque::new());
        loop {
            let read = view.read(partition, from, READ_AT_ONCE)?;
            let Some(newest) = read.last() else { break };
            from = newest.record.offset + 1;
            offsets.extend(read.iter().map(|raw| raw.record.offset));
            offsets.drain(..offsets.len().saturating_sub(last));
        }
        if offsets.len() == last || begin == low {
            return Ok(offsets.front().copied().unwrap_or(from));
        }
        back = back.saturating_mul(4);
    }
}

fn readable_record(
    topic: &str,
    partition: u32,
    record: LogRecord,
    headers: &[(String, Option<Vec<u8>>)],
) -> TappedRecord {
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
    TappedRecord { partition, offset: record.offset, append_ms: record.append_ms, key, headers, value }
}

/// Text unchanged, anything else in hexadecimal digits.
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

/// The lag of each partition.
///
/// # Errors
/// [`LogError`].
pub fn lag(pipeline: &Pipeline) -> Result<Vec<ExtractionLag>, LogError> {
    let log = logs::open(&pipeline.log)?;
    let of = |partition| {
        let end = log.end(Topic::Turns, partition)?;
        match log.read_position(partition) {
            Ok(position) => {
                let lag = log.lag(partition, position)?;
                Ok(ExtractionLag { partition, position: Some(position), end, lag: Some(lag), problem: None })
            }
            // Its partition waits, and the others are shown.
            Err(error @ LogError::Unreadable { .. }) => {
                Ok(ExtractionLag { partition, position: None, end, lag: None, problem: Some(error.to_string()) })
            }
            Err(error) => Err(error),
        }
    };
    (0..logs::turns_partitions(&pipeline.log, &*log)?).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_shown_in_words_and_without_vectors() {
        let value = br#"{"units": [{"vector": "AAAA", "parts": [{"pair": "x", "text": "Hello"}]}]}"#;
        let record = LogRecord { offset: 3, append_ms: 1, key: vec![0, 1, 0xff], value: Some(value.to_vec()) };
        let shown = readable_record("memory", 2, record, &[("h".to_owned(), Some(vec![0xff]))]);
        assert_eq!(shown.value, serde_json::json!({"units": [{"parts": [{"text": "Hello"}]}]}));
        assert_eq!((shown.key.as_str(), shown.headers[0].1.as_str()), ("0001ff", "ff"));
    }
}

//! The values and headers of records that are to be written.
//!
//! In: events and dead letters. Out: their JSON, if no record is too large, and the headers of a dead letter.

use rdkafka::message::{Header, OwnedHeaders};

use crate::{LogError, MAX_VALUE_BYTES, Topic};
use types::model::DeadLetter;

/// Why a record was rejected, in the headers that Kafka Connect uses.
pub(super) fn error_headers(letter: &DeadLetter, turns: &str) -> OwnedHeaders {
    let mut headers = OwnedHeaders::new();
    let mut put = |name: &str, value: &str| {
        let key = format!("__connect.errors.{name}");
        let taken = std::mem::take(&mut headers);
        headers = taken.insert(Header { key: &key, value: Some(value) });
    };
    if let Some(place) = &letter.position {
        put("topic", turns);
        put("partition", &place.partition.to_string());
        put("offset", &place.offset.to_string());
    } else {
        put("topic", &letter.origin);
    }
    put("connector.name", "ripplemem");
    put("task.id", &letter.position.as_ref().map_or(0, |p| p.partition).to_string());
    put("stage", "VALUE_CONVERTER");
    put("class.name", "ripplemem::model::TurnEvent");
    put("exception.class.name", "ripplemem.InvalidTurn");
    put("exception.message", &letter.reason);
    headers
}

/// Fails for a value that no retry could send.
pub(super) fn check_sizes<'a>(
    topic: Topic,
    partition: u32,
    mut values: impl Iterator<Item = &'a [u8]>,
) -> Result<(), LogError> {
    match values.by_ref().map(<[u8]>::len).enumerate().find(|(_, bytes)| *bytes > MAX_VALUE_BYTES) {
        None => Ok(()),
        Some((index, bytes)) => {
            let problem = format!("its value has {bytes} bytes; split it, at most {MAX_VALUE_BYTES} fit");
            Err(LogError::Record { topic, partition, index, problem })
        }
    }
}

pub(super) fn json_of<T: serde::Serialize>(topic: Topic, values: &[T]) -> Result<Vec<Vec<u8>>, LogError> {
    let json = |(index, value)| {
        serde_json::to_vec(value).map_err(|e| LogError::Record {
            topic,
            partition: 0,
            index,
            problem: format!("it cannot be written as JSON ({e}); please report this"),
        })
    };
    values.iter().enumerate().map(json).collect()
}

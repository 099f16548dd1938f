//! Turns a record of a topic into a row with its bytes and its decoded content.
//!
//! In: a record with its headers. Out: a row. A record that cannot be decoded is a row, too, with
//! the reason.

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};

use super::ArchiveTable;
use types::model::{DeadLetter, MemoryKey, ModelRef, TurnEvent, WindowState};

/// A record of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRow {
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key, unchanged.
    pub key: Vec<u8>,
    /// Its value, unchanged; `None` deletes the key.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Its decoded content.
    pub(super) content: RowContent,
}

/// The decoded content of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowContent {
    /// Of the turns topic.
    Turn(Box<TurnEvent>),
    /// Of the memory topic: the key, and the head of its record; `None` for a deletion.
    Memory(MemoryKey, Option<RecordHead>),
    /// Of the dead letters.
    DeadLetter(Box<DeadLetter>),
    /// A read position, of no use to a reader of the table.
    Position,
    /// Not a valid record of its topic, with the reason.
    Unreadable(String),
}

/// The properties of a memory record, without its turns and units.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordHead {
    /// Whether the window is open or final.
    pub state: WindowState,
    /// The extractor of the units.
    pub extractor: String,
    /// The model of the vectors.
    pub model: ModelRef,
    /// Its number of turns.
    pub turns: usize,
    /// Its number of units.
    pub units: usize,
}

impl TopicRow {
    /// Decodes a record of a table's topic.
    #[must_use]
    pub fn new(
        table: ArchiveTable,
        partition: u32,
        offset: u64,
        append_ms: i64,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
        headers: Vec<(String, Option<Vec<u8>>)>,
    ) -> Self {
        let bytes = value.as_deref();
        let content = match table {
            ArchiveTable::Turns => match bytes {
                Some(bytes) => TurnEvent::from_log(bytes).map(|event| RowContent::Turn(Box::new(event))),
                None => Err("it has no value".to_owned()),
            },
            ArchiveTable::Memory if key.starts_with(&[0, 0]) => Ok(RowContent::Position),
            ArchiveTable::Memory => memory(&key, bytes),
            ArchiveTable::DeadLetters => serde_json::from_slice(bytes.unwrap_or_default())
                .map(|letter| RowContent::DeadLetter(Box::new(letter)))
                .map_err(|e| e.to_string()),
        };
        Self {
            partition,
            offset,
            append_ms,
            key,
            value,
            headers,
            content: content.unwrap_or_else(RowContent::Unreadable),
        }
    }

    /// The bank that it names, if any.
    pub(super) fn bank(&self) -> Option<&str> {
        match &self.content {
            RowContent::Turn(event) => Some(event.bank().as_str()),
            RowContent::Memory(key, _) => Some(key.bank.as_str()),
            RowContent::DeadLetter(_) | RowContent::Position | RowContent::Unreadable(_) => None,
        }
    }

    /// The UTC day on which it was appended; `None` for a time that is out of range.
    pub(super) fn date(&self) -> Option<String> {
        Some(Timestamp::from_millisecond(self.append_ms).ok()?.strftime("%F").to_string())
    }

    /// Its approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        // The decoded content repeats the value.
        2 * self.value.as_ref().map_or(0, Vec::len) + self.key.len() + 256
    }
}

fn memory(key: &[u8], value: Option<&[u8]>) -> Result<RowContent, String> {
    #[derive(Deserialize)]
    struct RecordHeadFields {
        state: WindowState,
        extractor: String,
        model: ModelRef,
        turns: Vec<IgnoredAny>,
        units: Vec<IgnoredAny>,
    }
    let key = MemoryKey::from_bytes(key).map_err(|e| e.to_string())?;
    let Some(value) = value else { return Ok(RowContent::Memory(key, None)) };
    let RecordHeadFields { state, extractor, model, turns, units } =
        serde_json::from_slice(value).map_err(|e| e.to_string())?;
    Ok(RowContent::Memory(key, Some(RecordHead { state, extractor, model, turns: turns.len(), units: units.len() })))
}

//! A record of a topic as a row: the bytes as they stand, and what they say.
//!
//! In: a record with its headers. Out: a row that also has the record's fields. What cannot
//! be read is kept all the same, with the reason.

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};

use super::Table;
use crate::model::{DeadLetter, MemoryKey, ModelRef, TurnEvent, WindowState};

/// A record of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key, as it stands.
    pub key: Vec<u8>,
    /// Its value, as it stands; none where it removes its key.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// What it says.
    pub(super) said: Said,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// Of the turns topic.
    Turn(Box<TurnEvent>),
    /// Of the memory topic: a key, and the head of what stands under it.
    Memory(MemoryKey, Option<Head>),
    /// Of the dead letters.
    DeadLetter(Box<DeadLetter>),
    /// Of no use to a reader: a read position.
    Position,
    /// Not what the topic holds; why.
    Unreadable(String),
}

/// What a memory record says of itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// Whether the window has closed.
    pub state: WindowState,
    /// Who made the units.
    pub extractor: String,
    /// Who made the vectors.
    pub model: ModelRef,
    /// How many turns it holds.
    pub turns: usize,
    /// How many units it holds.
    pub units: usize,
}

impl Row {
    /// Reads what the bytes of a record of a table's topic say.
    #[must_use]
    pub fn new(
        table: Table,
        partition: u32,
        offset: u64,
        append_ms: i64,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
        headers: Vec<(String, Option<Vec<u8>>)>,
    ) -> Self {
        let bytes = value.as_deref();
        let said = match table {
            Table::Turns => match bytes {
                Some(bytes) => TurnEvent::from_json(bytes).map(|event| Said::Turn(Box::new(event))),
                None => Err("it has no value".to_owned()),
            },
            Table::Memory if key.starts_with(&[0, 0]) => Ok(Said::Position),
            Table::Memory => memory(&key, bytes),
            Table::DeadLetters => serde_json::from_slice(bytes.unwrap_or_default())
                .map(|letter| Said::DeadLetter(Box::new(letter)))
                .map_err(|e| e.to_string()),
        };
        Self { partition, offset, append_ms, key, value, headers, said: said.unwrap_or_else(Said::Unreadable) }
    }

    /// The bank that it belongs to, where it says so.
    pub(super) fn bank(&self) -> Option<&str> {
        match &self.said {
            Said::Turn(event) => Some(event.bank().as_str()),
            Said::Memory(key, _) => Some(key.bank.as_str()),
            Said::DeadLetter(_) | Said::Position | Said::Unreadable(_) => None,
        }
    }

    /// The day on which it was appended, in UTC; none where the time means none.
    pub(super) fn date(&self) -> Option<String> {
        Some(Timestamp::from_millisecond(self.append_ms).ok()?.strftime("%F").to_string())
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        // What the fields say stands in the value once more.
        2 * self.value.as_ref().map_or(0, Vec::len) + self.key.len() + 256
    }
}

fn memory(key: &[u8], value: Option<&[u8]>) -> Result<Said, String> {
    #[derive(Deserialize)]
    struct Record {
        state: WindowState,
        extractor: String,
        model: ModelRef,
        turns: Vec<IgnoredAny>,
        units: Vec<IgnoredAny>,
    }
    let key = MemoryKey::from_bytes(key).map_err(|e| e.to_string())?;
    let Some(value) = value else { return Ok(Said::Memory(key, None)) };
    let Record { state, extractor, model, turns, units } = serde_json::from_slice(value).map_err(|e| e.to_string())?;
    Ok(Said::Memory(key, Some(Head { state, extractor, model, turns: turns.len(), units: units.len() })))
}

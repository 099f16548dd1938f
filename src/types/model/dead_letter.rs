//! Dead letters: records that were rejected.
//!
//! In: a record that cannot be used, and why. Out: its dead letter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, SCHEMA_VERSION, limits::MAX_REASON_BYTES};

/// A rejected record, for the dead-letter topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// Version of this schema: 1.
    pub schema: u32,
    /// Its origin: a file and line, or a topic, partition and offset; cut to 4,096 bytes.
    pub origin: String,
    /// What was wrong and what to do; cut to 4,096 bytes.
    pub reason: String,
    /// The record itself, cut to 4,096 bytes, invalid UTF-8 replaced.
    pub payload: String,
    /// Its position in the turns topic, if it was read from there.
    #[serde(default, rename = "place", skip_serializing_if = "Option::is_none")]
    pub position: Option<InputPosition>,
    /// The bank that it was for; absent where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
}

/// A record of the turns topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Place")]
pub struct InputPosition {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
}

impl DeadLetter {
    /// A dead letter for a raw record.
    #[must_use]
    pub fn new(origin: String, reason: String, payload: &[u8]) -> Self {
        let cut = &payload[..payload.len().min(4096)];
        let payload = String::from_utf8_lossy(cut).into_owned();
        // An error may quote a field's name, which may have any length.
        let short = |mut text: String| {
            text.truncate(text.floor_char_boundary(MAX_REASON_BYTES));
            text
        };
        let (origin, reason) = (short(origin), short(reason));
        Self { schema: SCHEMA_VERSION, origin, reason, payload, position: None, bank: None }
    }

    /// A dead letter for a record of the turns topic.
    #[must_use]
    pub fn of_turn(position: InputPosition, reason: String, payload: &[u8]) -> Self {
        let origin = format!("turns partition {}, offset {}", position.partition, position.offset);
        Self { position: Some(position), ..Self::new(origin, reason, payload) }.in_bank(stated_bank(payload))
    }

    /// The same, for this bank.
    #[must_use]
    pub fn in_bank(self, bank: Option<Bank>) -> Self {
        Self { bank, ..self }
    }
}

/// The bank that a rejected record of turns states, if that can be read. Not for records of other forms: there a field
/// of this name may be anyone's words.
#[must_use]
pub fn stated_bank(record: &[u8]) -> Option<Bank> {
    #[derive(Deserialize)]
    struct StatedBank {
        bank: Bank,
    }
    serde_json::from_slice(without_byte_order_mark(record)).ok().map(|StatedBank { bank }| bank)
}

/// The bytes without the mark that some programs write in front of UTF-8.
pub(super) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

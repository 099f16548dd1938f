//! Sessions of a bank, and windows of turns.
//!
//! In: turns with their places. Out: what an extractor sees, and the hash of it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, Turn};

/// A session of a bank: `caller:NAME`, `thread:NAME`, `auto:N` or `bank`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionId(pub String);

/// A window: the turns of a session from ordinal `start` until it closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowId {
    /// The session that it lies in.
    pub session: SessionId,
    /// Ordinal, in the session, of its first turn that is not context.
    pub start: u32,
}

/// A turn as a window holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowTurn {
    /// The turn; its text is empty once it is deleted.
    #[serde(flatten)]
    pub turn: Arc<Turn>,
    /// Position in the session, from 0, in the order first read from the log.
    pub ordinal: u32,
    /// True in the leading overlap: context only, without its own unit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// True once it is deleted. Its ordinal is not used again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Offset in the turns topic of the version held here.
    pub source_offset: u64,
    /// When it was stored; absent in records of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredTimes>,
}

/// When a turn was appended to the turns topic, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredTimes {
    /// The version held here.
    pub ms: i64,
    /// Its first version.
    pub first_ms: i64,
}

impl WindowTurn {
    /// Whether units may be made of it: it is not deleted, and its `recall` is not false.
    #[must_use]
    pub fn is_recalled(&self) -> bool {
        !self.deleted && self.turn.recall
    }
}

/// A window as the extractor sees it: turns in ordinal order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The tenant.
    pub bank: Bank,
    /// Which window.
    pub id: WindowId,
    /// Its turns, leading context first, deleted ones included.
    pub turns: Vec<WindowTurn>,
}

impl Window {
    /// Hash of what the extractor depends on: ids, versions and contents, in order. It depends neither on metadata nor on
    /// when turns were stored.
    #[must_use]
    pub fn turns_hash(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for t in &self.turns {
            let mut read = WindowTurn { stored: None, ..t.clone() };
            if t.turn.metadata.is_some() {
                read.turn = Arc::new(Turn { metadata: None, ..(*t.turn).clone() });
            }
            let json = serde_json::to_vec(&read).unwrap_or_default();
            hash.update(&(json.len() as u64).to_le_bytes()).update(&json);
        }
        hash.finalize().to_hex()[..32].to_owned()
    }
}

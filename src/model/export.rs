//! The lines of a bank that was exported, to move it into another log.
//!
//! In: what the memory topic holds of a bank. Out: JSON Lines: the first says what the file
//! is, then one record a line, and the last seals what stands before it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, MemoryKey, MemoryRecord, ModelRef};

/// What the first line of every version says it is.
pub const EXPORT_FORM: &str = "ripplemem-bank";
/// The version of the form that this build writes and reads.
pub const EXPORT_VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// `ripplemem-bank`.
    pub form: String,
    /// Version of this form: 1.
    pub version: u32,
    /// Version of the records' schema (`topics/memory.v1.json`): 1.
    pub schema: u32,
    /// The bank.
    pub bank: Bank,
    /// Whose vectors the units have; null where there is no unit.
    pub model: Option<ModelRef>,
    /// The settings that edges depend on, where the bank comes from.
    pub settings: BTreeMap<String, f64>,
}

/// A live record of the memory topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportRecord {
    /// Its key.
    pub key: MemoryKey,
    /// Its value, as it is in the topic (`topics/memory.v1.json`).
    pub value: MemoryRecord,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportSeal {
    /// Lines between the first and this one.
    pub records: u64,
    /// What the memory made of them where they come from.
    pub digest: ExportDigest,
    /// BLAKE3, in hexadecimal digits, of every byte before this line.
    pub blake3: String,
}

/// What a memory holds of a bank, as `ripplemem digest` counts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportDigest {
    /// Units.
    pub units: u64,
    /// Semantic edges.
    pub semantic_edges: u64,
    /// Structural edges.
    pub structural_edges: u64,
    /// Hash of the set of units and edges, in 32 hexadecimal digits.
    pub hash: String,
    /// The same of the units alone: no setting of the graph changes it.
    pub units_hash: String,
}

/// Any line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExportLine {
    /// The first.
    Header(ExportHeader),
    /// One of those between.
    Record(Box<ExportRecord>),
    /// The last.
    Seal(ExportSeal),
}

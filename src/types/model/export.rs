//! The lines of an exported bank, which move it to another log.
//!
//! In: the records of a bank in the memory topic. Out: JSON Lines: a header, one record per line, and a
//! seal over all lines before it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bank, IdSalt, MemoryKey, MemoryRecord, ModelRef};

/// The form that the header of every version names.
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
    /// The model of the units' vectors; null if there is no unit.
    pub model: Option<ModelRef>,
    /// The settings that edges depend on, in the exporting pipeline.
    pub settings: BTreeMap<String, f64>,
    /// The salt with which the exporting memory hides phone numbers and mail addresses in ids, in hexadecimal digits;
    /// absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub id_salt: Option<IdSalt>,
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
    /// The digest of the bank in the exporting memory.
    pub digest: ExportDigest,
    /// BLAKE3, in hexadecimal digits, of every byte before this line.
    pub blake3: String,
}

/// The digest of a bank, as `ripplemem digest` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportDigest {
    /// The number of units.
    pub units: u64,
    /// The number of semantic edges.
    pub semantic_edges: u64,
    /// The number of structural edges.
    pub structural_edges: u64,
    /// Hash of the set of units and edges, in 32 hexadecimal digits.
    pub hash: String,
    /// Hash of the units alone, which no setting of the graph changes.
    pub units_hash: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExportLine {
    /// The first.
    Header(ExportHeader),
    /// A line between them.
    Record(Box<ExportRecord>),
    /// The last.
    Seal(ExportSeal),
}

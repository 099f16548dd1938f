//! The manifest: a snapshot's files and how far it reaches, written last.
//!
//! In: the manifests of a place. Out: their contents, newest first, or why one is unusable. A manifest
//! is never changed. Renamed Rust fields keep their JSON names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SnapshotError, store::SnapshotStore, update::UpdateTable};
use crate::model::{Bank, MemoryKey, ModelRef};

/// Version of the manifest and of the update tables.
const VERSION: u32 = 1;

/// A snapshot: how far it reaches, and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format and of the tables: 1.
    pub version: u32,
    /// The snapshot's number in its place, from 1.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub taken_ms: i64,
    /// The log that it was made from.
    pub log: String,
    /// Partitions of the memory topic.
    pub partitions: u32,
    /// How far it reaches, by partition of the memory topic.
    pub reached: Vec<Reached>,
    /// Read positions: (turns partition, first offset that it does not cover), where known.
    pub covers: Vec<(u32, u64)>,
    /// The model of its vectors; `None` before the first unit.
    pub model: Option<ModelRef>,
    /// Components of a vector; 0 before the first unit.
    pub dimensions: usize,
    /// Hash of the settings that the choices depend on.
    pub settings: String,
    /// Live memory records, units and choices.
    pub live: LiveCounts,
    /// The number of the last snapshot that removed rows of deleted turns; 0: none did.
    #[serde(rename = "purged")]
    pub last_deletion: u64,
    /// The time up to which history was trimmed, in milliseconds since 1970; 0: never.
    #[serde(default)]
    pub trimmed_ms: i64,
    /// Offsets at which as-of questions have no answer: no snapshots were written when they were
    /// read, so versions between may be missing.
    pub gaps: Vec<Gap>,
    /// Deleted turns that another live record still holds with their text: their rows are removed
    /// together with that record.
    #[serde(rename = "forgotten")]
    pub deleted: Vec<DeletedTurn>,
    /// Live records that could not be read: their banks stay quarantined after a restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableRecord>,
    /// The files, in the order of their rows.
    pub segments: Vec<Segment>,
}

/// A live record of the memory log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableRecord {
    /// Its key.
    pub key: MemoryKey,
    /// Its offset in its bank's partition.
    pub offset: u64,
    /// Why it could not be read.
    pub problem: String,
}

/// How far a snapshot reaches into a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The partition of the memory topic.
    pub partition: u32,
    /// The first offset that the snapshot does not include.
    pub next_offset: u64,
    /// The offset of the last included record, and when that was appended, in milliseconds since
    /// 1970.
    pub last: Option<(u64, i64)>,
    /// The same of the oldest point for as-of questions: the first snapshot's end, or the start of the
    /// kept history.
    pub oldest: Option<(u64, i64)>,
}

impl Reached {
    /// A partition of which nothing is included.
    pub(super) fn nothing(partition: u32) -> Self {
        Self { partition, next_offset: 0, last: None, oldest: None }
    }
}

/// A deleted turn, and its position in its session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeletedTurn {
    /// The bank.
    pub bank: Bank,
    /// The turn.
    pub turn: String,
    /// Its session.
    pub session: String,
    /// Its ordinal in the session.
    pub ordinal: u32,
}

/// Deleted turns, by bank and id.
pub(super) type DeletedTurns = BTreeMap<(Bank, String), DeletedTurn>;

/// Offsets of a partition at which as-of questions have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The partition of the memory topic.
    pub partition: u32,
    /// The first such offset.
    pub from: u64,
    /// The first offset after them.
    pub until: u64,
}

/// What is live in a snapshot, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LiveCounts {
    /// Memory records.
    pub records: u64,
    /// Units.
    pub units: u64,
    /// Choices.
    pub choices: u64,
}

/// Files that were written together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// One file a table; a table without rows has none.
    pub files: Vec<TableFile>,
}

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// The table.
    pub table: UpdateTable,
    /// Its path.
    pub path: String,
    /// Its number of rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 of its bytes.
    pub blake3: String,
}

/// A manifest with the hash of its JSON, which includes fields that only later builds know.
#[derive(Serialize, Deserialize)]
struct Sealed {
    blake3: String,
    manifest: serde_json::Value,
}

impl Manifest {
    /// The directory of the manifests.
    pub(super) const DIRECTORY: &str = "manifests";

    /// The manifest of an empty place.
    pub(super) fn first(log: &str, partitions: u32, settings: &str) -> Self {
        Self {
            version: VERSION,
            number: 0,
            taken_ms: 0,
            log: log.to_owned(),
            partitions,
            reached: Vec::new(),
            covers: Vec::new(),
            model: None,
            dimensions: 0,
            settings: settings.to_owned(),
            live: LiveCounts::default(),
            last_deletion: 0,
            trimmed_ms: 0,
            gaps: Vec::new(),
            deleted: Vec::new(),
            unreadable: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Its number and counts, as a line of text.
    #[must_use]
    pub fn summary(&self) -> String {
        let bytes: u64 = self.segments.iter().flat_map(|segment| &segment.files).map(|file| file.bytes).sum();
        let LiveCounts { records, units, choices } = self.live;
        let megabytes = bytes as f64 / 1e6;
        format!(
            "snapshot {}: {records} records, {units} units, {choices} choices; {megabytes:.1} MB in all",
            self.number
        )
    }

    /// Whether an as-of question can be answered for a read that ended at `offset`.
    pub(super) fn answers_for(&self, partition: u32, offset: u64) -> bool {
        let reached = self.reached.iter().find(|reached| reached.partition == partition);
        let oldest = reached.and_then(|reached| reached.oldest).unwrap_or_default();
        let hidden = |gap: &Gap| gap.partition == partition && gap.from <= offset && offset < gap.until;
        offset >= oldest.0 && !self.gaps.iter().any(hidden)
    }

    /// Every file of a table, in order.
    pub fn files(&self, table: UpdateTable) -> impl Iterator<Item = &TableFile> {
        self.segments.iter().flat_map(|segment| &segment.files).filter(move |file| file.table == table)
    }

    /// Writes it; false when a manifest with its number exists.
    pub(super) fn write(&self, store: &SnapshotStore) -> Result<bool, SnapshotError> {
        let manifest = serde_json::to_value(self).unwrap_or_default();
        let sealed = Sealed { blake3: hash(&manifest), manifest };
        let json = serde_json::to_vec_pretty(&sealed).unwrap_or_default();
        store.put_fresh(&Self::path(self.number), json.into())
    }

    /// The numbers of the manifests of a place, newest first.
    pub(super) fn numbers(store: &SnapshotStore) -> Result<Vec<u64>, SnapshotError> {
        let number =
            |path: String| path.strip_prefix(Self::DIRECTORY)?.strip_prefix('/')?.strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = store.list(Self::DIRECTORY)?.into_iter().filter_map(number).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// The manifest of a number.
    pub(super) fn read(store: &SnapshotStore, number: u64) -> Result<Self, SnapshotError> {
        let path = Self::path(number);
        let damaged = |problem: String| SnapshotError::Unfit { place: format!("{}/{path}", store.place()), problem };
        let bytes = store.get(&path)?.ok_or_else(|| damaged("it is missing".to_owned()))?;
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|e| damaged(format!("not a manifest: {e}")))?;
        if sealed.blake3 != hash(&sealed.manifest) {
            return Err(damaged("it differs from what was written".to_owned()));
        }
        let found = sealed.manifest.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
        if found != u64::from(VERSION) {
            let place = format!("{}/{path}", store.place());
            return Err(SnapshotError::Version { place, found, known: VERSION.into() });
        }
        let manifest: Self =
            serde_json::from_value(sealed.manifest).map_err(|e| damaged(format!("not a manifest: {e}")))?;
        if manifest.number != number {
            return Err(damaged(format!("it is the manifest of snapshot {}", manifest.number)));
        }
        Ok(manifest)
    }

    /// The path of the manifest with a number.
    pub(super) fn path(number: u64) -> String {
        format!("{}/{number:012}.json", Self::DIRECTORY)
    }
}

impl TableFile {
    /// Its bytes; an error if they differ from what was written.
    pub(super) fn read(&self, store: &SnapshotStore) -> Result<bytes::Bytes, SnapshotError> {
        let unfit = |problem: &str| self.unfit(store, problem.to_owned());
        let bytes = store.get(&self.path)?.ok_or_else(|| unfit("the file is missing"))?;
        if blake3::hash(&bytes).to_hex().as_str() != self.blake3 {
            return Err(unfit("the file differs from what was written"));
        }
        Ok(bytes)
    }

    /// The error of a problem with its contents.
    pub(super) fn unfit(&self, store: &SnapshotStore, problem: String) -> SnapshotError {
        SnapshotError::Unfit { place: format!("{}/{}", store.place(), self.path), problem }
    }
}

fn hash(manifest: &serde_json::Value) -> String {
    blake3::hash(&serde_json::to_vec(manifest).unwrap_or_default()).to_hex().to_string()
}

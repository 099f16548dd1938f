//! The manifest: a snapshot's files and how far it reaches, written last.
//!
//! In: the manifests of a shard. Out: their contents, newest first, or why one is unusable. A manifest of another
//! version is refused by name. A manifest is never changed. Renamed Rust fields keep their JSON names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SnapshotError, store::SnapshotStore, update_tables::UpdateTable};
use types::model::{Bank, MemoryKey, ModelRef};

/// Version of the manifests that this build writes, and the only one that it reads.
const VERSION: u32 = 2;

/// Identifies a snapshot of a shard, by the epoch of its writer's claim, then its number. The greatest id is the
/// newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ManifestId {
    /// The epoch under which it was written.
    pub epoch: u64,
    /// Its number.
    pub number: u64,
}

/// The directory of a shard's snapshots.
pub(super) fn shard_directory(partition: u32) -> String {
    format!("shard-{partition:05}")
}

/// A snapshot of a shard: how far it reaches, and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format: 2.
    pub version: u32,
    /// The epoch that its writer had claimed.
    pub epoch: u64,
    /// The snapshot's number, from 1; it grows with each snapshot of the shard.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub taken_ms: i64,
    /// The log that it was made from.
    pub log: String,
    /// Partitions of the memory topic.
    pub partitions: u32,
    /// How far it reaches: one entry, for the shard's partition of the memory topic.
    pub reached: Vec<PartitionReach>,
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
    pub trimmed_ms: i64,
    /// Offsets at which as-of questions have no answer: no snapshots were written when they were read, so versions in
    /// between may be missing.
    pub gaps: Vec<HistoryGap>,
    /// Deleted turns that another live record still holds with their text: their rows are removed
    /// together with that record.
    #[serde(rename = "forgotten")]
    pub deleted: Vec<DeletedTurn>,
    /// Live records that could not be read: their banks stay quarantined after a restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableMemoryRecord>,
    /// The files, in the order of their rows.
    pub segments: Vec<SnapshotSegment>,
}

/// A live record of the memory log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableMemoryRecord {
    /// Its key.
    pub key: MemoryKey,
    /// Its offset in its bank's partition.
    pub offset: u64,
    /// Why it could not be read.
    pub problem: String,
    /// The offset and the append time of the last record of the read that found it, which make it a point of the past;
    /// `None` outside a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<(u64, i64)>,
}

/// How far a snapshot reaches into a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionReach {
    /// The partition of the memory topic.
    pub partition: u32,
    /// The first offset that the snapshot does not include.
    pub next_offset: u64,
    /// The offset of the last included record, and when that was appended, in milliseconds since
    /// 1970.
    pub last: Option<(u64, i64)>,
    /// The offset and time of the oldest point that as-of questions can ask about: the first snapshot's end, or the
    /// start of the kept history.
    pub oldest: Option<(u64, i64)>,
}

impl PartitionReach {
    /// A partition that is not included at all.
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
pub struct HistoryGap {
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

impl std::ops::AddAssign for LiveCounts {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.units += other.units;
        self.choices += other.choices;
    }
}

/// Files that were written together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSegment {
    /// One file per table; a table without rows has none.
    pub files: Vec<TableFile>,
}

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// The table.
    pub table: UpdateTable,
    /// Its path, relative to the place.
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
struct SealedManifest {
    blake3: String,
    manifest: serde_json::Value,
}

impl Manifest {
    /// The directory of the manifests.
    const DIRECTORY: &str = "manifests";

    /// The manifest of a shard without snapshots.
    pub(super) fn first(log: &str, partitions: u32, settings: &str) -> Self {
        Self {
            version: VERSION,
            epoch: 0,
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

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ManifestId {
        ManifestId { epoch: self.epoch, number: self.number }
    }

    /// Bytes of its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().flat_map(|segment| &segment.files).map(|file| file.bytes).sum()
    }

    /// Whether an as-of question can be answered for a read that ended at `offset`.
    pub(super) fn answers_for(&self, partition: u32, offset: u64) -> bool {
        let reached = self.reached.iter().find(|reached| reached.partition == partition);
        let oldest = reached.and_then(|reached| reached.oldest).unwrap_or_default();
        let hidden = |gap: &HistoryGap| gap.partition == partition && gap.from <= offset && offset < gap.until;
        offset >= oldest.0 && !self.gaps.iter().any(hidden)
    }

    /// The oldest point that as-of questions can ask about, if history was trimmed: it may then have no row of its own.
    pub(super) fn first_kept(&self, partition: u32) -> Option<(u64, i64)> {
        let reached = self.reached.iter().find(|reached| reached.partition == partition)?;
        reached.oldest.filter(|(_, append_ms)| self.trimmed_ms > 0 && *append_ms > 0)
    }

    /// Every file of a table, in order.
    pub fn files(&self, table: UpdateTable) -> impl Iterator<Item = &TableFile> {
        self.segments.iter().flat_map(|segment| &segment.files).filter(move |file| file.table == table)
    }

    /// Writes it into a shard's directory; false when a manifest with its id exists.
    pub(super) fn write(&self, store: &SnapshotStore, partition: u32) -> Result<bool, SnapshotError> {
        let manifest = serde_json::to_value(self).unwrap_or_default();
        let sealed = SealedManifest { blake3: hash(&manifest), manifest };
        let json = serde_json::to_vec_pretty(&sealed).unwrap_or_default();
        store.put_fresh(&Self::path(partition, self.id()), json.into())
    }

    /// The directory of a shard's manifests.
    pub(super) fn directory(partition: u32) -> String {
        format!("{}/{}", shard_directory(partition), Self::DIRECTORY)
    }

    /// The manifests of a shard, newest first.
    pub(super) fn ids(store: &SnapshotStore, partition: u32) -> Result<Vec<ManifestId>, SnapshotError> {
        let directory = Self::directory(partition);
        let id = |path: String| {
            let name = path.strip_prefix(&directory)?.strip_prefix('/')?.strip_suffix(".json")?;
            let (epoch, number) = name.split_once('-')?;
            Some(ManifestId { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
        };
        let mut ids: Vec<ManifestId> = store.list(&directory)?.into_iter().filter_map(id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// A manifest of a shard.
    pub(super) fn read(store: &SnapshotStore, partition: u32, id: ManifestId) -> Result<Self, SnapshotError> {
        let path = Self::path(partition, id);
        let place = format!("{}/{path}", store.place());
        let damaged = |problem: String| SnapshotError::Unfit { place: place.clone(), problem };
        let bytes = store.get(&path)?.ok_or_else(|| damaged("it is missing".to_owned()))?;
        let sealed: SealedManifest =
            serde_json::from_slice(&bytes).map_err(|e| damaged(format!("not a manifest: {e}")))?;
        if sealed.blake3 != hash(&sealed.manifest) {
            return Err(damaged("it differs from what was written".to_owned()));
        }
        let found = sealed.manifest.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
        if found != u64::from(VERSION) {
            return Err(SnapshotError::Version { place, found, known: VERSION.into() });
        }
        let manifest: Self =
            serde_json::from_value(sealed.manifest).map_err(|e| damaged(format!("not a manifest: {e}")))?;
        if manifest.id() != id {
            let ManifestId { epoch, number } = manifest.id();
            return Err(damaged(format!("it is the manifest of snapshot {number} of epoch {epoch}")));
        }
        Ok(manifest)
    }

    /// The path of a shard's manifest.
    pub(super) fn path(partition: u32, id: ManifestId) -> String {
        format!("{}/{:08}-{:012}.json", Self::directory(partition), id.epoch, id.number)
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

//! The manifest: what a snapshot consists of, written last.
//!
//! In: the manifests of a place. Out: those that are whole, newest first, and why others are not.

use serde::{Deserialize, Serialize};

use super::{SnapshotError, store::Store, update::UpdateTable};
use crate::model::{Bank, ModelRef};

/// Version of the manifest and of the update tables.
const VERSION: u32 = 1;

/// A snapshot: how far it reaches, and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form and of the tables: 1.
    pub version: u32,
    /// Counts up from 1 in its place.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub taken_ms: i64,
    /// The log that it was made from.
    pub log: String,
    /// Partitions of the memory topic.
    pub partitions: u32,
    /// How far it reaches, by partition of the memory topic.
    pub reached: Vec<Reached>,
    /// The first offsets of turns partitions that it does not cover, where known.
    pub covers: Vec<(u32, u64)>,
    /// Whose vectors it holds; none before the first unit.
    pub model: Option<ModelRef>,
    /// Components of a vector; 0 before the first unit.
    pub dimensions: usize,
    /// Hash of the settings that the choices depend on.
    pub settings: String,
    /// Live memory records, units and choices.
    pub live: Live,
    /// The last snapshot with which rows of what was taken back were removed; 0: none were.
    pub purged: u64,
    /// The time up to which history was removed last, in milliseconds since 1970; 0: none was.
    #[serde(default)]
    pub trimmed_ms: i64,
    /// Reads that are one where they lie in here: versions between may be unknown, because
    /// nobody wrote snapshots when they came.
    pub gaps: Vec<Gap>,
    /// Turns that were taken back while another record still held them as they were: what is
    /// stored of those goes when that record does.
    pub forgotten: Vec<Forgotten>,
    /// The files, in the order of what they hold.
    pub segments: Vec<Segment>,
}

/// How far a snapshot reaches into a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The partition of the memory topic.
    pub partition: u32,
    /// The first offset that is not in it.
    pub next_offset: u64,
    /// The offset of the last record that it holds, and when that was appended, in milliseconds
    /// since 1970.
    pub last: Option<(u64, i64)>,
    /// The same of the first snapshot, or where the history that is kept begins: questions about
    /// what was before have no answer.
    pub oldest: Option<(u64, i64)>,
}

impl Reached {
    /// Nothing of a partition.
    pub(super) fn nothing(partition: u32) -> Self {
        Self { partition, next_offset: 0, last: None, oldest: None }
    }
}

/// A turn that was taken back, and where it stood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Forgotten {
    /// The bank.
    pub bank: Bank,
    /// The turn.
    pub turn: String,
    /// The session that it stood in.
    pub session: String,
    /// Its place there.
    pub ordinal: u32,
}

/// Offsets of a partition that are not answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The partition of the memory topic.
    pub partition: u32,
    /// The first that is not.
    pub from: u64,
    /// The first behind them that is.
    pub until: u64,
}

/// What is live in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Live {
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
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes.
    pub bytes: u64,
    /// BLAKE3 of them.
    pub blake3: String,
}

/// A manifest with the hash of its JSON, which fields that a later build adds are part of.
#[derive(Serialize, Deserialize)]
struct Sealed {
    blake3: String,
    manifest: serde_json::Value,
}

impl Manifest {
    /// The directory of the manifests.
    pub(super) const DIRECTORY: &str = "manifests";

    /// The first of a place.
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
            live: Live::default(),
            purged: 0,
            trimmed_ms: 0,
            gaps: Vec::new(),
            forgotten: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Which it is, and how much it holds, for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let bytes: u64 = self.segments.iter().flat_map(|segment| &segment.files).map(|file| file.bytes).sum();
        let Live { records, units, choices } = self.live;
        let megabytes = bytes as f64 / 1e6;
        format!(
            "snapshot {}: {records} records, {units} units, {choices} choices; {megabytes:.1} MB in all",
            self.number
        )
    }

    /// Whether a read that ended at an offset is a point that can be asked for.
    pub(super) fn knows(&self, partition: u32, offset: u64) -> bool {
        let reached = self.reached.iter().find(|reached| reached.partition == partition);
        let oldest = reached.and_then(|reached| reached.oldest).unwrap_or_default();
        let hidden = |gap: &Gap| gap.partition == partition && gap.from <= offset && offset < gap.until;
        offset >= oldest.0 && !self.gaps.iter().any(hidden)
    }

    /// Every file of a table, in order.
    pub fn files(&self, table: UpdateTable) -> impl Iterator<Item = &TableFile> {
        self.segments.iter().flat_map(|segment| &segment.files).filter(move |file| file.table == table)
    }

    /// Writes it; false when another has its number already.
    pub(super) fn write(&self, store: &Store) -> Result<bool, SnapshotError> {
        let manifest = serde_json::to_value(self).unwrap_or_default();
        let sealed = Sealed { blake3: hash(&manifest), manifest };
        let json = serde_json::to_vec_pretty(&sealed).unwrap_or_default();
        store.put_fresh(&Self::path(self.number), json.into())
    }

    /// The numbers of all manifests of a place, newest first.
    pub(super) fn numbers(store: &Store) -> Result<Vec<u64>, SnapshotError> {
        let number =
            |path: String| path.strip_prefix(Self::DIRECTORY)?.strip_prefix('/')?.strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = store.list(Self::DIRECTORY)?.into_iter().filter_map(number).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// The manifest of a number.
    pub(super) fn read(store: &Store, number: u64) -> Result<Self, SnapshotError> {
        let path = Self::path(number);
        let damaged = |problem: String| SnapshotError::Unfit { place: format!("{}/{path}", store.place()), problem };
        let bytes = store.get(&path)?.ok_or_else(|| damaged("it is gone".to_owned()))?;
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|e| damaged(format!("not a manifest: {e}")))?;
        if sealed.blake3 != hash(&sealed.manifest) {
            return Err(damaged("it does not hold what was written".to_owned()));
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

    /// Where the manifest of a number lies.
    pub(super) fn path(number: u64) -> String {
        format!("{}/{number:012}.json", Self::DIRECTORY)
    }
}

impl TableFile {
    /// Its bytes, when they are what was written.
    pub(super) fn read(&self, store: &Store) -> Result<bytes::Bytes, SnapshotError> {
        let unfit = |problem: &str| self.unfit(store, problem.to_owned());
        let bytes = store.get(&self.path)?.ok_or_else(|| unfit("the file is gone"))?;
        if blake3::hash(&bytes).to_hex().as_str() != self.blake3 {
            return Err(unfit("the file does not hold what was written"));
        }
        Ok(bytes)
    }

    /// An error about what it holds.
    pub(super) fn unfit(&self, store: &Store, problem: String) -> SnapshotError {
        SnapshotError::Unfit { place: format!("{}/{}", store.place(), self.path), problem }
    }
}

fn hash(manifest: &serde_json::Value) -> String {
    blake3::hash(&serde_json::to_vec(manifest).unwrap_or_default()).to_hex().to_string()
}

//! Writes the files of a table.
//!
//! In: rows of each partition in offset order. Out: complete files, each of which is written in another place, renamed
//! and then listed in the index. Rows of many groups are buffered, within the limits; a group is the rows of one
//! partition, day and, on request, bank.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{
    hashed_file::HashedFile,
    index::{ArchiveIndex, ArchivedFile, lock, unfinished_of},
};
use crate::{ArchiveTable, SnapshotError, TopicRow};
use storage::{file_lock::FileLock, private_directory::create_private};

/// The limits of an archive's memory and files.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArchiveLimits {
    /// How many bytes of rows are buffered; beyond that, the largest group is written as a row group.
    pub buffered_bytes: usize,
    /// The size in bytes at which a file is closed.
    pub file_bytes: usize,
    /// How many files are open at once; beyond that, the least recently written one is closed.
    pub open_files: usize,
}

pub(super) const LIMITS: ArchiveLimits =
    ArchiveLimits { buffered_bytes: 64 << 20, file_bytes: 120 << 20, open_files: 256 };
/// Rows in an Arrow batch.
const BATCH_ROWS: usize = 4_096;
/// The name of a missing value in Hive's directory layout.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The longest encoded bank name that is used unchanged as a directory name; every name of 128 characters without a
/// slash fits. File systems take 255 bytes, encrypted ones as few as 143.
const MAX_BANK_BYTES: usize = 128;
/// How many bytes of a longer name are kept before its hash.
const KEPT_BANK_BYTES: usize = 80;

/// Rows that share a file: of one partition, day and, on request, bank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileGroup {
    partition: u32,
    directory: String,
}

/// The rows of a group that are not in complete files.
#[derive(Default)]
pub(super) struct OpenFileGroup {
    /// Offset of the first of them.
    first: u64,
    rows: Vec<TopicRow>,
    bytes: usize,
    file: Option<OpenArchiveFile>,
}

struct OpenArchiveFile {
    writer: ArrowWriter<HashedFile>,
    path: String,
    last: u64,
    rows: u64,
    /// The number of the last write to it, counted over all files.
    last_write: u64,
}

/// The archive of a table in a directory, for one writer at a time.
pub struct Archive {
    table: ArchiveTable,
    directory: PathBuf,
    pub(super) limits: ArchiveLimits,
    index: ArchiveIndex,
    /// The last offset of each group in complete files.
    covered: BTreeMap<FileGroup, u64>,
    pub(super) groups: BTreeMap<FileGroup, OpenFileGroup>,
    /// The offset after the last row, by partition.
    next: BTreeMap<u32, u64>,
    buffered: usize,
    writes: u64,
    /// Directories with new names that are not synced.
    unsynced: BTreeSet<PathBuf>,
    _lock: FileLock,
}

impl Archive {
    /// Opens or creates `directory`, and removes the unfinished files of an earlier run. `from` is the
    /// start of a new archive, as the user wrote it; an existing archive continues where it ended.
    ///
    /// # Errors
    /// [`SnapshotError`]: used by another process, of another topic or layout, damaged, or a failed
    /// file operation.
    pub fn open(
        directory: &Path,
        table: ArchiveTable,
        topic: &str,
        by_bank: bool,
        from: Option<&str>,
    ) -> Result<Self, SnapshotError> {
        create_private(directory).map_err(|e| SnapshotError::disk(directory, "creating the directory", e))?;
        let lock = lock(directory)?;
        let new = ArchiveIndex::new(table, topic, by_bank, from);
        let index = match ArchiveIndex::read(directory)? {
            None => new,
            Some(index) => {
                let layout = |by_bank| if by_bank { "a directory for each bank" } else { "no directories for banks" };
                let differs = |problem| SnapshotError::Differs { directory: directory.to_owned(), problem };
                if (&index.table, &index.topic) != (&new.table, &new.topic) {
                    return Err(differs(format!("it holds {}, not {}", index.topic, new.topic)));
                }
                if index.by_bank != by_bank {
                    return Err(differs(format!("it has {}, not {}", layout(index.by_bank), layout(by_bank))));
                }
                if from.is_some_and(|from| from != index.from) {
                    let problem = format!("it holds a replay from {} and continues where that ended", index.from);
                    return Err(differs(format!("{problem}; leave --from out")));
                }
                index
            }
        };
        let mut covered = BTreeMap::new();
        for file in &index.files {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let last =
                covered.entry(FileGroup { partition: file.partition, directory: folder.to_owned() }).or_insert(0);
            *last = file.last.max(*last);
        }
        remove_unfinished(directory, &index)?;
        Ok(Self {
            table,
            directory: directory.to_owned(),
            limits: LIMITS,
            next: index.next.clone(),
            index,
            covered,
            groups: BTreeMap::new(),
            buffered: 0,
            writes: 0,
            unsynced: BTreeSet::new(),
            _lock: lock,
        })
    }

    /// The next offset of a partition; `None` before its first row or [`Self::begin`].
    #[must_use]
    pub fn next(&self, partition: u32) -> Option<u64> {
        self.next.get(&partition).copied()
    }

    /// Sets the next offset of a partition that has no rows before it.
    pub fn begin(&mut self, partition: u32, offset: u64) {
        self.next.insert(partition, offset);
    }

    /// Adds the next row of its partition.
    ///
    /// # Errors
    /// [`SnapshotError`]; complete files stay, and the next run writes the other rows again.
    pub fn push(&mut self, row: TopicRow) -> Result<(), SnapshotError> {
        let group = self.group(&row);
        self.next.insert(row.partition, row.offset + 1);
        if self.covered.get(&group).is_some_and(|last| row.offset <= *last) {
            return Ok(());
        }
        let bytes = row.bytes();
        let open =
            self.groups.entry(group).or_insert_with(|| OpenFileGroup { first: row.offset, ..OpenFileGroup::default() });
        open.bytes += bytes;
        open.rows.push(row);
        self.buffered += bytes;
        while self.buffered > self.limits.buffered_bytes {
            let largest = self.groups.iter().max_by_key(|(_, open)| open.bytes).map(|(group, _)| group.clone());
            let Some(largest) = largest else { break };
            self.write(&largest)?;
            let file = self.groups.get(&largest).and_then(|open| open.file.as_ref());
            if file.is_some_and(|file| file.writer.bytes_written() >= self.limits.file_bytes) {
                self.close(&largest)?;
                self.save()?;
            }
        }
        Ok(())
    }

    /// Completes every file and writes the index: then all added rows are in complete files.
    ///
    /// # Errors
    /// [`SnapshotError`], as [`Self::push`].
    pub fn finish(&mut self) -> Result<(), SnapshotError> {
        for group in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.close(&group)?;
        }
        if self.index.next != self.next || !self.unsynced.is_empty() {
            self.save()?;
        }
        Ok(())
    }

    /// The index of the complete files.
    #[must_use]
    pub fn index(&self) -> &ArchiveIndex {
        &self.index
    }

    fn group(&self, row: &TopicRow) -> FileGroup {
        let mut directory = format!("date={}", row.date().as_deref().unwrap_or(HIVE_NULL));
        if self.index.by_bank {
            directory.push_str(&bank_directory(row.bank()));
        }
        FileGroup { partition: row.partition, directory }
    }

    /// Writes a group's buffered rows to its file, as a row group.
    fn write(&mut self, group: &FileGroup) -> Result<(), SnapshotError> {
        let Some(open) = self.groups.get_mut(group) else { return Ok(()) };
        let Some(last) = open.rows.last().map(|row| row.offset) else { return Ok(()) };
        if open.file.is_none() {
            let folder = self.directory.join(&group.directory);
            create_private(&folder).map_err(|e| SnapshotError::disk(&folder, "creating the directory", e))?;
            self.unsynced.extend(folder.ancestors().take_while(|a| a.starts_with(&self.directory)).map(Path::to_owned));
            let path = format!("{}/{}-{:020}.parquet", group.directory, group.partition, open.first);
            let place = partial(&self.directory, &path);
            let file = File::create(&place).map_err(|e| SnapshotError::disk(&place, "creating the file", e))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(None)
                .build();
            let writer = ArrowWriter::try_new(HashedFile::new(file), self.table.schema(), Some(properties))
                .map_err(|e| parquet_failed(&place, &e))?;
            open.file = Some(OpenArchiveFile { writer, path, last, rows: 0, last_write: 0 });
        }
        if let Some(file) = &mut open.file {
            let place = partial(&self.directory, &file.path);
            for rows in open.rows.chunks(BATCH_ROWS) {
                let batch = self
                    .table
                    .batch(&self.index.topic, rows)
                    .map_err(|e| SnapshotError::Parquet { path: place.clone(), problem: e.to_string() })?;
                file.writer.write(&batch).map_err(|e| parquet_failed(&place, &e))?;
            }
            file.writer.flush().map_err(|e| parquet_failed(&place, &e))?;
            self.writes += 1;
            (file.last, file.last_write) = (last, self.writes);
            file.rows += open.rows.len() as u64;
        }
        self.buffered -= open.bytes;
        open.bytes = 0;
        open.rows = Vec::new();
        let written = self.groups.iter().filter_map(|(group, open)| Some((open.file.as_ref()?.last_write, group)));
        if written.clone().count() > self.limits.open_files
            && let Some((_, oldest)) = written.min().map(|(last_write, group)| (last_write, group.clone()))
        {
            // The index is not written yet: with many small files, writing it for each would cost more than the files.
            self.close(&oldest)?;
        }
        Ok(())
    }

    /// Completes a group's file: syncs and renames it.
    pub(super) fn close(&mut self, group: &FileGroup) -> Result<(), SnapshotError> {
        self.write(group)?;
        let Some(OpenFileGroup { first, file: Some(file), .. }) = self.groups.remove(group) else { return Ok(()) };
        let OpenArchiveFile { writer, path, last, rows, .. } = file;
        let place = partial(&self.directory, &path);
        let HashedFile { file, hash, bytes } = writer.into_inner().map_err(|e| parquet_failed(&place, &e))?;
        file.sync_all().map_err(|e| SnapshotError::disk(&place, "syncing the file", e))?;
        fs::rename(&place, self.directory.join(&path))
            .map_err(|e| SnapshotError::disk(&place, "renaming the file", e))?;
        let partition = group.partition;
        self.covered.insert(group.clone(), last);
        let blake3 = hash.finalize().to_hex().to_string();
        self.index.files.push(ArchivedFile { path, partition, first, last, rows, bytes, blake3 });
        Ok(())
    }

    /// Syncs the new names, and then writes the index.
    fn save(&mut self) -> Result<(), SnapshotError> {
        self.index.next = self.next.clone();
        for (group, open) in &self.groups {
            let next = self.index.next.entry(group.partition).or_insert(open.first);
            *next = open.first.min(*next);
        }
        for directory in &self.unsynced {
            sync(directory)?;
        }
        // A directory with an open file will get that file's final name.
        let open = self.groups.iter().filter(|(_, open)| open.file.is_some());
        let open: BTreeSet<PathBuf> = open.map(|(group, _)| self.directory.join(&group.directory)).collect();
        self.unsynced.retain(|directory| open.contains(directory));
        self.index.write(&self.directory)?;
        // The names of the index and of the directory are entries of the parent folder.
        sync(self.directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }
}

/// The directory of a bank. A name that would not fit into a path, once its slashes are encoded, ends in a `~`, which
/// no bank name contains, and its hash; the rows have the whole name in `key`.
fn bank_directory(bank: Option<&str>) -> String {
    let Some(bank) = bank else { return format!("/{HIVE_NULL}") };
    let encoded = bank.replace('/', "%2F");
    if encoded.len() <= MAX_BANK_BYTES {
        return format!("/{encoded}");
    }
    let hash = blake3::hash(bank.as_bytes()).to_hex();
    // All of it is ASCII, and an encoded slash is not cut in two.
    let mut begin = encoded.get(..KEPT_BANK_BYTES).unwrap_or(&encoded);
    if let Some(cut) = begin.rfind('%').filter(|cut| begin.len() - cut < 3) {
        begin = begin.get(..cut).unwrap_or(begin);
    }
    format!("/{begin}~{}", hash.get(..32).unwrap_or(&hash))
}

/// Removes files that are named like an archive's but are not in the index, and the unfinished ones.
fn remove_unfinished(directory: &Path, index: &ArchiveIndex) -> Result<(), SnapshotError> {
    let unfinished = unfinished_of(directory);
    match fs::remove_dir_all(&unfinished) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(SnapshotError::disk(&unfinished, "removing unfinished files", e));
        }
        _ => {}
    }
    fs::create_dir(&unfinished).map_err(|e| SnapshotError::disk(&unfinished, "creating the directory", e))?;
    let listed: BTreeSet<PathBuf> = index.files.iter().map(|file| directory.join(&file.path)).collect();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |e| SnapshotError::disk(&folder, "listing the directory", e);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if is_archive_file(name) && !listed.contains(&path) {
                fs::remove_file(&path).map_err(|e| SnapshotError::disk(&path, "removing an unfinished file", e))?;
            }
        }
    }
    Ok(())
}

/// Whether a name is `PARTITION-OFFSET.parquet`.
fn is_archive_file(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let stem = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-'));
    stem.is_some_and(|(partition, offset)| digits(partition) && digits(offset) && offset.len() == 20)
}

fn partial(directory: &Path, path: &str) -> PathBuf {
    unfinished_of(directory).join(path.replace('/', "~"))
}

fn sync(directory: &Path) -> Result<(), SnapshotError> {
    File::open(directory)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| SnapshotError::disk(directory, "syncing the directory", e))
}

fn parquet_failed(path: &Path, error: &parquet::errors::ParquetError) -> SnapshotError {
    SnapshotError::Parquet { path: path.to_owned(), problem: error.to_string() }
}

#[cfg(test)]
mod names {
    use std::collections::BTreeSet;

    use super::*;
    use types::model::Bank;

    #[test]
    fn every_bank_has_a_directory_of_its_own_that_fits_into_a_path() {
        assert_eq!(bank_directory(Some("acme/support")), "/acme%2Fsupport");
        assert_eq!(bank_directory(Some(&"x".repeat(128))), format!("/{}", "x".repeat(128)));
        assert_eq!(bank_directory(None), format!("/{HIVE_NULL}"));
        // Names of 128 characters, with slashes at every second position and at every third.
        let deep = |segment: &str, last: &str| format!("{}{last}", segment.repeat(127 / segment.len()));
        let long = [deep("a/", "b"), deep("a/", "c"), deep("bc/", "d"), deep("bcd/", "e"), deep("bcd/", "ef")];
        let mut found = BTreeSet::new();
        for bank in &long {
            assert!(Bank::parse(bank).is_ok(), "{bank}");
            let directory = bank_directory(Some(bank));
            let name = directory.strip_prefix('/').unwrap();
            assert!(name.len() <= 128 && !name.contains('/'), "{name}");
            assert!(name.split('%').skip(1).all(|rest| rest.starts_with("2F")), "{name}");
            found.insert(directory.clone());
        }
        assert_eq!(found.len(), long.len());
    }
}

//! The files of a table: written aside, renamed when whole, and listed.
//!
//! In: rows of each partition in offset order. Out: `date=YYYY-MM-DD[/bank=NAME]/PARTITION-OFFSET.parquet`
//! and `_held.json`, which lists the files and where each partition goes on. A file that is
//! not listed was never finished: the next run removes it and writes its rows again, so that
//! no row is there twice or missing, wherever a run was killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use serde::{Deserialize, Serialize};

use super::{Row, SnapshotError, Table};

#[cfg(test)]
mod tests;

/// What an archive holds back, and when it closes a file.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Rows held back take at most so many bytes; the largest group of them becomes a row group.
    buffered_bytes: usize,
    /// A file is closed past so many bytes.
    file_bytes: usize,
    /// Files open at once; the one that was not written to for the longest is closed.
    open_files: usize,
}

const LIMITS: Limits = Limits { buffered_bytes: 64 << 20, file_bytes: 120 << 20, open_files: 256 };
/// Rows turned into columns at once.
const BATCH_ROWS: usize = 4_096;
/// What Hive's readers call a value that is not there.
const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";
const LIST: &str = "_held.json";
const LOCK: &str = "_lock";
const PARTIAL: &str = ".partial";
/// Version of the list.
const VERSION: u32 = 1;

/// What a directory holds: the list beside its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Version of this list: 1.
    pub version: u32,
    /// The table.
    pub table: String,
    /// The topic's name where it was read.
    pub topic: String,
    /// Whether there is a directory for each bank.
    pub by_bank: bool,
    /// Where the first run began, as it was asked for.
    pub from: String,
    /// Where each partition goes on. Rows of files that reach further are not written again.
    pub next: BTreeMap<u32, u64>,
    /// The files, in the order in which they were finished.
    pub files: Vec<HeldFile>,
}

/// A file that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFile {
    /// Its path in the directory.
    pub path: String,
    /// Its rows' partition.
    pub partition: u32,
    /// The offset of its first row.
    pub first: u64,
    /// The offset of its last row.
    pub last: u64,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes.
    pub bytes: u64,
    /// BLAKE3 of them.
    pub blake3: String,
}

/// Rows that share a file: of one partition, day and, on request, bank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    partition: u32,
    directory: String,
}

/// A group that is not in whole files yet.
#[derive(Default)]
struct Open {
    /// Offset of its first row that is in no whole file.
    first: u64,
    rows: Vec<Row>,
    bytes: usize,
    file: Option<Writing>,
}

struct Writing {
    writer: ArrowWriter<Hashed>,
    path: String,
    last: u64,
    rows: u64,
    /// Counts up with every write to any file.
    touched: u64,
}

/// A table's files in a directory, for one writer at a time.
pub struct Archive {
    table: Table,
    directory: PathBuf,
    limits: Limits,
    held: Held,
    /// The last offset of each group that is in a whole file.
    covered: BTreeMap<Group, u64>,
    groups: BTreeMap<Group, Open>,
    /// The offset after the last row that was taken.
    next: BTreeMap<u32, u64>,
    buffered: usize,
    writes: u64,
    /// Directories with names that are not on the disk yet.
    unsynced: BTreeSet<PathBuf>,
    lock: File,
}

impl Archive {
    /// Opens `directory`, or makes it; removes what an earlier run did not finish. `from` says
    /// where a new one begins; one that goes on keeps its own.
    ///
    /// # Errors
    /// [`SnapshotError`]: written by another process, of another topic or layout, damaged, or
    /// refused by the file system.
    pub fn open(
        directory: &Path,
        table: Table,
        topic: &str,
        by_bank: bool,
        from: Option<&str>,
    ) -> Result<Self, SnapshotError> {
        fs::create_dir_all(directory).map_err(|e| SnapshotError::disk(directory, "making the directory", e))?;
        let lock = lock(directory)?;
        let fresh = Held {
            version: VERSION,
            table: table.name().to_owned(),
            topic: topic.to_owned(),
            by_bank,
            from: from.unwrap_or("earliest").to_owned(),
            next: BTreeMap::new(),
            files: Vec::new(),
        };
        let held = match read(directory)? {
            None => fresh,
            Some(held) => {
                let layout = |by_bank| if by_bank { "a directory for each bank" } else { "no directories for banks" };
                let differs = |problem| SnapshotError::Differs { directory: directory.to_owned(), problem };
                if (&held.table, &held.topic) != (&fresh.table, &fresh.topic) {
                    return Err(differs(format!("it holds {}, not {}", held.topic, fresh.topic)));
                }
                if held.by_bank != by_bank {
                    return Err(differs(format!("it has {}, asked for {}", layout(held.by_bank), layout(by_bank))));
                }
                if from.is_some_and(|from| from != held.from) {
                    let problem = format!("it holds a replay from {} and goes on where that ended", held.from);
                    return Err(differs(format!("{problem}; leave --from out")));
                }
                held
            }
        };
        let mut covered = BTreeMap::new();
        for file in &held.files {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let last = covered.entry(Group { partition: file.partition, directory: folder.to_owned() }).or_insert(0);
            *last = file.last.max(*last);
        }
        remove_unfinished(directory, &held)?;
        Ok(Self {
            table,
            directory: directory.to_owned(),
            limits: LIMITS,
            next: held.next.clone(),
            held,
            covered,
            groups: BTreeMap::new(),
            buffered: 0,
            writes: 0,
            unsynced: BTreeSet::new(),
            lock,
        })
    }

    /// Where a partition goes on; none before its first row or [`Self::begin`].
    #[must_use]
    pub fn next(&self, partition: u32) -> Option<u64> {
        self.next.get(&partition).copied()
    }

    /// Says where a partition begins, or that there was nothing up to here.
    pub fn begin(&mut self, partition: u32, offset: u64) {
        self.next.insert(partition, offset);
    }

    /// Takes the next row of its partition.
    ///
    /// # Errors
    /// [`SnapshotError`]; what whole files hold stays, the next run writes the others again.
    pub fn take(&mut self, row: Row) -> Result<(), SnapshotError> {
        let group = self.group(&row);
        self.next.insert(row.partition, row.offset + 1);
        if self.covered.get(&group).is_some_and(|last| row.offset <= *last) {
            return Ok(());
        }
        let bytes = row.bytes();
        let open = self.groups.entry(group).or_insert_with(|| Open { first: row.offset, ..Open::default() });
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

    /// Finishes every file, and lists them: all rows that were taken are in whole files then.
    ///
    /// # Errors
    /// [`SnapshotError`], as [`Self::take`].
    pub fn finish(&mut self) -> Result<(), SnapshotError> {
        for group in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.close(&group)?;
        }
        if self.held.next != self.next || !self.unsynced.is_empty() {
            self.save()?;
        }
        Ok(())
    }

    /// What whole files hold.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    fn group(&self, row: &Row) -> Group {
        let mut directory = format!("date={}", row.date().as_deref().unwrap_or(NOTHING));
        if self.held.by_bank {
            let bank = row.bank().map_or_else(|| NOTHING.to_owned(), |bank| bank.replace('/', "%2F"));
            directory.push_str(&format!("/bank={bank}"));
        }
        Group { partition: row.partition, directory }
    }

    /// Puts a group's rows into its file, as a row group.
    fn write(&mut self, group: &Group) -> Result<(), SnapshotError> {
        let Some(open) = self.groups.get_mut(group) else { return Ok(()) };
        let Some(last) = open.rows.last().map(|row| row.offset) else { return Ok(()) };
        let with_bank = !self.held.by_bank;
        if open.file.is_none() {
            let folder = self.directory.join(&group.directory);
            fs::create_dir_all(&folder).map_err(|e| SnapshotError::disk(&folder, "making the directory", e))?;
            self.unsynced.extend(folder.ancestors().take_while(|a| a.starts_with(&self.directory)).map(Path::to_owned));
            let path = format!("{}/{}-{:020}.parquet", group.directory, group.partition, open.first);
            let place = partial(&self.directory, &path);
            let file = File::create(&place).map_err(|e| SnapshotError::disk(&place, "making the file", e))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(None)
                .build();
            let writer = ArrowWriter::try_new(Hashed::new(file), self.table.schema(with_bank), Some(properties))
                .map_err(|e| parquet_failed(&place, &e))?;
            open.file = Some(Writing { writer, path, last, rows: 0, touched: 0 });
        }
        if let Some(file) = &mut open.file {
            let place = partial(&self.directory, &file.path);
            for rows in open.rows.chunks(BATCH_ROWS) {
                let batch = self
                    .table
                    .batch(&self.held.topic, rows, with_bank)
                    .map_err(|e| SnapshotError::Parquet { path: place.clone(), problem: e.to_string() })?;
                file.writer.write(&batch).map_err(|e| parquet_failed(&place, &e))?;
            }
            file.writer.flush().map_err(|e| parquet_failed(&place, &e))?;
            self.writes += 1;
            (file.last, file.touched) = (last, self.writes);
            file.rows += open.rows.len() as u64;
        }
        self.buffered -= open.bytes;
        open.bytes = 0;
        open.rows = Vec::new();
        let written = self.groups.iter().filter_map(|(group, open)| Some((open.file.as_ref()?.touched, group)));
        if written.clone().count() > self.limits.open_files
            && let Some((_, longest)) = written.min().map(|(touched, group)| (touched, group.clone()))
        {
            // Listed with the next that is full: a list for each of many small files would cost more than they.
            self.close(&longest)?;
        }
        Ok(())
    }

    /// Makes a group's file whole.
    fn close(&mut self, group: &Group) -> Result<(), SnapshotError> {
        self.write(group)?;
        let Some(Open { first, file: Some(file), .. }) = self.groups.remove(group) else { return Ok(()) };
        let Writing { writer, path, last, rows, .. } = file;
        let place = partial(&self.directory, &path);
        let Hashed { file, hash, bytes } = writer.into_inner().map_err(|e| parquet_failed(&place, &e))?;
        file.sync_all().map_err(|e| SnapshotError::disk(&place, "bringing the file to the disk", e))?;
        fs::rename(&place, self.directory.join(&path))
            .map_err(|e| SnapshotError::disk(&place, "renaming the file", e))?;
        let partition = group.partition;
        self.covered.insert(group.clone(), last);
        let blake3 = hash.finalize().to_hex().to_string();
        self.held.files.push(HeldFile { path, partition, first, last, rows, bytes, blake3 });
        Ok(())
    }

    /// Brings the names and then the list to the disk.
    fn save(&mut self) -> Result<(), SnapshotError> {
        self.held.next = self.next.clone();
        for (group, open) in &self.groups {
            let next = self.held.next.entry(group.partition).or_insert(open.first);
            *next = open.first.min(*next);
        }
        for directory in &self.unsynced {
            sync(directory)?;
        }
        // Files that are still open will be renamed in theirs.
        let open = self.groups.iter().filter(|(_, open)| open.file.is_some());
        let open: BTreeSet<PathBuf> = open.map(|(group, _)| self.directory.join(&group.directory)).collect();
        self.unsynced.retain(|directory| open.contains(directory));
        let list = self.directory.join(LIST);
        let fresh = self.directory.join(format!("{LIST}{PARTIAL}"));
        let json = serde_json::to_vec_pretty(&self.held).unwrap_or_default();
        File::create(&fresh)
            .and_then(|mut file| file.write_all(&json).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&fresh, &list))
            .map_err(|e| SnapshotError::disk(&list, "writing the list", e))?;
        sync(&self.directory)
    }
}

impl Drop for Archive {
    /// A child process that another thread is starting has a copy of the descriptor, with
    /// which the lock would last.
    fn drop(&mut self) {
        // What cannot be unlocked goes with the descriptor.
        let _ = self.lock.unlock();
    }
}

fn lock(directory: &Path) -> Result<File, SnapshotError> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|e| SnapshotError::disk(&path, "making the file", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SnapshotError::InUse { directory: directory.to_owned() }),
        Err(TryLockError::Error(e)) => Err(SnapshotError::disk(&path, "locking the directory", e)),
    }
}

fn read(directory: &Path) -> Result<Option<Held>, SnapshotError> {
    let path = directory.join(LIST);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(SnapshotError::disk(&path, "reading the list", e)),
    };
    let damaged = |problem| SnapshotError::Damaged { path: path.clone(), problem };
    let held: Held = serde_json::from_slice(&text).map_err(|e| damaged(format!("not a list of files: {e}")))?;
    if held.version != VERSION {
        return Err(damaged(format!("version {} is not {VERSION}, which this build reads", held.version)));
    }
    Ok(Some(held))
}

/// Removes files that look like ours and are not listed.
fn remove_unfinished(directory: &Path, held: &Held) -> Result<(), SnapshotError> {
    let listed: BTreeSet<PathBuf> = held.files.iter().map(|file| directory.join(&file.path)).collect();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |e| SnapshotError::disk(&folder, "listing the directory", e);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && (name.starts_with("date=") || name.starts_with("bank=")) {
                folders.push(path);
            } else if is_ours(name) && !listed.contains(&path) {
                fs::remove_file(&path).map_err(|e| SnapshotError::disk(&path, "removing an unfinished file", e))?;
            }
        }
    }
    Ok(())
}

/// Whether a name is `PARTITION-OFFSET.parquet`, or that while it is written.
fn is_ours(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let name = name.strip_suffix(PARTIAL).unwrap_or(name);
    let stem = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-'));
    stem.is_some_and(|(partition, offset)| digits(partition) && digits(offset) && offset.len() == 20)
}

fn partial(directory: &Path, path: &str) -> PathBuf {
    directory.join(format!("{path}{PARTIAL}"))
}

fn sync(directory: &Path) -> Result<(), SnapshotError> {
    File::open(directory)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| SnapshotError::disk(directory, "bringing the directory to the disk", e))
}

fn parquet_failed(path: &Path, error: &parquet::errors::ParquetError) -> SnapshotError {
    SnapshotError::Parquet { path: path.to_owned(), problem: error.to_string() }
}

/// A file that knows the hash of what was written to it.
struct Hashed {
    file: File,
    hash: blake3::Hasher,
    bytes: u64,
}

impl Hashed {
    fn new(file: File) -> Self {
        Self { file, hash: blake3::Hasher::new(), bytes: 0 }
    }
}

impl Write for Hashed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

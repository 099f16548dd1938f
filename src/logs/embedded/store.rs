//! The store under the embedded log: it is created or opened, and checked before anything is read.
//!
//! In: settings, and the count of acknowledged writes. Out: open keyspaces and the ends of all
//! partitions, or an error that names the damage. A store with fewer writes than that count never
//! opens. If the store's code panics, [`open`] returns an error.

use std::{
    error::Error,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Mutex,
};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::{
    marker_cleaner::DeletionMarker,
    record_encoding::{decode, decode_index, index_key, offset_of, record_key},
    store_manifest::{self, StoreFault},
};
use crate::{LogError, ReadProgress, Topic};
use storage::keyspaces::{keyspace_options, long_values, ranges_only};
use types::{
    config::{FsyncPolicy, LogSettings},
    sync,
};

/// The format that this build writes, and the only one that it reads. In it, long values are compressed.
const FORMAT: u32 = 3;
const FORMAT_KEY: &str = "format";
/// The key of the memory's current generation. If it is missing, the generation is 1.
pub(super) const GENERATION_KEY: &str = "generation";
const PARTITIONS_KEY: &str = "partitions";
/// The key of the highest write number that was removed from `writes`.
const FLOOR_KEY: &str = "writes_floor";
/// The name of the store's directory, and its name until it is complete.
pub(super) const STORE: &str = "store";
const UNFINISHED: &str = "store.new";
/// The name of the store's own lock, in its directory.
const STORE_LOCK: &str = "lock";
/// Most bytes of the journal, which every start reads.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Bytes of the store's cache of blocks.
const READ_BYTES: u64 = 256 << 10;
/// The number of a write is kept until this many further bytes are written. By then the write has left the journal,
/// where damage could hide it, however well the journal is compressed.
pub(super) const NUMBERED_BYTES: u64 = 16 * JOURNAL_BYTES;
/// Most rows that a start cleans in one batch.
const CLEANED_AT_ONCE: u64 = 4_096;
/// Key of the end of the dead letters, in `positions`.
pub(super) const DEAD_LETTERS_END: [u8; 5] = *b"d\0\0\0\0";

/// Key of the end of a turns partition, in `positions`.
pub(super) fn turns_end(partition: u32) -> [u8; 5] {
    tagged(b't', partition)
}

/// Key of the end of a memory partition in one generation, in `positions`.
pub(super) fn memory_end(generation: u32, partition: u32) -> Vec<u8> {
    let mut key = tagged(b'm', partition).to_vec();
    if generation > 1 {
        key.extend_from_slice(&generation.to_be_bytes());
    }
    key
}

/// Key of the read position of a turns partition, in `positions`.
pub(super) fn read_position(partition: u32) -> [u8; 5] {
    tagged(b'r', partition)
}

/// Key of the progress of the banks that are ahead of the read position, in `positions`.
pub(super) fn progress_key(partition: u32) -> [u8; 5] {
    tagged(b'a', partition)
}

/// Key of the last state that a live source committed, in `positions`.
pub(super) fn source_state(name: &[u8]) -> Vec<u8> {
    [b"source ", name].concat()
}

fn tagged(tag: u8, partition: u32) -> [u8; 5] {
    let [a, b, c, d] = partition.to_be_bytes();
    [tag, a, b, c, d]
}

/// The keyspaces of a generation of the memory.
#[derive(Clone)]
pub(super) struct MemoryKeyspaces {
    pub(super) records: Keyspace,
    pub(super) index: Keyspace,
}

/// The open keyspaces.
pub(super) struct EmbeddedStore {
    pub(super) turns: Keyspace,
    pub(super) memory: MemoryKeyspaces,
    pub(super) dead_letters: Keyspace,
    pub(super) positions: Keyspace,
    pub(super) writes: Keyspace,
    pub(super) meta: Keyspace,
    pub(super) partitions: u32,
    pub(super) generation: u32,
    pub(super) database: Database,
}

/// Ends and read positions of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PartitionEnds {
    turns: u64,
    memory: u64,
    next_memory: u64,
    progress: ReadProgress,
}

/// The offsets that the next records will get, and the read positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreEnds {
    partitions: Vec<PartitionEnds>,
    pub(super) dead_letters: u64,
    /// Returned for a partition that does not exist. Callers check that first.
    nonexistent: PartitionEnds,
}

impl StoreEnds {
    pub(super) fn turns(&mut self, partition: u32) -> &mut u64 {
        &mut self.partition(partition).turns
    }

    pub(super) fn memory(&mut self, partition: u32) -> &mut u64 {
        &mut self.partition(partition).memory
    }

    pub(super) fn next_memory(&mut self, partition: u32) -> &mut u64 {
        &mut self.partition(partition).next_memory
    }

    pub(super) fn progress(&mut self, partition: u32) -> &mut ReadProgress {
        &mut self.partition(partition).progress
    }

    /// The offset that the next record will get.
    pub(super) fn end(&mut self, topic: Topic, partition: u32) -> u64 {
        match topic {
            Topic::Turns => *self.turns(partition),
            Topic::Memory => *self.memory(partition),
            Topic::NextMemory => *self.next_memory(partition),
            Topic::DeadLetters => self.dead_letters,
        }
    }

    fn partition(&mut self, partition: u32) -> &mut PartitionEnds {
        self.partitions.get_mut(partition as usize).unwrap_or(&mut self.nonexistent)
    }
}

/// Opens or creates the store of `settings.directory`, and checks that it holds all `acknowledged`
/// writes. Also returns the number of the last write.
pub(super) fn open(settings: &LogSettings, acknowledged: u64) -> Result<(EmbeddedStore, StoreEnds, u64), LogError> {
    let directory = &settings.directory;
    // A file may have been put back since the tables were last checked.
    *sync::lock(&LOOKED_THROUGH) = None;
    // Damaged bytes can trip assertions in the store's recovery. Unwinding drops its state, so none
    // of it is used afterwards.
    catch_unwind(AssertUnwindSafe(|| {
        create_if_missing(settings, acknowledged)?;
        let path = directory.join(STORE);
        store_manifest::check(directory, &path).map_err(|unfit| match unfit {
            StoreFault::Damaged(file) => damaged(directory, differs(&file), None),
            StoreFault::Unreadable(e) => disk(directory, "checking the store", e),
        })?;
        // The lock is an empty file, and a copy of a directory may lack empty files.
        let lock = path.join(STORE_LOCK);
        if !lock.try_exists().map_err(|e| disk(directory, "opening the store", e))? {
            std::fs::File::create(&lock).map_err(|e| disk(directory, "opening the store", e))?;
        }
        let mut store = EmbeddedStore::open(directory, &path, false)?;
        store.check_meta(settings)?;
        let writes = store.check_writes(directory, acknowledged)?;
        let ends = store.check_ends(directory)?;
        store.clean(settings, writes)?;
        store_manifest::end_change(directory).map_err(|e| disk(directory, "cleaning up after the last run", e))?;
        Ok((store, ends, writes))
    }))
    .unwrap_or_else(|_| {
        let table = store_manifest::damaged_table(&directory.join(STORE));
        let unnamed = || format!("{STORE}/ holds bytes that the log did not write");
        Err(damaged(directory, table.map_or_else(unnamed, |table| differs(&table)), None))
    })
}

fn differs(file: &Path) -> String {
    format!("{} is missing or differs from what was written", file.display())
}

/// The error of damaged bytes, with the remedy.
pub(super) fn damaged(directory: &Path, problem: String, source: Option<Box<dyn Error + Send + Sync>>) -> LogError {
    let remedy = format!("put back a copy of {0}, or remove {0} and ingest again", directory.display());
    LogError::Damaged { directory: directory.to_owned(), problem, remedy, source }
}

/// The error of a log whose last writes are lost. The remaining writes can still be used.
pub(super) fn lost_writes_error(directory: &Path, problem: String) -> LogError {
    let remedy = format!(
        "put back a copy of {0}, or remove {0} and ingest again; to continue with the remaining writes, remove \
         {0}/acknowledged and ingest the end again",
        directory.display()
    );
    LogError::Damaged { directory: directory.to_owned(), problem, remedy, source: None }
}

/// The error of a directory that was removed or moved.
pub(super) fn directory_removed_error(directory: &Path, problem: String) -> LogError {
    let remedy = "stop this process: whatever it writes from now on would be lost. Then put back a copy, or start \
                  again with an empty directory";
    LogError::Damaged { directory: directory.to_owned(), problem, remedy: remedy.to_owned(), source: None }
}

/// The error of a failed file operation.
pub(super) fn disk(directory: &Path, doing: &'static str, error: io::Error) -> LogError {
    LogError::Disk { directory: directory.to_owned(), doing, remedy: remedy_of(&error), source: error.into() }
}

/// An error of the store's library.
pub(super) fn store_error(directory: &Path, doing: &'static str, error: fjall::Error) -> LogError {
    use io::ErrorKind::{AlreadyExists, InvalidData, InvalidInput, NotFound, Other, UnexpectedEof};
    let io = match &error {
        fjall::Error::Poisoned => return LogError::Stopped { directory: directory.to_owned() },
        fjall::Error::Locked => {
            return LogError::InUse { directory: directory.to_owned(), holder: "another process".to_owned() };
        }
        fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) => Some(io),
        _ => None,
    };
    match io {
        Some(io)
            if !matches!(io.kind(), AlreadyExists | InvalidData | InvalidInput | NotFound | Other | UnexpectedEof) =>
        {
            LogError::Disk { directory: directory.to_owned(), doing, remedy: remedy_of(io), source: error.into() }
        }
        _ => {
            let problem = match damaged_table(directory, &error) {
                Some(table) => format!("{doing} found that {}", differs(&table)),
                None => format!("{doing} found bytes in {STORE}/ that the log did not write"),
            };
            damaged(directory, problem, Some(error.into()))
        }
    }
}

/// The last search for a damaged table: the directory, the error, and the table that was found. The search reads every
/// table, so it is not repeated while reads of a store fail with the same error.
static LOOKED_THROUGH: Mutex<Option<(PathBuf, String, Option<PathBuf>)>> = Mutex::new(None);

/// The table that an error of the store is about.
fn damaged_table(directory: &Path, error: &fjall::Error) -> Option<PathBuf> {
    let (mut last, error) = (sync::lock(&LOOKED_THROUGH), error.to_string());
    if let Some((of, same, table)) = &*last
        && (of.as_path(), same) == (directory, &error)
    {
        return table.clone();
    }
    let table = store_manifest::damaged_table(&directory.join(STORE));
    *last = Some((directory.to_owned(), error, table.clone()));
    table
}

/// How far a commit is synced before it returns.
pub(super) fn persist_mode(fsync: FsyncPolicy) -> PersistMode {
    match fsync {
        FsyncPolicy::Commit => PersistMode::SyncData,
        FsyncPolicy::System => PersistMode::Buffer,
    }
}

fn remedy_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "the disk or a quota is full; make room and start again: nothing that was acknowledged is lost"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "give this user the right to write there"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "name a directory in log.directory",
        _ => "check the disk and start again",
    }
}

/// Creates the store under another name and renames it, so that a store of the right name is always complete.
fn create_if_missing(settings: &LogSettings, acknowledged: u64) -> Result<(), LogError> {
    let directory = &settings.directory;
    let (path, unfinished) = (directory.join(STORE), directory.join(UNFINISHED));
    if path.try_exists().map_err(|e| disk(directory, "opening the store", e))? {
        return Ok(());
    }
    if acknowledged > 0 {
        return Err(damaged(directory, format!("{STORE}/ is missing, which held {acknowledged} writes"), None));
    }
    let io = |e| disk(directory, "creating the store", e);
    if unfinished.try_exists().map_err(io)? {
        std::fs::remove_dir_all(&unfinished).map_err(io)?;
    }
    let store = EmbeddedStore::open(directory, &unfinished, true)?;
    let mut batch = store.database.batch().durability(Some(PersistMode::SyncAll));
    batch.insert(&store.meta, FORMAT_KEY, FORMAT.to_be_bytes());
    batch.insert(&store.meta, PARTITIONS_KEY, settings.partitions.to_be_bytes());
    batch.insert(&store.meta, FLOOR_KEY, 0u64.to_be_bytes());
    batch.commit().map_err(|e| store_error(directory, "creating the store", e))?;
    drop(store);
    std::fs::rename(&unfinished, &path).map_err(io)?;
    // A rename is durable once its directory is synced.
    std::fs::File::open(directory).and_then(|d| d.sync_all()).map_err(io)
}

impl EmbeddedStore {
    fn open(directory: &Path, path: &Path, create: bool) -> Result<Self, LogError> {
        let opening = |e| store_error(directory, "opening the store", e);
        let database = Database::builder(path)
            .cache_size(READ_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(opening)?;
        let keyspace = |name: &str, options: fn() -> KeyspaceCreateOptions| {
            if !create && !database.keyspace_exists(name) {
                return Err(damaged(directory, format!("{STORE}/ has lost its keyspace {name}"), None));
            }
            database.keyspace(name, options).map_err(opening)
        };
        let meta = keyspace("meta", keyspace_options)?;
        let generation = match meta.get(GENERATION_KEY).map_err(opening)? {
            Some(_) => number32(directory, &meta, GENERATION_KEY)?,
            None => 1,
        };
        let (records, index) = generation_names(generation);
        Ok(Self {
            turns: keyspace("turns", ranges_only)?,
            memory: MemoryKeyspaces {
                records: keyspace(&records, long_values)?,
                index: keyspace(&index, keyspace_options)?,
            },
            dead_letters: keyspace("dead_letters", ranges_only)?,
            positions: keyspace("positions", keyspace_options)?,
            writes: keyspace("writes", ranges_only)?,
            meta,
            partitions: 0,
            generation,
            database,
        })
    }

    /// The keyspaces of a generation. If it has only one, the other is created; if it has none, only with `create`.
    pub(super) fn memory_of(
        &self,
        directory: &Path,
        generation: u32,
        create: bool,
    ) -> Result<Option<MemoryKeyspaces>, LogError> {
        let (records, index) = generation_names(generation);
        let existing = [&records, &index].iter().filter(|name| self.database.keyspace_exists(name.as_str())).count();
        if !create && existing == 0 {
            return Ok(None);
        }
        let io = |e| disk(directory, "creating a keyspace", e);
        if existing < 2 {
            store_manifest::begin_change(directory, &directory.join(STORE), &[]).map_err(io)?;
        }
        let keyspace = |name: &str, options: fn() -> KeyspaceCreateOptions| {
            self.database.keyspace(name, options).map_err(|e| store_error(directory, "creating a keyspace", e))
        };
        let keyspaces =
            MemoryKeyspaces { records: keyspace(&records, long_values)?, index: keyspace(&index, keyspace_options)? };
        if existing < 2 {
            store_manifest::end_change(directory).map_err(io)?;
        }
        Ok(Some(keyspaces))
    }

    /// Deletes generations. If the process is killed, the next start removes files that remain, the next call the rest.
    pub(super) fn delete_generations(&self, directory: &Path, old: Vec<MemoryKeyspaces>) -> Result<(), LogError> {
        let deleted: Vec<u64> = old.iter().flat_map(|old| [old.records.id(), old.index.id()]).collect();
        store_manifest::begin_change(directory, &directory.join(STORE), &deleted)
            .map_err(|e| disk(directory, "deleting a generation", e))?;
        for keyspace in old.into_iter().flat_map(|old| [old.records, old.index]) {
            self.database.delete_keyspace(keyspace).map_err(|e| store_error(directory, "deleting a generation", e))?;
        }
        Ok(())
    }

    /// Reads the partition count from `meta`. Refuses another format, and a different count in the settings.
    fn check_meta(&mut self, settings: &LogSettings) -> Result<(), LogError> {
        let directory = &settings.directory;
        let found = number32(directory, &self.meta, FORMAT_KEY)?;
        if found != FORMAT {
            return Err(LogError::Version { directory: directory.clone(), found, known: FORMAT });
        }
        self.partitions = number32(directory, &self.meta, PARTITIONS_KEY)?;
        if self.partitions != settings.partitions {
            let (stored, configured) = (self.partitions, settings.partitions);
            return Err(LogError::Partitions { directory: directory.clone(), stored, configured });
        }
        Ok(())
    }

    /// The number of the last write. It is an error if a number before it is missing, or if it is below `acknowledged`.
    fn check_writes(&self, directory: &Path, acknowledged: u64) -> Result<u64, LogError> {
        let mut last = number(directory, &self.meta, FLOOR_KEY.as_bytes())?
            .ok_or_else(|| damaged(directory, format!("{STORE}/meta: {FLOOR_KEY} is missing"), None))?;
        let floor = last;
        for row in self.writes.range(floor.saturating_add(1).to_be_bytes()..) {
            let key = row.key().map_err(|e| store_error(directory, "counting the writes", e))?;
            if key[..] != (last + 1).to_be_bytes() {
                return Err(damaged(directory, format!("write {} is missing", last + 1), None));
            }
            last += 1;
        }
        if last < acknowledged {
            let problem = match acknowledged - last {
                1 => format!("the last of {acknowledged} acknowledged writes is missing"),
                lost => format!("the last {lost} of {acknowledged} acknowledged writes are missing"),
            };
            return Err(lost_writes_error(directory, problem));
        }
        Ok(last)
    }

    /// The ends and read positions. It is an error if they disagree with the records.
    fn check_ends(&self, directory: &Path) -> Result<StoreEnds, LogError> {
        let stored = |key: &[u8]| number(directory, &self.positions, key).map(Option::unwrap_or_default);
        let after_last = |keyspace: &Keyspace, partition| -> Result<u64, LogError> {
            let Some(row) = keyspace.range(record_key(partition, 0)..=record_key(partition, u64::MAX)).next_back()
            else {
                return Ok(0);
            };
            let key = row.key().map_err(|e| store_error(directory, "looking for the last record", e))?;
            Ok(offset_of(&key).unwrap_or(u64::MAX).saturating_add(1))
        };
        let disagree = |topic: Topic, partition: u32, end: u64, last: u64| {
            damaged(directory, format!("{topic}/{partition}: the end should be {end}, the records end at {last}"), None)
        };
        let mut ends = StoreEnds {
            partitions: Vec::with_capacity(self.partitions as usize),
            dead_letters: stored(&DEAD_LETTERS_END)?,
            nonexistent: PartitionEnds::default(),
        };
        let last = after_last(&self.dead_letters, 0)?;
        if last != ends.dead_letters {
            return Err(disagree(Topic::DeadLetters, 0, ends.dead_letters, last));
        }
        for partition in 0..self.partitions {
            let found = PartitionEnds {
                turns: stored(&turns_end(partition))?,
                memory: stored(&memory_end(self.generation, partition))?,
                next_memory: stored(&memory_end(self.generation + 1, partition))?,
                progress: self.progress(directory, partition)?,
            };
            let last = after_last(&self.turns, partition)?;
            if last != found.turns || found.progress.through > found.turns {
                return Err(disagree(Topic::Turns, partition, found.turns.max(found.progress.through), last));
            }
            // The last records of the memory topic may have been deletion markers, which a start drops.
            let last = after_last(&self.memory.records, partition)?;
            if last > found.memory {
                return Err(disagree(Topic::Memory, partition, found.memory, last));
            }
            ends.partitions.push(found);
        }
        Ok(ends)
    }

    /// How far a turns partition is covered. The stored progress counts only if it matches the read position: an older
    /// build moves the position alone.
    fn progress(&self, directory: &Path, partition: u32) -> Result<ReadProgress, LogError> {
        let position = number(directory, &self.positions, &read_position(partition))?.unwrap_or_default();
        let stored = self.positions.get(progress_key(partition)).map_err(|e| store_error(directory, "a read", e))?;
        let Some(stored) = stored else { return Ok(position.into()) };
        let ahead: ReadProgress = serde_json::from_slice(&stored)
            .map_err(|e| damaged(directory, format!("{STORE}/positions: the progress of banks: {e}"), None))?;
        Ok(if ahead.low() == position { ahead } else { position.into() })
    }

    /// Removes what only the previous run needed: deletion markers, and the numbers of its writes.
    fn clean(&self, settings: &LogSettings, writes: u64) -> Result<(), LogError> {
        let directory = &settings.directory;
        let failed = |e| store_error(directory, "cleaning up after the last run", e);
        let durable = || self.database.batch().durability(Some(persist_mode(settings.fsync)));
        let (mut batch, mut removed, mut are_many) = (durable(), 0, false);
        for row in self.memory.index.iter() {
            let (key, entry) = row.into_inner().map_err(failed)?;
            let (offset, live) = decode_index(&entry)
                .ok_or_else(|| damaged(directory, format!("{STORE}/memory_index holds an unreadable entry"), None))?;
            let (partition, _) = key
                .split_first_chunk::<4>()
                .ok_or_else(|| damaged(directory, format!("{STORE}/memory_index holds an unreadable key"), None))?;
            if !live {
                batch.remove(&self.memory.records, record_key(u32::from_be_bytes(*partition), offset));
                batch.remove(&self.memory.index, key);
                removed += 1;
            }
            if removed == CLEANED_AT_ONCE {
                (removed, are_many) = (0, true);
                std::mem::replace(&mut batch, durable()).commit().map_err(failed)?;
            }
        }
        batch.commit().map_err(failed)?;
        if are_many {
            // In memory, small removals take several times the bytes that the store counts for them.
            for keyspace in [&self.memory.records, &self.memory.index] {
                keyspace.rotate_memtable().map_err(failed)?;
            }
        }
        if number(directory, &self.meta, FLOOR_KEY.as_bytes())? == Some(writes) {
            return Ok(());
        }
        // The floor must be on the disk before a number is removed: a missing number above the floor counts as damage.
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.meta, FLOOR_KEY, writes.to_be_bytes());
        batch.commit().map_err(failed)?;
        // Numbers up to the floor are not needed any more. All are cleared at once: single removals would stay in
        // memory until later writes push them out.
        self.writes.clear().map_err(failed)
    }

    /// Removes deletion markers and the numbers of writes after `floor` up to `until`, while the log is open. A marker
    /// is already gone if its key was written again.
    pub(super) fn remove(&self, markers: &[DeletionMarker], floor: u64, until: u64) -> fjall::Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for DeletionMarker { partition, offset, .. } in markers {
            let at = record_key(*partition, *offset);
            let Some(marker) = self.memory.records.get(at)?.and_then(|bytes| decode(*offset, &bytes)) else { continue };
            let index_key = index_key(*partition, &marker.key);
            let entry = self.memory.index.get(&index_key)?.and_then(|entry| decode_index(&entry));
            if entry == Some((*offset, false)) {
                batch.remove(&self.memory.records, at);
                batch.remove(&self.memory.index, index_key);
            }
        }
        self.remove_writes(batch, floor, until)
    }

    fn remove_writes(&self, mut batch: OwnedWriteBatch, floor: u64, until: u64) -> fjall::Result<()> {
        for write in floor.saturating_add(1)..=until {
            batch.remove(&self.writes, write.to_be_bytes());
        }
        batch.insert(&self.meta, FLOOR_KEY, until.to_be_bytes());
        batch.commit()
    }
}

/// The names of a generation's two keyspaces.
fn generation_names(generation: u32) -> (String, String) {
    if generation <= 1 {
        ("memory".to_owned(), "memory_index".to_owned())
    } else {
        (format!("memory-{generation}"), format!("memory_index-{generation}"))
    }
}

fn number(directory: &Path, keyspace: &Keyspace, key: &[u8]) -> Result<Option<u64>, LogError> {
    let Some(value) = keyspace.get(key).map_err(|e| store_error(directory, "reading a number", e))? else {
        return Ok(None);
    };
    match <[u8; 8]>::try_from(&value[..]) {
        Ok(bytes) => Ok(Some(u64::from_be_bytes(bytes))),
        Err(_) => {
            Err(damaged(directory, format!("{STORE}/ holds {} bytes where a number should be", value.len()), None))
        }
    }
}

fn number32(directory: &Path, meta: &Keyspace, key: &str) -> Result<u32, LogError> {
    let value = meta.get(key).map_err(|e| store_error(directory, "reading a number", e))?;
    value
        .and_then(|v| <[u8; 4]>::try_from(&v[..]).ok())
        .map(u32::from_be_bytes)
        .ok_or_else(|| damaged(directory, format!("{STORE}/meta: {key} is missing"), None))
}

/// Makes the store look as if another build had created it.
#[cfg(test)]
pub(super) fn set_format(directory: &Path, format: u32) {
    let store = EmbeddedStore::open(directory, &directory.join(STORE), false).unwrap();
    store.meta.insert(FORMAT_KEY, format.to_be_bytes()).unwrap();
    store.database.persist(PersistMode::SyncAll).unwrap();
}

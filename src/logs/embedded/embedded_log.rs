//! The embedded log: writes turn events and transactions to the store, and reads records from it.
//!
//! In: calls of [`Log`]. Out: records, ends and read positions, which become visible only once their
//! write has succeeded. There is one write at a time; the appends that wait for it form the next write. Reads
//! never wait for a write.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use fjall::{OwnedWriteBatch, PersistMode, Readable as _};
use jiff::Timestamp;

use super::{
    append_queue::{AppendQueue, EncodedTurn, PositionEntry, QueuedAppend, encoded_letters},
    file_sentinels::FileSentinels,
    marker_cleaner::{DeletionMarker, MarkerCleaner},
    record_encoding::{self, decode, encode, offset_of, record_key},
    store::{self, EmbeddedStore, MemoryKeyspaces, StoreEnds, persist_mode},
    synced_write_count::SyncedWriteCount,
};
use crate::{
    DecidedGroup, DeletionRegistry, ErasableLog, GenerationalLog, KeyedValue, LiveKey, Log, LogEntry, LogError,
    LogRecord, ReadBatch, ReadProgress, Topic, Transaction, TransactionEnd, WriteOutcomeRegistry, WritePosition,
    memory_name,
};
use storage::file_lock::{FileLock, FileLockError};
use storage::private_directory::create_private;
use types::{
    config::{FsyncPolicy, LogSettings},
    model::{DeadLetter, ModelRef, TurnEvent},
    sync,
    wake_signal::WakeSignal,
};

/// Longest key of a memory record, in bytes. This project's keys stay under 700.
const MAX_KEY_BYTES: usize = 32_768;
/// Records that a replay reads at once.
const REPLAYED_AT_ONCE: usize = 64;
/// The log is cleaned once in this many writes.
const CLEANED_EVERY: u64 = 64;
/// Most deletion markers, and most numbers of writes, that are removed at once.
const CLEANED_AT_ONCE: usize = 1_024;
/// Longest value, in bytes.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// A log in a directory.
pub struct EmbeddedLog {
    // Fields drop in this order: the store closes before the lock is released.
    writer: Mutex<EmbeddedWriteState>,
    waiting: Mutex<AppendQueue>,
    ends: Mutex<StoreEnds>,
    pub(super) store: EmbeddedStore,
    /// The next generation of the memory, if it was begun.
    pub(super) next: Mutex<Option<MemoryKeyspaces>>,
    /// The directories of generations that were dropped to erase words, until they are gone.
    pub(super) dropped: Mutex<BTreeSet<PathBuf>>,
    cleaning: Mutex<MarkerCleaner>,
    news: Arc<WakeSignal>,
    pub(super) deletions: DeletionRegistry,
    pub(super) outcomes: WriteOutcomeRegistry,
    fsync: FsyncPolicy,
    directory: PathBuf,
    /// Tell whether the opened files are still there.
    sentinels: FileSentinels,
    _lock: FileLock,
}

/// The state of writing, locked during each write.
pub(super) struct EmbeddedWriteState {
    acknowledged: SyncedWriteCount,
    /// What was written for each append, by its ticket, until its caller takes it.
    appended: HashMap<u64, WritePosition>,
    /// The number of the last write.
    writes: u64,
    /// Whether writing stopped: a journal could not be emptied, so the next start would lose later writes.
    pub(super) is_stopped: bool,
    /// The store no longer holds the numbers up to this one.
    floor: u64,
    /// Bytes that were written since the start.
    bytes: u64,
    /// Some numbers of writes, each with `bytes` at that write. A number is removed once `kept_bytes` more are written.
    numbers: VecDeque<(u64, u64)>,
    kept_bytes: u64,
}

impl EmbeddedLog {
    /// Opens the log of a directory, or creates it.
    ///
    /// # Errors
    /// [`LogError`]: the log is in use by another process, has another partition count or format, or is
    /// damaged; or a file operation failed.
    pub fn open(settings: &LogSettings) -> Result<Self, LogError> {
        let directory = settings.directory.clone();
        create_private(&directory).map_err(|e| store::disk(&directory, "creating the directory", e))?;
        let lock = FileLock::take(&directory.join("writer.lock")).map_err(|refused| match refused {
            FileLockError::InUse(holder) => LogError::InUse { directory: directory.clone(), holder },
            FileLockError::Failed(e) => store::disk(&directory, "locking the directory", e),
        })?;
        let acknowledged = SyncedWriteCount::read(&directory).map_err(|e| {
            if e.kind() == std::io::ErrorKind::InvalidData {
                store::lost_writes_error(&directory, "the file acknowledged differs from what was written".to_owned())
            } else {
                store::disk(&directory, "reading the file acknowledged", e)
            }
        })?;
        let (store, ends, writes) = store::open(settings, acknowledged.unwrap_or(0))?;
        let acknowledged = SyncedWriteCount::open(&directory, writes)
            .map_err(|e| store::disk(&directory, "writing the file acknowledged", e))?;
        let next = store.memory_of(&directory, store.generation + 1, false)?;
        Ok(Self {
            next: Mutex::new(next),
            dropped: Mutex::default(),
            writer: Mutex::new(EmbeddedWriteState {
                acknowledged,
                appended: HashMap::new(),
                writes,
                is_stopped: false,
                floor: writes,
                bytes: 0,
                numbers: VecDeque::new(),
                kept_bytes: store::NUMBERED_BYTES,
            }),
            waiting: Mutex::default(),
            cleaning: Mutex::default(),
            news: Arc::default(),
            deletions: DeletionRegistry::default(),
            outcomes: WriteOutcomeRegistry::default(),
            ends: Mutex::new(ends),
            store,
            fsync: settings.fsync,
            sentinels: FileSentinels::of(&directory).map_err(|e| store::disk(&directory, "looking at the files", e))?,
            directory,
            _lock: lock,
        })
    }

    pub(super) fn ends(&self) -> MutexGuard<'_, StoreEnds> {
        sync::lock(&self.ends)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, EmbeddedWriteState> {
        sync::lock(&self.writer)
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, AppendQueue> {
        sync::lock(&self.waiting)
    }

    pub(super) fn batch(&self) -> OwnedWriteBatch {
        self.store.database.batch().durability(Some(persist_mode(self.fsync)))
    }

    /// Writes `batch`, all or nothing, and then makes the new `ends` visible.
    pub(super) fn write(
        &self,
        writer: &mut EmbeddedWriteState,
        mut batch: OwnedWriteBatch,
        ends: StoreEnds,
        bytes: usize,
    ) -> Result<(), LogError> {
        if writer.is_stopped {
            return Err(LogError::Stopped { directory: self.directory.clone() });
        }
        let number = writer.writes + 1;
        writer.bytes += bytes as u64;
        batch.insert(&self.store.writes, number.to_be_bytes(), []);
        batch.commit().map_err(|e| store::store_error(&self.directory, "a write", e))?;
        // An open file that was removed still takes writes, but they are lost when this process ends.
        if !self.sentinels.are_there() {
            let problem = format!("{} was removed or moved while it was open", self.directory.display());
            return Err(store::directory_removed_error(&self.directory, problem));
        }
        writer.writes = number;
        if self.fsync == FsyncPolicy::Commit {
            // The write is on the disk. A count that is too low only weakens a later check.
            let _ = writer.acknowledged.write(number);
        }
        *self.ends() = ends;
        if number.is_multiple_of(CLEANED_EVERY) {
            self.clean(writer);
        }
        Ok(())
    }

    /// Removes some deletion markers and numbers of writes that nothing needs any more. If that fails, the write just
    /// done has still succeeded; the next start removes the rest.
    fn clean(&self, writer: &mut EmbeddedWriteState) {
        let markers = self.cleaning().take_removable(Timestamp::now().as_millisecond(), CLEANED_AT_ONCE);
        let EmbeddedWriteState { writes, bytes, numbers, kept_bytes, .. } = writer;
        numbers.push_back((*writes, *bytes));
        let old = |number: &(u64, u64)| number.1.saturating_add(*kept_bytes) <= *bytes;
        let mut until = writer.floor;
        while let Some((number, _)) = numbers.front().copied().filter(old) {
            if number - writer.floor > CLEANED_AT_ONCE as u64 {
                break;
            }
            until = number;
            numbers.pop_front();
        }
        if (until > writer.floor || !markers.is_empty()) && self.store.remove(&markers, writer.floor, until).is_ok() {
            writer.floor = until;
        }
    }

    /// Blocks writes while `work` runs. Returns the number of writes at its end.
    #[cfg(test)]
    pub(super) fn while_writing(&self, work: impl FnOnce()) -> u64 {
        let writer = self.writer();
        work();
        writer.writes
    }

    /// Keeps no old numbers of writes, so that a test need not write gigabytes.
    #[cfg(test)]
    pub(super) fn keep_no_numbers(&self) {
        self.writer().kept_bytes = 0;
    }

    pub(super) fn cleaning(&self) -> MutexGuard<'_, MarkerCleaner> {
        sync::lock(&self.cleaning)
    }

    fn check_partition(&self, topic: Topic, partition: u32) -> Result<(), LogError> {
        let partitions = if topic == Topic::DeadLetters { 1 } else { self.store.partitions };
        if partition < partitions { Ok(()) } else { Err(LogError::NoPartition { topic, partition, partitions }) }
    }

    pub(super) fn damaged(&self, topic: Topic, partition: u32, offset: u64, problem: &str) -> LogError {
        store::damaged(&self.directory, format!("{topic}/{partition}: offset {offset} {problem}"), None)
    }

    /// Adds memory records to `batch`, from the offset `end` on, which it moves. Returns the deletion markers.
    fn put_memory(
        &self,
        batch: &mut OwnedWriteBatch,
        to: &MemoryKeyspaces,
        end: &mut u64,
        partition: u32,
        memory: &[KeyedValue],
        now: i64,
    ) -> Result<Vec<DeletionMarker>, LogError> {
        let mut markers = Vec::new();
        // The store cannot write a key and remove it in one batch, so only the last record of a key
        // is written. The offsets of earlier ones stay unused.
        let last: HashMap<&[u8], usize> =
            memory.iter().enumerate().map(|(index, (key, _))| (key.as_slice(), index)).collect();
        for (index, (key, value)) in memory.iter().enumerate() {
            check_size(Topic::Memory, partition, index, key.len(), value.as_ref().map_or(0, Vec::len))?;
            let offset = *end;
            if last.get(key.as_slice()) != Some(&index) {
                *end += 1;
                continue;
            }
            let index_key = record_encoding::index_key(partition, key);
            let before = to
                .index
                .get(&index_key)
                .map_err(|e| store::store_error(&self.directory, "a read", e))?
                .map(|entry| {
                    record_encoding::decode_index(&entry)
                        .ok_or_else(|| self.damaged(Topic::Memory, partition, offset, "has an unreadable index entry"))
                })
                .transpose()?;
            // Deleting a key that has no live record changes nothing.
            if value.is_none() && before.is_none_or(|(_, live)| !live) {
                continue;
            }
            if let Some((superseded, _)) = before {
                batch.remove(&to.records, record_key(partition, superseded));
            }
            batch.insert(&to.records, record_key(partition, offset), encode(now, key, value.as_deref()));
            batch.insert(&to.index, index_key, record_encoding::encode_index(offset, value.is_some()));
            if value.is_none() {
                markers.push(DeletionMarker { partition, offset, append_ms: now });
            }
            *end += 1;
        }
        Ok(markers)
    }

    fn next(&self) -> Result<MemoryKeyspaces, LogError> {
        let next = sync::lock(&self.next).clone();
        next.ok_or(LogError::NotBegun { topic: Topic::NextMemory })
    }

    fn put_dead_letters<'a>(
        &self,
        batch: &mut OwnedWriteBatch,
        ends: &mut StoreEnds,
        letters: impl Iterator<Item = &'a Vec<u8>>,
        now: i64,
    ) {
        let before = ends.dead_letters;
        for json in letters {
            batch.insert(&self.store.dead_letters, record_key(0, ends.dead_letters), encode(now, b"", Some(json)));
            ends.dead_letters += 1;
        }
        if ends.dead_letters > before {
            batch.insert(&self.store.positions, store::DEAD_LETTERS_END, ends.dead_letters.to_be_bytes());
        }
    }

    /// Writes events, dead letters and entries of `positions`, all or nothing. Other appends that wait may share the
    /// write.
    pub(super) fn append_with(
        &self,
        events: &[TurnEvent],
        letters: &[DeadLetter],
        positions: Vec<PositionEntry>,
    ) -> Result<WritePosition, LogError> {
        let append = QueuedAppend::of(self.store.partitions, events, letters, positions)?;
        let ticket = self.waiting().push(append);
        // The thread that locks the writer next writes all appends that wait.
        let mut writer = self.writer();
        loop {
            if let Some(written) = writer.appended.remove(&ticket) {
                self.news.raise();
                return Ok(written);
            }
            self.append_waiting(&mut writer).inspect_err(|_| self.waiting().withdraw(ticket))?;
        }
    }

    /// Writes a group of the appends that wait. If that fails, the whole group waits again, and each of its
    /// callers tries for itself.
    fn append_waiting(&self, writer: &mut EmbeddedWriteState) -> Result<(), LogError> {
        let group = self.waiting().group();
        let mut ends = self.ends().clone();
        let mut batch = self.batch();
        let now = Timestamp::now().as_millisecond();
        let nothing = WritePosition::nothing(self.store.partitions);
        let (mut appended, mut all) = (Vec::with_capacity(group.len()), nothing.clone());
        for append in &group {
            let mut written = nothing.clone();
            written.name_banks(append.turns.iter().map(|turn| &turn.bank));
            for EncodedTurn { partition, bank, json } in &append.turns {
                let end = ends.turns(*partition);
                let record = encode(now, bank.as_str().as_bytes(), Some(json));
                batch.insert(&self.store.turns, record_key(*partition, *end), record);
                *end += 1;
                written.extend(*partition, *end);
                all.extend(*partition, *end);
            }
            appended.push((append.ticket(), written));
        }
        for (partition, end) in all.partition_ends() {
            batch.insert(&self.store.positions, store::turns_end(partition), end.to_be_bytes());
        }
        self.put_dead_letters(&mut batch, &mut ends, group.iter().flat_map(|append| &append.dead_letters), now);
        // The store takes a key only once in a batch, so the last entry of a key is written.
        let positions: BTreeMap<_, _> =
            group.iter().flat_map(|append| &append.positions).map(|(k, v)| (k, v)).collect();
        for (key, value) in positions {
            match value {
                Some(value) => batch.insert(&self.store.positions, key.as_slice(), value.as_slice()),
                None => batch.remove(&self.store.positions, key.as_slice()),
            }
        }
        let bytes = group.iter().map(|append| append.bytes).sum();
        if let Err(error) = self.write(writer, batch, ends, bytes) {
            self.waiting().put_back(group);
            return Err(error);
        }
        writer.appended.extend(appended);
        Ok(())
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The earlier generations of the memory that are still stored.
    pub(super) fn old_generations(&self) -> Result<Vec<(u32, MemoryKeyspaces)>, LogError> {
        let mut old = Vec::new();
        for generation in 1..self.store.generation {
            let found = self.store.memory_of(&self.directory, generation, false)?;
            old.extend(found.map(|keyspaces| (generation, keyspaces)));
        }
        Ok(old)
    }

    /// An entry of `positions`.
    pub(super) fn position_of(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        let found = self.store.positions.get(key).map_err(|e| store::store_error(&self.directory, "a read", e))?;
        Ok(found.map(|value| value.to_vec()))
    }
}

impl Log for EmbeddedLog {
    fn partitions(&self) -> u32 {
        self.store.partitions
    }

    fn append_turns(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        if events.is_empty() {
            return Ok(WritePosition::nothing(self.store.partitions));
        }
        self.append_with(events, &[], Vec::new())
    }

    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError> {
        if letters.is_empty() {
            return Ok(());
        }
        self.append_with(&[], letters, Vec::new()).map(drop)
    }

    fn erasable(&self) -> Option<&dyn ErasableLog> {
        Some(self)
    }

    /// The directory's lock already excludes other processes.
    fn own(&self, partition: u32) -> Result<(), LogError> {
        self.check_partition(Topic::Memory, partition)
    }

    fn news(&self) -> &Arc<WakeSignal> {
        &self.news
    }

    fn commit(&self, transaction: &Transaction) -> Result<(), LogError> {
        // `append_turns` always chooses the bank's partition, so there is nothing to forward.
        let Transaction { partition, next_offset, behind: _, memory, dead_letters, forwards: _, decided } = transaction;
        let (partition, next_offset, dead_letters) = (*partition, *next_offset, encoded_letters(dead_letters)?);
        self.check_partition(Topic::Memory, partition)?;
        let mut writer = self.writer();
        let mut ends = self.ends().clone();
        let (position, end) = (ends.progress(partition).through, *ends.turns(partition));
        if next_offset < position || next_offset > end {
            return Err(LogError::Position { partition, next_offset, position, end });
        }

        let mut batch = self.batch();
        let mut bytes = bytes_of(memory);
        for (offset, event) in decided.iter().flat_map(DecidedGroup::in_place) {
            let value = record_encoding::json_of(Topic::Turns, partition, 0, &event)?;
            bytes += value.len();
            self.put_value(&mut batch, Topic::Turns, partition, offset, &value)?;
        }
        let now = Timestamp::now().as_millisecond();
        let markers =
            self.put_memory(&mut batch, &self.store.memory, ends.memory(partition), partition, memory, now)?;
        if !memory.is_empty() {
            batch.insert(
                &self.store.positions,
                store::memory_end(self.store.generation, partition),
                ends.memory(partition).to_be_bytes(),
            );
        }
        self.put_dead_letters(&mut batch, &mut ends, dead_letters.iter(), now);
        let (before, progress) = (ends.progress(partition), transaction.progress());
        batch.insert(&self.store.positions, store::read_position(partition), progress.low().to_be_bytes());
        if !progress.behind.is_empty() {
            // Numbers and names always have a JSON form.
            let ahead = serde_json::to_vec(&progress).unwrap_or_default();
            batch.insert(&self.store.positions, store::progress_key(partition), ahead);
        } else if !before.behind.is_empty() {
            batch.remove(&self.store.positions, store::progress_key(partition));
        }
        *before = progress;
        self.write(&mut writer, batch, ends, bytes)?;
        self.cleaning().note_written(markers);
        self.news.raise();
        Ok(())
    }

    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<ReadBatch, LogError> {
        self.check_partition(topic, partition)?;
        // Both are read under one lock, because the position belongs to this end.
        let (end, progress) = {
            let mut ends = self.ends();
            (ends.end(topic, partition), ends.progress(partition).clone())
        };
        if limit == 0 || from >= end {
            // Input that changed no record moves only the position.
            let at_end = topic == Topic::Memory && from == end;
            let covers = if at_end { vec![(partition, progress)] } else { Vec::new() };
            return Ok(ReadBatch { next: from, covers, ..ReadBatch::default() });
        }
        let keyspace = match topic {
            Topic::Turns => self.store.turns.clone(),
            Topic::Memory => self.store.memory.records.clone(),
            Topic::NextMemory => self.next()?.records,
            Topic::DeadLetters => self.store.dead_letters.clone(),
        };
        let compacted = matches!(topic, Topic::Memory | Topic::NextMemory);
        if topic == Topic::Memory {
            self.cleaning().note_read(partition, from, Timestamp::now().as_millisecond());
        }
        let mut records = Vec::with_capacity(limit.min(1_024));
        let mut expected = from;
        for row in keyspace.range(record_key(partition, from)..record_key(partition, end)).take(limit) {
            let (key, value) = row.into_inner().map_err(|e| store::store_error(&self.directory, "a read", e))?;
            let offset = offset_of(&key)
                .ok_or_else(|| self.damaged(topic, partition, expected, "is followed by an unreadable key"))?;
            if !compacted && offset != expected {
                return Err(self.damaged(topic, partition, expected, "is missing"));
            }
            records
                .push(decode(offset, &value).ok_or_else(|| self.damaged(topic, partition, offset, "is unreadable"))?);
            expected = offset + 1;
        }
        if !compacted && records.len() < limit && expected < end {
            return Err(self.damaged(topic, partition, expected, "is missing"));
        }
        let at_end = compacted && expected == end;
        let covers = if at_end { vec![(partition, progress)] } else { Vec::new() };
        Ok(ReadBatch { records, covers, next: expected })
    }

    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError> {
        self.check_partition(topic, partition)?;
        Ok(self.ends().end(topic, partition))
    }

    fn last_transaction(&self, topic: Topic, partition: u32) -> Result<TransactionEnd, LogError> {
        Ok(TransactionEnd { end: self.end(topic, partition)?, position: Some(self.progress(partition)?) })
    }

    fn lag(&self, partition: u32, position: u64) -> Result<u64, LogError> {
        Ok(self.end(Topic::Turns, partition)?.saturating_sub(position))
    }

    fn progress(&self, partition: u32) -> Result<ReadProgress, LogError> {
        self.check_partition(Topic::Turns, partition)?;
        Ok(self.ends().progress(partition).clone())
    }

    fn live_keys(&self, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
        self.check_partition(Topic::Memory, partition)?;
        let mut keys = Vec::new();
        for row in self.store.memory.index.prefix(partition.to_be_bytes()) {
            let (key, entry) = row.into_inner().map_err(|e| store::store_error(&self.directory, "a read", e))?;
            let (offset, live) = record_encoding::decode_index(&entry)
                .ok_or_else(|| self.damaged(Topic::Memory, partition, 0, "has an unreadable index entry"))?;
            if live {
                keys.push((key[size_of::<u32>()..].to_vec(), offset));
            }
        }
        Ok(Some(keys))
    }

    fn live_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.check_partition(Topic::Memory, partition)?;
        let failed = |e| store::store_error(&self.directory, "a read", e);
        let moment = self.store.database.snapshot();
        for row in moment.prefix(&self.store.memory.index, record_encoding::index_key(partition, prefix)) {
            let (key, entry) = row.into_inner().map_err(failed)?;
            let (offset, live) = record_encoding::decode_index(&entry)
                .ok_or_else(|| self.damaged(Topic::Memory, partition, 0, "has an unreadable index entry"))?;
            if !live || !wanted(&key[size_of::<u32>()..], offset) {
                continue;
            }
            let value = moment.get(&self.store.memory.records, record_key(partition, offset)).map_err(failed)?;
            let value = value.ok_or_else(|| self.damaged(Topic::Memory, partition, offset, "is missing"))?;
            let record = decode(offset, &value);
            let record = record.ok_or_else(|| self.damaged(Topic::Memory, partition, offset, "is unreadable"))?;
            if each(&record).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        self.stored_entries(prefix)
    }

    fn append_with_entries(&self, events: &[TurnEvent], entries: Vec<LogEntry>) -> Result<WritePosition, LogError> {
        self.append_events_and_entries(events, entries)
    }

    fn replay(&self, partition: u32, each: &mut dyn FnMut(&LogRecord)) -> Result<ReadProgress, LogError> {
        let mut at = 0;
        loop {
            let progress = self.progress(partition)?;
            let batch = self.read(Topic::Memory, partition, at, REPLAYED_AT_ONCE)?;
            if batch.records.is_empty() {
                return Ok(progress);
            }
            batch.records.iter().for_each(&mut *each);
            at = batch.next;
        }
    }

    fn generation(&self) -> u32 {
        self.store.generation
    }

    /// The directory's lock already excludes other writers.
    fn interrupt_next(&self) -> Result<(), LogError> {
        Ok(())
    }
}

impl GenerationalLog for EmbeddedLog {
    fn begin_next(&self) -> Result<(), LogError> {
        let made = self.store.memory_of(&self.directory, self.store.generation + 1, true)?;
        *sync::lock(&self.next) = made;
        Ok(())
    }

    /// Ignores the progress: all generations share the read position, and no turns are read meanwhile.
    fn fill_next(&self, partition: u32, records: &[KeyedValue], _progress: &ReadProgress) -> Result<(), LogError> {
        self.check_partition(Topic::NextMemory, partition)?;
        let next = self.next()?;
        let mut writer = self.writer();
        let mut ends = self.ends().clone();
        let mut batch = self.batch();
        let now = Timestamp::now().as_millisecond();
        self.put_memory(&mut batch, &next, ends.next_memory(partition), partition, records, now)?;
        let key = store::memory_end(self.store.generation + 1, partition);
        batch.insert(&self.store.positions, key, ends.next_memory(partition).to_be_bytes());
        self.write(&mut writer, batch, ends, bytes_of(records))
    }

    fn switch(&self, _model: &ModelRef) -> Result<(), LogError> {
        self.next()?;
        let mut writer = self.writer();
        let ends = self.ends().clone();
        let mut batch = self.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.store.meta, store::GENERATION_KEY, (self.store.generation + 1).to_be_bytes());
        self.write(&mut writer, batch, ends, 0)
    }

    fn drop_old(&self) -> Result<Vec<String>, LogError> {
        let old = self.old_generations()?;
        let dropped = old.iter().map(|(generation, _)| memory_name(*generation)).collect();
        if !old.is_empty() {
            let keyspaces = old.into_iter().map(|(_, keyspaces)| keyspaces).collect();
            self.store.delete_generations(&self.directory, keyspaces)?;
        }
        Ok(dropped)
    }
}

impl Drop for EmbeddedLog {
    /// Syncs everything first, and then counts it in `acknowledged`.
    fn drop(&mut self) {
        if self.store.database.persist(PersistMode::SyncAll).is_ok() {
            let writer = sync::get_mut(&mut self.writer);
            // A drop cannot report an error. An old count only weakens the next start's check.
            let _ = writer.acknowledged.write(writer.writes).and_then(|()| writer.acknowledged.sync());
        }
    }
}

fn bytes_of(memory: &[KeyedValue]) -> usize {
    memory.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
}

fn check_size(topic: Topic, partition: u32, index: usize, key: usize, value: usize) -> Result<(), LogError> {
    let problem = if key == 0 {
        "its key is empty; a memory record needs one".to_owned()
    } else if key > MAX_KEY_BYTES {
        format!("its key has {key} bytes; use at most {MAX_KEY_BYTES}")
    } else if value > MAX_VALUE_BYTES {
        format!("its value has {value} bytes; split it, at most {MAX_VALUE_BYTES} fit")
    } else {
        return Ok(());
    };
    Err(LogError::Record { topic, partition, index, problem })
}

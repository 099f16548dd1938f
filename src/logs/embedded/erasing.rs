//! Erases from the embedded log: replaces records in place, and removes old bytes from the disk.
//!
//! In: offsets with new values. Out: the same topics with those values; the store's files hold none of the old ones.
//! The store only appends, so superseded values lie in its journals, its tables and its files of long values until
//! these are replaced. The journals are emptied in place. All tables of the topics are merged into new ones. A file of
//! long values that holds a superseded one is rewritten. All generations of the memory but the current one are dropped
//! whole.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fjall::{AbstractTree as _, Keyspace, OwnedWriteBatch};

use super::{
    embedded_log::EmbeddedLog,
    journal,
    record_encoding::{decode, encode, record_key},
    store::{self, EmbeddedStore, MemoryKeyspaces, STORE},
};
use crate::{ErasableLog, LogEntry, LogError, Topic, WritePosition};
use types::{model::TurnEvent, sync};

/// The prefix of an entry's key in `positions`.
const ENTRY: &[u8] = b"entry ";
/// The key of a write that only makes the store advance, so that it removes old files.
const MOVED_ON_KEY: &str = "moved on";
/// How long to wait for readers that hold old files, before the attempt fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks of the files.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause between two checks that memory was written to tables.
const FLUSH_PAUSE: Duration = Duration::from_millis(5);
/// Checks after which tables are merged once more, because another merge held some of them.
const MAX_CHECKS: u32 = 20;

impl EmbeddedLog {
    /// The entries whose names begin with `prefix`, by name.
    pub(super) fn stored_entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let mut entries = Vec::new();
        for row in self.store.positions.prefix(entry_key(prefix)) {
            let (key, value) = row.into_inner().map_err(|e| store::store_error(self.directory(), "a read", e))?;
            let name = String::from_utf8_lossy(key.get(ENTRY.len()..).unwrap_or_default()).into_owned();
            entries.push((name, value.to_vec()));
        }
        Ok(entries)
    }

    /// Appends events and changes entries in one write.
    pub(super) fn append_events_and_entries(
        &self,
        events: &[TurnEvent],
        entries: Vec<LogEntry>,
    ) -> Result<WritePosition, LogError> {
        let entries = entries.into_iter().map(|(name, value)| (entry_key(&name), value)).collect();
        self.append_with(events, &[], entries)
    }
}

impl ErasableLog for EmbeddedLog {
    fn replace(&self, topic: Topic, partition: u32, values: &[(u64, Vec<u8>)]) -> Result<(), LogError> {
        let mut writer = self.writer();
        let mut batch = self.batch();
        for (offset, value) in values {
            self.put_value(&mut batch, topic, partition, *offset, value)?;
        }
        let bytes = values.iter().map(|(_, value)| value.len()).sum();
        let ends = self.ends().clone();
        self.write(&mut writer, batch, ends, bytes)
    }

    fn scrub(&self) -> Result<u64, LogError> {
        self.drop_other_generations()?;
        let (database, written) = (&self.store.database, self.store.database.seqno());
        // Once this number is past the last write, no open read needs a superseded record.
        self.until("records", || Ok(database.supervisor.snapshot_tracker.get_seqno_safe_to_gc() > written))?;
        self.empty_journals()?;
        self.of_topics().iter().map(|keyspace| self.rewrite(keyspace)).sum()
    }
}

impl EmbeddedLog {
    /// Adds another value for a record of the turns or the dead letters to `batch`; its key and append time stay.
    pub(super) fn put_value(
        &self,
        batch: &mut OwnedWriteBatch,
        topic: Topic,
        partition: u32,
        offset: u64,
        value: &[u8],
    ) -> Result<(), LogError> {
        let keyspace = if topic == Topic::DeadLetters { &self.store.dead_letters } else { &self.store.turns };
        let key = record_key(partition, offset);
        let stored = keyspace.get(key).map_err(|e| store::store_error(self.directory(), "a read", e))?;
        let record = stored.and_then(|bytes| decode(offset, &bytes));
        let record = record.ok_or_else(|| self.damaged(topic, partition, offset, "is missing or unreadable"))?;
        batch.insert(keyspace, key, encode(record.append_ms, &record.key, Some(value)));
        Ok(())
    }

    /// Drops every generation of the memory but the current one, with its files. Single deletions would not reach them:
    /// no one reads an earlier one, and the next one is unfinished. No re-embedding runs now, because it has the log
    /// for itself; an unfinished one begins again.
    fn drop_other_generations(&self) -> Result<(), LogError> {
        let old = self.old_generations()?.into_iter().map(|(_, keyspaces)| keyspaces);
        let next = sync::lock(&self.next).clone();
        let others: Vec<MemoryKeyspaces> = old.chain(next).collect();
        if !others.is_empty() {
            let keyspaces = others.iter().flat_map(|of| [&of.records, &of.index]);
            let directories: Vec<PathBuf> = keyspaces.map(|keyspace| keyspace.path().to_owned()).collect();
            self.store.delete_generations(self.directory(), others)?;
            sync::lock(&self.dropped).extend(directories);
            *sync::lock(&self.next) = None;
        }
        // The store removes the files once nothing holds them. An earlier pass may have failed before that.
        self.until("generations", || Ok(left(&sync::lock(&self.dropped)).is_none()))?;
        sync::lock(&self.dropped).clear();
        Ok(())
    }

    /// The keyspaces that hold words or keys of the topics.
    fn of_topics(&self) -> Vec<Keyspace> {
        let EmbeddedStore { turns, memory, dead_letters, positions, .. } = &self.store;
        [turns, dead_letters, positions, &memory.records, &memory.index].into_iter().cloned().collect()
    }

    /// All keyspaces.
    fn of_store(&self) -> Vec<Keyspace> {
        self.of_topics().into_iter().chain([self.store.writes.clone(), self.store.meta.clone()]).collect()
    }

    /// Merges all tables of a keyspace into new ones, without superseded records. A file of long values is rewritten
    /// only if it holds a superseded one. Returns how many bytes were written.
    fn rewrite(&self, keyspace: &Keyspace) -> Result<u64, LogError> {
        let tables = keyspace.path().join("tables");
        let old = self.files(&tables, None)?;
        self.merge_until_gone(keyspace, &old)?;
        let mut rewritten = size(&self.files(&tables, None)?);
        let values = keyspace.path().join("blobs");
        // The first merge finds the files with superseded values; the second one rewrites their live values.
        let stale: BTreeSet<PathBuf> = {
            let version = keyspace.tree.current_version();
            version.gc_stats().keys().map(|file| values.join(file.to_string())).collect()
        };
        if !stale.is_empty() {
            let before = self.files(&values, None)?;
            self.merge_until_gone(keyspace, &stale)?;
            let new = self.files(&values, None)?.difference(&before).cloned().collect();
            rewritten += size(&self.files(&tables, None)?) + size(&new);
        }
        Ok(rewritten)
    }

    fn merge_until_gone(&self, keyspace: &Keyspace, old: &BTreeSet<PathBuf>) -> Result<(), LogError> {
        let merge = || keyspace.major_compact().map_err(|e| store::store_error(self.directory(), "erasing", e));
        merge()?;
        let mut looks = 0;
        self.until("tables", || {
            looks += 1;
            let is_left = left(old).is_some();
            if is_left && looks % MAX_CHECKS == 0 {
                merge()?;
            }
            Ok(!is_left)
        })
    }

    /// Empties the journals, after everything in them was written to tables. No one writes meanwhile.
    pub(super) fn empty_journals(&self) -> Result<(), LogError> {
        let mut writer = self.writer();
        self.flush()?;
        let since = Instant::now();
        // Checked in this order, because data moves from the active memtable to the sealed ones.
        let is_unwritten = |of: &Keyspace| !of.tree.active_memtable().is_empty() || of.sealed_memtable_count() > 0;
        while self.of_store().iter().any(is_unwritten) {
            if since.elapsed() > PATIENCE {
                return Err(self.not_erased("journals"));
            }
            std::thread::sleep(FLUSH_PAUSE);
        }
        for path in self.files(&self.directory().join(STORE), Some("jnl"))? {
            journal::empty(&path).map_err(|e| {
                writer.is_stopped = true;
                store::disk(self.directory(), "erasing", e)
            })?;
        }
        Ok(())
    }

    /// Moves everything in memory to tables.
    fn flush(&self) -> Result<(), LogError> {
        for keyspace in self.of_store() {
            keyspace.rotate_memtable().map_err(|e| store::store_error(self.directory(), "erasing", e))?;
        }
        Ok(())
    }

    /// Writes and flushes until `done`, because the store removes old files only after later writes.
    fn until(&self, what: &str, mut done: impl FnMut() -> Result<bool, LogError>) -> Result<(), LogError> {
        let since = Instant::now();
        while !done()? {
            if since.elapsed() > PATIENCE {
                return Err(self.not_erased(what));
            }
            self.move_on()?;
            self.flush()?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn not_erased(&self, what: &str) -> LogError {
        LogError::NotErased { directory: self.directory().to_owned(), what: what.to_owned() }
    }

    /// Makes an empty write: the store removes old files only after later writes.
    fn move_on(&self) -> Result<(), LogError> {
        let mut writer = self.writer();
        let (mut batch, ends) = (self.batch(), self.ends().clone());
        batch.insert(&self.store.meta, MOVED_ON_KEY, []);
        self.write(&mut writer, batch, ends, 0)
    }

    fn files(&self, directory: &Path, extension: Option<&str>) -> Result<BTreeSet<PathBuf>, LogError> {
        let listed = || {
            let mut files = BTreeSet::new();
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if extension.is_none_or(|extension| path.extension() == Some(OsStr::new(extension))) {
                    files.insert(path);
                }
            }
            Ok(files)
        };
        listed().map_err(|e| store::disk(self.directory(), "erasing", e))
    }
}

fn entry_key(name: &str) -> Vec<u8> {
    [ENTRY, name.as_bytes()].concat()
}

/// The first of the files that still exists.
fn left(files: &BTreeSet<PathBuf>) -> Option<&PathBuf> {
    files.iter().find(|file| file.exists())
}

/// Bytes of files.
fn size(files: &BTreeSet<PathBuf>) -> u64 {
    files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum()
}

//! Erasing from the embedded log: records replaced in their places, and old bytes removed from the disk.
//!
//! In: offsets with new values. Out: the same topics with those values, and a store without a file that was written
//! before. The store appends; what it supersedes lies in its journals and tables until they are replaced. A journal is
//! replaced once it is full, so it is filled up with noise; all tables of the topics are merged into new ones.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fjall::Keyspace;

use super::{
    log::EmbeddedLog,
    record::{decode, encode, encode_index, index_key, record_key},
    store::{self, MemoryKeyspaces, STORE, Store},
};
use crate::log::{ErasableLog, Generations as _, LogEntry, LogError, Topic, Written};
use nouns::{model::TurnEvent, sync};

/// The prefix of an entry's key in `positions`.
const ENTRY: &[u8] = b"entry ";
/// Bytes of one value of noise, and how many of them fill a journal: it is replaced beyond 64,000,000 bytes.
const NOISE_BYTES: usize = 4 << 20;
const NOISE_VALUES: u64 = 17;
/// A partition that no topic has. The noise lies in it, and the records that move the store on.
const NO_PARTITION: u32 = u32::MAX;
/// The key of the entries that move the store on.
const MOVED_ON_KEY: &str = "moved on";
/// How long old files may be held by readers before the attempt ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at the files.
const PAUSE: Duration = Duration::from_millis(100);
/// Looks after which tables are merged once more, because another merge held some of them.
const LOOKS: u32 = 20;

impl EmbeddedLog {
    /// The entries whose names begin with `prefix`, by name.
    pub(super) fn stored_entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let mut entries = Vec::new();
        for row in self.store.positions.prefix(entry_key(prefix)) {
            let (key, value) = row.into_inner().map_err(|e| store::failed(self.directory(), "a read", e))?;
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
    ) -> Result<Written, LogError> {
        let entries = entries.into_iter().map(|(name, value)| (entry_key(&name), value)).collect();
        self.append_with(events, &[], entries)
    }
}

impl ErasableLog for EmbeddedLog {
    fn replace(&self, topic: Topic, partition: u32, values: &[(u64, Vec<u8>)]) -> Result<(), LogError> {
        let keyspace = if topic == Topic::DeadLetters { &self.store.dead_letters } else { &self.store.turns };
        let mut writer = self.writer();
        let mut batch = self.batch();
        for (offset, value) in values {
            let key = record_key(partition, *offset);
            let stored = keyspace.get(key).map_err(|e| store::failed(self.directory(), "a read", e))?;
            let record = stored.and_then(|bytes| decode(*offset, &bytes));
            let record = record.ok_or_else(|| self.damaged(topic, partition, *offset, "is missing or unreadable"))?;
            batch.insert(keyspace, key, encode(record.append_ms, &record.key, Some(value)));
        }
        let bytes = values.iter().map(|(_, value)| value.len()).sum();
        let ends = self.ends().clone();
        self.write(&mut writer, batch, ends, bytes)
    }

    fn scrub(&self) -> Result<u64, LogError> {
        // An earlier generation is read by nobody, and nothing can be deleted in it.
        self.drop_old()?;
        let failed = |e| store::failed(self.directory(), "erasing", e);
        let (path, database) = (self.directory().join(STORE), &self.store.database);
        let (journals, written) = (self.files(&path, Some("jnl"))?, database.seqno());
        for (number, noise) in (0..NOISE_VALUES).zip(noise()) {
            self.store.dead_letters.insert(record_key(NO_PARTITION, number), noise).map_err(failed)?;
        }
        self.flush()?;
        for number in 0..NOISE_VALUES {
            self.store.dead_letters.remove(record_key(NO_PARTITION, number)).map_err(failed)?;
        }
        // Beyond the last write, no read that is still open needs a superseded record.
        let is_past = || database.supervisor.snapshot_tracker.get_seqno_safe_to_gc() > written;
        self.until("journals", || Ok(is_past() && left(&journals).is_none()))?;
        let mut rewritten = NOISE_VALUES * NOISE_BYTES as u64;
        for keyspace in self.of_topics() {
            let tables = keyspace.path().join("tables");
            let old = self.files(&tables, None)?;
            keyspace.major_compact().map_err(failed)?;
            let mut looks = 0;
            self.until("tables", || {
                looks += 1;
                let is_left = left(&old).is_some();
                if is_left && looks % LOOKS == 0 {
                    keyspace.major_compact().map_err(failed)?;
                }
                Ok(!is_left)
            })?;
            let new = self.files(&tables, None)?;
            rewritten += new.iter().filter_map(|table| Some(fs::metadata(table).ok()?.len())).sum::<u64>();
        }
        Ok(rewritten)
    }
}

impl EmbeddedLog {
    /// The keyspaces that hold what was said, or keys of it.
    fn of_topics(&self) -> Vec<Keyspace> {
        let Store { turns, memory, dead_letters, positions, .. } = &self.store;
        let next = sync::lock(&self.next).clone();
        let memories = next.into_iter().chain([memory.clone()]);
        let memories = memories.flat_map(|MemoryKeyspaces { records, index }| [records, index]);
        [turns, dead_letters, positions].into_iter().cloned().chain(memories).collect()
    }

    /// Has everything that is held in memory written to tables.
    fn flush(&self) -> Result<(), LogError> {
        for keyspace in self.of_topics().iter().chain([&self.store.writes, &self.store.meta]) {
            keyspace.rotate_memtable().map_err(|e| store::failed(self.directory(), "erasing", e))?;
        }
        Ok(())
    }

    /// Moves the store on until `done`.
    fn until(&self, what: &str, mut done: impl FnMut() -> Result<bool, LogError>) -> Result<(), LogError> {
        let since = Instant::now();
        while !done()? {
            if since.elapsed() > PATIENCE {
                let (directory, what) = (self.directory().to_owned(), what.to_owned());
                return Err(LogError::NotErased { directory, what });
            }
            self.move_on()?;
            self.flush()?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Writes something into every keyspace. The store removes old files only after later writes; and a journal only
    /// once each keyspace has a table with a record that is as new as the journal, which a deletion does not leave.
    fn move_on(&self) -> Result<(), LogError> {
        let mut writer = self.writer();
        let (mut batch, ends) = (self.batch(), self.ends().clone());
        let key = record_key(NO_PARTITION, u64::MAX);
        let record = encode(jiff::Timestamp::now().as_millisecond(), b"", None);
        let next = sync::lock(&self.next).clone();
        for MemoryKeyspaces { records, index } in next.iter().chain([&self.store.memory]) {
            batch.insert(records, key, record.as_slice());
            batch.insert(index, index_key(NO_PARTITION, MOVED_ON_KEY.as_bytes()), encode_index(u64::MAX, true));
        }
        batch.insert(&self.store.turns, key, record.as_slice());
        batch.insert(&self.store.dead_letters, key, record.as_slice());
        batch.insert(&self.store.positions, MOVED_ON_KEY, []);
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

/// The first file that still exists.
fn left(files: &BTreeSet<PathBuf>) -> Option<&PathBuf> {
    files.iter().find(|file| file.exists())
}

/// Values that no compression shortens.
fn noise() -> impl Iterator<Item = Vec<u8>> {
    let mut stream = blake3::Hasher::new().finalize_xof();
    std::iter::repeat_with(move || {
        let mut value = vec![0; NOISE_BYTES];
        stream.fill(&mut value);
        value
    })
}

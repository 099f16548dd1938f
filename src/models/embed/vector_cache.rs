//! A cache of computed vectors, by bank (decision 43).
//!
//! In: texts with their vectors, and the window that uses them. Out: the same vectors, for the same bank, model and
//! text only. Every key begins with the bank. An entry is evicted together with the last window that uses it. A bank is
//! evicted when its partition does not belong to this process, because only a partition's owner learns what is deleted
//! there. The memory log is the source of truth, and losing this directory costs only time, so no write waits for
//! fsync, and a damaged directory is replaced by an empty one. A vector in steps takes one byte per component, any
//! other vector four.
//!
//! There are four tables. `entries`: bank, model, text hash -> vectors. `uses`: bank, window, text hash, model ->
//! nothing. `users`: bank, model, text hash, window -> nothing. `positions`: partition -> the read position of its
//! turns up to which evictions are known. Fields of varying length carry their length in two bytes.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, OwnedWriteBatch};

use super::{EmbedError, SpanVectors};
use storage::keyspaces::{CACHE_JOURNAL_BYTES, keyspace_options};
use types::model::{Bank, ModelRef, SpannedText, Vector, WindowId};

/// The folder inside the caller's directory, numbered by its format.
const FOLDER: &str = "vectors-6";
/// Keys that are evicted in one batch.
const EVICTED_AT_ONCE: usize = 4_096;
/// Bytes of the cache's blocks that are kept in memory for the next read.
const MEMORY_BYTES: u64 = 256 << 10;
const HASH_BYTES: usize = 32;

/// A cache of vectors in a directory. One process at a time may have it open.
pub struct VectorCache {
    path: PathBuf,
    database: Database,
    entries: Keyspace,
    uses: Keyspace,
    users: Keyspace,
    positions: Keyspace,
}

/// Removes the cache in `directory`, which nobody has open.
///
/// # Errors
/// [`EmbedError::Cache`] when the disk refuses.
pub fn remove_cache(directory: &Path) -> Result<(), EmbedError> {
    let path = directory.join(FOLDER);
    let failed =
        |e: std::io::Error| EmbedError::Cache { path: path.clone(), problem: format!("{e}; remove it by hand") };
    storage::keyspaces::remove(&path).map_err(failed)
}

/// The vectors of an entry as it is stored in a cache's files; `None` when the bytes are not an entry.
#[must_use]
pub fn cached_vectors(entry: &[u8]) -> Option<Vec<Vector>> {
    let SpanVectors { whole, mut spans, .. } = decode(entry)?;
    spans.push(whole);
    Some(spans)
}

impl VectorCache {
    /// Opens the cache in `directory`, or creates it.
    ///
    /// A damaged cache is replaced by an empty one; the second value is the warning that says so.
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when another process has it open, or the disk refuses.
    pub fn open(directory: &Path) -> Result<(Self, Option<String>), EmbedError> {
        let path = directory.join(FOLDER);
        let refused = |error: &dyn std::fmt::Display, remedy: &str| EmbedError::Cache {
            path: path.clone(),
            problem: format!("{error}; {remedy}"),
        };
        std::fs::create_dir_all(directory).map_err(|e| refused(&e, "check the directory"))?;
        match Self::try_open(&path) {
            Ok(cache) => Ok((cache, None)),
            Err(CacheOpenFailure::Refused(error)) => {
                Err(refused(&error, "close the other process, or check permissions and space"))
            }
            Err(CacheOpenFailure::Damaged(error)) => {
                std::fs::remove_dir_all(&path).map_err(|e| refused(&e, "remove it by hand"))?;
                let cache = Self::try_open(&path).map_err(|e| refused(&e.message(), "remove it by hand"))?;
                let warning =
                    format!("{}: the cache of vectors was damaged ({error}) and is empty now", path.display());
                Ok((cache, Some(warning)))
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, CacheOpenFailure> {
        let open = || {
            let database = Database::builder(path)
                .cache_size(MEMORY_BYTES)
                .max_journaling_size(CACHE_JOURNAL_BYTES)
                .worker_threads(1)
                .open()?;
            let entries = database.keyspace("entries", keyspace_options)?;
            let uses = database.keyspace("uses", keyspace_options)?;
            let users = database.keyspace("users", keyspace_options)?;
            let positions = database.keyspace("positions", keyspace_options)?;
            Ok(Self { path: path.to_owned(), database, entries, uses, users, positions })
        };
        // The store may panic when it reads files that it did not write; that counts as damage.
        match std::panic::catch_unwind(open) {
            Ok(opened) => opened.map_err(CacheOpenFailure::of),
            Err(_) => Err(CacheOpenFailure::Damaged("unreadable files".to_owned())),
        }
    }

    /// Closes the cache. An empty cache is removed from disk, because its journal would keep its size.
    pub fn close(self) {
        let Self { path, database, entries, uses, users, positions } = self;
        let is_empty = entries.is_empty().unwrap_or(false);
        drop((entries, uses, users, positions, database));
        if is_empty {
            // A directory that cannot be removed only takes up space.
            drop(std::fs::remove_dir_all(path));
        }
    }

    /// An empty cache in the same place: evicted vectors stay in the files of the old one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn emptied(self) -> Result<Self, EmbedError> {
        let Self { path, database, entries, uses, users, positions } = self;
        drop((entries, uses, users, positions, database));
        let failed = |problem: String| EmbedError::Cache { path: path.clone(), problem };
        std::fs::remove_dir_all(&path).map_err(|e| failed(format!("{e}; remove it by hand")))?;
        Self::try_open(&path).map_err(|e| failed(e.message()))
    }

    /// The cached vectors of `texts`, in order. An unreadable entry counts as absent.
    #[must_use]
    pub fn lookup(&self, bank: &Bank, model: &ModelRef, texts: &[SpannedText]) -> Vec<Option<SpanVectors>> {
        texts
            .iter()
            .map(|text| {
                let vectors = self.entry(&entry_key(bank, model.hash.as_bytes(), &text_hash(text)))?;
                (vectors.spans.len() == text.spans.len()).then_some(vectors)
            })
            .collect()
    }

    /// Caches vectors that `window` uses; for a text that is already cached, only the window is added.
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses; nothing of the call is cached then.
    pub fn store(
        &mut self,
        bank: &Bank,
        model: &ModelRef,
        window: &WindowId,
        made: &[(&SpannedText, &SpanVectors)],
    ) -> Result<(), EmbedError> {
        let mut batch = self.database.batch();
        let model = model.hash.as_bytes();
        for (text, vectors) in made {
            let hash = text_hash(text);
            let key = entry_key(bank, model, &hash);
            batch.insert(&self.users, user_key(&key, window), Vec::new());
            if self.entry(&key).is_none() {
                batch.insert(&self.entries, key, encode(vectors));
            }
            batch.insert(&self.uses, use_key(bank, window, &hash, model), Vec::new());
        }
        self.commit(batch)
    }

    /// Removes `window` from the entries of every text except those in `keep`, and evicts the entries that no window
    /// uses any more. Called after a window was rewritten, or deleted (`keep` is empty then).
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses; nothing is evicted then.
    pub fn evict_window(&mut self, bank: &Bank, window: &WindowId, keep: &[SpannedText]) -> Result<(), EmbedError> {
        let keep: std::collections::HashSet<_> = keep.iter().map(text_hash).collect();
        let prefix = window_prefix(bank, window);
        let mut batch = self.database.batch();
        for guard in self.uses.prefix(&prefix) {
            let key = guard.key().map_err(|e| self.failed(&e))?;
            let Some((hash, model)) = key.get(prefix.len()..).and_then(|rest| rest.split_first_chunk::<HASH_BYTES>())
            else {
                continue;
            };
            if keep.contains(hash) {
                continue;
            }
            let entry_key = entry_key(bank, model, hash);
            let user = user_key(&entry_key, window);
            let mut used = false;
            for guard in self.users.prefix(&entry_key) {
                // Reading two users is enough to know whether another window uses the entry.
                used = guard.key().map_err(|e| self.failed(&e))?[..] != user[..];
                if used {
                    break;
                }
            }
            if !used {
                batch.remove(&self.entries, entry_key);
            }
            batch.remove(&self.users, user);
            batch.remove(&self.uses, key);
        }
        self.commit(batch)
    }

    /// Evicts every bank except those for which `keep` is true.
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses; a later call evicts the rest.
    pub fn retain_banks(&mut self, keep: impl Fn(&Bank) -> bool) -> Result<(), EmbedError> {
        for table in [&self.entries, &self.uses, &self.users] {
            let mut from: Vec<u8> = Vec::new();
            // Reads the first key of each bank in turn, so that a bank that stays costs only one read.
            while let Some(first) = table.range(from.clone()..).next() {
                let first = first.key().map_err(|e| self.failed(&e))?;
                let Some(prefix) = prefix_of(&first) else {
                    self.evict_prefix(table, &first)?;
                    from = after(&first);
                    continue;
                };
                let bank = prefix.get(2..).and_then(|name| std::str::from_utf8(name).ok());
                if !bank.and_then(|name| Bank::parse(name).ok()).is_some_and(|bank| keep(&bank)) {
                    self.evict_prefix(table, prefix)?;
                }
                from = after(prefix);
            }
        }
        Ok(())
    }

    fn evict_prefix(&self, table: &Keyspace, prefix: &[u8]) -> Result<(), EmbedError> {
        loop {
            let mut batch = self.database.batch();
            let mut evicted = 0;
            for guard in table.prefix(prefix).take(EVICTED_AT_ONCE) {
                batch.remove(table, guard.key().map_err(|e| self.failed(&e))?);
                evicted += 1;
            }
            self.commit(batch)?;
            if evicted < EVICTED_AT_ONCE {
                return Ok(());
            }
        }
    }

    /// The read position of a partition's turns up to which its deletions have reached the cache.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<u64> {
        let bytes = self.positions.get(partition.to_be_bytes()).ok()??;
        Some(u64::from_be_bytes(bytes[..].try_into().ok()?))
    }

    /// Records that evictions up to a read position are done; `None` removes the partition's record.
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses.
    pub fn set_position(&mut self, partition: u32, next_offset: Option<u64>) -> Result<(), EmbedError> {
        let mut batch = self.database.batch();
        match next_offset {
            Some(next) => batch.insert(&self.positions, partition.to_be_bytes(), next.to_be_bytes()),
            None => batch.remove(&self.positions, partition.to_be_bytes()),
        }
        self.commit(batch)
    }

    fn entry(&self, key: &[u8]) -> Option<SpanVectors> {
        decode(&self.entries.get(key).ok()??)
    }

    fn commit(&self, batch: OwnedWriteBatch) -> Result<(), EmbedError> {
        batch.commit().map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &fjall::Error) -> EmbedError {
        let problem = format!("{error}; check the disk, or remove the directory to start with an empty cache");
        EmbedError::Cache { path: self.path.clone(), problem }
    }
}

/// Why a cache does not open. Damage is repaired; the user has to deal with any other failure.
enum CacheOpenFailure {
    Refused(String),
    Damaged(String),
}

impl CacheOpenFailure {
    fn of(error: fjall::Error) -> Self {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let message = error.to_string();
        let io = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |e| e.source())
            .find_map(|e| e.downcast_ref::<std::io::Error>());
        let disk = [PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull];
        match error {
            fjall::Error::Locked => Self::Refused("another process has it open".to_owned()),
            _ if io.is_some_and(|e| disk.contains(&e.kind())) => Self::Refused(message),
            _ => Self::Damaged(message),
        }
    }

    fn message(self) -> String {
        match self {
            Self::Refused(message) | Self::Damaged(message) => message,
        }
    }
}

// ---------------------------------------------------------------- keys and values

/// The hash covers the text and its spans, because the same text with other spans has other vectors.
fn text_hash(text: &SpannedText) -> [u8; HASH_BYTES] {
    let mut hash = blake3::Hasher::new();
    for span in &text.spans {
        hash.update(&(span.start as u64).to_le_bytes()).update(&(span.end as u64).to_le_bytes());
    }
    hash.update(&(text.spans.len() as u64).to_le_bytes()).update(text.text.as_bytes());
    *hash.finalize().as_bytes()
}

fn put(out: &mut Vec<u8>, field: &[u8]) {
    // The checks of banks, sessions and hashes limit them far below 64 KiB.
    out.extend_from_slice(&(field.len() as u16).to_be_bytes());
    out.extend_from_slice(field);
}

fn bank_prefix(bank: &Bank) -> Vec<u8> {
    let mut key = Vec::with_capacity(128);
    put(&mut key, bank.as_str().as_bytes());
    key
}

fn entry_key(bank: &Bank, model: &[u8], text: &[u8; HASH_BYTES]) -> Vec<u8> {
    let mut key = bank_prefix(bank);
    put(&mut key, model);
    key.extend_from_slice(text);
    key
}

/// The bank's prefix of a key of any table.
fn prefix_of(key: &[u8]) -> Option<&[u8]> {
    let (length, _) = key.split_first_chunk::<2>()?;
    key.get(..2 + usize::from(u16::from_be_bytes(*length)))
}

/// The least key that is greater than every key with this prefix.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return key;
        }
    }
    vec![u8::MAX; 64]
}

fn user_key(entry_key: &[u8], window: &WindowId) -> Vec<u8> {
    let mut key = entry_key.to_vec();
    put(&mut key, window.session.0.as_bytes());
    key.extend_from_slice(&window.start.to_be_bytes());
    key
}

fn window_prefix(bank: &Bank, window: &WindowId) -> Vec<u8> {
    let mut key = bank_prefix(bank);
    put(&mut key, window.session.0.as_bytes());
    key.extend_from_slice(&window.start.to_be_bytes());
    key
}

fn use_key(bank: &Bank, window: &WindowId, text: &[u8; HASH_BYTES], model: &[u8]) -> Vec<u8> {
    let mut key = window_prefix(bank, window);
    key.extend_from_slice(text);
    key.extend_from_slice(model);
    key
}

fn encode(vectors: &SpanVectors) -> Vec<u8> {
    let mut out = Vec::new();
    put_vector(&mut out, &vectors.whole);
    out.extend_from_slice(&(vectors.spans.len() as u32).to_le_bytes());
    for (vector, weight) in vectors.spans.iter().zip(&vectors.weights) {
        put_vector(&mut out, vector);
        out.extend_from_slice(&weight.to_le_bytes());
    }
    out
}

fn put_vector(out: &mut Vec<u8>, vector: &Vector) {
    let steps = vector.as_steps();
    out.push(u8::from(steps.is_some()));
    out.extend_from_slice(&(vector.len() as u32).to_le_bytes());
    match steps {
        Some(steps) => out.extend(steps.iter().flat_map(|step| step.to_le_bytes())),
        None => out.extend(vector.floats().iter().flat_map(|x| x.to_le_bytes())),
    }
}

/// `None` when the bytes are not an entry.
fn decode(mut bytes: &[u8]) -> Option<SpanVectors> {
    let whole = take_vector(&mut bytes)?;
    let (mut spans, mut weights) = (Vec::new(), Vec::new());
    for _ in 0..take_u32(&mut bytes)? {
        spans.push(take_vector(&mut bytes)?);
        weights.push(f32::from_bits(take_u32(&mut bytes)?));
    }
    bytes.is_empty().then_some(SpanVectors { whole, spans, weights })
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*head))
}

fn take_vector(bytes: &mut &[u8]) -> Option<Vector> {
    let (in_steps, rest) = bytes.split_first()?;
    *bytes = rest;
    let component_bytes = match in_steps {
        0 => 4,
        1 => 1,
        _ => return None,
    };
    let length = usize::try_from(take_u32(bytes)?).ok()?;
    let (head, rest) = bytes.split_at_checked(length.checked_mul(component_bytes)?)?;
    *bytes = rest;
    if component_bytes == 1 {
        return Some(Vector::of_steps(head.iter().map(|step| i8::from_le_bytes([*step])).collect()));
    }
    let (floats, _) = head.as_chunks::<4>();
    Some(floats.iter().map(|x| f32::from_le_bytes(*x)).collect())
}

#[cfg(test)]
mod tests {
    // A text with one span is given as a range in a list, not as a list of its members.
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;
    use crate::embed::tests::plain;
    use types::model::SessionId;

    /// The windows that use a text's vectors.
    fn windows_of(cache: &VectorCache, bank: &Bank, model: &ModelRef, text: &SpannedText) -> Vec<WindowId> {
        let prefix = entry_key(bank, model.hash.as_bytes(), &text_hash(text));
        let window = |guard: fjall::Guard| {
            let key = guard.key().expect("readable");
            let (session, start) = key[prefix.len() + 2..].split_last_chunk::<4>().expect("a start");
            let session = SessionId(std::str::from_utf8(session).expect("a name").to_owned());
            WindowId { session, start: u32::from_be_bytes(*start) }
        };
        cache.users.prefix(&prefix).map(window).collect()
    }

    fn bank(name: &str) -> Bank {
        Bank::parse(name).expect("a valid name")
    }

    fn model(hash: &str) -> ModelRef {
        ModelRef { name: "m".to_owned(), hash: hash.to_owned() }
    }

    fn window(start: u32) -> WindowId {
        WindowId { session: SessionId("caller:s".to_owned()), start }
    }

    fn vectors(seed: f32, spans: usize) -> SpanVectors {
        let vector = |i: usize| Vector::from([seed, i as f32, -0.5]);
        let weights = (0..spans).map(|i| seed + i as f32).collect();
        SpanVectors { whole: vector(99), spans: (0..spans).map(vector).collect(), weights }
    }

    fn open() -> (tempfile::TempDir, VectorCache) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (cache, warning) = VectorCache::open(directory.path()).expect("a fresh cache");
        assert_eq!(warning, None);
        (directory, cache)
    }

    #[test]
    fn the_vectors_of_stored_bytes_are_read_without_a_cache() {
        let stored = SpanVectors { whole: vectors(7.0, 0).whole.in_steps(), ..vectors(1.0, 2) };
        let expected = [stored.spans.clone(), vec![stored.whole.clone()]].concat();
        assert_eq!(cached_vectors(&encode(&stored)), Some(expected));
        assert_eq!(cached_vectors(b"{\"turns\":[]}"), None);
    }

    #[test]
    fn an_entry_is_for_its_bank_model_text_and_spans() {
        let (directory, mut cache) = open();
        let (text, found) = (SpannedText { text: "ab".to_owned(), spans: vec![0..1, 1..2] }, vectors(1.0, 2));
        cache.store(&bank("a"), &model("h"), &window(0), &[(&text, &found)]).expect("stored");
        let check = |cache: &VectorCache| {
            let look = |b: &str, m: &str, t: &SpannedText| {
                cache.lookup(&bank(b), &model(m), std::slice::from_ref(t)).remove(0)
            };
            assert_eq!(look("a", "h", &text), Some(found.clone()));
            assert_eq!(look("a/b", "h", &text), None);
            assert_eq!(look("b", "h", &text), None);
            assert_eq!(look("a", "g", &text), None);
            assert_eq!(look("a", "h", &plain("ab")), None);
            assert_eq!(look("a", "h", &SpannedText { text: "ab".to_owned(), spans: vec![0..2] }), None);
        };
        check(&cache);
        drop(cache);
        check(&VectorCache::open(directory.path()).expect("opened again").0);
    }

    #[test]
    fn a_vector_in_steps_takes_a_quarter_and_reads_back_bit_for_bit() {
        let vector: Vector = (0..384).map(|i| ((i * 37 % 101) as f32 - 50.0) / 1_000.0).collect();
        let exact = SpanVectors { whole: vector.clone(), spans: vec![vector.clone(), vector], weights: vec![0.3, 1.7] };
        let stepped = exact.in_steps_times(1.0);
        assert_ne!(stepped, exact);
        assert_eq!([decode(&encode(&exact)), decode(&encode(&stepped))], [Some(exact.clone()), Some(stepped.clone())]);
        assert!(encode(&stepped).len() * 7 < encode(&exact).len() * 2);
    }

    #[test]
    fn an_entry_is_evicted_with_the_last_window_that_uses_it() {
        let (_directory, mut cache) = open();
        let (b, m) = (bank("a"), model("h"));
        let (shared, own) = (plain("shared"), plain("own"));
        let found = vectors(2.0, 0);
        cache.store(&b, &m, &window(0), &[(&shared, &found), (&own, &found)]).expect("stored");
        cache.store(&b, &m, &window(40), &[(&shared, &found)]).expect("stored");
        cache.store(&b, &m, &window(40), &[(&shared, &found)]).expect("stored again");
        assert_eq!(windows_of(&cache, &b, &m, &shared), [window(0), window(40)]);

        cache.evict_window(&b, &window(0), std::slice::from_ref(&own)).expect("evicted");
        assert_eq!(windows_of(&cache, &b, &m, &shared), [window(40)]);
        assert_eq!(windows_of(&cache, &b, &m, &own), [window(0)]);

        cache.evict_window(&b, &window(40), &[]).expect("evicted");
        assert_eq!(cache.lookup(&b, &m, &[shared.clone(), own.clone()]), [None, Some(found)]);
        cache.evict_window(&b, &window(0), &[]).expect("evicted");
        assert_eq!(cache.lookup(&b, &m, &[own]), [None]);
        assert!(cache.uses.is_empty().expect("readable") && cache.entries.is_empty().expect("readable"));
    }

    #[test]
    fn evicting_a_window_leaves_other_banks_alone() {
        let (_directory, mut cache) = open();
        let found = vectors(3.0, 0);
        for name in ["a", "ab", "a/b"] {
            cache.store(&bank(name), &model("h"), &window(0), &[(&plain("t"), &found)]).expect("stored");
        }
        cache.evict_window(&bank("a"), &window(0), &[]).expect("evicted");
        cache.retain_banks(|bank| bank.as_str() != "ab").expect("evicted");
        let left = |name: &str| cache.lookup(&bank(name), &model("h"), &[plain("t")]).remove(0).is_some();
        assert_eq!([left("a"), left("ab"), left("a/b")], [false, false, true]);
    }

    #[test]
    fn banks_of_other_partitions_are_evicted_in_every_table() {
        let (_directory, mut cache) = open();
        let found = vectors(4.0, 0);
        for number in 0..40 {
            for start in 0..3 {
                let name = format!("bank-{number}");
                cache.store(&bank(&name), &model("h"), &window(start), &[(&plain("t"), &found)]).expect("stored");
            }
        }
        let keep = |bank: &Bank| bank.as_str().ends_with('7');
        cache.retain_banks(keep).expect("evicted");
        for number in 0..40 {
            let name = bank(&format!("bank-{number}"));
            assert_eq!(cache.lookup(&name, &model("h"), &[plain("t")]).remove(0).is_some(), keep(&name), "{name}");
        }
        let rows = [&cache.entries, &cache.uses, &cache.users].map(|table| table.iter().count());
        assert_eq!(rows, [4, 12, 12]);
        cache.retain_banks(|_| false).expect("evicted");
        assert!([&cache.entries, &cache.uses, &cache.users].iter().all(|table| table.is_empty().expect("readable")));
    }

    #[test]
    fn a_position_is_kept_until_it_is_forgotten() {
        let (directory, mut cache) = open();
        assert_eq!(cache.position(3), None);
        cache.set_position(3, Some(70)).expect("written");
        drop(cache);
        let mut cache = VectorCache::open(directory.path()).expect("opened again").0;
        assert_eq!((cache.position(3), cache.position(4)), (Some(70), None));
        cache.set_position(3, None).expect("written");
        assert_eq!(cache.position(3), None);
    }

    /// If every window repeats a text, the bytes that a window writes for it do not grow with the number of windows.
    #[test]
    fn boilerplate_costs_bytes_in_proportion_to_its_windows() {
        let bytes = |windows: u32| {
            let (_directory, mut cache) = open();
            for start in 0..windows {
                let found = vectors(8.0, 0);
                cache.store(&bank("a"), &model("h"), &window(start), &[(&plain("t"), &found)]).expect("stored");
            }
            let size = |table: &Keyspace| -> usize {
                let row = |guard: fjall::Guard| guard.into_inner().map(|(key, value)| key.len() + value.len());
                table.iter().map(|guard| row(guard).expect("readable")).sum()
            };
            (size(&cache.entries), size(&cache.uses) + size(&cache.users))
        };
        let (few, many) = (bytes(50), bytes(500));
        assert_eq!(many.0, few.0, "the vectors are written once");
        assert_eq!(many.1, 10 * few.1);
    }

    #[test]
    fn a_damaged_cache_is_replaced_with_a_warning() {
        type CacheDamage = fn(&Path);
        let scramble: CacheDamage = |path| std::fs::write(path, b"not a store").expect("written");
        let empty: CacheDamage = |path| std::fs::write(path, b"").expect("written");
        for damage in [scramble, empty] {
            let (directory, mut cache) = open();
            std::fs::write(directory.path().join("bystander"), b"kept").expect("written");
            cache.store(&bank("a"), &model("h"), &window(0), &[(&plain("t"), &vectors(5.0, 0))]).expect("stored");
            drop(cache);
            let mut stack = vec![directory.path().join(FOLDER)];
            while let Some(path) = stack.pop() {
                for file in std::fs::read_dir(&path).expect("a directory") {
                    let path = file.expect("an entry").path();
                    if path.is_dir() { stack.push(path) } else { damage(&path) }
                }
            }
            let (mut cache, warning) = VectorCache::open(directory.path()).expect("an empty cache");
            assert!(warning.expect("a warning").contains("is empty now"));
            assert_eq!(cache.lookup(&bank("a"), &model("h"), &[plain("t")]), [None]);
            cache.store(&bank("a"), &model("h"), &window(0), &[(&plain("t"), &vectors(5.0, 0))]).expect("stored");
            assert!(directory.path().join("bystander").exists());
        }
    }

    #[test]
    fn a_second_process_is_refused_and_nothing_is_removed() {
        let (directory, mut cache) = open();
        cache.store(&bank("a"), &model("h"), &window(0), &[(&plain("t"), &vectors(6.0, 0))]).expect("stored");
        let error = VectorCache::open(directory.path()).err().expect("it is open").to_string();
        assert!(error.contains("another process has it open"), "{error}");
        assert!(cache.lookup(&bank("a"), &model("h"), &[plain("t")]).remove(0).is_some());
    }

    #[test]
    fn malformed_bytes_count_as_absent() {
        for made in [vectors(1.0, 2), vectors(1.0, 2).in_steps_times(1.0)] {
            let good = encode(&made);
            assert_eq!(decode(&good), Some(made));
            for cut in 0..good.len() {
                assert!(decode(&good[..cut]).is_none(), "{cut}");
            }
            assert!(decode(&[&[2], &good[1..]].concat()).is_none());
        }
    }
}

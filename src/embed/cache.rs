//! Vectors that were computed before, by bank.
//!
//! In: texts with their vectors, and the window that uses them. Out: the same vectors, for the
//! same bank, model and text only. Every key begins with the bank, and an entry lists the windows
//! that use it: it is evicted with the last of them. The memory log is the source of truth, and
//! losing this directory costs only time: so no write waits for fsync, and a damaged directory is
//! replaced by an empty one.
//!
//! Two tables. `entries`: bank, model, text hash -> windows, vectors. `uses`: bank, window,
//! text hash, model -> nothing. Fields of varying length carry their length in two bytes.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch};

use super::{EmbedError, SpanVectors};
use crate::model::{Bank, ModelRef, SessionId, SpannedText, Vector, WindowId};

/// The folder inside the caller's directory, numbered by its format.
const FOLDER: &str = "vectors-2";
/// Where [`VectorCache::scrub`] writes. Only these folders and the older ones are ever removed.
const FRESH_FOLDER: &str = "vectors-2.fresh";
/// Folders of older formats, which had no weights.
const OLDER_FOLDERS: [&str; 2] = ["vectors-1", "vectors-1.fresh"];
/// Bytes of values that a scrub copies in one batch.
const COPY_BYTES: usize = 4 << 20;
const MEMORY_BYTES: u64 = 16 << 20;
const HASH_BYTES: usize = 32;

/// A cache of vectors in a directory. One process at a time may have it open.
pub struct VectorCache {
    path: PathBuf,
    database: Database,
    entries: Keyspace,
    uses: Keyspace,
}

impl VectorCache {
    /// Opens the cache in `directory`, or creates it.
    ///
    /// A damaged cache, or one of an older format, is replaced by an empty one; the second value
    /// is the warning that says so.
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
        let fresh = directory.join(FRESH_FOLDER);
        if fresh.exists() {
            // A scrub was interrupted: before its last step the old files still exist.
            let mended = if path.exists() { std::fs::remove_dir_all(&fresh) } else { std::fs::rename(&fresh, &path) };
            mended.map_err(|e| refused(&e, "check the directory"))?;
        }
        let mut older = None;
        for path in OLDER_FOLDERS.map(|folder| directory.join(folder)).iter().filter(|path| path.exists()) {
            std::fs::remove_dir_all(path).map_err(|e| refused(&e, "remove the older cache by hand"))?;
            older = Some(format!("{}: the cache of vectors was of an older format and is empty now", path.display()));
        }
        match Self::try_open(&path) {
            Ok(cache) => Ok((cache, older)),
            Err(OpenFailure::Refused(error)) => {
                Err(refused(&error, "close the other process, or check permissions and space"))
            }
            Err(OpenFailure::Damaged(error)) => {
                std::fs::remove_dir_all(&path).map_err(|e| refused(&e, "remove it by hand"))?;
                let cache = Self::try_open(&path).map_err(|e| refused(&e.message(), "remove it by hand"))?;
                let warning =
                    format!("{}: the cache of vectors was damaged ({error}) and is empty now", path.display());
                Ok((cache, Some(warning)))
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, OpenFailure> {
        let open = || {
            let database = Database::builder(path).cache_size(MEMORY_BYTES).worker_threads(1).open()?;
            let entries = database.keyspace("entries", KeyspaceCreateOptions::default)?;
            let uses = database.keyspace("uses", KeyspaceCreateOptions::default)?;
            Ok(Self { path: path.to_owned(), database, entries, uses })
        };
        // The store may panic on files that it did not write; that counts as damage.
        match std::panic::catch_unwind(open) {
            Ok(opened) => opened.map_err(OpenFailure::of),
            Err(_) => Err(OpenFailure::Damaged("unreadable files".to_owned())),
        }
    }

    /// The cached vectors of `texts`, in order. An unreadable entry counts as absent.
    #[must_use]
    pub fn lookup(&self, bank: &Bank, model: &ModelRef, texts: &[SpannedText]) -> Vec<Option<SpanVectors>> {
        texts
            .iter()
            .map(|text| {
                let entry = self.entry(&entry_key(bank, model.hash.as_bytes(), &text_hash(text)))?;
                (entry.vectors.spans.len() == text.spans.len()).then_some(entry.vectors)
            })
            .collect()
    }

    /// Caches vectors that `window` uses; a cached text only gains the window.
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
            let mut windows = self.entry(&key).map(|entry| entry.windows).unwrap_or_default();
            if !windows.contains(window) {
                windows.push(window.clone());
            }
            batch.insert(&self.entries, key, encode(&windows, vectors));
            batch.insert(&self.uses, use_key(bank, window, &hash, model), Vec::new());
        }
        self.commit(batch)
    }

    /// Removes `window` from the entries of every text but `keep`, and evicts entries that no
    /// window uses. For a window that was written again, or deleted (`keep` is empty then).
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
            match self.entry(&entry_key) {
                Some(mut entry) if entry.windows.iter().any(|w| w != window) => {
                    entry.windows.retain(|w| w != window);
                    batch.insert(&self.entries, entry_key, encode(&entry.windows, &entry.vectors));
                }
                _ => batch.remove(&self.entries, entry_key),
            }
            batch.remove(&self.uses, key);
        }
        self.commit(batch)
    }

    /// Evicts everything of a bank. Old files may still hold it until [`VectorCache::scrub`].
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses; nothing is evicted then.
    pub fn evict_bank(&mut self, bank: &Bank) -> Result<(), EmbedError> {
        let prefix = bank_prefix(bank);
        let mut batch = self.database.batch();
        for table in [&self.entries, &self.uses] {
            for guard in table.prefix(&prefix) {
                batch.remove(table, guard.key().map_err(|e| self.failed(&e))?);
            }
        }
        self.commit(batch)
    }

    /// Rewrites the files, so that none holds what was evicted before.
    ///
    /// Takes as long as copying the cache. If the process is killed in the middle, the next open
    /// uses either the old files or the new ones; call it again then.
    ///
    /// # Errors
    /// [`EmbedError::Cache`] when the disk refuses; the cache can be opened again.
    pub fn scrub(self) -> Result<Self, EmbedError> {
        let path = self.path.clone();
        let fresh_path = path.with_file_name(FRESH_FOLDER);
        let disk = |problem: String| EmbedError::Cache { path: path.clone(), problem };
        let fresh = Self::try_open(&fresh_path).map_err(|e| disk(e.message()))?;
        for (from, to) in [(&self.entries, &fresh.entries), (&self.uses, &fresh.uses)] {
            let mut batch = fresh.database.batch();
            let mut bytes = 0;
            for guard in from.iter() {
                let (key, value) = guard.into_inner().map_err(|e| self.failed(&e))?;
                bytes += value.len();
                batch.insert(to, key, value);
                if bytes > COPY_BYTES {
                    fresh.commit(std::mem::replace(&mut batch, fresh.database.batch()))?;
                    bytes = 0;
                }
            }
            fresh.commit(batch)?;
        }
        // Both stores must be closed before their directories are swapped.
        drop((self, fresh));
        std::fs::remove_dir_all(&path).map_err(|e| disk(e.to_string()))?;
        std::fs::rename(&fresh_path, &path).map_err(|e| disk(e.to_string()))?;
        Self::try_open(&path).map_err(|e| disk(e.message()))
    }

    /// The windows that use a text's vectors, in the order in which they were added.
    #[must_use]
    pub fn windows_of(&self, bank: &Bank, model: &ModelRef, text: &SpannedText) -> Vec<WindowId> {
        let key = entry_key(bank, model.hash.as_bytes(), &text_hash(text));
        self.entry(&key).map(|entry| entry.windows).unwrap_or_default()
    }

    fn entry(&self, key: &[u8]) -> Option<CachedVectors> {
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

/// Why a cache does not open. Damage is repaired; the rest is for the user.
enum OpenFailure {
    Refused(String),
    Damaged(String),
}

impl OpenFailure {
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

struct CachedVectors {
    windows: Vec<WindowId>,
    vectors: SpanVectors,
}

/// Covers the text and its spans: the same text with other spans has other vectors.
fn text_hash(text: &SpannedText) -> [u8; HASH_BYTES] {
    let mut hash = blake3::Hasher::new();
    for span in &text.spans {
        hash.update(&(span.start as u64).to_le_bytes()).update(&(span.end as u64).to_le_bytes());
    }
    hash.update(&(text.spans.len() as u64).to_le_bytes()).update(text.text.as_bytes());
    *hash.finalize().as_bytes()
}

fn put(out: &mut Vec<u8>, field: &[u8]) {
    // Banks, sessions and hashes are bounded far below 64 KiB by their own checks.
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

fn encode(windows: &[WindowId], vectors: &SpanVectors) -> Vec<u8> {
    let length = 4 + 4 * vectors.whole.0.len();
    let mut out = Vec::with_capacity(64 + (1 + vectors.spans.len()) * (length + 4));
    out.extend_from_slice(&(windows.len() as u32).to_le_bytes());
    for window in windows {
        put(&mut out, window.session.0.as_bytes());
        out.extend_from_slice(&window.start.to_le_bytes());
    }
    put_vector(&mut out, &vectors.whole);
    out.extend_from_slice(&(vectors.spans.len() as u32).to_le_bytes());
    for (vector, weight) in vectors.spans.iter().zip(&vectors.weights) {
        put_vector(&mut out, vector);
        out.extend_from_slice(&weight.to_le_bytes());
    }
    out
}

fn put_vector(out: &mut Vec<u8>, vector: &Vector) {
    out.extend_from_slice(&(vector.0.len() as u32).to_le_bytes());
    out.extend(vector.0.iter().flat_map(|x| x.to_le_bytes()));
}

/// `None` when the bytes are not an entry.
fn decode(mut bytes: &[u8]) -> Option<CachedVectors> {
    let count = take_u32(&mut bytes)?;
    let mut windows = Vec::new();
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (session, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        bytes = rest;
        let session = SessionId(std::str::from_utf8(session).ok()?.to_owned());
        windows.push(WindowId { session, start: take_u32(&mut bytes)? });
    }
    let whole = take_vector(&mut bytes)?;
    let (mut spans, mut weights) = (Vec::new(), Vec::new());
    for _ in 0..take_u32(&mut bytes)? {
        spans.push(take_vector(&mut bytes)?);
        weights.push(f32::from_bits(take_u32(&mut bytes)?));
    }
    bytes.is_empty().then_some(CachedVectors { windows, vectors: SpanVectors { whole, spans, weights } })
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*head))
}

fn take_vector(bytes: &mut &[u8]) -> Option<Vector> {
    let length = usize::try_from(take_u32(bytes)?).ok()?;
    let (head, rest) = bytes.split_at_checked(length.checked_mul(4)?)?;
    *bytes = rest;
    let (floats, _) = head.as_chunks::<4>();
    Some(Vector(floats.iter().map(|x| f32::from_le_bytes(*x)).collect()))
}

#[cfg(test)]
mod tests {
    // A text with one span is a range in a list, not the list of its members.
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;
    use crate::embed::tests::plain;

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
        let vector = |i: usize| Vector([seed, i as f32, -0.5].into());
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
    fn an_entry_is_evicted_with_the_last_window_that_uses_it() {
        let (_directory, mut cache) = open();
        let (b, m) = (bank("a"), model("h"));
        let (shared, own) = (plain("shared"), plain("own"));
        let found = vectors(2.0, 0);
        cache.store(&b, &m, &window(0), &[(&shared, &found), (&own, &found)]).expect("stored");
        cache.store(&b, &m, &window(40), &[(&shared, &found)]).expect("stored");
        cache.store(&b, &m, &window(40), &[(&shared, &found)]).expect("stored again");
        assert_eq!(cache.windows_of(&b, &m, &shared), [window(0), window(40)]);

        cache.evict_window(&b, &window(0), std::slice::from_ref(&own)).expect("evicted");
        assert_eq!(cache.windows_of(&b, &m, &shared), [window(40)]);
        assert_eq!(cache.windows_of(&b, &m, &own), [window(0)]);

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
        cache.evict_bank(&bank("ab")).expect("evicted");
        let left = |name: &str| cache.lookup(&bank(name), &model("h"), &[plain("t")]).remove(0).is_some();
        assert_eq!([left("a"), left("ab"), left("a/b")], [false, false, true]);
    }

    /// Whether any file below `path` holds `needle`.
    fn holds(path: &Path, needle: &[u8]) -> bool {
        std::fs::read_dir(path).expect("a directory").any(|file| {
            let path = file.expect("an entry").path();
            if path.is_dir() {
                return holds(&path, needle);
            }
            std::fs::read(&path).expect("read").windows(needle.len()).any(|w| w == needle)
        })
    }

    #[test]
    fn after_a_scrub_no_file_holds_an_evicted_bank() {
        let (directory, mut cache) = open();
        let found = vectors(4.0, 3);
        let text = SpannedText { text: "abc".to_owned(), spans: vec![0..1, 1..2, 2..3] };
        for name in ["zanzibar-secret", "kept-bank"] {
            cache.store(&bank(name), &model("h"), &window(0), &[(&text, &found)]).expect("stored");
        }
        assert!(holds(directory.path(), b"zanzibar-secret"));
        cache.evict_bank(&bank("zanzibar-secret")).expect("evicted");
        let cache = cache.scrub().expect("rewritten");
        assert_eq!(cache.windows_of(&bank("kept-bank"), &model("h"), &text), [window(0)]);
        assert_eq!(cache.lookup(&bank("kept-bank"), &model("h"), std::slice::from_ref(&text)), [Some(found)]);
        drop(cache);
        assert!(holds(directory.path(), b"kept-bank"));
        assert!(!holds(directory.path(), b"zanzibar-secret"));
    }

    #[test]
    fn after_an_interrupted_scrub_the_cache_opens() {
        let (directory, mut cache) = open();
        cache.store(&bank("a"), &model("h"), &window(0), &[(&plain("t"), &vectors(7.0, 0))]).expect("stored");
        drop(cache);
        let (path, fresh) = (directory.path().join(FOLDER), directory.path().join(FRESH_FOLDER));
        let known = || {
            let (cache, warning) = VectorCache::open(directory.path()).expect("opened again");
            assert!(warning.is_none() && !fresh.exists());
            cache.lookup(&bank("a"), &model("h"), &[plain("t")]).remove(0).is_some()
        };
        std::fs::create_dir(&fresh).expect("the copy had begun");
        assert!(known());
        std::fs::rename(&path, &fresh).expect("the old files were gone");
        assert!(known());
    }

    #[test]
    fn a_damaged_cache_is_replaced_with_a_warning() {
        type Damage = fn(&Path);
        let scramble: Damage = |path| std::fs::write(path, b"not a store").expect("written");
        let empty: Damage = |path| std::fs::write(path, b"").expect("written");
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
        let good = encode(&[window(7)], &vectors(1.0, 2));
        assert!(decode(&good).is_some_and(|e| e.windows == [window(7)] && e.vectors == vectors(1.0, 2)));
        for cut in 0..good.len() {
            assert!(decode(&good[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_cache_of_an_older_format_is_replaced_with_a_warning() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let older = directory.path().join("vectors-1");
        std::fs::create_dir(&older).expect("made");
        std::fs::write(older.join("entries"), b"secret").expect("written");
        let (cache, warning) = VectorCache::open(directory.path()).expect("an empty cache");
        assert!(warning.expect("a warning").contains("older format and is empty now"));
        assert!(!older.exists());
        drop(cache);
        assert_eq!(VectorCache::open(directory.path()).expect("opened again").1, None);
    }
}

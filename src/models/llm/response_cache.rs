//! Paid responses on disk, by bank, and the total spending (decision 27).
//!
//! In: requests, their responses, and the windows or turns that they depend on. Out: a cached response without a call.
//! Every key begins with the bank. A response about windows (extraction) is evicted together with the last of its
//! windows; a response about what a question found is evicted together with the first of its turns. A response is on
//! disk before it is used. A damaged directory is replaced by an empty one; this only means that the responses must be
//! paid for again.
//!
//! There are three tables. `entries`: bank, contract, hash, step -> response. `uses`: bank, session and start of a
//! window or the name of a turn, contract, hash, step -> nothing. `spent`: bank, contract -> usage. Fields of varying
//! length carry their length in two bytes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use fjall::{Database, Keyspace, OwnedWriteBatch, PersistMode};
use serde::{Deserialize, Serialize};

use super::{contract::Contract, error::LlmError};
use storage::keyspaces::{self, CACHE_JOURNAL_BYTES, keyspace_options, ranges_only};
use types::{
    model::{Bank, ModelUsage, SessionId, WindowId},
    sync,
};

/// The folder inside the caller's directory, numbered by its format.
const FOLDER: &str = "responses-1";
const MEMORY_BYTES: u64 = 4 << 20;
const HASH_BYTES: usize = 32;

/// Identifies a request within one bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestKey {
    pub(super) contract: Contract,
    /// The hash of the first request; a repair has the hash of the request that it repairs.
    pub(super) hash: [u8; HASH_BYTES],
    /// 0 for the request itself, 1 for its repair.
    pub(super) step: u8,
}

/// Removes the cache in `directory`, which nobody has open.
pub(super) fn remove(directory: &Path) -> Result<(), LlmError> {
    let path = directory.join(FOLDER);
    let removed = keyspaces::remove_unused(&path).and_then(|()| keyspaces::remove(&keyspaces::directory_in_use(&path)));
    removed.map_err(|e| LlmError::Cache { path, problem: format!("{e}; remove it by hand") })
}

/// A paid response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PaidResponse {
    pub(super) text: String,
    /// The limit on completion tokens that cut it off, if one did.
    pub(super) cut_at: Option<u32>,
    /// It repeated itself and was stopped; the text ends with the first copy.
    pub(super) repeats: bool,
    /// Its `finish_reason`, if that is another than its end or the limit of its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// What it cost.
    pub(super) usage: ModelUsage,
}

#[derive(Serialize, Deserialize)]
struct CachedResponse {
    /// The windows that use it, or the turns that it depends on, as [`turn_key`]s.
    #[serde(rename = "places")]
    depends_on: Vec<WindowId>,
    response: PaidResponse,
}

/// A cache of responses in a directory. One process at a time may have it open.
pub(super) struct ResponseCache {
    path: PathBuf,
    /// Locked from reading an entry to writing it back.
    tables: Mutex<ResponseTables>,
}

/// The open tables.
struct ResponseTables {
    path: PathBuf,
    database: Database,
    entries: Keyspace,
    uses: Keyspace,
    spent: Keyspace,
}

impl ResponseCache {
    /// Opens the cache in `directory`, or creates it. A damaged one is replaced by an empty one;
    /// the second value is the warning that says so.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<String>), LlmError> {
        let path = directory.join(FOLDER);
        let refused = |error: &dyn std::fmt::Display, remedy: &str| LlmError::Cache {
            path: path.clone(),
            problem: format!("{error}; {remedy}"),
        };
        std::fs::create_dir_all(directory).map_err(|e| refused(&e, "check the directory"))?;
        let used = keyspaces::directory_in_use(&path);
        let open = || -> Result<Self, fjall::Error> {
            let tables = Mutex::new(ResponseTables::open(&used)?);
            keyspaces::remove_unused(&path)?;
            Ok(Self { path: path.clone(), tables })
        };
        match open() {
            Ok(cache) => Ok((cache, None)),
            Err(fjall::Error::Locked) => Err(refused(&"another process has it open", "close that process")),
            Err(fjall::Error::Io(e)) => Err(refused(&e, "check permissions and space")),
            Err(error) => {
                std::fs::remove_dir_all(&used).map_err(|e| refused(&e, "remove it by hand"))?;
                let cache = open().map_err(|e| refused(&e, "remove it by hand"))?;
                let path = path.display();
                let warning = format!("{path}: the cache of responses was damaged ({error}) and is empty now");
                Ok((cache, Some(format!("{warning}; the caps do not count what was spent before"))))
            }
        }
    }

    /// The cached response; `depends_on` is added to what evicts it. An unreadable entry counts
    /// as absent.
    pub(super) fn lookup(
        &self,
        bank: &Bank,
        key: &RequestKey,
        depends_on: &[WindowId],
    ) -> Result<Option<PaidResponse>, LlmError> {
        let tables = self.tables();
        let Some(mut entry) = tables.entry(&entry_key(bank, key)) else { return Ok(None) };
        let new: Vec<WindowId> = depends_on.iter().filter(|k| !entry.depends_on.contains(k)).cloned().collect();
        if !new.is_empty() {
            entry.depends_on.extend(new);
            let mut batch = tables.batch();
            tables.put(&mut batch, bank, key, &entry)?;
            tables.commit(batch)?;
        }
        Ok(Some(entry.response))
    }

    /// Caches a response.
    pub(super) fn store(
        &self,
        bank: &Bank,
        key: &RequestKey,
        depends_on: &[WindowId],
        response: &PaidResponse,
    ) -> Result<(), LlmError> {
        let tables = self.tables();
        let mut batch = tables.batch();
        let mut depends_on = depends_on.to_vec();
        depends_on.sort();
        depends_on.dedup();
        tables.put(&mut batch, bank, key, &CachedResponse { depends_on, response: response.clone() })?;
        tables.commit(batch)
    }

    /// Adds to a bank's expenses.
    pub(super) fn spend(&self, bank: &Bank, contract: Contract, usage: ModelUsage) -> Result<(), LlmError> {
        let tables = self.tables();
        let key = spent_key(bank.as_str(), contract);
        let mut spent = tables.usage(&key);
        spent += usage;
        let mut batch = tables.batch();
        batch.insert(&tables.spent, key, tables.json(&spent)?);
        tables.commit(batch)
    }

    /// Evicts the responses that no windows other than those among `changed` use, and every response that depends on
    /// one of the turns among them, except those for which `keep` is true.
    pub(super) fn evict(
        &self,
        bank: &Bank,
        changed: &[WindowId],
        keep: impl Fn(&RequestKey, &WindowId) -> bool,
    ) -> Result<(), LlmError> {
        let tables = self.tables();
        let mut batch = tables.batch();
        let mut any = false;
        for source in changed {
            let prefix = source_prefix(bank, source);
            for guard in tables.uses.prefix(&prefix) {
                let use_row = guard.key().map_err(|e| tables.failed(&e))?;
                let Some(key) = use_row.get(prefix.len()..).and_then(read_request) else { continue };
                if keep(&key, source) {
                    continue;
                }
                any = true;
                batch.remove(&tables.uses, use_row.to_vec());
                let entry_key = entry_key(bank, &key);
                let Some(mut entry) = tables.entry(&entry_key) else { continue };
                entry.depends_on.retain(|k| k != source);
                if !is_turn(source) && !entry.depends_on.is_empty() {
                    batch.insert(&tables.entries, entry_key, tables.json(&entry)?);
                    continue;
                }
                for other in &entry.depends_on {
                    batch.remove(&tables.uses, use_key(bank, other, &key));
                }
                batch.remove(&tables.entries, entry_key);
            }
        }
        if any { tables.commit(batch) } else { Ok(()) }
    }

    /// Evicts the responses of every bank that is not `ours`; what they cost stays counted.
    pub(super) fn retain_banks(&self, ours: impl Fn(&Bank) -> bool) -> Result<(), LlmError> {
        let tables = self.tables();
        let mut batch = tables.batch();
        let mut any = false;
        for table in [&tables.entries, &tables.uses] {
            for guard in table.iter() {
                let key = guard.key().map_err(|e| tables.failed(&e))?;
                let bank = read_field(&key).and_then(|(bank, _)| Bank::parse(std::str::from_utf8(bank).ok()?).ok());
                if !bank.is_some_and(|bank| ours(&bank)) {
                    any = true;
                    batch.remove(table, key);
                }
            }
        }
        if any { tables.commit(batch) } else { Ok(()) }
    }

    /// What the cached responses about each window cost.
    pub(super) fn windows(&self) -> Result<Vec<(String, WindowId, ModelUsage)>, LlmError> {
        let tables = self.tables();
        let mut found = BTreeMap::<(String, WindowId), ModelUsage>::new();
        for guard in tables.entries.iter() {
            let (key, value) = guard.into_inner().map_err(|e| tables.failed(&e))?;
            let bank = read_field(&key).and_then(|(bank, _)| String::from_utf8(bank.to_vec()).ok());
            let entry: Option<CachedResponse> = serde_json::from_slice(&value).ok();
            let (Some(bank), Some(entry)) = (bank, entry) else { continue };
            for window in entry.depends_on.into_iter().filter(|key| !is_turn(key)) {
                *found.entry((bank.clone(), window)).or_default() += entry.response.usage;
            }
        }
        Ok(found.into_iter().map(|((bank, window), usage)| (bank, window, usage)).collect())
    }

    /// What was spent, by bank and contract.
    pub(super) fn expenses(&self) -> Result<Vec<(String, Contract, ModelUsage)>, LlmError> {
        let tables = self.tables();
        let mut found = Vec::new();
        for guard in tables.spent.iter() {
            let (key, value) = guard.into_inner().map_err(|e| tables.failed(&e))?;
            let read = read_field(&key).and_then(|(bank, rest)| {
                let contract = Contract::of_byte(*rest.first()?)?;
                Some((String::from_utf8(bank.to_vec()).ok()?, contract, serde_json::from_slice(&value).ok()?))
            });
            found.extend(read);
        }
        Ok(found)
    }

    /// Copies what is live into new files, and deletes the old ones, which hold evicted responses.
    pub(super) fn rewrite(&self) -> Result<(), LlmError> {
        let mut tables = self.tables();
        let io = |error: std::io::Error| {
            let problem = format!("{error}; check permissions and space");
            LlmError::Cache { path: self.path.clone(), problem }
        };
        let copy = keyspaces::directory_of_copy(&self.path).map_err(io)?;
        let copied = ResponseTables::open(&copy).map_err(|e| tables.failed(&e))?;
        tables.copy_to(&copied)?;
        keyspaces::use_copy(&self.path).map_err(io)?;
        *tables = copied;
        keyspaces::remove_unused(&self.path).map_err(io)
    }

    fn tables(&self) -> MutexGuard<'_, ResponseTables> {
        sync::lock(&self.tables)
    }
}

impl ResponseTables {
    fn open(path: &Path) -> Result<Self, fjall::Error> {
        let database = Database::builder(path)
            .cache_size(MEMORY_BYTES)
            .max_journaling_size(CACHE_JOURNAL_BYTES)
            .worker_threads(1)
            .open()?;
        let entries = database.keyspace("entries", keyspace_options)?;
        let uses = database.keyspace("uses", ranges_only)?;
        let spent = database.keyspace("spent", keyspace_options)?;
        Ok(Self { path: path.to_owned(), database, entries, uses, spent })
    }

    /// Copies every row.
    fn copy_to(&self, other: &Self) -> Result<(), LlmError> {
        for (from, to) in [(&self.entries, &other.entries), (&self.uses, &other.uses), (&self.spent, &other.spent)] {
            for row in from.iter() {
                let (key, value) = row.into_inner().map_err(|e| self.failed(&e))?;
                to.insert(key, value).map_err(|e| self.failed(&e))?;
            }
        }
        other.database.persist(PersistMode::SyncAll).map_err(|e| self.failed(&e))
    }

    fn usage(&self, key: &[u8]) -> ModelUsage {
        let value = self.spent.get(key).ok().flatten();
        value.and_then(|v| serde_json::from_slice(&v).ok()).unwrap_or_default()
    }

    fn entry(&self, key: &[u8]) -> Option<CachedResponse> {
        serde_json::from_slice(&self.entries.get(key).ok()??).ok()
    }

    fn put(
        &self,
        batch: &mut OwnedWriteBatch,
        bank: &Bank,
        key: &RequestKey,
        entry: &CachedResponse,
    ) -> Result<(), LlmError> {
        batch.insert(&self.entries, entry_key(bank, key), self.json(entry)?);
        for source in &entry.depends_on {
            batch.insert(&self.uses, use_key(bank, source, key), Vec::new());
        }
        Ok(())
    }

    fn json(&self, value: &impl Serialize) -> Result<Vec<u8>, LlmError> {
        let failed = |e: serde_json::Error| LlmError::Cache { path: self.path.clone(), problem: e.to_string() };
        serde_json::to_vec(value).map_err(failed)
    }

    fn batch(&self) -> OwnedWriteBatch {
        self.database.batch().durability(Some(PersistMode::SyncAll))
    }

    fn commit(&self, batch: OwnedWriteBatch) -> Result<(), LlmError> {
        batch.commit().map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &fjall::Error) -> LlmError {
        let problem = format!("{error}; check the disk, or remove the directory to start with an empty cache");
        LlmError::Cache { path: self.path.clone(), problem }
    }
}

// ---------------------------------------------------------------- keys

fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    // The checks of banks and sessions limit them far below 64 KiB.
    out.extend_from_slice(&(field.len() as u16).to_be_bytes());
    out.extend_from_slice(field);
}

fn read_field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn bank_prefix(bank: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(128);
    put_field(&mut key, bank.as_bytes());
    key
}

fn put_request(out: &mut Vec<u8>, key: &RequestKey) {
    out.push(key.contract.byte());
    out.extend_from_slice(&key.hash);
    out.push(key.step);
}

fn entry_key(bank: &Bank, key: &RequestKey) -> Vec<u8> {
    let mut out = bank_prefix(bank.as_str());
    put_request(&mut out, key);
    out
}

/// Distinguishes a turn's key from a window's; no session's name begins with it.
const TURN: &str = "turn:";

/// The key of a turn, in the form of a window's.
pub(super) fn turn_key(turn: &str) -> WindowId {
    WindowId { session: SessionId(format!("{TURN}{turn}")), start: 0 }
}

fn is_turn(key: &WindowId) -> bool {
    key.session.0.starts_with(TURN)
}

fn source_prefix(bank: &Bank, source: &WindowId) -> Vec<u8> {
    let mut key = bank_prefix(bank.as_str());
    put_field(&mut key, source.session.0.as_bytes());
    key.extend_from_slice(&source.start.to_be_bytes());
    key
}

fn use_key(bank: &Bank, source: &WindowId, key: &RequestKey) -> Vec<u8> {
    let mut out = source_prefix(bank, source);
    put_request(&mut out, key);
    out
}

/// The request key at the end of a `uses` key.
fn read_request(bytes: &[u8]) -> Option<RequestKey> {
    let (contract, rest) = bytes.split_first()?;
    let (hash, rest) = rest.split_first_chunk::<HASH_BYTES>()?;
    let [step] = rest else { return None };
    Some(RequestKey { contract: Contract::of_byte(*contract)?, hash: *hash, step: *step })
}

fn spent_key(bank: &str, contract: Contract) -> Vec<u8> {
    let mut key = bank_prefix(bank);
    key.push(contract.byte());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(name: &str) -> Bank {
        Bank::parse(name).expect("a bank")
    }

    fn window(session: &str, start: u32) -> WindowId {
        WindowId { session: SessionId(session.to_owned()), start }
    }

    fn key(contract: Contract, of: &str) -> RequestKey {
        RequestKey { contract, hash: *blake3::hash(of.as_bytes()).as_bytes(), step: 0 }
    }

    fn response(text: &str) -> PaidResponse {
        PaidResponse { text: text.to_owned(), cut_at: None, repeats: false, stopped: None, usage: USED }
    }

    const USED: ModelUsage = ModelUsage { calls: 1, prompt_tokens: 10, completion_tokens: 2, milliseconds: 5 };

    struct TestCache {
        _directory: tempfile::TempDir,
        cache: ResponseCache,
    }

    fn open() -> TestCache {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, warning) = ResponseCache::open(directory.path()).expect("opens");
        assert_eq!(warning, None);
        TestCache { cache, _directory: directory }
    }

    impl TestCache {
        fn holds(&self, bank: &Bank, key: &RequestKey) -> bool {
            self.cache.lookup(bank, key, &[]).expect("reads").is_some()
        }
    }

    #[test]
    fn a_response_is_evicted_with_the_last_window_that_uses_it() {
        let home = open();
        let (a, b) = (bank("a"), bank("b"));
        let (one, two) = (window("s", 0), window("s", 40));
        let shared = key(Contract::Extract, "shared");
        home.cache.store(&a, &shared, std::slice::from_ref(&one), &response("x")).expect("stores");
        assert!(!home.holds(&b, &shared), "another bank has nothing of it");
        let again = home.cache.lookup(&a, &shared, std::slice::from_ref(&two)).expect("reads");
        assert_eq!(again, Some(response("x")));
        let evict = |window: &WindowId, keep: Option<&RequestKey>| {
            home.cache.evict(&a, std::slice::from_ref(window), |key, _| Some(key) == keep).expect("evicts");
        };
        evict(&one, None);
        assert!(home.holds(&a, &shared));
        evict(&two, Some(&shared));
        assert!(home.holds(&a, &shared), "an exception is not evicted");
        evict(&two, None);
        assert!(!home.holds(&a, &shared));
        assert_eq!(home.cache.tables().uses.iter().count(), 0);
    }

    #[test]
    fn an_answer_is_evicted_with_the_first_of_its_turns() {
        let home = open();
        let a = bank("a");
        let answer = key(Contract::Answer, "q");
        let cues = key(Contract::Cues, "q");
        home.cache.store(&a, &answer, &["t1", "t2"].map(turn_key), &response("x")).expect("stores");
        home.cache.store(&a, &cues, &[], &response("y")).expect("stores");
        let evict = |turns: [&str; 2]| {
            home.cache.evict(&a, &turns.map(turn_key), |_, _| false).expect("evicts");
        };
        evict(["t3", "t4"]);
        assert!(home.holds(&a, &answer), "other turns");
        evict(["t2", "t3"]);
        assert!(!home.holds(&a, &answer) && home.holds(&a, &cues));
        assert_eq!(home.cache.tables().uses.iter().count(), 0);
    }

    #[test]
    fn other_banks_are_evicted_and_their_cost_stays_counted() {
        let home = open();
        let (a, b) = (bank("a"), bank("a/b"));
        let k = key(Contract::Extract, "x");
        for bank in [&a, &b] {
            home.cache.store(bank, &k, &[window("s", 0)], &response("x")).expect("stores");
            home.cache.spend(bank, Contract::Extract, USED).expect("adds");
        }
        assert_eq!(home.cache.windows().expect("reads").len(), 2);
        home.cache.retain_banks(|bank| *bank == b).expect("evicts");
        assert_eq!(home.cache.windows().expect("reads"), [("a/b".to_owned(), window("s", 0), USED)]);
        assert!(!home.holds(&a, &k) && home.holds(&b, &k));
        assert_eq!(home.cache.tables().uses.iter().count(), 1);
        assert_eq!(home.cache.expenses().expect("reads").len(), 2);
    }

    #[test]
    fn a_cache_survives_a_restart_and_opens_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, _) = ResponseCache::open(directory.path()).expect("opens");
        let k = key(Contract::Plan, "x");
        cache.store(&bank("a"), &k, &[], &response("x")).expect("stores");
        for _ in 0..2 {
            cache.spend(&bank("a"), Contract::Plan, USED).expect("adds");
        }
        let error = ResponseCache::open(directory.path()).err().expect("locked").to_string();
        assert!(error.contains("another process"), "{error}");
        drop(cache);
        let (cache, _) = ResponseCache::open(directory.path()).expect("opens");
        assert_eq!(cache.lookup(&bank("a"), &k, &[]).expect("reads"), Some(response("x")));
        assert_eq!(cache.expenses().expect("reads")[0].2.calls, 2);
    }

    /// Whether a file below a directory holds these bytes.
    fn is_stored(directory: &Path, bytes: &[u8]) -> bool {
        std::fs::read_dir(directory).expect("lists").any(|entry| {
            let path = entry.expect("lists").path();
            if path.is_dir() {
                return is_stored(&path, bytes);
            }
            std::fs::read(path).expect("reads").windows(bytes.len()).any(|window| window == bytes)
        })
    }

    #[test]
    fn a_rewritten_cache_has_what_is_live_and_no_file_of_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, _) = ResponseCache::open(directory.path()).expect("opens");
        let (gone, kept) = (key(Contract::Answer, "gone"), key(Contract::Answer, "kept"));
        cache.store(&bank("a"), &gone, &[turn_key("t")], &response("a vermilion submarine")).expect("stores");
        cache.store(&bank("a"), &kept, &[turn_key("u")], &response("a red kayak")).expect("stores");
        cache.spend(&bank("a"), Contract::Answer, USED).expect("adds");
        cache.evict(&bank("a"), &[turn_key("t")], |_, _| false).expect("evicts");
        assert!(is_stored(directory.path(), b"vermilion"), "the store appends");
        for _ in 0..2 {
            cache.rewrite().expect("rewrites");
            assert!(!is_stored(directory.path(), b"vermilion"));
            assert_eq!(cache.lookup(&bank("a"), &kept, &[]).expect("reads"), Some(response("a red kayak")));
        }
        drop(cache);
        let (cache, warning) = ResponseCache::open(directory.path()).expect("opens");
        assert_eq!((warning, cache.expenses().expect("reads").len()), (None, 1));
        assert_eq!(cache.lookup(&bank("a"), &kept, &[]).expect("reads"), Some(response("a red kayak")));
        drop(cache);
        remove(directory.path()).expect("removes");
        assert!(!is_stored(directory.path(), b"kayak"));
    }
}

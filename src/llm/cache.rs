//! Responses that were paid for before, by bank, and what was spent.
//!
//! In: what a model was asked, what it said, and the windows that it was asked about. Out:
//! the same again without a call. Every key begins with the bank. A response about a window
//! (extraction) lists the windows that use it and vanishes when the last lets go; one that
//! was made of what a question found lists the turns that it rests on and vanishes when the
//! window of the first lets go. A response is on the disk before it is used: it was paid for. A damaged
//! directory is begun anew, which costs the money again and nothing else.
//!
//! Three tables. `entries`: bank, contract, hash, step -> response. `uses`: bank, session and
//! start of a window or the name of a turn, contract, hash, step -> nothing. `spent`: bank,
//! contract -> usage. Fields of varying length carry their length in two bytes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use serde::{Deserialize, Serialize};

use super::{Contract, LlmError};
use crate::model::{Bank, SessionId, Usage, WindowId};
use crate::sync;

/// The directory inside the caller's where everything lies; numbered by its format.
const FOLDER: &str = "responses-1";
const MEMORY_BYTES: u64 = 4 << 20;
const HASH_BYTES: usize = 32;

/// Which request of one bank: the hash of the first one, and how often it was put again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestKey {
    pub(super) contract: Contract,
    pub(super) hash: [u8; HASH_BYTES],
    /// 0 for the request itself, 1 for its repair.
    pub(super) step: u8,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Response {
    pub(super) text: String,
    /// The limit of a completion's tokens that it was cut at.
    pub(super) cut_at: Option<u32>,
    /// What it took.
    pub(super) usage: Usage,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// Windows, and turns by [`turn_place`].
    places: Vec<WindowId>,
    response: Response,
}

/// A cache of responses in a directory. One process at a time may have it open.
pub(super) struct ResponseCache {
    path: PathBuf,
    database: Database,
    entries: Keyspace,
    uses: Keyspace,
    spent: Keyspace,
    /// Held from reading what is changed to writing it.
    changing: Mutex<()>,
}

impl ResponseCache {
    /// Opens the cache in `directory`, making it when it is not there. A damaged one is
    /// removed and begun again; the second value then says so.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<String>), LlmError> {
        let path = directory.join(FOLDER);
        let refused = |error: &dyn std::fmt::Display, remedy: &str| LlmError::Cache {
            path: path.clone(),
            problem: format!("{error}; {remedy}"),
        };
        std::fs::create_dir_all(directory).map_err(|e| refused(&e, "check the directory"))?;
        match Self::try_open(&path) {
            Ok(cache) => Ok((cache, None)),
            Err(fjall::Error::Locked) => Err(refused(&"another process has it open", "close it")),
            Err(fjall::Error::Io(e)) => Err(refused(&e, "check permissions and space")),
            Err(error) => {
                std::fs::remove_dir_all(&path).map_err(|e| refused(&e, "remove it by hand"))?;
                let cache = Self::try_open(&path).map_err(|e| refused(&e, "remove it by hand"))?;
                let path = path.display();
                let warning = format!("{path}: the cache of responses was damaged ({error}) and begins anew");
                Ok((cache, Some(format!("{warning}; what was spent before is not known"))))
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, fjall::Error> {
        let database = Database::builder(path).cache_size(MEMORY_BYTES).worker_threads(1).open()?;
        let entries = database.keyspace("entries", KeyspaceCreateOptions::default)?;
        let uses = database.keyspace("uses", KeyspaceCreateOptions::default)?;
        let spent = database.keyspace("spent", KeyspaceCreateOptions::default)?;
        Ok(Self { path: path.to_owned(), database, entries, uses, spent, changing: Mutex::default() })
    }

    /// What was said to a request, noting that `places` use it, too. What cannot be read
    /// counts as unknown.
    pub(super) fn lookup(
        &self,
        bank: &Bank,
        key: &RequestKey,
        places: &[WindowId],
    ) -> Result<Option<Response>, LlmError> {
        let _changing = self.change();
        let Some(mut entry) = self.entry(&entry_key(bank, key)) else { return Ok(None) };
        let more: Vec<WindowId> = places.iter().filter(|p| !entry.places.contains(p)).cloned().collect();
        if !more.is_empty() {
            entry.places.extend(more);
            let mut batch = self.batch();
            self.put(&mut batch, bank, key, &entry)?;
            self.commit(batch)?;
        }
        Ok(Some(entry.response))
    }

    /// Keeps what was said.
    pub(super) fn store(
        &self,
        bank: &Bank,
        key: &RequestKey,
        places: &[WindowId],
        response: &Response,
    ) -> Result<(), LlmError> {
        let _changing = self.change();
        let mut batch = self.batch();
        let mut places = places.to_vec();
        places.sort();
        places.dedup();
        self.put(&mut batch, bank, key, &Entry { places, response: response.clone() })?;
        self.commit(batch)
    }

    /// Adds to a bank's expenses.
    pub(super) fn spend(&self, bank: &Bank, contract: Contract, usage: Usage) -> Result<(), LlmError> {
        let _changing = self.change();
        let key = spent_key(bank.as_str(), contract);
        let mut spent = self.usage(&key);
        spent += usage;
        let mut batch = self.batch();
        batch.insert(&self.spent, key, self.json(&spent)?);
        self.commit(batch)
    }

    /// Lets go of what the windows among `places` used, and of everything that rests on one of
    /// the turns among them; except for what is `kept`.
    pub(super) fn evict(
        &self,
        bank: &Bank,
        places: &[WindowId],
        kept: impl Fn(&RequestKey, &WindowId) -> bool,
    ) -> Result<(), LlmError> {
        let _changing = self.change();
        let mut batch = self.batch();
        let mut any = false;
        for place in places {
            let prefix = place_prefix(bank, place);
            for guard in self.uses.prefix(&prefix) {
                let held = guard.key().map_err(|e| self.failed(&e))?;
                let Some(key) = held.get(prefix.len()..).and_then(read_request) else { continue };
                if kept(&key, place) {
                    continue;
                }
                any = true;
                batch.remove(&self.uses, held.to_vec());
                let entry_key = entry_key(bank, &key);
                let Some(mut entry) = self.entry(&entry_key) else { continue };
                entry.places.retain(|p| p != place);
                if !is_turn(place) && !entry.places.is_empty() {
                    batch.insert(&self.entries, entry_key, self.json(&entry)?);
                    continue;
                }
                for other in &entry.places {
                    batch.remove(&self.uses, use_key(bank, other, &key));
                }
                batch.remove(&self.entries, entry_key);
            }
        }
        if any { self.commit(batch) } else { Ok(()) }
    }

    /// Drops what was said about other banks than these.
    pub(super) fn retain_banks(&self, ours: impl Fn(&Bank) -> bool) -> Result<(), LlmError> {
        let _changing = self.change();
        let mut batch = self.batch();
        let mut any = false;
        for table in [&self.entries, &self.uses] {
            for guard in table.iter() {
                let key = guard.key().map_err(|e| self.failed(&e))?;
                let bank = read_field(&key).and_then(|(bank, _)| Bank::parse(std::str::from_utf8(bank).ok()?).ok());
                if !bank.is_some_and(|bank| ours(&bank)) {
                    any = true;
                    batch.remove(table, key);
                }
            }
        }
        if any { self.commit(batch) } else { Ok(()) }
    }

    /// What the responses about each window took, of those that are kept.
    pub(super) fn windows(&self) -> Result<Vec<(String, WindowId, Usage)>, LlmError> {
        let mut found = BTreeMap::<(String, WindowId), Usage>::new();
        for guard in self.entries.iter() {
            let (key, value) = guard.into_inner().map_err(|e| self.failed(&e))?;
            let bank = read_field(&key).and_then(|(bank, _)| String::from_utf8(bank.to_vec()).ok());
            let entry: Option<Entry> = serde_json::from_slice(&value).ok();
            let (Some(bank), Some(entry)) = (bank, entry) else { continue };
            for place in entry.places.into_iter().filter(|place| !is_turn(place)) {
                *found.entry((bank.clone(), place)).or_default() += entry.response.usage;
            }
        }
        Ok(found.into_iter().map(|((bank, window), usage)| (bank, window, usage)).collect())
    }

    /// What was spent, by bank and contract.
    pub(super) fn expenses(&self) -> Result<Vec<(String, Contract, Usage)>, LlmError> {
        let mut found = Vec::new();
        for guard in self.spent.iter() {
            let (key, value) = guard.into_inner().map_err(|e| self.failed(&e))?;
            let read = read_field(&key).and_then(|(bank, rest)| {
                let contract = Contract::of_byte(*rest.first()?)?;
                Some((String::from_utf8(bank.to_vec()).ok()?, contract, serde_json::from_slice(&value).ok()?))
            });
            found.extend(read);
        }
        Ok(found)
    }

    fn usage(&self, key: &[u8]) -> Usage {
        let value = self.spent.get(key).ok().flatten();
        value.and_then(|v| serde_json::from_slice(&v).ok()).unwrap_or_default()
    }

    fn entry(&self, key: &[u8]) -> Option<Entry> {
        serde_json::from_slice(&self.entries.get(key).ok()??).ok()
    }

    fn put(&self, batch: &mut OwnedWriteBatch, bank: &Bank, key: &RequestKey, entry: &Entry) -> Result<(), LlmError> {
        batch.insert(&self.entries, entry_key(bank, key), self.json(entry)?);
        for place in &entry.places {
            batch.insert(&self.uses, use_key(bank, place, key), Vec::new());
        }
        Ok(())
    }

    fn json(&self, value: &impl Serialize) -> Result<Vec<u8>, LlmError> {
        let failed = |e: serde_json::Error| LlmError::Cache { path: self.path.clone(), problem: e.to_string() };
        serde_json::to_vec(value).map_err(failed)
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        sync::lock(&self.changing)
    }

    fn batch(&self) -> OwnedWriteBatch {
        self.database.batch().durability(Some(PersistMode::SyncAll))
    }

    fn commit(&self, batch: OwnedWriteBatch) -> Result<(), LlmError> {
        batch.commit().map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &fjall::Error) -> LlmError {
        let problem = format!("{error}; check the disk, or remove the directory to begin anew");
        LlmError::Cache { path: self.path.clone(), problem }
    }
}

// ---------------------------------------------------------------- keys

fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    // Banks and sessions are bounded far below 64 KiB by their own checks.
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

/// What the name of a turn begins with among the windows; no session's name does.
const TURN: &str = "turn:";

/// The place of a turn among the windows.
pub(super) fn turn_place(turn: &str) -> WindowId {
    WindowId { session: SessionId(format!("{TURN}{turn}")), start: 0 }
}

fn is_turn(place: &WindowId) -> bool {
    place.session.0.starts_with(TURN)
}

fn place_prefix(bank: &Bank, place: &WindowId) -> Vec<u8> {
    let mut key = bank_prefix(bank.as_str());
    put_field(&mut key, place.session.0.as_bytes());
    key.extend_from_slice(&place.start.to_be_bytes());
    key
}

fn use_key(bank: &Bank, place: &WindowId, key: &RequestKey) -> Vec<u8> {
    let mut out = place_prefix(bank, place);
    put_request(&mut out, key);
    out
}

/// What stands behind a bank and a place.
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

    fn said(text: &str) -> Response {
        Response { text: text.to_owned(), cut_at: None, usage: USED }
    }

    const USED: Usage = Usage { calls: 1, prompt_tokens: 10, completion_tokens: 2, milliseconds: 5 };

    struct Home {
        _directory: tempfile::TempDir,
        cache: ResponseCache,
    }

    fn home() -> Home {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, warning) = ResponseCache::open(directory.path()).expect("opens");
        assert_eq!(warning, None);
        Home { cache, _directory: directory }
    }

    impl Home {
        fn keeps(&self, bank: &Bank, key: &RequestKey) -> bool {
            self.cache.lookup(bank, key, &[]).expect("reads").is_some()
        }
    }

    #[test]
    fn a_response_goes_with_the_last_window_that_uses_it() {
        let home = home();
        let (a, b) = (bank("a"), bank("b"));
        let (one, two) = (window("s", 0), window("s", 40));
        let shared = key(Contract::Extract, "shared");
        home.cache.store(&a, &shared, std::slice::from_ref(&one), &said("x")).expect("stores");
        assert!(!home.keeps(&b, &shared), "another bank has nothing of it");
        let again = home.cache.lookup(&a, &shared, std::slice::from_ref(&two)).expect("reads");
        assert_eq!(again, Some(said("x")));
        let release = |window: &WindowId, keep: Option<&RequestKey>| {
            home.cache.evict(&a, std::slice::from_ref(window), |key, _| Some(key) == keep).expect("releases");
        };
        release(&one, None);
        assert!(home.keeps(&a, &shared));
        release(&two, Some(&shared));
        assert!(home.keeps(&a, &shared), "what is kept is kept");
        release(&two, None);
        assert!(!home.keeps(&a, &shared));
        assert_eq!(home.cache.uses.iter().count(), 0);
    }

    #[test]
    fn what_a_question_found_goes_with_the_first_turn() {
        let home = home();
        let a = bank("a");
        let answer = key(Contract::Answer, "q");
        let cues = key(Contract::Cues, "q");
        home.cache.store(&a, &answer, &["t1", "t2"].map(turn_place), &said("x")).expect("stores");
        home.cache.store(&a, &cues, &[], &said("y")).expect("stores");
        let release = |turns: [&str; 2]| {
            home.cache.evict(&a, &turns.map(turn_place), |_, _| false).expect("releases");
        };
        release(["t3", "t4"]);
        assert!(home.keeps(&a, &answer), "other turns");
        release(["t2", "t3"]);
        assert!(!home.keeps(&a, &answer) && home.keeps(&a, &cues));
        assert_eq!(home.cache.uses.iter().count(), 0);
    }

    #[test]
    fn other_banks_are_dropped_and_what_they_cost_is_not() {
        let home = home();
        let (a, b) = (bank("a"), bank("a/b"));
        let k = key(Contract::Extract, "x");
        for bank in [&a, &b] {
            home.cache.store(bank, &k, &[window("s", 0)], &said("x")).expect("stores");
            home.cache.spend(bank, Contract::Extract, USED).expect("adds");
        }
        assert_eq!(home.cache.windows().expect("reads").len(), 2);
        home.cache.retain_banks(|bank| *bank == b).expect("drops");
        assert_eq!(home.cache.windows().expect("reads"), [("a/b".to_owned(), window("s", 0), USED)]);
        assert!(!home.keeps(&a, &k) && home.keeps(&b, &k));
        assert_eq!((home.cache.uses.iter().count(), home.cache.expenses().expect("reads").len()), (1, 2));
    }

    #[test]
    fn it_is_there_again_after_opening_and_only_once_open() {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, _) = ResponseCache::open(directory.path()).expect("opens");
        let k = key(Contract::Plan, "x");
        cache.store(&bank("a"), &k, &[], &said("x")).expect("stores");
        for _ in 0..2 {
            cache.spend(&bank("a"), Contract::Plan, USED).expect("adds");
        }
        let told = ResponseCache::open(directory.path()).err().expect("locked").to_string();
        assert!(told.contains("another process"), "{told}");
        drop(cache);
        let (cache, _) = ResponseCache::open(directory.path()).expect("opens");
        assert_eq!(cache.lookup(&bank("a"), &k, &[]).expect("reads"), Some(said("x")));
        assert_eq!(cache.expenses().expect("reads")[0].2.calls, 2);
    }
}

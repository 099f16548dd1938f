//! The deletions that this process has read in a log.
//!
//! In: every deletion that this process extracts, restores or holds in a memory record, and every turn that is not kept
//! because of one. Out: whether a version of a turn is deleted, and how many turns of a bank were not kept. Ids come in
//! the form of [`super::SourceLog::deleted_form`], so both forms of an id with a phone number are equal. It holds a
//! hash for each deleted turn, and no ids or words. It knows nothing of partitions that only another process extracts
//! and holds.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Mutex, OnceLock, RwLock},
};

use types::{
    model::{Bank, IdSalt, TurnEvent},
    sync,
};

use super::LogError;

/// The deleted turns.
#[derive(Debug, Default)]
pub struct DeletionRegistry {
    /// The version up to which each turn is deleted. At the same version the deletion wins (decision 4), so whether the
    /// deletion or that version comes first, the version is not kept.
    versions: RwLock<HashMap<u128, u64>>,
    /// Turns that came after their deletion, by bank, since this process began to read.
    not_kept: Mutex<HashMap<Bank, u64>>,
    /// The log's salt, once an id needed it: on Kafka, reading it is a transaction.
    salt: OnceLock<IdSalt>,
}

impl DeletionRegistry {
    /// Notes that a turn is deleted up to a version.
    pub fn note(&self, bank: &Bank, turn: &str, version: u64) {
        let mut versions = self.versions.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = versions.entry(key(bank, turn)).or_default();
        *known = version.max(*known);
    }

    /// Whether a version of a turn is deleted, as far as this process has read.
    #[must_use]
    pub fn covers(&self, bank: &Bank, turn: &str, version: u64) -> bool {
        let versions = self.versions.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        !versions.is_empty() && versions.get(&key(bank, turn)).is_some_and(|deleted| version <= *deleted)
    }

    /// Notes an event of the log; events come in the log's order. `form` gives the form of an id. Returns true for a
    /// turn that is not kept because it is already deleted.
    ///
    /// # Errors
    /// That of `form`.
    pub fn note_event(
        &self,
        event: &TurnEvent,
        form: impl for<'a> Fn(&'a str) -> Result<Cow<'a, str>, LogError>,
    ) -> Result<bool, LogError> {
        match event {
            TurnEvent::Deletion(deletion) => self.note(&deletion.bank, &form(&deletion.turn)?, deletion.version),
            TurnEvent::Turn(turn) if !self.is_empty() && self.covers(&turn.bank, &form(&turn.turn)?, turn.version) => {
                *sync::lock(&self.not_kept).entry(turn.bank.clone()).or_default() += 1;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// The known salt, or the one that `read` returns.
    pub(super) fn salt(&self, read: impl FnOnce() -> Result<IdSalt, LogError>) -> Result<IdSalt, LogError> {
        match self.salt.get() {
            Some(salt) => Ok(*salt),
            None => read().map(|salt| *self.salt.get_or_init(|| salt)),
        }
    }

    fn is_empty(&self) -> bool {
        self.versions.read().unwrap_or_else(std::sync::PoisonError::into_inner).is_empty()
    }

    /// How many turns of a bank were not kept since this process began to read.
    #[must_use]
    pub fn not_kept(&self, bank: &Bank) -> u64 {
        sync::lock(&self.not_kept).get(bank).copied().unwrap_or(0)
    }
}

fn key(bank: &Bank, turn: &str) -> u128 {
    let bank = bank.as_str();
    let mut hash = xxhash_rust::xxh3::Xxh3Default::new();
    hash.update(&(bank.len() as u64).to_le_bytes());
    hash.update(bank.as_bytes());
    hash.update(turn.as_bytes());
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{EventTime, Turn, TurnDeletion};

    #[test]
    fn a_turn_that_comes_after_its_deletion_is_not_kept_until_a_higher_version() {
        let (deletions, bank) = (DeletionRegistry::default(), Bank::parse("b").unwrap());
        let turn = |id: &str, version: u64| {
            let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
            TurnEvent::Turn(Turn { version, ..Turn::new(bank.clone(), id, "Ann", "hi", time) })
        };
        let deletion = |id: &str, version: u64| TurnDeletion { bank: bank.clone(), turn: id.to_owned(), version };
        let events = [
            (turn("1", 0), false),
            (TurnEvent::Deletion(deletion("1", 3)), false),
            (turn("1", 0), true),
            (turn("1", 3), true),
            (turn("1", 4), false),
            (TurnEvent::Deletion(deletion("2", u64::MAX)), false),
            (TurnEvent::Deletion(deletion("2", 1)), false),
            (turn("2", 7), true),
            (turn("3", 0), false),
        ];
        for (event, not_kept) in events {
            assert_eq!(deletions.note_event(&event, |id| Ok(id.into())).unwrap(), not_kept, "{event:?}");
        }
        assert_eq!(deletions.not_kept(&bank), 3);
        assert!(!deletions.covers(&Bank::parse("c").unwrap(), "1", 0));
    }
}

//! What live sources need of a log: it writes their turns and their position together.
//!
//! In: the name of a source, and transactions. Out: what the source committed last. A source has one
//! writer: the newest one fences the earlier ones. The turns of a transaction and the position after them are written
//! together or not at all, so that a source that starts again misses nothing, and repeats only what was not written.

use std::borrow::Cow;

use super::{DeletionRegistry, LogError, WriteOutcomeRegistry};
use types::model::{DeadLetter, IdSalt, TurnEvent, holds_contact};

/// A log that live sources write to.
pub trait SourceLog: Send + Sync {
    /// Becomes the only writer of a source, and reads what was committed last.
    ///
    /// # Errors
    /// [`LogError`].
    fn take_source<'a>(&'a self, source: &str) -> Result<(Box<dyn SourceWriter + 'a>, SourceState), LogError>;

    /// The salt with which phone numbers and mail addresses in ids are hashed, the same for every writer of the log;
    /// makes one if there is none.
    ///
    /// # Errors
    /// [`LogError`].
    fn id_salt(&self) -> Result<IdSalt, LogError> {
        self.id_salt_or(None)
    }

    /// The salt as of [`Self::id_salt`]. If there is none, uses `first`, the salt of a bank that comes from elsewhere.
    ///
    /// # Errors
    /// [`LogError`].
    fn id_salt_or(&self, first: Option<IdSalt>) -> Result<IdSalt, LogError>;

    /// The salt as of [`Self::id_salt`], if one exists.
    ///
    /// # Errors
    /// [`LogError`].
    fn made_id_salt(&self) -> Result<Option<IdSalt>, LogError>;

    /// The deletions that this process has read.
    fn deletions(&self) -> &DeletionRegistry;

    /// What became of the writes for which callers of this process wait.
    fn outcomes(&self) -> &WriteOutcomeRegistry;

    /// The form of an id by which [`Self::deletions`] identifies turns: the hidden one, if the id holds a phone number
    /// or a mail address.
    ///
    /// # Errors
    /// As [`Self::id_salt`].
    fn deleted_form<'a>(&self, id: &'a str) -> Result<Cow<'a, str>, LogError> {
        if !holds_contact(id) {
            return Ok(Cow::Borrowed(id));
        }
        Ok(Cow::Owned(self.deletions().salt(|| self.id_salt())?.hidden(id)))
    }
}

/// The only writer of a source.
pub trait SourceWriter {
    /// Commits a transaction, all or nothing. After an error its outcome is unknown: take the source
    /// again.
    ///
    /// # Errors
    /// [`LogError::Fenced`] when another writer has taken the source.
    fn commit(&mut self, transaction: &SourceTransaction) -> Result<(), LogError>;
}

/// What a source committed last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceState {
    /// Its position; `None` before its first commit.
    pub cursor: Option<Vec<u8>>,
    /// The names that it has given.
    pub names: Option<Vec<u8>>,
}

/// What a source commits at once.
#[derive(Debug, Clone, Default)]
pub struct SourceTransaction {
    /// Events for the turns topic.
    pub events: Vec<TurnEvent>,
    /// Rejected records.
    pub dead_letters: Vec<DeadLetter>,
    /// The position after them.
    pub cursor: Vec<u8>,
    /// The names that were given; `None` if they have not changed.
    pub names: Option<Vec<u8>>,
}

/// The key under which a source's names are stored. Its position is stored under the source's own name.
pub(super) fn names_key(source: &str) -> Vec<u8> {
    [source.as_bytes(), b"\0names"].concat()
}

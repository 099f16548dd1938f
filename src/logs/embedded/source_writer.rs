//! Live sources on the embedded log: turns and the source's cursor in one write.
//!
//! In: the names of sources, and transactions. Out: the cursor and the names that each source committed
//! last. The directory's lock excludes every other writer.

use std::path::Path;

use super::{embedded_log::EmbeddedLog, store};
use crate::{
    DeletionRegistry, LogError, SourceLog, SourceState, SourceTransaction, SourceWriter, WriteOutcomeRegistry, id_salt,
    source_log::names_key,
};
use storage::private_directory::create_private;
use types::model::IdSalt;

impl SourceLog for EmbeddedLog {
    fn take_source<'a>(&'a self, source: &str) -> Result<(Box<dyn SourceWriter + 'a>, SourceState), LogError> {
        let state = SourceState {
            cursor: self.position_of(&store::source_state(source.as_bytes()))?,
            names: self.position_of(&store::source_state(&names_key(source)))?,
        };
        Ok((Box::new(EmbeddedSourceWriter { log: self, source: source.to_owned() }), state))
    }

    fn id_salt_or(&self, first: Option<IdSalt>) -> Result<IdSalt, LogError> {
        salt_of(self.directory(), first)
    }

    fn made_id_salt(&self) -> Result<Option<IdSalt>, LogError> {
        made_embedded_salt(self.directory())
    }

    fn deletions(&self) -> &DeletionRegistry {
        &self.deletions
    }

    fn outcomes(&self) -> &WriteOutcomeRegistry {
        &self.outcomes
    }
}

/// The salt of a directory's log; creates the directory if there is none.
///
/// # Errors
/// [`LogError`] when a file operation fails.
pub(crate) fn embedded_salt(directory: &Path) -> Result<IdSalt, LogError> {
    salt_of(directory, None)
}

/// The salt of a directory's log, if one exists.
///
/// # Errors
/// [`LogError`] when a file operation fails.
pub(crate) fn made_embedded_salt(directory: &Path) -> Result<Option<IdSalt>, LogError> {
    id_salt::made(directory).map_err(|e| store::disk(directory, "reading the file id-salt", e))
}

fn salt_of(directory: &Path, first: Option<IdSalt>) -> Result<IdSalt, LogError> {
    let salt = create_private(directory).and_then(|()| id_salt::of_directory(directory, first));
    salt.map_err(|e| store::disk(directory, "reading the file id-salt", e))
}

struct EmbeddedSourceWriter<'a> {
    log: &'a EmbeddedLog,
    source: String,
}

impl SourceWriter for EmbeddedSourceWriter<'_> {
    fn commit(&mut self, transaction: &SourceTransaction) -> Result<(), LogError> {
        let SourceTransaction { events, dead_letters, cursor, names } = transaction;
        let mut positions = vec![(store::source_state(self.source.as_bytes()), Some(cursor.clone()))];
        positions
            .extend(names.iter().map(|names| (store::source_state(&names_key(&self.source)), Some(names.clone()))));
        self.log.append_with(events, dead_letters, positions).map(drop)
    }
}

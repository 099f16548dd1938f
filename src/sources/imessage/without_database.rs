//! Refuses Messages' database in a build without the feature `imessage`.

use std::path::Path;

use crate::{SourceError, chat::ChatReader};
use types::config::SourceSettings;

/// Refuses the database.
///
/// # Errors
/// [`SourceError::Format`], always.
pub(super) fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    Err(SourceError::Format {
        path: settings.path.clone(),
        line: 1,
        column: 1,
        problem: "this is Messages' database, and this build was made without the feature `imessage`".to_owned(),
        remedy: "build RippleMem with its default features, or read what `imessage-exporter -f txt` writes",
    })
}

/// Whether a SQLite database is Messages'. This build cannot read it, so it always says no.
pub(super) fn is_messages(_: &Path) -> bool {
    false
}

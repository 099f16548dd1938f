//! Refuses databases in a build without the feature `opencode`.

use std::path::{Path, PathBuf};

use super::{findings::Findings, transcript_file::TranscriptFile};
use crate::SourceError;

pub(super) use self::{refuse as read_cursor, refuse as read_goose, refuse as read_opencode, refuse as read_zed};

/// Refuses a database.
///
/// # Errors
/// [`SourceError::Format`], always.
pub(super) fn refuse(file: &TranscriptFile<'_>, _: &mut Findings) -> Result<(), SourceError> {
    Err(SourceError::Format {
        path: PathBuf::from(file.origin()),
        line: 1,
        column: 1,
        problem: "this is a database, and this build was made without the feature `opencode`".to_owned(),
        remedy: "build RippleMem with its default features",
    })
}

/// Whether a database has these tables. This build cannot read it, so it always says no.
pub(super) fn has_tables(_: &Path, _: &[&str]) -> bool {
    false
}

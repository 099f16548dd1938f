//! Directories of benchmark files, and the conversations that a request names in them.
//!
//! In: a directory, or names. Out: its entries in a fixed order, or an error that names what is missing. Reads no file.

use std::path::{Path, PathBuf};

use super::error::DatasetError;

/// The entries of a directory, by name.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let failed = |source| DatasetError::Read { path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        found.push(entry.map_err(failed)?.path());
    }
    found.sort();
    Ok(found)
}

/// Checks that every name in `only` is one of a path's conversations.
pub(crate) fn check_only<'n>(
    path: &Path,
    only: &[String],
    known: impl Iterator<Item = &'n str>,
) -> Result<(), DatasetError> {
    let known: Vec<&str> = known.collect();
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let (path, name, known) = (path.to_owned(), name.clone(), known.join(", "));
            Err(DatasetError::NoConversation { path, name, known })
        }
    }
}

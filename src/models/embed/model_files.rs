//! A model's files, read and hashed.
//!
//! In: a directory and a file's name. Out: the file's bytes; the hashes of all files read so
//! far, for the model's identity. Writes nothing, downloads nothing.

use std::path::{Path, PathBuf};

use super::EmbedError;

/// Reads a model's files and hashes each.
pub(super) struct ModelFiles<'a> {
    directory: &'a Path,
    model: &'a str,
    pub(super) hashes: Vec<String>,
}

impl<'a> ModelFiles<'a> {
    pub(super) fn new(directory: &'a Path, model: &'a str) -> Self {
        Self { directory, model, hashes: Vec::new() }
    }

    /// Reads a file at its published path, or directly in the directory.
    pub(super) fn read(&mut self, file: &str) -> Result<Vec<u8>, EmbedError> {
        let mut searched: Vec<PathBuf> = vec![self.directory.join(file), self.directory.join(last_segment(file))];
        searched.dedup();
        let Some(path) = searched.iter().find(|path| path.is_file()) else {
            return Err(EmbedError::Missing { what: format!("{file} of the model {:?}", self.model), searched });
        };
        let bytes = std::fs::read(path).map_err(|source| EmbedError::Read { path: path.clone(), source })?;
        self.hashes.push(blake3::hash(&bytes).to_hex().to_string());
        Ok(bytes)
    }
}

/// The part of a path after the last slash.
pub(super) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

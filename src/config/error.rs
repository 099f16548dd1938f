//! What is wrong with a pipeline file: which file, which key, and what to write instead.

use std::path::PathBuf;

/// What is wrong with a pipeline file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{path}: cannot be read; check the path")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds a wrong key or value.
    #[error("{path}: {problem}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The key, what is wrong with it and what to write.
        problem: String,
    },
}

//! Why the tokens cannot be read or changed.

use std::path::PathBuf;

/// Why the tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file cannot be read, written or understood.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A token of this name exists.
    #[error("{path}: a token named {name:?} exists; choose another name, or revoke it first")]
    Exists {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// No token has this name.
    #[error("{path}: no token is named {name:?}; `ripplemem token list` lists the names")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A name, bank or right that is not valid.
    #[error("{0}")]
    Invalid(String),
}

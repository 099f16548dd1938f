//! Why a file of a program stays as it is.
//!
//! In: what is wrong with its text. Out: an error whose words a user reads.

use thiserror::Error;

/// Why a file stays as it is.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// It cannot be read as what it is.
    #[error("it cannot be read: {0}")]
    Text(String),
    /// It is read, but has no place for an entry.
    #[error("{0}")]
    Form(&'static str),
}

//! Why a source cannot be read.
//!
//! In: a failed read, or an invalid setting. Out: an error that names the file or key, and what to do. A
//! damaged record is never an error: it becomes a dead letter.

use std::path::{Path, PathBuf};

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file could not be opened or read.
    #[error("{path}: cannot be read after line {line}; check the path and its permissions")]
    Read {
        /// The file, or `-`.
        path: PathBuf,
        /// The last line that was read completely; 0 before the first.
        line: u64,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file does not have its format.
    #[error("{path}:{line}:{column}: {problem}; {remedy}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Line of the problem, from 1.
        line: usize,
        /// Column of the problem, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A key of the source's settings is invalid.
    #[error("source.{key}: {problem}")]
    Settings {
        /// The key.
        key: &'static str,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// The error for a file that was read up to `line`.
pub fn unreadable(path: &Path, line: u64, source: std::io::Error) -> SourceError {
    SourceError::Read { path: path.to_owned(), line, source }
}

//! Why an origin cannot be read.
//!
//! In: a failed read, or a setting that does not fit. Out: an error that names the place and what
//! to do. A damaged record is never an error: it becomes a dead letter.

use std::path::{Path, PathBuf};

/// Why an origin cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file could not be opened or read.
    #[error("{path}: cannot be read after line {line}; check the path and its rights")]
    Read {
        /// The file, or `-`.
        path: PathBuf,
        /// The last line that was read whole; 0 before the first.
        line: u64,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file as a whole is not of its format.
    #[error("{path}:{line}:{column}: {problem}; {remedy}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Line of the first mistake, from 1.
        line: usize,
        /// Column of the first mistake, from 1.
        column: usize,
        /// What was found.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A key of the source's settings does not fit.
    #[error("source.{key}: {problem}")]
    Settings {
        /// The key.
        key: &'static str,
        /// What is wrong and what to write.
        problem: String,
    },
}

/// The error of a file that could be read up to `line`.
pub(super) fn unreadable(path: &Path, line: u64, source: std::io::Error) -> SourceError {
    SourceError::Read { path: path.to_owned(), line, source }
}

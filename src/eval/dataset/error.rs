//! Why a benchmark file has no questions. Each error names the file and what to do.

use std::path::PathBuf;

/// Why a benchmark file has no questions.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file could not be read.
    #[error("{path}: cannot be read; check the path and its permissions")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file as a whole is not of its format, for example because a download was cut off.
    #[error(
        "{path}:{line}:{column}: {problem}; fetch the whole file again, in the form in which {format} is published"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Line of the first error, from 1.
        line: usize,
        /// Column of the first error, from 1.
        column: usize,
        /// What the parser found.
        problem: String,
        /// The format's name.
        format: &'static str,
    },
    /// A requested conversation is not there.
    #[error("{path}: holds no conversation {name:?}; name one of these: {known}")]
    NoConversation {
        /// The file or directory.
        path: PathBuf,
        /// The requested name.
        name: String,
        /// The names that are there.
        known: String,
    },
    /// No question is left to ask.
    #[error("{path}: holds no question that can be asked: {why}; check the file and --conversations")]
    Empty {
        /// The file.
        path: PathBuf,
        /// The kinds of damage with their counts.
        why: String,
    },
}

//! Why a bank did not move.
//!
//! In: the pipeline's errors, and what only a transfer can find wrong. Out: one error that names
//! the file and line, or the bank, and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{log::LogError, model::Bank};

use super::PipelineError;

/// Why a bank did not move.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A room failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The file system refused.
    #[error("{path}: {doing} failed: {source}; check the path, its rights and the room on the disk")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not one that can be imported.
    #[error("{path}, line {line}: {problem}")]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The bank's vectors are of another model than the log's.
    #[error(
        "{path}, line 1: the bank was made with model {found}, {place} {expected}: vectors of two models are never \
         compared; export it again after `ripplemem reembed --pipeline FILE` there, with a file that names {expected}"
    )]
    Model {
        /// The file.
        path: PathBuf,
        /// The model of the bank.
        found: String,
        /// Who names the other one: `the pipeline names` or `the log was made with`.
        place: &'static str,
        /// The other one.
        expected: String,
    },
    /// The log holds something else under the bank's name.
    #[error(
        "bank {bank}: the log holds it already, with other content: {problem}; import into a log without it. An import \
         that was stopped goes on as long as no turn of the bank was written since"
    )]
    There {
        /// The bank.
        bank: Bank,
        /// What differs.
        problem: String,
    },
    /// There is nothing to export.
    #[error("bank {bank}: the log holds nothing of it; `ripplemem tap memory` shows what there is")]
    Unknown {
        /// The bank.
        bank: Bank,
    },
    /// The memory makes something else of the same records.
    #[error(
        "bank {bank}: all records were written, but the memory makes other {what} of them than where they come from: \
         {found}, not {expected}; use the same build on both sides, or report this"
    )]
    Digest {
        /// The bank.
        bank: Bank,
        /// `units` or `edges`.
        what: &'static str,
        /// What it makes.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Someone else took the partition, again and again.
    #[error(
        "partition {partition}: a running service took it back {times} times; import again: what was written stays, and \
         it goes on"
    )]
    Fenced {
        /// The partition.
        partition: u32,
        /// How often.
        times: u32,
    },
}

impl From<LogError> for TransferError {
    fn from(error: LogError) -> Self {
        Self::Pipeline(error.into())
    }
}

impl TransferError {
    pub(super) fn file(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), doing, source }
    }
}

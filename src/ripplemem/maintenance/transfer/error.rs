//! Why a bank did not move.
//!
//! In: the pipeline's errors, and what only a transfer can find wrong. Out: one error that names
//! the file and line, or the bank, and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use logs::LogError;
use types::model::Bank;

use super::PipelineError;

/// Why a bank did not move.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The pipeline failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A file operation failed.
    #[error("{path}: {doing} failed: {source}; check the path, its permissions and the free space on the disk")]
    File {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be imported.
    #[error("{path}, line {line}: {problem}")]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The bank's vectors are of another model than the log's.
    #[error(
        "{path}, line 1: the bank was made with model {found}, but {place} {expected}: vectors of two models are never \
         compared; export it again after `ripplemem reembed --pipeline FILE` there, with a file that names {expected}"
    )]
    Model {
        /// The file.
        path: PathBuf,
        /// The model of the bank.
        found: String,
        /// Which side names the other model: `the pipeline names` or `the log was made with`.
        place: &'static str,
        /// The other model.
        expected: String,
    },
    /// The log holds different content under the bank's name.
    #[error(
        "bank {bank}: the log holds it already, with different content: {problem}; import into a log without it. A \
         stopped import can be repeated as long as no turn of the bank was written since"
    )]
    BankExists {
        /// The bank.
        bank: Bank,
        /// What differs.
        problem: String,
    },
    /// The file would replace an existing one that may have the records that cannot be read.
    #[error(
        "{path}: the file exists, and {records} record(s) of the bank cannot be read, so the new file would lack them: \
         {first}; repair them with `ripplemem import` of an earlier export, or name another file"
    )]
    WouldReplace {
        /// The file.
        path: PathBuf,
        /// How many records cannot be read.
        records: usize,
        /// The first of them, and why.
        first: String,
    },
    /// Another process replaced records of the bank faster than they were read.
    #[error(
        "bank {bank}: its records changed faster than they were read, {times} times in a row; export again while less \
         is written to it"
    )]
    Changing {
        /// The bank.
        bank: Bank,
        /// Number of attempts.
        times: u32,
    },
    /// The log has no record of the bank.
    #[error("bank {bank}: the log has no record of it; `ripplemem tap memory` shows its records")]
    UnknownBank {
        /// The bank.
        bank: Bank,
    },
    /// The memory derives different units or edges from the same records.
    #[error(
        "bank {bank}: all records were written, but the memory derives different {what} from them than the exporting \
         side: {found}, not {expected}; use the same build on both sides, or report this"
    )]
    Digest {
        /// The bank.
        bank: Bank,
        /// `units` or `edges`.
        what: &'static str,
        /// The digest here.
        found: String,
        /// The digest of the exporting side.
        expected: String,
    },
    /// A running service took the partition back at every attempt.
    #[error(
        "partition {partition}: a running service took it over {times} times during the import; import again: it continues \
         after the records that were written"
    )]
    Fenced {
        /// The partition.
        partition: u32,
        /// Number of attempts.
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

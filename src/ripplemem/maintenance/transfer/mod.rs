//! Moves one bank out of a log, and into another (decision 36).
//!
//! In: a bank of a log. Out: a file with its live memory records, and the same bank in another
//! log, of either kind and with any number of partitions. No model runs: units and vectors are moved unchanged.
//!
//! - `export`: log to file; `online_export`: the same for a log that another process has open.
//! - `import`: file to log.
//! - `import_record_check`: the conditions that a record must meet before anything is written.
//! - `export_file`: the file's lines, its hash and its seal.
//! - `bank_memory`: the units and edges of the bank's records, on both sides.

mod bank_memory;
mod error;
mod export;
mod export_file;
mod import;
mod import_record_check;
mod online_export;
#[cfg(test)]
mod tests;

use super::{PipelineError, unreadable_topic_record::UnreadableTopicRecord};

pub use error::TransferError;
pub use export::{ExportReport, export};
pub use import::{ImportReport, import};
pub use online_export::{BankReader, export_online};

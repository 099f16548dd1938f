//! Moves one bank out of a log, and into another.
//!
//! In: a bank of a log. Out: a file with its live memory records, and the same bank in another
//! log, of either kind and with any number of partitions. No model runs: units and vectors are moved unchanged.
//!
//! - `export`: log to file; `beside`: the same for a log that another process has open.
//! - `import`: file to log.
//! - `check`: the conditions that a record must meet before anything is written.
//! - `file`: the file's lines, its hash and its seal.
//! - `bank_memory`: the units and edges of the bank's records, on both sides.

mod bank_memory;
mod beside;
mod check;
mod error;
mod export;
mod file;
mod import;
#[cfg(test)]
mod tests;

use super::{PipelineError, unreadable::UnreadableAt};

pub use beside::{BankReader, export_beside};
pub use error::TransferError;
pub use export::{ExportReport, export};
pub use import::{ImportReport, import};

//! One bank out of a log, and into another.
//!
//! In: a bank of a log. Out: a file with its live memory records, and the same bank in
//! another log, of either kind and any number of partitions. No model runs: what was
//! extracted and embedded moves as it is. The files: `file` is the form, `export` and
//! `import` what their names say.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    config::Pipeline,
    log::LogError,
    memory::{CensusProbe, Extraction, Listeners, Load, MemoryHandle, RecordKey},
    model::{Bank, ExportDigest, MemoryKey, MemoryRecord, Score},
};

use super::PipelineError;

mod export;
mod file;
mod import;
#[cfg(test)]
mod tests;

pub use export::{Exported, export};
pub use import::{Imported, import};

/// A load of the memory is closed past so many units.
const LOAD_UNITS: usize = 4_096;

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
    fn file(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), doing, source }
    }
}

/// A memory of one bank alone.
struct BankMemory {
    memory: MemoryHandle,
    dimensions: Option<usize>,
    load: Load,
    units: usize,
}

impl BankMemory {
    fn start(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let threshold = Score::from_f64(pipeline.model().semantic_threshold);
        let memory = MemoryHandle::start(&pipeline.memory, threshold, Listeners::default())?;
        Ok(Self { memory, dimensions: None, load: Load::default(), units: 0 })
    }

    /// Takes a live record; the error says what is wrong with it.
    fn take(&mut self, key: &MemoryKey, record: &MemoryRecord) -> Result<Result<(), String>, PipelineError> {
        if let Some(unit) = record.units.first() {
            self.dimensions.get_or_insert(unit.vector.0.len());
        }
        let extraction = match Extraction::new(record, self.dimensions.unwrap_or_default()) {
            Ok(extraction) => extraction,
            Err(problem) => return Ok(Err(problem)),
        };
        self.units += extraction.units.len();
        self.load.changes.push((RecordKey::from(key), Some(Arc::new(extraction))));
        if self.units > LOAD_UNITS {
            self.memory.load(std::mem::take(&mut self.load))?;
            self.units = 0;
        }
        Ok(Ok(()))
    }

    /// What it holds.
    fn digest(mut self) -> Result<ExportDigest, PipelineError> {
        self.memory.load(std::mem::take(&mut self.load))?;
        let census = self.memory.census(CensusProbe { bank: None, listing: false })?.value;
        Ok(ExportDigest {
            units: census.units,
            semantic_edges: census.semantic_edges,
            structural_edges: census.structural_edges,
            hash: format!("{:032x}", census.hash),
            units_hash: format!("{:032x}", census.units_hash),
        })
    }
}

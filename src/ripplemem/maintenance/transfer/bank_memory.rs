//! A memory with only one bank, to compare both sides of a transfer.
//!
//! In: the bank's live records. Out: the counts and hashes of its units and edges. Follows no log.

use std::sync::Arc;

use memory::index::{CensusProbe, ChangeListeners, RecordKey, RecordLoad, RecordUnits, ShardHandle};
use types::{
    config::Pipeline,
    model::{ExportDigest, MemoryKey, MemoryRecord, Score},
};

use super::PipelineError;

/// Units loaded at once.
const LOAD_UNITS: usize = 4_096;

/// A memory of one bank alone.
pub(super) struct BankMemory {
    memory: ShardHandle,
    dimensions: Option<usize>,
    load: RecordLoad,
    units: usize,
}

impl BankMemory {
    pub(super) fn start(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let threshold = Score::from_f64(pipeline.model().semantic_threshold);
        let memory = ShardHandle::start(&pipeline.memory, threshold, ChangeListeners::default())?;
        Ok(Self { memory, dimensions: None, load: RecordLoad::default(), units: 0 })
    }

    /// Adds a live record; the inner error says what is wrong with it.
    pub(super) fn take(&mut self, key: &MemoryKey, record: &MemoryRecord) -> Result<Result<(), String>, PipelineError> {
        if let Some(unit) = record.units.first() {
            self.dimensions.get_or_insert(unit.vector.len());
        }
        let extraction = match RecordUnits::new(record, self.dimensions.unwrap_or_default()) {
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

    /// The counts and hashes of its units and edges.
    pub(super) fn digest(mut self) -> Result<ExportDigest, PipelineError> {
        self.memory.load(std::mem::take(&mut self.load))?;
        let census = self.memory.census(CensusProbe { bank: None, hashing: true, listing: false })?.value;
        Ok(ExportDigest {
            units: census.units,
            semantic_edges: census.semantic_edges,
            structural_edges: census.structural_edges,
            hash: format!("{:032x}", census.hash),
            units_hash: format!("{:032x}", census.units_hash),
        })
    }
}

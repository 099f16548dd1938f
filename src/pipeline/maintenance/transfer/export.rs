//! A bank of a log to a file.
//!
//! In: a log. Out: the bank's live records as of the end of a transaction, with the digest of the
//! memory that they give. Writes nothing to a Kafka log. On an embedded log it first extracts the
//! turns that are not extracted yet, since no service would.

use std::path::Path;

use super::{TransferError, bank_memory::BankMemory, file::FileWriter};
use crate::{
    config::{LogKind, Pipeline},
    log::{self, Topic, partition_of},
    model::{Bank, EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportRecord, SCHEMA_VERSION},
    pipeline::{
        PipelineError, Progress,
        ingest::{Extractors, Stage, Vectors},
        replica::{LiveRecords, edge_settings, record_of},
    },
};

/// What an export wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Records.
    pub records: u64,
    /// The digest of the memory that they give.
    pub digest: ExportDigest,
    /// Turns of the bank's partition, of any bank, that are not extracted yet.
    pub lag: u64,
}

/// Writes the bank's live records to a file, which appears only once it is complete.
///
/// # Errors
/// [`TransferError`]; an existing file of that name is unchanged.
pub fn export(
    pipeline: &Pipeline,
    bank: &Bank,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Exported, TransferError> {
    let log = log::open(&pipeline.log)?;
    let partition = partition_of(bank, log.partitions());
    if pipeline.log.kind == LogKind::Embedded && log.lag(partition, log.read_position(partition)?)? > 0 {
        let (extractors, mut vectors) = (Extractors::new(pipeline)?, Vectors::new(pipeline));
        // Windows that wait for the language model are exported so, and read after the import.
        if let Some(model) = &extractors.model {
            model.pause();
        }
        let mut stage = Stage::take_over(partition, pipeline, &*log)?;
        while stage.step(&*log, &extractors, &mut vectors, pipeline.embed.read_turns)?.is_some() {}
    }
    let lag = log.lag(partition, log.read_position(partition)?)?;
    // The header comes first and names the model of the vectors.
    let mut model = None;
    let live = LiveRecords::of(&*log, Topic::Memory, partition, |key, record| {
        let ours = key.bank == *bank;
        if ours && model.is_none() {
            let value = record_of(partition, record)?;
            model = (!value.units.is_empty()).then_some(value.model);
        }
        Ok(ours)
    })?;
    if live.len() == 0 {
        return Err(TransferError::UnknownBank { bank: bank.clone() });
    }
    let header = ExportHeader {
        form: EXPORT_FORM.to_owned(),
        version: EXPORT_VERSION,
        schema: SCHEMA_VERSION,
        bank: bank.clone(),
        model: model.clone(),
        settings: edge_settings(pipeline),
    };
    let mut file = FileWriter::create(to, &header)?;
    let mut memory = BankMemory::start(pipeline)?;
    let (mut written, mut refused) = (0, None);
    live.each(&*log, &mut |key, record| {
        let value = record_of(partition, record)?;
        let failed = |problem| PipelineError::Record { partition, offset: record.offset, problem };
        if !value.units.is_empty() && Some(&value.model) != model.as_ref() {
            return Err(failed(format!(
                "vectors of model {} beside another's; ingest into a new log",
                value.model.hash
            )));
        }
        memory.take(key, &value)?.map_err(failed)?;
        if refused.is_none() {
            refused = file.record(&ExportRecord { key: key.clone(), value }).err();
        }
        written += 1;
        progress(Progress { doing: "exporting", done: written, total: Some(live.len()), unit: "records" });
        Ok(())
    })?;
    refused.map_or(Ok(()), Err)?;
    let digest = memory.digest()?;
    file.finish(digest.clone())?;
    Ok(Exported { records: written, digest, lag })
}

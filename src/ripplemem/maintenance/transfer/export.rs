//! Writes a bank of a log to a file.
//!
//! In: a log. Out: the bank's live records as of the end of a transaction, with the digest of the resulting memory. A
//! record that would quarantine the bank is left out of the file, and reported by name; such a file never replaces an
//! existing one, which may have the record. Writes nothing to a Kafka log. On an embedded log it first extracts the
//! turns that are not extracted yet, since no service would.

use std::path::Path;

use super::{
    PipelineError, TransferError, UnreadableTopicRecord, bank_memory::BankMemory, export_file::ExportFileWriter,
};
use ingest::{CachedEmbedder, ExtractionStage, ExtractorSet};
use logs::{self, LogRecord, Topic, memory_name, partition_of};
use pipeline::{LiveRecords, Progress, record_of};
use replica::edge_settings;
use types::{
    config::{LogKind, Pipeline},
    model::{
        Bank, EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportRecord, IdSalt, MemoryKey, ModelRef,
        SCHEMA_VERSION,
    },
};

/// What an export wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// Records.
    pub records: u64,
    /// The digest of the memory that results from them.
    pub digest: ExportDigest,
    /// How many turns of the bank's partition, of any bank, are not extracted yet, at most.
    pub lag: u64,
    /// The live records that are not in the file, because they cannot be read.
    pub unreadable: Vec<UnreadableTopicRecord>,
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
) -> Result<ExportReport, TransferError> {
    let log = logs::open(&pipeline.log)?;
    let partition = partition_of(bank, log.partitions());
    if pipeline.log.kind == LogKind::Embedded && log.lag(partition, log.progress(partition)?.of(bank))? > 0 {
        let (extractors, mut vectors) = (ExtractorSet::new(pipeline, log.news())?, CachedEmbedder::new(pipeline));
        // Windows that still wait for the language model are exported in that state; it reads them after the import.
        if let Some(model) = &extractors.model {
            model.pause();
        }
        let mut stage = ExtractionStage::take_over(partition, pipeline, &*log, None)?;
        while stage.step(&*log, &extractors, &mut vectors, pipeline.embed.read_turns)?.is_some() {}
    }
    let lag = log.lag(partition, log.progress(partition)?.of(bank))?;
    // The header comes first and names the model of the vectors.
    let (mut of_partition, mut has_units) = (None, false);
    let live = LiveRecords::of(&*log, Topic::Memory, partition, |key, record| {
        let ours = key.bank == *bank;
        // The other vectors of the partition are compared with the model of its first ones.
        if (of_partition.is_none() || (ours && !has_units))
            && let Ok(value) = record_of(partition, key, record)?
            && !value.units.is_empty()
        {
            has_units |= ours && *of_partition.get_or_insert_with(|| value.model.clone()) == value.model;
        }
        Ok(ours)
    })?;
    let topic = memory_name(log.generation());
    let export = BankExport { pipeline, bank, to, partition, topic: &topic, id_salt: log.made_id_salt()? };
    let model = of_partition.filter(|_| has_units);
    export.write(model, live.count(), lag, |show| live.each(&*log, show), progress)
}

/// What a live record is shown to.
type RecordVisitor<'s> = dyn FnMut(&MemoryKey, &LogRecord) -> Result<(), PipelineError> + 's;

/// A bank whose live records are known, and the file for it.
pub(super) struct BankExport<'e> {
    pub pipeline: &'e Pipeline,
    pub bank: &'e Bank,
    pub to: &'e Path,
    pub partition: u32,
    /// The memory topic's name, for reports.
    pub topic: &'e str,
    pub id_salt: Option<IdSalt>,
}

impl BankExport<'_> {
    /// Writes the file. `model` is that of the bank's vectors; `each` passes the `count` live records on; `lag` is
    /// reported.
    pub(super) fn write(
        self,
        model: Option<ModelRef>,
        count: u64,
        lag: u64,
        each: impl FnOnce(&mut RecordVisitor<'_>) -> Result<(), PipelineError>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ExportReport, TransferError> {
        let Self { pipeline, bank, to, partition, topic, id_salt } = self;
        if count == 0 {
            return Err(TransferError::UnknownBank { bank: bank.clone() });
        }
        let header = ExportHeader {
            form: EXPORT_FORM.to_owned(),
            version: EXPORT_VERSION,
            schema: SCHEMA_VERSION,
            bank: bank.clone(),
            model: model.clone(),
            settings: edge_settings(pipeline),
            id_salt,
        };
        let mut file = ExportFileWriter::create(to, &header)?;
        let mut memory = BankMemory::start(pipeline)?;
        let (mut written, mut unreadable, mut refused) = (0, Vec::new(), None);
        each(&mut |key, record| {
            let taken = match record_of(partition, key, record)? {
                Ok(value) if !value.units.is_empty() && Some(&value.model) != model.as_ref() => {
                    Err(format!("vectors of model {}, although others are of another model", value.model.hash))
                }
                Ok(value) => memory.take(key, &value)?.map(|()| value),
                Err(problem) => Err(problem),
            };
            match taken {
                Ok(value) => {
                    if refused.is_none() {
                        refused = file.record(&ExportRecord { key: key.clone(), value }).err();
                    }
                    written += 1;
                }
                Err(problem) => unreadable.push(UnreadableTopicRecord::new(topic, partition, key, record, problem)),
            }
            let done = written + unreadable.len() as u64;
            progress(Progress { doing: "exporting", done, total: Some(count), unit: "records" });
            Ok(())
        })?;
        refused.map_or(Ok(()), Err)?;
        if let Some(first) = unreadable.first().filter(|_| to.exists()) {
            let (path, first, records) = (to.to_owned(), first.to_string(), unreadable.len());
            return Err(TransferError::WouldReplace { path, records, first });
        }
        let digest = memory.digest()?;
        file.finish(digest.clone())?;
        Ok(ExportReport { records: written, digest, lag, unreadable })
    }
}

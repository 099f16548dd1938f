//! A file to a bank of a log.
//!
//! In: a file that [`super::export`] wrote. Out: its records in the log, and what the memory
//! makes of them. Nothing is written before the whole file is known to be what was sealed and
//! to fit the log. Killed between two transactions, it goes on when it is run again: what is
//! there already is left.
//!
//! On Kafka it owns the bank's partition while it writes, as an extractor does. A service that
//! runs commits nothing meanwhile: what it made without knowing of the bank is refused, and it
//! takes the partition over again, with what is there by then. No acknowledged turn is lost.

use std::{collections::HashMap, path::Path};

use super::{
    TransferError,
    bank_memory::BankMemory,
    file::{FileReader, Line},
};
use crate::{
    config::Pipeline,
    embed,
    log::{self, Log, LogError, Topic, Transaction, partition_of},
    model::{ExportDigest, ExportHeader, ExportRecord, ExportSeal, MemoryRecord, ModelRef},
    pipeline::{
        PipelineError, Progress,
        replica::{LiveRecords, edge_settings, model_of, record_of},
    },
};

/// A transaction is closed past so many bytes of records.
const TRANSACTION_BYTES: usize = 1 << 20;
/// How often a partition is taken back from a running service.
const ATTEMPTS: u32 = 20;

/// What an import did.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// What the file says it is.
    pub header: ExportHeader,
    /// Records that were written.
    pub written: u64,
    /// Records that were there already.
    pub there: u64,
    /// What the memory makes of the bank.
    pub digest: ExportDigest,
    /// What it made of it where it comes from.
    pub exported: ExportDigest,
    /// Settings that edges depend on and that differ: name, there, here.
    pub differing: Vec<(String, Option<f64>, Option<f64>)>,
}

/// Writes a file's records to the log, those that are not there yet.
///
/// # Errors
/// [`TransferError`]; before the first record is written unless the log itself fails.
pub fn import(pipeline: &Pipeline, from: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Imported, TransferError> {
    let file = FileReader::open(from)?;
    into_log(pipeline, &*log::open(&pipeline.log)?, from, file, progress)
}

pub(super) fn into_log(
    pipeline: &Pipeline,
    log: &dyn Log,
    from: &Path,
    mut file: FileReader,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, TransferError> {
    check_model(pipeline, log, from, &file.header)?;
    let mut checked = 0;
    while let Line::Record(_) = file.next()? {
        checked += 1;
        progress(Progress { doing: "checking", done: checked, total: None, unit: "records" });
    }
    let partition = partition_of(&file.header.bank, log.partitions());
    let (mut written, mut there) = (0, None);
    for _ in 0..ATTEMPTS {
        log.own(partition)?;
        match attempt(log, from, partition, &mut written, &mut there, checked, progress) {
            Err(TransferError::Pipeline(PipelineError::Log(LogError::Fenced { .. }))) => {}
            done => {
                let seal = done?;
                return finish(pipeline, log, partition, file.header, seal, (written, there.unwrap_or_default()));
            }
        }
    }
    Err(TransferError::Fenced { partition, times: ATTEMPTS })
}

/// Vectors of two models never come together: the file's, the pipeline's and the log's are one.
fn check_model(pipeline: &Pipeline, log: &dyn Log, from: &Path, header: &ExportHeader) -> Result<(), TransferError> {
    let Some(model) = &header.model else { return Ok(()) };
    let named = |model: &ModelRef| format!("{} ({})", model.name, model.hash);
    let differs = |place, other: &ModelRef| {
        let (found, expected) = (named(model), named(other));
        Err(TransferError::Model { path: from.to_owned(), found, place, expected })
    };
    let embedder = embed::open(&pipeline.embed, &pipeline.model()).map_err(PipelineError::from)?;
    if embedder.model() != model {
        return differs("the pipeline names", embedder.model());
    }
    match model_of(log)? {
        Some(other) if other != *model => differs("the log was made with", &other),
        _ => Ok(()),
    }
}

/// Compares, and writes what is missing, as the owner of the partition.
fn attempt(
    log: &dyn Log,
    from: &Path,
    partition: u32,
    written: &mut u64,
    there: &mut Option<u64>,
    total: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExportSeal, TransferError> {
    let next_offset = log.read_position(partition)?;
    let covering = |memory| Transaction { partition, next_offset, memory, ..Transaction::default() };
    // Behind it is everything that was committed before: once it is seen, all that is.
    log.commit(&covering(Vec::new()))?;
    let found = compare(log, from, partition)?;
    there.get_or_insert(found.len() as u64);
    let mut file = FileReader::open(from)?;
    let (mut memory, mut bytes, mut done) = (Vec::new(), 0, found.len() as u64);
    loop {
        let line = file.next()?;
        if let Line::Record(record) = &line {
            let key = record.key.to_bytes();
            if !found.contains_key(&key) {
                let value = value_here(&file, &record.value)?;
                bytes += key.len() + value.len();
                memory.push((key, Some(value)));
            }
        }
        let end = matches!(line, Line::Seal(_));
        if !memory.is_empty() && (end || bytes > TRANSACTION_BYTES) {
            let records = memory.len() as u64;
            log.commit(&covering(std::mem::take(&mut memory)))?;
            (bytes, done, *written) = (0, done + records, *written + records);
            progress(Progress { doing: "importing", done, total: Some(total), unit: "records" });
        }
        if let Line::Seal(seal) = line {
            return Ok(seal);
        }
    }
}

/// The bank's records that the log holds already, when all of them are the file's.
fn compare(log: &dyn Log, from: &Path, partition: u32) -> Result<HashMap<Vec<u8>, blake3::Hash>, TransferError> {
    let mut file = FileReader::open(from)?;
    let bank = file.header.bank.clone();
    let live = LiveRecords::of(log, Topic::Memory, partition, |key, _| Ok(key.bank == bank))?;
    let mut found = HashMap::new();
    live.each(log, &mut |_, record| {
        let value = record_of(partition, record)?;
        let value = moved(value).map_err(|e| PipelineError::Record {
            partition,
            offset: record.offset,
            problem: format!("it has no JSON form ({e}); report this"),
        })?;
        found.insert(record.key.clone(), blake3::hash(&value));
        Ok(())
    })?;
    let mut same = 0;
    while let Line::Record(record) = file.next()? {
        let ExportRecord { key, value } = *record;
        if let Some(hash) = found.get(&key.to_bytes()) {
            if *hash != blake3::hash(&value_here(&file, &value)?) {
                let window = format!("window {}/{}", key.window.session.0, key.window.start);
                return Err(TransferError::There { bank, problem: format!("{window} differs") });
            }
            same += 1;
        }
    }
    if same < found.len() {
        let problem = format!("{} of its {} records are not in the file", found.len() - same, found.len());
        return Err(TransferError::There { bank, problem });
    }
    Ok(found)
}

/// A record as another log holds it: its turns came before every turn there, whatever their
/// offsets were in the turns topic that they were read from.
fn moved(mut record: MemoryRecord) -> Result<Vec<u8>, serde_json::Error> {
    record.turns.iter_mut().for_each(|turn| turn.source_offset = 0);
    serde_json::to_vec(&record)
}

fn value_here(file: &FileReader, record: &MemoryRecord) -> Result<Vec<u8>, TransferError> {
    moved(record.clone()).map_err(|e| file.unfit(&format!("it has no JSON form ({e}); report this")))
}

/// What the memory makes of what the log holds now.
fn finish(
    pipeline: &Pipeline,
    log: &dyn Log,
    partition: u32,
    header: ExportHeader,
    seal: ExportSeal,
    (written, there): (u64, u64),
) -> Result<Imported, TransferError> {
    log.interrupt_next()?;
    let mut memory = BankMemory::start(pipeline)?;
    let live = LiveRecords::of(log, Topic::Memory, partition, |key, _| Ok(key.bank == header.bank))?;
    live.each(log, &mut |key, record| {
        let value = record_of(partition, record)?;
        memory.take(key, &value)?.map_err(|problem| PipelineError::Record { partition, offset: record.offset, problem })
    })?;
    let (digest, here) = (memory.digest()?, edge_settings(pipeline));
    let names: std::collections::BTreeSet<&String> = header.settings.keys().chain(here.keys()).collect();
    let differing: Vec<_> = names
        .into_iter()
        .map(|name| (name.clone(), header.settings.get(name).copied(), here.get(name).copied()))
        .filter(|(_, there, here)| there != here)
        .collect();
    let wrong = if digest.units_hash != seal.digest.units_hash {
        Some(("units", &digest.units_hash, &seal.digest.units_hash))
    } else if digest.hash != seal.digest.hash && differing.is_empty() {
        Some(("edges", &digest.hash, &seal.digest.hash))
    } else {
        None
    };
    if let Some((what, found, expected)) = wrong {
        let (found, expected) = (found.clone(), expected.clone());
        return Err(TransferError::Digest { bank: header.bank, what, found, expected });
    }
    Ok(Imported { header, written, there, digest, exported: seal.digest, differing })
}

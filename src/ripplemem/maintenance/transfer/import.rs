//! Reads a file into a bank of a log.
//!
//! In: a file that [`super::export()`] wrote. Out: its records in the log, and the digest of the resulting memory.
//! Nothing is written before every record of the file has been checked, and the whole file has been checked against its
//! seal and against the log. A run that was killed between two transactions is continued by the next run, which skips
//! the records that are in the log. A record of the log that cannot be read is written again if the file has it, which
//! ends its bank's quarantine.
//!
//! On Kafka the import owns the bank's partition while it writes, as an extractor does. During that time, the commits
//! of a running service are fenced; it takes the partition over again afterwards, with the imported records. No
//! acknowledged turn is lost.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    TransferError,
    bank_memory::BankMemory,
    export_file::{ExportFileLine, ExportFileReader},
    import_record_check::ImportRecordCheck,
};
use logs::{self, Log, LogError, ReadProgress, Topic, Transaction, partition_of};
use models::embed;
use pipeline::{LiveRecords, PipelineError, Progress, model_of, note_import, record_of};
use replica::edge_settings;
use types::record_value::{RecordValueError, read_value};
use types::{
    config::Pipeline,
    model::{ExportDigest, ExportHeader, ExportRecord, ExportSeal, MemoryRecord, ModelRef, is_hidden},
};

/// The size in bytes beyond which a transaction is committed.
const TRANSACTION_BYTES: usize = 1 << 20;
/// How often the import takes the partition over from a running service before it fails.
const ATTEMPTS: u32 = 20;

/// What an import did.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportReport {
    /// The file's header.
    pub header: ExportHeader,
    /// Records that were written.
    pub written: u64,
    /// Records that the log held before.
    pub already_there: u64,
    /// The digest of the bank's memory here.
    pub digest: ExportDigest,
    /// The digest on the exporting side.
    pub exported: ExportDigest,
    /// Settings of the edges that differ: (name, value of the exporting side, value here).
    pub differing: Vec<(String, Option<f64>, Option<f64>)>,
    /// Whether a chat export that is read into the bank again is recognised: its hidden ids have this log's salt.
    pub is_recognised: bool,
}

/// Writes the records of a file that the log lacks.
///
/// # Errors
/// [`TransferError`]; unless the log fails, before anything is written.
pub fn import(
    pipeline: &Pipeline,
    from: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, TransferError> {
    let file = ExportFileReader::open(from)?;
    into_log(pipeline, &*logs::open(&pipeline.log)?, from, file, progress)
}

pub(super) fn into_log(
    pipeline: &Pipeline,
    log: &dyn Log,
    from: &Path,
    mut file: ExportFileReader,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, TransferError> {
    let model = check_model(pipeline, log, from, &file.header)?;
    let mut check = ImportRecordCheck::new(&file.header.bank, model);
    let (mut checked, mut has_hidden) = (0, false);
    while let ExportFileLine::Record(record) = file.next()? {
        has_hidden = has_hidden || record.value.turns.iter().any(|held| is_hidden(&held.turn.turn));
        let value = value_here(&file, &record.value)?;
        check.check(&record, &value).map_err(|problem| file.invalid(&format!("{problem}; export again")))?;
        checked += 1;
        progress(Progress { doing: "checking", done: checked, total: None, unit: "records" });
    }
    let partition = partition_of(&file.header.bank, log.partitions());
    let target = ImportTarget { log, from, partition, check: &check, total: checked };
    let (mut written, mut already_there) = (0, None);
    for _ in 0..ATTEMPTS {
        log.own(partition)?;
        match attempt(&target, &mut written, &mut already_there, progress) {
            Err(TransferError::Pipeline(PipelineError::Log(LogError::Fenced { .. }))) => {}
            done => {
                let seal = done?;
                let counts = (written, already_there.unwrap_or_default());
                let report = finish(pipeline, log, partition, file.header, seal, counts)?;
                // Done last, since a refused file must leave no salt behind.
                let is_recognised = !has_hidden
                    || match report.header.id_salt {
                        Some(salt) => log.id_salt_or(Some(salt)).map_err(PipelineError::from)? == salt,
                        None => false,
                    };
                return Ok(ImportReport { is_recognised, ..report });
            }
        }
    }
    Err(TransferError::Fenced { partition, times: ATTEMPTS })
}

/// Fails unless the models of the file, the pipeline and the log are the same. Returns that model and the width of its
/// vectors; `None` if the file names no model.
fn check_model(
    pipeline: &Pipeline,
    log: &dyn Log,
    from: &Path,
    header: &ExportHeader,
) -> Result<Option<(ModelRef, usize)>, TransferError> {
    let Some(model) = &header.model else { return Ok(None) };
    let named = |model: &ModelRef| format!("{} ({})", model.name, model.hash);
    let differs = |place, other: &ModelRef| {
        let (found, expected) = (named(model), named(other));
        Err(TransferError::Model { path: from.to_owned(), found, place, expected })
    };
    let embedder = embed::open(&pipeline.embed, &pipeline.model()).map_err(PipelineError::from)?;
    if embedder.model() != model {
        return differs("the pipeline names", embedder.model());
    }
    match model_of(log, Some(model))? {
        Some(other) if other != *model => differs("the log was made with", &other),
        _ => Ok(Some((model.clone(), embedder.dimensions()))),
    }
}

/// What an attempt writes, and where.
struct ImportTarget<'t> {
    log: &'t dyn Log,
    from: &'t Path,
    partition: u32,
    check: &'t ImportRecordCheck,
    /// Records of the file.
    total: u64,
}

/// One attempt as the owner of the partition: compares, and writes what the log lacks.
fn attempt(
    target: &ImportTarget<'_>,
    written: &mut u64,
    already_there: &mut Option<u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExportSeal, TransferError> {
    let ImportTarget { log, from, partition, total, .. } = *target;
    let ReadProgress { through: next_offset, behind } = log.progress(partition)?;
    let covering =
        |memory| Transaction { partition, next_offset, behind: behind.clone(), memory, ..Transaction::default() };
    // An empty transaction: a reader that reaches it has seen every earlier commit.
    log.commit(&covering(Vec::new()))?;
    let found = compare(target)?;
    already_there.get_or_insert(found.len() as u64);
    let mut file = ExportFileReader::open(from)?;
    let (mut memory, mut bytes, mut done) = (Vec::new(), 0, found.len() as u64);
    loop {
        let line = file.next()?;
        if let ExportFileLine::Record(record) = &line {
            let key = record.key.to_bytes();
            if !found.contains_key(&key) {
                let value = value_here(&file, &record.value)?;
                bytes += key.len() + value.len();
                memory.push((key, Some(value)));
            }
        }
        let end = matches!(line, ExportFileLine::Seal(_));
        if !memory.is_empty() && (end || bytes > TRANSACTION_BYTES) {
            let records = memory.len() as u64;
            if *written == 0 {
                note_import(log, &file.header.bank, jiff::Timestamp::now().as_millisecond())?;
            }
            log.commit(&covering(std::mem::take(&mut memory)))?;
            (bytes, done, *written) = (0, done + records, *written + records);
            progress(Progress { doing: "importing", done, total: Some(total), unit: "records" });
        }
        if let ExportFileLine::Seal(seal) = line {
            return Ok(seal);
        }
    }
}

/// The keys and hashes of the bank's readable records in the log; an error if one of them is not the same in the file.
fn compare(target: &ImportTarget<'_>) -> Result<HashMap<Vec<u8>, blake3::Hash>, TransferError> {
    let ImportTarget { log, from, partition, check, .. } = *target;
    let mut file = ExportFileReader::open(from)?;
    let bank = file.header.bank.clone();
    let live = LiveRecords::of(log, Topic::Memory, partition, |key, _| Ok(key.bank == bank))?;
    let (mut found, mut unreadable) = (HashMap::new(), HashSet::new());
    live.each(log, &mut |_, record| {
        let failed = |problem| PipelineError::Record { partition, offset: record.offset, problem };
        let value = match read_value(record.value.as_deref().unwrap_or_default()) {
            Ok(value) if value.bank == bank && check.vectors(&value).is_ok() => value,
            Err(newer @ RecordValueError::Newer(_)) => return Err(failed(newer.to_string())),
            Ok(_) | Err(RecordValueError::Unreadable(_)) => {
                unreadable.insert(record.key.clone());
                return Ok(());
            }
        };
        let value = rebased(value).map_err(|e| failed(format!("it has no JSON form ({e}); report this")))?;
        found.insert(record.key.clone(), blake3::hash(&value));
        Ok(())
    })?;
    let mut same = 0;
    while let ExportFileLine::Record(record) = file.next()? {
        let ExportRecord { key, value } = *record;
        unreadable.remove(&key.to_bytes());
        if let Some(hash) = found.get(&key.to_bytes()) {
            if *hash != blake3::hash(&value_here(&file, &value)?) {
                let window = format!("window {}/{}", key.window.session.0, key.window.start);
                return Err(TransferError::BankExists { bank, problem: format!("{window} differs") });
            }
            same += 1;
        }
    }
    let (lacking, all) = (found.len() - same + unreadable.len(), found.len() + unreadable.len());
    if lacking > 0 {
        let problem = format!("{lacking} of its {all} records are not in the file");
        return Err(TransferError::BankExists { bank, problem });
    }
    Ok(found)
}

/// A record in the form in which another log holds it. Its turns get offset 0: they precede every turn there, and their
/// offsets in the old turns topic mean nothing.
fn rebased(mut record: MemoryRecord) -> Result<Vec<u8>, serde_json::Error> {
    record.turns.iter_mut().for_each(|turn| turn.source_offset = 0);
    serde_json::to_vec(&record)
}

fn value_here(file: &ExportFileReader, record: &MemoryRecord) -> Result<Vec<u8>, TransferError> {
    rebased(record.clone()).map_err(|e| file.invalid(&format!("it has no JSON form ({e}); report this")))
}

/// Compares the digest of the bank's memory with the exporting side's.
fn finish(
    pipeline: &Pipeline,
    log: &dyn Log,
    partition: u32,
    header: ExportHeader,
    seal: ExportSeal,
    (written, already_there): (u64, u64),
) -> Result<ImportReport, TransferError> {
    log.interrupt_next()?;
    let mut memory = BankMemory::start(pipeline)?;
    let live = LiveRecords::of(log, Topic::Memory, partition, |key, _| Ok(key.bank == header.bank))?;
    live.each(log, &mut |key, record| {
        let failed = |problem| PipelineError::Record { partition, offset: record.offset, problem };
        let value = record_of(partition, key, record)?.map_err(failed)?;
        memory.take(key, &value)?.map_err(failed)
    })?;
    let (digest, here) = (memory.digest()?, edge_settings(pipeline));
    let names: std::collections::BTreeSet<&String> = header.settings.keys().chain(here.keys()).collect();
    let differing: Vec<_> = names
        .into_iter()
        .map(|name| (name.clone(), header.settings.get(name).copied(), here.get(name).copied()))
        .filter(|(_, exported, here)| exported != here)
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
    Ok(ImportReport { header, written, already_there, digest, exported: seal.digest, differing, is_recognised: true })
}

//! Writes a bank of a log that another process has open to a file.
//!
//! In: that process's list of the bank's live records, as of one moment, and its records by offset. Out: the same file
//! as from `export`, as of the moment of a list. If records were replaced before they were read, another list is
//! requested, and only the records that are new in it are read. This process counts the units and edges, not the one
//! that has the log open.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use super::{ExportReport, PipelineError, TransferError, export::BankExport, export_file::directory};
use logs::{self, LogError, LogRecord, RawRecord};
use pipeline::{Progress, key_of, record_of};
use types::{
    config::Pipeline,
    model::{Bank, ModelRef},
};

/// Records read at once.
const READ_RECORDS: usize = 64;
/// How often the list is requested, at most.
const LISTS: u32 = 32;

/// The memory records of a bank's partition, in a log that another process has open.
pub trait BankReader {
    /// The partition.
    fn partition(&self) -> u32;
    /// The offsets of the bank's live records, as of one moment.
    ///
    /// # Errors
    /// [`LogError`].
    fn live(&mut self) -> Result<Vec<u64>, LogError>;
    /// Up to `limit` records of the partition, of any bank, from offset `from` on; an empty list means the end.
    ///
    /// # Errors
    /// [`LogError`].
    fn read(&mut self, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError>;
}

/// As [`super::export()`], for a log that another process has open. `lag` is how many turns it has not extracted yet,
/// at most.
///
/// # Errors
/// [`TransferError`]; an existing file of that name is unchanged.
pub fn export_online(
    pipeline: &Pipeline,
    bank: &Bank,
    to: &Path,
    reader: &mut dyn BankReader,
    lag: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExportReport, TransferError> {
    let mut kept = RecordSpool::new(directory(to))?;
    if !kept.read_live(reader, progress)? {
        return Err(TransferError::Changing { bank: bank.clone(), times: LISTS });
    }
    let partition = reader.partition();
    let model = match first_model(reader)? {
        Some(model) if kept.has_vectors_of(partition, &model)? => Some(model),
        _ => None,
    };
    let id_salt = logs::made_id_salt(&pipeline.log)?;
    let export = BankExport { pipeline, bank, to, partition, topic: "memory", id_salt };
    let count = kept.places.len() as u64;
    export.write(model, count, lag, |show| kept.each(&mut |record| show(&key_of(partition, record)?, record)), progress)
}

/// The model of the partition's first vectors.
fn first_model(reader: &mut dyn BankReader) -> Result<Option<ModelRef>, PipelineError> {
    let (partition, mut from) = (reader.partition(), 0);
    loop {
        let records = reader.read(from, READ_RECORDS)?;
        let Some(last) = records.last() else { return Ok(None) };
        from = last.record.offset + 1;
        for RawRecord { record, .. } in &records {
            if record.value.is_some()
                && let Ok(key) = key_of(partition, record)
                && let Ok(value) = record_of(partition, &key, record)?
                && !value.units.is_empty()
            {
                return Ok(Some(value.model));
            }
        }
    }
}

/// Where a record's value is in the temporary file.
struct SpoolPosition {
    key: Vec<u8>,
    append_ms: i64,
    at: u64,
    bytes: usize,
}

/// Live records, with their values in a temporary file without a name.
struct RecordSpool {
    directory: PathBuf,
    file: File,
    end: u64,
    /// By offset.
    places: BTreeMap<u64, SpoolPosition>,
}

impl RecordSpool {
    /// The file lies in `directory`.
    fn new(directory: &Path) -> Result<Self, LogError> {
        let file = tempfile::tempfile_in(directory).map_err(|error| failed(directory, error))?;
        Ok(Self { directory: directory.to_owned(), file, end: 0, places: BTreeMap::new() })
    }

    /// Reads the live records of a list. False if each list was out of date before all of them were read.
    fn read_live(&mut self, reader: &mut dyn BankReader, progress: &mut dyn FnMut(Progress)) -> Result<bool, LogError> {
        for _ in 0..LISTS {
            let live: BTreeSet<u64> = reader.live()?.into_iter().collect();
            self.places.retain(|offset, _| live.contains(offset));
            let mut missing: BTreeSet<u64> =
                live.iter().filter(|offset| !self.places.contains_key(*offset)).copied().collect();
            while let Some(from) = missing.first().copied() {
                let records = reader.read(from, READ_RECORDS)?;
                let next = records.last().map(|raw| raw.record.offset + 1);
                for RawRecord { record, .. } in records {
                    if missing.contains(&record.offset) {
                        self.keep(record)?;
                    }
                }
                // The skipped records were replaced since the list was made.
                missing = next.map_or_else(BTreeSet::new, |next| missing.split_off(&next));
                let done = self.places.len() as u64;
                progress(Progress { doing: "reading", done, total: Some(live.len() as u64), unit: "records" });
            }
            if self.places.len() == live.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn keep(&mut self, record: LogRecord) -> Result<(), LogError> {
        let LogRecord { offset, append_ms, key, value } = record;
        let value = value.unwrap_or_default();
        self.file.write_all(&value).map_err(|error| failed(&self.directory, error))?;
        self.places.insert(offset, SpoolPosition { key, append_ms, at: self.end, bytes: value.len() });
        self.end += value.len() as u64;
        Ok(())
    }

    /// Whether a record has vectors of the model.
    fn has_vectors_of(&mut self, partition: u32, model: &ModelRef) -> Result<bool, PipelineError> {
        let mut found = false;
        self.each(&mut |record| {
            if !found && let Ok(value) = record_of(partition, &key_of(partition, record)?, record)? {
                found = !value.units.is_empty() && value.model == *model;
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Passes every record to `show`, in log order.
    fn each(&mut self, show: &mut dyn FnMut(&LogRecord) -> Result<(), PipelineError>) -> Result<(), PipelineError> {
        let Self { directory, file, places, .. } = self;
        let directory: &Path = directory;
        for (&offset, SpoolPosition { key, append_ms, at, bytes }) in &*places {
            let mut value = vec![0; *bytes];
            let read = file.seek(SeekFrom::Start(*at)).and_then(|_| file.read_exact(&mut value));
            read.map_err(|error| failed(directory, error))?;
            show(&LogRecord { offset, append_ms: *append_ms, key: key.clone(), value: Some(value) })?;
        }
        Ok(())
    }
}

fn failed(directory: &Path, error: io::Error) -> LogError {
    LogError::Disk {
        directory: directory.to_owned(),
        doing: "keeping the bank's records in a temporary file",
        remedy: "check its permissions and the free space on the disk, and export again",
        source: error.into(),
    }
}

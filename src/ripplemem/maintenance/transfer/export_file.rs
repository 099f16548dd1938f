//! The file of an exported bank.
//!
//! In: lines. Out: a file that is either complete or does not exist, and its lines when it is read again. The seal at
//! the end holds the number of records and a hash of the lines, which reveals a file that was cut off or changed. A
//! file whose name ends in `.zst` is compressed.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use tempfile::NamedTempFile;

use super::TransferError;
use types::model::{
    EXPORT_FORM, EXPORT_VERSION, ExportDigest, ExportHeader, ExportRecord, ExportSeal, OLDEST_SCHEMA_VERSION,
    SCHEMA_VERSION,
};

/// The maximum length of a line in bytes; even the largest record of a topic makes a shorter line.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// Compression level.
const LEVEL: i32 = 3;

fn compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// The directory of a file.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file, as the bytes are written to it.
enum ExportFileSink {
    Plain(BufWriter<NamedTempFile>),
    Zstd(zstd::Encoder<'static, BufWriter<NamedTempFile>>),
}

impl Write for ExportFileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(sink) => sink.write(bytes),
            Self::Zstd(sink) => sink.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.flush(),
            Self::Zstd(sink) => sink.flush(),
        }
    }
}

/// A file that is being written, under another name until it is complete.
pub(super) struct ExportFileWriter {
    path: PathBuf,
    sink: ExportFileSink,
    hash: blake3::Hasher,
    records: u64,
}

impl ExportFileWriter {
    /// Creates the file and writes its header.
    pub(super) fn create(path: &Path, header: &ExportHeader) -> Result<Self, TransferError> {
        let failed = |e| TransferError::file(path, "writing the file", e);
        // A rename is atomic only within a file system.
        let partial = tempfile::Builder::new().suffix(".partial").tempfile_in(directory(path)).map_err(failed)?;
        let file = BufWriter::new(partial);
        let sink = if compressed(path) {
            let mut encoder = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
            encoder.include_checksum(true).map_err(failed)?;
            ExportFileSink::Zstd(encoder)
        } else {
            ExportFileSink::Plain(file)
        };
        let mut writer = Self { path: path.to_owned(), sink, hash: blake3::Hasher::new(), records: 0 };
        writer.line(header)?;
        Ok(writer)
    }

    /// Writes the next record.
    pub(super) fn record(&mut self, record: &ExportRecord) -> Result<(), TransferError> {
        self.records += 1;
        self.line(record)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), TransferError> {
        let failed = |e| TransferError::file(&self.path, "writing the file", e);
        let mut bytes = serde_json::to_vec(line).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        self.hash.update(&bytes);
        self.sink.write_all(&bytes).map_err(failed)
    }

    /// Writes the seal and gives the file its name.
    pub(super) fn finish(mut self, digest: ExportDigest) -> Result<(), TransferError> {
        let blake3 = self.hash.finalize().to_hex().to_string();
        self.line(&ExportSeal { records: self.records, digest, blake3 })?;
        let Self { path, sink, .. } = self;
        let finish = || {
            let buffered = match sink {
                ExportFileSink::Plain(sink) => sink,
                ExportFileSink::Zstd(encoder) => encoder.finish()?,
            };
            let partial = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            partial.as_file().sync_all()?;
            partial.persist(&path).map_err(|e| e.error)?;
            // The rename is durable once the directory is synced.
            File::open(directory(&path))?.sync_all()
        };
        finish().map_err(|e| TransferError::file(&path, "writing the file", e))
    }
}

/// A file that is being read, line by line.
pub(super) struct ExportFileReader {
    lines: NumberedLines,
    hash: blake3::Hasher,
    records: u64,
    /// The first line.
    pub header: ExportHeader,
}

/// A line after the header.
pub(super) enum ExportFileLine {
    /// A record.
    Record(Box<ExportRecord>),
    /// The seal, checked against the lines before it.
    Seal(ExportSeal),
}

/// The fields that the header of every version has.
#[derive(serde::Deserialize)]
struct ExportFileForm {
    form: String,
    version: u32,
}

impl ExportFileReader {
    /// Reads the header.
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        let failed = |e| TransferError::file(path, "opening the file", e);
        let file = File::open(path).map_err(failed)?;
        let source: Box<dyn BufRead> = if compressed(path) {
            Box::new(BufReader::new(zstd::Decoder::new(file).map_err(failed)?))
        } else {
            Box::new(BufReader::new(file))
        };
        let mut reader = NumberedLines { path: path.to_owned(), source, line: 0 };
        let first = reader.next()?.unwrap_or_default();
        let Ok(ExportFileForm { form, version }) = serde_json::from_slice(&first) else {
            return Err(reader.invalid("not the header of an exported bank; name a file that `ripplemem export` wrote"));
        };
        if form != EXPORT_FORM {
            return Err(reader
                .invalid(&format!("form {form:?} is not {EXPORT_FORM:?}; name a file that `ripplemem export` wrote")));
        }
        if version != EXPORT_VERSION {
            let problem = format!(
                "version {version} of the form, but this build reads {EXPORT_VERSION}; export with this build, or \
                 import with the build that wrote it"
            );
            return Err(reader.invalid(&problem));
        }
        let header: ExportHeader = reader.parse(&first)?;
        let schema = header.schema;
        if !(OLDEST_SCHEMA_VERSION..=SCHEMA_VERSION).contains(&schema) {
            let problem = format!(
                "records of schema {schema}, but this build reads {OLDEST_SCHEMA_VERSION} to {SCHEMA_VERSION}; export \
                 with this build, or import with the build that wrote them"
            );
            return Err(reader.invalid(&problem));
        }
        let mut hash = blake3::Hasher::new();
        hash.update(&first);
        Ok(Self { lines: reader, hash, records: 0, header })
    }

    /// The next record, or the seal after the last.
    pub(super) fn next(&mut self) -> Result<ExportFileLine, TransferError> {
        let Some(bytes) = self.lines.next()? else {
            self.lines.line += 1;
            return Err(self.lines.invalid("the seal is missing: the file was cut off here; export again"));
        };
        // Only the seal begins so: records begin with their key.
        if bytes.starts_with(b"{\"records\"") {
            let seal: ExportSeal = self.lines.parse(&bytes)?;
            let found = self.hash.finalize().to_hex();
            if seal.records != self.records || seal.blake3 != found.as_str() {
                return Err(self.lines.invalid(
                    "the lines before the seal have changed since they were written; copy the file again, or export again",
                ));
            }
            if self.lines.next()?.is_some() {
                return Err(self.lines.invalid("there are lines after the seal; copy the file again, or export again"));
            }
            return Ok(ExportFileLine::Seal(seal));
        }
        let record: ExportRecord = self.lines.parse(&bytes)?;
        if record.key.bank != self.header.bank || record.value.bank != self.header.bank {
            return Err(self
                .lines
                .invalid(&format!("a record of a bank other than {}; export again", self.header.bank)));
        }
        if !(OLDEST_SCHEMA_VERSION..=SCHEMA_VERSION).contains(&record.value.schema) {
            return Err(self.lines.invalid(&format!(
                "a record of schema {}, but this build reads {OLDEST_SCHEMA_VERSION} to {SCHEMA_VERSION}; export with \
                 this build",
                record.value.schema
            )));
        }
        self.records += 1;
        self.hash.update(&bytes);
        Ok(ExportFileLine::Record(Box::new(record)))
    }

    /// An error about the line that was read last.
    pub(super) fn invalid(&self, problem: &str) -> TransferError {
        self.lines.invalid(problem)
    }
}

/// Lines with their numbers.
struct NumberedLines {
    path: PathBuf,
    source: Box<dyn BufRead>,
    /// Number of the last line that was read, from 1.
    line: u64,
}

impl NumberedLines {
    /// A line with its newline; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Vec<u8>>, TransferError> {
        let mut bytes = Vec::new();
        let read = (&mut self.source).take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => self.line += 1,
            Err(e) => {
                self.line += 1;
                return Err(
                    self.invalid(&format!("the file cannot be read further: {e}; copy it again, or export again"))
                );
            }
        }
        if bytes.last() == Some(&b'\n') {
            return Ok(Some(bytes));
        }
        let problem = match bytes.len() as u64 {
            MAX_LINE_BYTES => "a line longer than any record; name a file that `ripplemem export` wrote",
            _ => "the line has no end: the file was cut off here; export again",
        };
        Err(self.invalid(problem))
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, TransferError> {
        serde_json::from_slice(bytes)
            .map_err(|e| self.invalid(&format!("not a line of an export: {e}; copy the file again, or export again")))
    }

    fn invalid(&self, problem: &str) -> TransferError {
        TransferError::InvalidFile { path: self.path.clone(), line: self.line, problem: problem.to_owned() }
    }
}

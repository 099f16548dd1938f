//! Reads a file, a directory or an archive in the same way.
//!
//! In: a path. Out: the names of its files in sorted order, and each file as a stream, with gzip unpacked and UTF-16
//! converted to UTF-8. Files and folders that archivers add (`__MACOSX`, `.DS_Store`) are left out. A file of a zip
//! archive ends with an error if it does not match the checksum in the archive. Never holds a whole file. Only the
//! texts of a tar archive are unpacked to disk, because they cannot be read out of order; they are deleted with this
//! value.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::{Crc, read::DeflateDecoder};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipArchive};

use super::tarball;
use crate::{
    SourceError,
    compression::{decompressed, decompressed_bytes, without_ending},
    error::unreadable,
    utf16::as_utf8,
};

/// An export on disk.
pub(crate) struct ExportTree {
    path: PathBuf,
    kind: ExportTreeKind,
    entries: Vec<ExportFile>,
}

enum ExportTreeKind {
    File,
    Directory,
    Archive,
    /// The texts of a tar archive, in a folder.
    Unpacked(TempDir),
    /// The beginnings of the texts of a tar archive.
    Beginnings(HashMap<String, Vec<u8>>),
}

/// A file of an export.
pub(crate) struct ExportFile {
    /// Its path inside the export, with `/` between folders; for a single file, its name.
    pub name: String,
    /// Its size in bytes, uncompressed.
    pub bytes: u64,
    /// Where its bytes are in an archive.
    packed: Option<ZipEntry>,
}

struct ZipEntry {
    start: u64,
    bytes: u64,
    method: CompressionMethod,
    encrypted: bool,
    /// The CRC-32 of the unpacked bytes.
    sum: u32,
}

/// The unpacked bytes of a file of an archive; their checksum is compared at the end.
struct ChecksummedBytes<R> {
    input: R,
    sum: Crc,
    stated: u32,
}

impl<R: Read> Read for ChecksummedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.sum.update(buffer.get(..read).unwrap_or_default());
        if read == 0 && !buffer.is_empty() && self.sum.sum() != self.stated {
            let problem = "its bytes are not those that were packed (CRC-32); copy or export the archive again";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(read)
    }
}

impl ExportTree {
    /// Opens a path. A file whose first bytes are those of an archive is read as an archive, whatever its name.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read, or the archive is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        Self::open_with(path, |path| {
            let folder = tarball::unpack(path)?;
            let entries = walk(folder.path())?;
            Ok((ExportTreeKind::Unpacked(folder), entries))
        })
    }

    /// Opens a path only to recognise it: for a tar archive, only the beginnings of its first files are available,
    /// `head_bytes` of each.
    ///
    /// # Errors
    /// As [`ExportTree::open`].
    pub(super) fn look(path: &Path, head_bytes: u64) -> Result<Self, SourceError> {
        Self::open_with(path, |path| {
            let found = tarball::beginnings(path, head_bytes)?;
            let entry = |(name, bytes, _): &tarball::TarTextHead| ExportFile {
                name: name.clone(),
                bytes: *bytes,
                packed: None,
            };
            let entries = found.iter().filter(|(name, ..)| !is_clutter(name)).map(entry).collect();
            let heads = found.into_iter().map(|(name, _, head)| (name, head)).collect();
            Ok((ExportTreeKind::Beginnings(heads), entries))
        })
    }

    fn open_with(
        path: &Path,
        of_tarball: impl FnOnce(&Path) -> io::Result<(ExportTreeKind, Vec<ExportFile>)>,
    ) -> Result<Self, SourceError> {
        let failed = |e| unreadable(path, 0, e);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let (kind, mut entries) = if metadata.is_dir() {
            (ExportTreeKind::Directory, walk(path).map_err(failed)?)
        } else if is_archive(path).map_err(failed)? {
            (ExportTreeKind::Archive, archived(path).map_err(failed)?)
        } else if tarball::is_tarball(path).map_err(failed)? {
            of_tarball(path).map_err(failed)?
        } else {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let bytes = decompressed_bytes(path, metadata.len()).map_err(failed)?;
            (ExportTreeKind::File, vec![ExportFile { name: without_ending(&name).to_owned(), bytes, packed: None }])
        };
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Ok(Self { path: path.to_owned(), kind, entries })
    }

    /// The path that was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a single file, not a directory or an archive.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, ExportTreeKind::File)
    }

    /// Its files, sorted by name.
    pub(crate) fn entries(&self) -> &[ExportFile] {
        &self.entries
    }

    /// Whether it has a file of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// The size of a file in bytes, uncompressed; 0 if there is none of this name.
    pub(crate) fn bytes_of(&self, name: &str) -> u64 {
        self.entry(name).map_or(0, |entry| entry.bytes)
    }

    /// The name of a file in messages to the user: `PATH/NAME`; for a single file, the path.
    pub(crate) fn origin(&self, name: &str) -> String {
        match self.kind {
            ExportTreeKind::File => self.path.display().to_string(),
            _ => format!("{}/{name}", self.path.display()),
        }
    }

    /// The error for a file that was read up to `line`.
    pub(crate) fn unreadable(&self, name: &str, line: u64, error: io::Error) -> SourceError {
        unreadable(Path::new(&self.origin(name)), line, error)
    }

    /// The bytes of a file from its beginning, to be buffered by the caller; a text in UTF-16 is returned as UTF-8.
    ///
    /// # Errors
    /// [`SourceError`] when there is no such file, or it cannot be opened.
    pub(crate) fn read(&self, name: &str) -> Result<Box<dyn Read + Send>, SourceError> {
        self.stream(name).and_then(decompressed).and_then(as_utf8).map_err(|e| self.unreadable(name, 0, e))
    }

    fn entry(&self, name: &str) -> Option<&ExportFile> {
        let at = self.entries.binary_search_by(|e| e.name.as_str().cmp(name)).ok()?;
        self.entries.get(at)
    }

    fn stream(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let entry = self.entry(name).ok_or(io::ErrorKind::NotFound)?;
        let Some(packed) = &entry.packed else {
            let path = match &self.kind {
                ExportTreeKind::File => self.path.clone(),
                ExportTreeKind::Unpacked(folder) => folder.path().join(name),
                ExportTreeKind::Beginnings(heads) => {
                    return Ok(Box::new(Cursor::new(heads.get(name).cloned().unwrap_or_default())));
                }
                ExportTreeKind::Directory | ExportTreeKind::Archive => self.path.join(name),
            };
            return Ok(Box::new(File::open(path)?));
        };
        if packed.encrypted {
            return Err(io::Error::other("the archive is encrypted; unpack it and name the folder"));
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(packed.start))?;
        let bytes = BufReader::new(file.take(packed.bytes));
        let stated = packed.sum;
        match packed.method {
            CompressionMethod::Stored => Ok(Box::new(ChecksummedBytes { input: bytes, sum: Crc::new(), stated })),
            CompressionMethod::Deflated => {
                Ok(Box::new(ChecksummedBytes { input: DeflateDecoder::new(bytes), sum: Crc::new(), stated }))
            }
            other => Err(io::Error::other(format!("{other} is not read; unpack the archive and name the folder"))),
        }
    }
}

fn is_archive(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(start == b"PK\x03\x04" || start == b"PK\x05\x06")
}

fn archived(path: &Path) -> io::Result<Vec<ExportFile>> {
    let mut archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(io::Error::other)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(io::Error::other)?;
        let name = file.name().map_err(io::Error::other)?.replace('\\', "/");
        if file.is_dir() || is_clutter(&name) {
            continue;
        }
        let packed = ZipEntry {
            start: file.data_start().ok_or_else(|| io::Error::other("the archive's directory is damaged"))?,
            bytes: file.compressed_size(),
            method: file.compression(),
            encrypted: file.encrypted(),
            sum: file.crc32(),
        };
        entries.push(ExportFile { name, bytes: file.size(), packed: Some(packed) });
    }
    Ok(entries)
}

fn walk(root: &Path) -> io::Result<Vec<ExportFile>> {
    let mut entries = Vec::new();
    walk_below(root, "", &mut entries)?;
    Ok(entries)
}

fn walk_below(root: &Path, below: &str, entries: &mut Vec<ExportFile>) -> io::Result<()> {
    for item in std::fs::read_dir(root.join(below))? {
        let item = item?;
        let Ok(name) = item.file_name().into_string() else { continue };
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        // `file_type` does not follow links: following a link to a parent folder would never end.
        let kind = item.file_type()?;
        if is_clutter(&name) {
            continue;
        } else if kind.is_dir() {
            walk_below(root, &name, entries)?;
        } else {
            let metadata = std::fs::metadata(item.path())?;
            if metadata.is_file() {
                entries.push(ExportFile { name, bytes: metadata.len(), packed: None });
            }
        }
    }
    Ok(())
}

fn is_clutter(name: &str) -> bool {
    name.split('/').any(|part| part == "__MACOSX" || part == ".DS_Store")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    #[test]
    fn bytes_that_are_not_those_that_were_packed_are_an_error() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("export.zip");
        let text = "a text that is long enough to be worth packing, packing, packing\n".repeat(40);
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let mut archive = ZipWriter::new(File::create(&path).unwrap());
            archive.start_file("a.txt", SimpleFileOptions::default().compression_method(method)).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
            archive.finish().unwrap();
            let read = || {
                let mut found = String::new();
                ExportTree::open(&path).unwrap().read("a.txt").unwrap().read_to_string(&mut found).map(|_| found)
            };
            assert_eq!(read().unwrap(), text);
            // The checksum in the archive's directory.
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap() + 16;
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            let error = read().unwrap_err().to_string();
            assert!(error.contains("not those that were packed"), "{method}: {error}");
        }
    }
}

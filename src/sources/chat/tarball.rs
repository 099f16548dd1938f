//! The texts of a tar archive, compressed or not: all of them in a temporary folder, or the beginning of each.
//!
//! In: a `.tar` or `.tar.gz`. Out: a folder with its texts, which disappears with the returned value, or the first
//! bytes of some. Files that cannot be texts, such as shared photos, are skipped and never unpacked. Never writes
//! outside the folder: of a name, only the plain components are used.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    io::{self, BufReader, Read},
    ops::ControlFlow,
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tar::Archive;
use tempfile::TempDir;

const BLOCK_BYTES: usize = 512;
/// The maximum number of bytes between two files: padding, headers, and names and attributes that do not fit into the
/// headers.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// How much of an archive is read to recognise it: how many names, how many of the files' beginnings, and how many
/// bytes in total.
const MAX_NAMES: usize = 10_000;
const MAX_HEADS: usize = 64;
const MAX_BYTES: u64 = 256 << 20;
/// Suffixes of files that are not text.
const NO_TEXTS: [&str; 32] = [
    "7z", "aac", "avi", "avif", "bmp", "bz2", "db", "doc", "docx", "exe", "gif", "heic", "ico", "jpeg", "jpg", "m4a",
    "mkv", "mov", "mp3", "mp4", "ogg", "opus", "pdf", "png", "ppt", "pptx", "rar", "wav", "webm", "webp", "xls",
    "xlsx",
];

/// Whether a file is a tar archive, judged by its first bytes or, for formats older than that magic number, by its
/// name.
pub(super) fn is_tarball(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    // A file that cannot be decompressed is not an archive.
    if bytes(path)?.take(BLOCK_BYTES as u64).read_to_end(&mut start).is_err() {
        return Ok(false);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let is_named = [".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending));
    Ok(start.get(257..262) == Some(b"ustar") || (is_named && start.len() == BLOCK_BYTES))
}

/// Unpacks the texts. If two have the same name, the first one is kept.
///
/// # Errors
/// When the archive cannot be read to its end, or the folder cannot be written.
pub(super) fn unpack(path: &Path) -> io::Result<TempDir> {
    let folder = TempDir::new()?;
    each(path, &mut |name, _, content| {
        let target = folder.path().join(name);
        if !target.exists() {
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            io::copy(content, &mut File::create(target)?)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(folder)
}

/// A text of an archive: its name, its size, and its first bytes (empty if it comes too late in the archive).
pub(super) type TarTextHead = (String, u64, Vec<u8>);

/// The beginnings of the texts, `head_bytes` of each, for as many as are found within the part of the archive that is
/// read.
///
/// # Errors
/// As [`unpack`].
pub(super) fn beginnings(path: &Path, head_bytes: u64) -> io::Result<Vec<TarTextHead>> {
    let (mut found, mut seen) = (Vec::new(), 0_u64);
    each(path, &mut |name, bytes, content| {
        let mut head = Vec::new();
        if found.len() < MAX_HEADS {
            content.take(head_bytes).read_to_end(&mut head)?;
        }
        found.push((name.to_string_lossy().replace('\\', "/"), bytes, head));
        seen = seen.saturating_add(bytes);
        let is_enough = found.len() >= MAX_NAMES || seen > MAX_BYTES;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// The bytes of a file, decompressed if it is compressed.
fn bytes(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut start)?;
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    Ok(if start == *b"\x1f\x8b" { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// An archive's bytes, at most `left` of them; the caller resets that limit for each file. It is needed because the
/// `tar` crate reads all headers before a file into memory, however long they are.
struct BoundedBytes {
    input: RefCell<Box<dyn Read>>,
    left: Cell<u64>,
}

impl Read for &BoundedBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the bytes before a file are not a tar header"));
        }
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.input.borrow_mut().read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

/// The callback for each text: its name, its size, its bytes.
type TarTextVisitor<'t> = dyn FnMut(&Path, u64, &mut dyn Read) -> io::Result<ControlFlow<()>> + 't;

/// Calls `take` for each text until it breaks off.
fn each(path: &Path, take: &mut TarTextVisitor<'_>) -> io::Result<()> {
    let input = BoundedBytes { input: RefCell::new(bytes(path)?), left: Cell::new(MAX_HEADER_BYTES) };
    let mut archive = Archive::new(&input);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        // A sparse file states its length including its holes, which are not stored in the archive.
        let packed = if kind.is_gnu_sparse() { entry.header().entry_size()? } else { entry.size() };
        input.left.set(packed.saturating_add(MAX_HEADER_BYTES));
        let name = plain(&String::from_utf8_lossy(&entry.path_bytes()));
        let is_file = kind.is_file() || kind.is_contiguous();
        if is_file && is_text(&name) && take(&name, entry.size(), &mut entry)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// The components of a name that do not lead outside the folder.
fn plain(name: &str) -> PathBuf {
    let name = name.trim_end_matches('\0');
    Path::new(name).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn is_text(name: &Path) -> bool {
    let ending = name.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    name.file_name().is_some() && !ending.is_some_and(|ending| NO_TEXTS.contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use tar::{Builder, EntryType, Header};

    use super::*;

    /// Adds a file whose header states the size `bytes`.
    fn add(archive: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, bytes: usize, content: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(bytes as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, content).unwrap();
    }

    fn file(archive: &mut Builder<Vec<u8>>, name: &str, content: &[u8]) {
        add(archive, EntryType::Regular, name, content.len(), content);
    }

    /// The names and texts of an archive, in order.
    fn texts(archive: &[u8]) -> io::Result<Vec<(String, String)>> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), archive)?;
        let folder = unpack(file.path())?;
        let found = beginnings(file.path(), 8 << 20)?;
        for (name, bytes, head) in &found {
            assert_eq!((fs::read(folder.path().join(name))?, *bytes), (head.clone(), head.len() as u64), "{name}");
        }
        Ok(found.into_iter().map(|(name, _, head)| (name, String::from_utf8(head).unwrap())).collect())
    }

    fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_name_and_a_size_in_an_extension_header_count() {
        let mut archive = Builder::new(Vec::new());
        let long = format!("{}/a.txt", "x".repeat(200));
        archive.append_pax_extensions([("mtime", &b"1.5"[..]), ("size", b"600"), ("path", long.as_bytes())]).unwrap();
        let text = "y".repeat(600);
        add(&mut archive, EntryType::Regular, "cut.txt", 0, text.as_bytes());
        archive.append_pax_extensions([("size", &b"7"[..])]).unwrap();
        add(&mut archive, EntryType::Regular, "cat.png", 600, b"picture");
        file(&mut archive, "b.txt", b"last");
        let archive = archive.into_inner().unwrap();
        assert_eq!(texts(&archive).unwrap(), named(&[(&long, &text), ("b.txt", "last")]));
    }

    #[test]
    fn files_of_any_size_are_read_or_passed_over_and_what_stands_before_them_is_bounded() {
        let large = "z".repeat(3 << 20);
        let mut archive = Builder::new(Vec::new());
        file(&mut archive, "cat.png", large.as_bytes());
        file(&mut archive, "a.txt", large.as_bytes());
        // A file with a hole of one tebibyte.
        let mut sparse = Header::new_gnu();
        sparse.set_entry_type(EntryType::GNUSparse);
        sparse.set_size(large.len() as u64);
        let of_gnu = sparse.as_gnu_mut().unwrap();
        of_gnu.name[..10].copy_from_slice(b"sparse.txt");
        of_gnu.sparse[0].set_offset(1 << 40);
        of_gnu.sparse[0].set_length(large.len() as u64);
        of_gnu.set_real_size((1 << 40) + large.len() as u64);
        sparse.set_cksum();
        archive.append(&sparse, large.as_bytes()).unwrap();
        file(&mut archive, "b.txt", b"last");
        let bytes = archive.get_ref().clone();
        assert_eq!(texts(&bytes).unwrap(), named(&[("a.txt", &large), ("b.txt", "last")]));
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let mut archive = Builder::new(bytes.clone());
            add(&mut archive, kind, "name", large.len(), large.as_bytes());
            file(&mut archive, "c.txt", b"");
            let error = texts(&archive.into_inner().unwrap()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
    }

    #[test]
    fn a_header_with_a_wrong_sum_and_an_archive_that_is_cut_are_errors() {
        let mut archive = Builder::new(Vec::new());
        file(&mut archive, "a.txt", &[b'a'; 1_000]);
        let archive = archive.into_inner().unwrap();
        for at in [0, 130, 160] {
            let mut damaged = archive.clone();
            damaged[at] ^= 1;
            assert!(texts(&damaged).is_err(), "{at}");
        }
        for cut in (1..1_536).step_by(3) {
            assert!(texts(&archive[..cut]).is_err(), "{cut}");
        }
        for cut in [1_536, 2_048, 2_560] {
            assert_eq!(texts(&archive[..cut]).unwrap().len(), 1, "{cut}");
        }
    }
}

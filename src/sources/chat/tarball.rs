//! The texts of a tar archive, compressed or not: all of them in a temporary folder, or the beginning of each.
//!
//! In: a `.tar` or `.tar.gz`. Out: a folder with its texts, which disappears with the returned value, or the
//! first bytes of some. What cannot be a text, such as a shared photo, is passed over and never unpacked.
//! Never writes outside the folder: of a name only its plain parts count.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    ops::ControlFlow,
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tempfile::TempDir;

const BLOCK_BYTES: usize = 512;
/// Longest name in an extension header.
const MAX_NAME_BYTES: u64 = 64 << 10;
/// How much of an archive is looked at to recognise it: names of files, their beginnings, and all bytes.
const MOST_NAMES: usize = 10_000;
const MOST_HEADS: usize = 64;
const MOST_BYTES: u64 = 256 << 20;
/// Endings of what is no text.
const NO_TEXTS: [&str; 32] = [
    "7z", "aac", "avi", "avif", "bmp", "bz2", "db", "doc", "docx", "exe", "gif", "heic", "ico", "jpeg", "jpg", "m4a",
    "mkv", "mov", "mp3", "mp4", "ogg", "opus", "pdf", "png", "ppt", "pptx", "rar", "wav", "webm", "webp", "xls",
    "xlsx",
];

/// Whether a file is a tar archive, by its first bytes, or, where they are older than that mark, by its name.
pub(super) fn is_tarball(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    // What cannot be decompressed is no archive.
    if bytes(path)?.take(BLOCK_BYTES as u64).read_to_end(&mut start).is_err() {
        return Ok(false);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let is_named = [".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending));
    Ok(start.get(257..262) == Some(b"ustar") || (is_named && start.len() == BLOCK_BYTES))
}

/// Unpacks the texts. Of two with one name, the first.
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

/// A text of an archive: its name, its size, and its first bytes; none of a text that stands late.
pub(super) type Beginning = (String, u64, Vec<u8>);

/// The beginnings of the texts, `head_bytes` of each, as far as a look at the archive finds them.
///
/// # Errors
/// As [`unpack`].
pub(super) fn beginnings(path: &Path, head_bytes: u64) -> io::Result<Vec<Beginning>> {
    let (mut found, mut seen) = (Vec::new(), 0);
    each(path, &mut |name, bytes, content| {
        let mut head = Vec::new();
        if found.len() < MOST_HEADS {
            content.take(head_bytes).read_to_end(&mut head)?;
        }
        found.push((name.to_string_lossy().replace('\\', "/"), bytes, head));
        seen += bytes;
        let is_enough = found.len() >= MOST_NAMES || seen > MOST_BYTES;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// The bytes of a file, decompressed where it is compressed.
fn bytes(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut start)?;
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    Ok(if start == *b"\x1f\x8b" { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// What is done with each text: its name, its size, its bytes.
type Take<'t> = dyn FnMut(&Path, u64, &mut dyn Read) -> io::Result<ControlFlow<()>> + 't;

/// Goes through the texts until `take` has enough.
fn each(path: &Path, take: &mut Take<'_>) -> io::Result<()> {
    let mut tar = bytes(path)?;
    // A long name lies in a block of its own before the file.
    let mut long_name: Option<String> = None;
    while let Some(header) = block(&mut tar)? {
        let bytes = size(&header)?;
        let kind = header.get(156).copied().unwrap_or(0);
        let mut content = (&mut tar).take(bytes);
        match kind {
            b'L' | b'x' => {
                let mut text = Vec::new();
                (&mut content).take(MAX_NAME_BYTES).read_to_end(&mut text)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                long_name = if kind == b'L' { Some(text.trim_end_matches('\0').to_owned()) } else { pax_path(&text) };
            }
            0 | b'0' | b'7' => {
                let name = plain(&long_name.take().unwrap_or_else(|| whole_name(&header)));
                if is_text(&name) && take(&name, bytes, &mut content)?.is_break() {
                    return Ok(());
                }
            }
            _ => long_name = None,
        }
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends inside a file"));
        }
        let padding = (BLOCK_BYTES as u64 - bytes % BLOCK_BYTES as u64) % BLOCK_BYTES as u64;
        io::copy(&mut (&mut tar).take(padding), &mut io::sink())?;
    }
    Ok(())
}

/// The parts of a name that lead nowhere else.
fn plain(name: &str) -> PathBuf {
    Path::new(name).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn is_text(name: &Path) -> bool {
    let ending = name.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    name.file_name().is_some() && !ending.is_some_and(|ending| NO_TEXTS.contains(&ending.as_str()))
}

/// The name in a header: its end, behind the folders that do not fit there.
fn whole_name(header: &[u8; BLOCK_BYTES]) -> String {
    let name = string(header.get(..100).unwrap_or_default());
    let is_ustar = header.get(257..263) == Some(b"ustar\0");
    let folders = string(header.get(345..500).unwrap_or_default());
    if is_ustar && !folders.is_empty() { format!("{folders}/{name}") } else { name }
}

/// The next block; none at the end, which is a block of zeros or the end of the file.
fn block(tar: &mut dyn Read) -> io::Result<Option<[u8; BLOCK_BYTES]>> {
    let mut block = [0; BLOCK_BYTES];
    let mut filled = 0;
    while filled < BLOCK_BYTES {
        match tar.read(block.get_mut(filled..).unwrap_or_default())? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends inside a header")),
            bytes => filled += bytes,
        }
    }
    Ok(block.iter().any(|byte| *byte != 0).then_some(block))
}

/// The size of the file behind a header: octal, or big-endian bytes when it is large.
fn size(header: &[u8; BLOCK_BYTES]) -> io::Result<u64> {
    let field = header.get(124..136).unwrap_or_default();
    if field.first().is_some_and(|byte| byte & 0x80 != 0) {
        let low = field.get(4..).unwrap_or_default();
        return Ok(low.iter().fold(0, |size, byte| size << 8 | u64::from(*byte)));
    }
    let text = string(field);
    let text = text.trim();
    if text.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(text, 8).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a header is no tar header"))
}

fn string(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

/// The path of an extension header, which has lines of `LENGTH KEY=VALUE`.
fn pax_path(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=")).map(str::to_owned)
}

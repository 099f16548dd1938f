//! The files of a tar archive that are wanted, unpacked into a temporary folder.
//!
//! In: a `.tar` or `.tar.gz`, and the names that are wanted. Out: a folder with those files, without
//! the folders that they lay in; it disappears with the returned value. Uploads are passed over and
//! never unpacked. Never writes outside the folder: only the last part of a name is used.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use tempfile::TempDir;

const BLOCK_BYTES: usize = 512;
/// Longest name in an extension header.
const MAX_NAME_BYTES: u64 = 64 << 10;

/// Whether a file is a tar archive, compressed or not, by its first bytes.
pub(super) fn is_tarball(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = || -> io::Result<bool> {
        File::open(path)?.take(BLOCK_BYTES as u64).read_to_end(&mut start)?;
        Ok(start.starts_with(b"\x1f\x8b") || start.get(257..262) == Some(b"ustar"))
    };
    let mut read = read;
    path.is_file() && read().unwrap_or(false)
}

/// Unpacks the files whose name, without folders, is wanted. Of two with one name, the first.
///
/// # Errors
/// When the archive cannot be read to its end, or the folder cannot be written.
pub(super) fn unpack(path: &Path, wanted: fn(&str) -> bool) -> io::Result<TempDir> {
    let folder = TempDir::new()?;
    let mut start = [0; 2];
    File::open(path)?.read_exact(&mut start)?;
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut tar: Box<dyn Read> =
        if start == *b"\x1f\x8b" { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
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
                let name = long_name.take().unwrap_or_else(|| string(header.get(..100).unwrap_or_default()));
                let name = name.rsplit('/').next().unwrap_or_default();
                let target = folder.path().join(name);
                if wanted(name) && !target.exists() {
                    io::copy(&mut content, &mut File::create(target)?)?;
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
    Ok(folder)
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

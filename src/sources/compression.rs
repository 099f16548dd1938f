//! Unpacks files that were compressed individually.
//!
//! In: a stream of bytes. Out: the same bytes or, if they begin like gzip or zstd, the unpacked bytes. A stream that
//! begins like another known compression, or like an archive, is an error that says what to do, since such bytes are
//! not text in any format. Never holds more than a chunk.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::bufread::MultiGzDecoder;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// The first bytes of other compressed files, and what messages call them.
const OTHERS: [(&[u8], &str); 3] = [
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip"),
    (b"PK\x03\x04", "a zip archive"),
];
/// The length of the longest of these.
const BEGINNING_BYTES: u64 = 6;
/// The suffixes of files in gzip and in zstd.
const ENDINGS: [&str; 2] = [".gz", ".zst"];

/// The content of a stream, unpacked if it is in gzip or in zstd.
///
/// # Errors
/// When the stream cannot be read, or is compressed in another way.
pub(super) fn decompressed(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    (&mut input).take(BEGINNING_BYTES).read_to_end(&mut start)?;
    let other = OTHERS.iter().find(|(beginning, _)| start.starts_with(beginning)).map(|(_, what)| *what);
    // The bytes after the compression level are checked too, so that a text that begins with these letters is not taken
    // for bzip2.
    let is_bzip2 = start.starts_with(b"BZh") && start.ends_with(b"1A");
    if let Some(what) = other.or(is_bzip2.then_some("compressed with bzip2")) {
        return Err(io::Error::other(format!("it is {what}; unpack it and name what was inside")));
    }
    let (is_gzip, is_zstd) = (start.starts_with(GZIP), start.starts_with(ZSTD));
    let input = Cursor::new(start).chain(input);
    if is_zstd {
        return Ok(Box::new(zstd::stream::read::Decoder::new(input)?));
    }
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(BufReader::new(input))) } else { Box::new(input) })
}

/// The unpacked size of a file of `bytes`. For gzip it is the number at the end of the file, the last part's size
/// modulo 4 GiB: good enough for a progress bar.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn decompressed_bytes(path: &Path, bytes: u64) -> io::Result<u64> {
    const SIZE_BYTES: u64 = 4;
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut start)?;
    if start != GZIP || bytes < SIZE_BYTES {
        return Ok(bytes);
    }
    let mut size = [0; SIZE_BYTES as usize];
    file.seek(SeekFrom::Start(bytes - SIZE_BYTES))?;
    file.read_exact(&mut size)?;
    Ok(u32::from_le_bytes(size).into())
}

/// A file's name without the suffix of gzip or zstd.
pub(super) fn without_ending(name: &str) -> &str {
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    stem.filter(|name| !name.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        decompressed(Box::new(Cursor::new(bytes.to_vec())))?.read_to_end(&mut found)?;
        Ok(found)
    }

    #[test]
    fn gzip_is_unpacked_and_other_compressions_are_named() {
        for text in [&b""[..], b"a", b"BZh and more", b"{}\n", b"\xef\xbb\xbfa longer text"] {
            assert_eq!(read(text).unwrap(), text);
            assert_eq!(read(&gzip(text)).unwrap(), text);
            // Files that were joined, as `cat` does.
            assert_eq!(read(&[gzip(text), gzip(b"more")].concat()).unwrap(), [text, b"more"].concat());
        }
        for text in [&b""[..], b"{}\n"] {
            assert_eq!(read(&zstd::encode_all(text, 1).unwrap()).unwrap(), text);
        }
        for (beginning, what) in OTHERS.into_iter().chain([(&b"BZh91AY"[..], "compressed with bzip2")]) {
            let problem = read(&[beginning, b"rest"].concat()).unwrap_err().to_string();
            assert!(problem.contains(what) && problem.contains("; unpack it"), "{problem}");
        }
        assert!(read(&gzip(b"a text that is cut")[..20]).is_err(), "the end is missing");
    }

    #[test]
    fn the_size_is_that_of_what_was_compressed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&gzip(&[b'x'; 5_000])).unwrap();
        let bytes = file.as_file().metadata().unwrap().len();
        assert_eq!(decompressed_bytes(file.path(), bytes).unwrap(), 5_000);
        assert_eq!(without_ending("result.json.gz"), "result.json");
        assert_eq!(without_ending("rollout.jsonl.zst"), "rollout.jsonl");
        assert_eq!(without_ending(".gz"), ".gz");
    }
}

//! Decodes texts in UTF-16, as Windows PowerShell and some other Windows programs write them.
//!
//! In: a stream of bytes. Out: the same bytes or, if a byte order mark shows that they are UTF-16, the text in UTF-8
//! without that mark. Invalid units become replacement characters. Never fails except when the stream cannot be read,
//! and never holds more than a chunk.

use std::io::{self, BufReader, Cursor, Read};

use encoding_rs::{UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// The text of a stream in UTF-8, if a byte order mark says that it is UTF-16; else the stream.
///
/// # Errors
/// When the stream cannot be read.
pub(super) fn as_utf8(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    // The mark is checked here, because the decoder does not remove a mark that no text follows.
    let mut start = Vec::new();
    (&mut input).take(2).read_to_end(&mut start)?;
    let encoding = match start[..] {
        [0xff, 0xfe] => UTF_16LE,
        [0xfe, 0xff] => UTF_16BE,
        _ => return Ok(Box::new(Cursor::new(start).chain(input))),
    };
    // Buffered, because the decoder loses the end of its last character if it is read byte by byte.
    Ok(Box::new(BufReader::new(DecodeReaderBytesBuilder::new().encoding(Some(encoding)).build(input))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns this many bytes at a time.
    struct Pieces(Cursor<Vec<u8>>, usize);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            self.0.read(&mut buffer[..length])
        }
    }

    fn read(bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut input = as_utf8(Box::new(Pieces(Cursor::new(bytes.to_vec()), piece))).unwrap();
        let (mut text, mut part) = (Vec::new(), vec![0; piece]);
        loop {
            match input.read(&mut part).unwrap() {
                0 => return text,
                length => text.extend_from_slice(&part[..length]),
            }
        }
    }

    fn little(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_byte_order_mark_decides_whether_a_text_is_utf16() {
        let text = "grüß dich, 你好 🙂\r\n".repeat(2_000);
        let marked = "\u{feff}".to_owned() + &text;
        let big: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for piece in [1, 3, 64, 1 << 20] {
            assert_eq!(read(&little(&marked), piece), text.as_bytes(), "{piece}");
            assert_eq!(read(&big, piece), text.as_bytes(), "{piece}");
            for other in [text.as_bytes(), marked.as_bytes(), &little(&text), b"", b"\xff", b"\xff\xd8\xff"] {
                assert_eq!(read(other, piece), other, "{piece}");
            }
        }
    }

    #[test]
    fn what_is_no_character_is_replaced() {
        for (bytes, expected) in [
            (&b"\xff\xfe"[..], ""),
            (b"\xfe\xff", ""),
            (b"\xff\xfea\0b", "a\u{fffd}"),
            (b"\xff\xfe\x00\xd8", "\u{fffd}"),
            (b"\xff\xfe\x00\xd8a\0", "\u{fffd}a"),
            (b"\xff\xfe\x00\xdca\0", "\u{fffd}a"),
            (b"\xff\xfe\x00\xd8\x00", "\u{fffd}"),
        ] {
            for piece in [1, 7] {
                assert_eq!(String::from_utf8(read(bytes, piece)).unwrap(), expected, "{bytes:?}");
            }
        }
    }
}

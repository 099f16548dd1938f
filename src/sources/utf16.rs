//! Texts in UTF-16, as Windows PowerShell and some programs on Windows write them.
//!
//! In: a stream of bytes. Out: the same bytes, or, where a byte order mark says that they are UTF-16, the text in
//! UTF-8 without that mark. What is no character becomes a replacement character. Never fails of itself, and
//! never holds more than a chunk.

use std::{
    collections::VecDeque,
    io::{self, Cursor, Read},
};

const CHUNK_BYTES: usize = 16 << 10;

/// The text of a stream in UTF-8, if a byte order mark says that it is UTF-16; else the stream.
///
/// # Errors
/// When the stream cannot be read.
pub(super) fn as_utf8(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    (&mut input).take(2).read_to_end(&mut start)?;
    let unit: fn([u8; 2]) -> u16 = match start[..] {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return Ok(Box::new(Cursor::new(start).chain(input))),
    };
    Ok(Box::new(Utf16 { input, unit, odd: None, high: None, text: VecDeque::new(), ended: false }))
}

/// A stream of UTF-16 that is read as UTF-8.
struct Utf16 {
    input: Box<dyn Read + Send>,
    unit: fn([u8; 2]) -> u16,
    /// The first byte of a unit whose second one is not read yet.
    odd: Option<u8>,
    /// The first half of a surrogate pair whose second one is not read yet.
    high: Option<u16>,
    /// What is decoded and not returned yet.
    text: VecDeque<u8>,
    ended: bool,
}

impl Utf16 {
    fn decode_chunk(&mut self) -> io::Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        chunk.extend(self.odd);
        let kept = chunk.len();
        chunk.resize(CHUNK_BYTES, 0);
        let read = self.input.read(chunk.get_mut(kept..).unwrap_or_default())?;
        chunk.truncate(kept + read);
        self.ended = read == 0;
        let (pairs, rest) = chunk.as_chunks::<2>();
        self.odd = rest.first().copied();
        let mut units: Vec<u16> =
            self.high.take().into_iter().chain(pairs.iter().map(|pair| (self.unit)(*pair))).collect();
        if self.ended {
            // Half a unit is no character.
            units.extend(self.odd.take().map(|_| 0xfffd));
        } else {
            self.high = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
        }
        let mut bytes = [0; 4];
        for character in char::decode_utf16(units) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend(character.encode_utf8(&mut bytes).as_bytes());
        }
        Ok(())
    }
}

impl Read for Utf16 {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.text.is_empty() && !self.ended {
            self.decode_chunk()?;
        }
        self.text.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns so many bytes at a time.
    struct Pieces(Cursor<Vec<u8>>, usize);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            self.0.read(&mut buffer[..length])
        }
    }

    fn read(bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut text = Vec::new();
        as_utf8(Box::new(Pieces(Cursor::new(bytes.to_vec()), piece))).unwrap().read_to_end(&mut text).unwrap();
        text
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
            (b"\xff\xfea\0b", "a\u{fffd}"),
            (b"\xff\xfe\x00\xd8", "\u{fffd}"),
            (b"\xff\xfe\x00\xd8a\0", "\u{fffd}a"),
            (b"\xff\xfe\x00\xdca\0", "\u{fffd}a"),
            (b"\xff\xfe\x00\xd8\x00", "\u{fffd}\u{fffd}"),
        ] {
            for piece in [1, 7] {
                assert_eq!(String::from_utf8(read(bytes, piece)).unwrap(), expected, "{bytes:?}");
            }
        }
    }
}

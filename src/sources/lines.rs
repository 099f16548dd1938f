//! Splits a file into lines, in bounded memory.
//!
//! In: a stream of bytes. Out: its lines with their numbers, without their ends (LF or CRLF). A byte order mark at the
//! start is skipped. A line of more than [`MAX_LINE_BYTES`] is never kept in full: a record keeps too little to be
//! read, a text more than a turn holds, so that it is cut and counted where turns are made.

use std::io::{self, BufRead, BufReader, Read};

use types::model::MAX_TEXT_BYTES;

/// The longest line in bytes, without its end: large enough for the longest text with every character escaped.
pub(super) const MAX_LINE_BYTES: usize = 2 << 20;
/// After this many bytes, a message in a text takes no more lines. It is more than a turn holds, so that such a message
/// is cut and counted where turns are made.
pub(super) const MAX_MESSAGE_BYTES: usize = MAX_TEXT_BYTES + (256 << 10);
/// How many bytes of an overlong record are kept.
const KEPT_BYTES: usize = 4_096;
/// The mark that some programs write before a text in UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a stream.
pub(super) struct StreamLines {
    reader: BufReader<Box<dyn Read + Send>>,
    max_bytes: usize,
    /// How many bytes of a line of more than `max_bytes` are kept.
    kept_bytes: usize,
    read_bytes: u64,
    line: u64,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamLine {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its bytes, without the end of line; of an overlong line, its beginning.
    pub(super) bytes: Vec<u8>,
    /// The full length, if the line is overlong.
    pub(super) too_long: Option<u64>,
}

impl StreamLines {
    /// The lines of a stream.
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self::with_max_bytes(input, MAX_LINE_BYTES)
    }

    /// The lines of a stream, with another limit than [`MAX_LINE_BYTES`].
    pub(super) fn with_max_bytes(input: Box<dyn Read + Send>, max_bytes: usize) -> Self {
        let reader = BufReader::with_capacity(1 << 16, input);
        Self { reader, max_bytes, kept_bytes: KEPT_BYTES.min(max_bytes), read_bytes: 0, line: 0 }
    }

    /// The lines of a text, in which people write lines of any length: of an overlong one, [`MAX_LINE_BYTES`] are kept.
    pub(super) fn of_text(input: Box<dyn Read + Send>) -> Self {
        Self { kept_bytes: MAX_LINE_BYTES, ..Self::new(input) }
    }

    /// How many bytes were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The number of the last line that was read; 0 before the first.
    pub(super) fn number(&self) -> u64 {
        self.line
    }

    /// Whether a complete line has already arrived.
    pub(super) fn has_line(&self) -> bool {
        self.reader.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the stream.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<StreamLine>> {
        let mut bytes = Vec::new();
        let mut length = 0u64;
        loop {
            let chunk = match self.reader.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            let end = chunk.iter().position(|b| *b == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or(chunk);
            let used = part.len() + usize::from(end.is_some());
            let finished = end.is_some() || chunk.is_empty();
            length += part.len() as u64;
            if length <= self.max_bytes as u64 {
                bytes.extend_from_slice(part);
            } else {
                let wanted = self.kept_bytes.saturating_sub(bytes.len()).min(part.len());
                bytes.extend_from_slice(part.get(..wanted).unwrap_or(part));
                bytes.truncate(self.kept_bytes);
                bytes.shrink_to_fit();
            }
            self.reader.consume(used);
            self.read_bytes += used as u64;
            if !finished {
                continue;
            }
            if end.is_none() && length == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let too_long = (length > self.max_bytes as u64).then_some(length);
            if too_long.is_none() && bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
            return Ok(Some(StreamLine { number: self.line, bytes, too_long }));
        }
    }
}

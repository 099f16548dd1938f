//! The tables of older data packages: comma-separated values with quotes.
//!
//! In: a stream. Out: its records, each as its fields and the line on which it begins. Quoted fields may
//! hold commas, doubled quotes and line breaks. Memory is bounded: a record of more than
//! [`MAX_RECORD_BYTES`] is returned as too long and never kept whole.

use std::io::{self, BufRead, BufReader, Read};

/// Longest record in bytes.
pub(super) const MAX_RECORD_BYTES: usize = 1 << 20;

/// The records of a table.
pub(super) struct Records {
    input: BufReader<Box<dyn Read + Send>>,
    line: u64,
    read_bytes: u64,
}

/// A record of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    /// Its fields, without quotes.
    pub(super) fields: Vec<String>,
    /// Whether it was too long; then its fields are cut.
    pub(super) is_too_long: bool,
}

impl Records {
    /// The records of a stream.
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input: BufReader::with_capacity(1 << 16, input), line: 0, read_bytes: 0 }
    }

    /// How many bytes were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The line that was reached.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next record that is not blank; none at the end.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let line = self.line + 1;
            let mut bytes = Vec::new();
            let mut is_too_long = false;
            let mut in_quotes = false;
            loop {
                let chunk = match self.input.fill_buf() {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    chunk => chunk?,
                };
                if chunk.is_empty() {
                    break;
                }
                let mut used = 0;
                let mut is_complete = false;
                for byte in chunk {
                    used += 1;
                    in_quotes ^= *byte == b'"';
                    if *byte == b'\n' {
                        self.line += 1;
                        is_complete = !in_quotes;
                    }
                    if is_complete {
                        break;
                    }
                }
                let part = chunk.get(..used).unwrap_or(chunk);
                let room = MAX_RECORD_BYTES.saturating_sub(bytes.len());
                is_too_long |= part.len() > room;
                bytes.extend_from_slice(part.get(..part.len().min(room)).unwrap_or(part));
                self.input.consume(used);
                self.read_bytes += used as u64;
                if is_complete {
                    break;
                }
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_end_matches(['\n', '\r']);
            if !text.is_empty() {
                return Ok(Some(Record { line, fields: fields(text), is_too_long }));
            }
        }
    }
}

fn fields(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut in_quotes = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                push('"', &mut fields);
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => fields.push(String::new()),
            c => push(c, &mut fields),
        }
    }
    fields
}

fn push(c: char, fields: &mut [String]) {
    if let Some(field) = fields.last_mut() {
        field.push(c);
    }
}

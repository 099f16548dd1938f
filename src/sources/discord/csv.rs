//! Reads the tables of older data packages: comma-separated values with quotes.
//!
//! In: a stream. Out: its records, each as its fields and the line on which it begins. Quoted fields may hold commas,
//! doubled quotes and line breaks. Memory is bounded: a record of more than [`MAX_RECORD_BYTES`] is returned as too
//! long and is never kept in full.

use std::{
    io::{self, BufRead, BufReader, Read},
    mem,
};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// The longest record in bytes, without quotes.
pub(super) const MAX_RECORD_BYTES: usize = 1 << 20;

/// The records of a table.
pub(super) struct CsvRecords {
    input: BufReader<Box<dyn Read + Send>>,
    /// Boxed, since it holds a table of half a kilobyte.
    parser: Box<Reader>,
    read_bytes: u64,
}

/// A record of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CsvRecord {
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    /// Its fields, without quotes.
    pub(super) fields: Vec<String>,
    /// Whether it was too long; if so, its fields are cut.
    pub(super) is_too_long: bool,
}

impl CsvRecords {
    /// The records of a stream.
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        // The parser strips a byte order mark only if the first read returns all of it and more, so it is stripped
        // here.
        let input = Box::new(DecodeReaderBytesBuilder::new().utf8_passthru(true).strip_bom(true).build(input));
        // A carriage return alone does not end a record: it is part of a text.
        let parser = Box::new(ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build());
        Self { input: BufReader::with_capacity(1 << 16, input), parser, read_bytes: 0 }
    }

    /// How many bytes were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The line that has been reached.
    pub(super) fn line(&self) -> u64 {
        self.parser.line() - 1
    }

    /// The next record that is not blank; `None` at the end.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<CsvRecord>> {
        let (mut fields, mut field, mut part): (Vec<String>, _, _) = (Vec::new(), Vec::new(), [0; 4 << 10]);
        let (mut length, mut breaks) = (0, 0);
        loop {
            let chunk = match self.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            let is_ended = chunk.is_empty();
            let (result, read, written) = self.parser.read_field(chunk, &mut part);
            self.input.consume(read);
            self.read_bytes += read as u64;
            let text = part.get(..written).unwrap_or_default();
            length += written;
            breaks += text.iter().filter(|byte| **byte == b'\n').count() as u64;
            if length <= MAX_RECORD_BYTES {
                field.extend_from_slice(text);
            }
            let record_end = match result {
                ReadFieldResult::End => return Ok(None),
                ReadFieldResult::Field { record_end } => record_end,
                _ => continue,
            };
            // Commas count too, or a record of nothing but commas would have no limit.
            length += 1;
            let is_too_long = length > MAX_RECORD_BYTES;
            if !is_too_long || !field.is_empty() {
                fields.push(String::from_utf8_lossy(&mem::take(&mut field)).into_owned());
            }
            if !record_end {
                continue;
            }
            if let Some(last) = fields.last_mut() {
                last.truncate(last.trim_end_matches('\r').len());
            }
            if fields != [""] {
                // The parser skips blank lines itself, so the line is counted back from the record's end.
                let line = self.parser.line() - breaks - u64::from(!is_ended);
                return Ok(Some(CsvRecord { line, fields, is_too_long }));
            }
            fields.clear();
            (length, breaks) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(table: &str) -> Vec<CsvRecord> {
        let mut records = CsvRecords::new(Box::new(io::Cursor::new(table.to_owned())));
        let found = std::iter::from_fn(|| records.next().unwrap()).collect();
        assert_eq!((records.read_bytes(), records.line()), (table.len() as u64, table.matches('\n').count() as u64));
        found
    }

    #[test]
    fn a_record_has_its_line_and_its_fields() {
        let expected: [(u64, &[&str]); 5] = [
            (2, &["ID", "Contents"]),
            (3, &["1", "one, \"two\"\r\nthree"]),
            (7, &["2", "it\rstays"]),
            (8, &["3", "5\" tall", ""]),
            (9, &["4"]),
        ];
        for end in ["\n", "\r\n"] {
            let lines = "\n\"ID\",Contents\n1,\"one, \"\"two\"\"\r\nthree\"\n\n\n2,it\rstays\n3,5\" tall,\n4";
            let table = lines.replace("\r\n", "<>").replace('\n', end).replace("<>", "\r\n");
            let found = records(&table);
            let found: Vec<_> = found.iter().map(|record| (record.line, record.fields.clone())).collect();
            assert_eq!(found, expected.map(|(line, fields)| (line, fields.iter().map(|f| f.to_string()).collect())));
        }
        let marked = CsvRecords::new(Box::new("\u{feff}\"ID\",x".as_bytes())).next().unwrap().unwrap();
        assert_eq!(marked.fields, ["ID", "x"]);
        assert_eq!(records(""), []);
    }

    #[test]
    fn a_record_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let fits = "x".repeat(MAX_RECORD_BYTES - 2);
        let quoted = format!("\"{fits}\"");
        let (long, commas) = (fits.clone() + "yz", ",".repeat(3 << 20));
        for (record, is_too_long) in [(fits, false), (quoted, false), (long, true), (commas, true)] {
            let found = records(&format!("{record}\n1\n"));
            let fields = &found[0].fields;
            let kept = fields.iter().map(String::len).sum::<usize>() + fields.len() - 1;
            assert_eq!((found[0].is_too_long, kept <= MAX_RECORD_BYTES), (is_too_long, true), "{kept}");
            assert_eq!((found[1].line, &found[1].fields[..]), (2, &["1".to_owned()][..]));
        }
        let open = records(&format!("a\n\"{}", "b,c\n".repeat(1 << 19)));
        assert_eq!((open.len(), open[1].line, open[1].is_too_long), (2, 2, true));
    }
}

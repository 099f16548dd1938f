//! Finds where the mails of an mbox begin.
//!
//! In: a stream. Out: one mail at a time, with the line that separates it from the previous mail. Programs do not agree
//! on how to escape a line in a mail that begins with `From `, and some do not escape it. Such a line therefore
//! separates mails only in these cases: if it ends with a date as programs write it and a header follows; if it holds
//! nothing more, as Thunderbird writes it, and a common header follows; or if it holds an address alone or another
//! date, comes after a blank line, and a common header follows. A byte order mark at the start is skipped.
//! Never holds more than one mail, and at most [`MAX_MAIL_BYTES`] of it.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::LazyLock,
};

use regex::bytes::Regex;

use crate::lines::BYTE_ORDER_MARK;

/// How much of a mail is kept. The text comes before the attachments, so it is kept.
const MAX_MAIL_BYTES: usize = 16 << 20;
/// How much of a line is read at once.
const CHUNK_BYTES: u64 = 64 << 10;

/// A date anywhere in the line: sentences have one, too.
static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^From .*\b(\d{1,2}:\d{2}(:\d{2})?\b.*\b\d{4}|\d{4}\b.*\b\d{1,2}:\d{2}(:\d{2})?)\b").ok()
});
/// The date that programs write at the end: weekday, day and month, time, and the year somewhere.
static WRITTEN_DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^From .*\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s+(\d{1,2}[ -]+)?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ -]+(\d{1,2}\b\s+|\d{4}\s+)?\d{1,2}:\d{2}(:\d{2})?(\s+([A-Z]{2,5}|[+-]\d{4}|\([A-Z]+\)))*(\s+\d{4})?(\s+([A-Z]{2,5}|[+-]\d{4}))?(\s+remote from .*)?\s*$",
    )
    .ok()
});
static COMMON_HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(From|To|Date|Subject|Received|Return-Path|Message-ID|Delivered-To|MIME-Version|Content-Type|Reply-To|Sender|Status|Cc|Bcc|FCC|In-Reply-To|References|User-Agent|Organization|Authentication-Results|Received-SPF|Delivery-Date|Envelope-To|Errors-To|DKIM-Signature|(X|ARC|List|Content|Resent)-[!-9;-~]+):",
    )
    .ok()
});

/// A mail as it is in the file.
pub(super) struct RawMail {
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    /// The line that separates it from the previous mail, which names an address and a date; `None` for a single mail.
    pub(super) separator: Option<String>,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// The mails of a stream.
pub(super) struct MboxMails {
    reader: BufReader<Box<dyn Read + Send>>,
    read_bytes: u64,
    line: u64,
    /// The chunk that was read ahead.
    ahead: Option<MboxChunk>,
    /// The separator of the next mail, with its line.
    separator: Option<(u64, String)>,
    begun: bool,
    /// Whether the last chunk ended its line.
    ends_line: bool,
}

/// A line, or a part of a long one.
struct MboxChunk {
    bytes: Vec<u8>,
    line: u64,
    is_start: bool,
}

impl MboxMails {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 16, input),
            read_bytes: 0,
            line: 0,
            ahead: None,
            separator: None,
            begun: false,
            ends_line: true,
        }
    }

    /// How many bytes were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The line that has been reached.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next mail; `None` at the end.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<RawMail>> {
        let (mut bytes, mut begins) = (Vec::new(), 0);
        let separator = self.separator.take();
        let mut after_blank = separator.is_none();
        while let Some(chunk) = self.chunk()? {
            let is_blank = chunk.bytes.iter().all(u8::is_ascii_whitespace);
            if !self.begun && is_blank {
                continue;
            }
            let may_separate = chunk.is_start && chunk.bytes.starts_with(b"From ");
            if may_separate && self.separates(&chunk.bytes, after_blank)? {
                let text = String::from_utf8_lossy(&chunk.bytes).trim_end().to_owned();
                let found = (chunk.line, text);
                if self.begun {
                    self.separator = Some(found);
                    break;
                }
                self.begun = true;
                self.separator = Some(found);
                return self.next();
            }
            self.begun = true;
            if bytes.is_empty() {
                begins = chunk.line;
            }
            after_blank = is_blank;
            let room = MAX_MAIL_BYTES.saturating_sub(bytes.len());
            bytes.extend_from_slice(chunk.bytes.get(..room).unwrap_or(&chunk.bytes));
        }
        let (line, separator) = separator.map_or((begins, None), |(line, text)| (line, Some(text)));
        if bytes.is_empty() && separator.is_none() {
            return Ok(None);
        }
        Ok(Some(RawMail { line, separator, bytes }))
    }

    /// Whether a line that begins with `From ` separates mails.
    fn separates(&mut self, line: &[u8], after_blank: bool) -> io::Result<bool> {
        let next = match self.ahead.take() {
            Some(next) => Some(next),
            None => self.read()?,
        };
        let following = next.as_ref().map_or(&b""[..], |next| &next.bytes);
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        let separates = if is(&WRITTEN_DATE, line) {
            is_header(following) || following.starts_with(b">From ")
        } else {
            let is_alone = words == 1 || after_blank && (words == 2 || is(&DATE, line));
            is_alone && is(&COMMON_HEADER, following)
        };
        self.ahead = next;
        Ok(separates)
    }

    fn chunk(&mut self) -> io::Result<Option<MboxChunk>> {
        match self.ahead.take() {
            Some(chunk) => Ok(Some(chunk)),
            None => self.read(),
        }
    }

    fn read(&mut self) -> io::Result<Option<MboxChunk>> {
        let mut bytes = Vec::new();
        let is_start = self.ends_line;
        (&mut self.reader).take(CHUNK_BYTES).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let is_first = self.read_bytes == 0;
        self.read_bytes += bytes.len() as u64;
        self.line += u64::from(is_start);
        if is_first && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        self.ends_line = bytes.ends_with(b"\n");
        Ok(Some(MboxChunk { bytes, line: self.line, is_start }))
    }
}

/// Whether a text, without the blank lines before it, may be the beginning of an mbox.
pub(super) fn begins_with_separator(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let (line, following) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    line.starts_with(b"From ") && (is(&DATE, line) || line.trim_ascii() == b"From" && is(&COMMON_HEADER, following))
}

/// Whether a line is a header of a mail.
pub(super) fn is_header(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.len() < line.len() && !name.is_empty() && name.iter().all(is_letter)
}

fn is(pattern: &LazyLock<Option<Regex>>, line: &[u8]) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

//! JSON Lines: one turn event per line, from a file or from standard input (`-`).
//!
//! In: bytes. Out: for each line that is not blank an event, or a dead letter with the origin `FILE:LINE`; after the
//! last line of a file (not of a stream) an idle mark for each bank. Memory is bounded: a line of more than
//! [`MAX_LINE_BYTES`] is never kept in full. A byte order mark at the start and CRLF are accepted, and so is a file in
//! gzip. A time without a zone is rejected.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    compression::{decompressed, decompressed_bytes},
    end_mark::end_mark,
    error::{SourceError, unreadable},
    format::{FormatOpener, SourceFormat},
    lines::{MAX_LINE_BYTES, StreamLine, StreamLines},
    turn_source::{SourceBatch, SourceProgress, TurnSource},
    utf16::as_utf8,
};
use types::{
    config::SourceSettings,
    lone_surrogates::replace_lone_surrogates,
    model::{Bank, DeadLetter, EventTime, TurnEvent, stated_bank},
};

/// JSON Lines.
pub(super) const FORMAT: SourceFormat = SourceFormat {
    name: "jsonl",
    about: "JSON Lines, one turn per line; - reads standard input",
    standard_input: true,
    only: None,
    looks_like: |sample| {
        let first = sample.head().lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        sample.is_file() && first.starts_with('{') && ["\"turn\"", "\"text\""].iter().all(|key| first.contains(key))
    },
    open: FormatOpener::Turns(|settings, bank| Ok(Box::new(JsonlSource::open(settings, bank)?))),
};

/// A source of JSON Lines.
pub struct JsonlSource {
    path: PathBuf,
    lines: StreamLines,
    bank: Option<Bank>,
    /// Size of the file; `None` for a stream, which gets no idle marks.
    file_bytes: Option<u64>,
    /// The latest event time of each bank.
    latest: BTreeMap<Bank, EventTime>,
    /// The remaining idle marks, once the end has been reached.
    marks: Option<VecDeque<TurnEvent>>,
}

impl JsonlSource {
    /// Opens a file, or standard input for `-`. A record without a bank gets `bank`.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be opened.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        if path == Path::new("-") {
            return Ok(Self::new(path, Box::new(io::stdin()), None, bank));
        }
        let open = || -> io::Result<(Box<dyn Read + Send>, Option<u64>)> {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            let bytes = metadata.is_file().then(|| decompressed_bytes(path, metadata.len())).transpose()?;
            Ok((as_utf8(decompressed(Box::new(file))?)?, bytes))
        };
        let (file, bytes) = open().map_err(|e| unreadable(path, 0, e))?;
        Ok(Self::new(path, file, bytes, bank))
    }

    fn new(path: &Path, reader: Box<dyn Read + Send>, file_bytes: Option<u64>, bank: Option<&Bank>) -> Self {
        Self {
            path: path.to_owned(),
            lines: StreamLines::new(reader),
            bank: bank.cloned(),
            file_bytes,
            latest: BTreeMap::new(),
            marks: None,
        }
    }

    /// Parses one record; a record without a bank gets the source's bank.
    fn event(&self, line: &[u8]) -> Result<TurnEvent, String> {
        let line = &*replace_lone_surrogates(line);
        if let Some(bank) = &self.bank
            && let Ok(serde_json::Value::Object(mut object)) = serde_json::from_slice(line)
            && !object.contains_key("bank")
        {
            object.insert("bank".to_owned(), bank.as_str().into());
            return TurnEvent::from_json(serde_json::Value::Object(object).to_string().as_bytes());
        }
        TurnEvent::from_json(line)
    }

    /// The bank that a rejected record is for; `None` if it is not known.
    fn bank_of_reject(&self, line: &[u8]) -> Option<Bank> {
        match serde_json::from_slice(line) {
            Ok(serde_json::Value::Object(object)) if !object.contains_key("bank") => self.bank.clone(),
            _ => stated_bank(line),
        }
    }

    fn remember(&mut self, event: &TurnEvent) {
        let time = match event {
            TurnEvent::Turn(turn) => turn.time,
            TurnEvent::Idle(idle) => idle.time,
            _ => return,
        };
        if self.file_bytes.is_none() {
            return;
        }
        match self.latest.get_mut(event.bank()) {
            Some(latest) => *latest = time.max(*latest),
            None => {
                self.latest.insert(event.bank().clone(), time);
            }
        }
    }

    fn take(&mut self, line: StreamLine, batch: &mut SourceBatch) {
        let origin = format!("{}:{}", self.path.display(), line.number);
        let reason = match line.too_long {
            Some(length) => format!(
                "the line has {length} bytes, more than {MAX_LINE_BYTES}; write one record a line, \
                 and split a long text into several turns"
            ),
            None if line.bytes.iter().all(u8::is_ascii_whitespace) => return,
            None => match self.event(&line.bytes) {
                Ok(event) => {
                    self.remember(&event);
                    batch.events.push(event);
                    return;
                }
                Err(reason) => with_advice(with_field(reason, &line.bytes)),
            },
        };
        let bank = self.bank_of_reject(&line.bytes);
        batch.rejects.push(DeadLetter::new(origin, reason, &line.bytes).in_bank(bank));
    }
}

/// Puts the field's name in front of serde's message about a value of the wrong type, which lacks it: the message
/// changes once that field is removed from the record.
fn with_field(message: String, record: &[u8]) -> String {
    const MAX_FIELDS: usize = 32;
    if !["invalid type", "invalid value"].iter().any(|problem| message.starts_with(problem)) {
        return message;
    }
    let record = serde_json::from_slice(&replace_lone_surrogates(record));
    let Ok(serde_json::Value::Object(mut record)) = record else { return message };
    if record.len() > MAX_FIELDS {
        return message;
    }
    let mut fields: Vec<String> = record.keys().cloned().collect();
    // `type` is removed last: without it, the record would have other fields.
    fields.sort_by_key(|field| field == "type");
    let wrong = fields.into_iter().find(|field| {
        record.remove(field);
        let rest = serde_json::Value::Object(record.clone()).to_string();
        TurnEvent::from_json(rest.as_bytes()).err().as_ref() != Some(&message)
    });
    match wrong {
        Some(field) => format!("{field}: {message}"),
        None => message,
    }
}

/// Adds advice to serde's message, which only says what is wrong.
fn with_advice(message: String) -> String {
    let advice = if message.contains("missing field `bank`") {
        "add it to the record, or name one bank for the whole source"
    } else if message.contains("missing field") {
        "add it to the record"
    } else if message.contains("unknown field") {
        "remove it, or write one of the fields that are known"
    } else if message.contains("unknown variant") {
        "write one of the types that are known"
    } else if message.contains("duplicate field") {
        "write it once"
    } else if message.contains("invalid type") || message.contains("invalid value") {
        "write a value of the expected type"
    } else {
        return message;
    };
    format!("{message}; {advice}")
}

impl TurnSource for JsonlSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let mut batch = SourceBatch::default();
        while batch.events.len() + batch.rejects.len() < limit.max(1) {
            // A stream may be silent for hours: return what has arrived instead of waiting for more.
            let arrived = !(batch.events.is_empty() && batch.rejects.is_empty());
            if arrived && self.file_bytes.is_none() && !self.lines.has_line() {
                break;
            }
            if let Some(marks) = &mut self.marks {
                match marks.pop_front() {
                    Some(mark) => batch.events.push(mark),
                    None => break,
                }
                continue;
            }
            match self.lines.next() {
                Ok(Some(line)) => self.take(line, &mut batch),
                Ok(None) => self.marks = Some(self.latest.iter().map(|(b, t)| end_mark(b, *t)).collect()),
                // Return what was read before the error; the next call returns the error.
                Err(_) if !(batch.events.is_empty() && batch.rejects.is_empty()) => break,
                Err(e) => return Err(unreadable(&self.path, self.lines.number(), e)),
            }
        }
        Ok((!(batch.events.is_empty() && batch.rejects.is_empty())).then_some(batch))
    }

    fn describe(&self) -> String {
        match self.path.to_str() {
            Some("-") => "JSON Lines from standard input".to_owned(),
            _ => format!("JSON Lines from {}", self.path.display()),
        }
    }

    fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.lines.read_bytes(), total: self.file_bytes, unit: "bytes" }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    /// A turn of a live stream is returned before the stream ends or a batch is full.
    #[test]
    fn a_stream_returns_what_has_arrived() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut source = JsonlSource::new(Path::new("-"), Box::new(reader), None, None);
        let line = |id: u32| {
            format!(
                "{{\"bank\":\"b\",\"turn\":\"{id}\",\"speaker\":\"Ann\",\"text\":\"Hello there\",\"time\":\"2024-05-01T10:00:00Z\"}}\n"
            )
        };
        writer.write_all(line(1).as_bytes()).unwrap();
        assert_eq!(source.next(512).unwrap().unwrap().events.len(), 1);
        writer.write_all((line(2) + &line(3) + "{\"ba").as_bytes()).unwrap();
        assert_eq!(source.next(512).unwrap().unwrap().events.len(), 2);
        drop(writer);
        assert_eq!(source.next(512).unwrap().unwrap().rejects.len(), 1);
        assert!(source.next(512).unwrap().is_none());
    }

    use proptest::prelude::*;

    use super::{super::tests::drain, *};
    use types::model::MAX_TEXT_BYTES;

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, SourceSettings) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let settings = SourceSettings::new("jsonl", file.path());
        (file, settings)
    }

    /// Everything that is read from a file with these bytes; origins without the file's path.
    fn read(bytes: &[u8], bank: Option<&str>) -> SourceBatch {
        let (_file, settings) = file(bytes);
        let bank = bank.map(|b| Bank::parse(b).unwrap());
        let mut batch = drain(&mut JsonlSource::open(&settings, bank.as_ref()).unwrap(), 3);
        let prefix = settings.path.display().to_string();
        for letter in &mut batch.rejects {
            letter.origin = letter.origin.strip_prefix(&prefix).expect("the origin begins with the file").to_owned();
        }
        batch
    }

    fn turn(id: &str, bank: Option<&str>, time: &str) -> String {
        let bank = bank.map(|b| format!(r#""bank":"{b}","#)).unwrap_or_default();
        format!(r#"{{{bank}"turn":"{id}","speaker":"Ada","text":"Hello.","time":"{time}"}}"#)
    }

    fn ids(batch: &SourceBatch) -> Vec<String> {
        batch
            .events
            .iter()
            .map(|e| match e {
                TurnEvent::Turn(t) => format!("{}:{}", t.bank, t.turn),
                TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
                TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
                TurnEvent::SessionEnd(s) => format!("{} ends {}", s.bank, s.session),
                other => format!("{other:?}"),
            })
            .collect()
    }

    const T: &str = "2023-05-08T13:56:00Z";

    #[test]
    fn every_bad_line_becomes_a_dead_letter_with_its_position_and_the_rest_is_read() {
        let good = turn("good", Some("b"), T);
        let long_text = "x".repeat(MAX_TEXT_BYTES + 1);
        let megabytes = "x".repeat(2_000_000);
        let with_text = |text: &str| format!(r#"{{"bank":"b","turn":"1","speaker":"A","text":"{text}","time":"{T}"}}"#);
        for (bad, expected) in [
            (b"{\"bank\":".to_vec(), "not JSON: EOF while parsing a value at line 1 column 8; write one JSON object"),
            (b"nonsense".to_vec(), "not JSON: expected ident at line 1 column 2"),
            (b"[1]".to_vec(), "not a JSON object; write one object"),
            (b"{\"turn\":\"\xff\"}".to_vec(), "not UTF-8 after byte 9; re-encode"),
            (turn("1", None, T).into(), "missing field `bank`; add it to the record, or name one bank"),
            (format!(r#"{{"bank":"b","turn":"1","text":"x","time":"{T}"}}"#).into(), "missing field `speaker`; add it"),
            (good.replace("\"speaker\"", "\"speeker\"").into(), "unknown field `speeker`, expected one of"),
            (good.replace("\"good\"", "7").into(), "turn: invalid type: integer `7`, expected a string; write a value"),
            (good.replace("\"Ada\"", "null").into(), "speaker: invalid type: null, expected a string; write a value"),
            (
                good.replace("\"Hello.\"", r#""x","attachments":[{"caption":5}]"#).into(),
                "attachments: invalid type: integer `5`, expected a string; write a value",
            ),
            (turn("1", Some("../etc"), T).into(), "bank: segment \"..\" of \"../etc\" is not allowed; use 1 to 128"),
            (turn("1", Some(""), T).into(), "bank: 0 characters long; use"),
            (
                turn("1", Some("b"), "2023-05-08T13:56:00").into(),
                "time: \"2023-05-08T13:56:00\" has no zone; write RFC",
            ),
            (turn("1", Some("b"), "yesterday").into(), "time: \"yesterday\" is not a time; write RFC"),
            (turn("1", Some("b"), "1500-01-01T00:00:00Z").into(), "time: \"1500-01-01T00:00:00Z\" is out of range"),
            (turn("1", Some("b"), "9999-01-01T00:00:00Z").into(), "time: \"9999-01-01T00:00:00Z\" is out of range"),
            (turn("", Some("b"), T).into(), "turn: empty; give it a name"),
            (with_text("  ").into(), "text: empty; write what was said"),
            (with_text(&long_text).into(), "text: 1048577 bytes with captions, more than 1048576; split it"),
            (with_text(&megabytes).into(), "text: 2000000 bytes"),
            (br#"{"type":"greeting","bank":"b"}"#.to_vec(), "unknown variant `greeting`, expected one of"),
            (br#"{"type":"session_end","bank":"b"}"#.to_vec(), "missing field `session`; add it"),
            ("[".repeat(100_000).into_bytes(), "not JSON: recursion limit exceeded"),
            (
                "x".repeat(3 * MAX_LINE_BYTES).into_bytes(),
                "the line has 6291456 bytes, more than 2097152; write one record",
            ),
        ] {
            let bytes = [good.as_bytes(), b"\n\n", &bad, b"\n", good.as_bytes(), b"\n"].concat();
            let batch = read(&bytes, None);
            assert_eq!(batch.rejects.len(), 1, "{expected}");
            let letter = &batch.rejects[0];
            assert!(letter.reason.starts_with(expected), "{} is not {expected}", letter.reason);
            assert!(letter.reason.contains("; "), "{} says what to do", letter.reason);
            assert_eq!(letter.origin, ":3");
            assert_eq!(letter.payload, String::from_utf8_lossy(&bad[..bad.len().min(4_096)]));
            assert_eq!(ids(&batch), ["b:good", "b:good", "b idle 2024-05-08T13:56:00Z"]);
        }
    }

    #[test]
    fn a_byte_order_mark_crlf_blank_lines_and_a_missing_last_line_end_are_accepted() {
        let (one, two) = (turn("1", Some("b"), T), turn("2", Some("b"), T));
        for text in [
            format!("\u{feff}{one}\r\n\r\n  \t\r\n{two}"),
            format!("\n{one}\n{two}\n\n"),
            format!("{one}\r\n{two}\r\n"),
        ] {
            let batch = read(text.as_bytes(), None);
            assert_eq!(batch.rejects, [], "{text:?}");
            assert_eq!(ids(&batch)[..2], ["b:1", "b:2"], "{text:?}");
        }
        assert_eq!(read(b"", None), SourceBatch::default());
        assert_eq!(read(b"\xEF\xBB\xBF", None), SourceBatch::default());
    }

    #[test]
    fn a_packed_file_is_read_and_other_packings_say_what_to_do() {
        let text = format!("{}\n{}\n", turn("1", Some("b"), T), turn("2", Some("b"), T));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        assert_eq!(read(&gzip.finish().unwrap(), None), read(text.as_bytes(), None));
        assert_eq!(read(&zstd::encode_all(text.as_bytes(), 1).unwrap(), None), read(text.as_bytes(), None));
        for (start, what) in [(&b"\xfd7zXZ\0"[..], "xz"), (b"PK\x03\x04", "zip archive")] {
            let (_file, settings) = file(&[start, b"\0\0\0\0"].concat());
            let problem = JsonlSource::open(&settings, None).err().unwrap();
            let cause = std::error::Error::source(&problem).unwrap().to_string();
            assert!(cause.contains(what) && cause.contains("; unpack it"), "{cause}");
        }
    }

    #[test]
    fn half_a_character_costs_only_itself() {
        let half = turn("1", Some("b"), T).replace("Hello.", "Olive \\ud83d");
        let without_bank = turn("2", None, T).replace("Hello.", "\\udc4d here");
        let batch = read(format!("{half}\n{without_bank}\n").as_bytes(), Some("given"));
        assert_eq!(batch.rejects, []);
        let texts: Vec<&str> = batch
            .events
            .iter()
            .filter_map(|event| if let TurnEvent::Turn(turn) = event { Some(turn.text.as_str()) } else { None })
            .collect();
        assert_eq!(texts, ["Olive \u{fffd}", "\u{fffd} here"]);
    }

    #[test]
    fn a_dead_letter_names_the_bank_that_its_record_is_for() {
        let late = |bank: Option<&str>| turn("1", bank, "yesterday");
        for (line, given, expected) in [
            (late(Some("b")), Some("given"), Some("b")),
            (late(None), Some("given"), Some("given")),
            (late(None), None, None),
            (late(Some("../etc")), Some("given"), None),
            ("nonsense".to_owned(), Some("given"), None),
        ] {
            let batch = read(format!("{line}\n").as_bytes(), given);
            assert_eq!(batch.rejects[0].bank.as_ref().map(Bank::as_str), expected, "{line}");
        }
    }

    #[test]
    fn the_given_bank_is_for_records_without_one() {
        let text = format!(
            "{}\n{}\n{{\"type\":\"deletion\",\"turn\":\"1\"}}\n",
            turn("1", None, T),
            turn("2", Some("own"), T)
        );
        let batch = read(text.as_bytes(), Some("given"));
        assert_eq!(batch.rejects, []);
        let marks = ["given idle 2024-05-08T13:56:00Z", "own idle 2024-05-08T13:56:00Z"];
        assert_eq!(ids(&batch), ["given:1", "own:2", "given deletes 1", marks[0], marks[1]]);
    }

    #[test]
    fn a_file_ends_with_an_idle_mark_after_the_latest_turn_and_a_stream_does_not() {
        let text =
            [turn("1", Some("b"), "2023-07-01T00:00:00Z"), turn("2", Some("b"), "2023-01-01T00:00:00Z")].join("\n");
        assert_eq!(ids(&read(text.as_bytes(), None)), ["b:1", "b:2", "b idle 2024-07-01T00:00:00Z"]);
        let mut stream = JsonlSource::new(Path::new("-"), Box::new(io::Cursor::new(text)), None, None);
        assert_eq!(ids(&drain(&mut stream, 10)), ["b:1", "b:2"]);
        assert_eq!(stream.describe(), "JSON Lines from standard input");
    }

    #[test]
    fn progress_reaches_the_size_of_the_file() {
        let (_file, settings) = file(format!("{}\r\n\nx", turn("1", Some("b"), T)).as_bytes());
        let mut source = JsonlSource::open(&settings, None).unwrap();
        assert_eq!(source.progress().done, 0);
        drain(&mut source, 1);
        assert_eq!(Some(source.progress().done), source.progress().total);
    }

    #[test]
    fn a_directory_and_a_failing_stream_are_errors_that_name_the_line() {
        struct Failing(usize);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.0 == 0 {
                    return Err(io::Error::other("gone"));
                }
                self.0 -= 1;
                buffer[..6].copy_from_slice(b"bad 1\n");
                Ok(6)
            }
        }
        let mut source = JsonlSource::new(Path::new("-"), Box::new(Failing(2)), None, None);
        for _ in 0..2 {
            assert_eq!(source.next(10).unwrap().unwrap().rejects.len(), 1, "what was read is returned first");
        }
        assert!(source.next(10).unwrap_err().to_string().starts_with("-: cannot be read after line 2"));
        let directory = tempfile::tempdir().unwrap();
        let (_file, settings) = file(b"");
        let settings = SourceSettings { path: directory.path().to_owned(), ..settings };
        assert!(JsonlSource::open(&settings, None).and_then(|mut s| s.next(1)).is_err());
    }

    proptest! {
        #[test]
        fn every_line_that_is_not_blank_is_an_event_or_a_dead_letter(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                Just(b"\n".to_vec()),
                Just(b"\r\n".to_vec()),
                Just(turn("1", Some("b"), T).into_bytes()),
                Just(turn("1", None, T).into_bytes()),
            ], 0..20),
            bank in prop::option::of(Just("given")),
        ) {
            let bytes = pieces.concat();
            let lines = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).split(|b| *b == b'\n');
            let expected = lines.filter(|l| !l.iter().all(u8::is_ascii_whitespace)).count();
            let batch = read(&bytes, bank);
            let events = batch.events.iter().filter(|e| !matches!(e, TurnEvent::Idle(_))).count();
            prop_assert_eq!(events + batch.rejects.len(), expected);
        }
    }
}

//! One file of a program, opened for its reader.
//!
//! In: an export and the name of a file in it. Out: its lines or its values as JSON, one by one, and other small files
//! beside it. A line that is not JSON is a dead letter; the last one is only counted, since a program may be writing
//! it.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::findings::{Findings, kind};
use crate::{
    SourceError,
    chat::{ExportTree, JsonElement, JsonElements, TranscriptMessage, TranscriptRole},
    lines::StreamLines,
    zone::Zone,
};
use types::model::EventTime;

/// The longest line that is kept: pictures stand inside lines.
const MAX_LINE_BYTES: usize = 64 << 20;
/// The largest file that is read whole.
const MAX_WHOLE_BYTES: u64 = 256 << 20;
/// The largest file that is read beside a transcript.
const MAX_BESIDE_BYTES: u64 = 4 << 20;

/// What some editors write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file that is read.
pub(super) struct TranscriptFile<'a> {
    pub(super) tree: &'a ExportTree,
    /// Its path in the export.
    pub(super) name: &'a str,
    /// The program's format.
    pub(super) agent: &'static str,
    /// The zone of times that state none.
    pub(super) zone: &'a Zone,
}

/// A record of a file.
pub(super) struct TranscriptRecord {
    pub(super) line: u64,
    pub(super) value: Value,
}

impl TranscriptFile<'_> {
    /// The file in messages to the user.
    pub(super) fn origin(&self) -> String {
        self.tree.origin(self.name)
    }

    /// Its name without folders and without its last ending.
    pub(super) fn stem(&self) -> &str {
        let name = super::file_names::file_name(self.name);
        let name = name.strip_suffix(".zst").unwrap_or(name);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// A message of this file, of which no more is known. Without an id, its place is its thread and its time.
    pub(super) fn message(
        &self,
        thread: &str,
        role: TranscriptRole,
        time: EventTime,
        text: String,
    ) -> TranscriptMessage {
        TranscriptMessage {
            agent: self.agent.to_owned(),
            id: None,
            thread: thread.to_owned(),
            place: format!("{thread}/{}", time.unix_ms),
            role,
            time,
            text,
            project: None,
            directory: None,
            branch: None,
            model: None,
            calls: Vec::new(),
            speaker: None,
            is_on_kept_branch: true,
        }
    }

    /// Reads each line as JSON. What `take` returns as an error becomes the line's dead letter.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read.
    pub(super) fn each_line(
        &self,
        found: &mut Findings,
        mut take: impl FnMut(&mut Findings, TranscriptRecord) -> Result<(), String>,
    ) -> Result<(), SourceError> {
        let origin = self.origin();
        let mut lines = StreamLines::with_max_bytes(self.tree.read(self.name)?, MAX_LINE_BYTES);
        // A line that is cut is reported only once another line follows.
        let mut cut = None;
        while let Some(line) = lines.next().map_err(|e| self.tree.unreadable(self.name, lines.number(), e))? {
            found.rejects.extend(cut.take());
            if line.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let problem = line.too_long.map(|_| "it is longer than 64 MiB; leave it out");
            let bytes = types::lone_surrogates::replace_lone_surrogates(&line.bytes).into_owned();
            let element = JsonElement { path: 0, line: line.number, bytes, problem };
            match element.parse::<Value>(&origin) {
                Ok(value) => {
                    if let Err(reason) = take(found, TranscriptRecord { line: line.number, value }) {
                        found.reject(&element, &origin, reason);
                    }
                }
                Err(letter) => {
                    let ends_early = serde_json::from_slice::<Value>(&element.bytes).is_err_and(|e| e.is_eof());
                    if ends_early { cut = Some(letter) } else { found.rejects.push(letter) }
                }
            }
        }
        if cut.is_some() {
            found.not_talk(kind::UNFINISHED);
        }
        Ok(())
    }

    /// Reads each element of the array that the file is. What `take` returns as an error becomes its dead letter.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read.
    pub(super) fn each_element(
        &self,
        found: &mut Findings,
        mut take: impl FnMut(&mut Findings, TranscriptRecord) -> Result<(), String>,
    ) -> Result<(), SourceError> {
        let origin = self.origin();
        let mut elements = JsonElements::new(self.tree.read(self.name)?, &["*"]).expect_list(true);
        while let Some(element) = elements.next().map_err(|e| self.tree.unreadable(self.name, elements.line(), e))? {
            match element.parse::<Value>(&origin) {
                Ok(value) => {
                    if let Err(reason) = take(found, TranscriptRecord { line: element.line, value }) {
                        found.reject(&element, &origin, reason);
                    }
                }
                Err(letter) => found.rejects.push(letter),
            }
        }
        Ok(())
    }

    /// The whole file as one value; a dead letter, and `None`, if it is not JSON.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read.
    pub(super) fn whole(&self, found: &mut Findings) -> Result<Option<Value>, SourceError> {
        let mut bytes = Vec::new();
        let read = self.tree.read(self.name)?.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|e| self.tree.unreadable(self.name, 0, e))?;
        let problem = (bytes.len() as u64 > MAX_WHOLE_BYTES).then_some("it is larger than 256 MiB; divide it");
        let marked = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let bytes = types::lone_surrogates::replace_lone_surrogates(marked).into_owned();
        let element = JsonElement { path: 0, line: 1, bytes, problem };
        match element.parse::<Value>(&self.origin()) {
            Ok(value) => Ok(Some(value)),
            Err(letter) => {
                found.rejects.push(letter);
                Ok(None)
            }
        }
    }

    /// A small file beside this one: `..` leads to the folder above. `None` if there is none.
    pub(super) fn beside(&self, relative: &str) -> Option<String> {
        let mut parts: Vec<&str> = self.name.split('/').collect();
        parts.pop();
        let mut is_outside = false;
        for part in relative.split('/') {
            match part {
                ".." => is_outside |= parts.pop().is_none(),
                part => parts.push(part),
            }
        }
        let name = parts.join("/");
        let mut text = String::new();
        if !is_outside && self.tree.has(&name) {
            self.tree.read(&name).ok()?.take(MAX_BESIDE_BYTES).read_to_string(&mut text).ok()?;
            return Some(text);
        }
        // The export may begin further down than the file that is looked for.
        let on_disk = self.path()?.parent()?.join(relative);
        let kind = fs::metadata(&on_disk).ok()?;
        if kind.is_file() && kind.len() <= MAX_BESIDE_BYTES { fs::read_to_string(on_disk).ok() } else { None }
    }

    /// The name of the folder in which the file lies.
    pub(super) fn folder(&self) -> Option<String> {
        let path = self.path().and_then(|path| std::path::absolute(path).ok());
        let folder = path.as_deref().and_then(Path::parent).and_then(Path::file_name);
        folder
            .map(|name| name.to_string_lossy().into_owned())
            .or_else(|| self.name.rsplit('/').nth(1).map(str::to_owned))
    }

    /// Where the file lies, unless it is in an archive.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let path = if self.tree.is_file() { self.tree.path().to_owned() } else { self.tree.path().join(self.name) };
        Path::new(&path).is_file().then_some(path)
    }
}

/// A text of an object.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A text of an object that has more than blanks.
pub(super) fn filled(value: &Value, name: &str) -> Option<String> {
    text(value, name).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// The time in a field, which is a text with a zone.
///
/// # Errors
/// Says what is wrong.
pub(super) fn time(value: &Value, name: &str) -> Result<EventTime, String> {
    let time = text(value, name).and_then(|time| EventTime::read(time).ok());
    time.ok_or_else(|| format!("{name}: missing or not a time; write it as the program does"))
}

/// The time in a field with a number of milliseconds, or of seconds, since 1970.
///
/// # Errors
/// Says what is wrong.
pub(super) fn unix_time(value: Option<&Value>, name: &str) -> Result<EventTime, String> {
    const MIN_MS: f64 = 1e11;
    let number = value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()));
    let ms = number.map(|number| if number.abs() < MIN_MS { number * 1_000.0 } else { number });
    let time = ms.filter(|ms| ms.is_finite()).and_then(|ms| EventTime::new(ms.round() as i64, 0).ok());
    time.ok_or_else(|| format!("{name}: missing or not a time; write it as the program does"))
}

/// A time that is some milliseconds later, for messages that have no time of their own.
pub(super) fn later(time: EventTime, milliseconds: usize) -> EventTime {
    let more = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    EventTime::new(time.unix_ms.saturating_add(more), time.offset_seconds).unwrap_or(time)
}

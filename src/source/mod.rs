//! Turns in, one file per origin.
//!
//! In: a file or a stream. Out: turn events in the origin's order, and dead letters for
//! records that could not be taken; both in batches, since a reject is data on its way
//! to the dead-letter topic. A bad record never ends a source, never panics, and names
//! its place; only an origin that cannot be read at all is an error. Reads no clock.

use std::path::{Path, PathBuf};

use jiff::SignedDuration;

use crate::{
    config::{SOURCE_FORMATS, SourceSettings},
    model::{Bank, DeadLetter, EventTime, Idle, Invalid, TurnEvent},
};

pub mod evermembench;
mod jsonl;
mod locomo;
pub mod longmemeval;
mod queue;

pub use evermembench::EverMemBench;
pub use jsonl::Jsonl;
pub use locomo::Locomo;
pub use longmemeval::LongMemEval;

/// What was read at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What can go to the turns topic, in order.
    pub events: Vec<TurnEvent>,
    /// What cannot, with its place and what to do.
    pub rejects: Vec<DeadLetter>,
}

/// How far a source is, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is behind us.
    pub done: u64,
    /// All there is, where that is known.
    pub total: Option<u64>,
    /// What is counted: `bytes` or `turns`.
    pub unit: &'static str,
}

/// An origin of turns.
///
/// Resume contract: a source always starts from its beginning and keeps no position of
/// its own. Reading it again is harmless, because its turn ids are stable and a turn
/// that is identical to the one known changes nothing (decision 4). So a process that
/// was killed in the middle simply reads the whole source again.
pub trait Source: Send {
    /// The next events and rejects: at least one, and at most `limit` together
    /// (0 counts as 1). None at the end, and from then on.
    ///
    /// # Errors
    /// [`SourceError`] when the origin itself can no longer be read.
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError>;
    /// The origin in a few words, for messages.
    fn describe(&self) -> String;
    /// How far it is.
    fn progress(&self) -> Progress;
    /// What a user should know before the first record, to be said once; such as the
    /// zone that is assumed where the format names none (decision 7).
    fn notice(&self) -> Option<String> {
        None
    }
}

/// Why an origin cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file could not be opened or read.
    #[error("{path}: cannot be read after line {line}; check the path and its rights")]
    Read {
        /// The file, or `-`.
        path: PathBuf,
        /// The last line that was read whole; 0 before the first.
        line: u64,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file as a whole is not of its format.
    #[error("{path}:{line}:{column}: {problem}; {remedy}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Line of the first mistake, from 1.
        line: usize,
        /// Column of the first mistake, from 1.
        column: usize,
        /// What was found.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A key of the source's settings does not fit.
    #[error("source.{key}: {problem}")]
    Settings {
        /// The key.
        key: &'static str,
        /// What is wrong and what to write.
        problem: String,
    },
}

/// Opens the source that the settings name.
///
/// `bank` is where turns go whose record names no bank; for formats that hold several
/// conversations it is the first part of each conversation's bank.
///
/// # Errors
/// [`SourceError`] when the file cannot be opened, is not of its format, or a setting
/// does not fit the format.
pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Box<dyn Source>, SourceError> {
    match settings.format.as_str() {
        "jsonl" => Ok(Box::new(Jsonl::open(settings, bank)?)),
        "locomo" => Ok(Box::new(Locomo::open(settings, bank)?)),
        "longmemeval" => Ok(Box::new(LongMemEval::open(settings, bank)?)),
        "evermembench" => Ok(Box::new(EverMemBench::open(settings, bank)?)),
        other => Err(SourceError::Settings {
            key: "format",
            problem: format!("{other:?} is not known; write one of {}", SOURCE_FORMATS.join(", ")),
        }),
    }
}

/// The mark that ends a finished origin: from then on it is silent.
///
/// Its time is 366 days after the bank's last turn, longer than any gap that the
/// configuration allows, and at most the last day of the years that a time may have.
fn end_mark(bank: &Bank, last: EventTime) -> TurnEvent {
    const LAST_DAY_MS: i64 = 7_258_032_000_000; // 2199-12-31T00:00:00Z
    let year_ms = SignedDuration::from_hours(366 * 24).as_millis() as i64;
    let wanted = last.unix_ms.saturating_add(year_ms).min(LAST_DAY_MS.max(last.unix_ms));
    let time = EventTime::new(wanted, last.offset_seconds).or_else(|_| EventTime::new(wanted, 0)).unwrap_or(last);
    TurnEvent::Idle(Idle { bank: bank.clone(), time })
}

/// Adds what to do to a message about a record's shape that only says what is wrong.
fn advised(message: String) -> String {
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

fn unreadable(path: &Path, line: u64, source: std::io::Error) -> SourceError {
    SourceError::Read { path: path.to_owned(), line, source }
}

/// Offset in seconds of a setting such as `+02:00` or `Z`.
fn zone_offset(zone: &str) -> Result<i32, SourceError> {
    let at: Result<EventTime, Invalid> = EventTime::parse(&format!("2000-01-01T00:00:00{zone}"));
    at.map(|t| t.offset_seconds).map_err(|_| SourceError::Settings {
        key: "zone",
        problem: format!("{zone:?} is not an offset; write one such as \"+02:00\" or \"Z\""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a source gives, `limit` at a time.
    pub(super) fn drain(source: &mut dyn Source, limit: usize) -> Batch {
        let mut all = Batch::default();
        while let Some(batch) = source.next(limit).unwrap() {
            let size = batch.events.len() + batch.rejects.len();
            assert!((1..=limit).contains(&size), "{size} of at most {limit}");
            all.events.extend(batch.events);
            all.rejects.extend(batch.rejects);
        }
        assert_eq!(source.next(limit).unwrap(), None, "the end stays the end");
        all
    }

    #[test]
    fn the_end_mark_is_a_year_later_and_stays_in_range() {
        for (last, expected) in [
            ("2023-05-08T13:56:00Z", "2024-05-08T13:56:00Z"),
            ("2023-01-01T00:00:00+02:00", "2024-01-02T00:00:00+02:00"),
            ("2199-06-01T00:00:00Z", "2199-12-31T00:00:00Z"),
            ("2199-06-01T00:00:00+23:00", "2199-12-31T23:00:00+23:00"),
            ("2199-06-01T00:00:00+25:00", "2199-12-31T00:00:00Z"),
            ("2199-12-31T20:00:00Z", "2199-12-31T20:00:00Z"),
            ("2199-12-31T23:59:59-20:00", "2199-12-31T23:59:59-20:00"),
        ] {
            let bank = Bank::parse("b").unwrap();
            let TurnEvent::Idle(idle) = end_mark(&bank, EventTime::parse(last).unwrap()) else { panic!("not idle") };
            assert_eq!(idle.time, EventTime::parse(expected).unwrap(), "{last}");
        }
    }

    #[test]
    fn settings_that_do_not_fit_are_named() {
        let settings = |format: &str, path: &str, zone: &str, only: &[&str]| SourceSettings {
            format: format.to_owned(),
            path: path.into(),
            zone: zone.to_owned(),
            only: only.iter().map(|o| (*o).to_owned()).collect(),
        };
        for (settings, expected) in [
            (settings("csv", "x", "Z", &[]), "source.format: \"csv\" is not known"),
            (settings("locomo", "-", "Z", &[]), "source.path: locomo is read from a file"),
            (settings("longmemeval", "-", "Z", &[]), "source.path: longmemeval is read from a file"),
            (settings("evermembench", "-", "Z", &[]), "source.path: evermembench is read from a file"),
            (settings("longmemeval", "none.json", "noon", &[]), "source.zone: \"noon\" is not an offset"),
            (settings("evermembench", "none.json", "Z", &[]), "none.json: cannot be read after line 0"),
            (settings("locomo", "none.json", "Berlin", &[]), "source.zone: \"Berlin\" is not an offset"),
            (settings("jsonl", "none.jsonl", "Z", &["a"]), "source.only: jsonl holds no conversations"),
            (settings("jsonl", "none.jsonl", "Z", &[]), "none.jsonl: cannot be read after line 0"),
            (settings("locomo", "none.json", "Z", &[]), "none.json: cannot be read after line 0"),
        ] {
            let message = open(&settings, None).err().unwrap().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}

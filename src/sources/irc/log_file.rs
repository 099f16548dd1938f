//! One log file: its lines, and what its beginning shows about its clock and channel.
//!
//! In: a stream of bytes and the day in the file's name. Out: its lines, the clock that dates them, and the channel
//! that its notices name. Holds only the beginning, never the whole file.

use std::{
    collections::{HashMap, VecDeque},
    io::{self, Read},
};

use jiff::civil::Date;

use super::{
    clock::IrcClock,
    encoding::decode,
    line::{IrcEvent, IrcLine as LogLine, is_marked, line},
    timestamp::IrcDay,
};
use crate::lines::{StreamLine, StreamLines};

/// How much of a file is read before its first line is returned.
const HEAD_BYTES: usize = 512 << 10;

/// An open log file.
pub(super) struct IrcLogFile {
    lines: StreamLines,
    head: VecDeque<StreamLine>,
}

/// What the beginning of a file shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IrcLogHead {
    /// Whether it has any line of a log.
    pub(super) is_log: bool,
    /// The day on which the file begins, if its own lines show it.
    date: Option<Date>,
    /// Whether lines or markers state full dates.
    dated: bool,
    /// Whether its hours run from 12 to 11 twice a day.
    half_days: bool,
    /// Whether some lines state no time zone.
    pub(super) zoneless: bool,
    /// The channel that most of its notices name.
    pub(super) channel: Option<String>,
}

impl IrcLogFile {
    /// Opens a stream and reads its beginning.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn open(input: Box<dyn Read + Send>) -> io::Result<(Self, IrcLogHead)> {
        let mut lines = StreamLines::new(input);
        let mut head = VecDeque::new();
        let mut bytes = 0;
        while bytes < HEAD_BYTES
            && let Some(line) = lines.next()?
        {
            bytes += line.bytes.len() + size_of::<StreamLine>();
            head.push_back(line);
        }
        let beginning = beginning(&head);
        Ok((Self { lines, head }, beginning))
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<StreamLine>> {
        match self.head.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.lines.next(),
        }
    }

    /// How many bytes were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.lines.read_bytes()
    }

    /// The number of the last line that was read.
    pub(super) fn number(&self) -> u64 {
        self.lines.number()
    }
}

impl IrcLogHead {
    /// The clock for the file. `name` is the day in the file's name. `None` if neither the name nor the lines state a
    /// day.
    pub(super) fn clock(&self, name: Option<Date>) -> Option<IrcClock> {
        let date = self.date.or(name);
        (self.dated || date.is_some()).then(|| IrcClock::new(date, self.half_days))
    }
}

/// Whether most lines of a file's beginning have marks that only IRC logs use: `<nick>`, `*`, `-!-`, columns. A name
/// and a colon before the words do not count, because other chats have them too.
pub(super) fn reads_like_a_log(head: &str) -> bool {
    let (mut marked, mut other) = (0, 0);
    for text in head.lines().filter(|text| !text.trim().is_empty()) {
        match line(text) {
            LogLine::Day(_) => marked += 1,
            LogLine::Event { stamp: Some(_), .. } if is_marked(text) => marked += 1,
            LogLine::Event { stamp: None, .. } if text.starts_with("=== ") => {}
            _ => other += 1,
        }
    }
    marked > other
}

fn beginning(head: &VecDeque<StreamLine>) -> IrcLogHead {
    let mut found = IrcLogHead::default();
    let mut channels: HashMap<String, usize> = HashMap::new();
    let (mut latest_hour, mut last_hour, mut wraps, mut events) = (0, None, false, 0);
    for raw in head {
        let text = decode(&raw.bytes);
        match line(&text) {
            LogLine::Blank | LogLine::Unknown => {}
            LogLine::Day(date) => {
                if !found.dated && events > 0 {
                    // Lines before the first marker belong to the day before it.
                    found.date = if text.contains("Day changed") { date.yesterday().ok() } else { Some(date) };
                }
                found.dated = true;
                found.is_log = true;
            }
            LogLine::Channel(channel) => *channels.entry(channel.to_owned()).or_default() += head.len(),
            LogLine::Event { stamp, event, .. } => {
                events += 1;
                // A line without a time is not enough to take a file for a log.
                found.is_log |= stamp.is_some();
                found.dated |= matches!(stamp.and_then(|s| s.day), Some(IrcDay::Date(_)));
                found.zoneless |= stamp.is_some_and(|s| s.offset_seconds.is_none());
                if let Some(hour) = stamp.and_then(|s| s.time).map(|t| t.hour()) {
                    latest_hour = latest_hour.max(hour);
                    wraps |= last_hour.is_some_and(|last| last >= 11 && hour <= 1);
                    last_hour = Some(hour);
                }
                if let IrcEvent::Service { channel: Some(channel) } = event {
                    *channels.entry(channel.to_lowercase()).or_default() += 1;
                }
            }
        }
    }
    // Logs with dates in their lines use 24 hours; only logs that are named after a day use 12 hours.
    found.half_days = !found.dated && wraps && latest_hour <= 12;
    found.channel = channels.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0))).map(|(channel, _)| channel);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> IrcLogHead {
        IrcLogFile::open(Box::new(io::Cursor::new(text.to_owned()))).unwrap().1
    }

    #[test]
    fn the_beginning_tells_clock_and_channel() {
        let found = of("=== a [b@c] has joined #Ubuntu\n[11:58] <a> b\n[00:01] <a> c\n=== mode/#ubuntu [+o a] by b\n");
        assert!(found.is_log && found.half_days && found.zoneless && !found.dated);
        assert_eq!(found.channel.as_deref(), Some("#ubuntu"));
        assert!(found.clock(None).is_none(), "nothing says the day");
        assert!(found.clock("2006-01-01".parse().ok()).is_some());
        for whole_day in ["[13:58] <a> b\n[00:01] <a> c\n", "[11:58] <a> b\n[12:01] <a> c\n"] {
            assert!(!of(whole_day).half_days, "{whole_day}");
        }
        assert!(!of("2025-09-02 21:11:39.8Z\ta\tb\n").zoneless);
        assert!(!of("1000 1002 -\n<html>\n").is_log);
        assert!(!of("").is_log);
    }

    #[test]
    fn logs_are_told_from_other_chats() {
        for (head, expected) in [
            ("[10:00] <a> b\n=== c [d@e] has joined #f\n", true),
            ("--- Log opened Sat Jan 26 15:04:04 2013\n15:04 < a> b\n", true),
            ("2013-01-26 15:04:09\ta\tb\n", true),
            ("rust 2018-05-29 [21:20:37] <a> b\n", true),
            ("[2023-01-01 10:00:00] Me: hello\n", false),
            ("[01/02/24, 10:00:00] Ann: hello\n", false),
            ("=== a heading\nwords\n", false),
            ("", false),
        ] {
            assert_eq!(reads_like_a_log(head), expected, "{head:?}");
        }
    }

    #[test]
    fn lines_before_the_first_marker_belong_to_the_day_before() {
        let found = of("23:59 <a> b\n--- Day changed Sun Jan 27 2013\n");
        assert_eq!(found.date.map(|d| d.to_string()).as_deref(), Some("2013-01-26"));
    }
}

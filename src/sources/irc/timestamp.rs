//! Reads the time at the start of a log line, in the forms that clients write.
//!
//! In: a line. Out: the day, time and zone that it states, and the rest of the line; or the day in a marker such as
//! irssi's `--- Day changed`. Never uses earlier lines.

use jiff::civil::{Date, Time};

use crate::chat::foreign_month;
use types::month_names::month_number;

/// What a line states about its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IrcTimestamp {
    /// The day.
    pub(super) day: Option<IrcDay>,
    /// The time of day, to the second.
    pub(super) time: Option<Time>,
    /// Whether the line has seconds.
    pub(super) seconds: bool,
    /// The offset east of UTC in seconds.
    pub(super) offset_seconds: Option<i32>,
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IrcDay {
    /// A whole date.
    Date(Date),
    /// Month and day without a year, as HexChat writes them.
    MonthDay(i8, i8),
}

/// The time at the start of a line, and the rest of the line; `None` if the line does not begin with a time.
pub(super) fn stamp(line: &str) -> Option<(IrcTimestamp, &str)> {
    let (close, inner) = match line.as_bytes().first()? {
        b'[' => (']', &line[1..]),
        b'(' => (')', &line[1..]),
        _ => {
            let (stamp, rest) = moment(line)?;
            let ends = rest.is_empty() || rest.starts_with([' ', '\t', '<']);
            return (ends && stamp.time.is_some()).then_some((stamp, rest));
        }
    };
    let (inside, rest) = inner.split_once(close)?;
    let inside = inside.trim();
    if let Some((stamp, _)) = moment(inside).filter(|(_, left)| left.trim().is_empty())
        && stamp.time.is_some()
    {
        return Some((stamp, rest));
    }
    // Konversation writes the day and the time each in its own brackets.
    let date = written_date(inside)?;
    let (second, rest) = stamp_of_time(rest.trim_start())?;
    Some((IrcTimestamp { day: Some(IrcDay::Date(date)), ..second }, rest))
}

fn stamp_of_time(line: &str) -> Option<(IrcTimestamp, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (stamp, left) = moment(inside.trim())?;
    (left.trim().is_empty() && stamp.time.is_some()).then_some((stamp, rest))
}

/// Day, time and zone, as far as they are present.
fn moment(text: &str) -> Option<(IrcTimestamp, &str)> {
    let (day, rest) = match day(text) {
        Some((day, rest)) => (Some(day), rest.strip_prefix(['T', ' ', '_']).unwrap_or(rest)),
        None => (None, text),
    };
    match time(rest) {
        Some((stamp, rest)) => Some((IrcTimestamp { day, ..stamp }, rest)),
        None => day.map(|day| (IrcTimestamp { day: Some(day), ..IrcTimestamp::default() }, rest)),
    }
}

fn day(text: &str) -> Option<(IrcDay, &str)> {
    if let Some((year, rest)) = digits(text, 4) {
        let (month, rest) = digits(rest.strip_prefix(['-', '/', '.'])?, 2)?;
        let (day, rest) = digits(rest.strip_prefix(['-', '/', '.'])?, 2)?;
        let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        return Some((IrcDay::Date(date), rest));
    }
    let (word, rest) = text.split_once(' ')?;
    let month = month_number(word)?;
    let (day, rest) = number(rest.trim_start())?;
    let day = i8::try_from(day).ok().filter(|d| (1..=31).contains(d))?;
    Some((IrcDay::MonthDay(month, day), rest))
}

fn time(text: &str) -> Option<(IrcTimestamp, &str)> {
    let (hour, rest) = number(text).filter(|(_, rest)| text.len() - rest.len() <= 2)?;
    let (minute, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
    let mut second = 0;
    let mut seconds = false;
    if let Some((value, after)) = rest.strip_prefix(':').and_then(|r| digits(r, 2)) {
        (second, seconds, rest) = (value, true, after);
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }
    let (hour, rest) = half_day(hour, rest)?;
    let (offset_seconds, rest) = offset(rest);
    let number = |n: u32| i8::try_from(n).ok();
    // A leap second is read as the last second of its minute.
    let time = Time::new(number(hour)?, number(minute)?, number(second.min(59))?, 0).ok()?;
    Some((IrcTimestamp { day: None, time: Some(time), seconds, offset_seconds }, rest))
}

/// The hour from 0 to 23, taking into account an `am` or `pm` after the time.
fn half_day(hour: u32, rest: &str) -> Option<(u32, &str)> {
    let word = rest.strip_prefix(' ').unwrap_or(rest);
    let Some(mark) = word.get(..2).filter(|m| m.eq_ignore_ascii_case("am") || m.eq_ignore_ascii_case("pm")) else {
        return Some((hour, rest));
    };
    let after = word.get(2..).unwrap_or_default();
    if after.starts_with(|c: char| c.is_alphanumeric()) {
        return Some((hour, rest));
    }
    let afternoon = mark.eq_ignore_ascii_case("pm");
    (1..=12).contains(&hour).then_some((hour % 12 + if afternoon { 12 } else { 0 }, after))
}

/// `Z`, `+02:00`, `+0200` or ` +0200` after a time.
fn offset(text: &str) -> (Option<i32>, &str) {
    if let Some(rest) = text.strip_prefix('Z') {
        return (Some(0), rest);
    }
    let found = || {
        let signed = text.strip_prefix(' ').unwrap_or(text);
        let sign = match signed.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let behind = signed.get(1..)?;
        let (hours, minutes, rest) = match digits(behind, 4) {
            Some((both, rest)) => (both / 100, both % 100, rest),
            None => {
                let (hours, rest) = digits(behind, 2)?;
                let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
                (hours, minutes, rest)
            }
        };
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
        (ends && hours < 24 && minutes < 60).then_some((sign * (hours * 60 + minutes) as i32 * 60, rest))
    };
    found().map_or((None, text), |(offset, rest)| (Some(offset), rest))
}

/// A date in words: `Sat Jan 26 15:04:04 2013`, `Sat Jan 26 2013`, `26 January 2013`, `2013-01-26`.
pub(super) fn written_date(text: &str) -> Option<Date> {
    let (mut month_found, mut day_found, mut year_found) = (None, None, None);
    for word in text.split([' ', '\t', ',']).filter(|w| !w.is_empty()) {
        if let Some((IrcDay::Date(date), _)) = day(word) {
            return Some(date);
        }
        match number(word) {
            Some((value, "")) if word.len() == 4 => year_found = Some(value),
            Some((value, "" | "." | "st" | "nd" | "rd" | "th")) if word.len() <= 4 => {
                day_found = day_found.or(Some(value));
            }
            // A weekday may look like a month, as French `mar.` for Tuesday does; it comes first, so a later match
            // wins.
            _ => month_found = month_number(word).or_else(|| foreign_month(word)).or(month_found),
        }
    }
    Date::new(i16::try_from(year_found?).ok()?, month_found?, i8::try_from(day_found?).ok()?).ok()
}

/// Exactly `count` digits, not followed by another digit.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (value, rest) = number(text)?;
    (text.len() - rest.len() == count).then_some((value, rest))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, day: Option<&str>, time: &str, offset_seconds: Option<i32>, rest: &str) {
        let (stamp, left) = stamp(line).unwrap_or_else(|| panic!("{line}"));
        let found = stamp.day.map(|d| match d {
            IrcDay::Date(date) => date.to_string(),
            IrcDay::MonthDay(month, day) => format!("{month}/{day}"),
        });
        assert_eq!(found.as_deref(), day, "{line}");
        assert_eq!(stamp.time.unwrap().to_string(), time, "{line}");
        assert_eq!(stamp.offset_seconds, offset_seconds, "{line}");
        assert_eq!(left, rest, "{line}");
    }

    #[test]
    fn the_times_of_all_clients_are_read() {
        check("[15:04] <a> b", None, "15:04:00", None, " <a> b");
        check("[15:04:09] <a> b", None, "15:04:09", None, " <a> b");
        check("15:04 <@a> b", None, "15:04:00", None, " <@a> b");
        check("15:04:09 -!- a", None, "15:04:09", None, " -!- a");
        check("15:04< a> b", None, "15:04:00", None, "< a> b");
        check("(15:04:09) a: b", None, "15:04:09", None, " a: b");
        check("[03:04pm] <a> b", None, "15:04:00", None, " <a> b");
        check("[12:04 am] <a> b", None, "00:04:00", None, " <a> b");
        check("2013-01-26 15:04:09\ta\tb", Some("2013-01-26"), "15:04:09", None, "\ta\tb");
        check("2025-09-02 21:11:39.812345Z\ta\tb", Some("2025-09-02"), "21:11:39", Some(0), "\ta\tb");
        check("2013-01-26T15:04:09+02:00 <a> b", Some("2013-01-26"), "15:04:09", Some(7_200), " <a> b");
        check("2013-01-26 15:04:09 -0330\ta\tb", Some("2013-01-26"), "15:04:09", Some(-12_600), "\ta\tb");
        check("[2013-01-26 15:04:09] <a> b", Some("2013-01-26"), "15:04:09", None, " <a> b");
        check("2013-01-26T15:04:09  <a> b", Some("2013-01-26"), "15:04:09", None, "  <a> b");
        check("Jan 26 15:04:09 <a>\tb", Some("1/26"), "15:04:09", None, " <a>\tb");
        check("Jan  6 15:04:09 *\tb", Some("1/6"), "15:04:09", None, " *\tb");
        check("[Sat Jan 26 2013] [15:04:09] <a> b", Some("2013-01-26"), "15:04:09", None, " <a> b");
        check("[Saturday 26 January 2013] [15:04:09] <a>", Some("2013-01-26"), "15:04:09", None, " <a>");
    }

    #[test]
    fn what_is_no_time_is_left_alone() {
        for line in [
            "",
            "<a> b",
            "[x] b",
            "[25:00] b",
            "15:60 b",
            "15:04x",
            "2013-13-01 10:00:00 b",
            "1000 1002 -",
            "[15:04",
            "=== a",
            "[13:00pm] x",
            "12 monkeys",
            "2013-01-26 is a day",
            "(no time) b",
            "[]",
            "é",
        ] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }

    #[test]
    fn dates_in_words_are_read() {
        for (text, expected) in [
            ("Sat Jan 26 15:04:04 2013", Some("2013-01-26")),
            ("Sat Jan 26 2013", Some("2013-01-26")),
            ("26 January, 2013", Some("2013-01-26")),
            ("2013-01-26 15:04", Some("2013-01-26")),
            ("mar. janv. 29 2013", Some("2013-01-29")),
            ("Sa Okt 26 15:04:04 2013", Some("2013-10-26")),
            ("la tammi 26 15:04:04 2013", Some("2013-01-26")),
            ("Sat Feb 30 2013", None),
            ("yesterday", None),
        ] {
            assert_eq!(written_date(text).map(|d| d.to_string()).as_deref(), expected, "{text}");
        }
    }
}

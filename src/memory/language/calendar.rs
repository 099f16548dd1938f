//! Days, weeks, months and years as intervals, and intervals as words.
//!
//! In: dates of the Gregorian calendar and the UTC offset in which they were meant. Out: closed intervals from the
//! first to the last millisecond of the days. It never panics; an interval outside the years that a turn may have is
//! `None`.

use jiff::{
    Span,
    civil::{Date, DateTime, Time, Weekday, time},
    tz::Offset,
};

use types::{
    model::{EventTime, Interval},
    month_names::{self, MONTHS},
};

/// Last millisecond of a day.
const DAY_END: Time = time(23, 59, 59, 999_000_000);
/// The parts of a day that English names, with their first and last milliseconds.
const DAY_PARTS: [(&str, Time, Time); 3] = [
    ("morning", time(0, 0, 0, 0), time(11, 59, 59, 999_000_000)),
    ("afternoon", time(12, 0, 0, 0), time(17, 59, 59, 999_000_000)),
    ("evening", time(18, 0, 0, 0), DAY_END),
];

/// The whole local day of a moment, in the moment's offset.
#[must_use]
pub fn day_of(time: EventTime) -> Interval {
    let date = time.local().date();
    LocalInterval::days(date, date).interval(time.offset_seconds).unwrap_or_else(|| Interval::at(time))
}

/// An interval in words, in the interval's own offset: `7 May 2023`,
/// `June 2023`, `2022`, `6 to 7 May 2023`, `evening of 7 May 2023`, `16 November 2025 14:00`.
#[must_use]
pub fn render_interval(i: &Interval) -> String {
    let local = |unix_ms| EventTime { unix_ms, offset_seconds: i.offset_seconds }.local();
    let (first, last) = (local(i.start_ms), local(i.end_ms));
    let clock = |t: DateTime| format!("{:02}:{:02}", t.hour(), t.minute());
    if first == last {
        return format!("{} {}", day_name(first.date()), clock(first));
    }
    if first.time() == Time::midnight() && last.time() == DAY_END {
        return render_days(first.date(), last.date());
    }
    if first.date() != last.date() {
        return format!("{} {} to {} {}", day_name(first.date()), clock(first), day_name(last.date()), clock(last));
    }
    match DAY_PARTS.iter().find(|(_, from, to)| (first.time(), last.time()) == (*from, *to)) {
        Some((part, _, _)) => format!("{part} of {}", day_name(first.date())),
        None => format!("{} {} to {}", day_name(first.date()), clock(first), clock(last)),
    }
}

fn render_days(first: Date, last: Date) -> String {
    let (a, b) = (first, last);
    if a.day() == 1 && b == b.last_of_month() {
        if a.month() == 1 && b.month() == 12 {
            return if a.year() == b.year() { a.year().to_string() } else { format!("{} to {}", a.year(), b.year()) };
        }
        return match (a.year() == b.year(), a.month() == b.month()) {
            (true, true) => format!("{} {}", month_name(a), a.year()),
            (true, false) => format!("{} to {} {}", month_name(a), month_name(b), b.year()),
            (false, _) => format!("{} {} to {} {}", month_name(a), a.year(), month_name(b), b.year()),
        };
    }
    match (a == b, a.year() == b.year(), a.month() == b.month()) {
        (true, ..) => day_name(a),
        (_, true, true) => format!("{} to {}", a.day(), day_name(b)),
        (_, true, false) => format!("{} {} to {}", a.day(), month_name(a), day_name(b)),
        (_, false, _) => format!("{} to {}", day_name(a), day_name(b)),
    }
}

fn day_name(date: Date) -> String {
    format!("{} {} {}", date.day(), month_name(date), date.year())
}

fn month_name(date: Date) -> &'static str {
    usize::try_from(date.month() - 1).ok().and_then(|m| MONTHS.get(m)).copied().unwrap_or_default()
}

/// The unit in which English counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarUnit {
    /// Midnight to midnight.
    Day,
    /// Monday to Sunday.
    Week,
    /// Saturday and Sunday.
    Weekend,
    /// First to last day.
    Month,
    /// January to December.
    Year,
}

/// A closed stretch of local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalInterval {
    pub(super) first: DateTime,
    pub(super) last: DateTime,
}

impl LocalInterval {
    /// Whole days, both ends included.
    pub(super) fn days(first: Date, last: Date) -> Self {
        Self { first: first.to_datetime(Time::midnight()), last: last.to_datetime(DAY_END) }
    }

    /// A single moment.
    pub(super) fn moment(at: DateTime) -> Self {
        Self { first: at, last: at }
    }

    /// The day, week, weekend, month or year that holds a date. A weekday's weekend is
    /// the one at the end of its week.
    pub(super) fn around(date: Date, unit: CalendarUnit) -> Option<Self> {
        let monday = || shift(date, CalendarUnit::Day, -i64::from(date.weekday().to_monday_zero_offset()));
        Some(match unit {
            CalendarUnit::Day => Self::days(date, date),
            CalendarUnit::Week => Self::days(monday()?, shift(monday()?, CalendarUnit::Day, 6)?),
            CalendarUnit::Weekend => {
                Self::days(shift(monday()?, CalendarUnit::Day, 5)?, shift(monday()?, CalendarUnit::Day, 6)?)
            }
            CalendarUnit::Month => Self::days(date.first_of_month(), date.last_of_month()),
            CalendarUnit::Year => Self::days(date.first_of_year(), date.last_of_year()),
        })
    }

    /// The stretch that is this number of units later (earlier if the number is negative).
    pub(super) fn relative(date: Date, unit: CalendarUnit, count: i64) -> Option<Self> {
        Self::around(shift(date, unit, count)?, unit)
    }

    /// A month of a year.
    pub(super) fn month(year: i16, month: i8) -> Option<Self> {
        Self::around(Date::new(year, month, 1).ok()?, CalendarUnit::Month)
    }

    /// A whole year.
    pub(super) fn year(year: i16) -> Option<Self> {
        Self::around(Date::new(year, 1, 1).ok()?, CalendarUnit::Year)
    }

    /// The date, if the stretch is exactly one whole day.
    pub(super) fn whole_day(&self) -> Option<Date> {
        (*self == Self::days(self.first.date(), self.first.date())).then(|| self.first.date())
    }

    /// A part of the stretch's one day: `morning`, `afternoon`, `evening` or `night`.
    pub(super) fn part(&self, name: &str) -> Option<Self> {
        let date = self.whole_day()?;
        let name = if name == "night" { "evening" } else { name };
        let (_, from, to) = DAY_PARTS.iter().find(|(part, _, _)| *part == name)?;
        Some(Self { first: date.to_datetime(*from), last: date.to_datetime(*to) })
    }

    /// The interval; `None` if an end is outside the years that a turn may have.
    pub(super) fn interval(&self, offset_seconds: i32) -> Option<Interval> {
        let offset = Offset::from_seconds(offset_seconds).ok()?;
        let start_ms = offset.to_timestamp(self.first).ok()?.as_millisecond();
        let end_ms = offset.to_timestamp(self.last).ok()?.as_millisecond();
        EventTime::new(start_ms, offset_seconds).ok()?;
        EventTime::new(end_ms, offset_seconds).ok()?;
        (start_ms <= end_ms).then_some(Interval { start_ms, end_ms, offset_seconds })
    }
}

/// A date, a number of days, weeks, months or years later.
pub(super) fn shift(date: Date, unit: CalendarUnit, count: i64) -> Option<Date> {
    let span = match unit {
        CalendarUnit::Day => Span::new().try_days(count),
        CalendarUnit::Week | CalendarUnit::Weekend => Span::new().try_weeks(count),
        CalendarUnit::Month => Span::new().try_months(count),
        CalendarUnit::Year => Span::new().try_years(count),
    };
    date.checked_add(span.ok()?).ok()
}

/// The first such weekday strictly after a date, or the last one strictly before it.
pub(super) fn weekday_beside(date: Date, weekday: Weekday, after: bool) -> Option<Date> {
    date.nth_weekday(if after { 1 } else { -1 }, weekday).ok()
}

/// The number of a month's full name or of its usual abbreviation, in lower case.
pub(super) fn month_number(word: &str) -> Option<i8> {
    month_names::month_number(word).or_else(|| (word == "sept").then_some(9))
}

/// Whether a word, in lower case, is the full name of a month.
pub(super) fn is_month_name(word: &str) -> bool {
    MONTHS.iter().any(|m| m.eq_ignore_ascii_case(word))
}

/// A weekday by its full name, in lower case. Abbreviations are left out, because "sun", "sat" and "wed" are also
/// ordinary words.
pub(super) fn weekday_number(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &str, end: &str, expected: &str) {
        let i = Interval::try_from((EventTime::parse(start).unwrap(), EventTime::parse(end).unwrap())).unwrap();
        assert_eq!(render_interval(&i), expected);
    }

    #[test]
    fn intervals_read_as_dates() {
        check("2023-05-07T00:00:00Z", "2023-05-07T23:59:59.999Z", "7 May 2023");
        check("2023-06-01T00:00:00Z", "2023-06-30T23:59:59.999Z", "June 2023");
        check("2022-01-01T00:00:00Z", "2022-12-31T23:59:59.999Z", "2022");
        check("2019-01-01T00:00:00Z", "2021-12-31T23:59:59.999Z", "2019 to 2021");
        check("2023-06-01T00:00:00Z", "2023-08-31T23:59:59.999Z", "June to August 2023");
        check("2022-12-01T00:00:00Z", "2023-01-31T23:59:59.999Z", "December 2022 to January 2023");
        check("2023-05-06T00:00:00Z", "2023-05-07T23:59:59.999Z", "6 to 7 May 2023");
        check("2023-05-29T00:00:00Z", "2023-06-04T23:59:59.999Z", "29 May to 4 June 2023");
        check("2022-12-31T00:00:00Z", "2023-01-01T23:59:59.999Z", "31 December 2022 to 1 January 2023");
        check("2025-11-16T14:00:00+02:00", "2025-11-16T14:00:00+02:00", "16 November 2025 14:00");
        check("2023-05-07T18:00:00Z", "2023-05-07T23:59:59.999Z", "evening of 7 May 2023");
        check("2023-05-07T09:30:00Z", "2023-05-07T10:45:00Z", "7 May 2023 09:30 to 10:45");
        check("2023-05-07T22:00:00Z", "2023-05-08T02:00:00Z", "7 May 2023 22:00 to 8 May 2023 02:00");
    }

    #[test]
    fn the_day_of_a_moment_is_local_to_its_offset() {
        let late = EventTime::parse("2023-05-08T01:30:00+05:30").unwrap();
        let day = day_of(late);
        assert_eq!(render_interval(&day), "8 May 2023");
        assert_eq!(day.start_ms, EventTime::parse("2023-05-07T18:30:00Z").unwrap().unix_ms);
        assert_eq!(day.end_ms - day.start_ms, 86_399_999);
    }

    #[test]
    fn the_edges_of_the_calendar_do_not_panic() {
        for text in ["1900-01-01T00:00:00Z", "2199-12-31T23:59:59Z", "1900-01-01T00:00:00+14:00"] {
            let t = EventTime::parse(text).unwrap();
            let day = day_of(t);
            assert!(day.start_ms <= t.unix_ms && t.unix_ms <= day.end_ms, "{text}");
        }
        assert_eq!(shift(Date::MAX, CalendarUnit::Year, 1), None);
        assert_eq!(shift(Date::MIN, CalendarUnit::Week, i64::MIN), None);
        assert!(LocalInterval::year(1850).unwrap().interval(0).is_none());
    }
}

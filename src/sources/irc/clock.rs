//! Finds the local time of each line of a log whose lines do not state a full date.
//!
//! In: day markers, and the stamps of the lines, in the order of the file. Out: the local time of each line; `None`
//! until a day is known. If the time passes midnight without a marker, the next day begins. Reads no system clock.

use jiff::civil::{Date, DateTime, Time};

use super::timestamp::{IrcDay, IrcTimestamp};

/// If the time steps back by at least this many seconds, a new day has begun. A smaller step is the end of summer time,
/// or a clock that was set back.
const NEW_DAY_SECONDS: i32 = 2 * 3_600;
const HALF_DAY_HOURS: i8 = 12;

/// The time that a file has reached.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IrcClock {
    date: Option<Date>,
    last: Option<Time>,
    half_days: bool,
    afternoon: bool,
}

impl IrcClock {
    /// A clock for a file. `date` is its day, if that is known. `half_days` is for logs whose hours run from 12 to 11
    /// twice a day without AM or PM.
    pub(super) fn new(date: Option<Date>, half_days: bool) -> Self {
        Self { date, last: None, half_days, afternoon: false }
    }

    /// Sets the day, as a marker states it.
    pub(super) fn day(&mut self, date: Date) {
        if self.date != Some(date) {
            (self.date, self.last, self.afternoon) = (Some(date), None, false);
        }
    }

    /// The local time of a line; a line without a time gets the time of the previous line.
    pub(super) fn at(&mut self, stamp: Option<IrcTimestamp>) -> Option<DateTime> {
        let time = stamp.and_then(|s| s.time);
        let day = match stamp.and_then(|s| s.day) {
            Some(IrcDay::Date(date)) => Some(date),
            Some(IrcDay::MonthDay(month, day)) => Some(self.next_of(month, day)?),
            None => None,
        };
        if let Some(date) = day {
            self.day(date);
        }
        let date = self.date?;
        let Some(mut time) = time else {
            return Some(date.to_datetime(self.last.unwrap_or(Time::midnight())));
        };
        if self.half_days {
            let hour = time.hour() % HALF_DAY_HOURS + if self.afternoon { HALF_DAY_HOURS } else { 0 };
            time = Time::new(hour, time.minute(), time.second(), 0).unwrap_or(time);
        }
        let back = self.last.map_or(0, |last| seconds(last) - seconds(time));
        if day.is_none() && back >= NEW_DAY_SECONDS {
            if self.half_days && !self.afternoon {
                self.afternoon = true;
                let hour = time.hour() + HALF_DAY_HOURS;
                time = Time::new(hour, time.minute(), time.second(), 0).unwrap_or(time);
            } else {
                self.date = date.tomorrow().ok();
                if self.half_days {
                    self.afternoon = false;
                    time = Time::new(time.hour() % HALF_DAY_HOURS, time.minute(), time.second(), 0).unwrap_or(time);
                }
            }
        }
        self.last = Some(time);
        self.date.map(|date| date.to_datetime(time))
    }

    /// The date for a month and day: in the year of the previous line, or in the next year if the month lies more than
    /// half a year back.
    fn next_of(&self, month: i8, day: i8) -> Option<Date> {
        let now = self.date?;
        let date = Date::new(now.year(), month, day).ok();
        match date {
            Some(date) if month > now.month() - 6 => Some(date),
            _ => Date::new(now.year() + 1, month, day).ok().or(date),
        }
    }
}

fn seconds(time: Time) -> i32 {
    i32::from(time.hour()) * 3_600 + i32::from(time.minute()) * 60 + i32::from(time.second())
}

#[cfg(test)]
mod tests {
    use super::{super::timestamp, *};

    fn check(date: Option<&str>, half_days: bool, lines: &[&str], expected: &[&str]) {
        let mut clock = IrcClock::new(date.map(|d| d.parse().unwrap()), half_days);
        let found: Vec<String> = lines
            .iter()
            .map(|l| {
                if let Some(date) = l.strip_prefix("day ") {
                    clock.day(date.parse().unwrap());
                    return "-".to_owned();
                }
                clock.at(timestamp::stamp(l).map(|(s, _)| s)).map_or("none".to_owned(), |t| t.to_string())
            })
            .collect();
        assert_eq!(found, expected, "{lines:?}");
    }

    #[test]
    fn the_next_day_begins_past_midnight_and_at_markers() {
        check(
            Some("2013-01-26"),
            false,
            &["22:00 a", "=== a", "23:59 a", "00:01 a"],
            &["2013-01-26T22:00:00", "2013-01-26T22:00:00", "2013-01-26T23:59:00", "2013-01-27T00:01:00"],
        );
        check(
            None,
            false,
            &["10:00 a", "day 2013-01-26", "10:00 a", "day 2013-01-27", "09:00 a"],
            &["none", "-", "2013-01-26T10:00:00", "-", "2013-01-27T09:00:00"],
        );
        // A log that was reopened on the same day, and the end of summer time.
        check(
            None,
            false,
            &["day 2013-10-27", "02:59 a", "day 2013-10-27", "02:00 a", "03:00 a"],
            &["-", "2013-10-27T02:59:00", "-", "2013-10-27T02:00:00", "2013-10-27T03:00:00"],
        );
    }

    #[test]
    fn hours_of_half_a_day_count_to_midnight() {
        check(
            Some("2006-06-01"),
            true,
            &["[11:58] a", "[12:02] a", "[01:00] a", "[11:59] a", "[00:01] a"],
            &[
                "2006-06-01T11:58:00",
                "2006-06-01T12:02:00",
                "2006-06-01T13:00:00",
                "2006-06-01T23:59:00",
                "2006-06-02T00:01:00",
            ],
        );
    }

    #[test]
    fn months_without_a_year_pass_into_the_next() {
        check(
            Some("2013-12-30"),
            false,
            &["Dec 31 23:00:00 <a> b", "Jan  1 01:00:00 <a> b", "Feb 29 01:00:00 <a> b"],
            &["2013-12-31T23:00:00", "2014-01-01T01:00:00", "none"],
        );
    }
}

//! Stretches of local time that a question may mean, and how they are joined.
//!
//! In: dates, numbers of units, and the day on which a question is asked. Out: spans. A span that is open on one side
//! ends at the edge of the years that turns may have. Seasons are the meteorological ones of the northern hemisphere.

use jiff::{
    Span, ToSpan,
    civil::{Date, DateTime, ISOWeekDate, Weekday},
};

use super::NamedPeriod;
use crate::language::{
    calendar::{CalendarUnit, LocalInterval, shift},
    tense::Tense,
};
use types::model::{FIRST_YEAR, LAST_YEAR};

/// How many "a few" are, at most.
pub(super) const A_FEW: i64 = 5;

/// A stretch of local time, and how it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeriodSpan {
    pub(super) stretch: LocalInterval,
    /// False if a part of it was inferred.
    pub(super) certain: bool,
    /// Whether its words say which year it is in.
    pub(super) has_year: bool,
    /// Whether its words also name what is asked about.
    pub(super) is_name: bool,
}

impl PeriodSpan {
    /// A span whose words say all of it.
    pub(super) fn complete(stretch: LocalInterval) -> Self {
        Self { stretch, certain: true, has_year: true, is_name: false }
    }

    /// A span whose year was inferred.
    pub(super) fn inferred(stretch: LocalInterval) -> Self {
        Self { certain: false, has_year: false, ..Self::complete(stretch) }
    }

    /// The same, not certain.
    pub(super) fn likely(self) -> Self {
        Self { certain: false, ..self }
    }

    /// From its beginning to `until`, or without an end if that is earlier.
    pub(super) fn since(self, until: Option<Date>) -> Self {
        let last = until.filter(|until| *until >= self.stretch.first.date());
        let end = last.map_or(end_of_time(), |last| LocalInterval::days(last, last).last);
        Self { stretch: LocalInterval { last: end, ..self.stretch }, ..self }
    }

    /// Until its end.
    pub(super) fn until(self) -> Self {
        Self { stretch: LocalInterval { first: beginning_of_time(), ..self.stretch }, ..self }
    }

    /// All before it.
    pub(super) fn before(self) -> Option<Self> {
        let last = self.stretch.first.checked_sub(1.millisecond()).ok()?;
        Some(Self { stretch: LocalInterval { first: beginning_of_time(), last }, ..self })
    }

    /// All after it.
    pub(super) fn after(self) -> Option<Self> {
        let first = self.stretch.last.checked_add(1.millisecond()).ok()?;
        Some(Self { stretch: LocalInterval { first, last: end_of_time() }, ..self })
    }

    /// From its beginning to the end of another. A year that only one of them has counts for both.
    pub(super) fn up_to(self, other: Self) -> Option<Self> {
        let (mut from, mut to) = (self, other);
        if !from.has_year {
            from = from.moved_while(-1, |from| from.stretch.first > to.stretch.last)?;
            from =
                from.moved_while(1, |from| from.in_years(1).is_some_and(|next| next.stretch.first < to.stretch.first))?;
        } else if !to.has_year {
            to = to.moved_while(1, |to| to.stretch.last < from.stretch.first)?;
        }
        let stretch = LocalInterval { first: from.stretch.first, last: to.stretch.last };
        let certain = if from.has_year || to.has_year { from.certain || to.certain } else { false };
        let (has_year, is_name) = (from.has_year || to.has_year, from.is_name || to.is_name);
        (stretch.first <= stretch.last).then_some(Self { stretch, certain, has_year, is_name })
    }

    /// Moved by years while a test holds, at most by ten.
    fn moved_while(self, years: i16, holds: impl Fn(&Self) -> bool) -> Option<Self> {
        let mut moved = self;
        for _ in 0..10 {
            if !holds(&moved) {
                return Some(moved);
            }
            moved = moved.in_years(years)?;
        }
        None
    }

    fn in_years(self, years: i16) -> Option<Self> {
        let shifted = |at: DateTime| at.checked_add(Span::new().try_years(years).ok()?).ok();
        let (first, mut last) = (shifted(self.stretch.first)?, shifted(self.stretch.last)?);
        // The end of February stays the end of February.
        let is_month_end = self.stretch.last.date() == self.stretch.last.date().last_of_month();
        if is_month_end {
            last = last.date().last_of_month().to_datetime(last.time());
        }
        Some(Self { stretch: LocalInterval { first, last }, ..self })
    }

    /// The time that it names, in these bytes of a text.
    pub(super) fn named(self, range: std::ops::Range<usize>) -> NamedPeriod {
        let PeriodSpan { stretch: LocalInterval { first, last }, certain, is_name, .. } = self;
        NamedPeriod {
            range,
            first: (first > beginning_of_time()).then_some(first),
            last: (last < end_of_time()).then_some(last),
            certain,
            is_name,
        }
    }
}

fn beginning_of_time() -> DateTime {
    jiff::civil::date(FIRST_YEAR, 1, 1).at(0, 0, 0, 0)
}

fn end_of_time() -> DateTime {
    jiff::civil::date(LAST_YEAR, 12, 31).at(23, 59, 59, 0)
}

/// The stretch of one of the years around now that the tense points to: the last one that has begun, the next one that
/// has not ended, or the nearest.
pub(super) fn in_fitting_year(
    now: Date,
    tense: Tense,
    of_year: impl Fn(i16) -> Option<LocalInterval>,
) -> Option<LocalInterval> {
    // 29 February may be eight years away.
    let years = (-8..=8).filter_map(|away| of_year(now.year() + away));
    fitting(now, tense, years)
}

/// The stretch that the tense points to, among several.
pub(super) fn fitting(
    now: Date,
    tense: Tense,
    stretches: impl Iterator<Item = LocalInterval>,
) -> Option<LocalInterval> {
    let days = |a: Date, b: Date| a.until(b).map_or(i32::MAX, |span| span.get_days());
    let away = |one: &LocalInterval| {
        let (until, since) = (days(now, one.first.date()), days(one.last.date(), now));
        (until.max(since).max(0), until > 0)
    };
    match tense {
        Tense::Past => stretches.filter(|one| one.first.date() <= now).max_by_key(|one| one.first),
        Tense::Future => stretches.filter(|one| one.last.date() >= now).min_by_key(|one| one.first),
        Tense::Unclear => stretches.min_by_key(away),
    }
}

/// Several months of a year that begin with one of it; the thirteenth is January of the next year.
pub(super) fn months(year: i16, first: i8, count: i64) -> Option<LocalInterval> {
    let start = Date::new(year, 1, 1).ok()?;
    let first = shift(start, CalendarUnit::Month, i64::from(first) - 1)?;
    let end = shift(first, CalendarUnit::Month, count)?;
    Some(LocalInterval::days(first, end.yesterday().ok()?))
}

/// A quarter of a year, 1 to 4.
pub(super) fn quarter(year: i16, number: i8) -> Option<LocalInterval> {
    (1..=4).contains(&number).then(|| months(year, 3 * number - 2, 3)).flatten()
}

/// The quarter that is this many later than that of a date.
pub(super) fn quarter_from(date: Date, count: i64) -> Option<LocalInterval> {
    let first = Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?;
    let first = shift(first, CalendarUnit::Month, 3 * count)?;
    months(first.year(), first.month(), 3)
}

/// A season of a year: 0 is spring. Winter begins in the year and ends in the next one.
pub(super) fn season(year: i16, number: i8) -> Option<LocalInterval> {
    months(year, 3 * number + 3, 3)
}

/// A week of ISO 8601.
pub(super) fn iso_week(year: i16, week: i8) -> Option<LocalInterval> {
    let monday = ISOWeekDate::new(year, week, Weekday::Monday).ok()?.date();
    LocalInterval::around(monday, CalendarUnit::Week)
}

/// The days of a number of units up to a date, or from it on; the date itself counts as well.
pub(super) fn rolling(now: Date, unit: CalendarUnit, count: i64) -> Option<LocalInterval> {
    let other = shift(now, unit, count)?;
    Some(if count < 0 { LocalInterval::days(other, now) } else { LocalInterval::days(now, other) })
}

/// From now to another moment, forwards or back. Back, it holds the rest of today, as a number of days does: clocks of
/// speakers differ.
pub(super) fn rolling_clock(now: DateTime, clock: Span) -> Option<LocalInterval> {
    let other = now.checked_add(clock).ok()?;
    let last = if other < now { LocalInterval::days(now.date(), now.date()).last } else { other };
    Some(LocalInterval { first: now.min(other), last })
}

/// Easter Sunday of the Gregorian calendar, by the anonymous algorithm of 1876.
pub(super) fn easter(year: i16) -> Option<Date> {
    let year = i32::from(year);
    let (a, b, c) = (year % 19, year / 100, year % 100);
    let h = (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
    let l = (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let date = h + l - 7 * m + 114;
    Date::new(year as i16, (date / 31) as i8, (date % 31 + 1) as i8).ok()
}

/// The days of a holiday whose calendar is certain.
pub(super) fn holiday(name: Holiday, year: i16) -> Option<LocalInterval> {
    let days = |month, first, last| {
        Some(LocalInterval::days(Date::new(year, month, first).ok()?, Date::new(year, month, last).ok()?))
    };
    let from_easter = |first: i64, last: i64| {
        let sunday = easter(year)?;
        let day = |away| shift(sunday, CalendarUnit::Day, away);
        Some(LocalInterval::days(day(first)?, day(last)?))
    };
    match name {
        Holiday::Christmas => days(12, 24, 26),
        Holiday::ChristmasEve => days(12, 24, 24),
        Holiday::ChristmasDay => days(12, 25, 25),
        Holiday::SecondChristmasDay => days(12, 26, 26),
        Holiday::NewYearsEve => days(12, 31, 31),
        Holiday::NewYearsDay => days(1, 1, 1),
        Holiday::ValentinesDay => days(2, 14, 14),
        Holiday::Halloween => days(10, 31, 31),
        Holiday::GoodFriday => from_easter(-2, -2),
        Holiday::Easter => from_easter(-2, 1),
        Holiday::EasterSunday => from_easter(0, 0),
        Holiday::EasterMonday => from_easter(1, 1),
    }
}

/// A holiday that has the same days wherever it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holiday {
    Christmas,
    ChristmasEve,
    ChristmasDay,
    SecondChristmasDay,
    NewYearsEve,
    NewYearsDay,
    ValentinesDay,
    Halloween,
    GoodFriday,
    Easter,
    EasterSunday,
    EasterMonday,
}

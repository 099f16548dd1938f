//! Times that recur each year.
//!
//! In: a year, named or inferred. Out: the time in that year.

use jiff::civil::Date;

use super::period_span::{Holiday, PeriodSpan, holiday, iso_week, quarter, season};
use crate::language::calendar::LocalInterval;

/// A time that recurs each year.
#[derive(Debug, Clone, Copy)]
pub(super) enum Yearly {
    Quarter(i8),
    Season(i8),
    Week(i8),
    Holiday(Holiday),
    Month(i8),
    Day(i8, i8),
}

impl Yearly {
    pub(super) fn of_year(self, year: i16) -> Option<LocalInterval> {
        match self {
            Self::Quarter(number) => quarter(year, number),
            Self::Season(number) => season(year, number),
            Self::Week(number) => iso_week(year, number),
            Self::Holiday(name) => holiday(name, year),
            Self::Month(number) => LocalInterval::month(year, number),
            Self::Day(month, day) => {
                let day = Date::new(year, month, day).ok()?;
                Some(LocalInterval::days(day, day))
            }
        }
    }

    /// As a span of a year that is named, or inferred.
    pub(super) fn span(self, stretch: LocalInterval, named: bool) -> PeriodSpan {
        let span = if named { PeriodSpan::complete(stretch) } else { PeriodSpan::inferred(stretch) };
        let is_season = matches!(self, Self::Season(_));
        PeriodSpan { certain: span.certain && !is_season, is_name: matches!(self, Self::Holiday(_)), ..span }
    }
}

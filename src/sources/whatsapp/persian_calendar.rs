//! The Persian calendar (Solar Hijri), in which phones in Iran and Afghanistan write dates.
//!
//! In: a year, a month and a day. Out: the same day in the Gregorian calendar, or `None` if there is no such day. The
//! leap years follow the rule of 33 years, which agrees with ICU for every year from 1300 to 1500.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, civil::Date};

/// The years that are read as Persian. The first is the one in which the app appeared; from 1430 on they may be years
/// of the lunar Islamic calendar.
pub(super) const YEARS: RangeInclusive<u32> = 1388..=1429;
/// By how many years the Gregorian calendar is ahead when a Persian year begins.
pub(super) const BEHIND_YEARS: u32 = 621;

/// A year, and the day on which it begins.
const ANCHOR: (i64, Date) = (1403, Date::constant(2024, 3, 20));

/// The year for its last two digits.
pub(super) fn full_year(two_digits: u32) -> u32 {
    let century = YEARS.start() / 100 * 100;
    if century + two_digits < *YEARS.start() { century + 100 + two_digits } else { century + two_digits }
}

/// The day with these numbers.
pub(super) fn date(year: u32, month: u32, day: u32) -> Option<Date> {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let leap_years_before = |year: i64| (8 * year + 21).div_euclid(33);
    let days_of_month = match month {
        1..=6 => 31,
        7..=11 => 30,
        12 => 29 + leap_years_before(year + 1) - leap_years_before(year),
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    let (anchor, first) = ANCHOR;
    let years = 365 * (year - anchor) + leap_years_before(year) - leap_years_before(anchor);
    let months = 31 * (month - 1) - (month - 7).max(0);
    first.checked_add(SignedDuration::from_hours(24 * (years + months + day - 1))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_official_calendar() {
        for (persian, expected) in [
            ((1300, 1, 1), "1921-03-21"),
            ((1388, 1, 1), "2009-03-21"),
            ((1399, 12, 30), "2021-03-20"),
            ((1400, 1, 1), "2021-03-21"),
            ((1402, 10, 25), "2024-01-15"),
            ((1403, 1, 1), "2024-03-20"),
            ((1403, 7, 30), "2024-10-21"),
            ((1403, 12, 30), "2025-03-20"),
            ((1405, 6, 31), "2026-09-22"),
            ((1500, 12, 29), "2122-03-20"),
        ] {
            let (year, month, day) = persian;
            assert_eq!(date(year, month, day).map(|day| day.to_string()).as_deref(), Some(expected), "{persian:?}");
        }
        for (year, month, day) in [(1404, 12, 30), (1403, 7, 31), (1403, 13, 1), (1403, 0, 1), (1403, 1, 0)] {
            assert_eq!(date(year, month, day), None, "{year} {month} {day}");
        }
        // Every day follows the one before it.
        let mut before = date(1300, 1, 1).unwrap();
        for year in 1300..=1500 {
            for (month, day) in (1..=12).flat_map(|month| (1..=31).map(move |day| (month, day))) {
                let Some(found) = date(year, month, day).filter(|found| *found != before) else { continue };
                assert_eq!(found, before.tomorrow().unwrap(), "{year} {month} {day}");
                before = found;
            }
        }
    }

    #[test]
    fn two_digits_are_a_year_in_which_the_app_exists() {
        assert_eq!([88, 99, 0, 5].map(full_year), [1388, 1399, 1400, 1405]);
    }
}

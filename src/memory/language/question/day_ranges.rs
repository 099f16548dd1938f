//! The days that a question names.
//!
//! In: a question's text and the times that were found in it. Out: the first and last day of each time that is about a
//! week long at most, as days since 1970-01-01. A date in figures that can be read in two ways (09.01.2024) names both
//! days: the bank shows which one is meant.

use jiff::civil::Date;

use crate::language::times::TimeMention;

/// First and last day, as days since 1970-01-01.
pub(super) type DayRange = (i64, i64);

const DAY_MS: i64 = 86_400_000;
/// The maximum number of days in a time; longer times are left out.
const MAX_DAYS: i64 = 8;

/// The days that a question names.
pub(super) fn days(text: &str, times: &[TimeMention]) -> Vec<DayRange> {
    let named: Vec<DayRange> = times
        .iter()
        .map(|mention| {
            let local = |ms: i64| (ms + i64::from(mention.interval.offset_seconds) * 1_000).div_euclid(DAY_MS);
            (local(mention.interval.start_ms), local(mention.interval.end_ms))
        })
        .filter(|(first, last)| last - first < MAX_DAYS)
        .collect();
    if named.is_empty() { numeric_dates(text) } else { named }
}

/// Both readings of a date that consists of three numbers with the year last.
fn numeric_dates(text: &str) -> Vec<DayRange> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '/') {
        let numbers: Vec<i16> =
            word.split(['.', '/']).filter(|n| !n.is_empty()).map_while(|n| n.parse().ok()).collect();
        let [a, b, year @ 1900..2200] = numbers[..] else { continue };
        for (day, month) in [(a, b), (b, a)] {
            let date =
                i8::try_from(month).ok().zip(i8::try_from(day).ok()).and_then(|(m, d)| Date::new(year, m, d).ok());
            let number =
                date.and_then(|date| Some(i64::from(Date::new(1970, 1, 1).ok()?.until(date).ok()?.get_days())));
            found.extend(number.map(|n| (n, n)).filter(|days| !found.contains(days)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::times::find_times;

    #[test]
    fn days_and_weeks_are_named_and_months_are_not() {
        let check = |text: &str, expected: &[DayRange]| {
            assert_eq!(days(text, &find_times(text, None)), expected, "{text}");
        };
        check("Where was Elise on 31 Dec 2023?", &[(19_722, 19_722)]);
        check("What did Kevin do on 23.01.2024?", &[(19_745, 19_745)]);
        check("What did Kevin watch on 10.01.2024?", &[(19_732, 19_732), (19_997, 19_997)]);
        check("What did Kevin watch on 10.10.2024?", &[(20_006, 20_006)]);
        check("What did Kevin watch in January 2024?", &[]);
        check("What did Kevin watch at 1.2.3?", &[]);
        check("What did Kevin watch?", &[]);
    }
}

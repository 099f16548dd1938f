//! Dates in figures that can be read in two ways.
//!
//! In: a question's text. Out: both readings of each date that consists of three numbers with the year last
//! (09.01.2024), as days since 1970-01-01.

use jiff::civil::Date;

/// First and last day, as days since 1970-01-01.
pub(super) type DayRange = (i64, i64);

/// Both readings of a date that consists of three numbers with the year last.
pub(super) fn numeric_dates(text: &str) -> Vec<DayRange> {
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

    #[test]
    fn a_date_in_figures_has_both_readings() {
        let check = |text: &str, expected: &[DayRange]| assert_eq!(numeric_dates(text), expected, "{text}");
        check("What did Kevin watch on 10.01.2024?", &[(19_732, 19_732), (19_997, 19_997)]);
        check("What did Kevin watch on 10.10.2024?", &[(20_006, 20_006)]);
        check("What did Kevin watch in January 2024?", &[]);
        check("What did Kevin watch at 1.2.3?", &[]);
    }
}

//! The English names of the months.
//!
//! In: a word. Out: the month that it names, from 1; and the twelve names. Knows no other language, and no abbreviation
//! other than the first three letters.

/// The names, January first.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The month that a word names, in full or by its first three letters, in upper or lower case.
#[must_use]
pub fn month_number(word: &str) -> Option<i8> {
    let is_of = |name: &str| [name, name.get(..3).unwrap_or(name)].iter().any(|form| form.eq_ignore_ascii_case(word));
    let at = MONTHS.iter().position(|name| is_of(name))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_named_whole_or_by_three_letters() {
        for (word, expected) in [
            ("January", Some(1)),
            ("may", Some(5)),
            ("SEP", Some(9)),
            ("december", Some(12)),
            ("sept", None),
            ("ju", None),
            ("", None),
            ("mär", None),
        ] {
            assert_eq!(month_number(word), expected, "{word}");
        }
    }
}

//! The months that a text names, each with its year if the text names one.
//!
//! In: English text. Out: pairs of year and month in the order of the text, without repetition. A year is never
//! guessed. "May" counts only if the words around it show that it is the month.

use super::calendar::month_number;

/// Words before "May" that show that it is the month.
const BEFORE_MAY: &[&str] =
    &["in", "of", "since", "during", "early", "late", "mid", "by", "before", "after", "last", "this", "until", "next"];

/// Year and month, January being 1.
pub type YearMonth = (Option<i16>, i8);

/// Finds the months that a text names by their full names, capitalised.
#[must_use]
pub fn months(text: &str) -> Vec<YearMonth> {
    let years: Vec<i16> = text.split(|c: char| !c.is_alphanumeric()).filter_map(year).collect();
    let only_year = if let [year] = years[..] { Some(year) } else { None };
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let mut found: Vec<YearMonth> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let full = word.len() > 4 || matches!(*word, "May" | "June" | "July");
        let Some(number) = month_number(&word.to_lowercase()).filter(|_| full && starts_upper(word)) else { continue };
        // "July 2023", and "3 July, 2023" or "July 3, 2023".
        let next = |distance: usize| words.get(at + distance).copied().unwrap_or_default();
        let year = year(next(1)).or_else(|| is_day(next(1)).then(|| year(next(2))).flatten()).or(only_year);
        let before = at.checked_sub(1).and_then(|i| words.get(i)).copied().unwrap_or_default();
        let meant = *word != "May"
            || year.is_some()
            || is_day(before)
            || is_day(next(1))
            || BEFORE_MAY.contains(&before.to_lowercase().as_str());
        if meant && !found.contains(&(year, number)) {
            found.push((year, number));
        }
    }
    found
}

fn starts_upper(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

fn year(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| (1900..2200).contains(year))
}

fn is_day(word: &str) -> bool {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|e| word.strip_suffix(e)).unwrap_or(word);
    digits.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[YearMonth]) {
        assert_eq!(months(text), expected, "{text}");
    }

    #[test]
    fn months_with_and_without_their_year() {
        check("What did Ines do in July?", &[(None, 7)]);
        check("What did Ines do in July 2023, and in August 2024?", &[(Some(2023), 7), (Some(2024), 8)]);
        check("Where was she on 3 June, 2023 and on June 5, 2024?", &[(Some(2023), 6), (Some(2024), 6)]);
        check("In July, then again in July", &[(None, 7)]);
        check("What was in July and in August of 2023?", &[(Some(2023), 7), (Some(2023), 8)]);
    }

    #[test]
    fn may_is_a_month_only_where_its_neighbours_show_it() {
        check("May Ines come?", &[]);
        check("Who is May?", &[]);
        check("What happened in May?", &[(None, 5)]);
        check("What happened on 4 May?", &[(None, 5)]);
        check("What about May 2021", &[(Some(2021), 5)]);
        check("they march on, in august company", &[]);
    }
}

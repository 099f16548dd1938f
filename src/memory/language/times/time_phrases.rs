//! The words for times in each language except English, from Unicode's CLDR.
//!
//! In: `cldr/times.tsv`, which scripts/times_table.py makes from CLDR (the licence is next to it). Out: the phrases of
//! a language, longest first, each with its meaning. The file is read once.

use std::{collections::HashMap, sync::LazyLock};

use crate::language::calendar::CalendarUnit;
use types::model::Language;

/// What a phrase means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhraseMeaning {
    /// A month by name. A short form may also be another word, so it counts only next to a figure.
    Month { number: i8, short: bool },
    /// A day of the week, which alone does not say which one; Monday is 1.
    Weekday(i8),
    /// A number of units from now.
    Relative(CalendarUnit, i64),
    /// A day of the week, a number of weeks from now; Monday is 1.
    WeekdayOf(i8, i64),
}

/// A phrase with a number in it: the text before and after the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountedPhrase {
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    pub(super) unit: CalendarUnit,
    /// -1 for the past, 1 for the future.
    pub(super) sign: i64,
}

/// The phrases of a language.
#[derive(Debug, Default)]
pub(super) struct TimePhrases {
    /// By their first character, longest first.
    fixed: HashMap<char, Vec<(&'static str, PhraseMeaning)>>,
    /// Longest first.
    pub(super) counted: Vec<CountedPhrase>,
    /// Whether a date in figures has its year first.
    pub(super) year_first: bool,
}

impl TimePhrases {
    /// The longest phrase at the beginning of a text that `ends` accepts, given the text after it.
    pub(super) fn longest<'t>(&self, text: &'t str, ends: impl Fn(&'t str) -> bool) -> Option<(usize, PhraseMeaning)> {
        let of_character = self.fixed.get(&text.chars().next()?)?;
        let found = of_character.iter().find(|(phrase, _)| text.strip_prefix(phrase).is_some_and(&ends));
        found.map(|(phrase, meaning)| (phrase.len(), *meaning))
    }
}

/// The phrases of a language; none for English and for languages that are not in this table.
pub(super) fn phrases(language: Language) -> Option<&'static TimePhrases> {
    TABLE.get(&language)
}

static TABLE: LazyLock<HashMap<Language, TimePhrases>> = LazyLock::new(|| {
    let mut table: HashMap<Language, TimePhrases> = HashMap::new();
    for line in include_str!("cldr/times.tsv").lines() {
        let mut columns = line.split('\t');
        let (Some(code), Some(meaning), Some(all)) = (columns.next(), columns.next(), columns.next()) else { continue };
        let Some(language) = Language::of_code(code) else { continue };
        let phrases = table.entry(language).or_default();
        all.split('|').for_each(|phrase| phrases.add(meaning, phrase));
    }
    for phrases in table.values_mut() {
        phrases.fixed.values_mut().for_each(|some| some.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len())));
        phrases.counted.sort_by_key(|one| std::cmp::Reverse(one.before.len() + one.after.len()));
    }
    table
});

impl TimePhrases {
    fn add(&mut self, meaning: &str, phrase: &'static str) {
        let mut words = meaning.split(' ');
        let kind = words.next().unwrap_or_default();
        let second = words.next().unwrap_or_default();
        let number = || second.parse::<i64>().ok();
        let month = |short| {
            let number = number().and_then(|number| i8::try_from(number).ok())?;
            Some(PhraseMeaning::Month { number, short })
        };
        let meaning = match kind {
            "month" => month(false),
            // "3月" cannot be another word.
            "short" => month(!phrase.starts_with(|c: char| c.is_ascii_digit())),
            "weekday" => second.parse().ok().map(PhraseMeaning::Weekday),
            "day" => number().map(|count| PhraseMeaning::Relative(CalendarUnit::Day, count)),
            "week" => number().map(|count| PhraseMeaning::Relative(CalendarUnit::Week, count)),
            "months" => number().map(|count| PhraseMeaning::Relative(CalendarUnit::Month, count)),
            "year" => number().map(|count| PhraseMeaning::Relative(CalendarUnit::Year, count)),
            "weekdays" => second
                .parse()
                .ok()
                .zip(words.next().and_then(|week| week.parse().ok()))
                .map(|(weekday, week)| PhraseMeaning::WeekdayOf(weekday, week)),
            "ago" | "in" => {
                if let (Some(unit), Some((before, after))) = (unit(second), phrase.split_once('#')) {
                    self.counted.push(CountedPhrase { before, after, unit, sign: if kind == "ago" { -1 } else { 1 } });
                }
                None
            }
            _ => {
                self.year_first |= phrase.starts_with('y');
                None
            }
        };
        if let (Some(meaning), Some(first)) = (meaning, phrase.chars().next()) {
            self.fixed.entry(first).or_default().push((phrase, meaning));
        }
    }
}

fn unit(name: &str) -> Option<CalendarUnit> {
    Some(match name {
        "day" => CalendarUnit::Day,
        "week" => CalendarUnit::Week,
        "month" => CalendarUnit::Month,
        "year" => CalendarUnit::Year,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of the table is read, and every language has twelve months, "yesterday" and "three days ago".
    #[test]
    fn every_language_has_its_phrases() {
        let others = Language::ALL.into_iter().filter(|language| !matches!(language, Language::En | Language::Und));
        for language in others {
            let phrases = phrases(language).unwrap_or_else(|| panic!("{language} has no phrases"));
            let has = |wanted: PhraseMeaning| phrases.fixed.values().flatten().any(|(_, meaning)| *meaning == wanted);
            for number in 1..=12 {
                assert!(has(PhraseMeaning::Month { number, short: false }), "{language} {number}");
            }
            assert!(has(PhraseMeaning::Relative(CalendarUnit::Day, -1)), "{language}");
            assert!(phrases.counted.iter().any(|one| one.unit == CalendarUnit::Day && one.sign < 0), "{language}");
        }
    }
}

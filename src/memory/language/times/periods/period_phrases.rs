//! The phrases for periods in languages other than English, besides those of CLDR.
//!
//! In: `phrases.tsv`, written by hand: a language, a meaning, and the phrases with it, `#` standing for a number. Out:
//! the phrases of a language, longest first. The file is read once. A language without lines has the phrases of CLDR
//! alone.

use std::{collections::HashMap, sync::LazyLock};

use super::period_span::Holiday;
use crate::language::calendar::CalendarUnit;
use types::model::Language;

/// What a phrase of the table means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeriodMeaning {
    /// The time that follows begins the period; with `true`, the time before the phrase does.
    Since(bool),
    Until(bool),
    Before(bool),
    After(bool),
    Between,
    /// What follows is the first of two times, if the second one follows as well.
    From,
    /// Between two times, as far as the second.
    Join,
    /// Between two times that adjoin.
    And,
    /// Nothing.
    Article,
    Future,
    Number(i64),
    Few,
    Relative(CalendarUnit, i64),
    /// The year of the period before the phrase.
    YearOf(i16),
    /// A number of units back from now, or from now on.
    Rolling(CalendarUnit, i64),
    RollingHours,
    Quarter(Option<i8>),
    QuarterFrom(i64),
    IsoWeek,
    Season(i8),
    /// -1 for the last season, 1 for the next one; whether that is said after it.
    Pointed(i8, bool),
    /// The weekend of a week from now; none if only the tense says which.
    Weekend(Option<i64>),
    DayPart(&'static str),
    /// A part of a day, with the number of days from now.
    PartOf(&'static str, i64),
    Year,
    Holiday(Holiday),
}

/// A phrase, cut where its number stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodPhrase {
    pub(super) before: &'static str,
    /// `None` if the phrase holds no number.
    pub(super) after: Option<&'static str>,
    pub(super) meaning: PeriodMeaning,
}

/// The phrases of a language, longest first.
pub(super) fn period_phrases(language: Language) -> &'static [PeriodPhrase] {
    TABLE.get(&language).map_or(&[], Vec::as_slice)
}

static TABLE: LazyLock<HashMap<Language, Vec<PeriodPhrase>>> = LazyLock::new(|| {
    let mut table: HashMap<Language, Vec<PeriodPhrase>> = HashMap::new();
    for line in include_str!("phrases.tsv").lines() {
        let mut columns = line.split('\t');
        let (Some(code), Some(meaning), Some(all)) = (columns.next(), columns.next(), columns.next()) else { continue };
        let (Some(language), Some(meaning)) = (Language::of_code(code), meaning_of(meaning)) else { continue };
        let phrases = table.entry(language).or_default();
        phrases.extend(all.split('|').map(|phrase| match phrase.split_once('#') {
            Some((before, after)) => PeriodPhrase { before, after: Some(after), meaning },
            None => PeriodPhrase { before: phrase, after: None, meaning },
        }));
    }
    for phrases in table.values_mut() {
        phrases.sort_by_key(|one| std::cmp::Reverse(one.before.len() + one.after.map_or(0, str::len)));
    }
    table
});

fn meaning_of(text: &'static str) -> Option<PeriodMeaning> {
    use PeriodMeaning::*;
    let mut words = text.split(' ');
    let (kind, second, third) = (words.next()?, words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let number = || second.parse::<i64>().ok();
    Some(match kind {
        "since" => Since(false),
        "sincepost" => Since(true),
        "until" => Until(false),
        "untilpost" => Until(true),
        "before" => Before(false),
        "beforepost" => Before(true),
        "after" => After(false),
        "afterpost" => After(true),
        "between" => Between,
        "from" => From,
        "join" => Join,
        "and" => And,
        "article" => Article,
        "future" => Future,
        "number" => Number(number()?),
        "few" => Few,
        "day" => Relative(CalendarUnit::Day, number()?),
        "week" => Relative(CalendarUnit::Week, number()?),
        "months" => Relative(CalendarUnit::Month, number()?),
        "year" if second.is_empty() => Year,
        "year" => Relative(CalendarUnit::Year, number()?),
        "yearof" => YearOf(second.parse().ok()?),
        "past" if second == "hour" => RollingHours,
        "past" => Rolling(unit(second)?, -1),
        "coming" => Rolling(unit(second)?, 1),
        "quarter" => Quarter(second.parse().ok()),
        "quarters" => QuarterFrom(number()?),
        "isoweek" => IsoWeek,
        "season" => Season(second.parse().ok()?),
        "lastseason" => Pointed(-1, false),
        "thisseason" => Pointed(0, false),
        "nextseason" => Pointed(1, false),
        "seasonlast" => Pointed(-1, true),
        "seasonnext" => Pointed(1, true),
        "weekend" => Weekend(number()),
        "part" => DayPart(second),
        "partof" => PartOf(second, third.parse().ok()?),
        "holiday" => PeriodMeaning::Holiday(holiday_of(second)?),
        _ => return None,
    })
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

fn holiday_of(name: &str) -> Option<Holiday> {
    Some(match name {
        "Christmas" => Holiday::Christmas,
        "ChristmasEve" => Holiday::ChristmasEve,
        "ChristmasDay" => Holiday::ChristmasDay,
        "SecondChristmasDay" => Holiday::SecondChristmasDay,
        "NewYearsEve" => Holiday::NewYearsEve,
        "NewYearsDay" => Holiday::NewYearsDay,
        "ValentinesDay" => Holiday::ValentinesDay,
        "Halloween" => Holiday::Halloween,
        "GoodFriday" => Holiday::GoodFriday,
        "Easter" => Holiday::Easter,
        "EasterSunday" => Holiday::EasterSunday,
        "EasterMonday" => Holiday::EasterMonday,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in include_str!("phrases.tsv").lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 3, "{line}");
            assert!(Language::of_code(columns[0]).is_some() && !columns[2].is_empty(), "{line}");
        }
        let lines = include_str!("phrases.tsv").lines();
        assert!(lines.map(|line| line.split('\t').nth(1).unwrap()).all(|meaning| meaning_of(meaning).is_some()));
    }
}

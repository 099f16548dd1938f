//! Days of an English question: dates, several dates in short forms, weekdays, holidays, and parts of a day.
//!
//! In: the words and an index. Out: the days there. A day without its month, its year or its week is the one that the
//! tense points to.

use jiff::civil::Date;

use super::{
    english_reader::{EnglishReader, PeriodHit, is_day_part},
    period_span::{Holiday, PeriodSpan, fitting, holiday},
};
use crate::language::{
    calendar::{CalendarUnit, LocalInterval, month_number, shift, weekday_number},
    tense::Tense,
};

/// Words between several days of one month.
const BETWEEN_DAYS: [&str; 8] = ["to", "and", "-", "–", "/", ",", "or", "until"];

impl EnglishReader<'_> {
    /// "25 July", "the 25th and 26th of July", "25/26 July", "5th, 6th and 7th of October".
    pub(super) fn days_before_month(&self, at: usize) -> Option<PeriodHit> {
        let (first, last, next) = self.day_list(self.skip(at, &["the"]))?;
        let month_at = self.skip(next, &["of", "in"]);
        let month = self.month_of_day(month_at)?;
        self.days_of_month(at, month_at + 1, month, first, last)
    }

    /// "July 25", "July 25 and 26", "July 25 to 26", "July the 25th".
    pub(super) fn days_after_month(&self, at: usize) -> Option<PeriodHit> {
        let month = self.month_of_day(at)?;
        let from = self.skip(self.skip(at + 1, &["."]), &["the"]);
        let (first, last, next) = self.day_list(from)?;
        let is_clock = |at: usize| matches!(self.w(at), "am" | "pm" | ":" | "%");
        if is_clock(from + 1) {
            return None;
        }
        let (last, next) = if is_clock(next) { (first, from + 1) } else { (last, next) };
        self.days_of_month(at, next, month, first, last)
    }

    /// The first and last day of a list, and the index after it. "25, 2026" is a day and its year.
    fn day_list(&self, at: usize) -> Option<(i8, i8, usize)> {
        let first = self.reader.day_number(at).filter(|_| self.reader.words.may_begin(at))?;
        let (mut last, mut next) = (first, at + 1);
        while BETWEEN_DAYS.contains(&self.w(next)) {
            let place = self.skip(next + 1, &["and", "the"]);
            let place = self.skip(place, &["the"]);
            let Some(day) = self.reader.day_number(place).filter(|day| *day > last) else { break };
            // "25 July and 3 August": the second day has a month of its own.
            if next > at + 1 && self.month_of_day(self.skip(place + 1, &["of"])).is_none() && self.w(next) == "," {
                break;
            }
            (last, next) = (day, place + 1);
        }
        Some((first, last, next))
    }

    /// A month next to a day; short names and those that are other words need a capital.
    fn month_of_day(&self, at: usize) -> Option<i8> {
        let word = self.w(at);
        let number = month_number(word)?;
        let is_other_word = matches!(word, "may" | "march" | "mar" | "jan" | "dec" | "sep");
        (!is_other_word || self.reader.words.is_capitalised(at) || word == "may").then_some(number)
    }

    fn days_of_month(&self, at: usize, next: usize, month: i8, first: i8, last: i8) -> Option<PeriodHit> {
        // A weekday in front says which year is meant, which `absolute_dates` reads.
        if (1..=3).any(|back| weekday_number(self.before(at, back)).is_some()) && self.year_after(next).is_none() {
            return None;
        }
        let days =
            |year| Some(LocalInterval::days(Date::new(year, month, first).ok()?, Date::new(year, month, last).ok()?));
        let hit = self.of_some_year(at, next, days)?;
        Some(self.with_day_part(hit))
    }

    /// "the 25th", "on the 5th": of this month or of the one before or after it.
    pub(super) fn day_of_month(&self, at: usize) -> Option<PeriodHit> {
        let number = self.follows(at, &["the"])?;
        if !self.w(number).ends_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let (first, last, next) = self.day_list(number)?;
        let next_word = self.w(next);
        let ends = matches!(next_word, "" | "." | "," | "!" | "?" | "at" | "in")
            || is_day_part(next_word)
            || (next_word == "of"
                && matches!(self.w(next + 1), "this" | "last" | "next")
                && self.w(next + 2) == "month");
        if !ends
            || !matches!(
                self.before(at, 1),
                "on" | "since" | "until" | "before" | "after" | "from" | "between" | "by" | "to" | "of" | "happened"
            )
        {
            return None;
        }
        let today = self.today()?;
        let in_month = |away: i64| {
            let month = shift(today.first_of_month(), CalendarUnit::Month, away)?;
            let day = |day| Date::new(month.year(), month.month(), day).ok();
            Some(LocalInterval::days(day(first)?, day(last)?))
        };
        if next_word == "of" {
            let away = match self.w(next + 1) {
                "last" => -1,
                "next" => 1,
                _ => 0,
            };
            return Some(PeriodHit { next: next + 3, span: PeriodSpan::complete(in_month(away)?) });
        }
        let stretch = fitting(today, self.tense(at), (-2..=2).filter_map(in_month))?;
        Some(self.with_day_part(PeriodHit { next, span: PeriodSpan::inferred(stretch) }))
    }

    /// "Monday", "on Monday evening", by the tense; "last Monday" is read elsewhere.
    pub(super) fn weekday(&self, at: usize) -> Option<PeriodHit> {
        let weekday = weekday_number(self.w(at))
            .filter(|_| self.reader.words.is_capitalised(at) || self.before(at, 1) == "on")?;
        let named =
            ["on", "since", "until", "till", "before", "after", "from", "between", "to", "by", "through", "for", "and"];
        if !named.contains(&self.before(at, 1)) && !is_day_part(self.w(at + 1)) && !matches!(self.w(at + 1), "?" | "") {
            return None;
        }
        if self.before(at, 1) == "of" || !(self.ends_phrase(at + 1) || is_day_part(self.w(at + 1))) {
            return None;
        }
        let today = self.today()?;
        let monday = LocalInterval::around(today, CalendarUnit::Week)?.first.date();
        let of_week = |away: i64| {
            let days = 7 * away + i64::from(weekday.to_monday_zero_offset());
            shift(monday, CalendarUnit::Day, days).map(|day| LocalInterval::days(day, day))
        };
        let stretch = fitting(today, self.tense(at), (-1..=1).filter_map(of_week))?;
        Some(self.with_day_part(PeriodHit { next: at + 1, span: PeriodSpan::inferred(stretch) }))
    }

    /// "the morning of 5 October", "the night of the 25th".
    pub(super) fn part_of_day(&self, at: usize) -> Option<PeriodHit> {
        let part = self.skip(at, &["the"]);
        let of = self.follows(part + 1, &["of"]).filter(|_| is_day_part(self.w(part)))?;
        let day = self.closed(of)?;
        let stretch = day.span.stretch.part(self.w(part))?;
        Some(PeriodHit { span: PeriodSpan { stretch, ..day.span }, ..day })
    }

    /// "Christmas", "New Year's Eve 2025", "last Easter", "Christmas last year".
    pub(super) fn holiday(&self, at: usize) -> Option<PeriodHit> {
        let pointed = match self.w(at) {
            "last" => Some(Tense::Past),
            "this" => Some(Tense::Unclear),
            "next" | "coming" => Some(Tense::Future),
            _ => None,
        };
        let place = at + usize::from(pointed.is_some());
        let (name, next) = self.holiday_name(place)?;
        let dated = self.year_after(next).is_some();
        let named = [
            "at", "on", "over", "during", "since", "until", "till", "before", "after", "around", "between", "and",
            "from", "to", "by",
        ];
        if !dated && pointed.is_none() && !named.contains(&self.before(at, 1)) {
            return None;
        }
        if !dated && !self.ends_phrase(next) {
            return None;
        }
        let days = |year| holiday(name, year);
        let mut hit = match pointed.filter(|_| !dated) {
            None => self.of_some_year(at, next, days)?,
            Some(tense) => {
                let today = self.today()?;
                let years = (-1..=1).filter_map(|away| days(today.year() + away));
                let is_other = |one: &LocalInterval| tense != Tense::Past || one.last.date() < today;
                let stretch = fitting(today, tense, years.filter(is_other))?;
                PeriodHit {
                    next,
                    span: PeriodSpan { certain: tense != Tense::Unclear, ..PeriodSpan::complete(stretch) },
                }
            }
        };
        hit.span.is_name = true;
        Some(hit)
    }

    fn holiday_name(&self, at: usize) -> Option<(Holiday, usize)> {
        let christmas = |at: usize| match (self.w(at), self.w(at + 1)) {
            ("eve", _) => (Holiday::ChristmasEve, at + 1),
            ("day", _) => (Holiday::ChristmasDay, at + 1),
            _ => (Holiday::Christmas, at),
        };
        Some(match self.w(at) {
            "christmas" | "xmas" => christmas(at + 1),
            "boxing" if self.w(at + 1) == "day" => (Holiday::SecondChristmasDay, at + 2),
            "halloween" => (Holiday::Halloween, at + 1),
            "valentine" | "valentines" => {
                let day = self.skip(self.skip(at + 1, &["'", "’"]), &["s"]);
                (Holiday::ValentinesDay, self.follows(day, &["day"])?)
            }
            "new" if matches!(self.w(at + 1), "year" | "years") => {
                let end = self.skip(self.skip(at + 2, &["'", "’"]), &["s"]);
                match self.w(end) {
                    "eve" => (Holiday::NewYearsEve, end + 1),
                    "day" => (Holiday::NewYearsDay, end + 1),
                    _ => (Holiday::NewYearsDay, end),
                }
            }
            "good" if self.w(at + 1) == "friday" => (Holiday::GoodFriday, at + 2),
            "easter" => match self.w(at + 1) {
                "sunday" => (Holiday::EasterSunday, at + 2),
                "monday" => (Holiday::EasterMonday, at + 2),
                _ => (Holiday::Easter, at + 1),
            },
            _ => return None,
        })
    }

    /// Narrows one day by the part of it that follows.
    fn with_day_part(&self, hit: PeriodHit) -> PeriodHit {
        let from = self.follows(hit.next, &["in", "the"]).unwrap_or(hit.next);
        match hit.span.stretch.part(self.w(from)) {
            Some(stretch) => PeriodHit { next: from + 1, span: PeriodSpan { stretch, ..hit.span } },
            None => hit,
        }
    }

    /// Whether a phrase may end before a word: no noun follows, which the phrase would only describe.
    pub(super) fn ends_phrase(&self, at: usize) -> bool {
        const BEGINS_ANOTHER: [&str; 34] = [
            "", "?", ".", ",", "!", ";", ":", ")", "in", "with", "at", "and", "or", "to", "from", "last", "this",
            "next", "of", "until", "till", "did", "do", "does", "was", "were", "is", "are", "for", "by", "on", "-",
            "–", "i",
        ];
        const ALSO: [&str; 12] =
            ["we", "you", "what", "who", "where", "onwards", "onward", "through", "when", "about", "that", "before"];
        BEGINS_ANOTHER.contains(&self.w(at)) || ALSO.contains(&self.w(at))
    }
}

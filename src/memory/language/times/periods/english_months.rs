//! Months, seasons and years of an English question.
//!
//! In: the words and an index. Out: the period there. Names of months and seasons are also other words, so they count
//! only where a word before them or a year after them shows that they are times.

use super::{
    english_reader::{EnglishReader, PeriodHit},
    period_span::{PeriodSpan, fitting, season},
};
use crate::language::{
    calendar::{LocalInterval, month_number, weekday_number},
    tense::Tense,
};

/// Words before a month or a year that make it a time.
const BEFORE_A_MONTH: [&str; 19] = [
    "in",
    "during",
    "since",
    "until",
    "till",
    "before",
    "after",
    "of",
    "by",
    "from",
    "between",
    "through",
    "throughout",
    "early",
    "late",
    "mid",
    "this",
    "around",
    "over",
];
/// Those among them after which such a name may be a person's: "by June".
const BEFORE_A_NAME: [&str; 4] = ["by", "from", "around", "over"];
/// Words before "of" that make a month after it a time.
const BEFORE_OF: [&str; 14] = [
    "beginning",
    "start",
    "middle",
    "end",
    "half",
    "rest",
    "month",
    "day",
    "days",
    "week",
    "weeks",
    "weekend",
    "whole",
    "all",
];
/// Months whose names are also first names or verbs.
const AMBIGUOUS_MONTHS: [&str; 5] = ["april", "may", "march", "june", "august"];

impl EnglishReader<'_> {
    /// "the summer of 2026", "last winter", "in the spring", "winter 2025/26".
    pub(super) fn season(&self, at: usize) -> Option<PeriodHit> {
        let first = self.skip(at, &["the"]);
        let pointed = match self.w(first) {
            "last" => Some(Tense::Past),
            "this" => Some(Tense::Unclear),
            "next" | "coming" => Some(Tense::Future),
            _ => None,
        };
        let place = first + usize::from(pointed.is_some());
        let number = match self.w(place) {
            "spring" | "springtime" => 0,
            "summer" | "summertime" => 1,
            "autumn" | "fall" => 2,
            "winter" | "wintertime" => 3,
            _ => return None,
        };
        let next = place + 1;
        let of_year = |year| season(year, number);
        if let Some(tense) = pointed {
            let today = self.today()?;
            let seasons = (-1..=1).filter_map(|away| of_year(today.year() + away));
            // The last summer is over, and the next one has not begun.
            let is_other = |one: &LocalInterval| match tense {
                Tense::Past => one.last.date() < today,
                Tense::Future => one.first.date() > today,
                Tense::Unclear => one.first.date().year() == today.year() || one.last.date() >= today,
            };
            let stretch = fitting(today, tense, seasons.filter(is_other))?;
            return Some(PeriodHit { next, span: PeriodSpan::complete(stretch).likely() });
        }
        let dated = self.year_after(next);
        let named = matches!(self.before(at, 1), "in" | "during" | "over" | "since" | "until" | "before" | "after")
            && (first > at || number != 0 && self.w(place) != "fall");
        if dated.is_none() && (!named || !self.ends_phrase(next)) {
            return None;
        }
        let hit = self.of_some_year(at, next, of_year)?;
        // "2025/26" says which two years a winter is in.
        let both = self.w(hit.next) == "/" && self.reader.words.number(hit.next + 1, 2..=2).is_some();
        let next = if both && dated.is_some() { hit.next + 2 } else { hit.next };
        Some(PeriodHit { next, span: hit.span.likely() })
    }

    /// "in July", "July 2026", "July last year".
    pub(super) fn month(&self, at: usize) -> Option<PeriodHit> {
        let word = self.w(at);
        let number = month_number(word).filter(|_| word.len() > 3 || word == "may" || self.year(at + 1).is_some())?;
        // "31 June" is a day that does not exist, not a month.
        if self.reader.day_number(at.checked_sub(1).unwrap_or(usize::MAX)).is_some() {
            return None;
        }
        let dated = self.year_after(at + 1).is_some();
        let before = if self.w(at.saturating_sub(1)) == "-" { self.before(at, 2) } else { self.before(at, 1) };
        let is_ambiguous = AMBIGUOUS_MONTHS.contains(&word);
        let follows_another = month_number(self.before(at, 2)).is_some()
            || at.checked_sub(2).is_some_and(|before| self.year(before).is_some());
        let named = match before {
            "of" => BEFORE_OF.contains(&self.before(at, 2)) || weekday_number(self.before(at, 2)).is_some(),
            "and" | "to" | "–" => follows_another || self.before(at, 2) == "up",
            "for" | "about" => !is_ambiguous,
            before => {
                BEFORE_A_MONTH.contains(&before)
                    && !(is_ambiguous && BEFORE_A_NAME.contains(&before) && !self.opens_range(at))
            }
        };
        let is_word = matches!(word, "may" | "march") && !self.reader.words.is_capitalised(at) && !named;
        // "in May Hall", "in June's house": before a capitalised word or a possessive ending, it is a name.
        let is_name = (self.reader.words.is_capitalised(at + 1) && !matches!(self.w(at + 1), "i"))
            || matches!(self.w(at + 1), "'" | "’");
        if is_word || !(dated || named && !is_name) {
            return None;
        }
        let pointed = match before {
            "last" => Some(Tense::Past),
            "next" => Some(Tense::Future),
            _ => None,
        };
        if pointed.is_some() {
            // `pointed_time` reads it with the word before it.
            return None;
        }
        self.of_some_year(at, at + 1, |year| LocalInterval::month(year, number))
    }

    /// Whether a word joins the time at a word to a second one: "from June to August".
    fn opens_range(&self, at: usize) -> bool {
        matches!(self.w(at + 1), "to" | "until" | "till" | "through" | "-" | "–")
    }

    /// "2025" after a word that makes it a year, "the year 2025", "the 1990s".
    pub(super) fn whole_year(&self, at: usize) -> Option<PeriodHit> {
        let first = self.skip(at, &["the"]);
        let decade = self.w(first).strip_suffix('s').filter(|year| year.len() == 4 && year.ends_with('0'));
        if let Some(start) = decade.and_then(|year| year.parse::<i16>().ok()).filter(|_| first > at) {
            let stretch = LocalInterval { last: LocalInterval::year(start + 9)?.last, ..LocalInterval::year(start)? };
            return Some(PeriodHit { next: first + 1, span: PeriodSpan::complete(stretch) });
        }
        let place = self.follows(first, &["year"]).unwrap_or(at);
        let year = self.year(place)?;
        let named = place > at
            || matches!(
                self.before(at, 1),
                "before" | "after" | "until" | "till" | "by" | "from" | "between" | "throughout" | "all" | "end"
            )
            || (self.before(at, 1) == "of"
                && matches!(self.before(at, 2), "all" | "rest" | "whole" | "end" | "beginning" | "start" | "half"));
        if !named || (self.reader.words.is_joined(place + 1) && !matches!(self.w(place + 1), "?" | "." | "," | "!")) {
            return None;
        }
        Some(PeriodHit { next: place + 1, span: PeriodSpan::complete(LocalInterval::year(year)?) })
    }
}

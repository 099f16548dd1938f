//! Dates by name or number: "8 May 2023", "May 8th", "2023-05-08", "June 2022", "in 2019".
//!
//! In: the words and an index. Out: the expression there. A missing year is found with the anchor: by a weekday, by the
//! tense, or as the nearest year; without an anchor there is no expression. Day and month in figures count only if they
//! can be read in just one way.

use jiff::civil::{Date, Time, Weekday};

use super::time_reader::{TimeExpression, TimeReader};
use crate::language::{
    calendar::{LocalInterval, month_number, weekday_number},
    tense::Tense,
};
use types::model::{FIRST_YEAR, LAST_YEAR};

impl TimeReader<'_> {
    /// The absolute expression at a word.
    pub(super) fn absolute(&self, at: usize) -> Option<TimeExpression> {
        let rules = [
            Self::weekday_and_date,
            Self::iso,
            Self::numeric_date,
            Self::day_month,
            Self::month_day,
            Self::month,
            Self::year,
        ];
        rules.iter().find_map(|rule| rule(self, at))
    }

    /// "Friday, 5 May 2023": only the date counts.
    fn weekday_and_date(&self, at: usize) -> Option<TimeExpression> {
        weekday_number(self.words.at(at))?;
        let from = at + 1 + usize::from(self.words.at(at + 1) == ",");
        let from = from + usize::from(self.words.at(from) == "the");
        self.day_month(from).or_else(|| self.month_day(from)).or_else(|| self.iso(from))
    }

    /// "2023-05-08", "2023/05/08", "2023-05-08T13:56".
    fn iso(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let year = self.year_number(at)?;
        let glue = w(at + 1);
        if !matches!(glue, "-" | "/")
            || w(at + 3) != glue
            || !self.words.is_joined(at + 1)
            || !self.words.is_joined(at + 4)
        {
            return None;
        }
        let month = self.words.number(at + 2, 1..=2)?;
        let (day, hour) = match w(at + 4).split_once('t') {
            Some((day, hour)) => (day, Some(hour)),
            None => (w(at + 4), None),
        };
        let date = Date::new(year, i8::try_from(month).ok()?, day.parse().ok()?).ok()?;
        let minute = || (w(at + 5) == ":").then(|| self.words.number(at + 6, 2..=2)).flatten();
        if let (Some(hour), Some(minute)) = (hour, minute()) {
            let time = Time::new(hour.parse().ok()?, i8::try_from(minute).ok()?, 0, 0).ok()?;
            return Some(TimeExpression {
                next: at + 7,
                stretch: LocalInterval::moment(date.to_datetime(time)),
                complete: true,
            });
        }
        Some(TimeExpression { next: at + 5, stretch: LocalInterval::days(date, date), complete: true })
    }

    /// "25/12/2023", "25.12.2023"; after "on", also "12/25" without a year.
    fn numeric_date(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let (a, b) = (self.words.number(at, 1..=2)?, self.words.number(at + 2, 1..=2)?);
        if !matches!(w(at + 1), "/" | "." | "-") || !self.words.is_joined(at + 1) || !self.words.is_joined(at + 2) {
            return None;
        }
        let (day, month) = match (a, b) {
            (13..=31, 1..=12) => (a, b),
            (1..=12, 13..=31) if w(at + 1) != "." => (b, a),
            (1..=12, 1..=12) if a == b => (a, b),
            _ => return None,
        };
        let (day, month) = (i8::try_from(day).ok()?, i8::try_from(month).ok()?);
        if w(at + 3) == w(at + 1) && self.words.is_joined(at + 3) {
            let date = Date::new(self.year_number(at + 4)?, month, day).ok()?;
            return Some(TimeExpression { next: at + 5, stretch: LocalInterval::days(date, date), complete: true });
        }
        let date =
            self.nearest_date(at, month, day).filter(|_| w(at + 1) == "/" && self.words.before(at, 1) == "on")?;
        Some(TimeExpression { next: at + 3, stretch: LocalInterval::days(date, date), complete: false })
    }

    /// "8 May 2023", "8th of May", "8 to 10 May".
    fn day_month(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let first = self.day_number(at)?;
        let (last, from) = match (w(at + 1), self.day_number(at + 2)) {
            ("to" | "-" | "–" | "and", Some(last)) if last > first => (last, at + 3),
            _ => (first, at + 1),
        };
        let from = from + usize::from(w(from) == "of");
        let month = self.month_word(from, true)?;
        self.with_year(at, from + 1, month, first, last)
    }

    /// "May 8, 2023", "May the 8th", "May 8-10".
    fn month_day(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let month = self.month_word(at, true)?;
        let from = at + 1 + usize::from(w(at + 1) == ".") + usize::from(w(at + 1) == "the");
        let first = self.day_number(from)?;
        // "May 8 to 10" may mean hours, but "May 8-10" does not; "June 5 pm" is a clock time.
        if matches!(w(from + 1), "am" | "pm" | ":") || (self.words.is_joined(from + 1) && w(from + 1) == "%") {
            return None;
        }
        match (w(from + 1), self.day_number(from + 2)) {
            ("-" | "–", Some(last)) if last > first => self.with_year(at, from + 3, month, first, last),
            _ => self.with_year(at, from + 1, month, first, first),
        }
    }

    /// Adds the year that follows, or finds the nearest year.
    fn with_year(&self, at: usize, next: usize, month: i8, first: i8, last: i8) -> Option<TimeExpression> {
        let skip = usize::from(matches!(self.words.at(next), "," | "of"));
        if let Some(year) = self.year_number(next + skip) {
            let stretch = LocalInterval::days(Date::new(year, month, first).ok()?, Date::new(year, month, last).ok()?);
            return Some(TimeExpression { next: next + skip + 1, stretch, complete: true });
        }
        let date = self.nearest_date(at, month, first)?;
        let stretch = LocalInterval::days(date, Date::new(date.year(), month, last).ok()?);
        Some(TimeExpression { next, stretch, complete: false })
    }

    /// "June 2022" anywhere; "June" alone only after a word that makes it a time.
    fn month(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        // "31 June 2023" is a day that does not exist, not a month.
        let day = self.words.before(at, 1).trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if matches!(day.len(), 1 | 2) && day.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let skip = usize::from(matches!(w(at + 1), "," | "of"));
        if let (Some(month), Some(year)) = (self.month_word(at, false), self.year_number(at + 1 + skip)) {
            return Some(TimeExpression {
                next: at + 2 + skip,
                stretch: LocalInterval::month(year, month)?,
                complete: true,
            });
        }
        let month = self.month_word(at, false).filter(|_| w(at).len() > 3 || w(at) == "may")?;
        let supported = match self.words.before(at, 1) {
            "in" | "during" | "since" | "early" | "late" | "mid" => true,
            "-" => self.words.before(at, 2) == "mid",
            "of" => matches!(self.words.before(at, 2), "beginning" | "start" | "end" | "middle" | "month"),
            _ => false,
        };
        // "in May Hall", "in June's house": before a capitalised word or a possessive ending, it is a name.
        let name = (self.words.is_capitalised(at + 1) && !matches!(w(at + 1), "i")) || matches!(w(at + 1), "'" | "’");
        if !supported || name {
            return None;
        }
        let year = self.year_of(month, at)?;
        Some(TimeExpression { next: at + 1, stretch: LocalInterval::month(year, month)?, complete: false })
    }

    /// The year of a month that is named without a year at a place: the last or the next month of that name, as the
    /// wording says; if the wording does not say, the nearer one.
    pub(super) fn year_of(&self, month: i8, at: usize) -> Option<i16> {
        const HALF_A_YEAR: i8 = 6;
        let now = self.now?.date();
        let ahead = (month - now.month()).rem_euclid(12);
        let future = match self.words.tense(at) {
            Tense::Future => true,
            Tense::Past => false,
            Tense::Unclear => ahead < HALF_A_YEAR,
        };
        Some(match month.cmp(&now.month()) {
            std::cmp::Ordering::Less if future => now.year() + 1,
            std::cmp::Ordering::Greater if !future => now.year() - 1,
            _ => now.year(),
        })
    }

    /// "2019" after a word that makes it a year, "from 2019 to 2021".
    fn year(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let first = self.year_number(at)?;
        let supported = match self.words.before(at, 1) {
            "in" | "since" | "during" | "throughout" | "year" | "early" | "late" | "mid" | "until" => true,
            "of" => matches!(
                self.words.before(at, 2),
                "summer" | "winter" | "spring" | "fall" | "autumn" | "end" | "beginning" | "start" | "middle"
            ),
            "summer" | "winter" | "spring" | "autumn" => true,
            "from" | "between" => {
                matches!(w(at + 1), "to" | "until" | "and" | "-" | "–") && self.year_number(at + 2).is_some()
            }
            _ => false,
        };
        // "in 2000 words", "in 1950 dollars": the number is a quantity if something that is counted follows it.
        let counted = matches!(
            w(at + 1),
            "people"
                | "dollars"
                | "words"
                | "miles"
                | "km"
                | "meters"
                | "steps"
                | "calories"
                | "pieces"
                | "feet"
                | "points"
                | "degrees"
                | "%"
        ) && self.year_number(at + 2).is_none();
        if !supported || counted || (self.words.is_joined(at + 1) && matches!(w(at + 1), "'" | "%" | "/" | "-")) {
            return None;
        }
        let (last, next) = match (w(at + 1), self.year_number(at + 2)) {
            ("to" | "until" | "and" | "-" | "–", Some(last)) if last > first => (last, at + 3),
            _ => (first, at + 1),
        };
        let stretch = LocalInterval { first: LocalInterval::year(first)?.first, last: LocalInterval::year(last)?.last };
        Some(TimeExpression { next, stretch, complete: true })
    }

    /// The date that a day and a month without a year name. A weekday in front decides the year; without one, the tense
    /// decides: the next such day if the clause is about the future, the last one (today included) if it is about the
    /// past, otherwise the nearer one.
    fn nearest_date(&self, at: usize, month: i8, day: i8) -> Option<Date> {
        let now = self.now?.date();
        let days_away = |d: Date| (d.since(now).map_or(i32::MAX, |s| s.get_days().abs()), d > now);
        // 29 February may be up to eight years away.
        let dates = (-8..=8).filter_map(|n| Date::new(now.year() + n, month, day).ok());
        if let Some(weekday) = self.weekday_before(at) {
            return dates.filter(|d| d.weekday() == weekday).min_by_key(|d| days_away(*d));
        }
        let tense = match self.words.before(at, 1) {
            "next" | "coming" => Tense::Future,
            _ => self.words.tense(at),
        };
        let fits = |d: &Date| match tense {
            Tense::Future => *d >= now,
            Tense::Past => *d <= now,
            Tense::Unclear => true,
        };
        dates.filter(fits).min_by_key(|d| days_away(*d))
    }

    /// "Saturday the", "Friday,": the weekday right in front of a date.
    fn weekday_before(&self, at: usize) -> Option<Weekday> {
        (1..=3).find_map(|back| {
            let between = (1..back).all(|b| matches!(self.words.before(at, b), "," | "the"));
            weekday_number(self.words.before(at, back)).filter(|_| between)
        })
    }

    /// A month's name. "may", "march", "august" and abbreviations are also ordinary words or parts of them, so they
    /// need a capital; short abbreviations also need a day or a year next to them.
    fn month_word(&self, at: usize, beside_a_day: bool) -> Option<i8> {
        let word = self.words.at(at);
        let number = month_number(word)?;
        let own_word =
            matches!(word, "may" | "march" | "august") || word.len() <= 4 && !matches!(word, "june" | "july");
        if own_word && !self.words.is_capitalised(at) {
            return None;
        }
        (beside_a_day || word.len() > 3 || word == "may" || self.year_number(at + 1).is_some()).then_some(number)
    }

    /// "8", "8th": 1 to 31.
    pub(super) fn day_number(&self, at: usize) -> Option<i8> {
        let word = self.words.at(at);
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|s| word.strip_suffix(s)).unwrap_or(word);
        let plain = matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_digit());
        if !plain {
            return None;
        }
        digits.parse().ok().filter(|d| (1..=31).contains(d))
    }

    pub(super) fn year_number(&self, at: usize) -> Option<i16> {
        self.words.number(at, 4..=4).filter(|y| (FIRST_YEAR..=LAST_YEAR).contains(y))
    }
}

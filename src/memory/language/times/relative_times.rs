//! Times relative to the anchor or to a date: "yesterday", "last weekend", "two weeks ago",
//! "next Friday", "the week before 9 June 2023", "first weekend of August".
//!
//! In: the words and an index. Out: the expression there. "Last Friday" is the last one before the anchor's day, "next
//! Friday" the first after it; a weekend belongs to the week before it. The meaning of "On Friday" follows from the
//! tense of its sentence; if that is unclear, there is no expression.

use jiff::{
    Span,
    civil::{Date, Weekday},
};

use super::time_reader::{TimeExpression, TimeReader};
use crate::language::{
    calendar::{CalendarUnit, LocalInterval, month_number, shift, weekday_beside, weekday_number},
    tense::Tense,
};

impl TimeReader<'_> {
    /// The relative expression at a word.
    pub(super) fn relative(&self, at: usize) -> Option<TimeExpression> {
        let rules = [
            Self::before_or_after_a_date,
            Self::named_day,
            Self::counted_span,
            Self::nth_of_month,
            Self::weekday_of_week,
            Self::pointed_time,
            Self::weekday,
            Self::day_of_month,
        ];
        rules.iter().find_map(|rule| rule(self, at))
    }

    /// "yesterday", "the day before yesterday", "last night", "this morning".
    fn named_day(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let today = self.now?.date();
        let day = |n: i64| shift(today, CalendarUnit::Day, n).map(|d| LocalInterval::days(d, d));
        let skip = usize::from(w(at) == "the");
        // "it feels like just yesterday" is not a date.
        if w(at) == "yesterday" && [self.words.before(at, 1), self.words.before(at, 2)].contains(&"like") {
            return None;
        }
        let (length, stretch) = match (w(at + skip), w(at + skip + 1), w(at + skip + 2)) {
            ("day", "before", "yesterday") => (skip + 3, day(-2)?),
            ("day", "after", "tomorrow") => (skip + 3, day(2)?),
            ("last", "night", _) if skip == 0 => (2, day(-1)?.part("evening")?),
            ("this", part @ ("morning" | "afternoon" | "evening"), _) if skip == 0 => (2, day(0)?.part(part)?),
            ("yesterday", ..) if skip == 0 => (1, day(-1)?),
            ("today", ..) if skip == 0 => (1, day(0)?),
            ("tonight", ..) if skip == 0 => (1, day(0)?.part("evening")?),
            ("tomorrow", ..) if skip == 0 => (1, day(1)?),
            _ => return None,
        };
        Some(TimeExpression { next: at + length, stretch, complete: false })
    }

    /// "two weeks ago", "in three days", "a month from now".
    fn counted_span(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let now = self.now?;
        let inside = usize::from(w(at) == "in");
        let count = self.count_word(at + inside)?;
        let unit = w(at + inside + 1);
        let next = at + inside + 2;
        let (sign, next) = match (inside, w(next), w(next + 1)) {
            (0, "ago", _) => (-1, next + 1),
            (0, "from", "now" | "today") => (1, next + 2),
            (1, following, _) if !matches!(following, "or" | "and" | "of" | "ago" | "straight") => {
                // "I finished it in two weeks" says how long it took, not when it happened.
                let future = match self.words.tense(at) {
                    Tense::Future => true,
                    Tense::Unclear => is_be(self.words.before(at, 1)),
                    Tense::Past => false,
                };
                (if future { 1 } else { return None }, next)
            }
            _ => return None,
        };
        let unsure = ["over", "than", "least", "under", "or", "to", "half", "nearly", "almost"];
        if unsure.contains(&self.words.before(at, 1)) {
            return None;
        }
        let rough = matches!(self.words.before(at, 1), "about" | "around" | "roughly" | "like" | "maybe");
        if let "hour" | "hours" | "minutes" = unit {
            let span = if unit == "minutes" {
                Span::new().try_minutes(sign * count)
            } else {
                Span::new().try_hours(sign * count)
            };
            let moment = now.checked_add(span.ok()?).ok().filter(|_| !rough)?;
            return Some(TimeExpression { next, stretch: LocalInterval::moment(moment), complete: false });
        }
        let unit = unit_of(unit, true).filter(|g| !(rough && *g == CalendarUnit::Day))?;
        Some(TimeExpression {
            next,
            stretch: LocalInterval::relative(now.date(), unit, sign * count)?,
            complete: false,
        })
    }

    /// "last week", "this coming Friday", "next June".
    fn pointed_time(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let today = self.now?.date();
        // "over the last year" and "the last week of June" are not a calendar year or week.
        if self.words.before(at, 1) == "the" {
            let over = w(at) == "weekend" && matches!(self.words.before(at, 2), "over" | "during");
            let direction = match self.words.tense(at) {
                Tense::Past if over => -1,
                Tense::Future if over => 1,
                _ => return None,
            };
            let stretch = self.weekend(today, direction, true)?;
            return Some(TimeExpression { next: at + 1, stretch, complete: false });
        }
        let (direction, at) = match (w(at), w(at + 1)) {
            ("last", _) => (-1, at + 1),
            ("next", _) => (1, at + 1),
            ("this", "past" | "last") => (-1, at + 2),
            ("this", "coming" | "upcoming" | "next") => (1, at + 2),
            ("this", _) => (0, at + 1),
            _ => return None,
        };
        let coming = matches!(self.words.before(at, 1), "coming" | "upcoming");
        let word = w(at);
        if matches!(w(at + 1), "of") && !matches!(w(at + 2), "this" | "last" | "next") {
            return None;
        }
        let hit = |stretch| Some(TimeExpression { next: at + 1, stretch, complete: false });
        if let Some(weekday) = weekday_number(word) {
            let date = self.pointed_weekday(at, today, weekday, direction)?;
            return hit(LocalInterval::days(date, date));
        }
        if let Some(month) = month_number(word).filter(|_| word.len() > 3 || self.words.is_capitalised(at)) {
            if matches!(word, "may" | "march") && !self.words.is_capitalised(at) {
                return None;
            }
            let passed = month >= today.month();
            let year = match direction {
                -1 => today.year() - i16::from(passed),
                1 => today.year() + i16::from(month <= today.month()),
                _ => today.year(),
            };
            return hit(LocalInterval::month(year, month)?);
        }
        match unit_of(word, false)? {
            CalendarUnit::Day => None,
            CalendarUnit::Weekend if coming => hit(self.weekend(today, 1, true)?),
            CalendarUnit::Weekend if direction == 0 => {
                // Early in the week, "this weekend" with a past verb means the weekend that has just ended.
                let past = self.words.tense(at) == Tense::Past && today.weekday().to_monday_zero_offset() < 3;
                hit(self.weekend(today, if past { -1 } else { 0 }, false)?)
            }
            unit => hit(LocalInterval::relative(today, unit, direction)?),
        }
    }

    fn pointed_weekday(&self, at: usize, today: Date, weekday: Weekday, direction: i64) -> Option<Date> {
        match direction {
            -1 => weekday_beside(today, weekday, false),
            1 => weekday_beside(today, weekday, true),
            _ if today.weekday() == weekday => Some(today),
            _ => match self.words.tense(at) {
                Tense::Past => weekday_beside(today, weekday, false),
                _ => weekday_beside(today, weekday, true),
            },
        }
    }

    /// The weekend of this week, of the week before or of the week after. With `nearest`, the one after is the next
    /// weekend to come, which may be that of this week.
    fn weekend(&self, today: Date, direction: i64, nearest: bool) -> Option<LocalInterval> {
        let in_week = today.weekday().to_monday_zero_offset() < 5;
        let direction = if nearest && in_week && direction > 0 { 0 } else { direction };
        LocalInterval::relative(today, CalendarUnit::Weekend, direction)
    }

    /// "on Friday", "Friday night", "see you Friday", if the tense is clear.
    fn weekday(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let today = self.now?.date();
        let weekday = weekday_number(w(at))?;
        let before = self.words.before(at, 1);
        let part = matches!(w(at + 1), "morning" | "afternoon" | "evening" | "night");
        let pointed = before == "on" || (before == "you" && self.words.before(at, 2) == "see");
        let habit = matches!(before, "every" | "each" | "most" | "the" | "a" | "any" | "some");
        if !(pointed || (part && !habit)) || matches!(w(at + 1), "the") {
            return None;
        }
        let date = match self.words.tense(at) {
            Tense::Past => weekday_beside(today, weekday, false)?,
            Tense::Future => weekday_beside(today, weekday, true)?,
            Tense::Unclear => return None,
        };
        Some(TimeExpression { next: at + 1, stretch: LocalInterval::days(date, date), complete: false })
    }

    /// "Tuesday of last week", "Friday next week".
    fn weekday_of_week(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let weekday = weekday_number(w(at))?;
        let from = at + 1 + usize::from(matches!(w(at + 1), "of" | ","));
        let direction = match (w(from), w(from + 1)) {
            ("last", "week") => -1,
            ("next", "week") => 1,
            ("this", "week") => 0,
            _ => return None,
        };
        let monday = LocalInterval::relative(self.now?.date(), CalendarUnit::Week, direction)?.first.date();
        let date = shift(monday, CalendarUnit::Day, i64::from(weekday.to_monday_zero_offset()))?;
        Some(TimeExpression { next: from + 2, stretch: LocalInterval::days(date, date), complete: false })
    }

    /// "the first weekend of August 2023", "the last Friday of May".
    fn nth_of_month(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let nth: i8 = match w(at) {
            "first" | "1st" => 1,
            "second" | "2nd" => 2,
            "third" | "3rd" => 3,
            "fourth" | "4th" => 4,
            "last" => -1,
            _ => return None,
        };
        let weekend = w(at + 1) == "weekend";
        let weekday = if weekend { Weekday::Saturday } else { weekday_number(w(at + 1))? };
        if !matches!(w(at + 2), "of" | "in") {
            return None;
        }
        // The month is read here, because after "of" the month rule accepts it only if a year follows.
        let month = month_number(w(at + 3)).filter(|_| self.words.is_capitalised(at + 3))?;
        let dated = self.words.number(at + 4, 4..=4);
        let year = match dated {
            Some(year) => year,
            None => self.year_of(month, at)?,
        };
        let day = Date::new(year, month, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()?;
        let last = if weekend { shift(day, CalendarUnit::Day, 1)? } else { day };
        let next = at + 4 + usize::from(dated.is_some());
        Some(TimeExpression { next, stretch: LocalInterval::days(day, last), complete: dated.is_some() })
    }

    /// "the week before 9 June 2023", "two days after May 1, 2023", "the week before last".
    fn before_or_after_a_date(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        let skip = usize::from(w(at) == "the");
        let counted = self.count_word(at + skip).filter(|_| skip == 0);
        let unit = at + skip + usize::from(counted.is_some());
        let count = counted.unwrap_or(1);
        let sign = match w(unit + 1) {
            "before" => -1,
            "after" => 1,
            _ => return None,
        };
        let beyond = matches!((sign, w(unit + 2)), (-1, "last") | (1, "next")) && counted.is_none();
        if beyond && unit_of(w(unit + 3), false).is_none() && weekday_number(w(unit + 3)).is_none() {
            let stretch = LocalInterval::relative(self.now?.date(), unit_of(w(unit), false)?, 2 * sign)?;
            return Some(TimeExpression { next: unit + 3, stretch, complete: false });
        }
        let from = unit + 2 + usize::from(w(unit + 2) == "the");
        let date = self.absolute(from)?;
        let day = date.stretch.whole_day()?;
        let stretch = match weekday_number(w(unit)).filter(|_| counted.is_none()) {
            Some(weekday) => {
                let found = weekday_beside(day, weekday, sign > 0)?;
                LocalInterval::days(found, found)
            }
            None => LocalInterval::relative(day, unit_of(w(unit), counted.is_some())?, sign * count)?,
        };
        Some(TimeExpression { stretch, ..date })
    }

    /// "on the 5th", if nothing that is counted follows.
    fn day_of_month(&self, at: usize) -> Option<TimeExpression> {
        let w = |i: usize| self.words.at(i);
        if (self.words.before(at, 1), w(at)) != ("on", "the") || !w(at + 1).ends_with(|c: char| c.is_ascii_alphabetic())
        {
            return None;
        }
        let day = self.day_number(at + 1)?;
        if !matches!(w(at + 2), "" | "." | "," | "!" | "?" | "at" | "and" | "of")
            || w(at + 2) == "of" && w(at + 3) != "this"
        {
            return None;
        }
        let today = self.now?.date();
        let here = |months: i64| {
            let month = shift(today.first_of_month(), CalendarUnit::Month, months)?;
            Date::new(month.year(), month.month(), day).ok()
        };
        let date = match self.words.tense(at) {
            Tense::Past => here(0).filter(|d| *d <= today).or_else(|| here(-1))?,
            Tense::Future => here(0).filter(|d| *d >= today).or_else(|| here(1))?,
            Tense::Unclear => return None,
        };
        Some(TimeExpression { next: at + 2, stretch: LocalInterval::days(date, date), complete: false })
    }

    /// "a", "two", "12": an exact count.
    pub(super) fn count_word(&self, at: usize) -> Option<i64> {
        const WORDS: [&str; 13] =
            ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
        let word = self.words.at(at);
        if let Some(n) = self.words.number(at, 1..=3) {
            return (n > 0).then_some(i64::from(n));
        }
        match word {
            "an" => Some(1),
            "fifteen" => Some(15),
            "twenty" => Some(20),
            "thirty" => Some(30),
            _ => WORDS.iter().position(|w| *w == word).and_then(|i| i64::try_from(i.max(1)).ok()),
        }
    }
}

fn is_be(word: &str) -> bool {
    matches!(word, "is" | "are" | "s" | "up" | "back" | "starts" | "begins" | "ends" | "opens" | "arrives" | "leaves")
}

fn unit_of(word: &str, counted: bool) -> Option<CalendarUnit> {
    Some(match word {
        "day" => CalendarUnit::Day,
        "week" => CalendarUnit::Week,
        "weekend" => CalendarUnit::Weekend,
        "month" => CalendarUnit::Month,
        "year" => CalendarUnit::Year,
        "days" if counted => CalendarUnit::Day,
        "weeks" if counted => CalendarUnit::Week,
        "weekends" if counted => CalendarUnit::Weekend,
        "months" if counted => CalendarUnit::Month,
        "years" if counted => CalendarUnit::Year,
        _ => return None,
    })
}

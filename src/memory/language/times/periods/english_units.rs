//! Weeks, quarters and parts of a period of an English question, and periods that are counted from now.
//!
//! In: the words and an index. Out: the period there. "Last week" is the calendar week; "the past week" and "the last
//! seven days" reach back from today. A week of a month has seven days from its first, eighth, fifteenth or
//! twenty-second day on; the last one has the last seven days.

use jiff::Span;

use super::{
    english_reader::{EnglishReader, PeriodHit, WrittenNumber, ordinal, unit_of},
    period_span::{PeriodSpan, fitting, iso_week, months, quarter, quarter_from, rolling, rolling_clock},
};
use crate::language::calendar::{CalendarUnit, LocalInterval, shift};

impl EnglishReader<'_> {
    /// "the past 7 days", "last two weeks", "the last 24 hours", "the next few days", "the past month".
    pub(super) fn rolling(&self, at: usize) -> Option<PeriodHit> {
        let now = self.reader.now?;
        let first = self.skip(at, &["the", "these"]);
        let (sign, is_rolling) = match self.w(first) {
            "past" => (-1, true),
            "last" | "previous" | "preceding" => (-1, first > at),
            "next" | "coming" | "following" => (1, first > at),
            _ => return None,
        };
        let number = self.number(first + 1).filter(|number| number.next > first + 1 && self.w(first + 1) != "a");
        let unit_at = number.map_or(first + 1, |number| number.next);
        let WrittenNumber { value, exact, .. } =
            number.or(is_rolling.then_some(WrittenNumber { next: unit_at, value: 1, exact: true }))?;
        let next = unit_at + 1;
        // "the last week of June" is in June.
        if self.w(next) == "of" || (number.is_none() && self.w(first) == "last" && self.w(unit_at) == "day") {
            return None;
        }
        let span = |stretch| {
            let span = PeriodSpan::complete(stretch);
            Some(PeriodHit { next, span: if exact { span } else { span.likely() } })
        };
        if let Some(clock) = clock_span(self.w(unit_at), sign * value) {
            return span(rolling_clock(now, clock)?);
        }
        match unit_of(self.w(unit_at))? {
            (CalendarUnit::Weekend, _) => {
                let end = LocalInterval::relative(now.date(), CalendarUnit::Weekend, sign)?;
                let other = LocalInterval::relative(now.date(), CalendarUnit::Weekend, sign * value)?;
                span(LocalInterval { first: end.first.min(other.first), last: end.last.max(other.last) })
            }
            (unit, each) => span(rolling(now.date(), unit, sign * value * each)?),
        }
    }

    /// "a few weeks ago", "a couple of days ago", "a fortnight ago", "half a year ago", "over two weeks ago".
    pub(super) fn ago(&self, at: usize) -> Option<PeriodHit> {
        let today = self.today()?;
        let beyond = self.follows(at, &["more", "than"]).or(self.follows(at, &["over"]));
        let half = self.follows(at, &["half", "a", "year", "ago"]);
        if let Some(next) = half {
            let stretch = LocalInterval::relative(today, CalendarUnit::Month, -6)?;
            return Some(PeriodHit { next, span: PeriodSpan::complete(stretch) });
        }
        let number = self.number(beyond.unwrap_or(at))?;
        let (unit, each) = unit_of(self.w(number.next))?;
        let next = self.follows(number.next + 1, &["ago"]).or(self.follows(number.next + 1, &["back"]))?;
        let stretch = LocalInterval::relative(today, unit, -number.value * each)?;
        let span = PeriodSpan::complete(stretch);
        let span = match (beyond, number.exact) {
            (Some(_), _) => span.until().likely(),
            (None, true) => span,
            // From as many as "a few" may be, to two.
            (None, false) => {
                let last = LocalInterval::relative(today, unit, -2)?.last;
                PeriodSpan::complete(LocalInterval { last: last.max(stretch.last), ..stretch }).likely()
            }
        };
        Some(PeriodHit { next, span })
    }

    /// "Q3", "Q3 2026", "2026-Q3", "the third quarter of 2026", "last quarter", "the first half of 2026", "H1".
    pub(super) fn quarter_or_half(&self, at: usize) -> Option<PeriodHit> {
        if let (Some(year), "-" | "/" | "q1" | "q2" | "q3" | "q4") = (self.year(at), self.w(at + 1)) {
            let from = self.skip(at + 1, &["-", "/"]);
            let stretch = quarter(year, letter_number(self.w(from), 'q')?)?;
            return Some(PeriodHit { next: from + 1, span: PeriodSpan::complete(stretch) });
        }
        let first = self.skip(at, &["the"]);
        let away = match self.w(first) {
            "last" | "previous" => Some(-1),
            "this" | "current" => Some(0),
            "next" => Some(1),
            _ => None,
        };
        if let Some(away) = away.filter(|_| self.w(first + 1) == "quarter" && self.w(first + 2) != "of") {
            let stretch = quarter_from(self.today()?, away)?;
            return Some(PeriodHit { next: first + 2, span: PeriodSpan::complete(stretch) });
        }
        if let Some(number) = letter_number(self.w(at), 'q') {
            let next = if self.w(at + 1) == "/" { at + 2 } else { at + 1 };
            return self.of_some_year(at, next, |year| quarter(year, number));
        }
        let is_half =
            matches!(self.before(at, 1), "in" | "during" | "since" | "of") || self.year_after(at + 1).is_some();
        if let Some(number) = letter_number(self.w(at), 'h').filter(|number| *number <= 2 && is_half) {
            return self.of_some_year(at, at + 1, |year| months(year, 6 * number - 5, 6));
        }
        let number = ordinal(self.w(first))?;
        let number = if number < 0 { 4 } else { number };
        match self.w(first + 1) {
            "quarter" => self.of_some_year(at, first + 2, |year| quarter(year, number)),
            "half" if self.year_after(first + 2).is_some() => {
                let number = number.min(2);
                self.of_some_year(at, first + 2, |year| months(year, 6 * number - 5, 6))
            }
            _ => None,
        }
    }

    /// "week 30", "weeks 30 to 32 of 2026", "2026-W30", "KW 30", "the week of 5 October".
    pub(super) fn week(&self, at: usize) -> Option<PeriodHit> {
        if let (Some(year), "-") = (self.year(at), self.w(at + 1)) {
            let stretch = iso_week(year, letter_number(self.w(at + 2), 'w')?)?;
            return Some(PeriodHit { next: at + 3, span: PeriodSpan::complete(stretch) });
        }
        let first = self.skip(at, &["the"]);
        if let Some(of) = self.follows(first, &["week", "of"]).or(self.follows(first, &["weekend", "of"])) {
            let day = self.closed(self.skip(of, &["the"]))?;
            let date = day.span.stretch.whole_day()?;
            let unit = if self.w(first) == "week" { CalendarUnit::Week } else { CalendarUnit::Weekend };
            let span = PeriodSpan { stretch: LocalInterval::around(date, unit)?, ..day.span };
            return Some(PeriodHit { span, ..day });
        }
        let named = match self.w(at) {
            "week" | "weeks" | "kw" | "cw" => self.skip(at + 1, &["number", "no"]),
            "calendar" | "iso" if self.w(at + 1) == "week" => at + 2,
            _ => {
                let number = letter_number(self.w(at), 'w')?;
                return self.of_some_year(at, at + 1, |year| iso_week(year, number));
            }
        };
        let number = |at: usize| self.reader.words.number(at, 1..=2).and_then(|week| i8::try_from(week).ok());
        let from = number(named)?;
        let to = number(named + 2)
            .filter(|to| *to > from && self.w(at) == "weeks" && matches!(self.w(named + 1), "to" | "and" | "-" | "–"));
        let next = if to.is_some() { named + 3 } else { named + 1 };
        let weeks = |year| {
            let (first, last) = (iso_week(year, from)?, iso_week(year, to.unwrap_or(from))?);
            Some(LocalInterval { last: last.last, ..first })
        };
        self.of_some_year(at, next, weeks)
    }

    /// "2026-07", "07/2026".
    pub(super) fn year_month(&self, at: usize) -> Option<PeriodHit> {
        let glued = |at: usize| self.reader.words.is_joined(at) && self.reader.words.is_joined(at + 1);
        if !matches!(self.w(at + 1), "-" | "/" | ".") || !glued(at + 1) {
            return None;
        }
        let ends = !(matches!(self.w(at + 3), "-" | "/" | ".") && glued(at + 3));
        let month = |at: usize| self.reader.words.number(at, 1..=2).and_then(|month| i8::try_from(month).ok());
        let (year, month) = match (self.year(at), self.year(at + 2)) {
            (Some(year), None) if self.w(at + 2).len() == 2 => (year, month(at + 2)?),
            (None, Some(year)) => (year, month(at)?),
            _ => return None,
        };
        let stretch = LocalInterval::month(year, month).filter(|_| ends)?;
        Some(PeriodHit { next: at + 3, span: PeriodSpan::complete(stretch) })
    }

    /// "so far this year", "earlier this week", "later this month", "year to date".
    pub(super) fn part_until_now(&self, at: usize) -> Option<PeriodHit> {
        let today = self.today()?;
        let of_year = self.follows(at, &["year", "to", "date"]).or(self.follows(at, &["ytd"]));
        if let Some(next) = of_year {
            let span = PeriodSpan::complete(LocalInterval::days(today.first_of_year(), today));
            return Some(PeriodHit { next, span });
        }
        let (from, later) = match self.w(at) {
            "earlier" => (at + 1, false),
            "later" => (at + 1, true),
            "so" if self.w(at + 1) == "far" => (at + 2, false),
            _ => return None,
        };
        let whole = match (self.w(from), self.w(from + 1)) {
            ("today", _) => LocalInterval::days(today, today),
            ("this", unit) => LocalInterval::around(today, unit_of(unit)?.0)?,
            _ => return None,
        };
        let next = if self.w(from) == "today" { from + 1 } else { from + 2 };
        let stretch = if later {
            LocalInterval { first: LocalInterval::days(today, today).first, ..whole }
        } else {
            LocalInterval { last: LocalInterval::days(today, today).last.min(whole.last), ..whole }
        };
        Some(PeriodHit { next, span: PeriodSpan::complete(stretch) })
    }

    /// "early June", "the end of last month", "the first two weeks of July", "the second week of September".
    pub(super) fn part_of_period(&self, at: usize) -> Option<PeriodHit> {
        let first = self.skip(at, &["the"]);
        let thirds = match self.w(first) {
            "early" | "beginning" | "start" => Some(0),
            "mid" | "middle" => Some(1),
            "late" | "end" => Some(2),
            _ => None,
        };
        if let Some(third) = thirds {
            let from = self.skip(self.skip(first + 1, &["of", "in", "-"]), &["the"]);
            let whole = self.closed(from)?;
            return Some(PeriodHit { span: third_of(whole.span, third)?.likely(), ..whole });
        }
        let nth = ordinal(self.w(first))?;
        let number = self.number(first + 1);
        let unit_at = number.map_or(first + 1, |number| number.next);
        if self.w(unit_at + 1) != "of" && self.w(unit_at + 1) != "in" {
            return None;
        }
        let whole = self.closed(self.skip(unit_at + 2, &["the"]))?;
        let (from, to) = (whole.span.stretch.first.date(), whole.span.stretch.last.date());
        if self.w(unit_at) == "half" {
            let days = i64::from(from.until(to).ok()?.get_days());
            let middle = shift(from, CalendarUnit::Day, days / 2)?;
            let second = LocalInterval::days(middle.tomorrow().ok()?, to);
            let stretch = if nth == 1 { LocalInterval::days(from, middle) } else { second };
            return Some(PeriodHit { span: PeriodSpan { stretch, ..whole.span }, ..whole });
        }
        let (unit, each) = unit_of(self.w(unit_at)).filter(|(unit, _)| *unit != CalendarUnit::Weekend)?;
        let count = number.map_or(1, |number| number.value) * each;
        let stretch = if nth < 0 {
            LocalInterval::days(shift(to, CalendarUnit::Day, 1).and_then(|end| shift(end, unit, -count))?, to)
        } else {
            let begin = shift(from, unit, (i64::from(nth) - 1) * count)?;
            LocalInterval::days(begin, shift(begin, unit, count)?.yesterday().ok()?)
        };
        let inside = stretch.first >= whole.span.stretch.first && stretch.first < whole.span.stretch.last;
        let exact = number.is_none_or(|number| number.exact);
        let span = PeriodSpan { stretch, certain: whole.span.certain && exact, ..whole.span };
        inside.then_some(PeriodHit { span, ..whole })
    }

    /// "the weekend", "at the weekend", by the tense.
    pub(super) fn weekend(&self, at: usize) -> Option<PeriodHit> {
        let next = self.follows(at, &["the", "weekend"])?;
        if !matches!(self.before(at, 1), "over" | "at" | "on" | "during" | "since" | "before" | "after" | "for") {
            return None;
        }
        let today = self.today()?;
        let weekends = (-1..=1).filter_map(|away| LocalInterval::relative(today, CalendarUnit::Weekend, away));
        let stretch = fitting(today, self.tense(at), weekends)?;
        Some(PeriodHit { next, span: PeriodSpan::inferred(stretch) })
    }
}

/// Hours or minutes as a span of the clock.
fn clock_span(unit: &str, count: i64) -> Option<Span> {
    match unit {
        "hour" | "hours" => Span::new().try_hours(count).ok(),
        "minute" | "minutes" => Span::new().try_minutes(count).ok(),
        _ => None,
    }
}

/// The number after a letter: "q3".
fn letter_number(word: &str, letter: char) -> Option<i8> {
    let digits = word.strip_prefix(letter).filter(|digits| (1..=2).contains(&digits.len()))?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The first, middle or last third of a span of whole days.
fn third_of(whole: PeriodSpan, third: i64) -> Option<PeriodSpan> {
    let (from, to) = (whole.stretch.first.date(), whole.stretch.last.date());
    let days = i64::from(from.until(to).ok()?.get_days()) + 1;
    let at = |third: i64| shift(from, CalendarUnit::Day, days * third / 3);
    let stretch = LocalInterval::days(at(third)?, at(third + 1)?.yesterday().ok()?);
    (days >= 3).then_some(PeriodSpan { stretch, ..whole })
}
